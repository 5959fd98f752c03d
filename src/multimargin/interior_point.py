"""A primal-dual interior point method for the undecided part of a block.

Coordinate descent finds out quickly which coefficients are at their bounds, and then creeps where the kernel
is nearly singular (small gamma, large C). What is left is small: the pairs (i, r) off their bounds, or about
to be. Over those, with z = C e_y - α (so that the gradient in z is -G) and all else fixed,

    minimise  ½ ⟨Δz, H Δz⟩ - ⟨G, Δz⟩   subject to   z ≥ 0,   Σ_r z_ir = b_i,

where H is block diagonal over classes, K between the samples that have the class. A Newton step of Mehrotra's
method solves, with D = s/z for the dual slacks s,

    (H + D) dz - Aᵀ dλ = t,   A dz = u   by one Cholesky factor a class, and one of A (H + D)⁻¹ Aᵀ,

as many rows as there are samples. It takes 10 to 30 steps whatever the condition of K.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.linalg import lapack

from .inner import Block, Finisher
from .problems import Problem
from .problems.crammer_singer import ON_BOUND, coefficients, simplex_point
from .typing import FloatArray, IntArray

_EPS_SHARE = 0.2  # of eps: the rest is for rounding z to its bounds
_WORK_OF_UPDATE = 1e4  # multiply-adds of a step that take as long as an update of coordinate descent
_TYPICAL_STEPS = 12
_STEP = 0.995  # of the way to the boundary
_RIDGES = (0.0, 1e-7, 1e-6, 1e-5)  # of the largest K_ii, tried in turn


@dataclass(frozen=True)
class InteriorPoint(Finisher):
    """Interior point over the undecided samples of a block; leaves it as it is where those are too many.

    Parameters
    ----------
    most : int
        Largest number of undecided samples.
    most_work : float
        Largest number of multiply-adds of a step.
    most_bytes : float
        Largest memory for its matrices.
    latest : float
        Used only for blocks wanted more exactly than this: before, the classes of most samples are undecided.
    max_iter : int
        Largest number of steps.

    Examples
    --------
    A kernel so nearly singular that coordinate descent alone would creep:

    >>> from multimargin import Decomposition, KernelSVC
    >>> from multimargin.inner import CoordinateDescent
    >>> from multimargin.interior_point import InteriorPoint
    >>> from multimargin.working_set import Growing
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> solver = Decomposition(Growing(), CoordinateDescent(finish=InteriorPoint(most=500)))
    >>> KernelSVC(C=1000, gamma=0.001, solver=solver).fit(X, y).status_.converged
    True
    """

    name: ClassVar[str] = "interior-point"
    handles: ClassVar[frozenset[str]] = frozenset({"simplex"})
    measure: ClassVar[str] = "psi"
    most: int = 3000
    most_work: float = 5e9
    most_bytes: float = 1e9
    latest: float = 0.02
    max_iter: int = 60

    def solve(self, problem: Problem, block: Block, eps: float, rng: np.random.Generator) -> int:
        rows, listed = self.undecided(block)
        if not len(rows) or not self._affords(listed):
            return 0
        face = _Face(block, rows, listed)
        steps = face.minimise(_EPS_SHARE * eps, self.max_iter)
        alpha = face.coefficients()
        delta = alpha - block.alpha[rows]
        if not face.change(block.G[rows], delta) < 0:
            return 0
        block.alpha[rows] = alpha
        block.shift_gradient(rows, delta)
        return steps

    def within(self, updates: int, memory: int) -> Self:
        work = min(self.most_work, updates * _WORK_OF_UPDATE / _TYPICAL_STEPS)
        return replace(self, most_work=work, most_bytes=min(self.most_bytes, memory))

    def fits(self, block: Block, eps: float) -> bool:
        if eps > self.latest:
            return False
        active = simplex_point(block.alpha, block.y, block.C) > ON_BOUND * block.C[:, None]
        free = active.sum(axis=1) > 1
        return int(free.sum()) <= self.most and self._affords(active[free])

    def _affords(self, listed: np.ndarray) -> bool:
        """Whether a step over the listed pairs (samples × classes) keeps to the limits.

        Multiply-adds: a factor and an inverse of every class's block, a factor over the samples. Memory: the
        block and its inverse of every class, one more of the largest, and the matrix over the samples.
        """
        u, s = listed.sum(axis=0, dtype=np.float64), float(len(listed))
        work = (u**3).sum() + s**3 / 3
        size = 8 * (2 * (u**2).sum() + 3 * u.max(initial=0.0) ** 2 + s**2)
        return bool(work <= self.most_work and size <= self.most_bytes)

    def undecided(self, block: Block) -> tuple[IntArray, np.ndarray]:
        """Samples with a choice of classes to put weight on, and which classes these are.

        The gap of a sample is how far its best class without weight is from those with weight; of one with
        several classes that have weight it is 0.
        """
        z = simplex_point(block.alpha, block.y, block.C)
        active = z > ON_BOUND * block.C[:, None]
        lowest = np.where(active, block.G, np.inf).min(axis=1)
        best_other = np.where(active, -np.inf, block.G).max(axis=1)
        gap = np.where(active.sum(axis=1) > 1, 0.0, np.maximum(lowest - best_other, 0.0))
        violation = (block.G.max(axis=1) - lowest).max()
        rows = np.flatnonzero(gap <= violation)
        if len(rows) > self.most:
            rows = np.flatnonzero(gap == 0)
        if len(rows) > self.most:
            rows = rows[:0]
        top = block.G[rows].max(axis=1, keepdims=True)
        return rows, active[rows] | (block.G[rows] >= top - violation)


class _Face:
    """The problem over the listed pairs of some samples; vectors run over pairs, class after class."""

    def __init__(self, block: Block, rows: IntArray, listed: np.ndarray) -> None:
        self.y, self.C, self.m = block.y[rows], block.C[rows], block.G.shape[1]
        self.diagonal = block.diagonal[rows]
        self.sample = [np.flatnonzero(listed[:, r]) for r in range(self.m)]
        ends = np.cumsum([len(s) for s in self.sample])
        self.part = [slice(end - len(s), end) for s, end in zip(self.sample, ends, strict=True)]
        self.of = np.concatenate(self.sample)  # sample of each pair
        self.r = np.repeat(np.arange(self.m), [len(s) for s in self.sample])
        self.H = [block.K[np.ix_(rows[s], rows[s])].astype(np.float64) for s in self.sample]
        self.fixed = np.where(listed, 0.0, simplex_point(block.alpha[rows], self.y, self.C))
        z = simplex_point(block.alpha[rows], self.y, self.C)[self.of, self.r]
        self.budget = np.bincount(self.of, z, len(rows))
        self.gradient = -block.G[rows][self.of, self.r]
        inside = self.budget[self.of] / np.bincount(self.of)[self.of]
        self.z = 0.9 * z + 0.1 * inside
        self.gradient += self.multiply(self.z - z)
        lowest = np.full(len(rows), np.inf)
        np.minimum.at(lowest, self.of, self.gradient)
        self.multiplier = lowest - 0.1
        self.slack = self.gradient - self.multiplier[self.of]

    def multiply(self, v: FloatArray) -> FloatArray:
        return np.concatenate([H @ v[part] for H, part in zip(self.H, self.part, strict=True)])

    def minimise(self, eps: float, max_iter: int) -> int:
        """Mehrotra's predictor-corrector until ψ ≤ ``eps`` on the listed pairs; returns the steps."""
        n = len(self.z)
        for step in range(max_iter):
            if self._settled(eps) or not self._factor():
                return step
            complementarity = self.z * self.slack
            mu = complementarity.sum() / n
            dz, _, ds = self._newton(complementarity)
            a, b = self._length(self.z, dz), self._length(self.slack, ds)
            ahead = float((self.z + a * dz) @ (self.slack + b * ds)) / n
            target = (ahead / mu) ** 3 * mu
            dz, dl, ds = self._newton(complementarity + dz * ds - target)
            a, b = _STEP * self._length(self.z, dz), _STEP * self._length(self.slack, ds)
            self.z += a * dz
            self.gradient += a * self.multiply(dz)
            self.multiplier += b * dl
            self.slack += b * ds
        return max_iter

    def _heavy(self) -> np.ndarray:
        """Which pairs keep their weight: moving it would change their gradient by more than their slack.

        A pair on its bound goes to z = 0, s > 0, any other to z > 0, s = 0; z K_ii and s have the same unit.
        """
        largest = np.zeros(len(self.C))
        np.maximum.at(largest, self.of, self.z)
        return np.asarray((self.z * self.diagonal[self.of] >= self.slack) | (self.z == largest[self.of]))

    def _settled(self, eps: float) -> bool:
        """Whether ψ ≤ ``eps`` on the heavy pairs, and dropping the light ones changes no gradient by more.

        |Σ_i K_ij z_ir| ≤ √K_jj Σ_i √K_ii z_ir.
        """
        heavy, root = self._heavy(), np.sqrt(self.diagonal)
        if self.slack[heavy].max(initial=0.0) > eps:
            return False
        light = np.bincount(self.r, np.where(heavy, 0.0, self.z * root[self.of]))
        return bool(light.max() * root.max() <= eps)

    def _factor(self) -> bool:
        """(H + D)⁻¹ of every class, and the Cholesky factor of A (H + D)⁻¹ Aᵀ; False where there is none."""
        D = self.slack / self.z
        schur = np.zeros((len(self.C), len(self.C)))
        self.inverse = []
        for H, part, s in zip(self.H, self.part, self.sample, strict=True):
            inverse = self._inverse(H, D[part])
            if inverse is None:
                return False
            self.inverse.append(inverse)
            schur[np.ix_(s, s)] += inverse
        self.schur, failed = lapack.dpotrf(schur, lower=1, overwrite_a=1)
        return not failed

    def _inverse(self, H: FloatArray, D: FloatArray) -> FloatArray | None:
        """(H + D + ρ)⁻¹ with the smallest ρ of a few that makes the matrix positive definite, or None.

        float32 rounds the kernel of a nearly singular block to an indefinite one. With ρ the step is that of
        the problem with ½ ρ ‖Δz‖² about the current point added: shorter, towards the same optimum.
        """
        if not len(D):
            return H
        for share in _RIDGES:
            M = H + np.diag(D + share * H.diagonal().max())
            factor, failed = lapack.dpotrf(M.T, lower=1, overwrite_a=1)  # M.T is M, as LAPACK lays it out
            if not failed:
                inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
                return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)
        return None

    def _newton(self, complementarity: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        residual = self.gradient - self.multiplier[self.of] - self.slack
        t = -residual - complementarity / self.z
        missing = self.budget - np.bincount(self.of, self.z)
        forward = self._apply(t)
        dl = lapack.dpotrs(self.schur, missing - np.bincount(self.of, forward), lower=1)[0]
        dz = forward + self._apply(dl[self.of])
        ds = -(complementarity + self.slack * dz) / self.z
        return dz, dl, ds

    def _apply(self, t: FloatArray) -> FloatArray:
        return np.concatenate([M @ t[part] for M, part in zip(self.inverse, self.part, strict=True)])

    @staticmethod
    def _length(x: FloatArray, dx: FloatArray) -> float:
        """The longest step up to 1 that keeps x + step dx ≥ 0."""
        falls = dx < 0
        return min(1.0, float((-x[falls] / dx[falls]).min(initial=np.inf)))

    def coefficients(self) -> FloatArray:
        """α of the samples: light pairs lose their weight to the heavy ones of the sample."""
        weight = np.where(self._heavy(), self.z, 0.0)
        total = np.bincount(self.of, weight)
        z = self.fixed.copy()
        z[self.of, self.r] = weight * (self.budget / total)[self.of]
        return coefficients(z, self.y, self.C)

    def change(self, G: FloatArray, delta: FloatArray) -> float:
        """By how much a step of α changes the dual: ⟨G, Δ⟩ + ½ ⟨Δ, H Δ⟩."""
        d = delta[self.of, self.r]
        return float(G[self.of, self.r] @ d + 0.5 * d @ self.multiply(d))
