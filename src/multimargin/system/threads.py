"""The number of threads that run, in our own code and in BLAS."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager

import joblib
import threadpoolctl

from .. import _core

_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    # libgomp's threads do not survive a fork: a parallel region in the child would hang.
    os.register_at_fork(after_in_child=_after_fork)


def effective_threads(n_threads: int | None) -> int:
    """Return the number of threads to use; None means every core that this process may use."""
    if _forked or not _core.openmp():
        return 1
    if n_threads is None:
        affinity = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        return max(1, min(_cores(affinity, os.environ.get("LOKY_MAX_CPU_COUNT")), _core.max_threads()))
    return n_threads


@functools.lru_cache(maxsize=1)
def _cores(affinity: frozenset[int] | None, most: str | None) -> int:
    """Return joblib's count. It reads files, so it is cached until one of the arguments changes."""
    return int(joblib.cpu_count())


@functools.cache
def _blas_libraries() -> list[threadpoolctl.LibController]:
    return list(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def blas_threads(n: int) -> Iterator[None]:
    """Limit every loaded BLAS to ``n`` threads inside the context."""
    changed = [(blas, count) for blas in _blas_libraries() if (count := blas.get_num_threads()) != n]
    for blas, _ in changed:
        blas.set_num_threads(n)
    try:
        yield
    finally:
        for blas, count in changed:
            if count is not None:
                blas.set_num_threads(count)
