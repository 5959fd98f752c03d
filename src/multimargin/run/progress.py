"""Reports on a running fit: a progress bar, or lines on stderr."""

from __future__ import annotations

import math
import sys
import time
from typing import Self, cast

from ..solution import Certified, TraceRow
from .profile import profile_line

try:
    from tqdm.auto import tqdm
except ImportError:  # the extra "progress" is not installed
    tqdm = None

EVERY = 0.2  # seconds between two messages


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
        if now - self._last < EVERY:
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
