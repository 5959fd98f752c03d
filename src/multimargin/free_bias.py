"""A free (unpenalised) bias: the dual gets the constraints Σ_i α_ir = 0 for every class r.

The proximal point method on b (an augmented Lagrangian of these constraints) leaves every row its own
feasible set, so that all solvers without bias apply. With the kernel K + ρ and b in the gradient, repeat

    solve (more exactly every time), from the last solution;    b ← b + ρ Σ_i α_i

At a solution of a round the gradient is that of the machine with the new b, so only Σ_i α_i = 0 can be wrong.
What is left of it in the end is moved on to the variables off their bounds: δ_i = spread(room_i, μ), with the
μ (m,) of Σ_i δ_i = -Σ_i α_i. The certificate of that point is then a true duality gap.
"""

from __future__ import annotations

import numpy as np

from .engines.base import Engine
from .typing import FloatArray

_WEIGHT = 0.1  # ρ, of the mean K_ii: small, so that the blocks stay well conditioned
_FIRST_BIAS = 2.0  # ρ is at least what makes a bias of this size in one round where all samples are bounded
_MOST_MOVED = 0.5  # of the room of a variable


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
        for _ in range(2):  # once more for the rounding of the first
            sums = alpha.sum(axis=0)
            columns = [problem.spread(room, unit, y).sum(axis=0) for unit in np.eye(engine.m)]
            mu = np.linalg.lstsq(np.stack(columns, axis=1), -sums, rcond=1e-10)[0]
            delta = problem.spread(room, mu, y)
            left = np.abs(sums + delta.sum(axis=0)).max()
            if np.ptp(mu) > _MOST_MOVED or left > 1e-6 * np.abs(sums).max():
                return False
            alpha[ids] += delta
        engine.place(alpha)
        return True
