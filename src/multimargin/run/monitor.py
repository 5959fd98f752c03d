"""Watches a run: records the trace, keeps the limits, tells the observers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from ..solution import Status, Trace, TraceRow

Observer = Callable[[TraceRow], object]  # a true answer stops the run


class Monitor:
    """One run's clock, limits and observers. It is told what happens, and asks nobody.

    Parameters
    ----------
    max_iter : int
        Largest number of outer iterations of this run, -1 for no limit.
    time_limit : float or None
        Seconds.
    observers : sequence of callables
        Each is called with every ``TraceRow``; a true answer stops the run.
    """

    def __init__(
        self, max_iter: int = -1, time_limit: float | None = None, observers: Sequence[Observer] = ()
    ) -> None:
        self.trace = Trace()
        self._max_iter, self._time_limit = max_iter, time_limit
        self._observers = tuple(observers)
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time since the run started."""
        return time.perf_counter() - self._start

    @property
    def deadline(self) -> float:
        """time.perf_counter() at the end of the time limit."""
        return math.inf if self._time_limit is None else self._start + self._time_limit

    @property
    def is_unlimited(self) -> bool:
        """Whether nothing can stop the run before it is done, and nobody watches it."""
        return self._max_iter < 0 and self._time_limit is None and not self._observers

    def exhausted(self) -> Status | None:
        """The limit that forbids another iteration, if any."""
        if 0 <= self._max_iter <= len(self.trace):
            return Status.MAX_ITER
        if self._time_limit is not None and self.seconds >= self._time_limit:
            return Status.TIME_LIMIT
        return None

    def note(
        self,
        *,
        violation: float,
        dual: float,
        gap: float,
        working_set: int,
        inner: int,
        support: int,
        rows: int = 0,
        hits: int = 0,
        evictions: int = 0,
    ) -> Status | None:
        """Write one iteration down; the status to stop with if an observer says so."""
        facts = violation, dual, gap, working_set, inner, rows, hits, evictions, support
        row = TraceRow(self.trace.iterations + 1, self.seconds, *facts)
        self.trace.append(row)
        stop = [bool(observer(row)) for observer in self._observers]  # all of them are told
        return Status.CALLBACK if any(stop) else None
