"""Kernels as small value objects, each with its definition in NumPy.

A kernel is a function of two samples. An engine with native code for a kernel reads its ``native`` name and
its parameters. Callables, precomputed matrices and the numpy engine use the methods below. They compute in
float64, and the native code is tested against them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import manhattan_distances

from .system.arithmetic import (
    as_float64,
    check_symmetric,
    check_symmetric_shards,
    dense,
    dots,
    floating,
    in_float64_parts,
    short_indices,
    sqnorms,
    squared_distances,
)
from .system.team import SOLO, Team
from .system.typing import Data, FloatArray, IntArray

Gamma = float | str


_DIAGONAL_ROWS = 16  # of a callable's diagonal at a time: few calls, and few values beside the diagonal
# Entries whose variance is between this and its inverse have squares that neither overflow nor underflow.
_SAFE_VARIANCE = 1e-280
_MEAN_ROUNDING = 1e-12  # share of the mean below which a deviation may be the rounding of the mean alone


def _exp(values: FloatArray) -> FloatArray:
    return np.exp(values, out=values)


@dataclass(frozen=True)
class Kernel(ABC):
    """Base of all kernels.

    Training uses ``diagonal`` and ``block``, prediction uses ``support`` and ``against``. A new kernel
    defines ``between`` and ``diagonal``; the others follow from these two.
    """

    native: ClassVar[str | None] = None  # name in the native code; None: evaluated in Python
    pairwise: ClassVar[bool] = False  # X is itself a matrix of kernel values
    bounded: ClassVar[bool] = False  # whether |K| ≤ 1 whatever the data are
    needs_bias: ClassVar[bool] = True  # whether a machine without a bias may depend on where the origin is

    def resolve(self, X: Data, weight: FloatArray | None = None, team: Team = SOLO) -> Self:
        """Return the same kernel with every parameter a number, derived from the team's training data.

        A sample of ``weight`` 2 counts as two samples.
        """
        return self

    @abstractmethod
    def between(self, A: Data, B: Data) -> FloatArray:
        """Return the kernel values of every row of ``A`` with every row of ``B``."""

    @abstractmethod
    def diagonal(self, A: Data) -> FloatArray:
        """Return K(a, a) for every row a of ``A``."""

    def own_diagonal(self, X: Data, first: int) -> FloatArray:
        """Return K(x, x) for the training samples that a process holds: the rows of ``X``.

        ``first`` is the id of the first of them, so a precomputed kernel has its values of these samples
        among each other in the columns from there on. For the values of any samples ``ids`` with the rows of
        ``X`` take ``against``: of their rows, or for a precomputed kernel of the ids.
        """
        return self.diagonal(X)

    def block(self, X: Data, rows: IntArray, columns: IntArray | None = None) -> FloatArray:
        """Return the values between training samples ``rows`` and ``columns`` (all samples if None)."""
        return self.between(X[rows], X if columns is None else X[columns])

    def whole(self, X: Data) -> FloatArray:
        """Return the values between all training samples."""
        return self.block(X, np.arange(X.shape[0]))

    def support(self, X: Data, ids: IntArray) -> Any:
        """Return the part of ``X`` that prediction needs for the support vectors ``ids``."""
        return X[ids]

    def against(self, X: Data, support: Any) -> FloatArray:
        """Return the values between new samples and the support vectors."""
        return self.between(X, support)


@dataclass(frozen=True)
class Linear(Kernel):
    """K(a, b) = a·b."""

    native: ClassVar[str | None] = "linear"

    def between(self, A: Data, B: Data) -> FloatArray:
        return dots(A, B)

    def diagonal(self, A: Data) -> FloatArray:
        return sqnorms(A)


@dataclass(frozen=True)
class _Scaled(Kernel):
    gamma: Gamma = "scale"

    def __post_init__(self) -> None:
        if isinstance(self.gamma, str):
            if self.gamma not in ("scale", "auto"):
                raise ValueError(f"gamma must be 'scale', 'auto' or a positive number, got {self.gamma!r}.")
        elif not isinstance(self.gamma, Real) or not (0 < self.gamma < np.inf):
            raise ValueError(
                f"gamma must be 'scale', 'auto' or a positive finite number, got {self.gamma!r}."
            )

    def resolve(self, X: Data, weight: FloatArray | None = None, team: Team = SOLO) -> Self:
        if not isinstance(self.gamma, str):
            return replace(self, gamma=float(self.gamma))
        return replace(
            self, gamma=_gamma_scale(X, weight, team) if self.gamma == "scale" else 1.0 / X.shape[1]
        )

    @property
    def _gamma(self) -> float:
        if isinstance(self.gamma, str):
            raise ValueError("Call resolve(X) before evaluating a kernel whose gamma is 'scale' or 'auto'.")
        return float(self.gamma)


def _gamma_scale(X: Data, weight: FloatArray | None, team: Team) -> float:
    """Return 1 / (n_features · variance), of data without variance 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        variance = _variance(X, weight, team)
    if _SAFE_VARIANCE < variance < 1 / _SAFE_VARIANCE:
        return float(1.0 / X.shape[1] / variance)
    stored = X.data if sp.issparse(X) else X
    largest = team.max(float(max(stored.max(initial=0), -float(stored.min(initial=0)))))
    variance = _variance(X, weight, team, largest) if largest > 0 else 0.0
    if not variance > 0:
        return 1.0
    with np.errstate(over="ignore", under="ignore"):
        gamma = float(np.float64(1.0 / X.shape[1] / variance) / largest / largest)
        farthest = 4.0 * X.shape[1] * np.square(np.float64(largest))  # a bound of all distances
    if not gamma < np.inf or not farthest < np.inf:
        raise ValueError(
            f"gamma='scale' is the inverse of the features' variance, but X has values up to {largest:.3g}, "
            f"whose squares {'overflow' if largest > 1 else 'underflow'}. Scale the features, for example "
            "with sklearn.preprocessing.StandardScaler."
        )
    return gamma


