"""The parallel scheme of Niu & Yuan, Algorithm 6: data and gradient on every rank, kernel columns shared out.

    Step 1  each rank evaluates some rows of K_WW; the block is solved by all (Algorithm 5)
    Step 2  the columns of samples that moved are shared out: each rank computes those that no rank has yet
            evenly, keeps them, and adds up   z_p = Σ_{j in its part} K(·, x_j) Δα_j;   G ← G + Σ_p z_p
    Step 3  every rank chooses the next working set from the same numbers

Every rank holds all of X and G, and the sum in Step 2 sends n · m numbers per iteration. ``CpuEngine`` on a
team sends messages that do not depend on n. This scheme is here to reproduce the paper, and to be compared
with.
"""

from __future__ import annotations

import math
from functools import partial
from typing import ClassVar

import numpy as np

from ... import _core
from ...inner.base import InnerSolver
from ...inner.block import Aim, Block
from ...run.profile import Profile
from ...system.team import Team
from ...system.typing import FloatArray, IntArray
from ..base import Counts, EngineOptions, Improvement, Task, needs_all
from ..cpu import CpuEngine
from ..cpu.state import State
from ..cpu.steps import Steps
from ..cpu.team_blocks import SharedBlock
from .whole import whole_task


class ColumnsEngine(CpuEngine):
    """Every rank has the whole state of a fit; the ranks share out kernel columns and products."""

    name: ClassVar[str] = "columns"

    def __init__(self, task: Task, options: EngineOptions) -> None:
        needs_all(task, self.name)
        super().__init__(whole_task(task), options)
        self.team = task.team  # its ranks decide together; each has all samples, as in one process
        self._uniform = self.team.uniform and len(set(self.team.collect(options.n_threads))) == 1
        self.steps = ColumnSteps(self.state, options, self.profile, self.team)
        self.steps.use(self.rows)

    # -- move ----------------------------------------------------------------------------------------
    def improve(self, W: IntArray, inner: InnerSolver, aim: Aim, keep: bool = False) -> Improvement:
        if len(W) > self.rows.budget.largest_block:
            self.blocks.once(W)  # says what would fit
        alike = self._uniform and math.isinf(self.deadline)
        block = self._shared_block(W, whole=not (alike and inner.by_products))
        eps = aim.eps(self.problem, inner.measure, block, self.n)
        try:
            steps = (
                self.solvers.solve(inner, block, eps, self.deadline)
                if alike
                else self.solvers.solve_by_first(self.team, inner, block, eps, self.deadline)
            )
            return Improvement(steps, self.steps.take(block))
        except KeyboardInterrupt:
            self.state.take_over(block.W, block.alpha)
            raise

    def _shared_block(self, W: IntArray, whole: bool) -> Block:
        """Step 1: this rank's columns of K_WW, or all of them from all ranks."""
        counts = [len(part) for part in np.array_split(W, self.team.size)]
        first = sum(counts[: self.team.rank])
        mine = np.arange(first, first + counts[self.team.rank])
        diagonal = self.diagonal[W]
        K = (
            self.rows.table(W[mine])(W, len(mine))
            if len(mine)
            else np.empty((len(W), 0), dtype=self.values.dtype)
        )
        K[mine, np.arange(len(mine))] = diagonal[mine]
        if whole:
            K = self.team.join(np.ascontiguousarray(K.T), counts)
        block = Block(W, K, diagonal, *self.state.named(W))
        return block if whole else SharedBlock(**vars(block), exchange=partial(self.team.join, counts=counts))

    def counts(self) -> Counts:
        one = super().counts()
        rows, hits, evictions = self.team.sum(np.array(one[:3])).astype(int).tolist()
        return Counts(rows, hits, evictions, one.support)


class ColumnSteps(Steps):
    """Adds steps to the gradient of all samples; each rank has some of the kernel columns."""

    def __init__(self, state: State, options: EngineOptions, profile: Profile, team: Team) -> None:
        super().__init__(state, options, profile)
        self._team = team
        self._owner = np.full(state.n, -1)  # the rank that keeps the column of each sample
        self._columns = 0  # given to ranks so far

    def _add_to_gradient(self, ids: IntArray, delta: FloatArray, keep: np.ndarray | None) -> None:
        """Step 2: G += K[:, ids] delta, each rank with its columns."""
        new = ids[self._owner[ids] < 0]
        self._owner[new] = (self._columns + np.arange(len(new))) % self._team.size
        self._columns += len(new)
        mine = np.flatnonzero(self._owner[ids] == self._team.rank)
        change = np.zeros_like(self.state.G)
        for store, slots, which in self.rows.visit(ids[mine], None if keep is None else keep[mine]):
            with self.rows.values.one_blas_thread():
                _core.update_gradient(change, store, slots, delta[mine[which]], self.n_threads)
        self.state.G += self._team.sum(change)

    def _exact_scores(self, here: IntArray | None) -> FloatArray:
        mine = np.array_split(self.state.support, self._team.size)[self._team.rank]
        return self._team.sum(self.rows.scores(mine, self.state.alpha[mine], here))
