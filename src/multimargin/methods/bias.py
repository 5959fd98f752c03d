"""How a run deals with the bias: one scheme for each kind of machine and solver.

A free (unpenalised) bias b adds the constraints Σ_i α_i = 0 to the dual, and b to every row of the gradient.

``NoBias``      There is none, or it is part of the kernel (K + 1).
``Centred``     The constraint belongs to the machine (c-svc), and every step keeps it. The solver never uses
                b; it is computed to measure the violation, and at the end to evaluate the primal.
``KeptSums``    The inner solver keeps Σ_i α_i, starting from 0. Again b is computed only to evaluate the
                primal, once per pass over the samples.
``Proximal``    Any other solver: the proximal point method on b (an augmented Lagrangian of the constraints)
                leaves every row its own feasible set. With the kernel K + ρ and b in the gradient, repeat

                    solve (more exactly every time), from the last solution;    b ← b + ρ Σ_i α_i

                At a solution of a round the gradient is that of the machine with the new b, so only
                Σ_i α_i = 0 can be wrong. What is left of it in the end is moved on to the variables off their
                bounds (``problems/zero_sums.py``).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..engines.base import Certificate, Engine
from ..problems.zero_sums import BALANCED
from ..solution import Status
from ..system.team import Team
from ..system.typing import FloatArray
from .working_sets import Choice

if TYPE_CHECKING:
    from .decomposition import Run

_WEIGHT = 0.1  # ρ, of the mean K_ii: small, so that the blocks stay well conditioned
_FEW, _WEIGHT_OF_FEW = 512, 1.0  # the same for few samples: blocks cost little, a larger ρ takes fewer steps
_FIRST_BIAS = 2.0  # ρ is at least what makes a bias of this size in one round if all samples are bounded
_LOST = 1e-10  # of Σ_i C_i: class sums of a balanced point that are more than rounding
_MOST_STEPS = 500  # of b
_FALLS = 0.9  # share of the smallest violation so far below which it counts as smaller
_PATIENCE = 10  # steps of b without a smaller violation, if it is at most tol or nothing moves
_FIRST_EPS, _FALL = 0.1, 0.3  # accuracy of the first descent, and its fall per step of b
_AIM, _LEAST_EPS = 0.8, 0.01  # of tol: leaves room for balancing the classes, and more if that fails
_GAP_EPS = 1e-11  # accuracy down to which descents may go if the run stops on the gap
_POLISH_TOL, _POLISH_ROUNDS = (
    1e-9,
    10,
)  # of problems that are small enough to be polished; of one descent there


def proximal_weight(diagonal: FloatArray, C: FloatArray, m: int, team: Team) -> float:
    """ρ for a kernel with this diagonal."""
    n = team.sum(len(diagonal))
    mean, weight = float(team.sum(diagonal.sum()) / n), _WEIGHT if n > _FEW else _WEIGHT_OF_FEW
    return max(weight * mean, _FIRST_BIAS * m / float(team.sum(C.sum())))


class NoBias:
    """Nothing to do; also the base of the schemes that keep the class sums."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def start(self) -> None:
        """Before the first descent."""

    def begin(self) -> None:
        """Before every descent."""

    def after_step(self) -> None:
        """After every step of a descent."""

    def judged(self, choice: Choice) -> Choice:
        """The choice, with the gap at a new bias if it is time for one and the rule knows the gap."""
        return choice

    def prove(self, tol: float) -> Certificate:
        """The certificate of the current point."""
        return self.engine.prove()

    def prove_interrupted(self, tol: float) -> Certificate:
        """The same after Ctrl-C, which may have come anywhere: G may not belong to alpha."""
        return self.prove(tol)

    def solve(self, run: Run) -> tuple[Status, Certificate]:
        """The whole run."""
        self.start()
        return run.descend_and_prove(self)


