"""Kernels, functions of two samples, as small value objects, each with its definition in NumPy.

An engine with native code for a kernel reads its ``native`` name and its parameters. Callables, precomputed
matrices and the numpy engine use the methods below, in float64. The native code is tested against them.
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
    checked_values,
    dense,
    dots,
    floating,
    short_indices,
    sqnorms,
    squared_distances,
)
from .system.device_data import DeviceData
from .system.spread import check_gamma, inverse_variance
from .system.team import SOLO, Team
from .system.typing import Data, FloatArray, IntArray

__all__ = ["RBF", "CallableKernel", "Kernel", "Laplacian", "Linear", "Polynomial", "Precomputed", "Sigmoid"]

Gamma = float | str
_MOST_DEGREE = 2**31 - 1  # of a polynomial: what native code can hold
_NORMAL = np.finfo(np.float64).tiny  # smaller positive numbers have lost digits
_DIAGONAL_ROWS = 16  # of a callable's diagonal at a time: few calls, and few values beside the diagonal


def _exp(values: FloatArray) -> FloatArray:
    return np.exp(values, out=values)


@dataclass(frozen=True)
class Kernel(ABC):
    """Base of all kernels.

    Training uses ``diagonal`` and ``block``, prediction uses ``support`` and ``against``. A new kernel
    defines ``between`` and ``diagonal``; the others follow from these two.

    Examples
    --------
    >>> class Constant(Kernel):
    ...     between = lambda self, A, B: np.ones((A.shape[0], B.shape[0]))
    ...     diagonal = lambda self, A: np.ones(A.shape[0])
    >>> Constant().whole(np.zeros((1, 5)))
    array([[1.]])
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
    """K(a, b) = a·b.

    Examples
    --------
    >>> Linear().between(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    native: ClassVar[str | None] = "linear"

    def between(self, A: Data, B: Data) -> FloatArray:
        return dots(A, B)

    def diagonal(self, A: Data) -> FloatArray:
        return sqnorms(A)


@dataclass(frozen=True)
class _Scaled(Kernel):
    gamma: Gamma = "scale"

    def __post_init__(self) -> None:
        check_gamma(self.gamma)

    def resolve(self, X: Data, weight: FloatArray | None = None, team: Team = SOLO) -> Self:
        if not isinstance(self.gamma, str):
            return replace(self, gamma=float(self.gamma))
        scale = self.gamma == "scale"
        return replace(self, gamma=inverse_variance(X, weight, team) if scale else 1.0 / X.shape[1])

    @property
    def _gamma(self) -> float:
        if isinstance(self.gamma, str):
            raise ValueError("Call resolve(X) before evaluating a kernel whose gamma is 'scale' or 'auto'.")
        return float(self.gamma)


@dataclass(frozen=True)
class RBF(_Scaled):
    """K(a, b) = exp(-gamma ‖a - b‖²).

    Parameters
    ----------
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient; :class:`~multimargin.KernelSVC` says what the words stand for.

    Examples
    --------
    >>> RBF(gamma=0.25).between(np.array([[1.0, 2.0]]), np.array([[1.0, 4.0]]))
    array([[0.36787944]])
    """

    native: ClassVar[str | None] = "rbf"
    bounded: ClassVar[bool] = True
    needs_bias: ClassVar[bool] = False

    def between(self, A: Data, B: Data) -> FloatArray:
        return _exp(-self._gamma * squared_distances(A, B))

    def diagonal(self, A: Data) -> FloatArray:
        return np.ones(A.shape[0])


@dataclass(frozen=True)
class Laplacian(_Scaled):
    """K(a, b) = exp(-gamma ‖a - b‖₁).

    Parameters
    ----------
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient; :class:`~multimargin.KernelSVC` says what the words stand for.

    Examples
    --------
    >>> Laplacian(gamma=0.25).between(np.array([[1.0, 2.0]]), np.array([[1.0, 4.0]]))
    array([[0.60653066]])
    """

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

    Parameters
    ----------
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient; :class:`~multimargin.KernelSVC` says what the words stand for.
    degree, coef0, normalize : int, float, bool
        As in the formula; 3, 0.0 and False by default.

    Examples
    --------
    >>> Polynomial(gamma=1.0, degree=2).between(np.array([[1.0, 2.0]]), np.array([[1.0, 4.0]]))
    array([[81.]])
    """

    native: ClassVar[str | None] = "poly"
    degree: int = 3
    coef0: float = 0.0
    normalize: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.degree, Integral) or not 0 <= self.degree <= _MOST_DEGREE:
            raise ValueError(f"degree must be an integer >= 0, at most {_MOST_DEGREE}, got {self.degree!r}.")
        _check_coef0(self.coef0)

    def between(self, A: Data, B: Data) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):  # engines look at the result
            values = (self._gamma * dots(A, B) + self.coef0) ** self.degree
            if self.normalize:
                values *= self.scale(A)[:, None] * self.scale(B)
        return np.asarray(values)

    def diagonal(self, A: Data) -> FloatArray:
        values = self.raw_diagonal(A)
        with np.errstate(over="ignore", invalid="ignore"):  # NaN if a value overflows
            ones = values / np.maximum(values, _NORMAL)
        return np.where(values < _NORMAL, 0.0, ones) if self.normalize else values

    def scale(self, A: Data) -> FloatArray:
        """Return 1/√K(a, a) of the unnormalised kernel, or 0 if K(a, a) is not positive or not normal."""
        raw = self.raw_diagonal(A)
        return np.where(raw >= _NORMAL, 1 / np.sqrt(np.maximum(raw, _NORMAL)), 0.0)

    def raw_diagonal(self, A: Data) -> FloatArray:
        with np.errstate(over="ignore"):  # engines look at the result
            return np.asarray((self._gamma * sqnorms(A) + self.coef0) ** self.degree)


