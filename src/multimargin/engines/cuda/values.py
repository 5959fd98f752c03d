"""Kernel values on the device: blocks of a working set, and scores that store no kernel value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...system.device_data import DeviceData
from ...system.typing import IntArray
from ..base import Task
from .device import cupy, free_bytes, function
from .resident import Resident, resident
from .samples import DeviceSamples, Form, Rows, padded

_TILE_BYTES = 1 << 30  # of products at a time
_COLUMNS = 1 << 16  # samples scored at a time
_SLICES = 8  # of the rows of a tile, summed by themselves
_MOST_CLASSES = 32  # scored at a time
_C_VALUES = {"uint16": "unsigned short", "float32": "float", "float64": "double"}
_HOST_VALUES = 1 << 22  # kernel values that Python computes at a time
_MATRIX_ROWS = 1024  # of a matrix of kernel values, read at a time
EVERYONE = slice(None)
_MATRIX_SHARE = 0.3  # of the free memory of the device, for a matrix of kernel values


class KernelValues(ABC):
    """The kernel of a task."""

    form: str

    @abstractmethod
    def block(self, W: IntArray, dtype: np.dtype[Any]) -> Any:
        """K_WW without the offset: (q, padded(q)) values; what is behind column q means nothing."""

    @abstractmethod
    def scores(self, ids: IntArray, coef: Any, part: slice = EVERYONE) -> Any:
        """Σ_j (K + offset)(x_i, x_j) coef_j over ``ids``, for the samples i of ``part``, in float64: (m, n).

        ``part`` begins at a multiple of 16.
        """


def part_of(K: Any, W: IntArray, dtype: np.dtype[Any]) -> Any:
    """The rows and columns ``W`` of a matrix, as a block."""
    cp, q = cupy(), len(W)
    block, at = cp.zeros((q, padded(q)), dtype=dtype), cp.asarray(W)
    for first in range(0, q, _MATRIX_ROWS):
        part = slice(first, first + _MATRIX_ROWS)
        block[part, :q] = K[at[part]][:, at]
    return block


class MatrixValues(KernelValues):
    """A dense matrix of kernel values that is on the device."""

    form = "matrix"

    def __init__(self, K: Resident, offset: float) -> None:
        self.K, self.offset = K.values, offset

    def block(self, W: IntArray, dtype: np.dtype[Any]) -> Any:
        return part_of(self.K, W, dtype)

    def scores(self, ids: IntArray, coef: Any, part: slice = EVERYONE) -> Any:
        cp = cupy()
        S = cp.zeros((coef.shape[1], len(range(*part.indices(self.K.shape[0])))))
        for first in range(0, len(ids), _MATRIX_ROWS):
            some = slice(first, first + _MATRIX_ROWS)
            S += coef[some].T @ (self.K[cp.asarray(ids[some]), part].astype(np.float64) + self.offset)
        return S


class HostValues(KernelValues):
    """Callables, and matrices that are sparse or too large for the device: evaluated on the host."""

    form = "python"

    def __init__(self, task: Task) -> None:
        self.task = task

    def block(self, W: IntArray, dtype: np.dtype[Any]) -> Any:
        cp, q = cupy(), len(W)
        K = cp.zeros((q, padded(q)), dtype=dtype)
        step = max(1, _HOST_VALUES // q)
        for first in range(0, q, step):
            part = W[first : first + step]
            values = self.task.kernel.block(self.task.X, part, W)
            K[first : first + len(part), :q] = cp.asarray(np.ascontiguousarray(values, dtype=dtype))
        return K

    def scores(self, ids: IntArray, coef: Any, part: slice = EVERYONE) -> Any:
        cp, columns = cupy(), np.arange(len(self.task.y))[part]
        S = cp.zeros((coef.shape[1], len(columns)))
        step = max(1, _HOST_VALUES // max(1, len(columns)))
        for first in range(0, len(ids) if len(columns) else 0, step):
            some = slice(first, first + step)
            values = self.task.kernel.block(self.task.X, ids[some], columns)
            S += coef[some].T @ cp.asarray(values + self.task.offset)
        return S


class Tiles:
    """Kernel values between samples of one form, tile by tile."""

    def __init__(self, form: Form, offset: float = 0.0) -> None:
        self.form, self.offset = form, offset
        gamma, coef0, degree = (getattr(form.kernel, name, 0) for name in ("gamma", "coef0", "degree"))
        self._spec = np.float64(gamma), np.float64(coef0), np.float64(form.worth), np.int32(degree)

    def _function(self, name: str, value: str = "double", chunk: int = 4) -> Any:
        native = str(self.form.kernel.native).upper()
        kind = "DISTANCE" if native == "RBF" and self.form.by_differences else native
        product = "int" if self.form.tile_dtype == np.int32 else "double"
        return function("values.cu", name, KERNEL=kind, PRODUCT=product, VALUE=value, CHUNK=chunk)

    @staticmethod
    def _sides(A: Rows, B: Rows) -> tuple[Any, ...]:
        return A.norms, B.norms, A.factors, B.factors

    def block(self, samples: DeviceSamples, rows: Rows, dtype: np.dtype[Any]) -> Any:
        """The kernel among ``rows``, without the offset."""
        cp, q, form = cupy(), rows.size, self.form
        wide = padded(q)
        K = cp.empty((q, wide), dtype=dtype)
        step = min(wide, max(16, _TILE_BYTES // (wide * form.tile_dtype.itemsize) // 16 * 16))
        tile = cp.empty((step, wide), dtype=form.tile_dtype)
        store = self._function("store", _C_VALUES[np.dtype(dtype).name])
        for first in range(0, q, step):
            part = samples.part(rows, first, min(q, first + step))
            products = tile[: padded(part.size)]
            samples.tile(part, rows, products)
            grid = -(-q // 1024), min(part.size, 512)
            shape = wide, np.int32(part.size), np.int32(q)
            store(grid, (256,), (products, *shape, *self._sides(part, rows), *self._spec, K[first:], wide))
        return K

    def scores(
        self, support: DeviceSamples, rows: Rows, coef: Any, samples: DeviceSamples, part: slice = EVERYONE
    ) -> Any:
        """Σ_i (K + offset)(A_i, x_j) coef_i over ``rows`` A of ``support``, for ``samples`` x: (m, n)."""
        start, end, _ = part.indices(samples.n)
        cp, m, n, itemsize = cupy(), coef.shape[1], end - start, self.form.tile_dtype.itemsize
        S = cp.zeros((m, n))
        if not rows.size or not n:
            return S
        wide = min(padded(n), _COLUMNS)
        step = min(padded(rows.size), max(16, _TILE_BYTES // (wide * itemsize) // 16 * 16))
        tile = cp.empty(step * wide, dtype=self.form.tile_dtype)
        chunk = min(_MOST_CLASSES, -(-m // 2) * 2)
        partial = cp.empty(_SLICES * chunk * wide)
        for left in range(0, n, wide):
            columns = samples.rows(slice(start + left, start + min(n, left + wide)))
            for first in range(0, rows.size, step):
                some = support.part(rows, first, min(rows.size, first + step))
                shape = padded(some.size), padded(columns.size)
                products = tile[: shape[0] * shape[1]].reshape(shape)
                samples.tile(some, columns, products)
                self._add(products, some, columns, coef[first : first + some.size], partial, S[:, left:])
        return S

    def _add(self, products: Any, A: Rows, B: Rows, coef: Any, partial: Any, S: Any) -> None:
        """S[r, j] += Σ_i K(A_i, B_j) coef[i, r]."""
        m = coef.shape[1]
        chunk = min(_MOST_CLASSES, -(-m // 2) * 2)
        score = self._function("score", chunk=chunk)
        sums = partial[: _SLICES * chunk * B.size].reshape(_SLICES, chunk, B.size)
        for first in range(0, m, chunk):
            shape = products.shape[1], np.int32(A.size), np.int32(B.size)
            scalars = *self._spec, np.float64(self.offset)
            classes = coef, np.int32(m), np.int32(first), sums
            arguments = products, *shape, *self._sides(A, B), *scalars, *classes
            score((-(-B.size // 128), _SLICES), (128,), arguments)
            many = min(chunk, m - first)
            S[first : first + many, : B.size] += sums[:, :many].sum(axis=0)


class DeviceValues(KernelValues):
    """Kernels with a native form."""

    def __init__(self, task: Task) -> None:
        X = task.X if sp.issparse(task.X) else resident(task.X)
        form = Form.plan(task.kernel, X)
        self.samples, self._tiles, self.n = DeviceSamples(form, X), Tiles(form, task.offset), len(task.y)
        self.form = form.describe()

    def block(self, W: IntArray, dtype: np.dtype[Any]) -> Any:
        every = len(W) == self.n and bool((np.arange(self.n) == W).all())
        rows = self.samples.rows(slice(0, self.n) if every else cupy().asarray(W))
        return self._tiles.block(self.samples, rows, dtype)

    def scores(self, ids: IntArray, coef: Any, part: slice = EVERYONE) -> Any:
        rows = self.samples.rows(cupy().asarray(ids))
        return self._tiles.scores(self.samples, rows, coef, self.samples, part)


def kernel_values(task: Task) -> KernelValues:
    """Values on the device if the kernel has a native form or is a matrix that fits there, else Python's."""
    if task.kernel.native is not None:
        return DeviceValues(task)
    if task.kernel.pairwise and _fits(task.X):
        return MatrixValues(resident(task.X), task.offset)
    return HostValues(task)


def _fits(K: Any) -> bool:
    """Whether a matrix is on the device, or dense and small enough to be copied there."""
    if isinstance(K, DeviceData):
        return True
    return not sp.issparse(K) and K.nbytes <= _MATRIX_SHARE * free_bytes()
