"""How samples are laid out for the native kernels: the data decide.

- small integers times one scale (``grids.py``): kept as 8 or 16-bit integers, exact products; zeros and one
  other value only: counts of common features; sparse data only if that takes no more memory;
- dense, few features, or L1 distances: feature-major, direct differences (exact for any offset);
- dense otherwise: row-major, products by BLAS; RBF distances by ‖a‖² + ‖b‖² - 2a·b on centred features;
- sparse: CSR with a native CSC copy, so that a product visits only features both samples have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg.cython_blas
import scipy.sparse as sp

from ... import _core
from ...inner import work
from ...kernels import Kernel, Polynomial
from ...system.data import features_per_sample
from ...system.typing import Data, FloatArray
from .grids import Grid

DIRECT_FEATURES = 32  # up to here direct differences are as fast as products
# Float32 products lose about 2⁻²³·gamma·(‖a‖² + ‖b‖²) of an RBF value: beyond this use float64.
_FLOAT32_REACH = 50.0
_FLOAT32_LARGEST = 1e15  # squares must not overflow float32
# A sparse matrix and its transpose take some 16 bytes an entry: here a byte for every feature costs less.
_DENSE_SHARE = 1 / 8
_BINARY_SHARE = 1 / 50  # here one line of bytes stands for many entries, so more memory buys more speed

# Without vector instructions for them, products of integers win only if fewer values are not zero.
_PORTABLE_SHARE = 0.3

_core.set_blas(scipy.linalg.cython_blas.__pyx_capi__["sgemm"], scipy.linalg.cython_blas.__pyx_capi__["dgemm"])


@dataclass(frozen=True)
class Layout:
    """The native form of samples for one kernel; training data and new data must share it."""

    kernel: Kernel
    form: str  # "product", "direct", "sparse", "integer" or "binary"
    dtype: np.dtype[Any]  # of the values
    center: FloatArray | None = None  # subtracted from every row (shift-invariant kernels)
    grid: Grid | None = None  # of "integer" and "binary"

    @classmethod
    def plan(cls, kernel: Kernel, X: Data, dtype: str) -> Layout:
        """The layout for training data ``X``: ``dtype`` "auto" takes float32 if that is safe."""
        return cls.of_grid(kernel, X) or cls.of_floats(kernel, X, dtype)

    @classmethod
    def of_grid(cls, kernel: Kernel, X: Data) -> Layout | None:
        """The integer layout, if the data and the kernel allow one."""
        share = X.nnz / max(1, X.shape[0] * X.shape[1]) if sp.issparse(X) else 1.0
        if share < _BINARY_SHARE:
            return None
        grid = Grid.find(X)
        if grid is None:
            return None
        if grid.binary:
            return cls(kernel, "binary", grid.dtype, grid=grid)
        if kernel.native == "laplacian" or share < _DENSE_SHARE * grid.dtype.itemsize or not _fast(X):
            return None
        return cls(kernel, "integer", grid.dtype, grid=grid)

    @classmethod
    def of_floats(cls, kernel: Kernel, X: Data, dtype: str) -> Layout:
        """The floating-point layout."""
        if sp.issparse(X):
            return cls(kernel, "sparse", np.dtype(np.float32 if X.dtype == np.float32 else np.float64))
        shift_invariant = kernel.native in ("rbf", "laplacian")
        direct = kernel.native == "laplacian" or (kernel.native == "rbf" and X.shape[1] <= DIRECT_FEATURES)
        center = X.mean(axis=0, dtype=np.float64) if shift_invariant else None
        chosen = _safe_dtype(kernel, X, center, direct) if dtype == "auto" else np.dtype(dtype)
        return cls(kernel, "direct" if direct else "product", chosen, center)

    @property
    def exact(self) -> bool:
        """Whether pair values are as good as float64 ones."""
        return self.form in ("integer", "binary", "sparse") or self.dtype == np.float64

    def describe(self) -> str:
        """A few words for the trace."""
        if self.form == "binary":
            return "binary"
        return f"sparse {self.dtype.name}" if self.form == "sparse" else f"{self.dtype.name} {self._products}"

    @property
    def _products(self) -> str:
        return "direct" if self.form == "direct" else "product"

    def in_float64(self) -> Layout:
        """The same layout with pair values of float64 accuracy."""
        return self if self.exact else replace(self, dtype=np.dtype(np.float64))

    def widened(self) -> Layout | None:
        """An integer layout with room for larger integers of the same scale."""
        if self.grid is None or self.kernel.native == "laplacian":
            return None
        return replace(self, form="integer", dtype=np.dtype(np.int16), grid=self.grid.widened())

    def work(self, X: Data) -> float:
        """Roughly the arithmetic of a kernel value of ``X``, in multiplications of floating-point numbers."""
        features = features_per_sample(X)
        return work.KERNEL_VALUE + features / (1 if self.grid is None else work.INTEGERS)

    def spec(self, offset: float) -> _core.KernelSpec:
        """The kernel's native parameters."""
        k = self.kernel
        gamma, coef0, degree = (getattr(k, name, 0) for name in ("gamma", "coef0", "degree"))
        return _core.KernelSpec(str(k.native), float(gamma), float(coef0), int(degree), float(offset))

    def holds(self, X: Data) -> bool:
        """Whether ``X`` can be laid out so: an integer layout takes only what is on its grid."""
        return self.grid is None or self.grid.holds(X)

    def samples(self, X: Data) -> _core.Samples:
        """Rows of ``X``, which the layout must hold, in native form, with a normalised kernel's factors."""
        samples = self._plain_samples(X)
        if isinstance(self.kernel, Polynomial) and self.kernel.normalize:
            samples.set_scale(self.kernel.scale(X))
        return samples

    def _plain_samples(self, X: Data) -> _core.Samples:
        if self.grid is not None:
            make = _integer_samples if self.form == "integer" else _binary_samples
            return make(self.grid.integers(X), self.grid.scale)
        if self.form == "sparse":
            rows = X.astype(self.dtype, copy=False)
            return _core.sparse(rows.data, *_positions(rows), *rows.shape)
        if self.center is None:
            rows = np.ascontiguousarray(X, dtype=self.dtype)
        else:
            rows = np.subtract(X, self.center, dtype=self.dtype if self.dtype == np.float64 else None)
            rows = rows.astype(self.dtype, copy=False)
        return (
            _core.dense_direct(np.ascontiguousarray(rows.T))
            if self.form == "direct"
            else _core.dense_product(rows)
        )


