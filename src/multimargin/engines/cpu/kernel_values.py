"""Where kernel values come from: native code, or Python for callables and precomputed matrices.

Values are those of the task's kernel, with its offset added.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ... import _core
from ...inner import work
from ...system.data import features_per_sample
from ...system.memory import WHOLE_SAMPLES
from ...system.threads import blas_threads
from ...system.typing import FloatArray, IntArray
from ..base import EngineOptions, Task
from .layouts import Layout
from .scores import LaidOutScorer, SupportScorer

_VALUES_AT_ONCE = 1 << 22  # kernel values that Python holds at a time


def row_dtype(task: Task, options: EngineOptions) -> np.dtype[Any]:
    """The precision of kernel rows.

    "auto" keeps float64 rows if the whole kernel matrix is small, and for kernels of unbounded values or low
    rank, which float32 rounding would make indefinite.
    """
    if options.dtype != "auto":
        return np.dtype(options.dtype)
    bounded = task.kernel.native in ("rbf", "laplacian")
    return np.dtype(np.float32 if bounded and len(task.y) > WHOLE_SAMPLES else np.float64)


class KernelValues(ABC):
    """The kernel between training samples."""

    form: str  # for the trace
    exact: bool  # whether values are as good as float64 ones
    blas_threads: int  # that products inside of it may use
    temporary_bytes: int = 0  # per kernel value while rows are computed
    rows_in_python: int  # that may be computed in one go; set from the memory budget

    def __init__(self, task: Task, options: EngineOptions) -> None:
        self.task, self.n_threads = task, options.n_threads
        self.n, self.dtype = len(task.y), row_dtype(task, options)

    def one_blas_thread(self) -> AbstractContextManager[Any]:
        """For products inside of our threads; with native values, the whole run has one BLAS thread."""
        return nullcontext() if self.blas_threads == 1 else blas_threads(1)

    @property
    def whole(self) -> bool:
        """Whether all rows are computed at the start, in one call."""
        return False

    def diagonal(self) -> FloatArray:
        """K_ii without the offset, in float64."""
        return self.task.kernel.diagonal(self.task.X)

    @property
    @abstractmethod
    def rows_at_once(self) -> int:
        """Rows computed in one call: short enough that Ctrl-C is heard within a second."""

    @abstractmethod
    def fill(self, ids: IntArray, store: np.ndarray, slots: IntArray) -> None:
        """The rows of ``ids`` against all samples, into ``store[slots]``."""

    @abstractmethod
    def between(self, ids: IntArray, columns: IntArray) -> np.ndarray:
        """The rows of ``ids`` against ``columns`` only."""

    @abstractmethod
    def scores(self, ids: IntArray, coef: FloatArray) -> FloatArray:
        """Σ_j K(x_i, x_j) coef_j over ``ids`` for every sample i, in float64."""


class PythonValues(KernelValues):
    """A callable or a precomputed matrix. What they return are the values by definition, exact in float64."""

    form = "python"
    temporary_bytes = 16  # the kernel's float64 values, and these with the offset

    def __init__(self, task: Task, options: EngineOptions) -> None:
        super().__init__(task, options)
        self.blas_threads = options.n_threads
        self.exact = self.dtype == np.float64

    @property
    def whole(self) -> bool:
        """A call takes longer than many values, so a callable is asked for a small matrix once."""
        return not self.task.kernel.pairwise and self.n <= WHOLE_SAMPLES

    @property
    def rows_at_once(self) -> int:
        return min(max(1, _VALUES_AT_ONCE // self.n), self.rows_in_python)

    def fill(self, ids: IntArray, store: np.ndarray, slots: IntArray) -> None:
        kernel, X = self.task.kernel, self.task.X
        every = self.whole and len(ids) == self.n
        store[slots] = (kernel.whole(X) if every else kernel.block(X, ids)) + self.task.offset

    def between(self, ids: IntArray, columns: IntArray) -> np.ndarray:
        block = self.task.kernel.block(self.task.X, ids, columns) + self.task.offset
        return np.ascontiguousarray(block, dtype=self.dtype)

    def scores(self, ids: IntArray, coef: FloatArray) -> FloatArray:
        S = np.zeros((self.n, coef.shape[1]))
        step = self.rows_at_once
        for first in range(0, len(ids), step):
            part = slice(first, first + step)
            S += (self.task.kernel.block(self.task.X, ids[part]) + self.task.offset).T @ coef[part]
        return S


class NativeValues(KernelValues):
    """A kernel with a native form, on samples laid out for it."""

    blas_threads = 1  # products run inside of our own threads

    def __init__(self, task: Task, options: EngineOptions) -> None:
        super().__init__(task, options)
        dtype = "float64" if self.dtype == np.float64 else options.dtype
        self._layout = Layout.plan(task.kernel, task.X, dtype, task.team)
        self._features = features_per_sample(task.X, task.team)
        self._spec = self._layout.spec(task.offset)
        self._samples = self._layout.samples(task.X)
        self.form, self.exact = self._layout.describe(), self._layout.exact

    @property
    def work(self) -> float:
        """What a value costs, in multiplications."""
        return self._layout.work(self._features)

    @property
    def rows_at_once(self) -> int:
        return max(1, int(work.KERNEL_ROWS_CALL / (self.n * (self._features + work.KERNEL_VALUE))))

    def fill(self, ids: IntArray, store: np.ndarray, slots: IntArray) -> None:
        X = self._samples
        _core.kernel_block(self._spec, X, ids, X, 0, self.n, store, slots, self.n_threads)

    def between(self, ids: IntArray, columns: IntArray) -> np.ndarray:
        X, part = self._samples, self._samples.take(columns)
        K, out = np.empty((len(ids), len(columns)), dtype=self.dtype), np.arange(len(ids))
        _core.kernel_block(self._spec, X, ids, part, 0, len(columns), K, out, self.n_threads)
        return K

    def row_by_row(self, ids: IntArray) -> _core.WorkingSetKernel:
        """The kernel between ``ids``, for native solvers that compute the rows they need."""
        return _core.WorkingSetKernel(self._spec, self._samples.take(ids), self.n_threads)

    def scores(self, ids: IntArray, coef: FloatArray) -> FloatArray:
        X, out = self.task.X, np.zeros((self.n, coef.shape[1]))
        if self.exact:
            scorer = SupportScorer(self._spec, self._samples.take(ids), np.ascontiguousarray(coef))
            for first, last in scorer.steps(self.n, self.work):
                scorer(self._samples, first, last, out[first:last], self.n_threads)
        elif len(ids):
            layout = self._layout.in_float64()
            LaidOutScorer([layout], self.task.offset, X[ids], coef)(X, self.n_threads, out)
        return out


def kernel_values(task: Task, options: EngineOptions) -> KernelValues:
    """Native values if the kernel has a native form, else Python's."""
    return (PythonValues if task.kernel.native is None else NativeValues)(task, options)
