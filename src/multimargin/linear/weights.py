"""How weights lie in memory: classes side by side, padded, in one block per thread; and in which memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

LANES = 8  # the native code asks for blocks whose width is a multiple of this
_CACHE_LINE = 64  # bytes
_ROWS = 4096  # converted at a time


def _aligned(size: int) -> np.ndarray:
    """So many zero bytes, from the start of a cache line on."""
    memory = np.zeros(size + _CACHE_LINE, dtype=np.uint8)
    first = -memory.__array_interface__["data"][0] % _CACHE_LINE
    return memory[first : first + size]


@dataclass(frozen=True)
class WeightLayout:
    """The array that holds the weights of ``m`` classes.

    The classes are divided into blocks, at most one per part. A row of a block has one feature's weights of
    the block's classes. The blocks follow each other, so the array is (blocks * features, width).
    """

    features: int  # the constant feature included
    m: int
    parts: int = 1

    @property
    def width(self) -> int:
        """Classes per block, padded."""
        return -(-self.m // (self.parts * LANES)) * LANES

    @property
    def blocks(self) -> int:
        """Blocks that have classes: fewer than parts if padding fills the first ones."""
        return -(-self.m // self.width)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the array."""
        return self.blocks * self.features, self.width

    def zeros(self, dtype: type) -> np.ndarray:
        """New weights, aligned to a cache line: otherwise every vector of weights would straddle two."""
        return _aligned(math.prod(self.shape) * np.dtype(dtype).itemsize).view(dtype).reshape(self.shape)

    def paired(self, weights: np.ndarray, plain: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each block, views of its classes in ``weights`` and in ``plain``, which has one block."""
        blocks = weights.reshape(self.blocks, self.features, self.width)
        columns = np.split(plain[:, : self.m], range(self.width, self.m, self.width), axis=1)
        return [(block[:, : part.shape[1]], part) for block, part in zip(blocks, columns, strict=True)]


class SharedWeights:
    """Float32 weights that change and float64 weights of a proof, in the memory of the latter.

    Only one of them is valid at a time, because ``exact`` covers ``single``. A proof computes ``exact`` from
    the dual. If the run goes on, ``round_exact`` makes ``single`` from it.
    """

    def __init__(self, layout: WeightLayout) -> None:
        self._layout, plain = layout, replace(layout, parts=1)
        rounded, used = 4 * math.prod(plain.shape), 4 * math.prod(layout.shape)
        half = -(-rounded // _CACHE_LINE) * _CACHE_LINE
        memory = _aligned(half + max(half, used))
        self.exact = memory[: 2 * rounded].view(np.float64).reshape(plain.shape)
        self.single = memory[half : half + used].view(np.float32).reshape(layout.shape)
        self._low = memory[:rounded].view(np.float32).reshape(plain.shape)

    def round_exact(self) -> None:
        """Make ``single`` from ``exact``, which is lost: first in place, then into its blocks."""
        for first in range(0, len(self._low), _ROWS):  # floats of a row lie before its doubles
            part = slice(first, first + _ROWS)
            self._low[part] = self.exact[part].astype(np.float32)
        self.single[:] = 0.0
        for block, columns in self._layout.paired(self.single, self._low):
            block[:] = columns
