"""Scaling of features or rows, as plain numbers that a model file can store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp

from ..system.arithmetic import as_float64, in_float64_parts, sqnorms
from ..system.typing import Data, FloatArray

KINDS = ("minmax", "standard", "unit")


@dataclass(frozen=True, eq=False)
class Scaling:
    """How values are scaled: (x - offset) · factor, feature by feature; "unit" rows to length 1.

    =========== ==================================================== =======================================
    kind        dense X                                              sparse X
    =========== ==================================================== =======================================
    "minmax"    each feature to [0, 1]                               divided by its largest absolute value
    "standard"  each feature to mean 0 and variance 1                to variance 1; the mean stays
    "unit"      each row to Euclidean length 1                       the same
    =========== ==================================================== =======================================

    Sparse data have no offset, so that zeros stay zeros. A feature without spread is not stretched. Values of
    other data than those of ``fit`` may lie outside of [0, 1].

    Parameters
    ----------
    kind : str
        "minmax", "standard" or "unit".
    offset : ndarray of shape (n_features,) or None
        What is subtracted; None is nothing.
    factor : ndarray of shape (n_features,) or None
        What is multiplied by; None is nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from multimargin.datasets import Scaling
    >>> scaling = Scaling.fit("minmax", np.array([[0, 10], [4, 20]]))
    >>> scaling.apply(np.array([[1, 25]]))
    array([[0.25, 1.5 ]])
    """

    kind: str
    offset: FloatArray | None = None
    factor: FloatArray | None = None

    @classmethod
    def fit(cls, kind: str, X: Data) -> Self:
        """The scaling that suits the rows of ``X``.

        Parameters
        ----------
        kind : {"minmax", "standard", "unit"}
            What is wanted.
        X : {ndarray, scipy.sparse.csr_array} of shape (n_samples, n_features)
            The data that say how much.

        Returns
        -------
        scaling : Scaling
            To be applied to these and other data.
        """
        if kind not in KINDS:
            raise ValueError(f"Unknown scaling {kind!r}. Use one of {', '.join(map(repr, KINDS))}.")
        if kind == "unit":
            return cls(kind)
        if kind == "minmax":
            low, high = _limits(X)
            if sp.issparse(X):
                return cls(kind, None, _inverse(np.maximum(high, -low)))
            return cls(kind, low, _inverse(high - low))
        mean, deviation = _moments(X)
        return cls(kind, None if sp.issparse(X) else mean, _inverse(deviation))

    def apply(self, X: Data) -> Data:
        """``X`` scaled: float32 if X is, else float64. X itself is not changed.

        Parameters
        ----------
        X : {ndarray, scipy.sparse.csr_array} of shape (n_samples, n_features)
            Data with the features of those of ``fit``.

        Returns
        -------
        X : {ndarray, scipy.sparse.csr_array} of the same shape
            The scaled data.
        """
        if self.factor is not None and X.shape[1] != len(self.factor):
            raise ValueError(f"X has {X.shape[1]} features, and the scaling is for {len(self.factor)}.")
        if self.offset is not None and sp.issparse(X):
            raise ValueError("This scaling was made for dense data: its offset would fill sparse data.")
        dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        by = np.asarray(_inverse(np.sqrt(sqnorms(X)))[:, None] if self.kind == "unit" else self.factor)
        if sp.issparse(X):
            places = X.indices if self.kind != "unit" else np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
            values = np.multiply(X.data, np.ravel(by)[places], dtype=np.float64).astype(dtype)
            return sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
        scaled = X if self.offset is None else np.subtract(X, self.offset, dtype=np.float64)
        return np.multiply(scaled, by, dtype=np.float64).astype(dtype, copy=False)

    def undo(self, X: Data) -> Data | None:
        """Values as they were before ``apply``; None if it cannot be told, because rows lost their lengths.

        Parameters
        ----------
        X : {ndarray, scipy.sparse.csr_array} of shape (n_samples, n_features)
            Scaled data.

        Returns
        -------
        X : {ndarray, scipy.sparse.csr_array} of the same shape or None
            The data in float64. What rounding left of whole numbers is whole again.
        """
        if self.factor is None:
            return None
        if sp.issparse(X):
            values = _whole_again(X.data / self.factor[X.indices])
            return sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
        values = np.divide(X, self.factor, dtype=np.float64)
        return _whole_again(values if self.offset is None else values + self.offset)


def _whole_again(values: FloatArray) -> FloatArray:
    near = np.rint(values)
    return np.where(np.abs(values - near) <= 1e-9 * np.maximum(1.0, np.abs(near)), near, values)


def _inverse(size: FloatArray) -> FloatArray:
    """1 / size, or 1 if there is no size."""
    return np.divide(1.0, size, out=np.ones_like(size), where=size > 0)


def _limits(X: Data) -> tuple[FloatArray, FloatArray]:
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.toarray(), high.toarray()
    return np.asarray(low, dtype=np.float64).ravel(), np.asarray(high, dtype=np.float64).ravel()


def _moments(X: Data) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of every feature, in two passes over float64 values."""
    n = X.shape[0]
    mean = sum(np.asarray(part.sum(axis=0), dtype=np.float64).ravel() for part in in_float64_parts(X)) / n
    if sp.issparse(X):
        rows = X.tocsc()
        counts = np.diff(rows.indptr)
        deviations = as_float64(rows.data) - np.repeat(mean, counts)
        at = np.repeat(np.arange(X.shape[1]), counts)
        squares = np.bincount(at, deviations**2, minlength=X.shape[1]) + (n - counts) * mean**2
    else:
        squares = sum(((part - mean) ** 2).sum(axis=0) for part in in_float64_parts(X))
    deviation = np.sqrt(np.asarray(squares) / n)
    # What rounding leaves of a constant feature is no spread.
    noise = 10 * np.finfo(np.float64).eps * np.abs(mean)
    return np.asarray(mean), np.where(deviation > noise, deviation, 0.0)
