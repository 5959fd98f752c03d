"""THE outer loop.

    select W → kernel rows of W → solve the block → update the gradient → record → stop?

(Niu & Yuan, Algorithm 1.) The engine does the work that grows with n; this file only decides. When the
rule finds no violator any more, the gradient is recomputed from alpha in float64: only that proof ends a
run as converged. If rounding in the kernel rows hid a violation, the loop goes on from the exact gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..engines.base import Certificate, Engine, Found
from ..inner import CoordinateDescent, InnerSolver
from ..inner.block import Aim
from ..problems import Problem
from ..run.checkpoint import Checkpoint
from ..run.monitor import Monitor
from ..solution import LARGE_GAP, Solution, Status, falls
from ..system.memory import WHOLE_SAMPLES
from ..system.typing import IntArray
from .bias import Centred, KeptSums, NoBias, Proximal
from .working_sets import RULES, Choice, WorkingSet

LEAPS = frozenset({"simplex", "box"})  # feasible sets that a leap can handle
_AIM = 0.95  # of tol: leaves room for rounding, so that the exact proof succeeds at the first try
_MOST_PROOFS = 50
_MOST_FINISHES = 5  # between two proofs
_WINDOW, _HOPE = 50, 1e-3  # rounds of a growing set that must bring the dual nearer by this share of the gap
_FLAT_STEPS = 1000  # steps (and 20 passes) that may leave the dual unchanged, to rounding
_ROUNDED = 10.0  # times tol: a proof that finds more than this was deceived by rounding in the kernel rows
_LOOKS, _DRIFT = (25, 50, 100, 200, 400), 1e-4  # rounds at which the dual is recomputed; its error then
LEAST_SHARE, _EXTRA_ROUNDS = 1e-3, 5  # if the gap is large: of tol, in steps of a tenth; at each of them
_FLOOR_AFTER = 0.9  # ``inner_floor`` after a proof: few steps hide nothing, and keep the next proof small
POLISH_EPS = 1e-11
_SHARE_OF_FIRST = 0.83  # if it solves blocks alone: measured on mnist
_SETTLE_SHARE = 0.25  # of the memory budget, for the block that ``settle`` solves
_FEW_VIOLATORS = 0.2  # of the support vectors: so many are settled alone


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
        of ``tol``. A block of the whole problem is solved straight to that.
    inner_share_anew : float or None
        ``inner_share`` if the engine keeps no kernel rows, because rounds cost less then; None is the same.
    settle : bool
        Before the proof, solve all support vectors and violators as one block by coordinate descent, if that
        block fits the memory budget. Projected gradient, stopped on the gap, leaves small coefficients on
        samples that have none at the optimum; this removes them.
    polish : int
        Problems of at most this many samples are finally solved as one block to almost float64 accuracy, so
        that the model hardly depends on the order of the rows.
    leap : bool
        If the kernel is nearly of low rank, solve for all samples at once with models of low rank, as soon
        as the blocks have cost about as much as that will; then go on from there. An engine may do without.

    Examples
    --------
    >>> from multimargin import Decomposition, KernelSVC
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
    inner_share_anew: float | None = None
    inner_floor: float = 0.1
    settle: bool = False
    polish: int = 0
    leap: bool = False

    def __post_init__(self) -> None:
        if self.stop not in ("psi", "gain", "gap"):
            raise ValueError(f"stop must be 'psi', 'gain' or 'gap', got {self.stop!r}.")
        if self.inner.keeps_sums and (self.settle or self.polish or self.leap):
            raise ValueError(
                f"{self.inner!r} keeps the class sums of alpha, and settle, polish and leap do not: use it "
                "without them."
            )

    def check(self, problem: Problem) -> None:
        """Raise ``ValueError`` if a part cannot handle the machine."""
        self.inner.check(problem)
        if problem.balanced and not self.working_set.by_pairs:
            able = [rule.name for rule in RULES if rule.by_pairs]
            raise ValueError(
                f"{self.working_set.name} chooses samples one by one, and those of {problem.name} can only "
                f"move in pairs; use {' or '.join(able)}."
            )
        if self.leap and problem.feasible_set not in LEAPS:
            raise ValueError(
                f"A leap cannot handle the {problem.feasible_set} of {problem.name}; use leap=False."
            )

    @property
    def block_share(self) -> float:
        """Share of the memory budget for kernel blocks of large working sets."""
        return max(self.working_set.block_share, _SETTLE_SHARE if self.settle else 0.0)

    def first_share(self, machine: str) -> float:
        """Samples for the first process of a team, in units of an equal share.

        If it solves the blocks of growing sets for all, others should have more of the other work.
        """
        alone = self.working_set.grows and machine not in self.inner.together
        return _SHARE_OF_FIRST if alone else 1.0

    @property
    def largest_set(self) -> int | None:
        """Samples of the largest block that it cannot do without; None if it asks the engine what fits."""
        largest = self.working_set.largest
        return None if largest is None else max(largest, self.polish)

    @property
    def lazy_blocks(self) -> bool:
        """Whether large blocks need only the kernel rows that the inner solver asks for."""
        return self.inner.lazy and self.working_set.grows

    def run(
        self,
        engine: Engine,
        monitor: Monitor,
        *,
        tol: float,
        rng: np.random.Generator,
        free_bias: bool = False,
        keep_interrupted: bool = False,
        checkpoint: Checkpoint | None = None,
    ) -> Solution:
        """Solve the engine's problem; with ``free_bias`` the constant in its kernel is the proximal ρ.

        A ``checkpoint`` is written between two iterations if it is due, and at the end whatever the end is.
        """
        self.check(engine.problem)
        scheme = self._scheme(engine, free_bias)
        engine.deadline = monitor.deadline
        if checkpoint is not None:
            checkpoint.begin(monitor.trace)
        with engine.running(), engine.profile.phase("loop"):
            run = Run(self, engine, monitor, tol, rng, keep_interrupted, checkpoint)
            status, proof = scheme.solve(run)
        if run.left(proof) <= tol:  # whatever limit was met, or whoever stopped it
            status = Status.CONVERGED
        monitor.trace.info.update(
            engine.describe(), seconds=monitor.seconds, profile=dict(engine.profile.seconds)
        )
        certified = status, proof.violation, proof.primal, proof.dual, proof.gap, monitor.trace
        return Solution(*certified, engine.n, *run.save())

    def approach(
        self,
        engine: Engine,
        monitor: Monitor,
        *,
        tol: float,
        rng: np.random.Generator,
        free_bias: bool = False,
    ) -> None:
        """Descend until an observer of the monitor stops it, or no violation is above ``tol``; prove nothing.

        The point is a start for other fits.
        """
        scheme = self._scheme(engine, free_bias)
        engine.deadline = monitor.deadline
        with engine.running(), engine.profile.phase("loop"):
            scheme.start()
            run = Run(self, engine, monitor, tol, rng, False, None)
            run.descend(scheme, tol, self.stop, self.leap)

    def _scheme(self, engine: Engine, free_bias: bool) -> NoBias:
        if engine.problem.balanced:
            return Centred(engine)
        if self.inner.keeps_sums and not free_bias:
            raise ValueError(f"{self.inner!r} keeps the class sums of alpha: it is for bias='free' only.")
        if self.inner.keeps_sums:
            return KeptSums(engine)
        return (Proximal if free_bias else NoBias)(engine)


@dataclass(frozen=True)
class Run:
    """One run of a method on an engine."""

    method: Decomposition
    engine: Engine
    monitor: Monitor
    tol: float
    rng: np.random.Generator
    keep: bool  # whether Ctrl-C ends the run instead of raising
    checkpoint: Checkpoint | None

    def descend_and_prove(self, scheme: NoBias) -> tuple[Status, Certificate]:
        """Alternate descents and exact proofs until a proof succeeds, a limit is met, or neither helps."""
        dual, violation = math.inf, math.inf  # of the last proof
        eps = self.tol  # smaller while the gap is large
        for proofs in range(_MOST_PROOFS):
            try:
                most = math.inf if eps == self.tol else _EXTRA_ROUNDS
                floor = _FLOOR_AFTER if proofs and eps == self.tol else self.method.inner_floor
                status = self.descend(scheme, eps, self.method.stop, self.method.leap, most, floor)
                while status is Status.CONVERGED and self.engine.raise_costs():
                    scheme.start()  # samples that reached their true cost did not grow with the others
                    status = self.descend(scheme, eps, self.method.stop, self.method.leap, most)
                if status in (Status.CONVERGED, Status.STALLED):
                    status = self._finish_and_descend(scheme, eps, most, status)
                proof = scheme.prove(self.tol)
            except KeyboardInterrupt:
                if not self.keep:
                    raise
                return Status.INTERRUPTED, scheme.prove_interrupted(self.tol)
            if status not in (Status.CONVERGED, Status.STALLED):
                return status, proof
            left = self.left(proof)
            if left <= self.tol:
                if self._is_enough(proof, eps):
                    return Status.CONVERGED, proof
                eps *= 0.1
                continue
            eps = self.tol
            slow = status is Status.STALLED and self.method.working_set.grows and math.isfinite(dual)
            helped = falls(proof.dual + slow * _HOPE * proof.gap, dual) or left < 0.5 * violation
            # Far from what the loop saw, although it had started from the exact gradient of the proof before.
            rounded = _ROUNDED * self.tol < left and math.isfinite(dual) and status is Status.CONVERGED
            promoted = (rounded or not helped) and self.engine.promote()
            if not (helped or promoted):
                break
            dual, violation = (math.inf, math.inf) if promoted else (min(dual, proof.dual), left)
        return Status.STALLED, proof

    def _is_enough(self, proof: Certificate, eps: float) -> bool:
        """Whether a point that meets ``tol`` will do: with large costs a small ψ says little of the gap.

        If the gap is large, a few rounds at smaller tolerances may help, down to ``LEAST_SHARE`` of ``tol``.
        They are made if they are cheap: another proof of many samples is not.
        """
        if self.method.stop != "psi" or self.engine.n > WHOLE_SAMPLES:
            return True
        return proof.relative_gap <= LARGE_GAP or 0.1 * eps < LEAST_SHARE * self.tol

    def left(self, proof: Certificate) -> float:
        """What ``stop`` bounds by ``tol``."""
        return {"psi": proof.violation, "gain": proof.gain, "gap": proof.relative_gap}[self.method.stop]

    def descend(
        self,
        scheme: NoBias,
        tol: float,
        stop: str,
        leap: bool = False,
        most: float = math.inf,
        floor: float | None = None,
    ) -> Status:
        """Iterate until the rule finds no violator, a limit or ``most`` rounds are met, or nothing moves.

        If nothing moves, kernel rows of higher precision may help. ``floor`` is ``inner_floor`` unless given.
        """
        floor = self.method.inner_floor if floor is None else floor
        status = self._descend(scheme, tol, stop, leap, most, floor)
        if status is Status.STALLED and math.isinf(most) and self.engine.promote():
            status = self._descend(scheme, tol, stop, leap, most, floor)
        return status

    def _descend(
        self, scheme: NoBias, tol: float, stop: str, leap: bool, most: float, floor: float
    ) -> Status:
        engine, method, rule = self.engine, self.method, self.method.working_set
        n, still, flat, lowest, before = engine.n, 0, 0, math.inf, math.inf
        by_gap = stop == "gap"  # tol says nothing of single samples then
        measure, above = ("gain", 0.0) if by_gap else (stop, _AIM * tol)
        anew = None if engine.keeps_rows else method.inner_share_anew
        share = method.inner_share if anew is None else anew
        aim = Aim(0.0 if by_gap else floor * tol, share)
        scheme.begin()
        for rounds, seen in enumerate(rule.choose(engine, measure, above, self.rng), start=1):
            choice = scheme.judged(seen)
            if by_gap and choice.gap <= _AIM * tol * (choice.gap - engine.dual):
                return Status.CONVERGED
            if status := engine.agree(self.monitor.exhausted()):
                return status
            made = engine.improve(choice.W, method.inner, aim, keep=rule.grows)
            scheme.after_step()
            leapt = leap and engine.leap(tol)
            still = 0 if made.moved or leapt else still + 1
            flat = 0 if falls(engine.dual, lowest) else flat + 1
            lowest = min(lowest, engine.dual)
            if status := self._record(choice, made.steps):
                return status
            if rule.grows and rounds in _LOOKS and engine.promote(_DRIFT):
                return self._descend(scheme, tol, stop, leap, most, floor)
            stuck = still >= rule.patience(n) or flat >= _FLAT_STEPS + 20 * n // len(choice.W)
            if stuck or rounds >= most:
                return Status.STALLED
            if rule.grows and rounds % _WINDOW == 0:
                if before - engine.dual < _HOPE * choice.gap:  # never, if the gap is not known
                    return Status.STALLED
                before = engine.dual
        return Status.CONVERGED

    def _record(self, choice: Choice, steps: int) -> Status | None:
        """Write one iteration down, and the checkpoint if it is due.

        Returns the status to stop with if an observer says so.
        """
        stop = self.monitor.note(
            violation=choice.violation,
            dual=self.engine.dual,
            gap=choice.gap,
            working_set=len(choice.W),
            inner=steps,
            **self.engine.counts()._asdict(),
        )
        due = self.checkpoint is not None and self.checkpoint.is_due
        stop, due = self.engine.agree((stop, due))  # one message for both
        if due and stop is None:  # else the end of the run is written anyway
            self.save()
        return stop

    def save(self) -> Found:
        """Return the current point, and write it to the checkpoint if there is one."""
        engine, trace, found = self.engine, self.monitor.trace, self.engine.found()
        if self.checkpoint is not None:
            counts, seconds = engine.counts()._asdict(), self.monitor.seconds
            self.checkpoint.save(found.ids, found.coef, engine.bias, trace, seconds, counts)
        return found

    def _finish_and_descend(self, scheme: NoBias, tol: float, most: float, status: Status) -> Status:
        """Finish the point that a descent has reached, until the rule finds no violator after that.

        The last block may move samples outside of it from their optimum. One look at the gradient shows it,
        and a proof costs far more.
        """
        for _ in range(_MOST_FINISHES):
            if not self._finish() or status is not Status.CONVERGED:
                break
            done = self.monitor.trace.iterations
            status = self.descend(scheme, tol, self.method.stop, most=most)
            if self.monitor.trace.iterations == done:
                break
        return status

    def _finish(self) -> bool:
        """What ``polish`` and ``settle`` ask for: one more block, by coordinate descent. Whether it moved."""
        engine, most = self.engine, self.engine.largest_block()
        if engine.n <= self.method.polish:
            W, eps = engine.everyone(), min(self.tol, POLISH_EPS)
        elif self.method.settle:
            eps = 0.5 * self.tol
            W = self._unsettled(eps, most)
        else:
            return False
        if not 0 < len(W) <= most or engine.agree(self.monitor.exhausted()):
            return False
        inner = self.method.inner if engine.problem.balanced else CoordinateDescent()
        made = engine.improve(W, inner, Aim(eps))
        self._record(Choice(W, self.tol), made.steps)
        return made.moved

    def _unsettled(self, eps: float, most: int) -> IntArray:
        """The samples that ``settle`` solves as one block to ``eps``; more than ``most`` if they do not fit.

        If few violate, their steps are too small to matter to the other support vectors.
        """
        support, violators = self.engine.support(), self.engine.select(most + 1, above=eps).ids
        few = len(violators) <= _FEW_VIOLATORS * len(support) and not self.engine.problem.balanced
        return np.sort(violators) if few else np.union1d(support, violators)
