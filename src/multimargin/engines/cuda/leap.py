"""Leaps of a fit on the device (engines/cpu/leap.py): models on the host, exact gradients on the device.

The models are thin products and Newton systems of a few hundred unknowns, which hardly take longer on the
host. What a leap needs of all kernel values, its columns and the gradient where it ends, is the device's.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...problems.base import DualRows
from ...system.memory import cache_bytes
from ...system.shard import Shard
from ...system.team import SOLO, Team
from ...system.threads import blas_threads
from ...system.typing import FloatArray, IntArray
from ..base import Selection
from ..cpu.leap import Leap, Means
from .device import cupy
from .state import DeviceState

# Units of work (inner/work.py) that take as long as an iteration of a descent: about 25 microseconds.
ITERATION_WORK = 50_000


class DevicePoint:
    """The samples that take part, on the host, as the problem that a leap solves."""

    def __init__(self, state: DeviceState) -> None:
        self._state = state
        self.problem, self.m = state.problem, state.m
        self.team: Team = SOLO
        self.shard = Shard(state.n if state.part is None else len(state.part), SOLO)

    def read(self) -> None:
        """Take over what the device has."""
        self.alpha, self.G, self.y, self.C = self._state.taking_part()
        self.dual, self.bias = self._state.dual, self._state.bias
        self._there: FloatArray | None = self.alpha

    def select(self, k: int, rank: str, stop: str, above: float, among: str, even: bool) -> Selection:
        """The largest violation; the samples are not named."""
        violation = self.violation_at(DualRows(self.alpha, self.G, self.y, self.C))
        return Selection(np.empty(0, dtype=np.int64), violation, np.nan, int(violation > above))

    def violation_at(self, rows: DualRows) -> float:
        """The same at another point of these samples."""
        return float(self.problem.measure(rows)[0].max(initial=0.0)) / self.problem.kappa

    def columns(self, ids: IntArray) -> FloatArray:
        """Kernel values of some of these samples against all of them."""
        part, unit = self._state.part, cupy().asarray(np.eye(len(ids)))
        columns = self._state.values.scores(ids if part is None else part[ids], unit).T.get()
        return np.asfortranarray(columns if part is None else columns[part])

    def move(self, alpha: FloatArray) -> None:
        """Move the device to ``alpha``, and take over the exact gradient and dual there."""
        self._there = None  # an interrupt may leave the device between two points
        self._state.place(self._state.whole(alpha))
        self.read()

    def place(self, alpha: FloatArray) -> None:
        """Take over ``alpha`` here; G and the dual follow elsewhere."""
        self.alpha = alpha

    def restore(self) -> None:
        """Move the device to the point that is here."""
        if self.alpha is not self._there:
            self.move(self.alpha)


class DeviceLeap:
    """The leaps of one fit; none unless they are ``asked`` for."""

    def __init__(self, state: DeviceState, diagonal: FloatArray, asked: bool) -> None:
        self._point = DevicePoint(state)
        own = diagonal if state.part is None else diagonal[state.part]
        self._leap = Leap(self._point, own) if asked else None

    def iterations_left(self, done: int) -> float:
        """Iterations of descents after which ``take`` is worth asking, if ``done`` of them were made."""
        return math.inf if self._leap is None else self._leap.next / ITERATION_WORK - done

    def take(self, tol: float, done: int, creeps: bool, late: Callable[[], bool]) -> bool:
        """Leap if ``done`` iterations pay for that; whether anything moved.

        ``creeps`` says whether a limit ended the last descent, short of its aim.
        """
        if self._leap is None or self.iterations_left(done) > 0:
            return False
        point = self._point
        point.read()
        memory, work = cache_bytes("auto", point.shard.n), done * ITERATION_WORK
        means = Means(work, creeps, memory, point.columns, point.move, late)
        if not self._leap.is_due(tol, means):
            return False
        with blas_threads(1):  # Newton's systems have threads of their own, and thin products gain by none
            try:
                return self._leap.take(tol, means)
            finally:
                point.restore()
