"""multimargin: exact multiclass kernel SVMs with a certificate of optimality.

Public names are imported when they are first used, so that ``multimargin --help`` need not wait for NumPy,
SciPy and scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .system import wait_policy  # noqa: F401  (first: it loads the native module)

# isort: split

from . import _old_paths  # noqa: F401

if TYPE_CHECKING:
    from . import datasets, kernels
    from .estimators.kernel_svc import KernelSVC
    from .estimators.kernel_svc_cv import KernelSVCCV
    from .estimators.linear_svc import LinearSVC
    from .estimators.linear_svc_cv import LinearSVCCV
    from .estimators.loading import load
    from .estimators.path import regularization_path
    from .estimators.protocol import papers_protocol
    from .methods.decomposition import Decomposition
    from .solution import Solution, Status, Trace
    from .system.versions import show_versions

    __version__: str

__all__ = [
    "Decomposition",
    "KernelSVC",
    "KernelSVCCV",
    "LinearSVC",
    "LinearSVCCV",
    "Solution",
    "Status",
    "Trace",
    "datasets",
    "kernels",
    "load",
    "papers_protocol",
    "regularization_path",
    "show_versions",
]

_HOMES = {
    "Decomposition": "methods.decomposition",
    "KernelSVC": "estimators.kernel_svc",
    "KernelSVCCV": "estimators.kernel_svc_cv",
    "LinearSVC": "estimators.linear_svc",
    "Solution": "solution",
    "Status": "solution",
    "Trace": "solution",
    "LinearSVCCV": "estimators.linear_svc_cv",
    "load": "estimators.loading",
    "papers_protocol": "estimators.protocol",
    "regularization_path": "estimators.path",
    "show_versions": "system.versions",
}
_MODULES = ("datasets", "engines", "estimators", "inner", "kernels", "methods", "solution", "working_set")


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    elif name in _MODULES:
        value = import_module(f".{name}", __name__)
    elif name == "__version__":
        from importlib.metadata import version

        value = version("multimargin")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
