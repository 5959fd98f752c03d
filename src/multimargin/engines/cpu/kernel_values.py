"""Where kernel values come from: native code, or Python for callables and precomputed matrices.

Values are those of the task's kernel, with its offset added. Samples are named by their ids. A row has one
value per sample that this process holds. On a team, samples must be guests before their values are asked for.
"""

from __future__ import annotations

import copy
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np

from ... import _core
from ...inner import work
from ...system.data import features_per_sample
from ...system.fixed_point import FIXED_POINT
from ...system.memory import WHOLE_SAMPLES
from ...system.shard import Shard
from ...system.threads import blas_threads
from ...system.typing import Data, FloatArray, IntArray
from ..base import EngineOptions, Task
from ..diagonal import FLOAT32_LARGEST
from .guests import Guests
from .layouts import Layout
from .scores import LaidOutScorer, SupportScorer

LARGE_COST = 100.0  # up to here fixed-point values are used, and float32 sums
FIXED_POINT_TOL = 1e-4  # down to here kernel rows are fixed-point numbers
_VALUES_AT_ONCE = 1 << 22  # kernel values that Python holds at a time
# Scores of samples against themselves use the symmetry of the kernel, from so many samples on, and if the
# sums of all threads have no more values than this.
_LEAST_SQUARE, _MOST_SUMS = 512, 1 << 23

Table = Callable[[IntArray, int], np.ndarray]


def between_0_and_1(task: Task) -> bool:
    """Whether all kernel values are between 0 and 1."""
    return task.kernel.native in ("rbf", "laplacian") and task.offset == 0


def fixed_point_serves(task: Task, largest_cost: float) -> bool:
    """Whether kernel values may be 16-bit fixed-point numbers: they must be between 0 and 1.

    Errors of a block do not add up from round to round, and those of kernel rows end with a proof. But with
    large costs a round would gain little.
    """
    return between_0_and_1(task) and largest_cost <= LARGE_COST


def value_dtype(task: Task, options: EngineOptions, n: int) -> np.dtype[Any]:
    """The precision of kernel values, of ``n`` samples in all.

    "auto" keeps float64 rows if the whole kernel matrix is small, and for kernels of unbounded values or low
    rank, which float32 rounding would make indefinite. The ridge of a machine with tiny costs is out of the
    range of float32.
    """
    if options.dtype != "auto":
        return np.dtype(options.dtype)
    bounded = task.kernel.native in ("rbf", "laplacian")
    ridge = task.problem.ridge(task.C)
    holds = task.team.max(0.0 if ridge is None else float(ridge.max(initial=0.0))) < FLOAT32_LARGEST
    return np.dtype(np.float32 if bounded and holds and n > WHOLE_SAMPLES else np.float64)


