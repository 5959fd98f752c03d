"""The estimators: validate, solve, set attributes."""

from __future__ import annotations

from .kernel_svc import KernelSVC
from .kernel_svc_cv import KernelSVCCV
from .linear_svc import LinearSVC

__all__ = ["KernelSVC", "KernelSVCCV", "LinearSVC"]
