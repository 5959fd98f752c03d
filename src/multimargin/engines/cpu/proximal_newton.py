"""Semismooth Newton on a proximal model of the whole problem, with a kernel of low rank.

Around a point α with exact gradient G, and with K ≈ F Fᵀ, the model is

    min over D   ⟨G, D⟩ + ½ ‖Fᵀ D‖² + Σ_i ‖D_i‖² / 2σ_i     such that α + D is feasible.

The kernel's approximation enters the model only: D = 0 solves it if and only if α is optimal for the exact
kernel. Its dual has p m unknowns U and is convex and once differentiable,

    φ(U) = ½ ‖U‖² - ⟨G + F U, D⟩ - Σ_i ‖D_i‖² / 2σ_i,      ∇φ = U - Fᵀ D,
    D = P(α - σ (G + F U)) - α,     P the projection on the feasible rows.

P is piecewise linear, so that Newton's method ends after finitely many steps. Its system is in
``problems/newton_direction.py``. The length of a step is a root of φ' along the direction, found to a tenth
(native code, ``solvers/model_search.hpp``).

The processes of a team have the rows of F, α, G and D of their own samples, and U together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ... import _core
from ...problems.base import Problem
from ...problems.newton_direction import newton_direction
from ...system.team import SOLO, Team
from ...system.typing import FloatArray, LabelArray

_LOOSE = 30.0  # the cheap bound of the error is at most about so many times too large


class Centre(NamedTuple):
    """What the model is built around: a point, its exact gradient, and the lengths σ_i."""

    alpha: FloatArray  # (n, m)
    G: FloatArray  # (n, m)
    sigma: FloatArray  # (n,)


class Solved(NamedTuple):
    """A solution of the model, or what was reached."""

    alpha: FloatArray
    U: FloatArray
    steps: int


class ProximalModel:
    """The model of a problem with the factor ``F``; Newton's systems take at most ``memory`` bytes."""

    def __init__(
        self,
        problem: Problem,
        F: FloatArray,
        y: LabelArray,
        C: FloatArray,
        memory: float = np.inf,
        team: Team = SOLO,
    ) -> None:
        self.problem, self.F, self.y, self.C = problem, np.ascontiguousarray(F), y, C
        self.memory, self.team, self._pairs = memory, team, _core.NewtonPairs()
        self._size = float(np.sqrt(team.max(float((F**2).sum(axis=1).max(initial=0.0)))))

    def minimise(
        self, at: Centre, eps: float, U: FloatArray | None, most: int, late: Callable[[], bool]
    ) -> Solved:
        """Solve the model until its gradient is off by at most ``eps``; start from ``U``, or zero.

        Raises ``NoDirectionError`` if there is no Newton direction.
        """
        U = np.zeros((self.F.shape[1], self.problem.columns)) if U is None else U
        FU = self.F @ U
        alpha, face = self.point(at, FU), np.empty(FU.shape, dtype=bool)
        for step in range(most):
            g = U - self._back(alpha, at)
            if late() or self._error(g, eps) <= eps:
                return Solved(alpha, U, step)
            _core.face(self.problem.name, alpha, self.y, self.C, face)
            rest = self.problem.sums_to_zero, self.team, self.memory, self._pairs
            dU = newton_direction(self.F, face, at.sigma, g, *rest)
            FdU = self.F @ dU
            t, alpha = self._search(at, U, FU, g, dU, FdU)
            U, FU = U + t * dU, FU + t * FdU
        return Solved(alpha, U, most)

    def padded(self, U: FloatArray) -> FloatArray:
        """The same U for a factor that has more columns now."""
        return np.pad(U, ((0, self.F.shape[1] - len(U)), (0, 0)))

    def value(self, at: Centre, U: FloatArray, FU: FloatArray) -> float:
        """φ(U)."""
        D = self.point(at, FU) - at.alpha
        inner = np.vdot(at.G + FU, D) + 0.5 * float(((D**2).sum(axis=1) / at.sigma).sum())
        return 0.5 * float(np.vdot(U, U)) - float(self.team.sum(inner))

    def point(self, at: Centre, FU: FloatArray) -> FloatArray:
        """P(α - σ (G + F U))."""
        alpha = at.alpha.copy()
        arguments = alpha, at.G + FU, self.y, self.C, 1.0 / at.sigma
        _core.update_samples(self.problem.name, "sort", *arguments, 0)
        return alpha

    def _back(self, alpha: FloatArray, at: Centre) -> FloatArray:
        """Fᵀ D."""
        product = np.empty((self.F.shape[1], alpha.shape[1]))
        _core.model_back(self.F, alpha, at.alpha, product)
        return np.asarray(self.team.sum(product))

    def _error(self, g: FloatArray, eps: float) -> float:
        """How far the model's gradient is off, max |F g|; or a bound of it that is small or large enough."""
        bound = self._size * float(np.sqrt((g**2).sum(axis=0).max()))
        if eps < bound <= _LOOSE * eps:
            return self.team.max(float(np.abs(self.F @ g).max(initial=0.0)))
        return bound

    def _search(
        self, at: Centre, U: FloatArray, FU: FloatArray, g: FloatArray, dU: FloatArray, FdU: FloatArray
    ) -> tuple[float, FloatArray]:
        """A length t of the step, and the point that it leads to."""
        alpha = np.empty(at.alpha.shape)
        slopes = float(np.vdot(g, dU)), float(np.vdot(U, dU)), float(np.vdot(dU, dU))
        total = None if self.team.size == 1 else self._total
        arrays = *at, self.y, self.C, FU, FdU
        return _core.model_search(self.problem.name, *arrays, *slopes, total, alpha), alpha

    def _total(self, value: float) -> float:
        """The sum over all processes."""
        return float(self.team.sum(value))
