"""From the parameters of a kernel machine and its samples to a solution and a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engines import CpuEngine, EngineOptions, OneProcess, Setting
from ..engines.base import Engine, Task
from ..engines.cpu.at_once import AtOnce
from ..engines.diagonal import kernel_diagonal
from ..methods.at_once import may_solve_at_once, solve_at_once
from ..methods.bias import proximal_weight
from ..methods.decomposition import Decomposition
from ..problems import PROBLEMS
from ..run.monitor import Monitor
from ..solution import Solution
from ..system.device_data import DeviceData
from ..system.memory import cache_bytes
from ..system.shard import Shard
from ..system.team import SOLO, Team
from ..system.threads import effective_threads
from ..system.typing import FloatArray
from .attributes import ModelMaker
from .base import Rows
from .kernel_parameters import KernelParameters
from .starts import open_checkpoint, previous_solution


class KernelFit(KernelParameters):
    """The steps of a fit between checked samples and a fitted estimator."""

    def _task(self, X: Any, rows: Rows, given: Shard, C: FloatArray) -> Task:
        """The problem to solve, on the rows of positive weight of those that were given."""
        kept, labels, y, weight, weighted = rows
        kernel, team = self._make_kernel(), given.team
        if kernel.pairwise and given.n != X.shape[1]:
            raise ValueError(
                "kernel='precomputed' needs a square matrix of kernel values to fit, got shape "
                f"{(given.n, X.shape[1])}."
            )
        problem = PROBLEMS[self.machine](len(labels))
        start, bias = previous_solution(self, rows, given, problem, C)
        if kernel.pairwise and team.sum(len(kept)) < given.n:
            used = team.join(given.first + kept)
            X = X[kept].columns(used) if isinstance(X, DeviceData) else X[kept][:, used]
        elif len(kept) < given.count:
            X = X[kept]
        kernel = kernel.resolve(X, weight if weighted else None, team)
        kind = self._kind_of_bias()
        offset = self._bias_constant(kernel, X, weight, team) if kind == "regularized" else 0.0
        if kind == "free" and not problem.balanced:
            offset = proximal_weight(kernel_diagonal(kernel, X, team), C, len(labels), team)
        return Task(problem, kernel, X, y, C, offset, start, bias if kind == "free" else None, team)

    def _engine_options(
        self, method: Decomposition, n: int, seed: int, team: Team = SOLO, own: int | None = None
    ) -> EngineOptions:
        """How an engine may use the machine for a fit to ``n`` samples."""
        return EngineOptions(
            effective_threads(self.n_threads, team.core_share),
            cache_bytes(self.cache_size, n, team, own),
            method.block_share,
            self.dtype,
            bool(self.shrinking),
            seed,
            method.lazy_blocks,
            method.largest_set,
            method.inner,
            bool(method.leap),
            self._kind_of_bias() == "free",
            self.tol,
        )

    def _may_solve_at_once(
        self, setting: Setting, method: Decomposition, monitor: Monitor, task: Task
    ) -> bool:
        """Whether a fit to few samples may do without an engine: nothing is asked of it but the solution."""
        plain = setting == OneProcess(CpuEngine) and self.checkpoint is None and self.on_interrupt == "raise"
        return plain and may_solve_at_once(method, monitor, len(task.y))

    def _solve(
        self, setting: Setting, method: Decomposition, task: Task, model: ModelMaker, X: Any, y: Any
    ) -> tuple[Solution, dict[str, Any] | None]:
        """The solution, and the model if it could only be made while the engine was there."""
        seed = task.team.agree(self._seed())
        solver = self.solver if isinstance(self.solver, str) else repr(self.solver)
        checkpoint = open_checkpoint(self.checkpoint, model, solver, seed)
        seed = seed if checkpoint is None else checkpoint.seed
        options = self._engine_options(method, model.shard.n, seed, task.team, setting.memory(task.team))
        engine: Engine
        made: dict[str, Any] | None = None

        def run(monitor: Monitor) -> Solution:
            nonlocal engine, made
            monitor.trace.info["solver"] = solver
            rest = task
            if self._may_solve_at_once(setting, method, monitor, task):
                small = AtOnce.of(task, options)
                if small is not None:
                    at_once = solve_at_once(method, small, monitor, self.tol)
                    if at_once is not None:
                        return at_once
                    rest = small.left_over()
            engine = setting(rest, options)
            solution = method.run(
                engine,
                monitor,
                tol=self.tol,
                rng=np.random.default_rng(seed),
                free_bias=model.bias == "free",
                keep_interrupted=self.on_interrupt == "keep",
                checkpoint=checkpoint,
            )
            if task.team.size > 1:  # while the engine has the support vectors of the other processes
                engine.retire()  # their rows take memory that was touched already: fresh pages cost more
                made = model.of(solution, engine)
            return solution

        def final(solution: Solution) -> dict[str, Any]:
            return model.of(solution) if made is None else made

        def now() -> dict[str, Any]:
            return model(engine.found(), engine)

        solution = self._train(run, X, y, now=now, final=final, max_iter=self.max_iter, team=task.team)
        return solution, made
