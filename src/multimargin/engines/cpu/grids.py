"""Data that are small integers times one scale: found, and converted to the integers.

Pixels, counts, codes and decimals rounded to a few places are such data, whether stored as integers or as
floating-point numbers: ``X / 255``, ``X * 1e-4``. Their inner products and distances are exact in integer
arithmetic, and much faster. A stored value may differ from integer × scale by a few units of its own
rounding; the integer × scale is then what is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ... import _core
from ...system.shard import Shard
from ...system.team import SOLO, Team
from ...system.typing import Data

LARGEST = 32767  # the integers of a grid lie in ±LARGEST
SAMPLE = 4096  # values looked at before all are


@dataclass(frozen=True)
class Grid:
    """The integers ``dtype`` × ``scale``; with ``binary`` only 0 and 1."""

    scale: float
    dtype: np.dtype[Any]
    binary: bool

    @classmethod
    def find(cls, X: Data, team: Team = SOLO) -> Self | None:
        """The coarsest grid that all values of ``X`` are on, those of the whole team, or None."""
        values = _values(X)
        whole = values.dtype.kind in "iub"
        scale = 1.0 if whole else _core.grid_scale(_sample(values, team))
        if scale is None:
            return None
        limits = [limit for limit in team.collect(_range(values, scale)) if limit is not None]
        if len(limits) < team.size:
            return None
        return cls.within(scale, min(low for low, _ in limits), max(high for _, high in limits), values.dtype)

    @classmethod
    def within(cls, scale: float, low: float, high: float, stored: np.dtype[Any]) -> Self | None:
        """The grid of integers between these limits, of data of the type ``stored``; None if too large."""
        if max(-low, high) > LARGEST:
            return None
        return cls(scale, _smallest_dtype(low, high, stored), binary=low == 0 and high <= 1)

    def widened(self) -> Self:
        """The same scale with room for all integers that a grid can have."""
        return replace(self, dtype=np.dtype(np.int16), binary=False)

    def holds(self, X: Data) -> bool:
        """Whether all values of ``X`` are on this grid."""
        limits = _range(_values(X), self.scale)
        if limits is None:
            return False
        low, high = limits
        if self.binary:
            return low == 0 and high <= 1
        least = max(np.iinfo(self.dtype).min, -LARGEST)
        return bool(least <= low and high <= np.iinfo(self.dtype).max)

    def integers(self, X: Data) -> Data:
        """The integers of data that this grid holds, dense or sparse as they are."""
        whole = _convert(_values(X), self.scale, self.dtype)
        if not sp.issparse(X):
            return whole.reshape(X.shape)
        result = sp.csr_array((whole, X.indices, X.indptr), shape=X.shape)
        if not whole.all():
            result = result.copy()
            result.eliminate_zeros()
        return result

    def numbers(self, whole: Data, dtype: np.dtype[Any]) -> Data:
        """What the integers stand for: whole numbers, their quotients by one, or multiples of the scale.

        These need not be the data to the last bit.
        """
        integers = _values(whole)
        if self.scale == 1.0:
            values = integers.astype(dtype)
        else:
            inverse, values = round(1 / self.scale), np.empty(len(integers), dtype=dtype)
            divides = inverse > 0 and self.scale == 1 / inverse
            _core.from_grid(integers, inverse if divides else self.scale, divides, values)
        if not sp.issparse(whole):
            return values.reshape(whole.shape)
        return sp.csr_array((values, whole.indices, whole.indptr), shape=whole.shape)


def _values(X: Data) -> np.ndarray:
    return X.data if sp.issparse(X) else np.ascontiguousarray(X).reshape(-1)


def _smallest_dtype(low: float, high: float, stored: np.dtype[Any]) -> np.dtype[Any]:
    if stored in (np.uint8, np.int8):
        return stored
    for dtype in (np.uint8, np.int8):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return np.dtype(dtype)
    return np.dtype(np.int16)


def _range(values: np.ndarray, scale: float) -> tuple[float, float] | None:
    """The smallest and the largest integer of the values, and 0."""
    if scale == 1.0 and np.issubdtype(values.dtype, np.integer):
        return float(values.min(initial=0)), float(values.max(initial=0))
    return _core.grid_range(_floating(values), scale)


def _convert(values: np.ndarray, scale: float, dtype: np.dtype[Any]) -> np.ndarray:
    if scale == 1.0 and np.issubdtype(values.dtype, np.integer):
        return values.astype(dtype, copy=False)
    out = np.empty(len(values), dtype=dtype)
    _core.to_grid(_floating(values), scale, out)
    return out


def _floating(values: np.ndarray) -> np.ndarray:
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def _sample(values: np.ndarray, team: Team) -> np.ndarray:
    """Some of the values of all processes, the same as of one process that has them all."""
    shard = Shard(len(values), team)
    at = np.arange(0, shard.n, max(1, shard.n // SAMPLE), dtype=np.int64)[: 2 * SAMPLE]
    return shard.take(at, values[shard.mine(at)[1]])
