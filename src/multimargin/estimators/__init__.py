"""The estimators: validate, solve, set attributes."""

from __future__ import annotations

from .kernel_svc import KernelSVC
from .linear_svc import LinearSVC

__all__ = ["KernelSVC", "LinearSVC"]
