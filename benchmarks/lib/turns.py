"""Taking turns: A B C A B C …, so that a slow minute of the machine hits everyone alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable


class WithdrawnError(Exception):
    """A contender that does not go on; the text says why."""


def take_turns(
    names: Iterable[str],
    fit: Callable[[str], float],
    repeats: int,
    *,
    patience: float = float("inf"),
    at_least: float = 0.0,
    most: int = 25,
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Seconds of every fit, and why a contender withdrew.

    ``fit(name)`` returns its seconds or raises WithdrawnError. Who needs more than ``patience`` seconds
    for one fit is not asked again. Rounds go on beyond ``repeats``, up to ``most``, until they took
    ``at_least`` seconds together: times of milliseconds are noise unless there are many.
    """
    names = list(names)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    reasons: dict[str, str] = {}
    rounds = 0
    while True:
        turn = [name for name in names if name not in reasons and max(seconds[name], default=0) <= patience]
        for name in turn:
            try:
                seconds[name].append(fit(name))
            except WithdrawnError as reason:
                reasons[name] = str(reason)
        rounds += 1
        spent = sum(map(sum, seconds.values()))
        enough = rounds >= repeats and (spent >= at_least or rounds >= most)
        if enough or not turn:
            return seconds, reasons
