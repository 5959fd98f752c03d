"""How samples are laid out for the native kernels.

- dense, few features, or L1 distances: feature-major, direct differences (exact for any offset);
- dense otherwise: row-major, products by BLAS; RBF distances by ‖a‖² + ‖b‖² - 2a·b on centred features;
- sparse: CSR with its CSC copy, so that a product visits only features both samples have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg.cython_blas
import scipy.sparse as sp

from .. import _core
from ..kernels import Kernel, Polynomial
from ..typing import Data, FloatArray

DIRECT_FEATURES = 32  # up to here direct differences are as fast as products
# Float32 products lose about 2⁻²³·gamma·(‖a‖² + ‖b‖²) of an RBF value: beyond this use float64.
_FLOAT32_REACH = 50.0
_FLOAT32_LARGEST = 1e15  # squares must not overflow float32

_core.set_blas(scipy.linalg.cython_blas.__pyx_capi__["sgemm"], scipy.linalg.cython_blas.__pyx_capi__["dgemm"])


@dataclass(frozen=True)
class Layout:
    """The native form of samples for one kernel; training data and new data must share it."""

    kernel: Kernel
    sparse: bool
    direct: bool
    center: FloatArray | None  # subtracted from every row (shift-invariant kernels)
    dtype: np.dtype[np.floating]  # in which dense values are computed

    @classmethod
    def plan(cls, kernel: Kernel, X: Data, dtype: str) -> Layout:
        """The layout for training data ``X``: ``dtype`` "auto" takes float32 where that is safe."""
        if sp.issparse(X):
            values = np.float32 if X.dtype == np.float32 else np.float64
            return cls(kernel, True, False, None, np.dtype(values))
        shift_invariant = kernel.native in ("rbf", "laplacian")
        direct = kernel.native == "laplacian" or (kernel.native == "rbf" and X.shape[1] <= DIRECT_FEATURES)
        center = X.mean(axis=0, dtype=np.float64) if shift_invariant else None
        chosen = _safe_dtype(kernel, X, center, direct) if dtype == "auto" else np.dtype(dtype)
        return cls(kernel, False, direct, center, chosen)

    def in_dtype(self, dtype: type) -> Layout:
        """The same layout computing in another precision."""
        return self if self.sparse else Layout(self.kernel, False, self.direct, self.center, np.dtype(dtype))

    def spec(self, offset: float) -> _core.KernelSpec:
        """The kernel's native parameters."""
        k = self.kernel
        gamma, coef0, degree = (getattr(k, name, 0) for name in ("gamma", "coef0", "degree"))
        return _core.KernelSpec(str(k.native), float(gamma), float(coef0), int(degree), float(offset))

    def samples(self, X: Data) -> _core.Samples:
        """Rows of ``X`` in native form."""
        if self.sparse:
            return _sparse_samples(X.astype(self.dtype, copy=False))
        if self.center is None:
            rows = np.ascontiguousarray(X, dtype=self.dtype)
        else:
            rows = np.subtract(X, self.center, dtype=self.dtype if self.dtype == np.float64 else None)
            rows = rows.astype(self.dtype, copy=False)
        return _core.dense_direct(np.ascontiguousarray(rows.T)) if self.direct else _core.dense_product(rows)

    def scale(self, X: Data) -> FloatArray | None:
        """Per-sample factors of a normalised kernel."""
        if isinstance(self.kernel, Polynomial) and self.kernel.normalize:
            return self.kernel.scale(X)
        return None


def _safe_dtype(kernel: Kernel, X: Data, center: FloatArray | None, direct: bool) -> np.dtype[np.floating]:
    if max(X.max(initial=0), -X.min(initial=0)) > _FLOAT32_LARGEST:
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


def _sparse_samples(X: Data) -> _core.Samples:
    columns = X.tocsc()
    index = np.int64 if np.int64 in (X.indices.dtype, X.indptr.dtype, columns.indices.dtype) else np.int32
    arrays = (X.indices, X.indptr, columns.indices, columns.indptr)
    indices, indptr, csc_indices, csc_indptr = (a.astype(index, copy=False) for a in arrays)
    return _core.sparse(X.data, indices, indptr, columns.data, csc_indices, csc_indptr, *X.shape)
