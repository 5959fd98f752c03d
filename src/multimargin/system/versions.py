"""Facts for a bug report: versions, and how the native module was built."""

import platform
import sys
from importlib.metadata import version

from multimargin import _core

DOCUMENTATION = "https://github.com/multimargin/multimargin/blob/main/README.md"
_PACKAGES = ("multimargin", "numpy", "scipy", "scikit-learn", "threadpoolctl")


def show_versions() -> None:
    """Print the versions of multimargin and its dependencies, and how the native module was built.

    Examples
    --------
    >>> from multimargin import show_versions
    >>> show_versions()  # doctest: +ELLIPSIS
             python: 3...
           platform: ...
        multimargin: ...
              numpy: ...
              scipy: ...
       scikit-learn: ...
      threadpoolctl: ...
    instruction set: ...
            threads: ...
    """
    facts = {"python": sys.version.split()[0], "platform": platform.platform()}
    facts |= {name: version(name) for name in _PACKAGES}
    facts["instruction set"] = _core.instruction_set()
    facts["threads"] = _threads()
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:>{width}}: {value}")


def _threads() -> str:
    if not _core.openmp():
        return "built without OpenMP: one thread"
    return f"OpenMP, at most {_core.max_threads()}"
