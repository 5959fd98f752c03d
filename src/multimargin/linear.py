"""The linear machine's driver: passes of native coordinate descent, and the proof.

Blondel, Fujino & Ueda's Algorithm 1 keeps the weights w_r = Σ_i α_ir x_i, so that a sample's scores cost its
non-zeros times m, and no kernel value is ever needed. The driver decides what a pass visits:

    one pass over all samples → passes over the active ones, until their violations fell tenfold → again

Samples that meet their condition wait; those that one class alone can have are left out until the next pass
over all. When a pass over all finds no violation above ``tol``, the weights are rebuilt from α in float64 and
all samples are measured with them: only that proof ends a run as converged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from . import _core
from .monitor import Monitor
from .solution import LinearSolution, Status, falls
from .typing import Data, FloatArray, LabelArray

SUBPROBLEMS = ("auto", "sort", "pivot", "bisection", "fixed-point", "smo", "frank-wolfe")
FEW_PASSES = 10  # up to this many are all spent on all samples, as Algorithm 1 says

_LANES = 8  # classes are padded to a multiple of this
_MANY_CLASSES = 128  # sorting them all takes longer than pivoting
_AIM = 0.95  # of tol: leaves room for rounding, so that the exact proof succeeds at the first try
_STRICTER = 0.8  # the aim, each time a proof fails: what a pass sees is older than its end
_RELAX = 1.4  # over-relaxation, once the first pass is made
_EARLY, _LATE = 0.1, 0.5  # of the mean violation: what passes over active samples update, early and later
_EARLY_ROUNDS = 2
_ALL_SHARE = 0.3  # of the mean violation that those passes left: what a pass over all samples updates
_LEAST_SHARE = 0.1  # of the violation aimed at: samples below are left alone
_FALL = 0.1  # how far the violations of active samples fall before all are looked at again
_MOST_ACTIVE = 50  # passes over active samples in a row
_MOST_PROOFS = 10  # in a row that fail without progress
_MEASURE_EVERY = 5  # passes over all samples between two measurements of the gap
_THREADS_SHARE = 0.5  # of the decrease that threads see, each for itself: less, and they are stopped
_SINGLE_TOL = 1e-5  # float32 weights cannot tell violations below this


@dataclass(frozen=True)
class LinearTask:
    """What is to be solved: data, labels 0..m-1, one cost a sample, a constant feature where not 0."""

    X: Data
    y: LabelArray
    C: FloatArray
    m: int
    constant: float = 0.0
    alpha: sp.csr_array | None = None  # feasible start, (n, m); None is zero


@dataclass(frozen=True)
class LinearOptions:
    """How to solve it."""

    subproblem: str = "auto"
    tau: float = 0.0  # tolerance of "bisection" and "smo"; 0 is exact
    tol: float = 1e-3
    max_iter: int = -1  # passes, counted in samples visited; -1 is no limit
    shrinking: bool = True
    shuffle: bool = True
    dtype: str = "auto"  # of the weights while they change
    n_threads: int = 1
    seed: int = 0


class _Pass(NamedTuple):
    """What a native pass reports."""

    visits: int
    updates: int
    active: int  # samples that the next pass over active samples may visit
    violation: float  # largest seen
    total: float  # sum of those seen
    change: float  # of the dual

    @property
    def mean(self) -> float:
        """Of the violations seen."""
        return self.total / max(self.visits, 1)


class LinearDescent:
    """The state of one fit: weights, dual point, and the passes that improve them."""

    def __init__(self, task: LinearTask, options: LinearOptions, weights: FloatArray | None = None) -> None:
        self.task, self.options = task, options
        self.n: int = task.X.shape[0]
        self.problem = native_problem(task, options.n_threads)
        if task.alpha is not None:
            self._set_dual(task.alpha)
        if weights is None:
            dtype = np.float32 if self._starts_in_single() else np.float64
            weights = np.zeros(weights_shape(task), dtype=dtype)
        self._use(weights)
        self.dual = self._last_dual = 0.0
        self.visits = 0
        self.target = _AIM * options.tol  # violation at which a proof is tried
        if task.alpha is not None:
            self.prove()

    def _starts_in_single(self) -> bool:
        if self.options.dtype == "auto":
            return self.options.tol >= _SINGLE_TOL
        return self.options.dtype == "float32"

    def _use(self, weights: np.ndarray, *, together: bool = True) -> None:
        name = self.options.subproblem
        if name == "auto":
            name = "sort" if self.task.m <= _MANY_CLASSES else "pivot"
        self.weights = weights
        self.together = together and self.options.n_threads > 1
        make: type[Any] = _core.LinearDescent32 if weights.dtype == np.float32 else _core.LinearDescent64
        self.native = make(self.problem, weights, name, self.options.tau, self.options.seed, self.together)

    def _set_dual(self, alpha: sp.csr_array) -> None:
        alpha = alpha.tocoo()
        off = (alpha.col != self.task.y[alpha.row]) & (alpha.data < 0)
        rows, columns, values = alpha.row[off], alpha.col[off], alpha.data[off]
        order = np.argsort(rows, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.n))]).astype(np.int64)
        self.problem.set_dual(
            indptr, columns[order].astype(np.int32), values[order].astype(np.float64, copy=False)
        )

    def run_pass(
        self, *, over_all: bool, threshold: float = 0.0, relax: float = 1.0, margin: float = math.inf
    ) -> _Pass:
        """One pass; the weights and the dual move."""
        found = _Pass(*self.native.run(over_all, threshold, relax, margin, self.options.shuffle))
        self.dual += found.change
        self.visits += found.visits
        return found

    @property
    def relax(self) -> float:
        """How far steps go, 1 is to the sample's own optimum; threads and Frank-Wolfe stop there."""
        return 1.0 if self.together or self.options.subproblem == "frank-wolfe" else _RELAX

    @property
    def passes(self) -> int:
        """Passes over the data: samples visited over their number, rounded up."""
        return -(-self.visits // self.n)

    def exhausted(self, monitor: Monitor, ahead: int) -> Status | None:
        """The limit that forbids a pass over ``ahead`` samples, if any."""
        if 0 <= self.options.max_iter * self.n < self.visits + ahead:
            return Status.MAX_ITER
        return monitor.exhausted()

    def measure(self) -> float:
        """The duality gap with the weights as they are."""
        return float(self.problem.measure(self.weights)[2])

    def check_threads(self) -> None:
        """Go on without threads, where they undo each other's work.

        Each sees a decrease of the dual that is true while the others stand still. Samples that are alike,
        visited at the same time, go too far together.
        """
        if not self.together:
            return
        hoped, self.dual = self.dual, 0.5 * squared_norm(self.weights) - self.problem.dual_sum()
        if self._last_dual - self.dual < _THREADS_SHARE * (self._last_dual - hoped):
            self._use(self.weights, together=False)
        self._last_dual = self.dual

    def prove(self) -> tuple[float, float, float]:
        """(violation, primal, gap) with weights rebuilt from the dual in float64, which then take over."""
        exact = self.weights if self.weights.dtype == np.float64 else np.empty(self.weights.shape)
        self.problem.rebuild(exact)
        violation, _, gap, loss = self.problem.measure(exact)
        half = 0.5 * squared_norm(exact)
        self.dual = half - self.problem.dual_sum()
        self._last_dual = self.dual
        self.exact = exact
        if exact is not self.weights:
            self.weights[:] = exact
        self.native.weights_changed()
        return violation, half + loss, gap

    def alpha(self) -> sp.csr_array:
        """The dual point, (n, m)."""
        indptr, classes, values = self.problem.dual()
        return sp.csr_array((values, classes, indptr), shape=(self.n, self.task.m))

    def promote(self) -> bool:
        """Go on with float64 weights, where float32 hides the rest; False where they are that already."""
        if self.weights.dtype == np.float64 or self.options.dtype == "float32":
            return False
        self._use(self.exact, together=self.together)
        return True


def native_problem(task: LinearTask, n_threads: int) -> _core.LinearProblem:
    """The samples as the native code sees them, without a copy."""
    X = task.X
    rest = task.y, task.C, task.m, task.constant, n_threads
    if not sp.issparse(X):
        return _core.LinearProblem(X, *rest)
    indices, indptr = X.indices, X.indptr
    if indices.dtype != indptr.dtype:
        indices, indptr = indices.astype(np.int64, copy=False), indptr.astype(np.int64, copy=False)
    return _core.LinearProblem(X.data, indices, indptr, X.shape[1], *rest)


def weights_shape(task: LinearTask) -> tuple[int, int]:
    """(features, padded classes): the m weights of a feature lie side by side."""
    return task.X.shape[1] + (task.constant != 0), -(-task.m // _LANES) * _LANES


def squared_norm(weights: np.ndarray, step: int = 4096) -> float:
    """‖W‖² in float64, whatever the weights are."""
    total = 0.0
    for first in range(0, len(weights), step):
        part = weights[first : first + step].astype(np.float64, copy=False)
        total += float(np.einsum("ij,ij->", part, part))  # BLAS would use its threads
    return total


def solve_linear(
    descent: LinearDescent, monitor: Monitor, *, keep_interrupted: bool = False
) -> LinearSolution:
    """Train; without shrinking it is Algorithm 1 to the letter, every pass over all samples."""
    options = descent.options
    dual, lowest, fruitless = math.inf, math.inf, 0  # of the proofs so far
    while True:
        try:
            status = _descend(descent, monitor)
            violation, primal, gap = descent.prove()
        except KeyboardInterrupt:
            if not keep_interrupted:
                raise
            status = Status.INTERRUPTED
            violation, primal, gap = descent.prove()
        if status not in (Status.CONVERGED, Status.STALLED):
            break
        if violation <= options.tol:
            status = Status.CONVERGED
            break
        descent.target *= _STRICTER
        fruitless = 0 if falls(descent.dual, dual) or violation < 0.9 * lowest else fruitless + 1
        dual, lowest = min(dual, descent.dual), min(lowest, violation)
        if status is Status.STALLED or fruitless == _MOST_PROOFS:
            status, fruitless = Status.STALLED, 0
            if not descent.promote():
                break
    monitor.trace.info.update(
        seconds=monitor.seconds, n_threads=options.n_threads, dtype=descent.weights.dtype.name
    )
    return LinearSolution(
        status,
        violation,
        primal,
        descent.dual,
        gap,
        monitor.trace,
        descent.exact,
        descent.alpha(),
        descent.passes,
    )


def _descend(descent: LinearDescent, monitor: Monitor) -> Status:
    """Passes until one over all samples finds no violation, a limit is met, or nothing moves."""
    options, rounds, threshold, margin = descent.options, 0, 0.0, math.inf
    while True:
        if status := descent.exhausted(monitor, descent.n):
            return status
        relax = descent.relax if rounds and options.shrinking else 1.0
        found = descent.run_pass(over_all=True, threshold=threshold, relax=relax, margin=margin)
        descent.check_threads()
        done = found.violation <= descent.target
        gap = descent.measure() if rounds % _MEASURE_EVERY == 0 and not done else math.nan
        if status := _record(descent, monitor, found, gap):
            return status
        if done:
            return Status.CONVERGED
        if not found.updates:
            if threshold <= 0.5 * options.tol:
                return Status.STALLED
            threshold = 0.5 * options.tol  # nothing was above it, but not all is below tol
            continue
        margin = found.violation
        rounds += 1
        if options.shrinking:
            share = _EARLY if rounds <= _EARLY_ROUNDS else _LATE
            least = _LEAST_SHARE * descent.target
            left = _descend_active(descent, monitor, max(share * found.mean, least), found.active)
            if isinstance(left, Status):
                return left
            threshold = max(_ALL_SHARE * left, least)


def _descend_active(
    descent: LinearDescent, monitor: Monitor, threshold: float, active: int
) -> float | Status:
    """Passes over the active samples until their violations fell; the mean left, or the limit met."""
    first = math.inf
    for _ in range(_MOST_ACTIVE):
        if status := descent.exhausted(monitor, active):
            return status
        found = descent.run_pass(over_all=False, threshold=threshold, relax=descent.relax)
        first = min(first, found.total)
        if status := _record(descent, monitor, found, math.nan):
            return status
        if found.violation <= descent.target or not found.updates or found.total < _FALL * first:
            break
    return found.mean


def _record(descent: LinearDescent, monitor: Monitor, found: _Pass, gap: float) -> Status | None:
    return monitor.note(
        violation=found.violation,
        dual=descent.dual,
        gap=gap,
        working_set=found.visits,
        inner=found.updates,
        support=descent.problem.support(),
    )
