"""A small problem solved at once: the kernel matrix, one descent over all samples, and the proof.

The rounds of a fit need an engine with row store, working sets, a watch over the gradient and much else.
Setting that up takes longer than a small problem does. So a small problem without anything unusual is first
tried in a few native calls. If these do not meet the tolerance, the fit goes on from their point as usual.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ... import _core
from ...inner import CoordinateDescent
from ...run.profile import Profile
from ...system.threads import blas_threads
from ...system.typing import FloatArray
from ..base import Certificate, EngineOptions, Found, Task
from ..diagonal import exact_diagonal
from ..divergence import check_dual
from ..solved_costs import SolvedCosts
from .layouts import Layout
from .state import rows_not_zero

_COPIES = 3  # of the kernel matrix that must fit the memory budget, what solvers need included
_WORK, _WORK_PER_VALUE = 30_000_000, 80  # of all descents, and for every value of the kernel matrix


class AtOnce:
    """A small problem, its kernel matrix and the point that was reached. Make it by ``of``."""

    name = "cpu"

    def __init__(self, task: Task, options: EngineOptions, layout: Layout, profile: Profile) -> None:
        self.task, self.options, self.problem, self.profile = task, options, task.problem, profile
        self.n, self.m = len(task.y), task.m
        self._layout, self.updates, self.alpha = layout, 0, np.zeros((self.n, self.m))
        self._work = _WORK + _WORK_PER_VALUE * self.n * self.n  # that descents may still take

    @classmethod
    def of(cls, task: Task, options: EngineOptions) -> AtOnce | None:
        """The problem, or None if it is not one for this."""
        n, inner, kernel = len(task.y), options.inner, task.kernel
        usual = task.team.size == 1 and task.start is None and task.left_out is None and not options.free_bias
        able = isinstance(inner, CoordinateDescent) and inner.looks_at_all(n, task.m)
        if not (usual and able and options.dtype == "auto" and 8 * _COPIES * n * n <= options.cache_bytes):
            return None
        if kernel.native is None or not kernel.bounded:  # others may be indefinite, or need a bias
            return None
        profile = Profile()
        with profile.phase("memory"):
            layout = Layout.plan(kernel, task.X, "float64", task.team)
            made = cls(task, options, layout, profile) if layout.exact else None
            return made if made is not None and made._prepare() else None

    def _prepare(self) -> bool:
        """Compute the kernel matrix; whether the costs are such that the descent can resolve them."""
        task, n, profile = self.task, self.n, self.profile
        diagonal = task.kernel.own_diagonal(task.X, 0)
        self._diagonal = exact_diagonal(task, diagonal)
        if SolvedCosts(task, self._diagonal).are_capped:
            return False
        samples, every = self._layout.samples(task.X), np.arange(n)
        self._kernel = np.empty((n, n))
        with profile.phase("kernel rows"):
            spec, threads = self._layout.spec(task.offset), self.options.n_threads
            _core.kernel_block(spec, samples, every, samples, 0, n, self._kernel, every, threads)
        return True

    def start(self) -> tuple[float, float]:
        """Begin at alpha = 0; return the violation and the gap there."""
        with self.profile.phase("selection"):
            self._G = -self.problem.target(self.task.y)
            psi, gap = self._measure()
        return float(psi.max()) / self.problem.kappa, float(gap.sum())

    def descend(self, eps: float) -> None:
        """Bring all violations below ``eps``, as far as the work allows."""
        inner, task = self.options.inner, self.task
        assert isinstance(inner, CoordinateDescent)
        with self.profile.phase("inner"), blas_threads(1):
            options = _core.DescentOptions(
                eps=eps * self.problem.kappa,
                max_sweeps=np.iinfo(np.int64).max,
                most_work=self._work,
                update=inner.update,
                relax=inner.relax,
                faces=inner.faces,
                partners=True,
                whole=True,
            )
            arrays = self._kernel, self._diagonal, self._G, self.alpha, task.y, task.C
            _, updates, _, work = _core.coordinate_descent(self.problem.name, *arrays, options)
        self.updates += updates
        self._work = max(0, self._work - work)

    def prove(self) -> Certificate:
        """Recompute G and the dual from alpha, in float64, and measure all samples."""
        task, problem = self.task, self.problem
        with self.profile.phase("gradient"):
            self.ids, S = np.flatnonzero(rows_not_zero(self.alpha)), np.zeros((self.n, self.m))
            _core.update_gradient(S, self._kernel, self.ids, self.alpha[self.ids], self.options.n_threads)
            self._scores, self._G = S, problem.gradient(S, self.alpha, task.y, task.C)
        with self.profile.phase("proof"):
            psi, gap = self._measure()
            dual = problem.dual(self.alpha, S, task.y, task.C)
            check_dual(task, dual, float(task.C.sum()))
            return Certificate(
                violation=float(psi.max()) / problem.kappa,
                gain=float(problem.closeness(psi, gap, task.C).max()),
                primal=problem.primal(self.alpha, S, np.zeros(self.m), task.y, task.C),
                dual=dual,
                gap=float(gap.sum()),
            )

    def _measure(self) -> tuple[FloatArray, FloatArray]:
        task, psi, gap = self.task, np.zeros(self.n), np.zeros(self.n)
        name, threads = self.problem.name, self.options.n_threads
        _core.measure(name, self._G, self.alpha, task.y, task.C, None, psi, gap, threads)
        return psi, gap

    def found(self) -> Found:
        """The support vectors and their coefficients."""
        ids, task = self.ids, self.task
        loss = self.problem.loss(self._scores[ids], task.y[ids], np.ones(len(ids)))
        return Found(ids, self.alpha[ids], loss, task.offset * self.alpha.sum(axis=0))

    def left_over(self) -> Task:
        """The task, with the point that was reached as its start."""
        moved = np.flatnonzero(rows_not_zero(self.alpha))
        return replace(self.task, start=(moved, self.alpha[moved])) if len(moved) else self.task

    def describe(self) -> dict[str, Any]:
        """Facts for the trace, as an engine has them."""
        return {
            "engine": self.name,
            "n_threads": self.options.n_threads,
            "row_dtype": "float64",
            "cache_rows": self.n,
            "kernel_form": self._layout.describe(),
        }
