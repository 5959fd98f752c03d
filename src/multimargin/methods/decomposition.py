"""THE outer loop.

    select W → kernel rows of W → solve the block → update the gradient → record → stop?

(Niu & Yuan, Algorithm 1.) The engine does the work that grows with n; this file only decides. When the
rule finds no violator any more, the gradient is recomputed from alpha in float64: only that proof ends a
run as converged. If rounding in the kernel rows hid a violation, the loop goes on from the exact gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..engines.base import Certificate, Engine
from ..engines.leap import Leap, LowRank
from ..inner.base import InnerSolver
from ..inner.block import Block
from ..inner.coordinate_descent import CoordinateDescent
from ..problems.base import Problem
from ..run.monitor import Monitor
from ..solution import Solution, Status, falls
from .bias import BestBias, FreeBias, minimise_over_bias, start_balanced
from .working_sets import Choice, WorkingSet

_AIM = 0.95  # of tol: leaves room for rounding, so that the exact proof succeeds at the first try
_MOST_PROOFS = 50
_FLAT_STEPS = 1000  # steps (and 20 passes) that may leave the dual where it is, to rounding
_POLISH_EPS = 1e-11
_SETTLE_SHARE = 0.25
_MOST_BIAS_STEPS = 500
_POLISH_TOL = 1e-9  # the same with a free bias
_FIRST_EPS, _BIAS_FALL = 0.1, 0.3  # accuracy of the first descent for a free bias, and its fall a step
_BIAS_AIM, _LEAST_EPS = 0.8, 0.01  # of tol: leaves room for balancing the classes, and more where that fails


@dataclass(frozen=True)
class Decomposition:
    """A solver: a working-set rule, an inner solver, and when to stop.

    Parameters
    ----------
    working_set : WorkingSet
        Rule that chooses the next samples.
    inner : InnerSolver
        Solver of the block subproblem.
    stop : {"psi", "gain", "gap"}
        Stop when max ψ_i ≤ tol (Crammer & Singer), when max g_i/c_i ≤ tol (Niu & Yuan), or when Σ g_i ≤ tol P
        (Didiot & Lauer's dual / U ≥ 1 - tol), which is seen when the rule looks at all samples.
    inner_share, inner_floor : float
        The block is solved to ``inner_share`` of its own violation, but no further than ``inner_floor``
        of ``tol``; where it is the whole problem, straight to that.
    settle : bool
        Before the proof, solve all support vectors and violators as one block by coordinate descent, if that
        block fits the memory budget. Projected gradient, stopped on the gap, leaves small coefficients on
        samples that have none at the optimum; this removes them.
    polish : int
        Problems of at most this many samples are finally solved as one block to almost float64 accuracy, so
        that the model hardly depends on the order of the rows.
    leap : LowRank or None
        Where the kernel is nearly of low rank, solve for all samples at once with an approximate kernel, as
        soon as the blocks have cost as much as that will; then go on from there.

    Examples
    --------
    >>> from multimargin import KernelSVC
    >>> from multimargin.methods.decomposition import Decomposition
    >>> from multimargin.inner import CoordinateDescent
    >>> from multimargin.working_set import Gain
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> solver = Decomposition(Gain(q=10), CoordinateDescent("pivot"))
    >>> KernelSVC(solver=solver).fit(X, y).status_.converged
    True
    """

    working_set: WorkingSet
    inner: InnerSolver
    stop: str = "psi"
    inner_share: float = 0.1
    inner_floor: float = 0.1
    settle: bool = False
    polish: int = 0
    leap: LowRank | None = None

    def __post_init__(self) -> None:
        if self.stop not in ("psi", "gain", "gap"):
            raise ValueError(f"stop must be 'psi', 'gain' or 'gap', got {self.stop!r}.")
        if self.inner.keeps_sums and (self.settle or self.polish or self.leap is not None):
            raise ValueError(
                f"{self.inner!r} keeps the class sums of alpha, and settle, polish and leap do not: use it "
                "without them."
            )

    def check(self, problem: Problem) -> None:
        """Raise ``ValueError`` if a part cannot handle the machine."""
        self.inner.check(problem)
        if problem.balanced and not self.working_set.by_pairs:
            able = [rule.name for rule in WorkingSet.__subclasses__() if rule.by_pairs]
            raise ValueError(
                f"{self.working_set.name} chooses samples one by one, and those of {problem.name} can only "
                f"move in pairs; use {' or '.join(able)}."
            )
        if self.leap is not None and problem.feasible_set not in self.leap.handles:
            raise ValueError(
                f"A leap cannot handle the {problem.feasible_set} of {problem.name}; use leap=None."
            )

    def run(
        self,
        engine: Engine,
        monitor: Monitor,
        *,
        tol: float,
        rng: np.random.Generator,
        free_bias: bool = False,
        keep_interrupted: bool = False,
    ) -> Solution:
        """Solve the engine's problem; with ``free_bias`` the constant in its kernel is the proximal ρ."""
        self.check(engine.problem)
        if self.inner.keeps_sums and not free_bias:
            raise ValueError(f"{self.inner!r} keeps the class sums of alpha: it is for bias='free' only.")
        proximal = free_bias and not self._keeps_sums(engine)
        solve = self._solve_for_bias if proximal else self._descend_and_prove
        engine.until = monitor.until
        with engine.running():
            status, proof = solve(engine, monitor, tol, rng, keep_interrupted)
        alpha, scores = engine.result()
        monitor.trace.info.update(
            engine.describe(), seconds=monitor.seconds, profile=dict(engine.profile.seconds)
        )
        return Solution(
            status,
            proof.violation,
            proof.primal,
            proof.dual,
            proof.gap,
            monitor.trace,
            alpha,
            engine.intercept,
            scores,
        )

    def _descend_and_prove(
        self, engine: Engine, monitor: Monitor, tol: float, rng: np.random.Generator, keep: bool
    ) -> tuple[Status, Certificate]:
        """Alternate descents and exact proofs until a proof succeeds, a limit is met, or neither helps."""
        dual, violation = math.inf, math.inf  # of the last proof
        leap = None if self.leap is None else Leap(self.leap, engine)
        if self._keeps_sums(engine):
            start_balanced(engine)
        for _ in range(_MOST_PROOFS):
            status = self._descend(engine, monitor, tol, rng, keep, leap)
            try:
                if status in (Status.CONVERGED, Status.STALLED):
                    self._finish(engine, monitor, tol)
                proof = self._prove(engine, tol)
            except KeyboardInterrupt:
                if not keep:
                    raise
                status, proof = Status.INTERRUPTED, self._prove(engine, tol)
            if status not in (Status.CONVERGED, Status.STALLED):
                return status, proof
            left = self._left(proof)
            if left <= tol:
                return Status.CONVERGED, proof
            if not (falls(proof.dual, dual) or left < 0.5 * violation):
                break
            dual, violation = min(dual, proof.dual), left
        return Status.STALLED, proof

    def _solve_for_bias(
        self, engine: Engine, monitor: Monitor, tol: float, rng: np.random.Generator, keep: bool
    ) -> tuple[Status, Certificate]:
        """Alternate descents with steps of the bias, until a balanced point is proved optimal."""
        aim = min(tol, _POLISH_TOL) if engine.n <= self.polish else tol
        bias, eps = FreeBias(engine), tol if len(engine.support) else max(tol, _FIRST_EPS)
        by_gap = self.stop == "gap"  # says nothing of the class sums: descents go by ψ, ever more exact
        rounds = replace(self, stop="psi") if by_gap else self
        for _ in range(_MOST_BIAS_STEPS):
            status = rounds._descend(engine, monitor, eps, rng, keep, None)
            bias.advance()
            if status not in (Status.CONVERGED, Status.STALLED):
                break
            if by_gap or eps < aim:
                if not bias.balance():
                    engine.prove()  # at least the next descent starts from the exact gradient
                elif self._left(proof := engine.certificate()) <= aim:
                    return Status.CONVERGED, self._at_best_bias(engine, proof, aim)
            least = _POLISH_EPS if by_gap else (_BIAS_AIM if eps > aim else _LEAST_EPS) * aim
            eps = max(least, _BIAS_FALL * eps)
        bias.settle()
        proof = engine.certificate()
        if status in (Status.CONVERGED, Status.STALLED):
            status = Status.CONVERGED if self._left(proof) <= tol else Status.STALLED
        return status, proof

    def _at_best_bias(self, engine: Engine, proof: Certificate, tol: float) -> Certificate:
        """With the bias of the smallest primal, if the point is optimal to ``tol`` with that too."""
        before = engine.bias
        minimise_over_bias(engine)
        best = engine.certificate()
        if self._left(best) <= tol:
            return best
        engine.shift(before - engine.bias)
        return proof

    def _prove(self, engine: Engine, tol: float) -> Certificate:
        """The certificate of the current point, at its best bias where the solver leaves the bias out.

        That of a balanced problem has the smallest primal among those at which no violation passes ``tol``.
        """
        if self.inner.keeps_sums:
            minimise_over_bias(engine)
        proof = engine.prove()
        if engine.problem.balanced:
            engine.centre()
            left = tol - engine.certificate().violation
            minimise_over_bias(engine, most=left if left > 0 else math.inf)
            proof = engine.certificate()
        return proof

    def _keeps_sums(self, engine: Engine) -> bool:
        """Whether steps leave Σ_i α_i = 0."""
        return self.inner.keeps_sums or engine.problem.balanced

    def _left(self, proof: Certificate) -> float:
        """What ``stop`` bounds by ``tol``."""
        return {"psi": proof.violation, "gain": proof.gain, "gap": proof.gap / proof.primal}[self.stop]

    def _inner_eps(self, problem: Problem, block: Block, n: int, tol: float) -> float:
        """How exactly to solve the block of ``n`` samples' problem, in the inner solver's own measure."""
        psi = self.inner.measure == "psi"
        least = self.inner_floor * tol * (problem.kappa if psi else 1.0)
        if self.stop == "gap":  # tol says nothing of single samples then
            least = 0.0
        elif block.movable in (1, n):
            return least
        measures = problem.measure(block.rows())
        start = measures[0].max() if psi else problem.closeness(*measures, block.C).max()
        return max(self.inner_share * float(start), least)

    @property
    def block_share(self) -> float:
        """Share of the memory budget for kernel blocks of large working sets."""
        return max(self.working_set.block_share, _SETTLE_SHARE if self.settle else 0.0)

    @property
    def lazy_blocks(self) -> bool:
        """Whether large blocks need only the kernel rows that the inner solver asks for."""
        return self.inner.lazy and self.working_set.grows

    def _finish(self, engine: Engine, monitor: Monitor, tol: float) -> None:
        """What ``polish`` and ``settle`` ask for: one more block, by coordinate descent."""
        if engine.n <= self.polish:
            W, eps = np.arange(engine.n), min(tol, _POLISH_EPS)
        elif self.settle:
            W, eps = np.union1d(engine.support, engine.worst(engine.n, above=tol).ids), 0.5 * tol
        else:
            return
        if len(W) <= engine.largest_block() and not monitor.exhausted():
            block = engine.block(W)
            inner = self.inner if engine.problem.balanced else CoordinateDescent()
            steps = engine.solve(inner, block, eps * engine.problem.kappa)
            engine.update(block)
            monitor.record(engine, Choice(W, tol), steps)

    def _descend(
        self,
        engine: Engine,
        monitor: Monitor,
        tol: float,
        rng: np.random.Generator,
        keep: bool,
        leap: Leap | None,
    ) -> Status:
        """Iterate until the rule finds no violator, a limit is met, or nothing moves."""
        n, still, flat, lowest = engine.n, 0, 0, math.inf
        bias = BestBias(engine) if self.inner.keeps_sums else None
        rule = ("gain", 0.0) if self.stop == "gap" else (self.stop, _AIM * tol)
        centre = engine.centre if engine.problem.balanced else lambda: None
        try:
            centre()
            for choice in self.working_set.choose(engine, *rule, rng):
                if bias is not None:
                    choice = bias.renew(choice)
                if self.stop == "gap" and choice.gap <= _AIM * tol * (choice.gap - engine.dual):
                    return Status.CONVERGED
                if status := monitor.exhausted():
                    return status
                block = engine.block(choice.W, keep=self.working_set.grows)
                steps = engine.solve(self.inner, block, self._inner_eps(engine.problem, block, n, tol))
                moved = engine.update(block)
                centre()
                leapt = leap is not None and leap.take(tol)
                still = 0 if moved or leapt else still + 1
                flat = 0 if falls(engine.dual, lowest) else flat + 1
                lowest = min(lowest, engine.dual)
                if status := monitor.record(engine, choice, steps):
                    return status
                if still >= self.working_set.patience(n) or flat >= _FLAT_STEPS + 20 * n // len(choice.W):
                    return Status.STALLED
        except KeyboardInterrupt:
            if not keep:
                raise
            return Status.INTERRUPTED
        return Status.CONVERGED
