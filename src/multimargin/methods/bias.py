"""A free (unpenalised) bias: the dual gets the constraints Σ_i α_ir = 0 for every class r.

The proximal point method on b (an augmented Lagrangian of these constraints) leaves every row its own
feasible set, so that all solvers without bias apply. With the kernel K + ρ and b in the gradient, repeat

    solve (more exactly every time), from the last solution;    b ← b + ρ Σ_i α_i

At a solution of a round the gradient is that of the machine with the new b, so only Σ_i α_i = 0 can be wrong.
What is left of it in the end is moved on to the variables off their bounds: δ_i = spread(room_i, μ), with the
μ (m,) of Σ_i δ_i = -Σ_i α_i. The certificate of that point is then a true duality gap.

A solver whose steps keep Σ_i α_i (``InnerSolver.keeps_sums``) starts at 0 and needs none of this. Its points
have a bias only to be judged by: the one that minimises the primal at their scores (``Problem.best_bias``).
"""

from __future__ import annotations

import math

import numpy as np

from ..engines.base import Engine
from ..system.typing import FloatArray
from .working_sets import Choice

_WEIGHT = 0.1  # ρ, of the mean K_ii: small, so that the blocks stay well conditioned
_FIRST_BIAS = 2.0  # ρ is at least what makes a bias of this size in one round where all samples are bounded
_MOST_MOVED = 0.5  # of the room of a variable
_MOST_PROJECTIONS = 30
_BALANCED = 1e-14  # of Σ_i C_i: class sums that count as 0


def proximal_weight(diagonal: FloatArray, C: FloatArray, m: int) -> float:
    """ρ for a kernel with this diagonal."""
    return max(_WEIGHT * float(diagonal.mean()), _FIRST_BIAS * m / float(C.sum()))


class FreeBias:
    """The bias of an engine whose kernel has ρ added."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._rho = engine, engine.task.offset

    def advance(self) -> None:
        """Make one step of b."""
        self._engine.shift(self._rho * self._engine.sums())

    def balance(self) -> bool:
        """Make Σ_i α_i = 0 by moving variables off their bounds; False where they have no room for that."""
        engine, task, problem = self._engine, self._engine.task, self._engine.problem
        alpha, _ = engine.result()
        alpha = alpha.copy()
        room = problem.room(alpha, task.y, task.C)
        ids = np.flatnonzero(room.any(axis=1))
        room, y = room[ids], task.y[ids]
        rounding = max(1e-6 * np.abs(alpha.sum(axis=0)).max(), _BALANCED * task.C.sum())
        columns = [problem.spread(room, unit, y).sum(axis=0) for unit in np.eye(engine.m)]
        for _ in range(2):  # once more for the rounding of the first
            sums = alpha.sum(axis=0)
            mu = np.linalg.lstsq(np.stack(columns, axis=1), -sums, rcond=1e-10)[0]
            delta = problem.spread(room, mu, y)
            left = np.abs(sums + delta.sum(axis=0)).max()
            if np.ptp(mu) > _MOST_MOVED or left > rounding:
                return False
            alpha[ids] += delta
        engine.place(alpha)
        return True

    def settle(self) -> None:
        """Make Σ_i α_i = 0 from anywhere, and take the bias of the smallest primal there.

        Where the variables off their bounds have no room for that, projections on the class sums and on the
        rows' sets in turn lead to a point where they have; from hopeless points, zero is one.
        """
        engine, task = self._engine, self._engine.task
        for _ in range(_MOST_PROJECTIONS):
            if self.balance():
                break
            alpha, ids = engine.result()[0].copy(), engine.support
            excess = alpha[ids].mean(axis=0)
            alpha[ids] = engine.problem.project(alpha[ids] - excess, task.y[ids], task.C[ids])
            engine.place(alpha)
        else:
            engine.place(np.zeros((engine.n, engine.m)))
        minimise_over_bias(engine)


def start_balanced(engine: Engine) -> None:
    """Make Σ_i α_i = 0."""
    if np.abs(engine.sums()).max() > _BALANCED * float(engine.task.C.sum()):
        FreeBias(engine).settle()


def minimise_over_bias(engine: Engine, most: float = math.inf) -> None:
    """Give the engine the bias of the smallest primal at its scores, or go ``most`` towards it."""
    task, (_, S) = engine.task, engine.result()
    change = engine.problem.best_bias(S, task.y, task.C, engine.bias) - engine.bias
    engine.shift(np.clip(change, -most, most))


class BestBias:
    """The bias of an engine whose solver keeps Σ_i α_i = 0, renewed once a pass over the samples."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._visited = engine, engine.n

    def renew(self, choice: Choice) -> Choice:
        """The choice, with the gap at a new bias if it is time for one and the rule knows the gap."""
        due = self._visited >= self._engine.n and not math.isnan(choice.gap)
        self._visited = len(choice.W) + (0 if due else self._visited)
        if not due:
            return choice
        minimise_over_bias(self._engine)
        return choice._replace(gap=self._engine.worst(1).gap)
