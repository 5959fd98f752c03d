"""The descent of a working set on the device, by one persistent kernel.

It is batched greedy descent (kernels/descent.cu), or for c-svc projected gradient on subproblems
(kernels/balanced.cu). The kernel comes back every few milliseconds, so that the host sees Ctrl-C and the
time limit. How long it ran never changes what it does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...inner import CoordinateDescent, PairDescent
from ...inner.base import InnerSolver
from ...system.typing import IntArray
from .device import cupy, function, launch, multiprocessors, shared_bytes
from .samples import padded
from .state import MACHINES, DeviceState

_C_REALS = {"float32": "float", "float64": "double"}
_C_VALUES = {"uint16": "unsigned short", "float32": "float", "float64": "double"}
_SLICE_SECONDS = 0.03  # of a run without a look at the clock
_FIRST_ITERATIONS = 256
_SLOWER = 16  # so many times as long takes an iteration of c-svc
_MOST_CLASSES = 32  # whose changes are added up at a time
_THREADS = 512
_MOST_BLOCKS = 256
_ROWS = 8  # of a block, at least
_NEXT = 4  # rows that a thread reads together
_EACH = {"float32": 8, "float64": 4}  # samples of a block in a subproblem of c-svc, of either kind
_FIXED_SHARED = 4096
# Shares of C below which a variable counts as zero: what rounding leaves of one.
_MARGIN = {"float32": 4e-7, "float64": 1e-15}
_MOST_ITERATIONS, _MOST_SWEEPS = 20_000, 20  # of a block; as many iterations as so many times its samples


def has_device_form(inner: InnerSolver) -> bool:
    """Whether the solver's result, a block solved to a tolerance, is what the descents here find."""
    if isinstance(inner, CoordinateDescent):
        return inner.update != "frank-wolfe"
    return isinstance(inner, PairDescent)


def _next(chunk: int, real: str) -> int:
    """Rows of a thread (kernels/descent.cu, NEXT)."""
    return 4 if chunk <= 16 and real == "float32" else 2


