"""Cost factors of samples: class weights times sample weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from ..system.team import SOLO, Team
from ..system.typing import FloatArray, LabelArray


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
    return weight


def sample_costs(
    class_weight: dict[Any, float] | str | None,
    labels: np.ndarray,
    y: LabelArray,
    weight: FloatArray,
    team: Team = SOLO,
) -> FloatArray:
    """Return class weight times sample weight for each sample.

    "balanced" weighs classes inversely to their total sample weight, so that a row of weight 2 counts as
    two rows.
    """
    if class_weight is None:
        return weight.astype(np.float64)
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = team.sum(np.bincount(y, weights=weight, minlength=len(labels)))
        factors = team.sum(weight.sum()) / (len(labels) * totals)
    else:
        factors = compute_class_weight(class_weight, classes=labels, y=labels[y])
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise ValueError(f"class_weight must give every class a finite weight > 0, got {class_weight!r}.")
    return np.asarray(factors[y] * weight, dtype=np.float64)
