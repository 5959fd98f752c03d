"""Which kernel rows are kept: sample id → slot, least recently used first out."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from ...system.typing import IntArray


class RowCache:
    """Book-keeping of a row store with a fixed number of slots.

    The rows themselves live with the engine, in an array of ``capacity`` rows; this class only
    decides which sample holds which slot. When every sample has a slot nothing is ever evicted. New rows
    come in two steps: slots are reserved, filled, and only then published. If filling a row fails, its slot
    stays empty, so no reader ever finds half a row.

    Parameters
    ----------
    capacity : int
        Number of rows that fit the memory budget.
    n : int
        Number of samples; ids are 0..n-1.

    Examples
    --------
    >>> cache = RowCache(2, 10)
    >>> cache.publish([7, 8], cache.reserve(2))
    >>> cache.lookup([7, 9])
    array([ 0, -1])
    >>> cache.reserve(1)  # the slot of 8, which was used less recently than 7
    array([1])
    >>> cache.hits, cache.misses, cache.evictions
    (1, 1, 1)
    """

    def __init__(self, capacity: int, n: int) -> None:
        self.capacity = int(capacity)
        self.hits = 0
        self.misses = 0
        self.evictions = 0
        self._slot = np.full(n, -1, dtype=np.int64)  # of each sample
        self._sample = np.full(self.capacity, -1, dtype=np.int64)  # in each slot
        self._used = np.zeros(self.capacity, dtype=np.int64)  # when, by the clock below; 0 is an empty slot
        self._clock = 1
        self._touched = 0  # slots that were ever reserved: the first ones
        self._own: IntArray | None = None  # the only slots that a twin may reserve

    def __len__(self) -> int:
        return int(np.count_nonzero(self._sample >= 0))

    @property
    def is_untouched(self) -> bool:
        """Whether no slot was ever reserved."""
        return self._touched == 0

    def __contains__(self, sample: int) -> bool:
        return bool(self._slot[sample] >= 0)

    def peek(self, ids: Sequence[int] | IntArray) -> IntArray:
        """Slots of ``ids``, -1 if absent; neither counted nor marked as used."""
        return self._slot[np.asarray(ids, dtype=np.int64)]

    def lookup(self, ids: Sequence[int] | IntArray) -> IntArray:
        """Slots of ``ids``, -1 if absent; counts hits and misses, marks the found as used."""
        slots = self.peek(ids)
        found = slots[slots >= 0]
        self._mark(found)
        self.hits += len(found)
        self.misses += len(slots) - len(found)
        return slots

    def reserve(self, count: int) -> IntArray:
        """Slots for ``count`` new rows: untouched ones, then those of the least recently used samples."""
        if count > self.capacity:
            raise ValueError(f"{count} rows do not fit a cache of {self.capacity} rows.")
        if self._own is not None:
            slots, self._own = self._own[:count], self._own[count:]
            return slots
        free = min(count, self.capacity - self._touched)
        slots = np.concatenate([np.arange(self._touched, self._touched + free), self._evict(count - free)])
        self._touched += free
        return slots

    def room(self, needed: int) -> int:
        """How many rows can be reserved, if so many that are there must stay."""
        return self.capacity - needed if self._own is None else len(self._own)

    def twins(self, count: int) -> list[RowCache]:
        """Caches with the same rows. Each has a part of the empty slots for new ones, and evicts nothing."""
        twins = [copy.deepcopy(self) for _ in range(count)]
        for twin, own in zip(twins, np.array_split(np.flatnonzero(self._sample < 0), count), strict=True):
            twin._own = own
        return twins

    def adopt(self, twin: RowCache) -> None:
        """Take over the rows that only a twin has."""
        new = np.flatnonzero((self._slot < 0) & (twin._slot >= 0))
        slots = twin._slot[new]
        self.publish(new, slots)
        self._touched = max(self._touched, int(slots.max(initial=-1)) + 1)

    def publish(self, ids: Sequence[int] | IntArray, slots: IntArray) -> None:
        """Say that the reserved ``slots`` now hold the rows of ``ids``, which were absent."""
        ids = np.asarray(ids, dtype=np.int64)
        self._sample[slots], self._slot[ids] = ids, slots
        self._mark(slots)

    def _evict(self, count: int) -> IntArray:
        if not count:
            return np.empty(0, dtype=np.int64)
        used = self._used[: self._touched]
        if count == 1:
            oldest = np.array([np.argmin(used)])
        else:
            oldest = np.argpartition(used, count - 1)[:count]
            oldest = oldest[np.argsort(used[oldest])]
        held = self._sample[oldest]
        held = held[held >= 0]
        self._slot[held] = -1
        self._sample[oldest] = -1
        self._used[oldest] = 0
        self.evictions += len(held)
        return oldest

    def _mark(self, slots: IntArray) -> None:
        self._used[slots] = np.arange(self._clock, self._clock + len(slots))
        self._clock += len(slots)
