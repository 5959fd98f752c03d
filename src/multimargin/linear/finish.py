"""When a linear fit goes over from passes to proximal Newton steps, and how these are counted and stopped.

If a Newton step costs little more than a pass, as with few features and classes, steps take over after
``newton_early`` passes. Passes are the right method for other data: they stay as they are until
``newton_after`` of them were not enough. If the gap is then still large, and Newton's matrix is small
enough, its steps take over at once.
Otherwise passes get about as much time as the Newton steps would take, so that the choice costs twice the
better method at most. The work of a Newton step is estimated from some samples before any is made. Should
the steps end without the optimum, passes go on from the point reached, and the next attempt comes after twice
as many.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from ..problems.newton_direction import NoDirectionError, SystemSize
from ..run.monitor import Monitor
from ..solution import Status
from ..system.threads import blas_threads
from .descent import LinearFit
from .proximal import ProximalNewton, first_face

_PRODUCTS = 4  # of all samples with a matrix of weights, per Newton step


class Finish:
    """The attempts of one fit."""

    def __init__(self, fit: LinearFit, monitor: Monitor) -> None:
        self._fit, self._monitor, self._tuning = fit, monitor, fit.options.tuning
        self._allowed = fit.alone and fit.options.takes_newton_steps and self._is_small()
        self._due = self._first_passes() * fit.n if self._allowed else math.inf
        self._status: Status | None = None

    @cached_property
    def _is_squared(self) -> bool:
        return self._fit.data.problem.ridge(self._fit.data.C) is not None

    def _first_passes(self) -> float:
        """Passes before an attempt is thought of.

        With a squared loss Newton's method is sure to need only a few steps, each as dear as some passes per
        feature. So passes get as much time as these steps would take.
        """
        data, tuning = self._fit.data, self._tuning
        if not self._is_squared:
            return min(tuning.newton_early, tuning.newton_after)
        return min(max(tuning.newton_share * int(data.X.shape[1]), tuning.newton_least), tuning.newton_after)

    def _is_small(self) -> bool:
        """Whether dense arrays of scores and of weights fit in memory, and Newton's matrix may be small."""
        n, m, X, tuning = self._fit.n, self._fit.data.m, self._fit.data.X, self._tuning
        features = int(X.shape[1]) + 1
        values = max(n * m, features * m, 0 if sp.issparse(X) else int(X.size))
        return values <= tuning.newton_values and min(features, n) * m <= tuning.newton_features

    def is_due(self) -> bool:
        """Whether so many samples were visited that passes alone will take too long."""
        visits = self._fit.visits
        if visits < self._due:
            return False
        later = self._tuning.newton_after * self._fit.n
        if visits < later and not self._is_squared:
            if self._is_cheap():
                return True
            self._due = later
            return False
        self._due = max(self._due, min(self._visits_worth_while(), 2.0 * visits))
        return visits >= self._due

    def _is_cheap(self) -> bool:
        """Whether the goal is far, and a Newton step costs little more than a pass, as samples are now."""
        data, tuning = self._fit.data, self._tuning
        if self._fit.options.gap_tol >= tuning.newton_early_gap:
            return False
        work = tuning.newton_part * (self._work_of_step() + _PRODUCTS * data.work)
        return work <= tuning.newton_cheap * data.work

    def _visits_worth_while(self) -> float:
        """Samples that passes visit before Newton steps pay, as the samples are now."""
        work = self._work_of_step()
        if (self._creeps() or self._is_squared) and math.isfinite(work):
            return 0.0
        work += _PRODUCTS * self._fit.data.work
        return self._tuning.newton_part * self._tuning.newton_steps * work / self._work_of_visit

    def _creeps(self) -> bool:
        """Whether the gap is still so large that the end of the passes is not in sight."""
        gap = self._fit.seen_gap
        return not gap <= self._tuning.newton_gap * (gap - self._fit.dual)

    def _work_of_step(self) -> float:
        """Multiply-adds of the matrices of a Newton step; infinite if none fits in memory."""
        fit, coupled = self._fit, self._fit.data.problem.sums_to_zero
        step = max(1, fit.n // self._tuning.sample)
        face = first_face(fit, np.arange(0, fit.n, step))
        face = face[np.count_nonzero(face, axis=1) > coupled]
        members, count = (np.count_nonzero(face, axis=axis).astype(np.float64) for axis in (0, 1))
        sizes = step * members, step * float(count @ count), float(step * len(face))
        size = SystemSize(*sizes, fit.layout.features, coupled)
        try:
            return size.work[0 if size.by_pairs(self._tuning.newton_bytes) else 1]
        except NoDirectionError:
            return math.inf

    @cached_property
    def _work_of_visit(self) -> float:
        """Multiply-adds of the scores of a sample, on average."""
        X = self._fit.data.X
        values = X.nnz if sp.issparse(X) else np.count_nonzero(X)
        return float(values + 1) * self._fit.data.m / self._fit.n

    def polishes(self) -> bool:
        """Whether the problem is so small that it is solved almost exactly, once it has converged."""
        return self._allowed and self._fit.n <= self._tuning.polish

    def run(self, tol: float, gap_tol: float = 0.0) -> Status | None:
        """Newton steps, until the violation is at most ``tol``; the limit that stopped them, if one did."""
        fit = self._fit
        self._due, self._status = 2.0 * max(self._due, fit.visits), None
        with blas_threads(fit.options.n_threads if fit.data.work > self._tuning.parallel_work else 1):
            self._step_on(ProximalNewton(fit), tol, gap_tol)
        return self._status

    def _step_on(self, point: ProximalNewton, tol: float, gap_tol: float) -> None:
        moved = True
        while moved and self._status is None and not point.is_met(tol, gap_tol):
            before = self._fit.visits
            moved = point.step(tol, self._goes_on)
            visits = self._fit.visits - before
            if not visits and self._status is not None:
                return
            status = self._monitor.note(
                violation=point.violation,
                dual=point.dual,
                gap=point.gap,
                working_set=visits,
                inner=point.undecided,
                support=self._fit.support(),
            )
            self._status = self._status or status

    def _goes_on(self) -> bool:
        """Count a Newton step, which scores all samples; False if a limit forbids it."""
        fit = self._fit
        if 0 <= fit.options.max_iter * fit.n < fit.visits + fit.n:
            self._status = Status.MAX_ITER
        else:
            self._status = self._monitor.exhausted()
        if self._status is None:
            fit.visits += fit.n
        return self._status is None
