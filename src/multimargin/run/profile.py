"""Seconds that a fit spends in each of its phases."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

# kernel rows: computing them; inner: solving the block subproblems; gradient: updating G after a step;
# selection: measuring samples and choosing the working set; memory: conversion of the samples, allocation,
# copies of kernel blocks; proof: the float64 certificate; messages: bringing samples of other processes here;
# leap: models of the kernel of low rank; loop: the rest of the outer loop, which is Python.
PHASES = ("kernel rows", "inner", "gradient", "selection", "memory", "proof", "messages", "leap", "loop")

_Verb = TypeVar("_Verb", bound=Callable[..., Any])


class Profile:
    """Seconds spent in each phase. A phase entered inside another pauses that one.

    Examples
    --------
    >>> profile = Profile()
    >>> with profile.phase("gradient"):
    ...     pass
    >>> list(profile.seconds) == list(PHASES)
    True
    """

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self._entered: list[str] = []
        self._since = 0.0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the seconds inside the context as ``name``."""
        self.enter(name)
        try:
            yield
        finally:
            self.leave()

    def enter(self, name: str) -> None:
        """Start a phase; ``leave`` ends it."""
        self._switch()
        self._entered.append(name)

    def leave(self) -> None:
        """End the phase entered last."""
        self._switch()
        self._entered.pop()

    def _switch(self) -> None:
        now = time.perf_counter()
        if self._entered:
            self.seconds[self._entered[-1]] += now - self._since
        self._since = now


def profile_line(seconds: dict[str, float], total: float) -> str:
    """Return the phases and their shares of ``total`` seconds as text, the largest first."""
    parts = seconds | {"other": max(0.0, total - sum(seconds.values()))}
    ordered = sorted(parts.items(), key=lambda part: -part[1])
    return ", ".join(f"{name} {s:.3g} s ({s / total:.0%})" for name, s in ordered)


def timed(phase: str) -> Callable[[_Verb], _Verb]:
    """Decorate a method so that its seconds count as ``phase`` of ``self.profile``."""

    def decorate(verb: _Verb) -> _Verb:
        @wraps(verb)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            profile: Profile = self.profile
            profile.enter(phase)
            try:
                return verb(self, *args, **kwargs)
            finally:
                profile.leave()

        return cast(_Verb, wrapper)

    return decorate
