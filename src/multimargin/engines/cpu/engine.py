"""The native engine: C++ kernels and block solvers on threads, the same verbs as the specification."""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

import numpy as np

from ... import _core
from ...inner.base import InnerSolver
from ...inner.block import Block
from ...inner.coordinate_descent import CoordinateDescent
from ...inner.pair_descent import PairDescent
from ...inner.projected_gradient import ProjectedGradient
from ...inner.variable_projection import VariableProjection
from ...kernels import Kernel
from ...run.profile import timed
from ...system.threads import blas_threads
from ...system.typing import Data, FloatArray, IntArray
from ..reference import NumpyEngine
from .kept_block import KeptBlock
from .layouts import Layout
from .scores import Scorer, native_scores, scoring_layouts

# dtype="auto" keeps float64 rows up to this many samples, where the whole kernel matrix is small, and for
# kernels of unbounded values or low rank, which float32 rounding would make indefinite.
FLOAT64_SAMPLES = 2048
# A descent takes at most as much work as all before it, or this: about half a second. Then others have a say.
# Where it is the whole problem and there is no other method, it may take a few times that.
_LEAST_WORK = 1_000_000_000
_WHOLE = 4
# What memory costs that is touched for the first time, in the arithmetic of a kernel value.
_WORK_OF_TOUCHING = 100
# Above this share of all pairs with weight, whole kernel rows are faster than those of a class.
_DENSE = 0.08
# For rows of lazy blocks: at most so many bytes, at least so many rows.
_ROOM_BYTES, _LEAST_ROOM = 48 << 20, 64


def _gradient_options(inner: ProjectedGradient, eps: float) -> _core.GradientOptions:
    return _core.GradientOptions(
        eps=eps,
        max_iter=inner.max_iter,
        rho_min=inner.rho_min,
        rho_max=inner.rho_max,
        memory=inner.memory,
        patience=inner.patience,
        initial_step=inner.initial_step,
    )


