"""Coefficients of kernels: which are allowed, and the one that follows from the spread of the data."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real

import numpy as np
import scipy.sparse as sp

from .arithmetic import in_float64_parts
from .device_data import DeviceData, Moments
from .team import Team
from .typing import Data, FloatArray

# Entries whose variance is between this and its inverse have squares that neither overflow nor underflow.
_SAFE_VARIANCE = 1e-280
_MEAN_ROUNDING = 1e-12  # share of the mean below which a deviation may be the rounding of the mean alone


def check_gamma(gamma: float | str) -> None:
    """Raise ``ValueError`` unless it is a coefficient or the name of one."""
    if isinstance(gamma, str):
        if gamma not in ("scale", "auto"):
            raise ValueError(f"gamma must be 'scale', 'auto' or a positive number, got {gamma!r}.")
    elif not isinstance(gamma, Real) or not (0 < gamma < np.inf):
        raise ValueError(f"gamma must be 'scale', 'auto' or a positive finite number, got {gamma!r}.")


def inverse_variance(X: Data, weight: FloatArray | None, team: Team) -> float:
    """Return 1 / (n_features · variance), what gamma="scale" stands for; of data without variance 1."""
    with np.errstate(over="ignore", invalid="ignore"):
        variance = _variance(X, weight, team)
    if _SAFE_VARIANCE < variance < 1 / _SAFE_VARIANCE:
        return float(1.0 / X.shape[1] / variance)
    low, high = _range(X)
    largest = team.max(max(high, -low))
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
    mean, variance = X.moments(weight, unit) if isinstance(X, DeviceData) else _moments(X, weight, team, unit)
    small = np.sqrt(variance) <= _MEAN_ROUNDING * abs(mean)
    return 0.0 if small and _is_constant(X, team) else variance


def _moments(X: Data, weight: FloatArray | None, team: Team, unit: float) -> Moments:
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
    return Moments(mean, average(squares))


def _range(X: Data) -> tuple[float, float]:
    """Return the smallest and the largest of the stored entries and 0."""
    if isinstance(X, DeviceData):
        low, high = X.range()
        return min(low, 0.0), max(high, 0.0)
    stored = X.data if sp.issparse(X) else X
    return float(stored.min(initial=0)), float(stored.max(initial=0))


def _is_constant(X: Data, team: Team) -> bool:
    """Return whether all entries of the team's data are equal."""
    if isinstance(X, DeviceData):
        return X.range()[0] == X.range()[1]
    stored = X.data if sp.issparse(X) else X
    ends = (float(stored.min()), float(stored.max())) if stored.size else (np.inf, -np.inf)
    if stored.size < X.shape[0] * X.shape[1]:  # there are zeros that are not stored
        ends = min(ends[0], 0.0), max(ends[1], 0.0)
    return team.max(ends[1]) <= -team.max(-ends[0])
