"""The native engine: C++ kernels and block solvers on threads."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...inner.base import InnerSolver
from ...inner.block import Aim
from ...problems.zero_sums import balanced, with_zero_sums
from ...run.profile import Profile, timed
from ...system.memory import WHOLE_SAMPLES
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
    Selection,
    Task,
    is_late,
    needs_all,
)
from ..budget import Budget
from ..diagonal import TINY_DIAGONAL, check_range, exact_diagonal
from ..solved_costs import SolvedCosts
from .blocks import Blocks
from .coarse_rows import ROUNDS, coarse_rows_serve
from .guests import Guests
from .keeping import keeping_pays
from .kernel_values import KernelValues, NativeValues, kernel_values
from .leap import Leap, Means
from .part_point import PartPoint
from .row_store import RowStore
from .solvers import Solvers
from .state import State
from .steps import Steps
from .team_blocks import TeamBlocks
from .team_improve import TeamImprove

_CHEAP = 0.1  # of the work of the block solvers: exact scores may cost so much between two proofs


class CpuEngine(Engine):
    """Native kernel rows (float32 unless asked otherwise), gradient, measures and block solvers.

    Kernels without a native form (callables, precomputed) are evaluated in Python; all else is native.

    On a team, each process has the rows of X, alpha and G of the samples that it holds, and the values of
    kernel rows that belong to them. The samples of a working set come to every process, and so do their rows
    of alpha and G, unless each process solves its own part of the block (``team_improve.py``). Each process
    updates its own rows of G.
    """

    name: ClassVar[str] = "cpu"
    owns_rows: ClassVar[bool] = True  # whether no other fit uses the kernel rows

    def __init__(self, task: Task, options: EngineOptions) -> None:
        self.task, self.options, self.problem, self.team = task, options, task.problem, task.team
        self.shard = Shard(len(task.y), task.team)
        if not self.shard.alone:
            needs_all(task, f"{self.name} on several processes")
        self.guests = None if self.shard.alone else Guests(task, self.shard)
        self.n, self.m, self.offset = self.shard.n, task.m, task.offset
        self.profile = Profile()
        self._uniform = self.team.uniform and len(set(self.team.collect(options.n_threads))) == 1
        with self.profile.phase("memory"):
            self._make_rows(kernel_values(task, options, self.shard, self.guests))
            self._own_diagonal = self.rows.diagonal()
            self._begin(task)
            if self.team.max(float(task.start is not None)):
                with self.running():
                    self.steps.refresh()

    def _begin(self, task: Task) -> None:
        """Make all that belongs to one fit: everything but the kernel rows."""
        options = self.options
        self.task, self._rounds = task, 0
        self.diagonal = exact_diagonal(task, self._own_diagonal)
        check_range(task, self.diagonal, self.values.dtype)
        if self.guests is not None:
            self.guests.diagonal = self.diagonal
        costs = SolvedCosts(task, self.diagonal)
        self.state = State(task, options, costs, self.shard, self.guests)
        self.solvers = Solvers(self.state, options, self.profile)
        self.steps = Steps(self.state, options, self.profile)
        self._make_blocks(options)
        parts = self.solvers, self.steps, self._uniform
        self._on_team = None if self.shard.alone else TeamImprove(self.state, *parts)
        part = self.state.part()
        self._part_point = None if isinstance(part, slice) else PartPoint(self.state, part)
        point, is_small = self._part_point or self.state, self.n <= WHOLE_SAMPLES
        at_once = not is_small and task.start is None
        self._leap = Leap(point, self.diagonal[part], at_once=at_once) if options.leap else None
        if self._leap is not None and is_small:
            self.solvers.least_descent = min(self.solvers.least_descent, int(self._leap.next))

    def _make_rows(self, values: KernelValues) -> None:
        self.values, options = values, self.options
        if self.guests is not None:
            self.guests.keep_as(self.values.compact, self.values.restored)
        budget = self._budget(self.values.row_dtype.itemsize)
        self.values.rows_in_python = budget.rows_in_python
        keeps_rows = keeping_pays(self.values, self.problem, options, self.shard)
        self.rows = RowStore(self.values, budget, self.profile, keeps_rows)

    def _make_blocks(self, options: EngineOptions) -> None:
        kind = Blocks if self.shard.alone else TeamBlocks
        self.blocks = kind(self.state, self.rows, self.diagonal, options, self.profile)
        self.solvers.use(self.blocks)
        self.steps.use(self.rows)

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
        seen: bool = False,
    ) -> Selection:
        found = self.state.select(k, rank, stop, above, among, even, seen)
        watch = self.steps.watch
        if watch is None or among not in ("all", "near"):
            return found
        if found.violation <= above and watch.complete(all_samples=False):
            found = self.state.select(k, rank, stop, above, among, even)
        return found._replace(gap=math.nan) if watch.is_stale else found

    def support(self, reach: float = math.inf) -> IntArray:
        return self.state.support if math.isinf(reach) else self.state.unsettled(reach)

    def everyone(self) -> IntArray:
        return np.arange(self.n)[self.state.part()]

    def groups(self, ids: IntArray) -> np.ndarray:
        return self.state.groups(ids)

    @timed("selection")
    def pairs(self, most: int, second_order: bool = False) -> tuple[IntArray, IntArray]:
        rows, shard, ids = self.state.rows(), self.shard, self.everyone()
        if len(ids) < self.n:
            rows, shard = rows.take(ids), Shard(len(ids), self.team)
        up, down = self.problem.pairs(rows, 1 if second_order else most, shard)
        if second_order and len(up):
            pair = np.concatenate([up, down])
            curvature = self._curvature(ids[pair])[:, self.state.part()]
            up, down = self.problem.gaining_pairs(rows, pair, curvature, most, shard)
        return ids[up], ids[down]

    def _curvature(self, pair: IntArray) -> FloatArray:
        """The curvature along the pairs of each sample held here with either of the two."""
        own = self.shard.take(pair, self.diagonal[self.shard.mine(pair)[1]])
        values = own[:, None] + self.diagonal - 2.0 * self.columns(pair).T
        least = TINY_DIAGONAL * self.task.team.max(float(self.diagonal.max(initial=0.0)))
        return np.asarray(np.maximum(values, least))

    @timed("kernel rows")
    def columns(self, ids: IntArray) -> FloatArray:
        """Kernel values of the samples ``ids`` against those held here, in float64."""
        self._invite(ids)
        return self.rows.scores(ids, np.eye(len(ids)))

    def largest_block(self) -> int:
        return self.blocks.largest

    @property
    def keeps_rows(self) -> bool:
        return self.rows.keeps_rows

    def counts(self) -> Counts:
        cache, parts, n_support = self.rows.cache, self.shard, self.state.n_support
        done = self.rows.computed, cache.hits, cache.evictions
        if not parts.alone:  # processes may have computed different rows; each counts by its length
            mine = np.array([done]) * parts.count
            done = self.team.join(mine, [1] * self.team.size).sum(axis=0) / self.n
        rows, hits, evictions = (round(float(count)) for count in done)
        return Counts(rows, hits, evictions, n_support)

    def describe(self) -> dict[str, object]:
        facts: dict[str, object] = {
            "engine": self.name,
            "n_threads": self.options.n_threads,
            "row_dtype": self.values.row_dtype.name,
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
        if self._on_team is not None:
            self._invite(W)
            return self._on_team.improve(W, inner, aim, keep, self.deadline)
        block = self.blocks.growing(W) if keep else self.blocks.once(W)
        try:
            eps = self.state.eps(aim, inner.measure, block)
            steps = self.solvers.solve(inner, block, eps, self.deadline)
            made = Improvement(steps, self.steps.take(block))
        except KeyboardInterrupt:
            self.state.take_over(block.W, block.alpha)
            self.steps.proof.lose()
            raise
        self._rounds += 1
        if self._rounds == ROUNDS and keep and self.owns_rows and coarse_rows_serve(self.rows, self.state):
            self._coarsen()
        return made

    @timed("memory")
    def _coarsen(self) -> None:
        """Go on with fixed-point rows."""
        known = self.steps.proof.knows()
        self._change_rows(self.values.coarse())
        self.steps.proof.go_on(*known)

    @timed("leap")
    def leap(self, tol: float) -> bool:
        leap, late = self._leap, partial(is_late, self.deadline, self.team)
        if leap is None:
            return False
        done, memory = self.solvers.work, self.rows.budget.finisher_bytes
        point = self._part_point
        columns = self.columns if point is None else point.columns(self.columns)
        place = self.place if point is None else point.mover(self.place)
        means, moved = Means(done, self.solvers.creeps, memory, columns, place, late), False
        if leap.is_due(tol, means):
            self._complete_gradient()
            moved = leap.take(tol, means)
            self._doubt_gradient()
            if moved:
                self.solvers.after_leap(leap.next - done)
        self.solvers.pause_at = leap.next
        return moved

    def _doubt_gradient(self) -> None:
        """G is what it was before a refresh, and no longer what ``watch`` and ``proof`` know of it."""
        self.state.is_exact = False
        self.steps.proof.lose()
        if self.steps.watch is not None:
            self.steps.watch.doubt_all()

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
        self.steps.refresh()
        if abs(self.dual - dual) < drift * abs(self.dual):
            self.state.dual, self.state.G = dual, G
            self._doubt_gradient()
            return False
        self.options = replace(self.options, dtype="float64")
        self._change_rows(kernel_values(self.task, self.options, self.shard, self.guests))
        return True

    def _change_rows(self, values: KernelValues) -> None:
        """Compute kernel rows anew, from values of another precision."""
        before = self.rows.computed, self.rows.cache.hits, self.rows.cache.evictions
        del self.rows, self.blocks, self.solvers.blocks  # two may not fit
        self.steps.forget()
        self._make_rows(values)
        self.rows.computed, self.rows.cache.hits, self.rows.cache.evictions = before
        self._make_blocks(self.options)

    def _proof_is_cheap(self) -> bool:
        """Whether exact scores cost little beside what the block solvers have done."""
        values = self.n * self.state.n_support
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
        self.steps.refresh()

    # -- the bias ------------------------------------------------------------------------------------
    def sums(self) -> FloatArray:
        return self.state.sums()

    def shift(self, change: FloatArray) -> None:
        self.state.shift(change)
        if self.steps.watch is not None:
            self.steps.watch.shifted(change)

    def _complete_gradient(self) -> None:
        """Bring all rows of G up to date."""
        if self.steps.watch is not None:
            self.steps.watch.complete()

    @timed("selection")
    def centre(self) -> None:
        self._complete_gradient()
        rows = self.state.rows().take(self.state.part())
        self.shift(np.array([self.problem.centre(rows, self.task.team)]))

    def best_bias(self, most: float = math.inf) -> None:
        self._complete_gradient()
        part, task = self.state.part(), self.task
        S = self.state.scores(part)
        change = self.problem.best_bias(S, task.y[part], task.C[part], self.bias, task.team) - self.bias
        self.shift(np.clip(change, -most, most))

    def balance(self) -> bool:
        alpha, _, y, C = self.state.rows().take(self.state.part())
        found = balanced(self.problem, alpha, y, C, self.task.team)
        if found is not None:
            self.place(self.state.whole(found))
        return found is not None

    def zero_sums(self) -> None:
        alpha, _, y, C = self.state.rows().take(self.state.part())
        self.place(self.state.whole(with_zero_sums(self.problem, alpha, y, C, self.task.team)))
        self.best_bias()

    # -- certify -------------------------------------------------------------------------------------
    @timed("proof")
    def prove(self) -> Certificate:
        if not self.state.is_exact:
            self._make_exact()
        return self.certificate()

    def _make_exact(self) -> None:
        """Compute what matters of G from alpha in float64."""
        steps = self.steps
        if self.options.free_bias:
            return steps.refresh()
        steps.bound_error()
        if (matters := steps.proof.undecided_pairs()) is not None:
            return steps.refresh_pairs(matters)
        return steps.refresh(steps.proof.undecided())

    @timed("proof")
    def certificate(self) -> Certificate:
        self._complete_gradient()
        return self.state.certificate()

    def found(self) -> Found:
        return self.state.found()

    def retire(self) -> None:
        self.rows.forget()

    @timed("messages")
    def samples(self, ids: IntArray) -> Data:
        return self.task.X[ids] if self.guests is None else self.guests.originals(ids)
