"""What a running fit shows: one line that is drawn again and again on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import shutil
import sys
import threading
import time
from typing import Any, Self, TextIO

from ..run.estimate import Estimate, time_left
from ..solution import TraceRow

_REDRAW, _LINE = 0.1, 2.0  # seconds between two drawings, and between two plain lines
_BAR = 16
_CLEAR = "\r\x1b[K"
_LEFT_OUT = ("bar", "rows", "cache", "gap", "support", "left", "violation")  # the first of these first


class Display:
    """A callback of an estimator that shows how a fit goes on, on stderr.

    On a terminal a thread draws the line, because an iteration may take long.
    """

    def __init__(self, tol: float, quiet: bool = False, out: TextIO | None = None) -> None:
        self._out = sys.stderr if out is None else out
        self._live = not quiet and self._out.isatty()
        self._plain = not quiet and not self._live
        self._tol, self._estimate = tol, Estimate(tol)
        self._row: TraceRow | None = None
        self._start = self._last = time.perf_counter()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __call__(self, row: TraceRow) -> None:
        with self._lock:
            self._estimate.see(row)
            self._row = row
        now = time.perf_counter()
        if self._plain and now - self._last >= _LINE:
            self._last = now
            self._out.write(f"{self.facts()}\n")
            self._out.flush()

    def facts(self, width: int | None = None) -> str:
        """The state of the fit in one line; if ``width`` is short of letters, whole parts are left out."""
        seconds = time.perf_counter() - self._start
        with self._lock:
            row, left, share = self._row, self._estimate.left(seconds), self._estimate.share(seconds)
        if row is None:
            return f"{seconds:6.1f} s  first iteration"
        parts = {
            "seconds": f"{seconds:6.1f} s",
            "bar": bar(share),
            "share": f"{share:4.0%}",
            "violation": f"violation {row.violation:.1e} {ladder(row.violation, self._tol)}{self._tol:.0e}",
        }
        if not math.isnan(row.gap):
            parts["gap"] = f"gap {row.gap:.2g}"
        parts["support"] = f"{row.support} SVs"
        if row.rows + row.hits:
            parts["cache"] = f"cache {row.hits / (row.rows + row.hits):.0%}"
            parts["rows"] = f"{row.rows / max(row.seconds, 1e-9):.0f} rows/s"
        if left is not None:
            parts["left"] = time_left(left)
        return shortened(parts, width)

    def _tick(self) -> None:
        while not self._ended.wait(_REDRAW):
            self._draw()

    def _draw(self) -> None:
        width = max(shutil.get_terminal_size().columns - 1, 20)
        self._out.write(f"{_CLEAR}{self.facts(width)[:width]}")
        self._out.flush()

    def __enter__(self) -> Self:
        if self._live:
            self._ticker.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._live:
            self._ended.set()
            self._ticker.join()
            self._out.write(_CLEAR)
            self._out.flush()


def shortened(parts: dict[str, str], width: int | None) -> str:
    """The parts in one line of at most ``width`` letters, without those that matter least.

    Examples
    --------
    >>> parts = {"seconds": "7.1 s", "bar": "[#...]", "share": "25%"}
    >>> shortened(parts, None), shortened(parts, 12)
    ('7.1 s  [#...]  25%', '7.1 s  25%')
    """
    kept = dict(parts)
    for name in _LEFT_OUT:
        if width is None or len("  ".join(kept.values())) <= width:
            break
        kept.pop(name, None)
    return "  ".join(kept.values())


def bar(share: float) -> str:
    """A bar that is filled by the share that is done."""
    full = round(_BAR * min(max(share, 0.0), 1.0))
    return f"[{'#' * full}{'.' * (_BAR - full)}]"


def ladder(violation: float, tol: float) -> str:
    """The way of the violation down to tol: a mark per factor of ten that is left.

    Examples
    --------
    >>> ladder(0.5, 1e-3), ladder(1e-4, 1e-3)
    ('>>> ', '')
    """
    if not violation > tol or not math.isfinite(violation):
        return ""
    return ">" * math.ceil(math.log10(violation / tol)) + " "
