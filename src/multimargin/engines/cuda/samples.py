"""Training data on the device, and products or distances of samples, tile by tile.

    int8      small integers times one scale (cpu/grids.py): exact products on tensor cores
    float64   everything else; centred, if only distances matter

A sample is a row of entries, padded with zeros to a multiple of 16. Dense data (``Resident``) are converted
once. Sparse data stay sparse, and the rows of a tile are spread out when they are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ... import _core
from ...kernels import Kernel, Polynomial
from ...system.typing import Data
from ..cpu.grids import SAMPLE, Grid
from ..cpu.precision import FLOAT64_REACH, sparse_reach
from .device import cupy, function
from .resident import C_TYPES, Resident

_PAD = 16
_INT8, _INT32, _COMPUTE_INT32, _TRANSPOSE, _AS_IT_IS, _DEFAULT = 3, 10, 72, 1, 0, -1  # of cuBLAS


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
    centre: Any = None  # subtracted from every row; on the device
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
        centre = X.mean() if shift_invariant and isinstance(X, Resident) else None
        return Form(self.kernel, None, 0.0, centre, far or self.kernel.native == "laplacian")

    def holds(self, X: Data) -> bool:
        """Whether data can be laid out so."""
        if self.grid is None:
            return True
        limits = _limits(X, self.grid)
        return limits is not None and -128 <= limits[0] - self.shift and limits[1] - self.shift <= 127

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
        self._entries: Any = None
        self._csr: Any = None
        if isinstance(X, Resident):
            self._load(X)
        else:
            self._load_sparse(X if form.grid is None else form.grid.integers(X))
        self._factors = None
        if isinstance(self.kernel, Polynomial) and self.kernel.normalize:
            self._factors = cupy().asarray(self.kernel.scale(X))

    def _load(self, X: Resident) -> None:
        cp, grid = cupy(), self.form.grid
        self._entries = cp.zeros((padded(self.n), self.width), dtype=self.entry)
        every = cp.arange(self.n, dtype=cp.int64)
        inverse = 0.0 if grid is None or _is_whole(X, grid) else 1.0 / grid.scale
        self._take(X.values, every, self._entries, self.form.centre, self.form.shift, inverse)
        self.norms = self._norms(self._entries, self.n)

    def _load_sparse(self, X: Data) -> None:
        cp = cupy()
        self._csr = (
            cp.asarray(X.data if X.data.dtype.name in C_TYPES else X.data.astype(np.float64)),
            cp.asarray(X.indices.astype(np.int32, copy=False)),
            cp.asarray(X.indptr.astype(np.int64, copy=False)),
        )
        every = cp.arange(self.n, dtype=cp.int64)
        self.norms = cp.concatenate([self._norms(part, count) for part, count in self._parts(every)])

    def _parts(self, ids: Any) -> Any:
        step = max(1, (256 << 20) // (self.width * self.entry.itemsize))
        for first in range(0, len(ids), step):
            part = ids[first : first + step]
            yield self._dense(part), len(part)

    def _take(
        self, held: Any, ids: Any, out: Any, centre: Any = None, shift: float = 0.0, inverse: float = 0.0
    ) -> None:
        kernel = function("samples.cu", "take", ENTRY=_c(out.dtype), STORED=_c(held.dtype))
        numbers = np.float64(shift), np.float64(inverse)
        if len(ids):
            arguments = held, held.shape[1], ids, len(ids), centre, *numbers, out, self.width
            kernel((len(ids),), (128,), arguments)

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
        if self._entries is not None:
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
    return C_TYPES[np.dtype(dtype).name]


def _grid_of(kernel: Kernel, X: Data) -> tuple[Grid | None, float]:
    """The grid of the data if its integers fit 8 bits, and what to subtract from them."""
    grid = _dense_grid(X) if isinstance(X, Resident) else Grid.find(X)
    limits = None if grid is None else _limits(X, grid)
    if limits is None:
        return None, 0.0
    low, high = limits
    if -128 <= low and high <= 127:
        return grid, 0.0
    if high - low <= 255 and kernel.native in ("rbf", "laplacian") and isinstance(X, Resident):
        return grid, float(low + 128)
    return None, 0.0


def _dense_grid(X: Resident) -> Grid | None:
    """``Grid.find`` for data on the device: a sample of the values proposes a scale."""
    size = X.shape[0] * X.shape[1]
    scale: float | None = 1.0
    if X.dtype.kind == "f":
        scale = _core.grid_scale(X.sample(max(1, size // SAMPLE), 2 * SAMPLE))
    limits = None if scale is None else X.whole_numbers(scale)
    return None if scale is None or limits is None else Grid.within(scale, *limits, X.dtype)


def _is_whole(X: Resident, grid: Grid) -> bool:
    """Whether the data are the integers of the grid themselves."""
    return grid.scale == 1.0 and X.dtype.kind in "iu"


def _limits(X: Data, grid: Grid) -> tuple[int, int] | None:
    """The smallest and the largest integer of the data, and 0; None if they are not on the grid."""
    if isinstance(X, Resident):
        return X.whole_numbers(grid.scale)
    if not grid.holds(X):
        return None
    stored = grid.integers(X).data
    return int(stored.min(initial=0)), int(stored.max(initial=0))


def _reach(kernel: Kernel, X: Data) -> float:
    """The largest gamma · norm of a row about the mean of all (see cpu/precision.py)."""
    if not isinstance(X, Resident):
        return float(sparse_reach(kernel, X))
    gamma = float(getattr(kernel, "gamma", 0.0))
    return gamma * X.farthest(X.mean(), squared=kernel.native != "laplacian")


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
