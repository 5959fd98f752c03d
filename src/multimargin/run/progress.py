"""Reports on a running fit: a progress bar, lines on stderr, or scikit-learn callbacks."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any, Self, cast

from ..solution import Certified, TraceRow
from .monitor import Observer
from .profile import profile_line

try:
    from tqdm.auto import tqdm
except ImportError:  # the extra "progress" is not installed
    tqdm = None

_EVERY = 0.2  # seconds between two messages


class Progress:
    """Observer that shows how far the violation has come from its first value down to ``tol``.

    ``verbose=1`` shows a bar, or lines if tqdm is not installed. ``verbose=2`` always shows lines, and at the
    end the seconds of each phase.
    """

    def __init__(self, tol: float, verbose: int, name: str = "KernelSVC") -> None:
        self._tol, self._verbose = tol, verbose
        self._first: float | None = None
        self._last = 0.0
        self._best = math.inf
        self._bar = tqdm(total=100, desc=name, unit="%") if tqdm and verbose == 1 else None

    def __call__(self, row: TraceRow) -> None:
        if self._first is None:
            self._first = max(row.violation, 2 * self._tol)
        self._best = min(self._best, row.violation)
        now = time.perf_counter()
        if now - self._last < _EVERY:
            return
        self._last = now
        done = self._percent(self._best)
        if self._bar is not None:
            self._bar.set_postfix_str(f"violation {row.violation:.1e}, {row.support} SVs", refresh=False)
            self._bar.update(max(0, done - self._bar.n))
        else:
            kernel_rows = f"  kernel rows {row.rows} (+{row.hits} cached)" if row.rows else ""
            sys.stderr.write(
                f"[multimargin] {row.seconds:7.1f} s  iteration {row.iteration}"
                f"  violation {row.violation:.2e}"
                f"  dual {row.dual:.8g}  SVs {row.support}{kernel_rows}\n"
            )

    def _percent(self, violation: float) -> int:
        first = self._first or 1.0
        share = math.log(first / max(violation, self._tol)) / math.log(first / self._tol)
        return int(100 * min(max(share, 0.0), 1.0))

    def finish(self, solution: Certified) -> None:
        """Report how the run ended."""
        message = f"{solution.status} gap {solution.gap:.3g} of {solution.primal:.6g}"
        if self._bar is not None:
            self._bar.set_postfix_str(message, refresh=False)
            self._bar.update(100 - self._bar.n)
        else:
            sys.stderr.write(f"[multimargin] {message}\n")
        info = solution.trace.info
        if self._verbose >= 2 and "profile" in info:
            seconds = cast("dict[str, float]", info["profile"])
            total = cast("float", info["seconds"])
            sys.stderr.write(f"[multimargin] {total:.3g} s: {profile_line(seconds, total)}\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()


class SklearnCallbacks:
    """Observer that passes iterations on to scikit-learn callbacks (scikit-learn ≥ 1.9).

    An iteration becomes a task, but at most one every ``_EVERY`` seconds: a method that takes 100,000 tiny
    steps must not spend its time in callbacks.
    """

    def __init__(
        self, estimator: Any, context: Any, X: Any, y: Any, attributes: Callable[[], dict[str, Any]]
    ):
        self._estimator, self._context, self._X, self._y = estimator, context, X, y
        self._attributes = attributes
        self._last = -math.inf

    def __call__(self, row: TraceRow) -> bool:
        now = time.perf_counter()
        if now - self._last < _EVERY:
            return False
        self._last = now
        task = self._context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self._estimator, X=self._X, y=self._y)
        return bool(
            task.call_on_fit_task_end(
                estimator=self._estimator,
                X=self._X,
                y=self._y,
                reconstruction_attributes=self._attributes,
            )
        )


__all__ = ["Observer", "Progress", "SklearnCallbacks"]
