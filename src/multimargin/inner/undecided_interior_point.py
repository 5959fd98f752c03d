"""An interior point method that finishes a block of the Crammer-Singer machine: it solves what is undecided.

Coordinate descent quickly finds out which coefficients are at their bounds. After that it is slow if the
kernel is nearly singular (small gamma, large C). What is left is small: the pairs (sample, class) that are
off their bounds or about to leave them. They are solved by the predictor-corrector method. Its H is block
diagonal over classes, with K between the samples that have the class, and its system

    (H + D) dz - Aᵀ dλ = t,   A dz = u

is solved by one Cholesky factor per class and one of A (H + D)⁻¹ Aᵀ, which has one row per sample.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np
from scipy.linalg import lapack

from ..problems.base import ON_BOUND, Problem
from ..problems.crammer_singer import coefficients, simplex_point
from ..system.typing import FloatArray, IntArray
from .base import Finisher
from .block import Block
from .predictor_corrector import PairProblem, cholesky
from .work import INTERIOR_POINT, INTERIOR_POINT_STEPS

_EPS_SHARE = 0.2  # of eps; the rest is for rounding z to its bounds
_RIDGES = (0.0, 1e-7, 1e-6, 1e-5)  # shares of the largest K_ii, tried in turn


@dataclass(frozen=True)
class InteriorPoint(Finisher):
    """Interior point over the undecided samples of a block; leaves it as it is if those are too many.

    Parameters
    ----------
    most : int
        Largest number of undecided samples.
    most_work : float
        Largest number of multiply-adds per step.
    most_bytes : float
        Largest memory for its matrices.
    latest : float
        Used only if eps is at most this. With a larger eps the classes of most samples are undecided.
    max_iter : int
        Largest number of steps.

    Examples
    --------
    A kernel so nearly singular that coordinate descent alone is slow:

    >>> from multimargin import Decomposition, KernelSVC
    >>> from multimargin.inner import CoordinateDescent, InteriorPoint
    >>> from multimargin.working_set import Growing
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> solver = Decomposition(Growing(), CoordinateDescent(finish=InteriorPoint(most=500)))
    >>> KernelSVC(C=1000, gamma=0.001, solver=solver).fit(X, y).status_.converged
    True
    """

    name: ClassVar[str] = "undecided-interior-point"
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
        inside = _Undecided(block, rows, listed)
        steps = inside.minimise(_EPS_SHARE * eps, self.max_iter, block.late)
        alpha = inside.coefficients()
        delta = alpha - block.alpha[rows]
        if not inside.change(block.G[rows], delta) < 0:
            return 0
        block.alpha[rows] = alpha
        block.shift_gradient(rows, delta, self.most_bytes)
        return steps

    def within(self, work: int, memory: int) -> Self:
        most = min(self.most_work, work * INTERIOR_POINT / INTERIOR_POINT_STEPS)
        return replace(self, most_work=most, most_bytes=min(self.most_bytes, memory))

    def fits(self, block: Block, eps: float) -> bool:
        if eps > self.latest:
            return False
        active = simplex_point(block.alpha, block.y, block.C) > ON_BOUND * block.C[:, None]
        free = active.sum(axis=1) > 1
        return int(free.sum()) <= self.most and self._affords(active[free])

    def _affords(self, listed: np.ndarray) -> bool:
        """Whether a step over the listed pairs (samples × classes) is within the limits.

        Multiply-adds: a factor and an inverse of each class's block, and a factor over the samples. Memory:
        each class's block and its inverse, copies of the largest block, and the matrix over the samples.
        """
        u, s = listed.sum(axis=0, dtype=np.float64), float(len(listed))
        work = (u**3).sum() + s**3 / 3
        size = 8 * (2 * (u**2).sum() + 3 * u.max(initial=0.0) ** 2 + s**2)
        return bool(work <= self.most_work and size <= self.most_bytes)

    def undecided(self, block: Block) -> tuple[IntArray, np.ndarray]:
        """Samples that could put weight on several classes, and which classes these are.

        The gap of a sample is how far its best class without weight is below those with weight. It is 0 if
        several classes have weight.
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


class _Undecided(PairProblem):
    """The problem over the listed pairs of some samples."""

    def __init__(self, block: Block, rows: IntArray, listed: np.ndarray) -> None:
        self.y, self.C, self.m = block.y[rows], block.C[rows], block.alpha.shape[1]
        self.diagonal = block.diagonal[rows]
        self.r, self.of = map(np.ascontiguousarray, np.nonzero(listed.T))
        starts = np.unique(self.r, return_index=True)[1]
        self.part = [slice(a, b) for a, b in pairwise([*starts, len(self.r)])]  # of each class that is listed
        self.sample = [self.of[part] for part in self.part]
        self.H = [block.kernel(rows[s], rows[s]) for s in self.sample]
        whole = simplex_point(block.alpha[rows], self.y, self.C)
        self.fixed, z = np.where(listed, 0.0, whole), whole[self.of, self.r]
        self.budget = np.asarray(np.bincount(self.of, z, len(rows)), dtype=np.float64)
        inside = self.budget[self.of] / np.bincount(self.of)[self.of]
        self.z = 0.9 * z + 0.1 * inside
        self.gradient = -block.G[rows][self.of, self.r] + self._multiply(self.z - z)
        self._start(0.1)

    def _multiply(self, v: FloatArray) -> FloatArray:
        return np.concatenate([H @ v[part] for H, part in zip(self.H, self.part, strict=True)])

    def _factor(self, D: FloatArray) -> bool:
        """(H + D)⁻¹ of every class, and the Cholesky factor of A (H + D)⁻¹ Aᵀ."""
        schur = np.zeros((len(self.C), len(self.C)))
        self.inverse = []
        for H, part, s in zip(self.H, self.part, self.sample, strict=True):
            inverse = _inverse(H, D[part])
            if inverse is None:
                return False
            self.inverse.append(inverse)
            schur[np.ix_(s, s)] += inverse
        self.schur, failed = lapack.dpotrf(schur, lower=1, overwrite_a=1)
        return not failed

    def _solve(self, t: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        forward = self._apply(t)
        dl = lapack.dpotrs(self.schur, u - np.bincount(self.of, forward), lower=1)[0]
        return forward + self._apply(dl[self.of]), dl

    def _apply(self, t: FloatArray) -> FloatArray:
        return np.concatenate([M @ t[part] for M, part in zip(self.inverse, self.part, strict=True)])

    def coefficients(self) -> FloatArray:
        """α of the samples."""
        z = self.fixed.copy()
        z[self.of, self.r] = self._rounded()
        return coefficients(z, self.y, self.C)

    def change(self, G: FloatArray, delta: FloatArray) -> float:
        """The change of the dual by a step Δ of α: ⟨G, Δ⟩ + ½ ⟨Δ, H Δ⟩."""
        d = delta[self.of, self.r]
        return float(G[self.of, self.r] @ d + 0.5 * d @ self._multiply(d))


def _inverse(H: FloatArray, D: FloatArray) -> FloatArray | None:
    """(H + diag(D))⁻¹ from its Cholesky factor; None if there is none."""
    factor = cholesky(H, D, _RIDGES)
    if factor is None:
        return None
    inverse = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
    return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)
