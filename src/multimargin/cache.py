"""Which kernel rows are kept: sample id → slot, least recently used first out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import numpy as np

from .typing import IntArray


class RowCache:
    """Book-keeping of a row store with a fixed number of slots.

    The rows themselves live with the engine, in an array of ``capacity`` rows; this class only
    decides which sample holds which slot. When every sample has a slot nothing is ever evicted.

    Parameters
    ----------
    capacity : int
        Number of rows that fit the memory budget.

    Examples
    --------
    >>> cache = RowCache(2)
    >>> cache.admit([7, 8])
    array([0, 1])
    >>> cache.lookup([7, 9])
    array([ 0, -1])
    >>> cache.admit([9])  # 8 was used less recently than 7
    array([1])
    >>> cache.hits, cache.misses, cache.evictions
    (1, 1, 1)
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = int(capacity)
        self.hits = 0
        self.misses = 0
        self.evictions = 0
        self._slot: OrderedDict[int, int] = OrderedDict()  # least recently used first
        self._free = 0  # slots from here on were never used

    def __len__(self) -> int:
        return len(self._slot)

    def __contains__(self, sample: int) -> bool:
        return sample in self._slot

    def peek(self, ids: Iterable[int]) -> IntArray:
        """Slots of ``ids``, -1 where absent; neither counted nor marked as used."""
        return np.array([self._slot.get(i, -1) for i in _as_list(ids)], dtype=np.int64)

    def lookup(self, ids: Iterable[int]) -> IntArray:
        """Slots of ``ids``, -1 where absent; counts hits and misses, marks the found as used."""
        slots = []
        for i in _as_list(ids):
            slot = self._slot.get(i, -1)
            if slot < 0:
                self.misses += 1
            else:
                self.hits += 1
                self._slot.move_to_end(i)
            slots.append(slot)
        return np.array(slots, dtype=np.int64)

    def admit(self, ids: Iterable[int]) -> IntArray:
        """Give slots to absent ``ids``, evicting the least recently used; at most ``capacity`` ids."""
        ids = _as_list(ids)
        if len(ids) > self.capacity:
            raise ValueError(f"{len(ids)} rows do not fit a cache of {self.capacity} rows.")
        slots = []
        for i in ids:
            if self._free < self.capacity:
                slot = self._free
                self._free += 1
            else:
                _, slot = self._slot.popitem(last=False)
                self.evictions += 1
            self._slot[i] = slot
            slots.append(slot)
        return np.array(slots, dtype=np.int64)


def _as_list(ids: Iterable[int]) -> list[int]:
    return ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
