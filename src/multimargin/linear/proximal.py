"""The end of a hard linear fit: proximal point steps, each by a semismooth Newton method on the weights.

If C is large, thousands of passes of coordinate descent change little, because samples of nearly tied
classes undo each other's steps. A proximal point step minimises the dual plus a penalty on the way gone,

    D(α) + ‖α - α_k‖² / 2σ,    whose optimum has   z(W) = P(z_k + σ (X W - E)),   W = Xᵀ (C E - z(W)),

with z = C e_y - α of each sample, P the projection onto its simplex, and E the labels as unit vectors. So W
is the root of g(W) = W - Xᵀ (C E - z(W)), the gradient of a convex function of d m unknowns. A sample matters
for Newton's matrix only if several classes have z > 0, and it adds x xᵀ ⊗ (I - 1 1ᵀ/k) of these k classes:

    M = I + σ Σ_i x_i x_iᵀ ⊗ Q_i Q_iᵀ,    Q_i a basis of what moves without changing Σ_r z_ir.

M has d m rows. By the Woodbury identity, one with a row per column of all Q_i does as well if that is
smaller. The larger σ, the fewer proximal steps and the more Newton steps in each. The dual never rises.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

from ..problems.base import ON_BOUND
from ..problems.crammer_singer import coefficients, on_simplex, simplex_point
from ..solution import falls
from ..system.typing import Data, FloatArray, LabelArray
from .tuning import Tuning

_SLOPE = 0.1  # a step is long enough once the slope along it fell to this share
_MOST_TRIALS = 12  # lengths tried per step
_LONGEST = 4.0  # Newton steps
_STEPS = 25  # Newton steps per proximal step
_FEW_STEPS = 6  # so few make σ grow
_GROWTH, _FALL = 4.0, 16.0  # of σ
_LEAST_SIGMA = 1e-14  # of the largest cost: below, nothing moves
_SHARE = 0.1  # of the violation: the error of a proximal step
_ROUNDING = 1e-12  # of the dual: a rise by so little counts as none
_TOL_SHARE = 0.2  # of the violation aimed at: the least error of a proximal step that is of use


class ProximalNewton:
    """The point z of one fit, brought to optimality."""

    def __init__(
        self, X: Data, y: LabelArray, C: FloatArray, alpha: FloatArray, constant: float, tuning: Tuning
    ) -> None:
        self.X = X.astype(np.float64) if X.dtype != np.float64 else X
        self.y, self.C, self.constant, self.tuning = y, C, constant, tuning
        self.rows, self.m = np.arange(len(y)), alpha.shape[1]
        self.z = simplex_point(alpha, y, C)
        self.W = self._weights(self.z)
        self.sigma = self._first_sigma()
        self.dual = self._dual(self.W, self.z)
        self.undecided = 0  # samples with several classes of z > 0, as of the last step
        self.violation, self.gap = self._measure(self.W, self.z)

    def alpha(self) -> FloatArray:
        """The dual point reached."""
        return coefficients(self.z, self.y, self.C)

    @property
    def support(self) -> int:
        """Number of samples with α ≠ 0."""
        return int(np.count_nonzero(self.z[self.rows, self.y] != self.C))

    def is_met(self, tol: float, gap_tol: float) -> bool:
        """Whether the point is good enough; the primal objective is gap - dual."""
        return self.violation <= tol or self.gap <= gap_tol * (self.gap - self.dual)

    def step(self, tol: float, goes_on: Callable[[], bool]) -> bool:
        """One proximal step, whose Newton steps ``goes_on`` may forbid; False if no further step can help."""
        newton = _Newton(self, self.sigma)
        finished = newton.solve(max(_SHARE * self.violation, _TOL_SHARE * tol), goes_on)
        W = self._weights(newton.z)
        dual, found = self._dual(W, newton.z), self._measure(W, newton.z)
        self.undecided = newton.undecided
        level = dual <= self.dual + _ROUNDING * abs(self.dual) and found[0] < self.violation
        better = falls(dual, self.dual) or level
        if better:
            self.z, self.W, self.dual = newton.z, W, dual
            self.violation, self.gap = found
        if not finished:
            self.sigma /= _FALL
        elif newton.steps <= _FEW_STEPS:
            self.sigma *= _GROWTH
        return (better or not finished) and not newton.too_large and self.sigma > _LEAST_SIGMA * self.C.max()

    def _first_sigma(self) -> float:
        squares = self.X.multiply(self.X) if sp.issparse(self.X) else self.X**2
        norm = float(squares.sum()) / len(self.y) + self.constant**2
        return min(float(self.C.max()), self.tuning.first_sigma / norm if norm else np.inf)

    def _scores(self, W: FloatArray) -> FloatArray:
        d = self.X.shape[1]
        return np.asarray(self.X @ W[:d] + (self.constant * W[d] if self.constant else 0.0))

    def _weights(self, z: FloatArray) -> FloatArray:
        alpha = coefficients(z, self.y, self.C)
        W = np.asarray(self.X.T @ alpha)
        return np.vstack([W, self.constant * alpha.sum(axis=0)]) if self.constant else W

    def _dual(self, W: FloatArray, z: FloatArray) -> float:
        return float(0.5 * np.vdot(W, W) - (self.C - z[self.rows, self.y]).sum())

    def _measure(self, W: FloatArray, z: FloatArray) -> tuple[float, float]:
        """Largest violation, and the duality gap."""
        G = self._scores(W)
        G[self.rows, self.y] -= 1.0
        below = G.max(axis=1, keepdims=True) - G
        own = (self.C - z[self.rows, self.y]).max(initial=0.0)
        bound = ON_BOUND * np.minimum(self.C, own)[:, None]  # as in a proof: relative to α, if that is small
        violation = np.where(z > bound, below, 0.0).max(initial=0.0)
        return float(violation), float(np.vdot(z, below))

    def dense_rows(self, ids: np.ndarray) -> FloatArray:
        """Samples with their constant feature."""
        X = self.X[ids].toarray() if sp.issparse(self.X) else self.X[ids]
        return np.hstack([X, np.full((len(ids), 1), self.constant)]) if self.constant else X


class _Newton:
    """One proximal step with a given σ."""

    def __init__(self, point: ProximalNewton, sigma: float) -> None:
        self.point, self.sigma = point, sigma
        self.W, self.z = point.W, point.z
        self.start = point.z  # z_k
        self.steps, self.undecided, self.too_large = 0, 0, False

    def solve(self, error: float, goes_on: Callable[[], bool]) -> bool:
        """Newton steps until the scores of W and of Xᵀ (C E - z(W)) differ by at most ``error``."""
        point, W = self.point, self.W
        scores = point._scores(W)
        z = self._at(scores)
        while True:
            self.z = z
            g = W - point._weights(z)
            if np.abs(point._scores(g)).max(initial=0.0) <= error:
                return True
            ids = np.flatnonzero(np.count_nonzero(z, axis=1) > 1)
            self.undecided = len(ids)
            step = self._direction(g, z, ids) if self.steps < _STEPS and goes_on() else None
            if step is None:
                return False
            self.steps += 1
            along = point._scores(step)
            length, z = self._search(W, g, step, scores, along)
            W, scores = W + length * step, scores + length * along

    def _at(self, scores: FloatArray) -> FloatArray:
        """z(W): the projections of z_k + σ G."""
        point = self.point
        V = self.start + self.sigma * scores
        V[point.rows, point.y] -= self.sigma
        V -= V.max(axis=1, keepdims=True)
        near = V > -point.C[:, None]  # all others get nothing
        z = np.where(near, point.C[:, None], 0.0)
        some = np.flatnonzero(np.count_nonzero(near, axis=1) > 1)
        z[some] = on_simplex(V[some], point.C[some])
        return z

    def _search(
        self, W: FloatArray, g: FloatArray, step: FloatArray, scores: FloatArray, along: FloatArray
    ) -> tuple[float, FloatArray]:
        """A length at which the slope along the step is small, and z there."""
        point = self.point
        slope, inner, squared = (float(np.vdot(v, step)) for v in (g, W, step))
        low, high, at_low, at_high, length = 0.0, np.inf, slope, 0.0, 1.0
        for _ in range(_MOST_TRIALS):
            z = self._at(scores + length * along)
            alpha = coefficients(z, point.y, point.C)
            now = inner + length * squared - float(np.vdot(along, alpha))
            if abs(now) <= _SLOPE * abs(slope):
                break
            if now > 0:
                high, at_high = length, now
            else:
                low, at_low = length, now
            if not np.isfinite(high):
                if length >= _LONGEST:
                    break
                length *= 2.0
                continue
            share = min(max(-at_low / (at_high - at_low), 0.1), 0.9)
            length = low + share * (high - low)
        return length, z

    def _direction(self, g: FloatArray, z: FloatArray, ids: np.ndarray) -> FloatArray | None:
        """-M⁻¹ g; None if M would be too large."""
        free = z[ids] > 0
        k = np.count_nonzero(free, axis=1)
        unknowns, moves = g.size, int(k.sum()) - len(ids)
        if not moves:
            return -g
        if min(unknowns, moves) > self.point.tuning.newton_unknowns:
            self.too_large = True
            return None
        X = self.point.dense_rows(ids)
        return self._by_moves(g, X, free, k) if moves < unknowns else self._by_weights(g, X, free, k)

    def _by_weights(self, g: FloatArray, X: FloatArray, free: np.ndarray, k: np.ndarray) -> FloatArray:
        p, m = g.shape
        M = np.zeros((g.size, g.size), order="F")
        for a in range(m):
            with_a = np.flatnonzero(free[:, a])
            Xa, ka, part = X[with_a], k[with_a], slice(a * p, a * p + p)
            M[part, part] = (Xa.T * (self.sigma * (1.0 - 1.0 / ka))) @ Xa
            for b in range(a):
                both = np.flatnonzero(free[with_a, b])
                if len(both):
                    shared = Xa[both]
                    M[part, b * p : b * p + p] = -(shared.T * (self.sigma / ka[both])) @ shared
        return -_solved(M, g.T.ravel()).reshape(m, p).T

    def _by_moves(self, g: FloatArray, X: FloatArray, free: np.ndarray, k: np.ndarray) -> FloatArray:
        of = np.repeat(np.arange(len(k)), k - 1)
        Q = _bases(free, k, of)
        M = (X @ X.T)[np.ix_(of, of)] * (Q @ Q.T)
        M *= self.sigma
        moved = _solved(np.asfortranarray(M), ((X @ g)[of] * Q).sum(axis=1))
        by_sample = np.zeros((len(k), g.shape[1]))
        np.add.at(by_sample, of, Q * moved[:, None])
        return np.asarray(self.sigma * (X.T @ by_sample) - g)


def _solved(M: FloatArray, rhs: FloatArray) -> FloatArray:
    """(I + M)⁻¹ rhs; M is overwritten."""
    M.flat[:: len(M) + 1] += 1.0
    factor, _ = lapack.dpotrf(M, lower=1, overwrite_a=1)
    return np.asarray(lapack.dpotrs(factor, rhs, lower=1)[0])


def _bases(free: np.ndarray, k: np.ndarray, of: np.ndarray) -> FloatArray:
    """The columns of all Q_i as rows: Helmert's basis on the free classes of sample ``of``.

    Column j of a sample is (1, …, 1, -j, 0, …) / √(j (j + 1)), with j ones.
    """
    first = np.concatenate([[0], np.cumsum(k - 1)])[:-1]
    j = (np.arange(len(of)) - first[of] + 1)[:, None]
    place = np.where(free, np.cumsum(free, axis=1) - 1, free.shape[1])[of]
    return np.asarray(np.where(place < j, 1.0, np.where(place == j, -j, 0.0)) / np.sqrt(j * (j + 1.0)))
