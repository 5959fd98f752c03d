"""A dual that has no minimum is noticed by its value."""

from __future__ import annotations

import math

from .base import Task

# The dual is at least -Σ_i C_i if the kernel is positive semidefinite; so many times less is no rounding,
# whatever a bias adds.
_FAR_BELOW = 1e12
_TINY = 1e-100  # a cost, or its share of the largest, whose square is near the smallest float64


def check_dual(task: Task, dual: float, total_cost: float) -> None:
    """Raise if no positive semidefinite kernel gives such a value of the dual to a machine without bounds."""
    unbounded = task.problem.feasible_set == "cone"
    if math.isfinite(dual) and not (unbounded and dual < -_FAR_BELOW * total_cost):
        return
    least, most = (
        -task.team.max(-float(task.C.min(initial=math.inf))),
        task.team.max(float(task.C.max(initial=0.0))),
    )
    if unbounded and (most < _TINY or least < _TINY * most):
        raise ValueError(
            f"machine={task.problem.name!r} divides coefficients by costs, and float64 cannot hold what "
            f"follows from costs from {least:.2g} to {most:.2g} (C times weights). Take a larger C, or "
            "weights that differ less."
        )
    if unbounded:
        raise ValueError(
            f"machine={task.problem.name!r} needs a positive semidefinite kernel. This kernel is not, so the "
            "dual has no minimum. Use another machine, or change the kernel or its parameters."
        )
    raise ValueError("The kernel gave NaN or infinite values. Scale the features or change its parameters.")
