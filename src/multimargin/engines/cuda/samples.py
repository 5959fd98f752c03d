"""Training data on the device, and products or distances of samples, tile by tile.

    int8      small integers times one scale (cpu/grids.py): exact products on tensor cores
    float64   everything else; centred, if only distances matter

A sample is a row of entries, padded with zeros to a multiple of 16. Dense data are converted once. Sparse
data stay sparse, and the rows of a tile are spread out when they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...kernels import Kernel, Polynomial
from ...system.typing import Data, FloatArray
from ..cpu.grids import Grid
from ..cpu.precision import FLOAT64_REACH, centre_of, dense_reach, sparse_reach
from .device import cupy, function

_PAD = 16
_INT8, _INT32, _COMPUTE_INT32, _TRANSPOSE, _AS_IT_IS, _DEFAULT = 3, 10, 72, 1, 0, -1  # of cuBLAS
_C_TYPES = {
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short",
    "uint16": "unsigned short",
    "float32": "float",
    "float64": "double",
    "bool": "bool",
}


def padded(count: int) -> int:
    """The next multiple of what tensor cores want."""
    return -(-count // _PAD) * _PAD


class Rows(NamedTuple):
    """Some samples in the form of a tile's side: (padded(count), width) entries, and what belongs to each."""

    entries: Any
    size: int
    norms: Any  # squared, in units of the entries
    factors: Any  # that normalise the kernel, or None


@dataclass(frozen=True)
class Form:
    """How samples are laid out for a kernel; training data and new data must share it."""

    kernel: Kernel
    grid: Grid | None  # of integers that fit 8 bits, less ``shift``
    shift: float = 0.0
    centre: FloatArray | None = None  # subtracted from every row
    by_differences: bool = False  # whether tiles have distances themselves, and not products

    @classmethod
    def plan(cls, kernel: Kernel, X: Data) -> Form:
        """The form for training data."""
        grid, shift = _grid_of(kernel, X)
        form = cls(kernel, grid, shift, by_differences=kernel.native == "laplacian")
        return form if grid is not None else form.in_float64(X)

    def in_float64(self, X: Data) -> Form:
        """The form of the same training data for new data that are not on the grid."""
        shift_invariant = self.kernel.native in ("rbf", "laplacian")
        far = self.kernel.native == "rbf" and not _reach(self.kernel, X) <= FLOAT64_REACH
        centre = None
        if shift_invariant and not sp.issparse(X):
            centre = np.asarray(centre_of(X), dtype=np.float64)
        return Form(self.kernel, None, 0.0, centre, far or self.kernel.native == "laplacian")

    def holds(self, X: Data) -> bool:
        """Whether data can be laid out so."""
        if self.grid is None:
            return True
        if not self.grid.holds(X):
            return False
        low, high = _limits(self.grid.integers(X))
        return -128 <= low - self.shift and high - self.shift <= 127

    @property
    def entry(self) -> np.dtype[Any]:
        """The type of entries."""
        return np.dtype(np.float64 if self.grid is None else np.int8)

    @property
    def tile_dtype(self) -> np.dtype[Any]:
        """The type of tiles."""
        return np.dtype(np.float64 if self.grid is None or self.by_differences else np.int32)

    @property
    def worth(self) -> float:
        """What a unit of a tile is worth: scale² of products and squares, scale of differences."""
        scale = 1.0 if self.grid is None else self.grid.scale
        return scale if self.kernel.native == "laplacian" else scale**2

    def describe(self) -> str:
        """A few words for the trace."""
        if self.by_differences:
            return f"{self.entry.name} differences"
        return f"{self.entry.name} product"


