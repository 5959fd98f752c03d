"""Solving the block of a working set on a team: who does it, and what the others do meanwhile.

``ARCHITECTURE.md`` has a table of who solves which block; ``team_blocks.py`` says who has its kernel values.
"""

from __future__ import annotations

import math

import numpy as np

from ...inner import CoordinateDescent
from ...inner.base import InnerSolver
from ...inner.block import Aim, Block
from ...run.profile import Profile
from ...system.typing import IntArray
from ..base import Improvement
from .solvers import Solvers
from .state import State
from .steps import Steps
from .team_blocks import PartBlock, TeamBlocks


class TeamImprove:
    """``improve`` of one fit on a team; every process must make the same calls."""

    def __init__(self, state: State, solvers: Solvers, steps: Steps, uniform: bool, profile: Profile) -> None:
        self.state, self.team, self.uniform, self.profile = state, state.team, uniform, profile
        self.solvers, self.steps = solvers, steps
        self._together = True  # as long as shared descents reach their aim

    def improve(self, W: IntArray, inner: InnerSolver, aim: Aim, keep: bool, deadline: float) -> Improvement:
        """See ``Engine.improve``; the samples of ``W`` are guests."""
        blocks = self.solvers.blocks
        assert isinstance(blocks, TeamBlocks)
        keep = keep or blocks.by_first(W, inner)
        if keep and self._together and self.state.problem.name in inner.together:
            assert isinstance(inner, CoordinateDescent)
            return self._descend_together(blocks.part(W), inner, aim, deadline)
        alike = not keep and self.uniform and math.isinf(deadline)
        if alike and blocks.shares(W, inner):
            block: Block = blocks.shared(W)
        else:
            block = blocks.growing(W) if keep else blocks.once(W)
        before = block.alpha.copy(), block.G.copy()
        eps = aim.eps(self.state.problem, inner.measure, block, self.state.n)
        if alike:
            steps = self.solvers.solve(inner, block, eps, deadline)
        else:
            meanwhile = blocks.while_first_solves if keep else None
            steps = self.solvers.solve_by_first(self.team, inner, block, eps, deadline, meanwhile)
        return Improvement(steps, self.steps.take(block, before))

    def _descend_together(
        self, part: PartBlock, inner: CoordinateDescent, aim: Aim, deadline: float
    ) -> Improvement:
        """Let all processes descend, each with its own samples.

        If that does not reach its aim, the first process solves later blocks alone: it has a finisher.
        """
        state = self.state
        own = [aim.eps(state.problem, inner.measure, part, state.n), state.largest_violation(part)]
        eps, worst = self.team.join(np.array([own]), [1] * self.team.size).max(axis=0).tolist()
        width = math.inf if inner.reach is None else inner.reach * worst
        updates, self._together = self.solvers.descend_together(self.team, inner, part, eps, width, deadline)
        return Improvement(updates, self.steps.take_part(part))