class Centred(NoBias):
    """The bias in the middle of the violations; in the end, within ``tol``, that of the smallest primal."""

    def start(self) -> None:
        if np.abs(self.engine.sums()).max() > BALANCED * self.engine.total_cost:
            self.engine.zero_sums()

    def begin(self) -> None:
        self.engine.centre()

    def after_step(self) -> None:
        self.engine.centre()

    def prove_interrupted(self, tol: float) -> Certificate:
        self.engine.prove()
        self.start()  # between two halves of a step in Python
        return self.prove(tol)

    def prove(self, tol: float) -> Certificate:
        if np.abs(self.engine.sums()).max() > _LOST * self.engine.total_cost:
            self.engine.zero_sums()  # the certificate takes this for granted
        self.engine.prove()
        self.engine.centre()
        left = tol - self.engine.certificate().violation
        self.engine.best_bias(most=left if left > 0 else math.inf)
        return self.engine.certificate()


class KeptSums(Centred):
    """The bias of the smallest primal, renewed once per pass over the samples."""

    def begin(self) -> None:
        self._visited = self.engine.n

    def after_step(self) -> None:
        pass

    def judged(self, choice: Choice) -> Choice:
        due = self._visited >= self.engine.n and not math.isnan(choice.gap)
        self._visited = len(choice.W) + (0 if due else self._visited)
        if not due:
            return choice
        self.engine.best_bias()
        return choice._replace(gap=self.engine.select(1).gap)

    def prove(self, tol: float) -> Certificate:
        self.engine.best_bias()
        return self.engine.prove()


class Proximal(NoBias):
    """The proximal point method; see the module's head."""

    def solve(self, run: Run) -> tuple[Status, Certificate]:
        try:
            return self._solve(run)
        except KeyboardInterrupt:
            if not run.keep:
                raise
            self.engine.zero_sums()
            return Status.INTERRUPTED, self.engine.certificate()

    def _solve(self, run: Run) -> tuple[Status, Certificate]:
        engine, tol = self.engine, run.tol
        aim = min(tol, _POLISH_TOL) if engine.n <= run.method.polish else tol
        eps = tol if len(engine.support()) else max(tol, _FIRST_EPS)
        by_gap = run.method.stop == "gap"  # says nothing of the class sums: descents go by ψ, ever more exact
        best, since = math.inf, 0  # smallest violation so far, and the steps since it fell
        for _ in range(_MOST_STEPS):
            most = _POLISH_ROUNDS if eps < _AIM * tol and aim < tol else math.inf
            status = run.descend(self, eps, "psi" if by_gap else run.method.stop, most=most)
            engine.shift(engine.offset * engine.sums())
            if status not in (Status.CONVERGED, Status.STALLED):
                break
            if status is Status.CONVERGED and engine.raise_costs():
                continue
            if by_gap or eps < aim:
                left = math.inf
                if not engine.balance():
                    engine.prove()  # at least the next descent starts from the exact gradient
                else:
                    left = run.left(proof := engine.certificate())
                since = 0 if left < _FALLS * best else since + 1
                best = min(best, left)
                stuck = since >= _PATIENCE or status is Status.STALLED
                if left <= aim or (stuck and left <= tol):
                    return Status.CONVERGED, self._at_best_bias(run, proof, max(aim, left))
                if since >= _PATIENCE and status is Status.STALLED:
                    break
            least = _GAP_EPS if by_gap else (_AIM if eps > aim else _LEAST_EPS) * aim
            eps = max(least, _FALL * eps)
        engine.zero_sums()
        proof = engine.certificate()
        if status in (Status.CONVERGED, Status.STALLED):
            status = Status.CONVERGED if run.left(proof) <= tol else Status.STALLED
        return status, proof

    def _at_best_bias(self, run: Run, proof: Certificate, tol: float) -> Certificate:
        """With the bias of the smallest primal, if the point is optimal to ``tol`` with that too."""
        before = self.engine.bias
        self.engine.best_bias()
        best = self.engine.certificate()
        if run.left(best) <= tol:
            return best
        self.engine.shift(before - self.engine.bias)
        return proof
