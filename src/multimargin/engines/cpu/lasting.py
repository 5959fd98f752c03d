"""The native engine for many fits to the same samples with the same kernel."""

from __future__ import annotations

from ...run.profile import Profile
from ...system.typing import FloatArray, IntArray
from ..base import Task
from .engine import CpuEngine
from .kernel_values import LARGE_COST
from .reached import Reached


class LastingEngine(CpuEngine):
    """An engine that outlives a fit, and keeps its kernel rows and block for the next one.

    Fits may differ in costs, in where they start, and in the samples that are left out. The first task must
    have the largest costs of all: the precision of kernel rows depends on them.
    """

    def serves(self, task: Task) -> bool:
        """Whether ``task`` has the machine and the kernel values of this engine."""
        mine = self.task
        same = task.X is mine.X and task.kernel == mine.kernel and task.offset == mine.offset
        return same and type(task.problem) is type(mine.problem)

    def another(self, task: Task, near: Reached | None = None) -> None:
        """Begin another fit to the same samples with the same kernel: the kernel rows stay.

        Costs, start and the samples that are left out may be others. The gradient of the start is computed
        from that of ``near``, a point that an earlier fit has reached, or from zero.
        """
        if not self.serves(task):
            raise ValueError("Another fit of an engine needs the same machine, samples, kernel and offset.")
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
        """The current point, for another fit to start near it."""
        self._complete_gradient()
        knows, state = self.steps.proof.knows(), self.state
        return Reached(state.alpha.copy(), state.scores(slice(None)), *knows, state.is_exact)

    def scores(self, ids: IntArray) -> FloatArray:
        """What a model of the current point scores the samples ``ids``, in the precision of G."""
        self._complete_gradient()
        return self.state.scores(ids) + self.bias
