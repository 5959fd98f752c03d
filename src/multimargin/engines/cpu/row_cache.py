"""Which kernel rows are kept: sample id → slot, least recently used first out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...system.typing import IntArray


class RowCache:
    """Book-keeping of a row store with a fixed number of slots.

    The rows themselves live with the engine, in an array of ``capacity`` rows; this class only
    decides which sample holds which slot. When every sample has a slot nothing is ever evicted.

    Parameters
    ----------
    capacity : int
        Number of rows that fit the memory budget.
    n : int
        Number of samples; ids are 0..n-1.

    Examples
    --------
    >>> cache = RowCache(2, 10)
    >>> cache.admit([7, 8])
    array([0, 1])
    >>> cache.lookup([7, 9])
    array([ 0, -1])
    >>> cache.admit([9])  # 8 was used less recently than 7
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
        self._used = np.zeros(self.capacity, dtype=np.int64)  # when, by the clock below; 0 is a free slot
        self._clock = 1
        self._filled = 0

    def __len__(self) -> int:
        return self._filled

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

    def admit(self, ids: Sequence[int] | IntArray) -> IntArray:
        """Give slots to absent ``ids``, evicting the least recently used; at most ``capacity`` ids."""
        ids = np.asarray(ids, dtype=np.int64)
        if len(ids) > self.capacity:
            raise ValueError(f"{len(ids)} rows do not fit a cache of {self.capacity} rows.")
        free = min(len(ids), self.capacity - self._filled)
        slots = np.concatenate([np.arange(self._filled, self._filled + free), self._evict(len(ids) - free)])
        self._filled += free
        self._slot[ids], self._sample[slots] = slots, ids
        self._mark(slots)
        return slots

    def _evict(self, count: int) -> IntArray:
        if not count:
            return np.empty(0, dtype=np.int64)
        used = self._used[: self._filled]
        if count == 1:
            oldest = np.array([np.argmin(used)])
        else:
            oldest = np.argpartition(used, count - 1)[:count]
            oldest = oldest[np.argsort(used[oldest])]
        self._slot[self._sample[oldest]] = -1
        self.evictions += count
        return oldest

    def _mark(self, slots: IntArray) -> None:
        self._used[slots] = np.arange(self._clock, self._clock + len(slots))
        self._clock += len(slots)
