"""The state of one linear fit: weights, dual point, native passes, and the proof.

Blondel, Fujino & Ueda's Algorithm 1 keeps the weights w_r = Σ_i α_ir x_i. The scores of a sample then cost
its non-zeros times m, and no kernel value is needed. ``schedule.py`` decides what each pass visits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..problems import LINEAR_PROBLEMS, Problem
from ..system.team import SOLO, Team
from ..system.typing import Data, FloatArray, LabelArray
from .rounds import Pass, PassRule, Rounds
from .tuning import Tuning
from .weights import SharedWeights, WeightLayout

_SINGLE_LARGEST = 1e30  # norm of a sample: its square times a weight must not overflow float32
SUBPROBLEMS = ("auto", "sort", "pivot", "bisection", "fixed-point", "smo", "frank-wolfe")


@dataclass(frozen=True)
class TrainingSet:
    """What is to be solved: data, labels 0..m-1, one cost per sample, and a constant feature unless 0."""

    X: Data
    y: LabelArray
    C: FloatArray
    m: int
    constant: float = 0.0
    alpha: sp.csr_array | None = None  # feasible start, (n, m); None is zero
    team: Team = SOLO  # who else has samples of this problem
    machine: str = "crammer-singer"  # a name in LINEAR_PROBLEMS

    @property
    def problem(self) -> Problem:
        """The machine's formulas."""
        return LINEAR_PROBLEMS[self.machine](self.m)

    def layout(self, parts: int = 1) -> WeightLayout:
        """The weights' layout for passes that ``parts`` threads share."""
        return WeightLayout(int(self.X.shape[1]) + (self.constant != 0), self.m, parts)

    def native(self, n_threads: int, parts: int = 1) -> _core.LinearProblem:
        """The samples as the native code sees them, without a copy."""
        X = self.X
        rest = self.y, self.C, self.m, self.constant, n_threads, parts
        if not sp.issparse(X):
            return _core.LinearProblem(self.machine, X, *rest)
        indices, indptr = X.indices, X.indptr
        if indices.dtype != indptr.dtype:
            indices, indptr = indices.astype(np.int64, copy=False), indptr.astype(np.int64, copy=False)
        return _core.LinearProblem(self.machine, X.data, indices, indptr, X.shape[1], *rest)

    @property
    def work(self) -> int:
        """Non-zeros times classes: the multiplications that score all samples."""
        return int(self.X.nnz if sp.issparse(self.X) else self.X.size) * self.m

    def threads_worth_while(self, n_threads: int, tuning: Tuning) -> int:
        """Threads that share a pass: 1 if passes or rows are short, at most one per few classes."""
        if self.work <= tuning.parallel_work or self.work <= tuning.parallel_row * self.X.shape[0]:
            return 1
        return min(n_threads, max(1, self.m // tuning.thread_classes), tuning.most_threads)


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
    parts: int | None = None  # threads that share a pass; None is as many as are worth while
    tuning: Tuning = field(default_factory=Tuning)

    @property
    def has_few_passes(self) -> bool:
        """Whether ``max_iter`` is so small that every pass visits all samples."""
        return 0 <= self.max_iter <= self.tuning.few_passes

    @property
    def shrinks(self) -> bool:
        """Whether some passes visit the active samples only; Frank-Wolfe's inexact steps need all samples."""
        return self.shrinking and not self.has_few_passes and self.subproblem != "frank-wolfe"

    @property
    def takes_newton_steps(self) -> bool:
        """Whether Newton steps, in float64, may follow; who names a subproblem wants that method alone."""
        return self.shrinks and self.subproblem == "auto" and self.dtype != "float32"

    @property
    def first_dtype(self) -> type:
        """Precision of the weights at the start; few passes do not reach the limits of float32."""
        single = self.tol >= self.tuning.single_tol or self.has_few_passes
        return np.float32 if self.dtype == "float32" or (self.dtype == "auto" and single) else np.float64


class Proof(NamedTuple):
    """What is known of a point in float64."""

    violation: float
    primal: float
    gap: float


class LinearFit:
    """The weights and the dual point of one fit, and what may be done with them."""

    def __init__(self, data: TrainingSet, options: LinearOptions, weights: FloatArray | None = None) -> None:
        self.data, self.options = data, options
        self.team, self.alone = data.team, data.team.size == 1
        self.rows: int = data.X.shape[0]
        self.n = int(self.team.sum(self.rows))  # of all processes
        parts = options.parts or data.threads_worth_while(options.n_threads, options.tuning)
        parts = int(self.team.max(parts))  # the weights lie alike in all processes
        self.rounds = None if self.alone else Rounds(self.team, options.tuning)
        self._active = self.n  # samples that a pass over the active ones may visit
        self.layout = data.layout(parts)
        threads = options.n_threads, self.layout.blocks
        self.problem = (
            data.native(*threads) if self.alone else self.team.attempt(lambda: data.native(*threads))
        )
        self.dual = self._last_dual = 0.0
        self._hoped = 0.0  # the dual if steps of different processes only added up
        self.visits = 0
        self.seen_gap = math.inf  # in the last pass: the sum of samples' shares, each of its last visit
        self.proved_gap = 0.0  # in the last proof
        self._proof: Proof | None = None  # of the dual as it is, with its weights in ``exact``
        if data.alpha is not None:
            self.set_dual(data.alpha)
        self._shared: SharedWeights | None = None
        self.exact: FloatArray  # weights of the last proof, until ``take_over_proof``
        if weights is None:
            weights = self._new_weights(options.first_dtype if self._fits_single() else np.float64)
        self._use(weights)
        if data.alpha is not None:
            self.prove()
            self.take_over_proof()

    def _fits_single(self) -> bool:
        """Whether float32 holds products of the features; it is taken nevertheless if it was asked for."""
        largest = self.team.max(float(self.problem.norms().max(initial=0.0)))
        return self.options.dtype == "float32" or math.sqrt(largest) <= _SINGLE_LARGEST

    def _new_weights(self, dtype: type) -> np.ndarray:
        """Zeros to train with, and in ``exact`` the memory of proofs: the same, whenever that can be."""
        if dtype is np.float32:
            self._shared = SharedWeights(self.layout)
            self.exact = self._shared.exact
            return self._shared.single
        weights = self.layout.zeros(np.float64)
        self.exact = weights if self.layout.blocks == 1 else self.data.layout().zeros(np.float64)
        return weights

    def _use(self, weights: np.ndarray, *, together: bool = True) -> None:
        name = self.options.subproblem
        if name == "auto":
            pivots = "pivot" in self.data.problem.updates and self.data.m > self.options.tuning.many_classes
            name = "pivot" if pivots else "sort"
        self.weights = weights
        self.together = together and self.layout.blocks > 1  # whether threads share the passes
        tau, seed = self.options.tau, self.options.seed
        self.native = _core.PassRunner(self.problem, weights, name, tau, seed, self.together)
        if not self.alone:
            self.native.share()

    def set_dual(self, alpha: sp.csr_array) -> None:
        """Go to another dual point; the weights follow with the next proof."""
        self._proof = None
        self.problem.set_dual(
            alpha.indptr.astype(np.int64, copy=False),
            alpha.indices.astype(np.int32, copy=False),
            alpha.data.astype(np.float64, copy=False),
        )

    def set_dense_dual(self, alpha: FloatArray) -> None:
        """The same with an array (samples, classes)."""
        self._proof = None
        self.problem.set_dense_dual(alpha)

    def run_pass(
        self, *, over_all: bool, threshold: float = 0.0, relax: float = 1.0, margin: float = math.inf
    ) -> Pass:
        """One pass; the weights and the dual move."""
        self._proof = None
        rule = PassRule(over_all, threshold, relax, margin, self.options.shuffle)
        if self.rounds is None:
            self.native.begin(*rule)
            found = Pass(*self.native.go_on())
        else:
            visits = self.n if over_all else self._active
            found = self.rounds.run(self.native, self.problem, rule, visits, self.weights, self.dual)
            self._active = found.active
            self._hoped += self.rounds.hoped
        self.dual += found.change
        self.visits += found.visits
        self.seen_gap = found.gap
        return found

    @property
    def passes(self) -> int:
        """Passes over the data: samples visited over their number, rounded up."""
        return -(-self.visits // self.n)

    def gap_of(self, weights: np.ndarray, step: int = 1) -> float:
        """The duality gap of every ``step``-th sample with these weights, summed."""
        return float(self.team.sum(self.problem.measure(weights, step)[2]))

    def check_threads(self) -> None:
        """End the sharing of passes if threads undo each other's work.

        A thread knows nothing of the others' steps: those of similar samples together may go too far.
        """
        if not self.together:
            return
        hoped = self._hoped
        if self.alone:
            hoped, self.dual = self.dual, self._dual_of(self.weights)
        if self._last_dual - self.dual < self.options.tuning.threads_share * (self._last_dual - hoped):
            self.together = False
            self.native.part()
        self._last_dual = self._hoped = self.dual

    def _dual_of(self, weights: np.ndarray) -> float:
        half = 0.5 * _core.squared_norm(weights, self.options.n_threads)
        return float(half + self.problem.conjugate())

    def _rebuild(self) -> None:
        """Compute the exact weights from the dual of all processes."""
        self.problem.rebuild(self.exact)
        if not self.alone:
            classes = self.exact[:, : self.data.m]
            classes[:] = self.team.sum(classes)

    def prove(self) -> Proof:
        """The proof that a run ends with, or goes on from: the last measurement, if nothing moved since."""
        return self._proof or self.measure_exactly()

    def measure_exactly(self) -> Proof:
        """Measure all samples with weights rebuilt from the dual in float64."""
        self._rebuild()
        violation, _, gap, loss = self.problem.measure(self.exact)
        gap, loss, conjugate = self.team.sum([gap, loss, self.problem.conjugate()]).tolist()
        half = 0.5 * _core.squared_norm(self.exact, self.options.n_threads)
        self.dual = self._last_dual = self._hoped = half + conjugate
        self.proved_gap = gap
        self._proof = Proof(self.team.max(violation), half + loss, gap)
        return self._proof

    def take_over_proof(self) -> None:
        """Go on with the weights of the last proof."""
        self._proof = None
        if self._shared is not None:
            self._shared.round_exact()
        elif self.exact is not self.weights:
            for mine, proved in self.layout.paired(self.weights, self.exact):
                mine[:] = proved

    def promote(self) -> bool:
        """Go on with float64 weights if float32 hides the rest; False if that cannot be done."""
        if self.weights.dtype == np.float64 or self.options.dtype == "float32":
            return False
        self._shared = None
        self._rebuild()
        self._use(
            self.exact if self.layout.blocks == 1 else self.layout.zeros(np.float64), together=self.together
        )
        self.take_over_proof()
        return True

    def support(self) -> int:
        """Number of samples with α ≠ 0, as of the last pass."""
        return self.problem.support() if self.rounds is None else self.rounds.support

    def alpha(self) -> sp.csr_array:
        """The dual point, (n, m)."""
        indptr, classes, values = self.problem.dual()
        return sp.csr_array((values, classes, indptr), shape=(self.rows, self.data.m))

    def weights_by_class(self) -> FloatArray:
        """The weights as they are, (features, at least m) in float64."""
        weights = self.data.layout().zeros(np.float64)
        for mine, columns in self.layout.paired(self.weights, weights):
            columns[:] = mine
        return weights