class DeviceSamples:
    """Some samples in one form: those of a task, support vectors, or new ones."""

    def __init__(self, form: Form, X: Data) -> None:
        self.form, self.kernel = form, form.kernel
        self.n, self.d = (int(size) for size in X.shape)
        self.width, self.entry = padded(self.d), form.entry
        self._load(X if form.grid is None else form.grid.integers(X))
        self._factors = None
        if isinstance(self.kernel, Polynomial) and self.kernel.normalize:
            self._factors = cupy().asarray(self.kernel.scale(X))

    def _load(self, X: Data) -> None:
        cp = cupy()
        self._sparse = sp.issparse(X)
        self._entries = None
        every = cp.arange(self.n, dtype=cp.int64)
        if self._sparse:
            data = X.data if X.data.dtype.name in _C_TYPES else X.data.astype(np.float64)
            self._csr = (
                cp.asarray(data),
                cp.asarray(X.indices.astype(np.int32, copy=False)),
                cp.asarray(X.indptr.astype(np.int64, copy=False)),
            )
            self.norms = cp.concatenate([self._norms(part, count) for part, count in self._parts(every)])
            return
        X = np.ascontiguousarray(X if X.dtype.name in _C_TYPES else X.astype(np.float64))
        centre = None if self.form.centre is None else cp.asarray(self.form.centre)
        held = cp.asarray(X)
        self._entries = cp.zeros((padded(self.n), self.width), dtype=self.entry)
        self._take(held, every, self._entries, centre, self.form.shift)
        self.norms = self._norms(self._entries, self.n)

    def _parts(self, ids: Any) -> Any:
        step = max(1, (256 << 20) // (self.width * self.entry.itemsize))
        for first in range(0, len(ids), step):
            part = ids[first : first + step]
            yield self._dense(part), len(part)

    def _take(self, held: Any, ids: Any, out: Any, centre: Any = None, shift: float = 0.0) -> None:
        kernel = function("samples.cu", "take", ENTRY=_c(out.dtype), STORED=_c(held.dtype))
        arguments = (
            held,
            self.d if held.shape[1] == self.d else self.width,
            ids,
            len(ids),
            centre,
            np.float64(shift),
        )
        if len(ids):
            kernel((len(ids),), (128,), (*arguments, out, self.width))

    def _norms(self, entries: Any, count: int) -> Any:
        out = cupy().empty(count)
        if count:
            kernel = function("samples.cu", "norms", ENTRY=_c(self.entry), STORED=_c(self.entry))
            kernel((-(-count // 8),), (256,), (entries, count, self.width, out))
        return out

    def _dense(self, ids: Any) -> Any:
        """Rows of entries, padded."""
        cp = cupy()
        out = cp.zeros((padded(len(ids)), self.width), dtype=self.entry)
        if not self._sparse:
            self._take(self._entries, ids, out)
        elif len(ids):
            data, indices, starts = self._csr
            kernel = function("samples.cu", "spread", ENTRY=_c(self.entry), STORED=_c(data.dtype))
            kernel((len(ids),), (64,), (data, indices, starts, ids, len(ids), out, self.width))
        return out

    def rows(self, ids: Any) -> Rows:
        """The samples ``ids`` (an array on the device, or a slice whose start is a multiple of 16)."""
        if isinstance(ids, slice):
            first, last, _ = ids.indices(self.n)
            if self._entries is not None:
                entries = self._entries[first : first + padded(last - first)]
                factors = None if self._factors is None else self._factors[first:last]
                return Rows(entries, last - first, self.norms[first:last], factors)
            ids = cupy().arange(first, last, dtype=np.int64)
        factors = None if self._factors is None else self._factors[ids]
        return Rows(self._dense(ids), len(ids), self.norms[ids], factors)

    def part(self, rows: Rows, first: int, last: int) -> Rows:
        """Some of the rows, from a multiple of 16 on."""
        factors = None if rows.factors is None else rows.factors[first:last]
        entries = rows.entries[first : first + padded(last - first)]
        return Rows(entries, last - first, rows.norms[first:last], factors)

    def tile(self, A: Rows, B: Rows, out: Any) -> None:
        """Products or distances of the rows of ``A`` and ``B``; ``out`` has padded(B.size) columns."""
        wide = padded(B.size)
        if not self.form.by_differences and self.form.grid is not None:
            _int8_product(A.entries, B.entries, self.width, out)
        elif not self.form.by_differences:
            cupy().matmul(A.entries, B.entries.T, out=out)
        else:
            name = "differences" if self.kernel.native == "laplacian" else "squared_differences"
            kernel = function("samples.cu", name, ENTRY=_c(self.entry), STORED=_c(self.entry))
            grid = -(-B.size // 16), -(-A.size // 16)
            arguments = A.entries, B.entries, np.int32(A.size), np.int32(B.size), np.int32(self.d)
            kernel(grid, (16, 16), (*arguments, self.width, out, wide))


def _c(dtype: Any) -> str:
    return _C_TYPES[np.dtype(dtype).name]


def _grid_of(kernel: Kernel, X: Data) -> tuple[Grid | None, float]:
    """The grid of the data if its integers fit 8 bits, and what to subtract from them."""
    grid = Grid.find(X)
    if grid is None:
        return None, 0.0
    low, high = _limits(grid.integers(X))
    if -128 <= low and high <= 127:
        return grid, 0.0
    if high - low <= 255 and kernel.native in ("rbf", "laplacian") and not sp.issparse(X):
        return grid, float(low + 128)
    return None, 0.0


def _limits(values: Data) -> tuple[int, int]:
    """The smallest and the largest integer, and 0."""
    stored = values.data if sp.issparse(values) else values
    return int(stored.min(initial=0)), int(stored.max(initial=0))


def _reach(kernel: Kernel, X: Data) -> float:
    if sp.issparse(X):
        return float(sparse_reach(kernel, X))
    return float(dense_reach(kernel, X, centre_of(X)))


def _int8_product(A: Any, B: Any, width: int, out: Any) -> None:
    """out[i, j] = ⟨A_i, B_j⟩ in int32: row-major arrays are the transposed ones of cuBLAS."""
    from cupy.cuda.device import get_cublas_handle
    from cupy_backends.cuda.libs import cublas

    one, none = np.array(1, dtype=np.int32), np.array(0, dtype=np.int32)
    cublas.gemmEx(
        get_cublas_handle(),
        _TRANSPOSE,
        _AS_IT_IS,
        B.shape[0],
        A.shape[0],
        width,
        one.ctypes.data,
        B.data.ptr,
        _INT8,
        width,
        A.data.ptr,
        _INT8,
        width,
        none.ctypes.data,
        out.data.ptr,
        _INT32,
        B.shape[0],
        _COMPUTE_INT32,
        _DEFAULT,
    )