class KernelValues(ABC):
    """The kernel between training samples and those that this process holds."""

    form: str  # for the trace
    exact: bool  # whether values are as good as float64 ones
    blas_threads: int  # that products inside of it may use
    temporary_bytes: int = 0  # per kernel value while rows are computed
    rows_in_python: int  # that may be computed in one go; set from the memory budget

    def __init__(
        self, task: Task, options: EngineOptions, shard: Shard, guests: Guests | None = None
    ) -> None:
        self.task, self.shard, self.guests, self.n_threads = task, shard, guests, options.n_threads
        self.n, self.width = shard.n, shard.count  # samples of all, and of this process
        self.dtype = value_dtype(task, options, self.n)
        self.row_dtype = self.dtype  # if they are kept
        self.may_be_coarse = self._rows_may_be_fixed_point(options)
        largest_cost = task.team.max(float(task.C.max(initial=0.0)))
        if self.may_be_coarse and fixed_point_serves(task, largest_cost):
            self.row_dtype = FIXED_POINT

    def _rows_may_be_fixed_point(self, options: EngineOptions) -> bool:
        """Only coordinate descent over a growing set takes its blocks from rows of fixed-point numbers."""
        inner, task = options.inner, self.task
        able = inner is not None and options.lazy_blocks and task.problem.name in inner.fixed_point
        single = options.dtype == "auto" and self.dtype == np.float32
        return able and single and options.tol >= FIXED_POINT_TOL and between_0_and_1(task)

    def coarse(self) -> Self:
        """The same values, kept as fixed-point numbers."""
        twin = copy.copy(self)
        twin.row_dtype = FIXED_POINT
        return twin

    def on_threads(self, n_threads: int) -> Self:
        """The same values, computed on so many threads."""
        twin = copy.copy(self)
        twin.n_threads = n_threads
        return twin

    def one_blas_thread(self) -> AbstractContextManager[Any]:
        """For products inside of our threads; with native values, the whole run has one BLAS thread."""
        return nullcontext() if self.blas_threads == 1 else blas_threads(1)

    @property
    def whole(self) -> bool:
        """Whether all rows are computed at the start, in one call."""
        return False

    def compact(self, X: Data) -> Data:
        """Rows of X in the form in which guests are kept and sent."""
        return X

    def restored(self, rows: Data) -> Data:
        """Rows of X from compact ones, perhaps not to the last bit."""
        return rows

    def diagonal(self) -> FloatArray:
        """K_ii of the samples held here without the offset, in float64."""
        return self.task.team.attempt(lambda: self.task.kernel.own_diagonal(self.task.X, self.shard.first))

    @property
    @abstractmethod
    def rows_at_once(self) -> int:
        """Rows computed in one call: short enough that Ctrl-C is heard within a second."""

    @abstractmethod
    def fill(self, ids: IntArray, store: np.ndarray, slots: IntArray) -> None:
        """The rows of ``ids``, into ``store[slots]``."""

    @abstractmethod
    def against(self, ids: IntArray, here: IntArray) -> np.ndarray:
        """Values of ``ids`` against some samples of this process, given by their numbers here."""

    @abstractmethod
    def table(self, columns: IntArray) -> Table:
        """A function that gives the values of some ids against the first so many of ``columns``."""

    @abstractmethod
    def scores(self, ids: IntArray, coef: FloatArray, here: IntArray | None = None) -> FloatArray:
        """Σ_j K(x_i, x_j) coef_j over ``ids`` for samples i of this process, in float64.

        ``here`` are the numbers of these samples; all if None.
        """


