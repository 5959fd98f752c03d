"""The linear machine's driver: passes of native coordinate descent, and the proof.

Blondel, Fujino & Ueda's Algorithm 1 keeps the weights w_r = Σ_i α_ir x_i, so that a sample's scores cost its
non-zeros times m, and no kernel value is ever needed. The driver decides what a pass visits:

    one pass over all samples → passes over the active ones, until the violations fell tenfold → again

A pass updates the samples whose violation is above a share of the mean: the largest are worth most. Others
wait; those that one class alone can have are left out until the next pass over all. When a pass over all
finds no violation above ``tol``, or the gap seems to be within ``gap_tol``, the weights are rebuilt from α in
float64 and all samples are measured with them: only that proof ends a run as converged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..run.monitor import Monitor
from ..solution import LinearSolution, Status, falls
from ..system.typing import Data, FloatArray, LabelArray

INEXACT = ("frank-wolfe",)  # one step only: neither relaxed nor on some samples more often than on others
SUBPROBLEMS = ("auto", "sort", "pivot", "bisection", "fixed-point", "smo", *INEXACT)
FEW_PASSES = 10  # up to this many are all spent on all samples, as Algorithm 1 says

_LANES = 8  # classes are padded to a multiple of this
_MOST_PARTS = 8  # threads that share a pass: the more, the more samples lack each other's steps
_BLOCK = 24  # classes, at least, that are worth a thread: with fewer it mostly reads the rows again
_MANY_CLASSES = 128  # sorting them all takes longer than pivoting
_AIM = 0.95  # of tol: leaves room for rounding, so that the exact proof succeeds at the first try
_STRICTER = 0.8  # the aim, each time a proof fails: what a pass sees is older than its end
_GAP_STRICTER = 0.95  # the same of the gap, whose estimate the proof has corrected
_RELAX = 1.3  # over-relaxation, once the first pass is made
_NEAR = 1.6  # times the gap aimed at, as passes see it: there steps
_SETTLE = 0.6  # go but so far, because what they upset adds to the gap
_EARLY, _LATE = 0.3, 1.0  # of the mean violation: what passes update, early and later
_EARLY_PASSES = 7
_FEW_UPDATES = 0.05  # of the active samples: less, and the share is halved
_LEAST_SHARE = 0.1  # of the violation aimed at: samples below are left alone
_FALL = 0.1  # how far the violations fall before all samples are looked at again
_MOST_ACTIVE = 50  # passes over active samples in a row
_MOST_PROOFS = 10  # in a row that fail without progress
_MEASURE_EVERY = 5  # passes over all samples between two measurements of the gap
_GAP_AIM = 0.95  # of gap_tol: a proof is tried there
_SEEN_SHARE = 0.7  # of the gap as it was seen in a pass that is left after it, at least
_SHARE_GROWTH = 1.1  # of that, at most, each time more is measured: single passes are noisy
_SAMPLE = 4096  # samples, at least, that stand for all when the gap is estimated
_THREADS_SHARE = 0.85  # of the decrease that threads see, each for itself: less, and they are stopped
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
    gap_tol: float = 0.0  # relative gap that is enough, whatever the violation
    max_iter: int = -1  # passes, counted in samples visited; -1 is no limit
    shrinking: bool = True
    shuffle: bool = True
    dtype: str = "auto"  # of the weights while they change
    n_threads: int = 1  # of measurements and proofs
    seed: int = 0
    parts: int = 1  # threads that share a pass


class _Pass(NamedTuple):
    """What a native pass reports."""

    visits: int
    updates: int
    active: int  # samples that the next pass over active samples may visit
    violation: float  # largest seen
    total: float  # sum over all samples, each as it was when the sample was seen last
    change: float  # of the dual
    gap: float  # sum of all samples' shares, in the same way


class LinearDescent:
    """The state of one fit: weights, dual point, and the passes that improve them."""

    def __init__(self, task: LinearTask, options: LinearOptions, weights: FloatArray | None = None) -> None:
        self.task, self.options = task, options
        self.n: int = task.X.shape[0]
        self.parts = n_blocks(task, options.parts)
        self.problem = native_problem(task, options.n_threads, self.parts)
        if task.alpha is not None:
            self._set_dual(task.alpha)
        if weights is None:
            dtype = np.float32 if self._starts_in_single() else np.float64
            weights = new_weights(task, dtype, options.parts)
        self._use(weights)
        self.dual = self._last_dual = 0.0
        self.visits = 0
        self.target = _AIM * options.tol  # violation at which a proof is tried
        self.gap_target, self._seen_share, self._near = _GAP_AIM * options.gap_tol, _SEEN_SHARE, False
        self._sample_step = max(1, self.n // _SAMPLE)  # every so many-th sample stands for all
        self._sample_share = 1.0 / self._sample_step  # of the gap, in these samples
        if task.alpha is not None:
            self.prove()
            self.go_on()

    def _starts_in_single(self) -> bool:
        if self.options.dtype == "auto":  # few passes do not come near what float32 cannot tell
            return self.options.tol >= _SINGLE_TOL or 0 <= self.options.max_iter <= FEW_PASSES
        return self.options.dtype == "float32"

    def _use(self, weights: np.ndarray, *, together: bool = True) -> None:
        name = self.options.subproblem
        if name == "auto":
            name = "sort" if self.task.m <= _MANY_CLASSES else "pivot"
        self.weights = weights
        self.together = together and len(self._blocks()) > 1
        make: type[Any] = _core.PassRunner32 if weights.dtype == np.float32 else _core.PassRunner64
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
        """How far steps go after the first pass; 1 is to the sample's own optimum."""
        if not self.options.shrinking:
            return 1.0
        return _SETTLE if self._near else _RELAX

    @property
    def passes(self) -> int:
        """Passes over the data: samples visited over their number, rounded up."""
        return -(-self.visits // self.n)

    def exhausted(self, monitor: Monitor, ahead: int) -> Status | None:
        """The limit that forbids a pass over ``ahead`` samples, if any."""
        if 0 <= self.options.max_iter * self.n < self.visits + ahead:
            return Status.MAX_ITER
        return monitor.exhausted()

    def measure(self, found: _Pass) -> float:
        """The duality gap with the weights as they are, after a pass."""
        gap = float(self.problem.measure(self.weights)[2])
        self._compare(gap, found)
        return gap

    def is_within(self, gap: float) -> bool:
        """Whether a duality gap is small enough for a proof, the primal objective being gap - dual."""
        return gap <= self.gap_target * (gap - self.dual)

    def seems_within(self, found: _Pass) -> bool:
        """The same of the gap after a pass: as what the pass saw lets expect, then as some samples say."""
        self._near = self.is_within(found.gap / _NEAR)
        if not self.is_within(self._seen_share * found.gap):
            return False
        if not self._sample_share > 0:  # these samples say nothing
            return self.is_within(self.measure(found))
        gap = self._sampled_gap(self.weights) / self._sample_share
        self._compare(gap, found)
        return self.is_within(gap)

    def _compare(self, gap: float, found: _Pass) -> None:
        share = gap / found.gap if found.gap > 0 else _SEEN_SHARE
        self._seen_share = min(max(share, _SEEN_SHARE), _SHARE_GROWTH * self._seen_share)

    def _sampled_gap(self, weights: np.ndarray) -> float:
        return float(self.problem.measure(weights, self._sample_step)[2])

    def check_threads(self) -> None:
        """Go on without threads, where they undo each other's work.

        Each sees a decrease of the dual that is true while the others stand still. Samples that are alike,
        visited at the same time, go too far together.
        """
        if not self.together:
            return
        hoped, self.dual = self.dual, self._dual_of(self.weights)
        if self._last_dual - self.dual < _THREADS_SHARE * (self._last_dual - hoped):
            self.together = False
            self.native.part()
        self._last_dual = self.dual

    def _dual_of(self, weights: np.ndarray) -> float:
        half = 0.5 * _core.squared_norm(weights, self.options.n_threads)
        return float(half - self.problem.dual_sum())

    def prove(self) -> tuple[float, float, float]:
        """(violation, primal, gap) with weights rebuilt from the dual in float64."""
        in_place = self.weights.dtype == np.float64 and self.weights.shape == weights_shape(self.task)
        self.exact = self.weights if in_place else new_weights(self.task, np.float64)
        self.problem.rebuild(self.exact)
        violation, _, gap, loss = self.problem.measure(self.exact)
        self.dual = self._last_dual = self._dual_of(self.exact)
        self._proved_gap = gap
        return violation, self.dual + self.problem.dual_sum() + loss, gap

    def go_on(self) -> None:
        """Take the weights of the last proof over, and what it says about the samples that stand for all."""
        if self.options.gap_tol > 0 and self._proved_gap > 0:
            self._sample_share = self._sampled_gap(self.exact) / self._proved_gap
        self._take_over_exact()

    def alpha(self) -> sp.csr_array:
        """The dual point, (n, m)."""
        indptr, classes, values = self.problem.dual()
        return sp.csr_array((values, classes, indptr), shape=(self.n, self.task.m))

    def promote(self) -> bool:
        """Go on with float64 weights, where float32 hides the rest; False where they are that already."""
        if self.weights.dtype == np.float64 or self.options.dtype == "float32":
            return False
        self._use(new_weights(self.task, np.float64, self.options.parts), together=self.together)
        self._take_over_exact()
        return True

    def weights_by_class(self) -> FloatArray:
        """The weights as they are, (features, m) in float64."""
        weights = new_weights(self.task, np.float64)
        for mine, block in zip(class_blocks(self.task, weights, self.weights), self._blocks(), strict=True):
            mine[:] = block[:, : mine.shape[1]]
        return weights

    def _take_over_exact(self) -> None:
        if self.exact is not self.weights:
            for mine, block in zip(
                self._blocks(), class_blocks(self.task, self.exact, self.weights), strict=True
            ):
                mine[:, : block.shape[1]] = block

    def _blocks(self) -> np.ndarray:
        return self.weights.reshape(-1, n_weights(self.task), self.weights.shape[1])


def native_problem(task: LinearTask, n_threads: int, parts: int = 1) -> _core.LinearProblem:
    """The samples as the native code sees them, without a copy."""
    X = task.X
    rest = task.y, task.C, task.m, task.constant, n_threads, parts
    if not sp.issparse(X):
        return _core.LinearProblem(X, *rest)
    indices, indptr = X.indices, X.indptr
    if indices.dtype != indptr.dtype:
        indices, indptr = indices.astype(np.int64, copy=False), indptr.astype(np.int64, copy=False)
    return _core.LinearProblem(X.data, indices, indptr, X.shape[1], *rest)


def most_parts(m: int) -> int:
    """Threads that can share a pass, each with classes of its own."""
    return min(max(1, m // _BLOCK), _MOST_PARTS)


def weights_shape(task: LinearTask, parts: int = 1) -> tuple[int, int]:
    """(features times blocks, classes of a block): a feature's weights lie side by side, block by block."""
    return n_blocks(task, parts) * n_weights(task), _block_width(task, parts)


def n_blocks(task: LinearTask, parts: int) -> int:
    """Blocks of weights for so many threads; fewer where there are not as many classes."""
    return -(-task.m // _block_width(task, parts))


def _block_width(task: LinearTask, parts: int) -> int:
    return -(-task.m // (parts * _LANES)) * _LANES


def class_blocks(task: LinearTask, weights: np.ndarray, like: np.ndarray) -> list[np.ndarray]:
    """Views of the m columns of ``weights``, as they are divided into blocks in ``like``."""
    width = like.shape[1]
    return [weights[:, first : min(first + width, task.m)] for first in range(0, task.m, width)]


def n_weights(task: LinearTask) -> int:
    """Weights of a class: one a feature, and the intercept's."""
    return int(task.X.shape[1]) + (task.constant != 0)


def new_weights(task: LinearTask, dtype: type, parts: int = 1) -> np.ndarray:
    """Zeros, on a cache line's boundary: otherwise every vector of weights lies in two of them."""
    shape, line = weights_shape(task, parts), 64
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(size + line, dtype=np.uint8)
    first = -memory.__array_interface__["data"][0] % line
    return memory[first : first + size].view(dtype).reshape(shape)


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
        if gap <= options.gap_tol * primal:
            status = Status.WITHIN_GAP
            break
        descent.go_on()
        descent.target *= _STRICTER
        descent.gap_target *= _GAP_STRICTER
        fruitless = 0 if falls(descent.dual, dual) or violation < 0.9 * lowest else fruitless + 1
        dual, lowest = min(dual, descent.dual), min(lowest, violation)
        if status is Status.STALLED or fruitless == _MOST_PROOFS:
            status, fruitless = Status.STALLED, 0
            if not descent.promote():
                break
    monitor.trace.info.update(
        seconds=monitor.seconds, n_threads=descent.parts, dtype=descent.weights.dtype.name
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
    schedule = _Schedule(descent)
    while True:
        if status := descent.exhausted(monitor, descent.n if schedule.over_all else schedule.active):
            return status
        found = descent.run_pass(
            over_all=schedule.over_all,
            threshold=schedule.threshold,
            relax=descent.relax if schedule.passes else 1.0,
            margin=schedule.margin,
        )
        if schedule.over_all:
            descent.check_threads()
        done = (schedule.over_all and found.violation <= descent.target) or descent.seems_within(found)
        gap = descent.measure(found) if schedule.measures and not done else math.nan
        if status := _record(descent, monitor, found, gap):
            return status
        if done or descent.is_within(gap):
            return Status.CONVERGED
        if not schedule.go_on(found):
            return Status.STALLED


class _Schedule:
    """What the next pass visits and updates."""

    def __init__(self, descent: LinearDescent) -> None:
        self._descent, self._options = descent, descent.options
        self.over_all, self.threshold, self.margin = True, 0.0, math.inf
        self.active, self.passes = descent.n, 0
        self._rounds = self._since = 0  # passes over all samples, and over active ones since
        self._first = math.inf  # violations that the last pass over all samples found
        self._share = 1.0

    @property
    def measures(self) -> bool:
        """Whether the gap is measured after this pass."""
        return self.over_all and self._rounds > 0 and self._rounds % _MEASURE_EVERY == 0

    def go_on(self, found: _Pass) -> bool:
        """Look at what the pass found; False where nothing can move any more."""
        self.passes += 1
        self.active = found.active
        if not self.over_all:
            self._since += 1
        else:
            if not found.updates and self.threshold <= 0.5 * self._options.tol:
                return False
            self._rounds, self._since, self._first = self._rounds + 1, 0, found.total
            self.margin = found.violation
        if self._options.shrinking:
            self.threshold = self._next_threshold(found)
            self.over_all = not found.updates or (not self.over_all and self._must_see_all(found))
        return True

    def _next_threshold(self, found: _Pass) -> float:
        few = found.updates < _FEW_UPDATES * found.active
        self._share = 0.5 * self._share if few else min(1.0, 2.0 * self._share)
        share = _EARLY if self.passes < _EARLY_PASSES else _LATE
        threshold = self._share * share * found.total / self._descent.n
        if self.over_all and not found.updates:  # nothing was above it, but not all is below tol
            threshold = min(threshold, 0.5 * self._options.tol)
        return max(threshold, _LEAST_SHARE * self._descent.target)

    def _must_see_all(self, found: _Pass) -> bool:
        settled = found.violation <= self._descent.target or found.total < _FALL * self._first
        return settled or self._since == _MOST_ACTIVE


def _record(descent: LinearDescent, monitor: Monitor, found: _Pass, gap: float) -> Status | None:
    return monitor.note(
        violation=found.violation,
        dual=descent.dual,
        gap=gap,
        working_set=found.visits,
        inner=found.updates,
        support=descent.problem.support(),
    )
