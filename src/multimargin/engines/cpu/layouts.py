"""How samples are laid out for the native kernels: the data decide.

- small integers times one scale (``grids.py``): kept as 8 or 16-bit integers, exact products; zeros and one
  other value only: counts of common features; sparse data only if that takes little more memory;
- dense, few features, or L1 distances: feature-major, direct differences (in float64 exact for any offset);
- dense otherwise: row-major, products by BLAS; RBF distances by ‖a‖² + ‖b‖² - 2a·b on centred features;
- sparse: CSR with a native CSC copy, so that a product visits only features both samples have;
- dense or sparse, if rounding would show in distances by products (``precision.py``): direct differences.

The processes of a team choose one layout from the samples of all, as one process would that has them all.
Every choice is made from numbers of the whole team, so that all processes then ask for the same ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
import scipy.linalg.cython_blas
import scipy.sparse as sp

from ... import _core
from ...inner import work
from ...kernels import Kernel, Polynomial
from ...system.team import SOLO, Team
from ...system.typing import Data, FloatArray
from .grids import Grid
from .precision import (
    FLOAT64_REACH,
    SCORE_ERROR,
    centre_of,
    dense_reach,
    float32_difference_error,
    float32_product_error,
    float32_score_error,
    float32_suffices,
    sparse_reach,
    within_float32,
)

DIRECT_FEATURES = 32  # up to here direct differences are as fast as products
_SINGLE_FEATURES = 128  # up to here direct differences in float32 are faster than products in float64
# A sparse matrix and its transpose take some 16 bytes an entry: here a byte for every feature costs less.
_DENSE_SHARE = 1 / 8
_BINARY_SHARE = 1 / 50  # here one line of bytes stands for many entries, so more memory buys more speed
# A byte for every feature of sparse data may take so many times the memory of the data, or so many bytes.
_MOST_TIMES, _SMALL_BYTES = 3, 64 << 20

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)

# Without vector instructions for them, products of integers win only if fewer values are not zero.
_PORTABLE_SHARE = 0.3

_core.set_blas(scipy.linalg.cython_blas.__pyx_capi__["sgemm"], scipy.linalg.cython_blas.__pyx_capi__["dgemm"])


@dataclass(frozen=True)
class Layout:
    """The native form of samples for one kernel; training data and new data must share it."""

    kernel: Kernel
    form: str  # "product", "direct", "sparse", "sparse direct", "integer" or "binary"
    dtype: np.dtype[Any]  # of the values
    center: FloatArray | None = None  # subtracted from every row (shift-invariant kernels)
    grid: Grid | None = None  # of "integer" and "binary"
    reach: float = math.inf  # of the training data about the centre (``precision.py``), if it was needed

    @classmethod
    def plan(cls, kernel: Kernel, X: Data, dtype: str, team: Team = SOLO) -> Layout:
        """The layout for training data ``X``; unless ``dtype`` is "float64", in float32 if that is safe.

        The rows of all processes have one form (``system.data.same_form``).
        """
        return cls.of_grid(kernel, X, team) or cls.of_floats(kernel, X, dtype, team)

    @classmethod
    def of_grid(cls, kernel: Kernel, X: Data, team: Team = SOLO) -> Layout | None:
        """The integer layout, if the data and the kernel allow one."""
        stored = _Stored.count(X, team)
        if stored.share < _BINARY_SHARE:
            return None
        grid = Grid.find(X, team)
        if grid is None:
            return None
        if grid.binary and stored.affords(copies=1):
            return cls(kernel, "binary", grid.dtype, grid=grid)
        narrow = stored.share < _DENSE_SHARE * grid.dtype.itemsize
        if kernel.native == "laplacian" or narrow or not _fast(X, team):
            return None
        affordable = stored.affords(2 * grid.dtype.itemsize)
        return cls(kernel, "integer", grid.dtype, grid=grid) if affordable else None

    @classmethod
    def of_floats(cls, kernel: Kernel, X: Data, dtype: str, team: Team = SOLO) -> Layout:
        """The floating-point layout."""
        shift_invariant = kernel.native in ("rbf", "laplacian")
        if sp.issparse(X):
            far = shift_invariant and not sparse_reach(kernel, X, team) <= FLOAT64_REACH
            return cls(kernel, "sparse direct" if far else "sparse", np.promote_types(X.dtype, _FLOAT32))
        single = dtype != "float64" and within_float32(kernel, X, team)
        if not shift_invariant:
            return cls(kernel, "product", _FLOAT32 if single else _FLOAT64)
        direct = kernel.native == "laplacian" or X.shape[1] <= DIRECT_FEATURES
        if direct and not single:
            return cls(kernel, "direct", _FLOAT64)
        center = centre_of(X, team)
        reach = dense_reach(kernel, X, center, team)
        if not reach <= FLOAT64_REACH:
            return cls(kernel, "direct", _FLOAT64)
        form = "direct" if direct or _differences_pay(kernel, reach, X.shape[1], single) else "product"
        layout = cls(kernel, form, _FLOAT32, center, reach=reach)
        return layout if single and float32_suffices(kernel, reach, form == "direct") else layout.in_float64()

    @property
    def exact(self) -> bool:
        """Whether pair values are as good as float64 ones."""
        return self.grid is not None or self.form.startswith("sparse") or self.dtype == np.float64

    @property
    def rounding(self) -> float:
        """A bound of the error of kernel values in [0, 1] by the rounding of distances, in units of 2⁻²⁴."""
        if self.exact:
            return 0.0
        if self.kernel.native != "rbf" or self.center is None:
            return math.inf
        error = float32_difference_error if self.form == "direct" else float32_product_error
        return error(self.reach, len(self.center))

    def describe(self) -> str:
        """A few words for the trace."""
        if self.form == "binary":
            return "binary"
        form, *direct = self.form.split()
        if form == "sparse":
            return " ".join([form, self.dtype.name, *direct])
        return f"{self.dtype.name} {'direct' if form == 'direct' else 'product'}"

    def for_scores(self, support: Data, coef: FloatArray) -> list[Layout]:
        """Layouts for scores against the support vectors: in float32 only if that hardly changes them."""
        if self.exact:
            return [self]
        direct, center = self.form == "direct", self.center
        if center is None:  # not a function of a distance: values are not bounded
            return [self.in_float64()]
        error = float32_score_error(dense_reach(self.kernel, support, center), direct, coef)
        return [self, self.in_float64()] if error <= SCORE_ERROR else [self.in_float64()]

    def in_float64(self) -> Layout:
        """The same layout with pair values of float64 accuracy.

        Differences of float64 values need no centre, which would round them. With many features they take
        longer than products, which are as good within ``FLOAT64_REACH``.
        """
        if self.exact:
            return self
        if self.kernel.native == "rbf" and self.center is not None and len(self.center) > DIRECT_FEATURES:
            return replace(self, form="product", dtype=_FLOAT64)
        return replace(self, dtype=_FLOAT64, center=None if self.form == "direct" else self.center)

    def widened(self) -> Layout | None:
        """An integer layout with room for larger integers of the same scale."""
        if self.grid is None or self.kernel.native == "laplacian":
            return None
        return replace(self, form="integer", dtype=np.dtype(np.int16), grid=self.grid.widened())

    def work(self, features: float) -> float:
        """Roughly the arithmetic of a kernel value, in multiplications of floating-point numbers.

        ``features`` is how many values a sample has (``system.data.features_per_sample``).
        """
        return work.KERNEL_VALUE + features / (1 if self.grid is None else work.INTEGERS)

    def spec(self, offset: float) -> _core.KernelSpec:
        """The kernel's native parameters."""
        k = self.kernel
        gamma, coef0, degree = (getattr(k, name, 0) for name in ("gamma", "coef0", "degree"))
        return _core.KernelSpec(str(k.native), float(gamma), float(coef0), int(degree), float(offset))

    def holds(self, X: Data) -> bool:
        """Whether ``X`` can be laid out so: on the grid of an integer layout, in the range of float32."""
        if self.grid is not None:
            return self.grid.holds(X)
        return self.exact or within_float32(self.kernel, X)

    def compact(self, X: Data) -> Data:
        """Rows of ``X``, which the layout must hold, in the form in which a team keeps and sends them.

        They become the integers of a grid; otherwise they stay as they are, as those of a normalised kernel
        do, whose factors come from ``X``.
        """
        return X if self._normalised else self._integers(X)

    def restored(self, rows: Data, dtype: np.dtype[Any]) -> Data:
        """Rows of the data from rows that are ``compact``: of a grid perhaps not to the last bit."""
        return rows if self.grid is None or rows.dtype == dtype else self.grid.numbers(rows, dtype)

    def samples(self, X: Data) -> _core.Samples:
        """Rows of ``X``, which the layout must hold, in native form, with a normalised kernel's factors."""
        return self.of_compact(self.compact(X))

    def of_compact(self, rows: Data) -> _core.Samples:
        """The same, from rows that are ``compact``."""
        if not self._normalised:
            return self._laid_out(rows)
        samples = self._laid_out(self._integers(rows))
        samples.set_scale(cast("Polynomial", self.kernel).scale(rows))
        return samples

    @property
    def _normalised(self) -> bool:
        return isinstance(self.kernel, Polynomial) and self.kernel.normalize

    def _integers(self, X: Data) -> Data:
        return X if self.grid is None else self.grid.integers(X)

    def _laid_out(self, X: Data) -> _core.Samples:
        """The native form of integers of the grid, if there is one, else of rows of the data."""
        if self.grid is not None:
            make = _integer_samples if self.form == "integer" else _binary_samples
            return make(X, self.grid.scale)
        if self.form.startswith("sparse"):
            sparse = _core.sparse if self.form == "sparse" else _core.sparse_direct
            rows = X.astype(self.dtype, copy=False)
            return sparse(rows.data, *_positions(rows), *rows.shape)
        rows = X
        if self.center is not None:
            rows = np.subtract(X, self.center, dtype=self.dtype if self.dtype == np.float64 else None)
        if self.form == "direct":
            return _core.dense_direct(np.ascontiguousarray(rows.T, dtype=self.dtype))
        return _core.dense_product(np.ascontiguousarray(rows, dtype=self.dtype))


