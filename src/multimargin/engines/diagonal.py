"""The diagonal of the dual's Hessian: K_ii, the offset, and the ridge of the machine."""

from __future__ import annotations

import numpy as np

from ..kernels import Kernel
from ..system.typing import Data, FloatArray
from ..system.warn import warn_user
from .base import Task

TINY_DIAGONAL = 1e-12  # K_ii is at least this share of the largest, unless it is zero


def kernel_diagonal(kernel: Kernel, X: Data) -> FloatArray:
    """K(x, x) of every sample, which must be numbers."""
    return _checked(kernel.diagonal(X))


def _checked(values: FloatArray) -> FloatArray:
    if not np.isfinite(values).all():
        raise ValueError(
            "The kernel overflows on some samples (K(x, x) is not finite). Scale the features or "
            "change the kernel's parameters."
        )
    return values


def exact_diagonal(task: Task, values: FloatArray) -> FloatArray:
    """The diagonal in float64, without values too small to divide by; ``values`` are K_ii."""
    diagonal = _checked(values + task.offset)
    if (values < 0).any():
        warn_user(
            "The kernel is not positive semidefinite: K(x, x) is negative for some samples. The solver "
            "finds a stationary point, and the duality gap proves nothing.",
            UserWarning,
        )
    least = TINY_DIAGONAL * task.team.max(float(diagonal.max(initial=0.0)))
    diagonal = np.where(diagonal > 0, np.maximum(diagonal, least), 0.0)
    ridge = task.problem.ridge(task.C)
    return diagonal if ridge is None else np.asarray(diagonal + ridge)