def _variance(X: Data, weight: FloatArray | None, team: Team, unit: float = 1.0) -> float:
    """Return the variance of all entries / ``unit``, as in scikit-learn's gamma='scale', with weighted rows.

    Differences from the mean are squared, not the entries, because those would cancel if there is an offset.
    """
    d = X.shape[1]

    def average(of_rows: Callable[[Data], FloatArray]) -> float:
        parts = [of_rows(part if unit == 1.0 else part / unit) for part in in_float64_parts(X)]
        values = np.concatenate(parts or [np.empty(0)])
        total, count = (values, len(values)) if weight is None else (values * weight, weight.sum())
        return float(team.sum(total.sum()) / team.sum(count))

    def squares(part: Data) -> FloatArray:
        if not sp.issparse(part):
            return np.asarray(np.square(part - mean).mean(axis=1))
        stored = np.diff(part.indptr)
        entries = sp.csr_array((np.square(part.data - mean), part.indices, part.indptr), shape=part.shape)
        return np.asarray((np.ravel(entries.sum(axis=1)) + (d - stored) * (mean * mean)) / d)

    mean = average(lambda part: np.asarray(part.sum(axis=1)).ravel()) / d
    variance = average(squares)
    small = np.sqrt(variance) <= _MEAN_ROUNDING * abs(mean)
    return 0.0 if small and _is_constant(X, team) else variance


def _is_constant(X: Data, team: Team) -> bool:
    """Return whether all entries of the team's data are equal."""
    stored = X.data if sp.issparse(X) else X
    ends = (float(stored.min()), float(stored.max())) if stored.size else (np.inf, -np.inf)
    if stored.size < X.shape[0] * X.shape[1]:  # there are zeros that are not stored
        ends = min(ends[0], 0.0), max(ends[1], 0.0)
    return team.max(ends[1]) <= -team.max(-ends[0])


