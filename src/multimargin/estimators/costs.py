"""Cost factors of samples: class weights times sample weights."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from ..system.team import SOLO, Team
from ..system.typing import FloatArray, LabelArray

_LEAST = 1e-302  # a cost; a small share of it must still be a normal number


def check_weights(sample_weight: Any, n: int) -> FloatArray:
    """Return the sample weights as an array, ones if None."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weight.shape}.")
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight contains NaN or infinite values; weights must be finite and >= 0.")
    if (weight < 0).any():
        raise ValueError("sample_weight contains negative values; weights must be >= 0.")
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total):
        raise ValueError(
            f"The sum of the sample weights overflows (the largest is {weight.max():.3g}); divide them "
            "all by one number."
        )
    return weight


def class_factors(
    class_weight: dict[Any, float] | str | None,
    labels: np.ndarray,
    y: LabelArray,
    weight: FloatArray,
    team: Team = SOLO,
) -> FloatArray:
    """Return the factor of ``C`` of every class.

    "balanced" weighs classes inversely to their total sample weight, so that a row of weight 2 counts as
    two rows, and a row of weight 0 as none.
    """
    if class_weight is None:
        return np.ones(len(labels))
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = team.sum(np.bincount(y, weights=weight, minlength=len(labels)))
        present = totals > 0
        balanced = totals.sum() / (present.sum() * np.where(present, totals, 1.0))
        return np.where(present, balanced, 1.0)
    return _named_factors(class_weight, labels)


def _named_factors(class_weight: Any, labels: np.ndarray) -> FloatArray:
    """Return the factors that a dictionary of labels names; the others are 1, as in scikit-learn."""
    if not isinstance(class_weight, dict):
        raise ValueError(
            f"class_weight must be None, 'balanced' or a dict of one number per class, got {class_weight!r}."
        )
    known = labels.tolist()
    for label, factor in class_weight.items():
        number = isinstance(factor, Real) and not isinstance(factor, bool)
        if not number or not (0 < factor < np.inf):
            raise ValueError(
                f"class_weight must be a finite number > 0 for every class, got {factor!r} for {label!r}."
            )
    missing = [label for label in known if label not in class_weight]
    unknown = [label for label in class_weight if label not in known]
    if missing and unknown:  # perhaps a misspelt label; a class too many alone is none of this y
        raise ValueError(
            f"class_weight has a weight for {', '.join(map(repr, unknown))}, which is no label in y, and "
            f"none for {', '.join(map(repr, missing))}. The labels in y are {known}."
        )
    return np.array([class_weight.get(label, 1.0) for label in known], dtype=np.float64)


def sample_costs(C: float, factors: FloatArray, y: LabelArray, weight: FloatArray) -> FloatArray:
    """Return the cost of each sample: ``C`` times the factor of its class times its weight."""
    with np.errstate(over="ignore", under="ignore"):
        costs = np.asarray(float(C) * (factors[y] * weight), dtype=np.float64)
        total = costs.sum()
    if not (np.isfinite(total) and (costs >= _LEAST).all()):
        raise ValueError(
            f"C times class_weight times sample_weight must be at least {_LEAST:g}, and float64 must hold "
            f"its sum, but it is between {costs.min():.3g} and {costs.max():.3g}: C is {C:g}, class weights "
            f"go up to {factors.max():.3g}, sample weights from {weight.min():.3g} to {weight.max():.3g}."
        )
    return costs
