"""Kernel rows of a working set against itself, computed when a solver asks for them.

Descent by pairs looks at few rows of a large block. Rows stand in the order in which they were asked for, so that
little of the block's memory is ever touched.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..typing import FloatArray, IntArray

RowsOf = Callable[[IntArray], Callable[[IntArray, np.ndarray], None]]


class LazyBlock:
    """Rows of K_WW for the samples ``W``; ``rows_of(W)`` gives the function that computes some of them.

    Samples with a cached row (``slots`` ≥ 0) need no ``fill``: solvers copy from the cache.
    """

    def __init__(
        self, W: IntArray, K: np.ndarray, slots: IntArray, diagonal: FloatArray, rows_of: RowsOf
    ) -> None:
        self.places, self.used = np.full(len(W), -1, dtype=np.int64), 0
        self.slots = slots
        self._W, self._K, self._diagonal, self._rows_of = W, K, diagonal, rows_of
        self._compute: Callable[[IntArray, np.ndarray], None] | None = None

    def fill(self, rows: IntArray) -> None:
        """Compute the rows of these samples, at the next free places."""
        if self._compute is None:
            self._compute = self._rows_of(self._W)
        places = np.arange(self.used, self.used + len(rows))
        self._compute(self._W[rows], self._K[places[0] : places[-1] + 1])
        self._K[places, rows] = self._diagonal[rows]
        self.places[rows] = places
        self.used += len(rows)


class AllRows:
    """The same where all rows of the block are there, each at its own place."""

    def __init__(self, q: int) -> None:
        self.places, self.used = np.arange(q), q

    def fill(self, rows: IntArray) -> None:
        raise ValueError("all rows are there")