@dataclass(frozen=True)
class _Stored:
    """What the data of all processes store, and in how many bytes."""

    entries: float
    of: float  # as dense data
    nbytes: float

    @classmethod
    def count(cls, X: Data, team: Team) -> Self:
        """Look at ``X``; of dense data every value is stored, and no copy of them is out of proportion."""
        if not sp.issparse(X):
            return cls(1.0, 1.0, math.inf)
        starts = X.indptr[1:] if team.rank else X.indptr  # as many as one process has for all rows
        nbytes = X.data.nbytes + X.indices.nbytes + starts.nbytes
        return cls(*map(float, team.sum([X.nnz, X.shape[0] * X.shape[1], nbytes])))

    @property
    def share(self) -> float:
        """The share of the values that is stored."""
        return self.entries / max(1.0, self.of)

    def affords(self, copies: int) -> bool:
        """Whether ``copies`` bytes for every feature of every sample are in proportion to the data.

        No process of a team then needs more than one process would for all samples.
        """
        return copies * self.of <= max(_SMALL_BYTES, _MOST_TIMES * self.nbytes)


def _differences_pay(kernel: Kernel, reach: float, features: int, single: bool) -> bool:
    """Whether float32 would do for differences but not for products, and so saves products in float64."""
    if not single or features > _SINGLE_FEATURES or float32_suffices(kernel, reach, direct=False):
        return False
    return float32_suffices(kernel, reach, direct=True)


def _fast(X: Data, team: Team) -> bool:
    """Whether integer products beat floating-point ones on the machines of the team."""
    if not team.max(float(_core.integer_simd() == "portable")):
        return True
    filled, values = team.sum([X.nnz if sp.issparse(X) else np.count_nonzero(X), X.shape[0] * X.shape[1]])
    return bool(filled < _PORTABLE_SHARE * values)


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
