"""How much of a fit is done, and how long the rest will take.

A fit first gathers support vectors, while the largest violation hardly falls but the duality gap does. Then
it refines their coefficients, and the logarithm of the violation falls about evenly in time. Half of the way
is counted for each, or all of it for the second if no gap is known. On recorded fits the share is near the
share of the time (see ``tests/run/test_estimate.py``).
"""

from __future__ import annotations

import math

from ..solution import TraceRow

_GATHERING = 0.5  # share of the way that ends when the gap has fallen to nothing
_MOST = 0.98  # while the fit goes on
_NEW = 0.4  # weight of a new estimate of the whole time against those before
_LEAST = 0.02  # share below which the whole time is a guess


class Estimate:
    """The share that is done and the seconds left, from the rows of a trace."""

    def __init__(self, tol: float) -> None:
        self._tol = tol
        self._first: TraceRow | None = None
        self._violation = self._gap = math.inf  # the least so far
        self._whole: float | None = None  # seconds, smoothed
        self.done = 0.0  # never falls

    def see(self, row: TraceRow) -> None:
        """Take an iteration into account."""
        self._first = self._first or row
        self._violation = min(self._violation, row.violation)
        if not math.isnan(row.gap):
            self._gap = min(self._gap, row.gap)
        self.done = max(self.done, min(self._share(self._first), _MOST))
        if self.done > _LEAST:
            whole = row.seconds / self.done
            new = max(_NEW, self.done)  # the nearer the end, the better it is known
            self._whole = whole if self._whole is None else self._whole ** (1 - new) * whole**new

    def _share(self, first: TraceRow) -> float:
        start = max(first.violation, 2 * self._tol)
        refined = math.log(start / max(self._violation, self._tol)) / math.log(start / self._tol)
        refined = min(max(refined, 0.0), 1.0)
        if not first.gap > 0 or math.isinf(self._gap):
            return refined
        gathered = 1.0 - math.sqrt(min(max(self._gap, 0.0) / first.gap, 1.0))
        return _GATHERING * gathered + (1 - _GATHERING) * refined

    def left(self, seconds: float) -> float | None:
        """Seconds left after so many; None as long as nobody can know."""
        return None if self._whole is None else max(self._whole - seconds, 0.0)

    def share(self, seconds: float) -> float:
        """The share done after so many seconds: between two iterations it goes on as the time left says."""
        if self._whole is None or seconds <= 0:
            return self.done
        return min(max(self.done, seconds / max(self._whole, seconds)), 0.5 * (1 + self.done), _MOST)


def time_left(seconds: float) -> str:
    """Say about how long something will take.

    Examples
    --------
    >>> time_left(0.3), time_left(130)
    ('under 1 s left', 'about 2 min 10 s left')
    """
    about = "" if seconds < 1 else "about "
    return f"{about}{in_words(seconds)} left"


def in_words(seconds: float) -> str:
    """Return a duration for people.

    Examples
    --------
    >>> in_words(0.3), in_words(8.4), in_words(130), in_words(3900)
    ('under 1 s', '8 s', '2 min 10 s', '1 h 5 min')
    """
    if seconds < 1:
        return "under 1 s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
