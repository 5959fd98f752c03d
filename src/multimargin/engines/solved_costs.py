"""The costs that a fit is solved with: those that were asked for, unless they are far too large to matter.

If C_i K_ii is very large, and a scale of the features is enough for that, every α_i is far below C_i. What is
measured relative to C_i then says nothing any more: ``ON_BOUND`` C_i is above all coefficients, and C_i - α_i
rounds. But a point with no sample at its upper bound is optimal for every larger cost too. So very large
costs are capped, and the cap is raised while some sample comes near it, and α with it: once C is large, the
variables at their bounds grow in proportion to it. The duality gap is that of the costs asked for.
"""

from __future__ import annotations

import math

import numpy as np

from ..system.typing import FloatArray, LabelArray
from .base import Task
from .diagonal import mean_log

_LARGE = 1e6  # C_i times the geometric mean of the K_ii above which costs are capped
_FIRST, _RAISE = 1e4, 10.0  # the first cap, in the same unit; factor of the next
_NEAR = 0.1  # share of the cap that a coefficient may not reach


class SolvedCosts:
    """The costs of one fit."""

    def __init__(self, task: Task, diagonal: FloatArray) -> None:
        self.asked, self.team, self._problem, self._cap = task.C, task.team, task.problem, math.inf
        typical = mean_log(diagonal, self.team)
        with np.errstate(over="ignore"):  # the inverse of a tiny kernel value: then no cost is large
            unit = math.inf if typical is None else float(np.exp(-typical))
        if self.team.max(float(task.C.max(initial=0.0))) > _LARGE * unit:
            start = 0.0 if task.start is None else float(np.abs(task.start[1]).max(initial=0.0))
            self._cap = max(_FIRST * unit, 2.0 * self.team.max(start) / _NEAR)
        self.asked_total = float(self.team.sum(task.C.sum()))  # bounds the dual: no ridge is capped
        self._apply()

    def _apply(self) -> None:
        """Cap the costs."""
        self.solved = self.capped(self.asked)
        self.total = float(self.team.sum(self.solved.sum()))  # of all processes
        self.largest = self.team.max(float(self.solved.max(initial=0.0)))

    @property
    def are_capped(self) -> bool:
        """Whether some cost may be lower than asked for."""
        return not math.isinf(self._cap)

    def capped(self, C: FloatArray) -> FloatArray:
        """Costs to solve with, of any samples."""
        return np.minimum(C, self._cap)

    def rise(self, alpha: FloatArray, y: LabelArray) -> FloatArray | None:
        """Raise the cap if a sample comes near it; the point to go on from, None if nothing was raised."""
        if not self.are_capped:
            return None
        near = (self.solved < self.asked) & (2.0 * np.abs(alpha).max(axis=1) >= _NEAR * self.solved)
        if not self.team.max(float(near.any())):
            return None
        self._cap *= _RAISE
        self._apply()
        return self._problem.shrink_into(_RAISE * alpha, y, self.solved)
