"""How exact a certificate can be: float64 rounds the scores that it is made of."""

from __future__ import annotations

import numpy as np

from ..system.typing import FloatArray, IntArray
from .base import Task


def score_rounding(task: Task, ids: IntArray, coef: FloatArray) -> float:
    """About how much float64 rounds the scores Σ_j K(x_i, x_j) coef_j of the support vectors ``ids``.

    K(x_i, x_j) is rounded relative to √(K_ii K_jj), which is what its terms can add up to, and roundings of
    different support vectors add up as random numbers do. A callable's own rounding is not known: 0.
    """
    kernel = task.kernel
    if not len(ids) or (kernel.native is None and not kernel.pairwise):
        return 0.0
    diagonal = kernel.diagonal(task.X)[ids] if kernel.pairwise else kernel.diagonal(task.X[ids])
    diagonal = np.abs(diagonal + task.offset)
    spread = np.sqrt((diagonal[:, None] * np.square(coef)).sum(axis=0).max())
    return float(np.finfo(np.float64).eps * np.sqrt(diagonal.max()) * spread)
