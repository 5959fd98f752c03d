"""The native engine: C++ kernels and block solvers on threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ... import _core
from ...inner import work
from ...inner.base import InnerSolver
from ...inner.block import Aim, Block
from ...problems.zero_sums import balanced, with_zero_sums
from ...run.profile import Profile, timed
from ...system.shard import Shard
from ...system.threads import blas_threads
from ...system.typing import Data, FloatArray, IntArray
from ..base import (
    Certificate,
    Counts,
    Engine,
    EngineOptions,
    Found,
    Improvement,
    LowRank,
    Selection,
    Task,
    is_late,
)
from ..budget import Budget
from ..diagonal import TINY_DIAGONAL, exact_diagonal
from ..divergence import check_dual
from ..solved_costs import SolvedCosts
from .blocks import Blocks, LazyBlock, StoreBlock
from .guests import Guests
from .kernel_values import NativeValues, kernel_values
from .leap import Leap
from .row_store import RowStore, chunks
from .solvers import Solvers
from .state import State
from .team_blocks import TeamBlocks

_GUESTS_AT_ONCE = 4096  # samples whose coefficients travel in one message
_CHEAP = 0.1  # of the work of the block solvers: exact scores may cost so much between two proofs


class CpuEngine(Engine):
    """Native kernel rows (float32 unless asked otherwise), gradient, measures and block solvers.

    Kernels without a native form (callables, precomputed) are evaluated in Python; all else is native.

    On a team, each process has the rows of X, alpha and G of the samples that it holds, and the values of
    kernel rows that belong to them. The samples of a working set come to every process, and so do their rows
    of alpha and G. All processes solve the block alike, and each updates its own rows of G.
    """

    name: ClassVar[str] = "cpu"

    def __init__(self, task: Task, options: EngineOptions) -> None:
        self.task, self.options, self.problem, self.team = task, options, task.problem, task.team
        self.shard = Shard(len(task.y), task.team)
        self.guests = None if self.shard.alone else Guests(task, self.shard)
        self.n, self.m, self.offset = self.shard.n, task.m, task.offset
        self.profile = Profile()
        self._leap: Leap | None = None
        self._uniform = self.team.uniform and len(set(self.team.collect(options.n_threads))) == 1
        with self.profile.phase("memory"):
            self._make_rows(options)
            self.diagonal = exact_diagonal(task, self.rows.diagonal())
            if self.guests is not None:
                self.guests.diagonal = self.diagonal
            costs = SolvedCosts(task, self.diagonal)
            self.state = State(task, options, costs, self.shard, self.guests)
            self.blocks = self._make_blocks(options)
            self.solvers = Solvers(self.state, self.blocks, options, self.profile)
            self._moves = np.zeros(self.n, dtype=np.int64)  # of each sample in lazy blocks
            if self.team.max(float(task.start is not None)):
                with self.running():
                    self._refresh()

    def _make_rows(self, options: EngineOptions) -> None:
        self.values = kernel_values(self.task, options, self.shard, self.guests)
        if self.guests is not None:
            self.guests.keep_as(self.values.compact)
        budget = self._budget(self.values.dtype.itemsize)
        self.values.rows_in_python = budget.rows_in_python
        self.rows = RowStore(self.values, budget, self.profile)

    def _make_blocks(self, options: EngineOptions) -> Blocks:
        kind = Blocks if self.shard.alone else TeamBlocks
        return kind(self.state, self.rows, self.diagonal, options, self.profile)

    def _budget(self, itemsize: int) -> Budget:
        """How the memory is divided: alike in all processes, as the one with most samples needs it."""
        return self.options.budget(self.n, itemsize, self.values.temporary_bytes, self.shard.largest)

    def running(self) -> AbstractContextManager[Any]:
        return blas_threads(self.values.blas_threads)

    @property
    def bias(self) -> FloatArray:
        return self.state.bias

    @property
    def dual(self) -> float:
        return self.state.dual

    @property
    def total_cost(self) -> float:
        return self.state.costs.total

    # -- look ----------------------------------------------------------------------------------------
    @timed("selection")
    def select(
        self,
        k: int,
        *,
        rank: str = "psi",
        stop: str = "psi",
        above: float = 0.0,
        among: str = "all",
        even: bool = False,
    ) -> Selection:
        return self.state.select(k, rank, stop, above, among, even)

    def support(self, reach: float = math.inf) -> IntArray:
        return self.state.support if math.isinf(reach) else self.state.unsettled(reach)

    def groups(self, ids: IntArray) -> np.ndarray:
        return self.state.groups(ids)

    @timed("selection")
    def pairs(self, most: int, second_order: bool = False) -> tuple[IntArray, IntArray]:
        rows, shard = self.state.rows(), self.shard
        up, down = self.problem.pairs(rows, 1 if second_order else most, shard)
        if not second_order or not len(up):
            return up, down
        pair = np.concatenate([up, down])
        own = shard.take(pair, self.diagonal[shard.mine(pair)[1]])
        values = [
            kii + self.diagonal - 2.0 * self.column(i) for i, kii in zip(pair.tolist(), own, strict=True)
        ]
        least = TINY_DIAGONAL * self.task.team.max(float(self.diagonal.max(initial=0.0)))
        curvature = np.asarray(np.maximum(values, least))
        return self.problem.gaining_pairs(rows, pair, curvature, most, shard)

    @timed("kernel rows")
    def column(self, i: int) -> FloatArray:
        """Kernel values of sample ``i`` against those held here, in float64."""
        self._invite(np.array([i]))
        return self.rows.scores(np.array([i]), np.ones((1, 1)))[:, 0]

    def largest_block(self) -> int:
        return self.blocks.largest

    def counts(self) -> Counts:
        cache, parts = self.rows.cache, self.shard
        done = np.array([[self.rows.computed, cache.hits, cache.evictions]])
        if not parts.alone:  # processes may have computed different rows; each counts by its length
            done = self.team.join(done * parts.count, [1] * self.team.size).sum(axis=0) / self.n
        rows, hits, evictions = np.rint(done).astype(int).ravel().tolist()
        return Counts(rows, hits, evictions, len(self.state.support))

    def describe(self) -> dict[str, object]:
        facts: dict[str, object] = {
            "engine": self.name,
            "n_threads": self.options.n_threads,
            "row_dtype": self.values.dtype.name,
            "cache_rows": self.rows.cache.capacity,
            "kernel_form": self.values.form,
        } | self.team.facts()
        if self.solvers.in_python:
            facts["solved_in_python"] = sorted(self.solvers.in_python)
        return facts

    # -- move ----------------------------------------------------------------------------------------
    def _invite(self, ids: IntArray) -> None:
        """Bring samples of other processes here."""
        if self.guests is not None:
            with self.profile.phase("messages"):
                self.guests.welcome(ids)

    def improve(self, W: IntArray, inner: InnerSolver, aim: Aim, keep: bool = False) -> Improvement:
        if isinstance(self.blocks, TeamBlocks):
            return self._improve_on_team(self.blocks, W, inner, aim, keep)
        block = self.blocks.growing(W) if keep else self.blocks.once(W)
        try:
            steps = self._solve(inner, block, aim)
            return Improvement(steps, self._update(block))
        except KeyboardInterrupt:
            self.state.take_over(block.W, block.alpha)
            raise

    def _solve(self, inner: InnerSolver, block: Block, aim: Aim) -> int:
        eps = aim.eps(self.problem, inner.measure, block, self.n)
        return self.solvers.solve(inner, block, eps, self.deadline)

    def _improve_on_team(
        self, blocks: TeamBlocks, W: IntArray, inner: InnerSolver, aim: Aim, keep: bool
    ) -> Improvement:
        """Solve a block in every process, or in the first one.

        The first one has the block of a growing set. It also solves alone if others may get another result:
        then the others wait. Processes that solve the same block may share its products.
        """
        self._invite(W)
        keep = keep or blocks.by_first(W, inner)
        alike = not keep and self._uniform and math.isinf(self.deadline)
        if alike and blocks.shares(W, inner):
            block: Block = blocks.shared(W)
        else:
            block = blocks.growing(W) if keep else blocks.once(W)
        before = block.alpha.copy(), block.G.copy()
        if alike:
            steps = self._solve(inner, block, aim)
            return Improvement(steps, self._update(block, before))
        steps = self._solve_by_first(inner, block, aim, blocks.while_first_solves if keep else None)
        return Improvement(steps, self._update(block, before))

    def _solve_by_first(
        self, inner: InnerSolver, block: Block, aim: Aim, meanwhile: Callable[[Block], None] | None = None
    ) -> int:
        """Let the first process solve the block; what the others do meanwhile."""
        steps = 0
        if self.team.rank == 0:
            steps = self._solve(inner, block, aim)
        elif meanwhile is not None:
            meanwhile(block)
        sent, counts = slice(None if self.team.rank == 0 else 0), [len(block.W)] + [0] * (self.team.size - 1)
        with self.profile.phase("messages"):
            for rows in (block.alpha, block.G):  # one after the other: no message of n x m numbers
                rows[:] = self.team.join(rows[sent], counts)
            steps, self.solvers.progress = self.team.agree((steps, self.solvers.progress))
        return steps

    @timed("gradient")
    def _update(self, block: Block, before: tuple[FloatArray, FloatArray] | None = None) -> bool:
        """Take over a solved block. Kernel rows are needed only of samples that moved.

        ``before`` are the rows of alpha and G that the block had, if the state does not have them all.
        """
        state, W = self.state, block.W
        delta = block.alpha - (state.alpha[W] if before is None else before[0])
        moved = np.flatnonzero(delta.any(axis=1))
        if not len(moved):
            return False
        # G_new - G_old = K_WW delta on W, so the exact change of the dual needs no further product.
        G = state.G[W[moved]] if before is None else before[1][moved]
        state.dual += 0.5 * float(np.vdot(block.G[moved] + G, delta[moved]))
        check_dual(self.task, state.dual, self.total_cost)
        if isinstance(block, StoreBlock) and len(W) == self.n:  # G is complete
            state.G[W] = block.G
        else:
            self._add_to_gradient(W[moved], delta[moved], self._worth_keeping(block, moved))
        if state.ridge is not None:
            places, own = self.shard.mine(W[moved])
            state.G[own] += state.ridge[own, None] * delta[moved][places]
        state.take_over(W, block.alpha)
        return True

    def _add_to_gradient(self, ids: IntArray, delta: FloatArray, keep: np.ndarray | None) -> None:
        """G += K[:, ids] delta."""
        for store, slots, which in self.rows.visit(ids, keep):
            with self.values.one_blas_thread():
                _core.update_gradient(self.state.G, store, slots, delta[which], self.options.n_threads)

    def _worth_keeping(self, block: Block, moved: IntArray) -> np.ndarray | None:
        """Whose rows to keep, as a mask; None is all.

        After a lazy block: samples off their bounds, once their repeated rows cost more than memory.
        """
        if not isinstance(block, LazyBlock) or not isinstance(self.values, NativeValues):
            return None
        ids = block.W[moved]
        self._moves[ids] += 1
        dear = self._moves[ids] * self.values.work >= work.FIRST_TOUCH
        free = self.problem.group(block.alpha[moved], block.y[moved], block.C[moved]) == 0
        return np.asarray(dear & free)

    def leap(self, rule: LowRank, tol: float) -> bool:
        if self._leap is None:
            self._leap = Leap(rule, self.state, self.diagonal)
        late = partial(is_late, self.deadline, self.team)
        alpha = self._leap.point(tol, self.solvers.work, self.rows.budget.finisher_bytes, self.column, late)
        if alpha is None:
            return False
        before = self.state.alpha, self.state.G, self.state.dual
        try:
            self.place(alpha)
        except KeyboardInterrupt:
            self.state.place(before[0])
            raise
        if self.state.dual < before[2]:
            return True
        self.state.place(before[0])
        _, self.state.G, self.state.dual = before
        return False

    @timed("memory")
    def promote(self, drift: float = 0.0) -> bool:
        if self.options.dtype != "auto" or self.values.dtype == np.float64:
            return False
        if drift > 0 and not self._proof_is_cheap():
            return False
        try:
            self._budget(8)
        except ValueError:  # float64 values do not fit the memory budget
            return False
        dual, G = self.state.dual, self.state.G
        self._refresh()
        if abs(self.dual - dual) < drift * abs(self.dual):
            self.state.dual, self.state.G = dual, G
            return False
        self.options = replace(self.options, dtype="float64")
        before = self.rows.computed, self.rows.cache.hits, self.rows.cache.evictions
        del self.rows, self.blocks, self.solvers.blocks  # memory for two stores may be missing
        self._make_rows(self.options)
        self.rows.computed, self.rows.cache.hits, self.rows.cache.evictions = before
        self.blocks = self._make_blocks(self.options)
        self.solvers.use(self.blocks)
        return True

    def _proof_is_cheap(self) -> bool:
        """Whether exact scores cost little beside what the block solvers have done."""
        values = self.n * len(self.state.support)
        return (
            isinstance(self.values, NativeValues) and values * self.values.work < _CHEAP * self.solvers.work
        )

    def raise_costs(self) -> bool:
        alpha = self.state.raise_costs()
        if alpha is not None:
            self.place(alpha)
        return alpha is not None

    @timed("gradient")
    def place(self, alpha: FloatArray) -> None:
        """Take over ``alpha`` of the samples held here; G and the dual in float64."""
        self.state.place(alpha)
        self._refresh()

    # -- the bias ------------------------------------------------------------------------------------
    def sums(self) -> FloatArray:
        return self.state.sums()

    def shift(self, change: FloatArray) -> None:
        self.state.shift(change)

    @timed("selection")
    def centre(self) -> None:
        self.shift(np.array([self.problem.centre(self.state.rows(), self.task.team)]))

    def best_bias(self, most: float = math.inf) -> None:
        S = self.state.scores(slice(None))
        change = self.problem.best_bias(S, self.task.y, self.task.C, self.bias, self.task.team) - self.bias
        self.shift(np.clip(change, -most, most))

    def balance(self) -> bool:
        alpha = balanced(self.problem, self.state.alpha, self.task.y, self.state.C, self.task.team)
        if alpha is not None:
            self.place(alpha)
        return alpha is not None

    def zero_sums(self) -> None:
        self.place(with_zero_sums(self.problem, self.state.alpha, self.task.y, self.state.C, self.task.team))
        self.best_bias()

    # -- certify -------------------------------------------------------------------------------------
    def _refresh(self) -> None:
        """Recompute G and the dual from alpha."""
        ids, state = self.state.support, self.state
        if self.shard.alone:
            state.take_scores(self.rows.scores(ids, state.alpha[ids]))
            return
        S = np.zeros_like(state.alpha)
        for part in chunks(ids, _GUESTS_AT_ONCE):  # messages do not grow with n
            self._invite(part)
            S += self.rows.scores(part, state.coefficients(part))
        state.take_scores(S)

    @timed("proof")
    def prove(self) -> Certificate:
        self._refresh()
        return self.certificate()

    @timed("proof")
    def certificate(self) -> Certificate:
        return self.state.certificate()

    def found(self) -> Found:
        return self.state.found()

    @timed("messages")
    def samples(self, ids: IntArray) -> Data:
        return self.task.X[ids] if self.guests is None else self.guests.originals(ids)
