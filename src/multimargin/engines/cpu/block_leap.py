"""A leap within a block: the samples of a working set at once, if sweeps creep.

    min over D   ⟨G, D⟩ + ½ ⟨D, K_WW D⟩     such that α + D is feasible,

by the same models as a leap over all samples (``leap.py``). It pays earlier than that: a working set has few
of the samples, and no outliers but support vectors, so that its kernel is of lower rank.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...inner.block import Block
from ...problems.base import DualRows
from ...system.shard import Shard
from ...system.team import SOLO, Team
from ...system.typing import FloatArray, IntArray
from ..base import Selection
from .leap import Leap, Means
from .state import State

_PART = 0.05  # of all samples: larger working sets wait for a leap over all of them
_UNDECIDED = 0.6  # of the samples: most are support vectors


class BlockPoint:
    """A block as the problem that a leap solves: its point, and the gradient and the dual there."""

    def __init__(self, state: State, block: Block, memory: int) -> None:
        self._block, self._memory, self._measures = block, memory, state.measures
        self.team: Team = SOLO
        self.shard = Shard(len(block.W), SOLO)
        self.problem, self.m, self.bias = state.problem, state.m, state.bias
        self.y, self.C = block.y, block.C
        self.alpha, self.dual = block.alpha.copy(), 0.0

    @property
    def G(self) -> FloatArray:  # noqa: N802  (the name of the formulas)
        return self._block.G.copy()

    @G.setter
    def G(self, value: FloatArray) -> None:  # noqa: N802
        self._block.G[:] = value

    def select(self, k: int, rank: str, stop: str, above: float, among: str, even: bool) -> Selection:
        """The largest violation, in the units of the scores; the samples are not named."""
        violation = self.violation_at(self._block.rows())
        return Selection(np.empty(0, dtype=np.int64), violation, np.nan, int(violation > above))

    def violation_at(self, rows: DualRows) -> float:
        """The same at another point of the block."""
        return float(self._measures(rows)[0].max(initial=0.0))

    def columns(self, ids: IntArray) -> FloatArray:
        """Kernel values of some samples against all of the block."""
        return self._block.kernel(slice(None), ids)

    def place(self, alpha: FloatArray) -> None:
        """Take over ``alpha``; G and the dual follow elsewhere."""
        self.alpha = alpha
        self._show()

    def move(self, alpha: FloatArray) -> None:
        """Take over ``alpha``, with G and the dual there."""
        D = alpha - self._block.alpha
        moved: IntArray = np.flatnonzero(D.any(axis=1))
        before = self._block.G.copy()
        self._block.shift_gradient(moved, D[moved], self._memory)
        self.dual += 0.5 * float(np.vdot(before + self._block.G, D))
        self.place(alpha)

    def _show(self) -> None:
        """The block always has the current point."""
        self._block.alpha[:] = self.alpha


class BlockLeap:
    """The leaps within blocks of one fit: each is taken when descent since the last has cost as much."""

    def __init__(self, state: State, memory: int) -> None:
        self._state, self._memory = state, memory
        self._taken_at = 0.0  # work that had been done at the last one
        self._due = 0.0  # after that

    def may_pay(self, block: Block, done: int) -> bool:
        """Whether ``take`` is worth asking, before anything is known of the block's kernel."""
        return done - self._taken_at >= self._due and block.movable <= _PART * self._state.count

    def take(self, block: Block, eps: float, done: int, late: Callable[[], bool]) -> bool:
        """Solve the block to ``eps`` if the work that was ``done`` pays for it; whether it moved."""
        paid = int(done - self._taken_at)
        point = BlockPoint(self._state, block, self._memory)
        leap = Leap(point, block.diagonal, _UNDECIDED)
        means = Means(paid, True, self._memory, point.columns, point.move, late)
        if not leap.is_due(2.0 * eps, means):
            self._due = leap.next
            return False
        moved = leap.take(2.0 * eps, means)
        self._taken_at, self._due = float(done), 0.0
        return moved
