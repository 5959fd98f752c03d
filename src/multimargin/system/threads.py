"""The number of threads that run, in our own code and in BLAS."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Sequence

import joblib
import threadpoolctl

from .. import _core
from .warn import warn_user

_FORK_ADVICE = (
    "n_threads={} runs on one thread here: this process was forked from one whose OpenMP threads could not "
    "be ended, and it would wait for them forever. Start processes by 'spawn', 'forkserver' or joblib's "
    "loky, or set n_threads=1."
)


class _Forks:
    """OpenMP's threads do not survive a fork, and a parallel region in the child would wait for them.

    So the forking thread ends its own before. Parent and child start new ones when they need them.
    """

    ended = True  # whether the last fork could end them
    one_thread = False  # whether this process must do without them

    def before(self) -> None:
        self.ended = _core.end_threads()

    def in_child(self) -> None:
        self.one_thread = self.one_thread or not self.ended


_forks = _Forks()


def own_cores() -> frozenset[int]:
    """Return the cores that this process may use; a launcher of processes may have bound it to some."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def share_of(cores: frozenset[int], all_cores: Sequence[frozenset[int]]) -> float:
    """Return the fair share of ``cores`` if each process may use one of ``all_cores``, of which it is one."""
    return sum(1 / sum(core in other for other in all_cores) for core in cores) / len(cores)


def effective_threads(n_threads: int | None, core_share: float = 1.0) -> int:
    """Return the number of threads to use; None means this ``core_share`` of the cores it may use."""
    if _forks.one_thread and n_threads is not None and n_threads > 1:
        warn_user(_FORK_ADVICE.format(n_threads), RuntimeWarning)
    if _forks.one_thread or not _core.openmp():
        return 1
    if n_threads is None:
        cores = int(_cores(own_cores(), os.environ.get("LOKY_MAX_CPU_COUNT")) * core_share + 1e-9)
        return max(1, min(cores, _core.max_threads()))
    return n_threads


@functools.lru_cache(maxsize=1)
def _cores(affinity: frozenset[int], most: str | None) -> int:
    """Return joblib's count. It reads files, so it is cached until one of the arguments changes."""
    return int(joblib.cpu_count())


class _BlasLimits:
    """The limits in force. Most BLAS have one number of threads per process, whatever Python threads ask for.

    Each Python thread asks for its innermost limit, and BLAS gets the smallest of these. When the last limit
    ends, BLAS gets back the number that it had when the first one came.

    Ctrl-C may end any of these methods anywhere. So a limit is forgotten only after BLAS has its threads
    back, and ``leave`` may be called again.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a limit may end while the garbage of its own thread is collected
        self._asked: dict[
            int, tuple[int, int]
        ] = {}  # Python thread and number of each limit, the last one last
        self._before: list[int | None] = []  # of each shared library

    @functools.cached_property
    def _libraries(self) -> list[threadpoolctl.LibController]:
        return list(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)

    @functools.cached_property
    def shared(self) -> list[threadpoolctl.LibController]:
        """Libraries with one number of threads per process."""
        return [blas for blas in self._libraries if blas not in self.per_thread]

    @functools.cached_property
    def per_thread(self) -> list[threadpoolctl.LibController]:
        """Libraries with one number for each Python thread."""
        return [blas for blas in self._libraries if getattr(blas, "threading_layer", None) == "openmp"]

    def enter(self, key: int, n: int) -> None:
        with self._lock:
            first = not self._asked
            if first:
                self._before = [blas.get_num_threads() for blas in self.shared]
            self._asked[key] = threading.get_ident(), n
            if not first or any(before != n for before in self._before):
                self._apply()

    def leave(self, key: int) -> None:
        with self._lock:
            if key in self._asked:
                self._apply(without=key)
                del self._asked[key]

    def _apply(self, without: int | None = None) -> None:
        """Give BLAS the smallest limit, of all or all but one."""
        limit = -1
        while limit != (limit := self._smallest(without)):  # a limit may end meanwhile, as garbage
            for blas, before in zip(self.shared, self._before, strict=True):
                _set_threads(blas, limit or before)

    def _smallest(self, without: int | None) -> int:
        """The smallest of the threads' innermost limits; 0 if there is none."""
        innermost = {thread: n for key, (thread, n) in list(self._asked.items()) if key != without}
        return min(innermost.values(), default=0)

    def in_child(self) -> None:
        """After a fork there is one thread; another may have held the lock."""
        self._lock = threading.RLock()
        if self._asked:
            me = threading.get_ident()
            self._asked = {key: asked for key, asked in self._asked.items() if asked[0] == me}
            self._apply()


def _set_threads(blas: threadpoolctl.LibController, n: int | None) -> None:
    if n is None or blas.get_num_threads() == n:
        return
    # From version 3.8 on, threadpoolctl ignores all threads but the one that was first to set a number.
    give_up_control = getattr(blas, "clear_controlling_thread", lambda force: None)
    give_up_control(force=True)
    blas.set_num_threads(n)
    give_up_control(force=True)


_blas_limits = _BlasLimits()


class blas_threads:  # noqa: N801  (used like a function)
    """Limit every BLAS to ``n`` threads inside the context, or to fewer if another thread asks for that.

    An interrupt between the beginning of the context and its first statement, or within its end, leaves the
    limit in force until the object is gone: with the traceback of the interrupt.
    """

    _is_over = True  # or has not begun

    def __init__(self, n: int) -> None:
        self._n, self._thread = n, threading.get_ident()
        self._before: list[tuple[threadpoolctl.LibController, int | None]] = []

    def __enter__(self) -> None:
        self._is_over = False
        self._before = [(blas, blas.get_num_threads()) for blas in _blas_limits.per_thread]
        _blas_limits.enter(id(self), self._n)
        for blas, _ in self._before:
            _set_threads(blas, self._n)

    def __exit__(self, *_: object) -> None:
        self._end()

    def __del__(self) -> None:
        if not self._is_over:
            self._end()

    def _end(self) -> None:
        if self._thread == threading.get_ident():  # else nobody can, and the thread may be gone
            for blas, count in self._before:
                _set_threads(blas, count)
        _blas_limits.leave(id(self))
        self._is_over = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_forks.before, after_in_child=_forks.in_child)
    os.register_at_fork(after_in_child=_blas_limits.in_child)
