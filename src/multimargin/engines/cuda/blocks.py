"""The kernel blocks of working sets, and which of them are kept.

The last block is kept for the next working set if that has the same samples. A search keeps the block of all
samples as well, if that fits: the blocks of its folds are parts of it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...system.typing import IntArray
from .values import KernelValues, part_of


class Blocks:
    """Blocks K_WW without the offset, as ``KernelValues.block`` has them.

    Parameters
    ----------
    values : KernelValues
        What computes them.
    all_ids : ndarray or None
        All samples, if their block is to be kept; None if not.
    """

    def __init__(self, values: KernelValues, all_ids: IntArray | None = None) -> None:
        self._values, self._all_ids = values, all_ids
        self._last: tuple[IntArray, Any] | None = None
        self._whole: Any = None
        self.computed = 0  # kernel values

    def of(self, W: IntArray, dtype: np.dtype[Any]) -> Any:
        """The block of a working set."""
        if self._last is not None and self._last[1].dtype == dtype and np.array_equal(self._last[0], W):
            return self._last[1]
        self._last = None  # two may not fit
        K = self._compute(W, dtype) if self._all_ids is None else self._from_whole(W, dtype)
        self._last = W, K
        return K

    def _from_whole(self, W: IntArray, dtype: np.dtype[Any]) -> Any:
        assert self._all_ids is not None
        if self._whole is None or self._whole.dtype != dtype:
            self._whole = None
            self._whole = self._compute(self._all_ids, dtype)
        return self._whole if np.array_equal(W, self._all_ids) else part_of(self._whole, W, dtype)

    def _compute(self, W: IntArray, dtype: np.dtype[Any]) -> Any:
        self.computed += len(W) ** 2
        return self._values.block(W, dtype)


def largest_whole(share: float, cache_bytes: int, itemsize: int) -> int:
    """How many samples may have their whole block kept in a share of the memory."""
    return math.isqrt(max(0, int(share * cache_bytes)) // itemsize)
