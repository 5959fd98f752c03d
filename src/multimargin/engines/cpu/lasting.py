"""The native engine for many fits to the same samples with the same kernel."""

from __future__ import annotations

from ...run.profile import Profile
from ...system.typing import FloatArray, IntArray
from ..base import Task
from ..lasting import Lasting
from .engine import CpuEngine
from .kernel_values import LARGE_COST
from .reached import Reached


class LastingEngine(CpuEngine, Lasting):
    """Keeps its kernel rows and its block."""

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
