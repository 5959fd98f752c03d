"""The native engine for many fits to the same samples with the same kernel."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar, Self

from ...run.profile import Profile
from ...system.typing import FloatArray, IntArray
from ..base import EngineOptions, Task
from ..budget import Budget
from ..lasting import Lasting
from .engine import CpuEngine
from .kernel_values import LARGE_COST, NativeValues
from .reached import Reached

_ROOM = 2  # times the support vectors: blocks of a twin must hold so many samples, or it would be slow


class LastingEngine(CpuEngine, Lasting):
    """Keeps its kernel rows and its block."""

    owns_rows: ClassVar[bool] = False

    @property
    def may_have_twins(self) -> bool:
        """Rows may be shared if none ever leaves. Kernels in Python may not be called by several threads."""
        return isinstance(self.values, NativeValues) and self.shard.alone and self.rows.holds_all

    def twins(self, count: int) -> list[Self]:
        if not self.may_have_twins:
            return []
        try:
            budget = self.rows.budget.twin(count, self.rows.kept.nbytes)
        except ValueError:
            return []
        if budget.largest_block < min(self.n, _ROOM * self.state.n_support):
            return []
        threads = max(1, self.options.n_threads // count)
        options = replace(self.options, n_threads=threads, cache_bytes=budget.cache_bytes)
        return [self._twin(options, budget) for _ in range(count)]

    def _twin(self, options: EngineOptions, budget: Budget) -> Self:
        twin = copy.copy(self)
        twin.options, twin.profile = options, Profile()
        twin.values = self.values.on_threads(options.n_threads)
        twin.rows = self.rows.twin(twin.values, budget, twin.profile)
        twin._begin(self.task)
        return twin

    @contextmanager
    def lent_to(self, twins: Sequence[Self]) -> Iterator[None]:
        rows = [twin.rows for twin in twins]
        self.rows.deal(rows)
        yield
        self.rows.merge(rows)

    def another(self, task: Task, near: Reached | None = None) -> None:
        self.check_serves(task)
        self.profile = self.rows.profile = Profile()
        with self.profile.phase("memory"):
            near = Reached.nothing(self.n, task.m) if near is None else near
            steady = float(task.C.max()) > LARGE_COST
            blocks = self.blocks
            with self.running():
                start = near.moved(task.alpha(), self.rows, self.options.n_threads, steady)
                self._begin(task)
                self.state.take_scores(start.scores)
            self.blocks.take_over(blocks)
            self.state.is_exact = start.is_exact
            self.steps.proof.go_on(start.length, start.known)
            if self.steps.watch is not None:
                self.steps.watch.see_all()

    def reached(self) -> Reached:
        self._complete_gradient()
        knows, state = self.steps.proof.knows(), self.state
        return Reached(state.alpha.copy(), state.scores(slice(None)), *knows, state.is_exact)

    def scores(self, ids: IntArray) -> FloatArray:
        self._complete_gradient()
        return self.state.scores(ids) + self.bias
