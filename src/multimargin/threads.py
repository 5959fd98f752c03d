"""How many threads run, ours and BLAS's."""

from __future__ import annotations

import functools
import os
from contextlib import AbstractContextManager
from typing import Any

import joblib
import threadpoolctl

from . import _core

_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    # libgomp's threads do not survive a fork: a child that started a parallel region would hang.
    os.register_at_fork(after_in_child=_after_fork)


def effective_threads(n_threads: int | None) -> int:
    """The number of threads to use; None is every core this process may use."""
    if _forked or not _core.openmp():
        return 1
    if n_threads is None:
        return max(1, min(int(joblib.cpu_count()), _core.max_threads()))
    return n_threads


@functools.cache
def _controller() -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController()


def blas_threads(n: int) -> AbstractContextManager[Any]:
    """Limit every loaded BLAS to ``n`` threads inside the context."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=n, user_api="blas")
    return limit
