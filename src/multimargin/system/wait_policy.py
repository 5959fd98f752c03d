"""Load the native module with OpenMP threads that sleep, not spin, while they wait.

Spinning barriers collapse when cores are shared with other processes. The policy is read once, when the
OpenMP library is loaded, so it is set just for the import and then put back. A user's own choice wins.
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
