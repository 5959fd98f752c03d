"""The kernel block of a growing working set, kept from one round to the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ...system.typing import IntArray


class KeptBlock:
    """K between ``members``, in the upper left corner of an array with room for ``largest`` of them.

    Samples that leave the working set stay members until they are many: a member that cannot move costs
    little, moving the block together costs more. ``room`` is the work space in which solvers may copy parts
    of it; untouched pages of both cost nothing. Values may be fixed-point numbers.
    """

    IDLE_SHARE = 0.25  # of the working set: so many members may be outside it
    GROWTH = 1.05  # room made at a time: every page that is touched costs

    def __init__(self, n: int, largest: int, dtype: np.dtype[Any]) -> None:
        self.largest = min(n, largest)
        self.members: IntArray = np.empty(0, dtype=np.int64)
        self._room = np.empty(self.largest**2 * dtype.itemsize, dtype=np.uint8)
        self._values = np.empty(self.largest**2, dtype=dtype)
        self._stride = 0
        self._is_member = np.zeros(n, dtype=bool)

    def room(self, dtype: np.dtype[Any]) -> np.ndarray:
        """The work space, for values of this type."""
        return self._room[: len(self._room) // dtype.itemsize * dtype.itemsize].view(dtype)

    @property
    def kernel(self) -> np.ndarray:
        """The block of all members."""
        q = len(self.members)
        return self._square()[:q, :q]

    def _square(self) -> np.ndarray:
        return self._values[: self._stride**2].reshape(self._stride, self._stride)

    def missing(self, W: IntArray, n_threads: int) -> IntArray:
        """The samples of ``W`` that are not members yet; makes room, if need be by leaving idle ones out."""
        new = W[~self._is_member[W]]
        idle = len(self.members) + len(new) - len(W)
        if idle > self.IDLE_SHARE * len(W) or len(W) + idle > self.largest:
            self.retain(np.isin(self.members, W))
        self._widen(len(self.members) + len(new), n_threads)
        return new

    def extend(self, new: IntArray, rows: np.ndarray, slots: IntArray, n_threads: int) -> None:
        """Add members, whose kernel rows against all samples are ``rows[slots]``."""
        self._add(new, rows, slots, None, n_threads)

    def extend_by(self, new: IntArray, rows: np.ndarray, n_threads: int) -> None:
        """Add members, given their kernel rows against the members (the new ones last) only."""
        self._add(new, rows, np.arange(len(new)), np.arange(rows.shape[1]), n_threads)

    def _add(
        self, new: IntArray, rows: np.ndarray, slots: IntArray, columns: IntArray | None, n_threads: int
    ) -> None:
        old = len(self.members)
        self._widen(old + len(new), n_threads)
        everyone = np.concatenate([self.members, new])
        columns = everyone if columns is None else columns
        _core.extend_block(self._square(), old, rows, slots, columns, n_threads)
        self.members = everyone
        self._is_member[new] = True

    def _widen(self, count: int, n_threads: int) -> None:
        """Move the rows apart to make room for ``count`` members; only memory in use is ever touched."""
        if count <= self._stride:
            return
        old, self._stride = self._stride, min(self.largest, int(self.GROWTH * count))
        count = len(self.members)
        _core.widen_block(self._values, count, count, old, self._stride, n_threads)

    def retain(self, kept: np.ndarray) -> None:
        """Leave out the members that this mask does not have."""
        if kept.all():
            return
        _core.retain_block(self._square(), np.flatnonzero(kept))
        self._is_member[self.members[~kept]] = False
        self.members = self.members[kept]
