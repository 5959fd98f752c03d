"""How weights lie in memory: classes side by side, padded, in one block per thread."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

LANES = 8  # the native code asks for blocks whose width is a multiple of this
_CACHE_LINE = 64  # bytes


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
        size = math.prod(self.shape) * np.dtype(dtype).itemsize
        memory = np.zeros(size + _CACHE_LINE, dtype=np.uint8)
        first = -memory.__array_interface__["data"][0] % _CACHE_LINE
        return memory[first : first + size].view(dtype).reshape(self.shape)

    def paired(self, weights: np.ndarray, plain: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each block, views of its classes in ``weights`` and in ``plain``, which has one block."""
        blocks = weights.reshape(self.blocks, self.features, self.width)
        columns = np.split(plain[:, : self.m], range(self.width, self.m, self.width), axis=1)
        return [(block[:, : part.shape[1]], part) for block, part in zip(blocks, columns, strict=True)]
