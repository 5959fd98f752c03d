"""Passes of a team: each process visits its own samples, and in every round the weights are put together.

All processes have the same weights W. In a round each visits a few of its samples, as if W changed by nobody
else's steps. Then all tell each other their steps, with the rows of these samples, and make those of all.
Several processes may move along the same direction, and together too far. So a process counts its own way
``stretch`` times: |x_i|² is that much larger in its steps. If ``stretch`` is the number of processes, this is
the safe scheme of CoCoA+ (Ma et al. 2015), and the dual cannot rise. A smaller number is faster and mostly
enough. It grows if the dual rose in a pass, which is computed exactly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .. import _core
from ..system.team import Team
from .tuning import Tuning


class PassRule(NamedTuple):
    """What a pass visits and updates."""

    over_all: bool
    threshold: float
    relax: float
    margin: float
    shuffle: bool


class Pass(NamedTuple):
    """What a native pass reports."""

    visits: int
    updates: int
    active: int  # samples that the next pass over active samples may visit
    violation: float  # largest one seen
    total: float  # sum over all samples, each as it was at the sample's last visit
    change: float  # of the dual
    gap: float  # sum of all samples' shares, each as it was at the sample's last visit


class Rounds:
    """The passes of one process of a team, and what they have cost."""

    def __init__(self, team: Team, tuning: Tuning) -> None:
        self._team, self._tuning = team, tuning
        self._stretch = min(1.0 + tuning.stretch * (team.size - 1), float(team.size))
        self.support = 0  # samples of all processes with α ≠ 0, after the last pass
        self.hoped = 0.0  # change of the dual in the last pass if steps of different processes only added up
        self._rounds = self._bytes = 0

    def run(
        self,
        native: _core.PassRunner,
        problem: _core.LinearProblem,
        rule: PassRule,
        visits: int,
        weights: np.ndarray,
        dual: float,
    ) -> Pass:
        """One pass over the samples of all processes, of which at most ``visits`` are visited.

        ``dual`` is the dual before it, and ``weights`` are those that the passes change.
        """
        native.begin(*rule, self._stretch)
        rounds = max(1, math.ceil(visits / self._tuning.round_visits))
        for left in range(rounds, 0, -1):
            found = Pass(*native.go_on(left))
            self._meet(native)
        self._rounds += rounds
        half = 0.5 * _core.squared_norm(weights) if self._team.rank == 0 else 0.0  # others round differently
        mine = [found.visits, found.updates, found.active, found.total, found.change, found.gap]
        sums = self._team.sum([*mine, problem.support(), half, problem.conjugate()])
        self.hoped, self.support, change = float(sums[4]), int(sums[6]), float(sums[7] + sums[8]) - dual
        noise = 8.0 * float(np.finfo(weights.dtype).eps) * abs(dual)
        if change > self._tuning.rise * abs(self.hoped) + noise:
            self._stretch = min(self._tuning.stretch_growth * self._stretch, float(self._team.size))
        visits, updates, active = (int(count) for count in sums[:3])
        violation, total, gap = self._team.max(found.violation), float(sums[3]), float(sums[5])
        return Pass(visits, updates, active, violation, total, change, gap)

    def _meet(self, native: _core.PassRunner) -> None:
        """Make the steps of all processes; of its own ones each takes back what it counted too much."""
        team, mine = self._team, native.steps(self._stretch)
        lengths = team.join(np.array([len(mine)]), [1] * team.size)
        ends = np.cumsum(lengths)
        message = team.join(mine, lengths.tolist())
        first, last = int(ends[team.rank] - lengths[team.rank]), int(ends[team.rank])
        native.make(message[:first], 1.0)
        native.make(message[first:last], 1.0 - self._stretch)
        native.make(message[last:], 1.0)
        self._bytes += message.nbytes

    def facts(self) -> dict[str, object]:
        """What the passes have cost, for the trace."""
        return {"rounds": self._rounds, "bytes_of_steps": self._bytes, "stretch": self._stretch}
