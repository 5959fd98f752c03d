"""The floor: one float32 product and one exp for every kernel value, and nothing else.

    K(a, b) = exp(-γ ‖a - b‖²) = exp([√(2γ) a, -γ‖a‖², 1] · [√(2γ) b, 1, -γ‖b‖²])

so with two more features the exponent is the product itself. NumPy's BLAS at one thread in each of
``threads`` threads, tile by tile into one buffer per thread that stays in the processor's cache: results are
not stored, and no fresh memory is touched.
"""

from __future__ import annotations

import queue
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.lib.scoring import dense

TILES = ((128, 512), (256, 1024))  # rows by columns; which is faster depends on the number of features
TIMES = 5
LONGEST = 20.0  # seconds after which it is not measured again


class Floor:
    """All values between the rows of A and the rows of B, as often as one likes."""

    def __init__(self, A: Any, B: Any, gamma: float, threads: int) -> None:
        self._factors, self._threads = factors(dense(A), dense(B), gamma), threads
        self._buffers: queue.SimpleQueue[dict] = queue.SimpleQueue()  # one set per thread
        for _ in range(threads):
            self._buffers.put({tile: np.empty(tile, np.float32) for tile in TILES})

    def once(self) -> float:
        """Seconds, of the better tile size. Stripes of tiles go to whichever thread is free."""
        times = []
        with ThreadPoolExecutor(self._threads) as pool, threadpool_limits(1, user_api="blas"):
            for tile in TILES:
                start = perf_counter()
                list(pool.map(partial(self._stripe, tile), range(0, self._factors[0].shape[0], tile[0])))
                times.append(perf_counter() - start)
        return min(times)

    def best(self) -> float:
        """The best of several runs, or of as many as LONGEST allows."""
        times, start = [self.once()], perf_counter()
        while len(times) < TIMES and perf_counter() - start < LONGEST:
            times.append(self.once())
        return min(times)

    def _stripe(self, tile: tuple[int, int], first: int) -> None:
        """The tiles of one stripe of rows."""
        (rows, columns), (left, right) = tile, self._factors
        buffers = self._buffers.get()
        part = left[first : first + rows]
        for j in range(0, right.shape[1], columns):
            block = right[:, j : j + columns]
            values = buffers[tile][: part.shape[0], : block.shape[1]]
            np.matmul(part, block, out=values)
            np.exp(values, out=values)
        self._buffers.put(buffers)


def factors(A: np.ndarray, B: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Float32 matrices whose product is the exponent; without the mean, which distances do not notice."""
    mean = A.mean(axis=0)
    left, right = np.sqrt(2 * gamma) * (A - mean), np.sqrt(2 * gamma) * (B - mean)
    norms = [-0.5 * (X**2).sum(axis=1, keepdims=True) for X in (left, right)]
    left = np.hstack([left, norms[0], np.ones_like(norms[0])])
    right = np.hstack([right, np.ones_like(norms[1]), norms[1]])
    return left.astype(np.float32), right.astype(np.float32).T
