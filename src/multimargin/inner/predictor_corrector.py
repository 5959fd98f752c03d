"""Mehrotra's predictor-corrector method over pairs (i, r) of a sample and a class.

With z_i = C_i e_y - α_i (so that the gradient in z is -G), over some pairs and all else fixed,

    minimise  ½ ⟨z, H z⟩ + ⟨c, z⟩   subject to   z ≥ 0,   Σ_r z_ir = b_i,

with multipliers λ_i of the sums and slacks s ≥ 0 of the bounds: H z + c - λ - s = 0, z s = 0. A Newton step
of the perturbed conditions z s = μ solves, with D = s/z,

    (H + D) dz - Aᵀ dλ = t,   A dz = u,   ds = -(z s - μ + s dz)/z.

How that system is solved is all a subclass decides. It takes 10 to 40 steps whatever the condition of H.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ..system.typing import FloatArray, IntArray

_STEP = 0.995  # of the way to the boundary


class PairProblem(ABC):
    """The state of the method; vectors run over pairs, class after class."""

    of: IntArray  # sample of each pair
    r: IntArray  # class of each pair
    diagonal: FloatArray  # K_ii of the samples
    budget: FloatArray  # b_i
    z: FloatArray
    gradient: FloatArray  # H z + c
    multiplier: FloatArray  # λ_i
    slack: FloatArray

    @abstractmethod
    def _multiply(self, v: FloatArray) -> FloatArray:
        """H v."""

    @abstractmethod
    def _factor(self, D: FloatArray) -> bool:
        """Prepare ``_solve`` for this D; False where the matrix is not positive definite."""

    @abstractmethod
    def _solve(self, t: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(dz, dλ)."""

    def _start(self, spread: float) -> None:
        """λ and s for the current z: the least slack of a sample is ``spread``."""
        lowest = np.full(len(self.budget), np.inf)
        np.minimum.at(lowest, self.of, self.gradient)
        self.multiplier = lowest - spread
        self.slack = self.gradient - self.multiplier[self.of]

    def minimise(self, eps: float, max_iter: int) -> int:
        """Step until ψ ≤ ``eps`` on these pairs; returns the steps."""
        n = len(self.z)
        for step in range(max_iter):
            if self._settled(eps) or not self._factor(self.slack / self.z):
                return step
            complementarity = self.z * self.slack
            mu = complementarity.sum() / n
            dz, _, ds = self._newton(complementarity)
            a, b = step_length(self.z, dz), step_length(self.slack, ds)
            ahead = float((self.z + a * dz) @ (self.slack + b * ds)) / n
            target = (ahead / mu) ** 3 * mu
            dz, dl, ds = self._newton(complementarity + dz * ds - target)
            a, b = _STEP * step_length(self.z, dz), _STEP * step_length(self.slack, ds)
            self.z += a * dz
            self.gradient += a * self._multiply(dz)
            self.multiplier += b * dl
            self.slack += b * ds
        return max_iter

    def _newton(self, complementarity: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        missing = self.budget - np.bincount(self.of, self.z)
        dz, dl = self._solve(-self._residual() - complementarity / self.z, missing)
        return dz, dl, -(complementarity + self.slack * dz) / self.z

    def _residual(self) -> FloatArray:
        return np.asarray(self.gradient - self.multiplier[self.of] - self.slack)

    def _heavy(self) -> np.ndarray:
        """Which pairs keep their weight: moving it would change their gradient by more than their slack.

        A pair on its bound goes to z = 0, s > 0, any other to z > 0, s = 0; z K_ii and s have the same unit.
        """
        largest = np.zeros(len(self.budget))
        np.maximum.at(largest, self.of, self.z)
        return np.asarray((self.z * self.diagonal[self.of] >= self.slack) | (self.z == largest[self.of]))

    def _settled(self, eps: float) -> bool:
        """Whether ψ ≤ ``eps`` on the heavy pairs, and dropping the light ones changes no gradient by more.

        |Σ_i K_ij z_ir| ≤ √K_jj Σ_i √K_ii z_ir.
        """
        heavy, root = self._heavy(), np.sqrt(self.diagonal)
        if self.slack[heavy].max(initial=0.0) > eps or np.abs(self._residual()).max() > eps:
            return False
        light = np.bincount(self.r, np.where(heavy, 0.0, self.z * root[self.of]))
        return bool(light.max() * root.max() <= eps)

    def _rounded(self) -> FloatArray:
        """The point z with the weight of light pairs given to the heavy ones of the sample."""
        weight = np.where(self._heavy(), self.z, 0.0)
        total = np.bincount(self.of, weight)
        return np.asarray(weight * (self.budget / total)[self.of])


def step_length(x: FloatArray, dx: FloatArray) -> float:
    """The longest step up to 1 that keeps x + step dx ≥ 0."""
    falls = dx < 0
    return min(1.0, float((-x[falls] / dx[falls]).min(initial=np.inf)))
