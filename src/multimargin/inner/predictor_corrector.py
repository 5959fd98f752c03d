"""Mehrotra's predictor-corrector method: one loop for all interior point solvers.

    minimise  ½ ⟨x, H x⟩ + ⟨c, x⟩   subject to   z = B x + z₀ ≥ 0,   A x = b

A sums x over groups: (A x)_g = Σ_{of_k = g} x_k. B is the identity (x ≥ 0, so z is x), or both sides of a box
(z is x - low and high - x). With multipliers λ of the sums and slacks s ≥ 0 of z, a point is optimal if
H x + c - Aᵀ λ - Bᵀ s = 0 and z s = 0. A Newton step of the perturbed conditions z s = μ solves, with D = s/z,

    (H + Bᵀ D B) dx - Aᵀ dλ = t,   A dx = u,        dz = B dx,   ds = -(z s - μ + s dz)/z.

How that system is solved is what a subclass decides. The method takes 10 to 40 steps whatever the condition
of H is. The groups may be divided among the processes of a team: each has the entries of x, λ and s of some.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

import numpy as np
from scipy.linalg import lapack

from ..system.team import SOLO, Team
from ..system.typing import FloatArray, IntArray

_STEP = 0.995  # of the way to the boundary
_STUCK = 1e-10  # a shorter step does not get anywhere


class PredictorCorrector(ABC):
    """The state of the method and its loop."""

    of: IntArray  # group of each entry of x
    diagonal: FloatArray  # K_ii of the samples
    budget: FloatArray  # b
    z: FloatArray
    gradient: FloatArray  # H x + c
    multiplier: FloatArray  # λ
    slack: FloatArray  # s
    team: Team = SOLO  # who holds the groups
    stuck = False  # whether the last step failed or was too short

    @abstractmethod
    def _multiply(self, v: FloatArray) -> FloatArray:
        """H v."""

    @abstractmethod
    def _factor(self, D: FloatArray) -> bool:
        """Prepare ``_solve`` for this D; False if the matrix is not positive definite."""

    @abstractmethod
    def _solve(self, t: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(dx, dλ)."""

    @abstractmethod
    def _settled(self, eps: float) -> bool:
        """Whether the violation of the point that would be taken now is about ``eps`` at most."""

    def _sides(self, x: FloatArray) -> FloatArray:
        """B x."""
        return x

    def _merged(self, v: FloatArray) -> FloatArray:
        """Bᵀ v."""
        return v

    def _point(self) -> FloatArray:
        """x, up to a constant that ``budget`` takes into account."""
        return self.z

    def _lengths(self, dz: FloatArray, ds: FloatArray) -> tuple[float, float]:
        """The longest steps, up to 1, of z and of s that keep them non-negative."""
        a, b = step_length(self.z, dz), step_length(self.slack, ds)
        return -self.team.max(-a), -self.team.max(-b)

    def minimise(self, eps: float, max_iter: int, late: Callable[[], bool] = lambda: False) -> int:
        """Step until ``_settled(eps)`` or ``late()``; returns the number of steps."""
        n = int(self.team.sum(len(self.z)))
        for step in range(max_iter):
            if self._settled(eps) or late():
                return step
            if not self._factor(self.slack / self.z):
                self.stuck = True
                return step
            complementarity = self.z * self.slack
            mu = self.team.sum(complementarity.sum()) / n
            dx, _, dz, ds = self._newton(complementarity)
            a, b = self._lengths(dz, ds)
            ahead = float(self.team.sum((self.z + a * dz) @ (self.slack + b * ds))) / n
            target = (ahead / mu) ** 3 * mu
            dx, dl, dz, ds = self._newton(complementarity + dz * ds - target)
            a, b = self._lengths(dz, ds)
            a, b = _STEP * a, _STEP * b
            self.z += a * dz
            self.gradient += a * self._multiply(dx)
            self.multiplier += b * dl
            self.slack += b * ds
            self.stuck = a < _STUCK
        return max_iter

    def _newton(self, complementarity: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """(dx, dλ, dz, ds) that take the products z s down by ``complementarity``."""
        missing = self.budget - np.bincount(self.of, self._point())
        dx, dl = self._solve(-self._residual() - self._merged(complementarity / self.z), missing)
        dz = self._sides(dx)
        return dx, dl, dz, -(complementarity + self.slack * dz) / self.z

    def _residual(self) -> FloatArray:
        return np.asarray(self.gradient - self.multiplier[self.of] - self._merged(self.slack))


class PairProblem(PredictorCorrector):
    """The method over pairs (sample, class) of the Crammer-Singer dual, class after class, with x = z.

    z_i = C_i e_y - α_i, so that the gradient in z is -G. The groups are the samples: Σ_r z_ir = b_i.
    """

    r: IntArray  # class of each pair
    m: int

    def _start(self, spread: float) -> None:
        """λ and s for the current z; the least slack of a sample becomes ``spread``."""
        lowest = np.full(len(self.budget), np.inf)
        np.minimum.at(lowest, self.of, self.gradient)
        self.multiplier = lowest - spread
        self.slack = self.gradient - self.multiplier[self.of]

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
        heavy, root, largest = self._heavy(), np.sqrt(self.diagonal), self.team.max
        if largest(float(not (np.bincount(self.of, np.where(heavy, self.z, 0.0)) > 0).all())):
            return False  # the weights of some sample underflow
        if largest(float(self.slack[heavy].max(initial=0.0))) > eps:
            return False
        if largest(float(np.abs(self._residual()).max(initial=0.0))) > eps:
            return False
        light = self.team.sum(np.bincount(self.r, np.where(heavy, 0.0, self.z * root[self.of]), self.m))
        return bool(light.max() * largest(float(root.max(initial=0.0))) <= eps)

    def _rounded(self) -> FloatArray:
        """The point z with the weight of light pairs given to the heavy ones of the sample.

        NaN if the weights of the sample underflow: then there is no such point.
        """
        weight = np.where(self._heavy(), self.z, 0.0)
        total = np.bincount(self.of, weight)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(weight * (self.budget / total)[self.of])


def step_length(x: FloatArray, dx: FloatArray) -> float:
    """The longest step, up to 1, that keeps x + step dx ≥ 0."""
    falls = dx < 0
    return min(1.0, float((-x[falls] / dx[falls]).min(initial=np.inf)))


def cholesky(H: FloatArray, D: FloatArray, ridges: Iterable[float]) -> FloatArray | None:
    """The lower Cholesky factor of H + diag(D) + ρ with the first ρ that makes it positive definite, or None.

    ``ridges`` gives ρ as shares of the largest H_ii. Float32 rounds the kernel of a nearly singular block to
    an indefinite one. With ρ the step is that of the problem with ½ ρ ‖dx‖² added: shorter, towards the same
    optimum.
    """
    for share in ridges:
        M = H.copy()
        M.flat[:: len(M) + 1] += D + share * H.diagonal().max()
        factor, failed = lapack.dpotrf(M.T, lower=1, overwrite_a=1)  # M.T is M in LAPACK's column order
        if not failed:
            return np.asarray(factor)
    return None