@dataclass(frozen=True)
class RBF(_Scaled):
    """K(a, b) = exp(-gamma ‖a - b‖²)."""

    native: ClassVar[str | None] = "rbf"
    bounded: ClassVar[bool] = True
    needs_bias: ClassVar[bool] = False

    def between(self, A: Data, B: Data) -> FloatArray:
        return _exp(-self._gamma * squared_distances(A, B))

    def diagonal(self, A: Data) -> FloatArray:
        return np.ones(A.shape[0])


@dataclass(frozen=True)
class Laplacian(_Scaled):
    """K(a, b) = exp(-gamma ‖a - b‖₁)."""

    native: ClassVar[str | None] = "laplacian"
    bounded: ClassVar[bool] = True
    needs_bias: ClassVar[bool] = False

    def between(self, A: Data, B: Data) -> FloatArray:
        return _exp(-self._gamma * manhattan_distances(short_indices(A), short_indices(B)))

    def diagonal(self, A: Data) -> FloatArray:
        return np.ones(A.shape[0])


@dataclass(frozen=True)
class Polynomial(_Scaled):
    """K(a, b) = (gamma a·b + coef0)^degree; with ``normalize`` divided by √(K(a, a) K(b, b)).

    Crammer & Singer use the normalised form on MNIST. A sample with K(a, a) = 0 has
    K(a, b) = 0 for every b.
    """

    native: ClassVar[str | None] = "poly"
    degree: int = 3
    coef0: float = 0.0
    normalize: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.degree, Integral) or self.degree < 0:
            raise ValueError(f"degree must be an integer >= 0, got {self.degree!r}.")
        _check_coef0(self.coef0)

    def between(self, A: Data, B: Data) -> FloatArray:
        values = (self._gamma * dots(A, B) + self.coef0) ** self.degree
        if self.normalize:
            values *= self.scale(A)[:, None] * self.scale(B)
        return np.asarray(values)

    def diagonal(self, A: Data) -> FloatArray:
        values = self._raw_diagonal(A)
        return np.asarray(values * self.scale(A) ** 2 if self.normalize else values)

    def scale(self, A: Data) -> FloatArray:
        """Return 1/√K(a, a) of the unnormalised kernel, or 0 if K(a, a) is not positive."""
        raw = self._raw_diagonal(A)
        return np.where(raw > 0, 1 / np.sqrt(np.where(raw > 0, raw, 1.0)), 0.0)

    def _raw_diagonal(self, A: Data) -> FloatArray:
        with np.errstate(over="ignore"):  # engines look at the result
            return np.asarray((self._gamma * sqnorms(A) + self.coef0) ** self.degree)


@dataclass(frozen=True)
class Sigmoid(_Scaled):
    """K(a, b) = tanh(gamma a·b + coef0). Not positive semidefinite in general."""

    native: ClassVar[str | None] = "sigmoid"
    bounded: ClassVar[bool] = True
    coef0: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_coef0(self.coef0)

    def between(self, A: Data, B: Data) -> FloatArray:
        return np.tanh(self._gamma * dots(A, B) + self.coef0)

    def diagonal(self, A: Data) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.tanh(self._gamma * sqnorms(A) + self.coef0)


def _check_coef0(coef0: float) -> None:
    if not isinstance(coef0, Real) or not np.isfinite(coef0):
        raise ValueError(f"coef0 must be a finite number, got {coef0!r}.")


