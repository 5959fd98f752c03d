"""Solving the block of a working set on a team: who does it, and what the others do meanwhile.

``ARCHITECTURE.md`` has a table of who solves which block; ``team_blocks.py`` says who has its kernel values.
"""

from __future__ import annotations

import math

import numpy as np

from ...inner import CoordinateDescent
from ...inner.base import InnerSolver
from ...inner.block import Aim, Block
from ...system.typing import IntArray
from ..base import Improvement, is_late
from .solvers import Solvers
from .state import State
from .steps import Steps
from .team_blocks import PartBlock, TeamBlocks


class TeamImprove:
    """``improve`` of one fit on a team; every process must make the same calls."""

    def __init__(self, state: State, solvers: Solvers, steps: Steps, uniform: bool) -> None:
        self.state, self.team, self.uniform = state, state.team, uniform
        self.solvers, self.steps = solvers, steps
        self._together = True  # as long as shared descents reach their aim

    def improve(self, W: IntArray, inner: InnerSolver, aim: Aim, keep: bool, deadline: float) -> Improvement:
        """See ``Engine.improve``; the samples of ``W`` are guests."""
        blocks = self.solvers.blocks
        assert isinstance(blocks, TeamBlocks)
        keep = keep or blocks.by_first(W, inner)
        made = Improvement(0, False)
        if keep and self._together and isinstance(inner, CoordinateDescent) and self._shares_descent(inner):
            made = self._descend_together(blocks.part(W), inner, aim, deadline)
            if self._together:
                return made
            blocks.forget_part()
        alike = not keep and self.uniform and math.isinf(deadline)
        if alike and blocks.shares(W, inner):
            block: Block = blocks.shared(W)
        else:
            block = blocks.growing(W) if keep else blocks.once(W)
        before = block.alpha.copy(), block.G.copy()
        eps = self.state.eps(aim, inner.measure, block)
        if alike:
            steps = self.solvers.solve(inner, block, eps, deadline)
        else:
            meanwhile = blocks.while_first_solves if keep else None
            steps = self.solvers.solve_by_first(self.team, inner, block, eps, deadline, meanwhile)
        return Improvement(made.steps + steps, self.steps.take(block, before) or made.moved)

    def _shares_descent(self, inner: CoordinateDescent) -> bool:
        """Whether the native descent of this machine can be shared."""
        return self.state.problem.name in inner.together

    def _descend_together(
        self, part: PartBlock, inner: CoordinateDescent, aim: Aim, deadline: float
    ) -> Improvement:
        """Let all processes descend, each with its own samples.

        If that does not reach its aim, the first process goes on, and solves later blocks alone: it has a
        finisher.
        """
        state = self.state
        own = [state.eps(aim, inner.measure, part), state.largest_violation(part)]
        eps, worst = self.team.gather(np.array(own)).max(axis=0).tolist()
        width = math.inf if inner.reach is None else inner.reach * worst
        updates, reached = self.solvers.descend_together(self.team, inner, part, eps, width, deadline)
        self._together = reached or is_late(deadline, self.team)
        return Improvement(updates, self.steps.take_part(part))
