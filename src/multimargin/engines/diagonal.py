"""The diagonal of the dual's Hessian: K_ii, the offset, and the ridge of the machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import Kernel, Polynomial
from ..system.shard import Shard
from ..system.team import Team
from ..system.typing import Data, FloatArray
from ..system.warn import warn_user
from .base import Task

FLOAT32_LARGEST = 1e37  # kernel values in float32: a few of them must have a sum
TINY_DIAGONAL = 1e-12  # K_ii is at least this share of the largest, unless it is zero


def kernel_diagonal(kernel: Kernel, X: Data, team: Team) -> FloatArray:
    """K(x, x) of every sample that this process holds; those of all processes must be numbers."""
    first = Shard(X.shape[0], team).first
    return _checked(team.attempt(lambda: kernel.own_diagonal(X, first)), team)


def mean_log(values: FloatArray, team: Team, weight: FloatArray | None = None) -> float | None:
    """The mean logarithm of the positive values of all processes; None if there are none.

    A value of ``weight`` 2 counts as two. The exponential is their geometric mean: a typical K(x, x) if
    these differ by orders of magnitude.
    """
    positive = values > 0
    logs = np.log(values[positive])
    mine = (logs.sum(), len(logs)) if weight is None else (weight[positive] @ logs, weight[positive].sum())
    total, count = map(float, team.sum(mine))
    return total / count if count else None


def _checked(values: FloatArray, team: Team) -> FloatArray:
    if team.max(float(not np.isfinite(values).all())):
        raise ValueError(
            "The kernel overflows on some samples (K(x, x) is not finite). Scale the features or "
            "change the kernel's parameters."
        )
    return values


def check_range(task: Task, diagonal: FloatArray, dtype: np.dtype[Any]) -> None:
    """Raise if float32 is the type of kernel values, and cannot hold the diagonal, and so not them either.

    A normalised kernel is computed from values that are not.
    """
    kernel, team = task.kernel, task.team
    if dtype != np.float32:
        return
    largest = float(diagonal.max(initial=0.0))
    if isinstance(kernel, Polynomial) and kernel.normalize:
        raw = kernel.raw_diagonal(task.X)
        with np.errstate(divide="ignore", over="ignore"):
            largest = max(largest, float(raw.max(initial=0.0)), float((1.0 / raw[raw > 0]).max(initial=0.0)))
    largest = team.max(largest)
    if largest > FLOAT32_LARGEST:
        raise ValueError(
            f"dtype='float32' holds numbers up to {np.finfo(np.float32).max:.2g}, but kernel values, with "
            f"the bias and the machine's ridge, or what they are divided by go up to {largest:.2g}. Use "
            "dtype='auto' or 'float64', or scale the features."
        )


def exact_diagonal(task: Task, values: FloatArray) -> FloatArray:
    """The diagonal in float64, without values too small to divide by; ``values`` are K_ii."""
    team = task.team
    diagonal = _checked(values + task.offset, team)
    if team.max(float((values < 0).any())) and team.rank == 0:
        warn_user(
            "The kernel is not positive semidefinite: K(x, x) is negative for some samples. The solver "
            "finds a stationary point, and the duality gap proves nothing.",
            UserWarning,
        )
    least = TINY_DIAGONAL * team.max(float(diagonal.max(initial=0.0)))
    diagonal = np.where(diagonal > 0, np.maximum(diagonal, least), 0.0)
    ridge = task.problem.ridge(task.C)
    return diagonal if ridge is None else np.asarray(diagonal + ridge)