@dataclass(frozen=True)
class Sigmoid(_Scaled):
    """K(a, b) = tanh(gamma a·b + coef0). Not positive semidefinite in general.

    Parameters
    ----------
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient; :class:`~multimargin.KernelSVC` says what the words stand for.
    coef0 : float, default=0.0

    Examples
    --------
    >>> Sigmoid(gamma=0.1).between(np.array([[1.0, 2.0]]), np.array([[1.0, 2.0]]))
    array([[0.46211716]])
    """

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

    Examples
    --------
    >>> Precomputed().diagonal(np.array([[1.0, 0.5], [0.5, 2.0]]))
    array([1., 2.])
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
        here = X.diagonal() if isinstance(X, DeviceData) else X.diagonal(first)
        return np.array(here, dtype=np.float64)

    def block(self, X: Data, rows: IntArray, columns: IntArray | None = None) -> FloatArray:
        if isinstance(X, DeviceData):
            return X.block(rows, columns)
        if not sp.issparse(X) and not X.flags.c_contiguous:
            X = X.T  # the same values, and rows are contiguous if columns were
        if columns is not None and not sp.issparse(X):
            return np.asarray(as_float64(X[np.ix_(rows, columns)]))
        return dense(as_float64(X[rows] if columns is None else X[rows][:, columns]))

    def support(self, X: Data, ids: IntArray) -> Any:
        return ids

    def against(self, X: Data, support: Any) -> FloatArray:
        return dense(as_float64(X[:, support]))


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """K(A, B) = func(A, B), an array of shape (rows of A, rows of B).

    Parameters
    ----------
    func : callable

    Examples
    --------
    >>> CallableKernel(lambda A, B: A @ B.T).diagonal(np.array([[1.0, 2.0]]))
    array([5.])
    """

    func: Callable[[Any, Any], Any]

    def between(self, A: Data, B: Data) -> FloatArray:
        expected = (A.shape[0], B.shape[0])
        if 0 in expected:  # a process without samples, of which the function need not know
            return np.empty(expected)
        return checked_values(dense(self.func(floating(A), floating(B))), expected)

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
    if isinstance(kernel, Kernel) or callable(kernel):
        return type(kernel) if isinstance(kernel, Kernel) else CallableKernel
    raise ValueError(
        f"Unknown kernel {kernel!r}. Use one of {', '.join(map(repr, _NAMED))}, a callable, or an object "
        "from multimargin.kernels."
    )