def _fast(X: Data) -> bool:
    """Whether integer products beat floating-point ones on this machine."""
    if _core.integer_simd() != "portable":
        return True
    filled = X.nnz if sp.issparse(X) else np.count_nonzero(X)
    return bool(filled < _PORTABLE_SHARE * X.shape[0] * X.shape[1])


def _safe_dtype(kernel: Kernel, X: Data, center: FloatArray | None, direct: bool) -> np.dtype[np.floating]:
    if max(float(X.max(initial=0)), -float(X.min(initial=0))) > _FLOAT32_LARGEST:
        return np.dtype(np.float64)
    if kernel.native == "rbf" and not direct:
        reach = float(getattr(kernel, "gamma", 0.0)) * _largest_sqnorm(X, center)
        if reach > _FLOAT32_REACH:
            return np.dtype(np.float64)
    return np.dtype(np.float32)


def _largest_sqnorm(X: Data, center: FloatArray | None, step: int = 4096) -> float:
    largest = 0.0
    for first in range(0, X.shape[0], step):
        rows = X[first : first + step] - (0.0 if center is None else center)
        largest = max(largest, float(np.einsum("ij,ij->i", rows, rows).max()))
    return largest


def _integer_samples(whole: Data, scale: float) -> _core.Samples:
    return _core.integers(whole.toarray() if sp.issparse(whole) else whole, scale)


def _binary_samples(whole: Data, scale: float) -> _core.Samples:
    if not sp.issparse(whole):
        return _core.binary(whole.astype(np.uint8, copy=False), scale)
    (n, d), (indices, indptr) = whole.shape, _positions(whole)
    return _core.binary(indices, indptr, n, d, scale)


def _positions(X: Data) -> tuple[np.ndarray, np.ndarray]:
    """Column indices and row starts of a CSR matrix, in one integer type."""
    index = np.promote_types(X.indices.dtype, X.indptr.dtype)
    return X.indices.astype(index, copy=False), X.indptr.astype(index, copy=False)