@dataclass(frozen=True)
class Precomputed(Kernel):
    """X is the matrix of kernel values: n × n to fit, n_new × n to predict.

    Each process of a team has the rows of its own samples, with a column for each of the n samples of all.
    """

    pairwise: ClassVar[bool] = True

    def resolve(self, X: Data, weight: FloatArray | None = None, team: Team = SOLO) -> Self:
        if team.size == 1:
            check_symmetric(X, "The precomputed kernel")
        else:
            check_symmetric_shards(X, team, "The precomputed kernel")
        return self

    def between(self, A: Data, B: Data) -> FloatArray:
        raise TypeError("A precomputed kernel has values of training samples only, not of new pairs.")

    def diagonal(self, A: Data) -> FloatArray:
        return self.own_diagonal(A, 0)

    def own_diagonal(self, X: Data, first: int) -> FloatArray:
        return np.array(X.diagonal(first), dtype=np.float64)

    def block(self, X: Data, rows: IntArray, columns: IntArray | None = None) -> FloatArray:
        if not sp.issparse(X) and not X.flags.c_contiguous:
            X = X.T  # the same values, and rows are contiguous if columns were
        if columns is None:
            return dense(as_float64(X[rows]))
        return (
            dense(as_float64(X[rows][:, columns])) if sp.issparse(X) else as_float64(X[np.ix_(rows, columns)])
        )

    def support(self, X: Data, ids: IntArray) -> Any:
        return ids

    def against(self, X: Data, support: Any) -> FloatArray:
        return dense(as_float64(X[:, support]))


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """K(A, B) = func(A, B), an array of shape (rows of A, rows of B)."""

    func: Callable[[Any, Any], Any]

    def between(self, A: Data, B: Data) -> FloatArray:
        expected = (A.shape[0], B.shape[0])
        if 0 in expected:  # a process without samples, of which the function need not know
            return np.empty(expected)
        values = np.asarray(dense(self.func(floating(A), floating(B))), dtype=np.float64)
        if values.shape != expected:
            raise ValueError(
                f"The kernel callable returned an array of shape {values.shape} for inputs of "
                f"{expected[0]} and {expected[1]} rows; it must return shape {expected}."
            )
        if not np.isfinite(values).all():
            raise ValueError("The kernel callable returned NaN or infinite values; they must be finite.")
        return values

    def whole(self, X: Data) -> FloatArray:
        values = self.between(X, X)
        check_symmetric(values, "The kernel callable")
        return values

    def diagonal(self, A: Data) -> FloatArray:
        parts = (A[first : first + _DIAGONAL_ROWS] for first in range(0, A.shape[0], _DIAGONAL_ROWS))
        return np.concatenate([self.whole(part).diagonal() for part in parts] or [np.empty(0)])


_NAMED: dict[str, tuple[type[Kernel], tuple[str, ...]]] = {  # with the parameters that each has
    "linear": (Linear, ()),
    "rbf": (RBF, ("gamma",)),
    "poly": (Polynomial, ("gamma", "degree", "coef0")),
    "sigmoid": (Sigmoid, ("gamma", "coef0")),
    "laplacian": (Laplacian, ("gamma",)),
    "precomputed": (Precomputed, ()),
}


def make_kernel(kernel: str | Callable[[Any, Any], Any] | Kernel, **parameters: Any) -> Kernel:
    """Return the kernel object for scikit-learn's parameters ``degree``, ``gamma`` and ``coef0``."""
    if isinstance(kernel, Kernel):
        return kernel
    kind = kernel_class(kernel)
    if not isinstance(kernel, str):
        return CallableKernel(kernel)
    return kind(**{name: parameters[name] for name in _NAMED[kernel][1]})


def kernel_class(kernel: str | Callable[[Any, Any], Any] | Kernel) -> type[Kernel]:
    """Return the class of what ``make_kernel`` makes."""
    if isinstance(kernel, str) and kernel in _NAMED:
        return _NAMED[kernel][0]
    if isinstance(kernel, Kernel):
        return type(kernel)
    if callable(kernel):
        return CallableKernel
    raise ValueError(
        f"Unknown kernel {kernel!r}. Use one of {', '.join(map(repr, _NAMED))}, a callable, or an "
        "object from multimargin.kernels."
    )
