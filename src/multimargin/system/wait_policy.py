"""Load the native module with OpenMP threads that sleep, instead of spinning, while they wait.

A spinning barrier becomes very slow when other processes use the same cores. OpenMP reads the policy once,
when its library is loaded, so the variable is set for the import only. A value set by the user is left alone.
"""

from __future__ import annotations

import os

_NAME = "OMP_WAIT_POLICY"

if _NAME in os.environ:
    from .. import _core
else:
    os.environ[_NAME] = "passive"
    try:
        from .. import _core  # noqa: F401
    finally:
        del os.environ[_NAME]
