"""Kernel rows: those that are kept, within the memory budget, and those that pass by."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import numpy as np

from ... import _core
from ...run.profile import Profile, timed
from ...system.typing import FloatArray, IntArray
from ..budget import Budget
from .kernel_values import KernelValues, Table
from .row_cache import RowCache


class RowStore:
    """Rows of the kernel matrix by sample id, computed when they are asked for.

    A row has a value per sample that this process holds. If values are so cheap that computing them again
    costs less than keeping them (``keeps_rows`` is false), no row is kept.
    """

    def __init__(
        self, values: KernelValues, budget: Budget, profile: Profile, keeps_rows: bool = True
    ) -> None:
        self.values, self.profile, self.budget, self.keeps_rows = values, profile, budget, keeps_rows
        self.n, self.width = values.n, values.width
        self.cache = RowCache(budget.kept_rows if keeps_rows else 0, self.n)
        self.kept = np.empty((self.cache.capacity, self.width), dtype=values.row_dtype)
        self._passing = np.empty((0, self.width), dtype=values.row_dtype)
        self.computed = 0.0  # rows, also those of which only some values were computed
        if values.whole and self.cache.capacity == self.n:
            self.load(np.arange(self.n))

    def visit(
        self, ids: IntArray, keep: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, IntArray, IntArray]]:
        """Kernel rows of ``ids`` as (store, slots, positions in ids): the cached, then the computed.

        Rows that do not fit beside the cached ones pass through a work space. If they took the place of
        others, a working set a little larger than the cache would find nothing there the next time. Rows
        outside of the mask ``keep`` pass through it too: touching memory for the first time takes longer than
        computing a row of most kernels.
        """
        slots = self.cache.lookup(ids)
        found = np.flatnonzero(slots >= 0)
        if len(found):
            yield self.kept, slots[found], found
        if len(found) == len(ids):
            return
        missing = np.flatnonzero(slots < 0)
        stay = missing if keep is None else missing[keep[missing]]
        pass_by = missing[:0] if keep is None else missing[~keep[missing]]
        room, at_once = self.cache.room(len(found)), self.values.rows_at_once
        for which in chunks(stay[:room], at_once):
            at = self.cache.reserve(len(which))
            self._fill(ids[which], self.kept, at)
            self.cache.publish(ids[which], at)
            yield self.kept, at, which
        pass_by = np.concatenate([stay[room:], pass_by])
        if not len(pass_by):
            return
        passing = min(at_once, self.budget.passing_rows)
        if not len(self._passing):
            self._passing = np.empty((passing, self.width), dtype=self.values.row_dtype)
        for which in chunks(pass_by, passing):
            at = np.arange(len(which), dtype=np.int64)
            self._fill(ids[which], self._passing, at)
            yield self._passing, at, which

    @property
    def holds_all(self) -> bool:
        """Whether no row that is kept ever leaves."""
        return self.cache.capacity == self.n or not self.keeps_rows

    def twin(self, values: KernelValues, budget: Budget, profile: Profile) -> RowStore:
        """The same rows for a fit in another thread, once ``deal`` has been called.

        Until ``merge`` twins do not see each other's new rows. The last bits of a row depend on which rows
        are computed with it, so results would depend on who is first.
        """
        twin = copy.copy(self)
        twin.values, twin.budget, twin.profile = values, budget, profile
        twin._passing, twin.computed = self._passing[:0], 0.0
        return twin

    def deal(self, twins: Sequence[RowStore]) -> None:
        """Give all twins the rows that are here; this store must not be used before ``merge``."""
        caches = self.cache.twins(len(twins)) if twins else []
        for twin, cache in zip(twins, caches, strict=True):
            twin.cache = cache

    def merge(self, twins: Sequence[RowStore]) -> None:
        """Take over the rows that twins have computed."""
        for twin in twins:
            self.cache.adopt(twin.cache)

    def forget(self) -> None:
        """Give the memory of all rows back."""
        self.cache = RowCache(0, self.n)
        self.kept, self._passing = self.kept[:0].copy(), self._passing[:0].copy()

    def load(self, ids: IntArray) -> IntArray:
        """Compute the rows of ``ids`` and keep what fits; their slots, -1 for those that do not."""
        if len(ids):
            for _ in self.visit(ids):
                pass
        return self.cache.peek(ids)

    @timed("kernel rows")
    def _fill(self, ids: IntArray, store: np.ndarray, slots: IntArray) -> None:
        self.values.fill(ids, store, slots)
        self.computed += len(ids)

    def table(self, columns: IntArray) -> Table:
        """A function of ids and a count: kernel values against the first so many of ``columns``.

        Nothing is kept.
        """
        with self.profile.phase("kernel rows"):
            values = self.values.table(columns)

        def between(ids: IntArray, count: int) -> np.ndarray:
            with self.profile.phase("kernel rows"):
                return values(ids, count)

        return between

    @timed("kernel rows")
    def against(self, ids: IntArray, here: IntArray) -> np.ndarray:
        """Kernel values of ``ids`` against some samples held here, by their numbers; nothing is kept."""
        return self.values.against(ids, here)

    @property
    def is_exact(self) -> bool:
        """Whether rows are as good as float64 ones."""
        return self.values.exact and self.values.dtype == np.float64

    def _exact(self, slots: IntArray) -> bool:
        """Whether the rows in ``slots`` are all there and as good as float64 ones."""
        return self.is_exact and bool(slots.min(initial=0) >= 0)

    def diagonal(self) -> FloatArray:
        """K_ii of the samples of this process without the offset, in float64."""
        if self.values.guests is not None or not self.is_exact or self.cache.is_untouched:
            return self.values.diagonal()
        every = np.arange(self.n)
        slots = self.cache.peek(every)
        return (
            self.kept[slots, every] - self.values.task.offset
            if self._exact(slots)
            else self.values.diagonal()
        )

    def scores(self, ids: IntArray, coef: FloatArray, here: IntArray | None = None) -> FloatArray:
        """Σ_j K(x_i, x_j) coef_j over ``ids`` for samples i of this process, in float64.

        ``here`` are the numbers of these samples; all if None. Cached rows serve if they are as good as
        float64 ones.
        """
        if not len(ids):
            return np.zeros((self.width if here is None else len(here), coef.shape[1]))
        slots, values = self.cache.peek(ids), self.values
        if not self._exact(slots):
            return values.scores(ids, coef, here)
        out = np.zeros((self.width, coef.shape[1]))
        _core.update_gradient(out, self.kept, slots, coef, values.n_threads)
        return out if here is None else out[here]


def chunks(ids: IntArray, size: int) -> Iterator[IntArray]:
    """At most ``size`` of ``ids`` at a time."""
    return (ids[first : first + size] for first in range(0, len(ids), size))
