"""Kernel values on the device: blocks of a working set, and scores that store no kernel value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ...system.typing import FloatArray, IntArray
from ..base import Task
from .device import cupy, function
from .samples import DeviceSamples, Rows, padded

_TILE_BYTES = 1 << 30  # of products at a time
_COLUMNS = 1 << 16  # samples scored at a time
_SLICES = 8  # of the rows of a tile, summed by themselves
_MOST_CLASSES = 32  # scored at a time
_C_VALUES = {"uint16": "unsigned short", "float32": "float", "float64": "double"}
_HOST_VALUES = 1 << 22  # kernel values that Python computes at a time


class KernelValues(ABC):
    """The kernel of a task."""

    form: str

    @abstractmethod
    def block(self, W: IntArray, dtype: np.dtype[Any]) -> Any:
        """K_WW without the offset: (q, padded(q)) values; what is behind column q means nothing."""

    @abstractmethod
    def scores(self, ids: IntArray, coef: Any) -> Any:
        """Σ_j (K + offset)(x_i, x_j) coef_j over ``ids``, for all samples i: (m, n) in float64."""


class HostValues(KernelValues):
    """Precomputed matrices, and callables: evaluated on the host."""

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

    def scores(self, ids: IntArray, coef: Any) -> Any:
        cp, n = cupy(), len(self.task.y)
        S = cp.zeros((coef.shape[1], n))
        step = max(1, _HOST_VALUES // n)
        for first in range(0, len(ids), step):
            part = slice(first, first + step)
            values = cp.asarray(self.task.kernel.block(self.task.X, ids[part]) + self.task.offset)
            S += coef[part].T @ values
        return S


class DeviceValues(KernelValues):
    """Kernels with a native form."""

    def __init__(self, task: Task) -> None:
        self.kernel, self.offset, self.n = task.kernel, task.offset, len(task.y)
        self.samples = DeviceSamples(task.kernel, task.X)
        self.form = self.samples.form
        gamma, coef0, degree = (getattr(self.kernel, name, 0) for name in ("gamma", "coef0", "degree"))
        self._spec = np.float64(gamma), np.float64(coef0), np.float64(self.samples.worth), np.int32(degree)

    def _function(self, name: str, value: str = "double", chunk: int = 4) -> Any:
        native = str(self.kernel.native).upper()
        kind = "DISTANCE" if native == "RBF" and self.samples.by_differences else native
        product = "int" if self.samples.tile_dtype == np.int32 else "double"
        return function("values.cu", name, KERNEL=kind, PRODUCT=product, VALUE=value, CHUNK=chunk)

    @staticmethod
    def _sides(A: Rows, B: Rows) -> tuple[Any, ...]:
        return A.norms, B.norms, A.factors, B.factors

    def block(self, W: IntArray, dtype: np.dtype[Any]) -> Any:
        cp, q = cupy(), len(W)
        every = q == self.n and bool((W == np.arange(q)).all())
        rows = self.samples.rows(slice(0, q) if every else cp.asarray(W))
        wide, itemsize = padded(q), self.samples.tile_dtype.itemsize
        K = cp.empty((q, wide), dtype=dtype)
        step = min(wide, max(16, _TILE_BYTES // (wide * itemsize) // 16 * 16))
        tile = cp.empty((step, wide), dtype=self.samples.tile_dtype)
        store = self._function("store", _C_VALUES[np.dtype(dtype).name])
        for first in range(0, q, step):
            part = self.samples.part(rows, first, min(q, first + step))
            products = tile[: padded(part.size)]
            self.samples.tile(part, rows, products)
            grid = -(-q // 1024), min(part.size, 512)
            shape = wide, np.int32(part.size), np.int32(q)
            arguments = products, *shape, *self._sides(part, rows), *self._spec, K[first:], wide
            store(grid, (256,), arguments)
        return K

    def scores(self, ids: IntArray, coef: Any) -> Any:
        cp, m = cupy(), coef.shape[1]
        S = cp.zeros((m, self.n))
        if not len(ids):
            return S
        rows = self.samples.rows(cp.asarray(ids))
        wide = min(padded(self.n), _COLUMNS)
        step = max(16, _TILE_BYTES // (wide * self.samples.tile_dtype.itemsize) // 16 * 16)
        step = min(step, padded(rows.size))
        tile = cp.empty((step, wide), dtype=self.samples.tile_dtype)
        chunk = min(_MOST_CLASSES, -(-m // 2) * 2)
        partial = cp.empty((_SLICES, chunk, wide))
        for left in range(0, self.n, wide):
            columns = self.samples.rows(slice(left, min(self.n, left + wide)))
            for first in range(0, rows.size, step):
                part = self.samples.part(rows, first, min(rows.size, first + step))
                products = tile.ravel()[: padded(part.size) * padded(columns.size)]
                products = products.reshape(padded(part.size), padded(columns.size))
                self.samples.tile(part, columns, products)
                self._add(products, part, columns, coef[first : first + part.size], partial, S[:, left:])
        return S

    def _add(self, products: Any, A: Rows, B: Rows, coef: Any, partial: Any, S: Any) -> None:
        """S[r, j] += Σ_i K(A_i, B_j) coef[i, r]."""
        m, chunk = coef.shape[1], partial.shape[1]
        score, count = self._function("score", chunk=chunk), B.size
        sums = partial.ravel()[: _SLICES * chunk * count].reshape(_SLICES, chunk, count)
        for first in range(0, m, chunk):
            shape = products.shape[1], np.int32(A.size), np.int32(count)
            scalars = *self._spec, np.float64(self.offset)
            classes = coef, np.int32(m), np.int32(first), sums
            score(
                (-(-count // 128), _SLICES),
                (128,),
                (products, *shape, *self._sides(A, B), *scalars, *classes),
            )
            many = min(chunk, m - first)
            S[first : first + many, :count] += sums[:, :many].sum(axis=0)


def kernel_values(task: Task) -> KernelValues:
    """Values on the device if the kernel has a native form, else Python's."""
    return HostValues(task) if task.kernel.native is None else DeviceValues(task)
