"""The executable specification: every verb in plain NumPy. Other engines must match it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np

from ..inner.base import InnerSolver
from ..inner.block import Block
from ..kernels import Kernel
from ..problems.base import DualRows
from ..run.profile import Profile, timed
from ..system.data import features_per_sample
from ..system.threads import blas_threads
from ..system.typing import Data, FloatArray, IntArray
from ..system.warn import warn_user
from .base import Certificate, Counts, Engine, EngineOptions, Task, Worst
from .cpu.row_cache import RowCache

TINY_DIAGONAL = 1e-12  # K_ii is at least this share of the largest, except where it is zero
_FULL_CHECK_EVERY = 20  # shrinking: checks between two that look at all samples
_CALM_CHECKS = 3  # shrinking: full checks a zero sample must pass to be left out
_LEAST_BLOCK_BYTES = 32 << 20  # work space for a kernel block, however small the cache
_BLOCK_PART = (
    0.4  # of the memory for blocks: the block, and as much to work with it; the rest is for finishers
)
_LEAST_ROWS = 64  # computed in one go where the cache has no place for them
_ROW_FLOPS = 2e10
_SCORE_VALUES = 1 << 22  # kernel values held at a time when scores are computed


class NumpyEngine(Engine):
    """Host arrays, NumPy arithmetic, kernel rows in float64."""

    name: ClassVar[str] = "numpy"

    def __init__(self, task: Task, options: EngineOptions) -> None:
        self.task, self.options, self.problem = task, options, task.problem
        self.work = 0
        self.profile = Profile()
        with self.profile.phase("memory"):
            self._set_up()

    def _set_up(self) -> None:
        task, options = self.task, self.options
        self.n, self.m = len(task.y), task.m
        self.alpha = np.zeros((self.n, self.m)) if task.alpha is None else task.alpha.copy()
        self._rng = np.random.default_rng(options.seed)
        self._rows_computed = 0
        self.violators = self.n
        self._calm, self._checks = np.zeros(self.n, dtype=np.int64), 0
        self._near_ids = np.arange(self.n)
        self._psi, self._gain = np.zeros(self.n), np.zeros(self.n)
        self._load()
        self.dtype = self._row_dtype()
        row_bytes = int((1 - options.block_share) * options.cache_bytes)
        self.cache = RowCache(min(self.n, row_bytes // (self.n * self.dtype.itemsize)), self.n)
        self._store = np.empty((self.cache.capacity, self.n), dtype=self.dtype)
        self._passing = np.empty((0, self.n), dtype=self.dtype)  # rows that are not kept
        self._set_support()
        self._ridge = self.problem.ridge(task.C)
        self.diagonal = self._check_diagonal(self._exact_diagonal())
        if self._ridge is not None:
            self.diagonal += self._ridge
        self.bias = np.zeros(self.m) if task.bias is None else task.bias
        if task.alpha is None:
            self.G = self.bias - self.problem.target(task.y)
            self.dual = 0.0
        else:
            with self.running():
                self._refresh()

    # -- what another engine replaces --------------------------------------------------------------
    def _load(self) -> None:
        """Prepare the samples."""

    def _row_dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def _exact_diagonal(self) -> FloatArray:
        return self.task.kernel.diagonal(self.task.X) + self.task.offset

    def _measure(self, ids: IntArray | None) -> None:
        at = slice(None) if ids is None else ids
        self._psi[at], self._gain[at] = self.problem.measure(self._all_rows().take(at))

    def _all_rows(self) -> DualRows:
        return DualRows(self.alpha, self.G, self.task.y, self.task.C)

    def _compute_rows(self, ids: IntArray, store: np.ndarray, slots: IntArray) -> None:
        store[slots] = self.task.kernel.block(self.task.X, ids) + self.task.offset

    def _kernel_block(self, W: IntArray) -> np.ndarray:
        return self.task.kernel.block(self.task.X, W, W) + self.task.offset

    def _add_to_gradient(self, store: np.ndarray, slots: IntArray, delta: FloatArray) -> None:
        self.G += store[slots].T @ delta

    def _exact_scores(self, ids: IntArray, coef: FloatArray) -> FloatArray:
        """Σ_j K(x_i, x_j) coef_j over ``ids`` for every sample i, in float64."""
        S = np.zeros((self.n, coef.shape[1]))
        step = max(1, _SCORE_VALUES // self.n)
        for first in range(0, len(ids), step):
            part = slice(first, first + step)
            S += (self.task.kernel.block(self.task.X, ids[part]) + self.task.offset).T @ coef[part]
        return S

    @timed("inner")
    def solve(self, inner: InnerSolver, block: Block, eps: float) -> int:
        steps = inner.solve(self.problem, block, eps, self._rng)
        self.work += steps * block.G.size
        return steps

    def running(self) -> AbstractContextManager[Any]:
        return blas_threads(self.options.n_threads)

    def describe(self) -> dict[str, object]:
        return {
            "engine": self.name,
            "n_threads": self.options.n_threads,
            "row_dtype": self.dtype.name,
            "cache_rows": self.cache.capacity,
        }

    # -- look --------------------------------------------------------------------------------------
    @timed("selection")
    def worst(
        self,
        k: int,
        *,
        rank: str = "psi",
        stop: str = "psi",
        above: float = 0.0,
        among: str = "all",
        even: bool = False,
    ) -> Worst:
        if among == "near" and (near := self._near()) is not None:
            found = self._worst_of(near, k, rank, stop, above, even)
            if found.violation > above:
                return found
        ids = {"all": None, "near": None, "support": self.support, "rest": self._rest}[among]
        found = self._worst_of(ids, k, rank, stop, above, even)
        if among == "near" and self.options.shrinking:
            self._calm = np.where((self._psi == 0) & ~self._is_support, self._calm + 1, 0)
            self._near_ids, self._checks = np.flatnonzero(self._calm < _CALM_CHECKS), 0
        return found

    def _worst_of(
        self, ids: IntArray | None, k: int, rank: str, stop: str, above: float, even: bool
    ) -> Worst:
        if ids is not None and not len(ids):
            return Worst(np.empty(0, dtype=np.int64), 0.0, math.nan)
        self._measure(ids)
        at = slice(None) if ids is None else ids
        psi, gain = self._psi[at], self._gain[at]
        closeness = self.problem.closeness
        value = psi / self.problem.kappa if stop == "psi" else closeness(psi, gain, self.task.C[at])
        score = np.where(value > above, psi if rank == "psi" else gain, -1.0)
        self.violators = int(np.count_nonzero(score > 0))
        if even:
            y, m = self.task.y[at], self.problem.m
            tops = [_largest(np.where(y == r, score, -1.0), -(-k // m)) for r in range(m)]
            turns = np.concatenate([np.arange(len(top)) for top in tops])
            top = np.concatenate(tops)[np.argsort(turns, kind="stable")]
        else:
            top = _largest(score, k)
        return Worst(
            top if ids is None else ids[top],
            float(value.max()),
            float(gain.sum()) if ids is None else math.nan,
        )

    def _near(self) -> IntArray | None:
        """Shrinking: the samples worth a look, or None when all are due.

        Samples that were zero and met their condition in the last few full checks wait for the next one.
        """
        self._checks += 1
        if not self.options.shrinking or self._checks % _FULL_CHECK_EVERY == 0:
            return None
        return self._near_ids if len(self._near_ids) < 0.9 * self.n else None

    @property
    def support(self) -> IntArray:
        return self._support

    def _set_support(self) -> None:
        self._is_support = np.asarray(self.alpha.any(axis=1))
        self._list_support()

    def _list_support(self) -> None:
        self._support = np.flatnonzero(self._is_support)
        self._rest = np.flatnonzero(~self._is_support)

    def unsettled(self, ids: IntArray, reach: float) -> IntArray:
        return np.asarray(ids[~self.problem.settled(self._all_rows().take(ids), reach)])

    def groups(self, ids: IntArray) -> np.ndarray:
        return self.problem.group(self.alpha[ids], self.task.y[ids], self.task.C[ids])

    def largest_block(self) -> int:
        return math.isqrt(int(_BLOCK_PART * self._block_bytes()) // self.dtype.itemsize)

    def workspace_bytes(self) -> int:
        return int((1 - 2 * _BLOCK_PART) * self._block_bytes())

    def _block_bytes(self) -> int:
        return max(int(self.options.block_share * self.options.cache_bytes), _LEAST_BLOCK_BYTES)

    def counts(self) -> Counts:
        return Counts(self._rows_computed, self.cache.hits, self.cache.evictions)

    # -- move --------------------------------------------------------------------------------------
    @timed("memory")
    def block(self, W: IntArray, keep: bool = False) -> Block:
        K = np.empty((1, 1), dtype=self.dtype) if len(W) == 1 else self._kernel_block(W)
        np.fill_diagonal(K, self.diagonal[W])
        return self._block_of(W, K)

    def _block_of(self, W: IntArray, K: np.ndarray) -> Block:
        return Block(W, K, self.diagonal[W], self.alpha[W], self.G[W], self.task.y[W], self.task.C[W])

    @timed("gradient")
    def update(self, block: Block) -> bool:
        W = block.W
        delta = block.alpha - self.alpha[W]
        moved = np.flatnonzero(delta.any(axis=1))
        if not len(moved):
            return False
        # G_new - G_old = K_WW delta on W, so the exact change of the dual needs no further product.
        self.dual += 0.5 * float(np.vdot(block.G[moved] + self.G[W[moved]], delta[moved]))
        if block.slots is not None and len(W) == self.n:  # G is complete
            self.G[W] = block.G
        else:
            for store, slots, which in self._rows(W[moved], self._worth_keeping(block, moved)):
                self._add_to_gradient(store, slots, delta[moved[which]])
        if self._ridge is not None:
            self.G[W[moved]] += self._ridge[W[moved], None] * delta[moved]
        self.alpha[W] = block.alpha
        now = block.alpha.any(axis=1)
        if not np.array_equal(now, self._is_support[W]):
            self._is_support[W] = now
            self._list_support()
        return True

    def _worth_keeping(self, block: Block, moved: IntArray) -> np.ndarray | None:
        """Whose rows to keep, as a mask; None is all."""
        return None

    @timed("gradient")
    def place(self, alpha: FloatArray) -> None:
        self.alpha = alpha
        self._set_support()
        self._refresh()

    def sums(self) -> FloatArray:
        return np.asarray(self.alpha.sum(axis=0))

    def shift(self, change: FloatArray) -> None:
        self.bias = self.bias + change
        self.G += change
        self.dual += float(change @ self.sums())

    @timed("selection")
    def centre(self) -> None:
        self.shift(np.array([self.problem.centre(self._all_rows())]))

    @timed("selection")
    def pairs(self, most: int, second_order: bool = False) -> tuple[IntArray, IntArray]:
        rows = self._all_rows()
        up, down = self.problem.pairs(rows, 1 if second_order else most)
        if not second_order or not len(up):
            return up, down
        pair = np.concatenate([up, down])
        return self.problem.gaining_pairs(rows, pair, self._curvatures(pair), most)

    def _curvatures(self, ids: IntArray) -> FloatArray:
        """K_ii + K_jj - 2 K_ij of every sample j with each of ``ids``, at least 1e-12 of the largest."""
        values = [self.diagonal[i] + self.diagonal - 2.0 * self.column(int(i)) for i in ids]
        return np.asarray(np.maximum(values, TINY_DIAGONAL * self.diagonal.max()))

    def move(self, alpha: FloatArray) -> bool:
        before = self.alpha, self.G, self.dual
        self.place(alpha)
        if self.dual < before[2]:
            return True
        self.alpha, self.G, self.dual = before
        self._set_support()
        return False

    @timed("kernel rows")
    def column(self, i: int) -> FloatArray:
        return self._exact_scores(np.array([i]), np.ones((1, 1)))[:, 0]

    def _rows(
        self, ids: IntArray, kept: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, IntArray, IntArray]]:
        """Kernel rows of ``ids`` as (store, slots, positions in ids): the cached, then the computed.

        What does not fit beside the cached ones passes through a work space: if it took their place, a
        working set a little larger than the cache would find nothing there the next time. So does what is
        not worth keeping, by the mask ``kept``: touching memory for the first time takes longer than
        computing a row of most kernels.
        """
        slots = self.cache.lookup(ids)
        found = np.flatnonzero(slots >= 0)
        if len(found):
            yield self._store, slots[found], found
        missing = np.flatnonzero(slots < 0)
        stay = missing if kept is None else missing[kept[missing]]
        pass_by = missing[:0] if kept is None else missing[~kept[missing]]
        room = self.cache.capacity - len(found)
        for which in _chunks(stay[:room], self._rows_at_once()):
            at = self.cache.admit(ids[which])
            self._fill_rows(ids[which], self._store, at)
            yield self._store, at, which
        passing = min(self._rows_at_once(), _LEAST_ROWS)
        pass_by = np.concatenate([stay[room:], pass_by])
        if len(pass_by) and not len(self._passing):
            self._passing = np.empty((passing, self.n), dtype=self.dtype)
        for which in _chunks(pass_by, passing):
            at = np.arange(len(which), dtype=np.int64)
            self._fill_rows(ids[which], self._passing, at)
            yield self._passing, at, which

    @timed("kernel rows")
    def _fill_rows(self, ids: IntArray, store: np.ndarray, slots: IntArray) -> None:
        self._compute_rows(ids, store, slots)
        self._rows_computed += len(ids)

    def _rows_at_once(self) -> int:
        """Rows computed in one go: short enough that Ctrl-C is heard within a second."""
        return max(1, int(_ROW_FLOPS / (self.n * (features_per_sample(self.task.X) + 20))))

    # -- certify -----------------------------------------------------------------------------------
    def _refresh(self) -> None:
        """Recompute G and the dual from alpha."""
        S = self._exact_scores(self.support, self.alpha[self.support])
        if not np.isfinite(S).all():
            raise ValueError(
                "The kernel gave NaN or infinite values. Scale the features or change its parameters."
            )
        y, C = self.task.y, self.task.C
        self.G = self.problem.gradient(S, self.alpha, y, C) + self.bias
        self.dual = self.problem.dual(self.alpha, S, y, C) + float(self.bias @ self.sums())

    @timed("proof")
    def prove(self) -> Certificate:
        self._refresh()
        return self.certificate()

    @timed("proof")
    def certificate(self) -> Certificate:
        self._measure(None)
        y, C = self.task.y, self.task.C
        S = self.problem.scores(self.G - self.bias, self.alpha, y, C)
        return Certificate(
            violation=float(self._psi.max()) / self.problem.kappa,
            gain=float(self.problem.closeness(self._psi, self._gain, C).max()),
            primal=self.problem.primal(self.alpha, S, self.bias, y, C),
            dual=self.dual,
            gap=float(self._gain.sum()),
        )

    def result(self) -> tuple[FloatArray, FloatArray]:
        return self.alpha, self.problem.scores(self.G - self.bias, self.alpha, self.task.y, self.task.C)

    def _check_diagonal(self, diagonal: FloatArray) -> FloatArray:
        if not np.isfinite(diagonal).all():
            raise ValueError(
                "The kernel overflows on some samples (K(x, x) is not finite). Scale the features or "
                "change the kernel's parameters."
            )
        if (diagonal < 0).any():
            warn_user(
                "The kernel is not positive semidefinite: K(x, x) is negative for some samples. The solver "
                "finds a stationary point, and the duality gap proves nothing.",
                UserWarning,
            )
        least = TINY_DIAGONAL * diagonal.max(initial=0.0)
        return np.where(diagonal > 0, np.maximum(diagonal, least), 0.0)

    # -- predict -----------------------------------------------------------------------------------
    @classmethod
    def scores(cls, kernel: Kernel, support: Any, coef: FloatArray, X: Data, *, n_threads: int) -> FloatArray:
        out = np.zeros((X.shape[0], coef.shape[1]))
        if not len(coef):
            return out
        step = max(1, _SCORE_VALUES // max(1, len(coef)))
        with blas_threads(n_threads):
            for first in range(0, X.shape[0], step):
                out[first : first + step] = kernel.against(X[first : first + step], support) @ coef
        return out


def _largest(score: FloatArray, k: int) -> IntArray:
    """Positions of the ``k`` largest positive scores, largest first."""
    if k == 1:
        top = np.array([np.argmax(score)])
        return top if score[top[0]] > 0 else top[:0]
    top = np.argpartition(-score, k - 1)[:k] if k < len(score) else np.arange(len(score))
    top = top[score[top] > 0]
    order = np.lexsort((top, -score[top]))
    return np.asarray(top[order], dtype=np.int64)


def _chunks(ids: IntArray, size: int) -> Iterator[IntArray]:
    return (ids[first : first + size] for first in range(0, len(ids), size))
