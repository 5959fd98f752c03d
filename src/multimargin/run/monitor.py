"""Watches a run: records the trace, keeps the limits, tells the observers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from ..engines.base import Engine
from ..methods.working_sets import Choice
from ..solution import Status, Trace, TraceRow

Observer = Callable[[TraceRow], object]  # a true answer stops the run


class Monitor:
    """One run's clock, limits and observers.

    Parameters
    ----------
    max_iter : int
        Largest number of outer iterations, -1 for no limit.
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
        self._iteration = 0

    @property
    def seconds(self) -> float:
        """Time since the run started."""
        return time.perf_counter() - self._start

    @property
    def until(self) -> float:
        """time.perf_counter() at the end of the time limit."""
        return math.inf if self._time_limit is None else self._start + self._time_limit

    def exhausted(self) -> Status | None:
        """The limit that forbids another iteration, if any."""
        if 0 <= self._max_iter <= self._iteration:
            return Status.MAX_ITER
        if self._time_limit is not None and self.seconds >= self._time_limit:
            return Status.TIME_LIMIT
        return None

    def record(self, engine: Engine, choice: Choice, inner: int) -> Status | None:
        """Write one iteration of an engine down; the status to stop with if an observer says so."""
        counts = engine.counts()
        return self.note(
            violation=choice.violation,
            dual=engine.dual,
            gap=choice.gap,
            working_set=len(choice.W),
            inner=inner,
            rows=counts.rows,
            hits=counts.hits,
            evictions=counts.evictions,
            support=len(engine.support),
        )

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
        self._iteration += 1
        row = TraceRow(
            self._iteration,
            self.seconds,
            violation,
            dual,
            gap,
            working_set,
            inner,
            rows,
            hits,
            evictions,
            support,
        )
        self.trace.append(row)
        stop = False
        for observer in self._observers:
            stop |= bool(observer(row))
        return Status.CALLBACK if stop else None
