"""How exact a certificate can be: float64 rounds the scores that it is made of."""

from __future__ import annotations

import numpy as np

from ..system.shard import Shard
from ..system.typing import FloatArray, IntArray
from .base import Task

_ROWS = 512  # of a kernel matrix that are compared with its columns at a time


def score_rounding(task: Task, ids: IntArray, coef: FloatArray) -> float:
    """About how much float64 rounds the scores Σ_j K(x_i, x_j) coef_j of the support vectors ``ids``.

    K(x_i, x_j) is rounded relative to √(K_ii K_jj), which is what its terms can add up to, and roundings of
    different support vectors add up as random numbers do. A callable's own rounding is not known: 0.

    Every process of a team gives all support vectors, and looks at those that it holds.
    """
    kernel, X, team = task.kernel, task.X, task.team
    if not len(ids) or (kernel.native is None and not kernel.pairwise):
        return 0.0
    shard = Shard(X.shape[0], team)
    places, rows = shard.mine(ids)
    values = kernel.own_diagonal(X, shard.first)[rows] if kernel.pairwise else kernel.diagonal(X[rows])
    diagonal = np.abs(values + task.offset)
    spread = np.sqrt(team.sum((diagonal[:, None] * np.square(coef[places])).sum(axis=0)).max())
    largest = team.max(float(diagonal.max(initial=0.0)))
    return float(np.finfo(np.float64).eps * np.sqrt(largest) * spread)


def score_asymmetry(task: Task, ids: IntArray, coef: FloatArray) -> float:
    """How much the scores of the support vectors differ between a matrix of kernel values and its transpose.

    A fit reads rows of the matrix, and a prediction reads columns. It is 0 for other kernels, and on several
    processes, which do not hold both.
    """
    kernel, X = task.kernel, task.X
    if not (kernel.pairwise and len(ids) and task.team.size == 1):
        return 0.0
    worst = 0.0
    for first in range(0, len(ids), _ROWS):
        part = ids[first : first + _ROWS]
        difference = kernel.block(X, part, ids) - kernel.block(X, ids, part).T
        worst = max(worst, float(np.abs(difference @ coef).max()))
    return worst
