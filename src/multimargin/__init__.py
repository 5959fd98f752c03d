"""multimargin: exact multiclass kernel SVMs with a certificate of optimality."""

from __future__ import annotations

from importlib.metadata import version

from .system import wait_policy  # noqa: F401  (first: it loads the native module)

# isort: split

from . import _old_paths, kernels  # noqa: F401
from .estimators.kernel_svc import KernelSVC
from .estimators.kernel_svc_cv import KernelSVCCV
from .estimators.linear_svc import LinearSVC
from .estimators.linear_svc_cv import LinearSVCCV
from .estimators.path import regularization_path
from .estimators.protocol import papers_protocol
from .methods.decomposition import Decomposition
from .solution import Solution, Status, Trace
from .system.versions import show_versions

__version__ = version("multimargin")

__all__ = [
    "Decomposition",
    "KernelSVC",
    "KernelSVCCV",
    "LinearSVC",
    "LinearSVCCV",
    "Solution",
    "Status",
    "Trace",
    "kernels",
    "papers_protocol",
    "regularization_path",
    "show_versions",
]