class PythonValues(KernelValues):
    """A callable or a precomputed matrix. What they return are the values by definition, exact in float64."""

    form = "python"
    temporary_bytes = 16  # the kernel's float64 values, and these with the offset

    def __init__(
        self, task: Task, options: EngineOptions, shard: Shard, guests: Guests | None = None
    ) -> None:
        super().__init__(task, options, shard, guests)
        self.blas_threads = options.n_threads
        self.exact = self.dtype == np.float64

    @property
    def whole(self) -> bool:
        """A call takes longer than many values, so a callable is asked for a small matrix once."""
        return not self.task.kernel.pairwise and self.n <= WHOLE_SAMPLES and self.guests is None

    @property
    def rows_at_once(self) -> int:
        return min(max(1, _VALUES_AT_ONCE // self.shard.largest), self.rows_in_python)

    def _values(self, ids: IntArray, here: IntArray | None = None) -> FloatArray:
        """Values of ``ids`` against samples of this process, all of them if None."""
        kernel, X = self.task.kernel, self.task.X
        if self.guests is None:
            values = kernel.block(X, ids, here)
        elif kernel.pairwise:
            values = kernel.against(X if here is None else X[here], ids).T
        else:
            values = kernel.between(self.guests.rows(ids), X if here is None else X[here])
        return values + self.task.offset

    def fill(self, ids: IntArray, store: np.ndarray, slots: IntArray) -> None:
        every = self.whole and len(ids) == self.n
        store[slots] = self.task.kernel.whole(self.task.X) + self.task.offset if every else self._values(ids)

    def against(self, ids: IntArray, here: IntArray) -> np.ndarray:
        return np.ascontiguousarray(self._values(ids, here), dtype=self.dtype)

    def table(self, columns: IntArray) -> Table:
        guests = self.guests
        if guests is None:
            return lambda ids, count: self.against(ids, columns[:count])
        rows, kernel, offset = guests.rows(columns), self.task.kernel, self.task.offset

        def between(ids: IntArray, count: int) -> np.ndarray:
            values = kernel.between(guests.rows(ids), rows[:count]) + offset
            return np.ascontiguousarray(values, dtype=self.dtype)

        return between

    def scores(self, ids: IntArray, coef: FloatArray, here: IntArray | None = None) -> FloatArray:
        S = np.zeros((self.width if here is None else len(here), coef.shape[1]))
        step = self.rows_at_once
        for first in range(0, len(ids), step):
            part = slice(first, first + step)
            S += self._values(ids[part], here).T @ coef[part]
        return S


class NativeValues(KernelValues):
    """A kernel with a native form, on samples laid out for it."""

    blas_threads = 1  # products run inside of our own threads

    def __init__(
        self, task: Task, options: EngineOptions, shard: Shard, guests: Guests | None = None
    ) -> None:
        super().__init__(task, options, shard, guests)
        dtype = "float64" if self.dtype == np.float64 else options.dtype
        self._layout = Layout.plan(task.kernel, task.X, dtype, task.team)
        self._features = features_per_sample(task.X, task.team)
        self._spec = self._layout.spec(task.offset)
        self._samples = self._layout.samples(task.X)
        self.form, self.exact = self._layout.describe(), self._layout.exact

    def compact(self, X: Data) -> Data:
        return self._layout.compact(X)

    def restored(self, rows: Data) -> Data:
        return self._layout.restored(rows, self.task.X.dtype)

    @property
    def work(self) -> float:
        """What a value costs, in multiplications."""
        return self._layout.work(self._features)

    @property
    def rounding(self) -> float:
        """A bound of the error of values in [0, 1] by the rounding of distances, in units of 2⁻²⁴."""
        return self._layout.rounding

    @property
    def rows_at_once(self) -> int:
        values = self.shard.largest * (self._features + work.KERNEL_VALUE)
        return max(1, int(work.KERNEL_ROWS_CALL / values))

    def _named(self, ids: IntArray) -> tuple[_core.Samples, IntArray]:
        """Samples in native form, and the rows of ``ids`` among them."""
        return (self._samples, ids) if self.guests is None else (self._only(ids), np.arange(len(ids)))

    def _only(self, ids: IntArray) -> _core.Samples:
        """The samples ``ids`` in native form."""
        guests = self.guests
        return self._samples.take(ids) if guests is None else self._layout.of_compact(guests.rows(ids))

    def _block(self, ids: IntArray, columns: _core.Samples, count: int) -> np.ndarray:
        """The values of ``ids`` against the first ``count`` of ``columns``."""
        X, rows = self._named(ids)
        K, out = np.empty((len(ids), count), dtype=self.dtype), np.arange(len(ids))
        _core.kernel_block(self._spec, X, rows, columns, 0, count, K, out, self.n_threads)
        return K

    def fill(self, ids: IntArray, store: np.ndarray, slots: IntArray) -> None:
        X, rows = self._named(ids)
        _core.kernel_block(self._spec, X, rows, self._samples, 0, self.width, store, slots, self.n_threads)

    def against(self, ids: IntArray, here: IntArray) -> np.ndarray:
        return self._block(ids, self._samples.take(here), len(here))

    def table(self, columns: IntArray) -> Table:
        samples = self._only(columns)
        return lambda ids, count: self._block(ids, samples, count)

    def row_by_row(self, ids: IntArray) -> _core.WorkingSetKernel:
        """The kernel between ``ids``, for native solvers that compute the rows they need."""
        return _core.WorkingSetKernel(self._spec, self._only(ids), self.n_threads)

    def gradient(
        self,
        ids: IntArray,
        coef: FloatArray,
        here: IntArray,
        base: FloatArray,
        G: FloatArray,
        steady: bool,
    ) -> None:
        """G[j] = base[j] + Σ_i K(x_i, x_j) coef_i over ``ids``, for j in ``here``; no value is stored.

        Values are float32 where the layout allows: good enough to find the next step. Sums are mostly float32
        too, unless they are to be ``steady``.
        """
        sv, coef = self._only(ids), np.ascontiguousarray(coef)
        step = max(1, int(self.n_threads * work.SCORES_CALL / (max(1, len(ids)) * self.work)))
        for first in range(0, len(here), step):
            part = here[first : first + step]
            x = self._samples.take(part)
            _core.kernel_gradient(self._spec, sv, coef, x, part, base, G, steady, self.n_threads)

    def gradient_of_pairs(
        self,
        alpha: FloatArray,
        start: FloatArray,
        due: np.ndarray,
        values: float,
        base: FloatArray,
        G: FloatArray,
        steady: bool,
    ) -> None:
        """G[j, r] = base[j, r] + Σ_i K(x_i, x_j) (α - start)_ir for the entries ``due`` of G, a mask.

        Each class computes its own kernel values, ``values`` in all.
        """
        calls = math.ceil(values * self.work / (self.n_threads * work.SCORES_CALL)) or 1
        edges, samples = np.linspace(0, len(G), calls + 1).astype(int).tolist(), self._samples
        for begin, end in itertools.pairwise(edges):
            rows = begin, end, base, G
            _core.pair_gradient(self._spec, samples, alpha, start, due, *rows, steady, self.n_threads)

    def scores(self, ids: IntArray, coef: FloatArray, here: IntArray | None = None) -> FloatArray:
        out = np.zeros((self.width if here is None else len(here), coef.shape[1]))
        if not len(out) or not len(ids):
            return out
        scorer = self._scorer(ids, np.ascontiguousarray(coef))
        own = self._own_places(ids, coef.shape[1], here)
        if own is None:
            self._score(scorer, here, out)
        else:
            others = np.delete(np.arange(len(out)), own)
            rest = np.zeros((len(others), coef.shape[1]))
            self._score(scorer, others if here is None else here[others], rest)
            out[own], out[others] = scorer.among(self.n_threads), rest
        return out

    def _own_places(self, ids: IntArray, m: int, here: IntArray | None) -> IntArray | None:
        """Where ``ids`` are in ``here``, if all are there and their scores use the symmetry of the kernel."""
        sums = self.n_threads * len(ids) * m
        if self.guests is not None or len(ids) < _LEAST_SQUARE or sums > _MOST_SUMS:
            return None
        if here is None:
            return ids
        at = np.minimum(np.searchsorted(here, ids), len(here) - 1)
        return at if np.array_equal(here[at], ids) else None

    def _scorer(self, ids: IntArray, coef: FloatArray) -> SupportScorer | LaidOutScorer:
        """Σ_j K(x, x_j) coef_j over ``ids`` in float64."""
        if self.exact:
            return SupportScorer(self._spec, self._only(ids), coef, self.work)
        # Guests are kept as rows of X.
        rows = self.task.X[ids] if self.guests is None else self.guests.rows(ids)
        return LaidOutScorer([self._layout.in_float64()], self.task.offset, rows, coef)

    def _score(self, scorer: SupportScorer | LaidOutScorer, here: IntArray | None, out: FloatArray) -> None:
        """The scores of the samples ``here``, of all if None, into ``out``."""
        if isinstance(scorer, LaidOutScorer):
            scorer(self.task.X if here is None else self.task.X[here], self.n_threads, out)
            return
        samples = self._samples if here is None else self._samples.take(here)
        for first, last in scorer.steps(len(out), self.n_threads):
            scorer(samples, first, last, out[first:last], self.n_threads)


def kernel_values(
    task: Task, options: EngineOptions, shard: Shard, guests: Guests | None = None
) -> KernelValues:
    """Native values if the kernel has a native form, else Python's."""
    return (PythonValues if task.kernel.native is None else NativeValues)(task, options, shard, guests)
