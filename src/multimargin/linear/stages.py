"""Costs far above what the margins need are approached in stages.

α_i grows like 1 / |x_i|², whatever the cost. If C |x|² is 1e14 (features in the millions, say), z = C e_y - α
loses all digits of α, and no step seems to change anything. So such a fit first takes smaller costs. If no
sample then uses up its cost, the optimum is that of every larger cost, the true one included. Otherwise the
costs grow, from the point reached. The certificate is always that of the true costs.

Machines whose α has no upper bound need no stages: C is not the unit of their coefficients.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..run.monitor import Monitor
from ..solution import LinearSolution, Status
from .descent import LinearFit, LinearOptions, Proof, TrainingSet
from .schedule import BestProof, solve_linear

_SIMILAR = 1e3  # |x_i|² over the median up to which samples get the same costs
_SAMPLE = 4096  # about so many samples of a team tell the median |x_i|²
_GROWTH = 1e3  # of the costs, from stage to stage
_USED_UP = 1.0 - 1e-6  # share of its cost at which a sample counts as bounded


class StagedFit:
    """One fit, in one stage if costs are ordinary; ``fit`` is the state of the current stage."""

    def __init__(self, data: TrainingSet, options: LinearOptions) -> None:
        self._data, self._options = data, options
        self.fit = LinearFit(data, options)
        norms, team = self.fit.problem.norms(), data.team
        step = 1 if self.fit.alone else -(-self.fit.n // _SAMPLE)
        # About the size of α_i; most samples' costs keep their ratios.
        with np.errstate(divide="ignore", over="ignore"):
            self._unit = 1.0 / np.maximum(np.median(team.join(norms[::step])), norms / _SIMILAR)

    def solve(self, monitor: Monitor, *, keep_interrupted: bool = False) -> LinearSolution:
        """Train, and certify the result for the true costs."""
        tuning, factor = self._options.tuning, self._options.tuning.first_cost
        ordinary = not self._any(self._data.C > factor * self._unit)
        if ordinary or self._data.problem.feasible_set == "cone":
            return solve_linear(self.fit, monitor, keep_interrupted=keep_interrupted)
        true, best, alpha, visits = self.fit, BestProof(), self._data.alpha, 0
        problem = self._data.problem
        while True:
            C = np.minimum(self._data.C, factor * self._unit)
            start = None if alpha is None else problem.shrink_sparse_into(alpha, self._data.y, C)
            self.fit = LinearFit(replace(self._data, C=C, alpha=start), self._options)
            self.fit.visits = visits
            solution = solve_linear(self.fit, monitor, keep_interrupted=keep_interrupted)
            alpha, visits = solution.alpha, self.fit.visits
            true.set_dual(alpha)
            proof = true.prove()
            bounded = (C < self._data.C) & (abs(alpha).max(axis=1).toarray().ravel() >= _USED_UP * C)
            done = not solution.status.converged or not self._any(bounded) or factor >= tuning.last_cost
            if done:
                break
            best.keep(true, proof.primal)
            factor *= _GROWTH
        return self._certified(true, solution, best, proof)

    def _any(self, samples: np.ndarray) -> bool:
        """Whether it is true of a sample of any process."""
        return bool(self._data.team.max(float(samples.any())))

    def _certified(
        self, true: LinearFit, solution: LinearSolution, best: BestProof, proof: Proof
    ) -> LinearSolution:
        status, self.fit = solution.status, true
        if proof.violation <= self._options.tol:
            status = Status.CONVERGED
        else:
            status = Status.STALLED if status.converged else status
            proof = best.prove(true, proof)
        return replace(
            solution,
            status=status,
            violation=proof.violation,
            primal=proof.primal,
            dual=true.dual,
            gap=proof.gap,
            weights=true.exact,
            alpha=true.alpha(),
        )
