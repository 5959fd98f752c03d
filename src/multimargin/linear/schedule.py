"""What the next pass of a linear fit visits, and when a proof is tried.

    one pass over all samples → passes over the active ones, until the violations fell tenfold → again

A pass updates the samples whose violation is above a share of the mean, because the largest are worth most.
A sample whose weight can only sit on one class is skipped until the next pass over all samples. A proof is
tried when a pass over all samples finds no violation above ``tol``, or when the gap seems to be within
``gap_tol``. It rebuilds the weights from α in float64 and measures all samples. Only a proof ends a run as
converged. If many passes were not enough, Newton steps take over (``finish.py``).
"""

from __future__ import annotations

import math

import scipy.sparse as sp

from ..run.monitor import Monitor
from ..solution import LinearSolution, Status, falls
from .descent import LinearFit, Proof
from .finish import Finish
from .rounds import Pass


class Goal:
    """The violation and the gap at which a proof is tried, and estimates of the gap."""

    def __init__(self, fit: LinearFit) -> None:
        self._fit, self._tuning = fit, fit.options.tuning
        self.violation = self._tuning.aim * fit.options.tol
        self.near = False  # whether the gap seen in the last pass is close to its goal
        self.gap = self._tuning.gap_aim * fit.options.gap_tol  # relative to the primal
        self._left = self._tuning.left_share  # expected share, after a pass, of the gap seen in it
        self._step = max(1, fit.n // self._tuning.sample)  # the gap is estimated from every such sample
        self._sampled_share = 1.0 / self._step  # of the gap, in these samples
        self._learn()

    def _learn(self) -> None:
        """Correct what the sampled gap stands for, by the last proof, which the fit has taken over."""
        if self._fit.options.gap_tol > 0 and self._fit.proved_gap > 0:
            self._sampled_share = self._fit.gap_of(self._fit.weights, self._step) / self._fit.proved_gap

    def tighten(self) -> None:
        """Aim lower, after a proof failed."""
        self._learn()
        self.violation *= self._tuning.stricter
        self.gap *= self._tuning.gap_stricter

    def is_met(self, gap: float) -> bool:
        """Whether a gap is small enough for a proof; the primal objective is gap - dual."""
        return gap <= self.gap * (gap - self._fit.dual)

    def seems_met(self, found: Pass) -> bool:
        """Whether the gap after a pass seems small enough, by what the pass saw and then by some samples."""
        self.near = self.is_met(found.gap / self._tuning.near)
        if not self.is_met(self._left * found.gap):
            return False
        if not self._sampled_share > 0:  # these samples were optimal alone, and say nothing about the others
            return self.is_met(self.measure(found))
        gap = self._fit.gap_of(self._fit.weights, self._step) / self._sampled_share
        self._compare(gap, found)
        return self.is_met(gap)

    def measure(self, found: Pass) -> float:
        """The gap with the weights as they are after a pass, from all samples."""
        gap = self._fit.gap_of(self._fit.weights)
        self._compare(gap, found)
        return gap

    def _compare(self, gap: float, found: Pass) -> None:
        least = self._tuning.left_share
        left = gap / found.gap if found.gap > 0 else least
        self._left = min(max(left, least), self._tuning.left_growth * self._left)


class Schedule:
    """What the next pass visits and updates: ``go_on`` plans it from what the last one found."""

    def __init__(self, fit: LinearFit, goal: Goal) -> None:
        self._n, self._options, self._goal = fit.n, fit.options, goal
        self.over_all, self.threshold, self.margin, self.relax = True, 0.0, math.inf, 1.0
        self.visits, self.measures = fit.n, False  # at most so many; whether the gap is measured afterwards
        self._passes = self._rounds = self._since = 0  # all; those over all samples; others since the last
        self._first = math.inf  # sum of the violations that the last pass over all samples found
        self._share = 1.0
        self._idle = fit.options.tuning.idle_share * fit.options.tol

    def go_on(self, found: Pass) -> bool:
        """Plan the next pass; False if nothing can move any more."""
        tuning = self._options.tuning
        self._passes += 1
        if not self.over_all:
            self._since += 1
        else:
            if not found.updates and self.threshold <= self._idle:
                return False
            self._rounds, self._since, self._first = self._rounds + 1, 0, found.total
            self.margin = found.violation
        if self._options.shrinks:
            self.relax = tuning.settle if self._goal.near else tuning.relax
            self.threshold = self._next_threshold(found)
            self.over_all = not found.updates or (not self.over_all and self._must_see_all(found))
        self.visits = self._n if self.over_all else found.active
        self.measures = self.over_all and self._rounds % tuning.measure_every == 0
        return True

    def _next_threshold(self, found: Pass) -> float:
        tuning = self._options.tuning
        few = found.updates < tuning.few_updates * found.active
        self._share = 0.5 * self._share if few else min(1.0, 2.0 * self._share)
        share = tuning.early if self._passes < tuning.early_passes else tuning.late
        threshold = self._share * share * found.total / self._n
        if self.over_all and not found.updates:  # nothing was above it, but not everything is below tol
            threshold = min(threshold, self._idle)
        return max(threshold, tuning.least_share * self._goal.violation)

    def _must_see_all(self, found: Pass) -> bool:
        tuning = self._options.tuning
        settled = found.violation <= self._goal.violation or found.total < tuning.fall * self._first
        return settled or self._since == tuning.most_active


class BestProof:
    """The point with the smallest primal objective, of failed proofs and of measurements between passes."""

    def __init__(self) -> None:
        self._primal = math.inf
        self._alpha: sp.csr_array | None = None

    def keep(self, fit: LinearFit, primal: float) -> None:
        """Remember the point of ``fit`` if its primal is the smallest so far."""
        if primal < self._primal:
            self._primal, self._alpha = primal, fit.alpha()

    def prove(self, fit: LinearFit, proof: Proof) -> Proof:
        """``proof``, or that of an earlier point with a smaller primal, to which the fit then returns."""
        if self._alpha is None or not self._primal < proof.primal:
            return proof
        fit.set_dual(self._alpha)
        return fit.prove()


def solve_linear(fit: LinearFit, monitor: Monitor, *, keep_interrupted: bool = False) -> LinearSolution:
    """Train; without shrinking this is Algorithm 1 to the letter, every pass over all samples."""
    options, goal, finish, best = fit.options, Goal(fit), Finish(fit, monitor), BestProof()
    dual, lowest, fruitless = math.inf, math.inf, 0  # of the proofs so far
    while True:
        try:
            status = _descend(fit, goal, monitor, finish, best)
            proof = fit.prove()
            if finish.polishes() and proof.violation <= options.tol:
                finish.run(min(options.tol, options.tuning.polish_tol))
                proof = fit.prove()
        except KeyboardInterrupt:
            if not keep_interrupted:
                raise
            status, proof = Status.INTERRUPTED, fit.prove()
        if proof.violation <= options.tol:
            status = Status.CONVERGED
            break
        if proof.gap <= options.gap_tol * proof.primal:
            status = Status.WITHIN_GAP
            break
        if status not in (Status.CONVERGED, Status.STALLED):
            break
        best.keep(fit, proof.primal)
        fit.take_over_proof()
        goal.tighten()
        progress = falls(fit.dual, dual) or proof.violation < options.tuning.progress * lowest
        fruitless = 0 if progress else fruitless + 1
        dual, lowest = min(dual, fit.dual), min(lowest, proof.violation)
        if status is Status.STALLED or fruitless == options.tuning.most_proofs:
            status, fruitless = Status.STALLED, 0
            if not fit.promote():
                break
    if not status.converged:
        proof = best.prove(fit, proof)
    trace = monitor.trace
    if fit.rounds is not None:
        trace.info.update(fit.team.facts() | fit.rounds.facts())
    trace.info.update(seconds=monitor.seconds, n_threads=fit.layout.blocks, dtype=fit.weights.dtype.name)
    return LinearSolution(status, *proof[:2], fit.dual, proof.gap, trace, fit.exact, fit.alpha(), fit.passes)


def _descend(fit: LinearFit, goal: Goal, monitor: Monitor, finish: Finish, best: BestProof) -> Status:
    """Passes until the goal seems met, a limit is met, or nothing moves; Newton steps, once they are due."""
    plan = Schedule(fit, goal)
    while True:
        if finish.is_due():
            return finish.run(goal.violation, goal.gap) or Status.CONVERGED
        if 0 <= fit.options.max_iter * fit.n < fit.visits + plan.visits:
            return Status.MAX_ITER
        if status := fit.team.agree(monitor.exhausted()):
            return status
        found = fit.run_pass(
            over_all=plan.over_all, threshold=plan.threshold, relax=plan.relax, margin=plan.margin
        )
        if not math.isfinite(found.violation + found.total):  # the weights cannot hold what the scores need
            return Status.STALLED
        if plan.over_all:
            fit.check_threads()
        done = (plan.over_all and found.violation <= goal.violation) or goal.seems_met(found)
        gap = math.nan
        if plan.measures and not done:
            gap = goal.measure(found)
            best.keep(fit, gap - fit.dual)
        status = monitor.note(
            violation=found.violation,
            dual=fit.dual,
            gap=gap,
            working_set=found.visits,
            inner=found.updates,
            support=fit.support(),
        )
        if status := fit.team.agree(status):
            return status
        if done or goal.is_met(gap):
            return Status.CONVERGED
        if not plan.go_on(found):
            return Status.STALLED
