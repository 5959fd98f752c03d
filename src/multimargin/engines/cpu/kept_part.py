"""The part of a growing working set's kernel block that one process of a team keeps between rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ...system.shard import Shard
from ...system.typing import IntArray
from .kept_block import KeptBlock


class KeptPart:
    """K between ``members`` and those of them that this process holds, with room for ``largest`` members.

    A row is completed when its sample takes a step; ``known`` says how many of its values are there. Samples
    that leave the working set stay members until they are many; then all begins again. Values may be
    fixed-point numbers. Untouched pages of the room cost nothing.
    """

    GROWTH = 2.0  # room made at a time for further columns: all rows must move to make it

    def __init__(self, shard: Shard, largest: int, dtype: np.dtype[Any]) -> None:
        self.largest, self._shard = min(shard.n, largest), shard
        self._values = np.empty(self.largest * min(shard.count, self.largest), dtype=dtype)
        self._known = np.empty(self.largest, dtype=np.int64)
        self._clear()

    def _clear(self) -> None:
        self.members: IntArray = np.empty(0, dtype=np.int64)
        self.places: IntArray = np.empty(0, dtype=np.int64)  # of this process's samples among the members
        self.here: IntArray = np.empty(0, dtype=np.int64)  # their numbers in this process
        self._is_member = np.zeros(self._shard.n, dtype=bool)
        self._stride = 0

    @property
    def kernel(self) -> np.ndarray:
        """The part: a row per member, a column per sample held here."""
        rows = len(self.members)
        return self._values[: rows * self._stride].reshape(rows, self._stride)[:, : len(self.here)]

    @property
    def known(self) -> IntArray:
        """How many values of each row are there."""
        return self._known[: len(self.members)]

    def admit(self, W: IntArray) -> None:
        """Make all of ``W`` members."""
        new = np.sort(W[~self._is_member[W]])  # so that rows are read forwards
        most = min(self.largest, int((1 + KeptBlock.IDLE_SHARE) * len(W)))
        if len(self.members) + len(new) > most:
            self._clear()
            new = np.sort(W)
        old = len(self.members)
        places, here = self._shard.mine(new)
        self._widen(len(self.here) + len(here))
        self.members = np.concatenate([self.members, new])
        self.places = np.concatenate([self.places, old + np.arange(len(new))[places]])
        self.here = np.concatenate([self.here, here])
        self._is_member[new] = True
        self._known[old : len(self.members)] = 0

    def _widen(self, columns: int) -> None:
        """Move the rows apart to make room for so many columns."""
        if columns <= self._stride:
            return
        most = min(self._shard.count, self.largest)
        old, self._stride = self._stride, min(most, int(self.GROWTH * columns))
        _core.widen_block(self._values, len(self.members), len(self.here), old, self._stride, n_threads=1)