def _most_blocks() -> int:
    """Blocks that a kernel is compiled for."""
    return -(-min(multiprocessors(), _MOST_BLOCKS) // 8) * 8


class Block(NamedTuple):
    """A working set in the layout of the kernels."""

    W: Any  # ids, on the device
    q: int
    v: Any  # (columns, padded(q)) variables
    G: Any
    diagonal: Any
    ridge: Any
    y: Any
    C: Any


class Moved(NamedTuple):
    """What a block solver did."""

    steps: int
    ids: IntArray  # that moved
    delta: Any  # (k, m) on the device, what was added to their rows of alpha


class Descent:
    """Solves the block of a working set on the device."""

    def __init__(self, state: DeviceState, real: str) -> None:
        self.state, self.real = state, real
        self.iterations, self.crept = 0, False
        self.machine, self.binary = MACHINES[state.problem.name], state.problem.balanced

    def gather(self, W: IntArray) -> Block:
        """The variables and gradients of the samples ``W``."""
        cp, state, q = cupy(), self.state, len(W)
        wide, ids = padded(q), cp.asarray(W, dtype=np.int64)
        v, G = cp.zeros((state.m, wide), dtype=self.real), cp.zeros((state.m, wide), dtype=self.real)
        diagonal, C = cp.empty(q, dtype=self.real), cp.empty(q, dtype=self.real)
        ridge = None if state.ridge is None else cp.empty(q, dtype=self.real)
        y = cp.empty(q, dtype=np.int32)
        kernel = self._state_function("gather")
        point = state.alpha, state.G, state.diagonal, state.ridge, state.y, state.C, state.n
        launch(
            kernel, q, *point, np.int32(state.problem.m), ids, np.int32(q), wide, v, G, diagonal, ridge, y, C
        )
        return Block(ids, q, v, G, diagonal, ridge, y, C)

    def scatter(self, block: Block, before: Any) -> tuple[IntArray, Any]:
        """Take the block's variables over into alpha; the samples that moved, and their changes (k, m)."""
        cp, state = cupy(), self.state
        moved, delta = cp.zeros(block.q, dtype=bool), cp.zeros((state.m, block.q))
        arguments = state.alpha, state.y, state.C, state.n, np.int32(state.problem.m)
        layout = block.W, np.int32(block.q), padded(block.q), before, block.v, moved, delta
        launch(self._state_function("scatter"), block.q, *arguments, *layout)
        at = cp.flatnonzero(moved)
        return block.W[at].get(), cp.ascontiguousarray(delta[:, at].T)

    def _state_function(self, name: str) -> Any:
        return function("state.cu", name, MACHINE=self.machine, REAL=_C_REALS[self.real])

    def run(
        self, block: Block, K: Any, offset: float, eps: float, late: Callable[[], bool], pause: float
    ) -> int:
        """Descend until no violation is above ``eps``; the steps of single samples, roughly.

        After ``pause`` iterations, or as many as a block may take, it ends anyway, and has ``crept``.
        """
        kernel = self._balanced if self.binary else self._samples
        go, at_once = kernel(block, K, offset, eps)
        slower = _SLOWER if self.binary else 1
        done, most = 0, _FIRST_ITERATIONS // slower
        end = int(min(max(_MOST_ITERATIONS, _MOST_SWEEPS * block.q) // slower, max(pause, most)))
        while done < end:
            start, some = time.perf_counter(), min(most, end - done)
            iterations, worst = go(some)
            done += iterations
            if iterations < some or worst <= eps or late():
                break
            seconds = time.perf_counter() - start
            most = int(min(4 * most, max(1, most * _SLICE_SECONDS / max(seconds, 1e-6))))
        self.iterations, self.crept = done, done >= end and worst > eps
        return done * at_once

    def _grid(self, q: int) -> tuple[int, int]:
        """Blocks, and rows of each."""
        blocks = min(multiprocessors(), _MOST_BLOCKS, -(-q // _ROWS))
        rows = -(-q // blocks)
        return blocks, -(-rows // _NEXT) * _NEXT

    def _shared_bytes(self, chunk: int) -> int:
        """Shared memory of a block: its steps, and what its threads add up."""
        numbers = chunk * (_most_blocks() + _next(chunk, self.real) * _THREADS) + 4 * _most_blocks()
        return _FIXED_SHARED + int(np.dtype(self.real).itemsize) * numbers

    def _classes_at_once(self, m: int) -> int:
        chunk = min(_MOST_CLASSES, -(-m // 4) * 4)
        while self._shared_bytes(chunk) > shared_bytes():
            chunk -= 4
        return chunk

    def _samples(self, block: Block, K: Any, offset: float, eps: float) -> tuple[Any, int]:
        cp, m = cupy(), self.state.problem.m
        blocks, rows = self._grid(block.q)
        chunk = self._classes_at_once(m)
        wide = -(-m // chunk) * chunk
        real, value = _C_REALS[self.real], _C_VALUES[K.dtype.name]
        macros = {"MACHINE": self.machine, "REAL": real, "VALUE": value, "CLASSES": m, "CHUNK": chunk}
        unroll = 8 if chunk <= 20 else 4
        kernel = function(
            "descent.cu", "descend", **macros, UNROLL=unroll, THREADS=_THREADS, BLOCKS=_most_blocks()
        )
        shared = self._shared_bytes(chunk)
        kernel.max_dynamic_shared_size_bytes = shared
        steps, own = cp.zeros((2, blocks, wide), self.real), cp.zeros((blocks, m), self.real)
        heads = cp.zeros((2, blocks, 4), self.real)
        most = _most_blocks()
        products = cp.zeros((2, most, most + 4), self.real)  # Q, and four numbers of each row
        arrived, told = cp.zeros(1, np.uint32), cp.zeros(2)
        one = K, K.shape[1], np.float64(offset), block.diagonal, block.ridge, block.y, block.C
        two = np.int32(block.q), padded(block.q), block.v, block.G
        three = np.float64(_MARGIN[self.real]), np.int32(rows), steps, own, heads, products, arrived

        def go(most: int) -> tuple[int, float]:
            arrived.fill(0)
            arguments = *one, *two, *three, np.float64(eps), np.int32(most), told
            kernel((blocks,), (_THREADS,), arguments, shared_mem=shared)
            iterations, worst = told.get()
            return int(iterations), float(worst)

        return go, blocks

    def _balanced(self, block: Block, K: Any, offset: float, eps: float) -> tuple[Any, int]:
        cp, real = cupy(), np.dtype(self.real)
        blocks, rows = self._grid(block.q)
        each = self._each()
        most = 2 * each * _most_blocks()  # samples of a subproblem
        macros = {"REAL": _C_REALS[self.real], "VALUE": _C_VALUES[K.dtype.name], "EACH": each}
        kernel = function("balanced.cu", "descend", **macros, THREADS=_THREADS, BLOCKS=_most_blocks())
        shared = self._balanced_bytes(each)
        kernel.max_dynamic_shared_size_bytes = shared
        picks = cp.zeros((2 * each * blocks, 4), self.real)
        products, arrived = cp.zeros((2, most), self.real), cp.zeros(1, np.uint32)
        told = cp.asarray([0.0, 0.0, np.finfo(np.float32).max, 0.0])  # kernels/balanced.cu, found
        # The offset adds the same to all scores as long as the sum stays: this descent does not see it.
        diagonal = (block.diagonal - offset).astype(real)
        one = K, K.shape[1], diagonal, block.y, block.C, np.int32(block.q), block.v, block.G
        two = np.float64(_MARGIN[self.real]), np.int32(rows), picks, products, arrived

        def go(most: int) -> tuple[int, float]:
            arrived.fill(0)
            arguments = *one, *two, np.float64(eps), np.int32(most), told
            kernel((blocks,), (_THREADS,), arguments, shared_mem=shared)
            iterations, worst = told.get()[:2]
            return int(iterations), float(worst)

        return go, 2 * each * blocks

    def _each(self) -> int:
        """Samples of a block in a subproblem, of either kind (kernels/balanced.cu, EACH)."""
        each = _EACH[self.real]
        while each > 1 and self._balanced_bytes(each) > shared_bytes():
            each //= 2
        return each

    def _balanced_bytes(self, each: int) -> int:
        """Shared memory of a block: its rows of Q, two vectors, and what its threads add up."""
        own, most = 2 * each, 2 * each * _most_blocks()
        numbers = (own + 1) * most + _NEXT * _THREADS
        return _FIXED_SHARED + 4 * most + int(np.dtype(self.real).itemsize) * numbers
