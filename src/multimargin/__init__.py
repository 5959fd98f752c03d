"""multimargin: exact multiclass kernel SVMs with a certificate of optimality."""

from __future__ import annotations

from importlib.metadata import version

from . import _wait_policy, kernels  # noqa: F401  (_wait_policy loads the native module)
from ._versions import show_versions
from .decomposition import Decomposition
from .estimators import KernelSVC
from .linear_svc import LinearSVC
from .solution import Solution, Status, Trace

__version__ = version("multimargin")

__all__ = [
    "Decomposition",
    "KernelSVC",
    "LinearSVC",
    "Solution",
    "Status",
    "Trace",
    "kernels",
    "show_versions",
]
