"""Points whose class sums Σ_i α_i are zero, as a machine with a free bias needs them.

What is left of the sums is moved on to the variables off their bounds: δ_i = spread(room_i, μ), with the
μ (m,) of Σ_i δ_i = -Σ_i α_i. The certificate of such a point is a true duality gap.
"""

from __future__ import annotations

import numpy as np

from ..system.team import Team
from ..system.typing import FloatArray, LabelArray
from .base import Problem

BALANCED = 1e-14  # of Σ_i C_i: class sums that count as 0
_MOST_APART, _LARGEST = 0.5, 0.99  # entries of μ; with 1 a variable would go to its bound
_MOST_PROJECTIONS = 30


def balanced(
    problem: Problem, alpha: FloatArray, y: LabelArray, C: FloatArray, team: Team
) -> FloatArray | None:
    """A point near ``alpha`` with zero sums; None if the variables off their bounds have no room for that."""
    alpha = _without_empty_classes(problem, alpha.copy(), y, team)
    room = problem.room(alpha, y, C)
    ids = np.flatnonzero(room.any(axis=1))
    room, own = room[ids], y[ids]
    sums = team.sum(alpha.sum(axis=0))
    rounding = max(1e-6 * np.abs(sums).max(), BALANCED * float(team.sum(C.sum())))
    units: FloatArray = np.eye(alpha.shape[1])
    columns = team.sum(np.stack([problem.spread(room, unit, own).sum(axis=0) for unit in units], axis=1))
    for _ in range(2):  # once more for the rounding of the first
        sums = team.sum(alpha.sum(axis=0))
        mu = team.agree(np.asarray(np.linalg.lstsq(columns, -sums, rcond=1e-10)[0], dtype=np.float64))
        delta = problem.spread(room, mu, own)
        left = np.abs(sums + team.sum(delta.sum(axis=0))).max()
        if np.ptp(mu) > _MOST_APART or np.abs(mu).max() > _LARGEST or left > rounding:
            return None
        alpha[ids] += delta
    return alpha


def _without_empty_classes(problem: Problem, alpha: FloatArray, y: LabelArray, team: Team) -> FloatArray:
    """Take all weight off classes that no sample has: if α_r ≤ 0 there, zero sums leave no other choice."""
    empty = team.sum(np.bincount(y, minlength=problem.m)) == 0
    if problem.one_sided and empty.any():
        if problem.coupled:
            alpha[np.arange(len(y)), y] += alpha[:, empty].sum(axis=1)
        alpha[:, empty] = 0.0
    return alpha


def with_zero_sums(
    problem: Problem, alpha: FloatArray, y: LabelArray, C: FloatArray, team: Team
) -> FloatArray:
    """A feasible point with zero sums, from anywhere.

    If the variables off their bounds have no room for that, projections on the class sums and on the rows'
    sets in turn lead to a point where they have. If that does not help either, it is zero.
    """
    for _ in range(_MOST_PROJECTIONS):
        found = balanced(problem, alpha, y, C, team)
        if found is not None:
            return found
        ids = np.flatnonzero(alpha.any(axis=1))
        excess = team.sum(alpha[ids].sum(axis=0)) / team.sum(len(ids))
        alpha = alpha.copy()
        alpha[ids] = problem.project(alpha[ids] - excess, y[ids], C[ids])
    return np.zeros_like(alpha)
