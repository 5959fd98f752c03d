"""Reports on a running fit: a progress bar, or lines on stderr."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, Self, cast

from ..solution import Certified, TraceRow
from .estimate import Estimate, time_left
from .profile import profile_line

EVERY = 0.2  # seconds between two messages
_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}"


class Progress:
    """Observer that shows how much is done, how long the rest will take, and the largest violation.

    ``verbose=1`` shows a bar, or lines if tqdm is not installed. ``verbose=2`` always shows lines, and at the
    end the seconds of each phase. The bar has a thread of its own, because an iteration may take long: the
    time, and with it the bar, go on in between.
    """

    def __init__(self, tol: float, verbose: int, name: str = "KernelSVC") -> None:
        self._verbose, self._estimate = verbose, Estimate(tol)
        self._start = time.perf_counter()
        self._last = 0.0
        self._row: TraceRow | None = None
        self._bar: Any = make_bar(name, 100, _FORMAT) if verbose == 1 else None
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __call__(self, row: TraceRow) -> None:
        self._estimate.see(row)
        self._row = row
        now = time.perf_counter()
        if now - self._last < EVERY:
            return
        self._last = now
        if self._bar is not None:
            self._draw()
        else:
            kernel_rows = f"  kernel rows {row.rows} (+{row.hits} cached)" if row.rows else ""
            sys.stderr.write(
                f"[multimargin] {row.seconds:7.1f} s  iteration {row.iteration}"
                f"  violation {row.violation:.2e}"
                f"  dual {row.dual:.8g}  SVs {row.support}{kernel_rows}{self._left('  ')}\n"
            )

    def _left(self, before: str) -> str:
        left = self._estimate.left(time.perf_counter() - self._start)
        return "" if left is None else f"{before}{time_left(left)}"

    def _draw(self) -> None:
        row, bar = self._row, self._bar
        if row is not None:
            facts = f"violation {row.violation:.1e}, {row.support} SVs{self._left(', ')}"
            bar.set_postfix_str(facts, refresh=False)
        bar.n = max(bar.n, int(100 * self._estimate.share(time.perf_counter() - self._start)))
        bar.refresh()

    def _tick(self) -> None:
        while not self._ended.wait(EVERY):
            self._draw()

    def finish(self, solution: Certified) -> None:
        """Report how the run ended."""
        message = str(solution)
        self._stop()
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

    def _stop(self) -> None:
        self._ended.set()
        if self._ticker.is_alive():
            self._ticker.join()

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._ticker.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()
        if self._bar is not None:
            self._bar.close()


def make_bar(name: str, total: int, bar_format: str) -> Any:
    """Return a bar of tqdm, or None if the extra "progress" is not installed."""
    try:
        from tqdm.auto import tqdm  # only now: importing it takes longer than a small fit
    except ImportError:
        return None
    return tqdm(total=total, desc=name, bar_format=bar_format)