class CpuEngine(NumpyEngine):
    """Native kernel rows (float32 unless asked otherwise), gradient, measures and block solvers.

    Kernels without a native form (callables, precomputed) are evaluated in Python; all else is native.
    """

    name: ClassVar[str] = "cpu"

    def _load(self) -> None:
        self._layout: Layout | None = None
        self._kept: KeptBlock | None = None
        self._kept_classes: _core.KeptClasses | None = None
        self._room = np.empty(0, dtype=self._row_dtype())  # for the rows of lazy blocks
        self._moves = np.zeros(self.n, dtype=np.int64)  # in lazy blocks
        self._work_at_finish = 0
        if self.task.kernel.native is not None:
            dtype = "float64" if self._row_dtype() == np.float64 else self.options.dtype
            self._layout = Layout.plan(self.task.kernel, self.task.X, dtype)
            self._spec = self._layout.spec(self.task.offset)
            self._samples = self._layout.samples(self.task.X)
            self._scale = self._layout.scale(self.task.X)

    def _row_dtype(self) -> np.dtype[Any]:
        if self.options.dtype != "auto":
            return np.dtype(self.options.dtype)
        bounded = self.task.kernel.native in ("rbf", "laplacian")
        return np.dtype(np.float32 if bounded and self.n > FLOAT64_SAMPLES else np.float64)

    def running(self) -> AbstractContextManager[Any]:
        return blas_threads(self.options.n_threads if self._layout is None else 1)

    def describe(self) -> dict[str, object]:
        form = "python" if self._layout is None else self._layout.describe()
        return super().describe() | {"kernel_form": form}

    def _measure(self, ids: IntArray | None) -> None:
        _core.measure(
            self.problem.name,
            self.G,
            self.alpha,
            self.task.y,
            self.task.C,
            ids,
            self._psi,
            self._gain,
            self.options.n_threads,
        )

    def _compute_rows(self, ids: IntArray, store: np.ndarray, slots: IntArray) -> None:
        if self._layout is None:
            super()._compute_rows(ids, store, slots)
            return
        X, scale = self._samples, self._scale
        _core.kernel_block(
            self._spec, X, ids, X, 0, self.n, scale, scale, store, slots, self.options.n_threads
        )

    @timed("memory")
    def block(self, W: IntArray, keep: bool = False) -> Block:
        if not keep:
            return super().block(W)
        if self._is_lazy:
            return self._lazy_block(W)
        if (by_class := self._block_by_class(W)) is not None:
            return by_class
        if self._kept is None:
            self._kept = KeptBlock(self.n, self.largest_block(), self.dtype)
        if self._in_store(W):
            return self._block_of(W, self._store)
        kept = self._kept
        new = kept.missing(W)
        if not len(new):
            return self._block_of(kept.members, kept.kernel)
        if len(kept.members) + len(new) <= self.cache.capacity:
            for store, slots, which in self._rows(new):
                kept.extend(new[which], store, slots, self.options.n_threads)
        else:
            everyone = np.concatenate([kept.members, new])
            kept.extend_by(new, self._rows_against(new, everyone), self.options.n_threads)
        every = np.arange(len(kept.members))
        kept.kernel[every, every] = self.diagonal[kept.members]
        return self._block_of(kept.members, kept.kernel)

    @property
    def _is_lazy(self) -> bool:
        """Whether kept blocks are lazy; a small kernel matrix is as soon computed as a whole."""
        native = self.problem.balanced and self._layout is not None
        return self.options.lazy_blocks and native and self.n > FLOAT64_SAMPLES

    def largest_block(self) -> int:
        return self.n if self._is_lazy else super().largest_block()

    def _lazy_block(self, W: IntArray) -> Block:
        """With room for some rows of K: no more than is fast to reach, and no fewer than a solver needs."""
        q, values = len(W), min(self._block_bytes(), _ROOM_BYTES) // self.dtype.itemsize
        rows = min(q, max(_LEAST_ROOM, values // q))
        if len(self._room) < rows * q:
            self._room = np.empty(max(rows * q, values), dtype=self.dtype)
        # In order, so that copies of cached rows read memory forwards.
        return self._block_of(np.sort(W), self._room[: rows * q].reshape(rows, q))._replace(lazy=True)

    def _block_by_class(self, W: IntArray) -> Block | None:
        """For descent class by class: with rows of the store, of all samples where most pairs have weight.

        None where the machine's classes are coupled, or the rows of ``W`` do not fit the store.
        """
        as_they_are = self._ridge is None and self.diagonal.min() > 0
        if not self.options.lazy_blocks or self.problem.coupled or not as_they_are:
            return None
        if len(W) > self.cache.capacity:
            return None
        for _ in self._rows(W[self.cache.peek(W) < 0]):
            pass
        if self.cache.peek(W).min() < 0:
            return None
        if np.count_nonzero(self.alpha) > _DENSE * self.alpha.size:
            W = np.arange(self.n)
        return self._block_of(W, self._store)._replace(slots=self.cache.peek(W))

    def _in_store(self, W: IntArray) -> bool:
        """Whether the row store is K_WW itself: all samples in their order, once all rows are computed."""
        every = np.arange(self.n)
        as_they_are = self._ridge is None and self.diagonal.min() > 0  # the block's diagonal is the kernel's
        if len(W) < self.n or self.cache.capacity < self.n or not as_they_are or (every != W).any():
            return False
        for _ in self._rows(W):
            pass
        return bool((self.cache.peek(W) == every).all())

    def _kernel_block(self, W: IntArray) -> np.ndarray:
        """K_WW from cached rows where there are any, by symmetry too; the rest computed."""
        K = np.empty((len(W), len(W)), dtype=self.dtype)
        slots = self.cache.peek(W)
        known, unknown = np.flatnonzero(slots >= 0), np.flatnonzero(slots < 0)
        for i in known:
            np.take(self._store[slots[i]], W, out=K[i], mode="clip")
        if len(known) and len(unknown):
            K[np.ix_(unknown, known)] = K[np.ix_(known, unknown)].T
        if len(unknown):
            K[np.ix_(unknown, unknown)] = self._rows_against(W[unknown], W[unknown])
        return K

    @timed("kernel rows")
    def _rows_against(self, ids: IntArray, columns: IntArray) -> np.ndarray:
        """Kernel values of ``ids`` against ``columns`` only."""
        if self._layout is None:
            block = self.task.kernel.block(self.task.X, ids, columns) + self.task.offset
            return block.astype(self.dtype, copy=False)
        part = self._samples.take(columns)
        scale = None if self._scale is None else self._scale[columns]
        K = np.empty((len(ids), len(columns)), dtype=self.dtype)
        out = np.arange(len(ids))
        threads = self.options.n_threads
        _core.kernel_block(
            self._spec, self._samples, ids, part, 0, len(columns), self._scale, scale, K, out, threads
        )
        return K

    def _add_to_gradient(self, store: np.ndarray, slots: IntArray, delta: FloatArray) -> None:
        with self._one_blas_thread():
            _core.update_gradient(self.G, store, slots, delta, self.options.n_threads)

    def _one_blas_thread(self) -> AbstractContextManager[Any]:
        """For products inside of our threads; with native kernels, the whole run has one (``running``)."""
        return blas_threads(1) if self._layout is None else nullcontext()

    @timed("inner")
    def solve(self, inner: InnerSolver, block: Block, eps: float) -> int:
        if isinstance(inner, CoordinateDescent):
            return self._descend(inner, block, eps)
        if isinstance(inner, ProjectedGradient) and not self.problem.balanced:
            iterations, _ = _core.projected_gradient(
                self.problem.name,
                block.K,
                block.G,
                block.alpha,
                block.y,
                block.C,
                _gradient_options(inner, eps),
            )
            return int(iterations)
        if isinstance(inner, ProjectedGradient | VariableProjection):
            return self._project(inner, block, eps)
        if isinstance(inner, PairDescent):
            return self._move_pairs(inner, block, eps)
        return super().solve(inner, block, eps)

    def _project(self, inner: ProjectedGradient | VariableProjection, block: Block, eps: float) -> int:
        """Solve a block whose samples are coupled by their sum."""
        low, high = self.problem.bounds(block.y, block.C)
        arrays = block.K, block.G, block.alpha, low, high
        last = inner.projection, self.options.n_threads
        if isinstance(inner, VariableProjection):
            options = _core.ProjectionOptions(
                eps=eps, max_iter=inner.max_iter, rho=inner.rho, period=inner.period, flat=inner.flat
            )
            return int(_core.variable_projection(*arrays, options, *last)[0])
        return int(_core.balanced_gradient(*arrays, _gradient_options(inner, eps), *last)[0])

    def _move_pairs(self, inner: PairDescent, block: Block, eps: float) -> int:
        source: dict[str, Any] = {}
        if block.lazy:
            W = block.W
            kernel = _core.WorkingSetKernel(self._spec, self._samples, W, self._scale, self.options.n_threads)
            source = {"kernel": kernel, "store": self._store, "slots": self.cache.peek(W), "columns": W}
        low, high = self.problem.bounds(block.y, block.C)
        steps, _, work = _core.pair_descent(
            block.K,
            diag=block.diagonal,
            G=block.G,
            alpha=block.alpha,
            low=low,
            high=high,
            eps=eps,
            max_iter=inner.max_iter,
            most_work=self._most_work(block, alone=True),
            **source,
        )
        self.work += work
        return steps

    def _worth_keeping(self, block: Block, moved: IntArray) -> np.ndarray | None:
        """After a lazy block: samples off their bounds, once their repeated rows cost more than memory."""
        if self._layout is None or not block.lazy:
            return None
        ids = block.W[moved]
        self._moves[ids] += 1
        dear = self._moves[ids] * self._layout.work(self.task.X) >= _WORK_OF_TOUCHING
        free = self.problem.group(block.alpha[moved], block.y[moved], block.C[moved]) == 0
        return np.asarray(dear & free)

    def _descend(self, inner: CoordinateDescent, block: Block, eps: float) -> int:
        alpha, G = (block.alpha.copy(), block.G.copy()) if inner.finish else (block.alpha, block.G)

        def refresh() -> None:
            moved = np.flatnonzero((block.alpha != alpha).any(axis=1))
            block.G[:] = G
            block.shift_gradient(moved, block.alpha[moved] - alpha[moved])

        def descend(sweeps: int) -> tuple[int, bool]:
            return self._sweeps(inner, block, eps, sweeps)

        # Thousands of small products: several BLAS threads save little, and on shared cores cost far more.
        with self._one_blas_thread():
            limits = self.work - self._work_at_finish, self.workspace_bytes()
            updates, finished = inner.run(descend, refresh, self.problem, block, eps, self._rng, limits)
        if finished:
            self._work_at_finish = self.work
        return updates

    def _sweeps(self, inner: CoordinateDescent, block: Block, eps: float, sweeps: int) -> tuple[int, bool]:
        if block.slots is not None:
            return self._sweeps_by_class(inner, block, eps, sweeps)
        _, updates, violation, work = _core.coordinate_descent(
            self.problem.name,
            block.K,
            block.diagonal,
            block.G,
            block.alpha,
            block.y,
            block.C,
            _core.DescentOptions(
                eps=eps,
                max_sweeps=sweeps,
                most_work=self._most_work(block, alone=inner.finish is None),
                update=inner.update,
                seed=int(self._rng.integers(2**63)) if len(block.W) > 1 else self.options.seed,
                staged=inner.staged,
                relax=inner.relax,
                width=self._width(inner, block),
                faces=inner.faces,
                n_threads=self.options.n_threads,
            ),
            None if self._kept is None else self._kept.room,
        )
        self.work += int(work)
        return int(updates), violation <= eps

    def _sweeps_by_class(
        self, inner: CoordinateDescent, block: Block, eps: float, sweeps: int
    ) -> tuple[int, bool]:
        assert block.slots is not None
        if self._kept_classes is None:
            self._kept_classes = _core.KeptClasses(self.m, self.largest_block() ** 2)
        _, updates, violation, work = _core.class_descent(
            self._kept_classes,
            block.K,
            block.slots,
            block.W,
            block.diagonal,
            block.G,
            block.alpha,
            block.y,
            block.C,
            _core.DescentOptions(
                eps=eps,
                max_sweeps=sweeps,
                most_work=self._most_work(block, alone=True),
                staged=inner.staged,
                relax=inner.relax,
                width=self._width(inner, block),
                faces=inner.faces,
                n_threads=self.options.n_threads,
            ),
        )
        self.work += int(work)
        return int(updates), violation <= eps

    def _width(self, inner: CoordinateDescent, block: Block) -> float:
        """How far the gradient may be expected to move: which pairs take part."""
        return math.inf if inner.reach is None else inner.reach * self._largest_violation(block)

    def _most_work(self, block: Block, alone: bool) -> int:
        """What one descent may take, and no more than there is time for, at the speed seen so far.

        ``alone`` says that no other method would finish the block.
        """
        whole = block.movable == self.n and alone
        most = max(self.work, _LEAST_WORK) * (_WHOLE if whole else 1)
        if math.isinf(self.until):
            return most
        seconds = self.profile.seconds["inner"]
        speed = self.work / seconds if self.work and seconds > 0 else 2 * _LEAST_WORK
        return min(most, max(1, int((self.until - time.perf_counter()) * speed)))

    def _largest_violation(self, block: Block) -> float:
        psi, gain = np.empty(len(block.W)), np.empty(len(block.W))
        _core.measure(
            self.problem.name, block.G, block.alpha, block.y, block.C, None, psi, gain, self.options.n_threads
        )
        return float(psi.max())

    def _exact_scores(self, ids: IntArray, coef: FloatArray) -> FloatArray:
        if self._layout is None:
            return super()._exact_scores(ids, coef)
        X, out = self.task.X, np.zeros((self.n, coef.shape[1]))
        slots = self.cache.peek(ids)
        if self._layout.exact and self.dtype == np.float64 and slots.min(initial=0) >= 0:
            _core.update_gradient(out, self._store, slots, coef, self.options.n_threads)
        elif self._layout.exact:
            sv_scale = None if self._scale is None else self._scale[ids]
            scorer = Scorer(self._spec, self._samples.take(ids), sv_scale, coef, self.options.n_threads)
            for first, last in scorer.steps(self.n, self._layout.work(X)):
                scorer(self._samples, first, last, self._scale, out[first:last])
        elif len(ids):
            layout = self._layout.in_float64()
            native_scores([layout], self.task.offset, X[ids], coef, X, self.options.n_threads, out)
        return out

    @classmethod
    def scores(cls, kernel: Kernel, support: Any, coef: FloatArray, X: Data, *, n_threads: int) -> FloatArray:
        if kernel.native is None or not len(coef):
            return super().scores(kernel, support, coef, X, n_threads=n_threads)
        dtype = "auto" if X.dtype == support.dtype == np.float32 else "float64"
        out = np.zeros((X.shape[0], coef.shape[1]))
        with blas_threads(1):
            native_scores(scoring_layouts(kernel, support, dtype), 0.0, support, coef, X, n_threads, out)
        return out
