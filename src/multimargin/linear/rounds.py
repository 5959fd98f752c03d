"""Passes of a team: each process visits its own samples, and in every round the weights are put together.

All processes have the same weights W. In a round each visits a few of its samples, as if W changed by nobody
else's steps. Then all of them tell each other which weights they changed by how much, and add all changes.
Several processes may move along the same direction, and together too far. So a process counts its own way
``stretch`` times: |x_i|² is that much larger in its steps. If ``stretch`` is the number of processes, this is
the safe scheme of CoCoA+ (Ma et al. 2015), and the dual cannot rise. A smaller number is faster and mostly
enough. It grows if the dual rose in a pass, which is computed exactly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

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
    own: float  # change of Σ_i α_{i,y_i}


class Rounds:
    """The passes of one process of a team, and what they have cost."""

    def __init__(self, team: Team, tuning: Tuning) -> None:
        self._team, self._tuning = team, tuning
        self._stretch = min(1.0 + tuning.stretch * (team.size - 1), float(team.size))
        self.support = 0  # samples of all processes with α ≠ 0, after the last pass
        self.hoped = 0.0  # change of the dual in the last pass if steps of different processes only added up
        self._rounds = self._changes = 0

    def run(
        self,
        native: _core.PassRunner,
        problem: _core.LinearProblem,
        rule: PassRule,
        visits: int,
        noise: float,
    ) -> Pass:
        """One pass over the samples of all processes, of which at most ``visits`` are visited.

        If the dual rises by less than ``noise``, it may be rounding.
        """
        native.begin(*rule, self._stretch)
        rounds = max(1, math.ceil(visits / self._tuning.round_visits))
        growth = 0.0
        for left in range(rounds, 0, -1):
            found = Pass(*native.go_on(left))
            changes = self._team.join(native.changes(self._stretch))
            growth += native.add(changes)
            self._changes += len(changes)
        self._rounds += rounds
        mine = [found.visits, found.updates, found.active, found.total, found.change, found.gap, found.own]
        sums = self._team.sum([*mine, problem.support()])
        self.hoped, own, self.support = float(sums[4]), float(sums[6]), int(sums[7])
        change = growth - own
        if change > self._tuning.rise * abs(self.hoped) + noise:
            self._stretch = min(self._tuning.stretch_growth * self._stretch, float(self._team.size))
        visits, updates, active = (int(count) for count in sums[:3])
        violation, total, gap = self._team.max(found.violation), float(sums[3]), float(sums[5])
        return Pass(visits, updates, active, violation, total, change, gap, own)

    def facts(self) -> dict[str, object]:
        """What the passes have cost, for the trace."""
        return {"rounds": self._rounds, "changes": self._changes, "stretch": self._stretch}
