"""A leap: all samples at once, with a kernel of low rank.

A wide Gaussian, a linear or a polynomial kernel of few features is nearly of low rank: a pivoted Cholesky
factorisation with p columns leaves little of K,

    K ≈ L Lᵀ + diag(d),   L (n, p),   d_i = K_ii - ‖l_i‖² ≥ 0.

Such problems are the hardest for coordinate descent (thousands of samples whose classes are almost tied), and
the easiest for the predictor-corrector method: with D' = D + d and P = 1/D', elimination of dλ sample by
sample and of dz by the Woodbury identity leave one system of m p unknowns,

    (I + Σ_i Q_i ⊗ l_i l_iᵀ) v = rhs,   Q_i = diag(P_i) - P_i P_iᵀ / Σ_r P_ir   (m, m).

Only classes that compete for a sample couple noticeably, fewer and fewer as the method goes on: the others'
coupling is left out of the matrix, and conjugate gradients with its Cholesky factor as preconditioner put it
right. The point found is optimal for the approximate kernel, and a start for the exact one.

The processes of a team have the rows of L and the variables of their own samples. Only the system is common:
its parts are added up, and every process solves it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import blas, lapack

from ...inner import work
from ...inner.predictor_corrector import PairProblem
from ...problems.crammer_singer import coefficients
from ...system.shard import Shard
from ...system.team import SOLO, Team
from ...system.typing import FloatArray, LabelArray
from ..base import LowRank
from .state import State

_ERROR_WEIGHT = 10.0  # √C trace(K - L Lᵀ) times this is how much longer the way from the leap will be
_RANK_DONE = 1e-12  # of the largest K_ii: nothing is left to factor
_COUPLED = 0.05  # of the sample's largest Q_rr: classes whose coupling enters the matrix
_NOTICED = 1e-4  # Q_rr ‖l_i‖² below this hardly changes the identity
_DENSE = 0.3  # share of coupled pairs above which one product with all of them is faster
_CHUNK = 2048  # samples at once
_CG_STEPS = 60
_CG_SHARE = 1e-18  # of the squared residual

Column = Callable[[int], FloatArray]  # kernel values of a sample against those held here


class Leap:
    """One fit's leap: taken once, when all blocks so far have cost as much as it will."""

    def __init__(self, rule: LowRank, state: State, diagonal: FloatArray) -> None:
        self.rule, self.state, self.diagonal = rule, state, diagonal
        self.shard, self.team = state.shard, state.team
        self.due = self._work(1)
        self.factor: FloatArray | None = None

    def point(
        self, tol: float, done: int, memory: int, column: Column, late: Callable[[], bool]
    ) -> FloatArray | None:
        """The alpha to leap to, if ``done`` units of work make it due and some sample violates.

        None if it is not due, or would take more than ``memory`` bytes.
        """
        state = self.state
        if self.due == np.inf:
            return None
        done = self.team.agree(done)
        if done * work.LEAP < self.due or not state.select(1, "psi", "psi", tol, "all", False).above:
            return None
        memory = -int(self.team.max(-memory))
        if self.factor is None:
            if 16 * self.shard.largest * self.rule.most > memory:  # the factor and a copy
                self.due = np.inf
                return None
            self.factor = self._plan(column)
            if done * work.LEAP < self.due:
                return None
        self.due = np.inf
        if self._bytes(self.factor.shape[1]) > memory:
            return None
        problem = _LowRankProblem(self.factor, self.diagonal, state.y, state.C, state.m, self.team)
        problem.minimise(tol, self.rule.max_iter, late)
        return problem.coefficients()

    def _plan(self, column: Column) -> FloatArray:
        """Factor the kernel, and choose the rank: work × how much longer the rest of the way will be."""
        L, traces = pivoted_cholesky(self.diagonal, column, self.rule.most, self.shard)
        if not len(traces):  # K = 0: nothing to approximate
            self.due = np.inf
            return L
        largest = self.team.max(float(self.state.C.max(initial=0.0)))
        longer = 1.0 + _ERROR_WEIGHT * np.sqrt(largest) * traces
        works = np.array([self._work(k + 1) for k in range(len(traces))])
        best = int(np.argmin(works * longer))
        self.due = works[best] if longer[best] <= self.rule.hopeless else np.inf
        return np.ascontiguousarray(L[:, : best + 1])

    def _work(self, rank: int) -> float:
        n, m, size = self.shard.largest, self.state.m, self.state.m * rank
        return work.LEAP_STEPS * (n * (0.2 * size**2 + 40.0 * size + 150.0 * m) + size**3 / 3)

    def _bytes(self, rank: int) -> int:
        n, m = self.shard.largest, self.state.m
        return 8 * (20 * n * m + 3 * n * rank + (m * rank) ** 2 + m * rank * min(n, _CHUNK))


def pivoted_cholesky(
    diagonal: FloatArray, column: Column, most: int, shard: Shard
) -> tuple[FloatArray, FloatArray]:
    """L, and trace(K - L Lᵀ) after each of its columns; the next pivot is the sample with most left."""
    rest, L, traces = diagonal.copy(), np.zeros((len(diagonal), most), order="F"), []
    ids, team, least = shard.first + np.arange(len(rest)), shard.team, None
    for k in range(most):
        largest = team.max(float(rest.max(initial=0.0)))
        least = _RANK_DONE * largest if least is None else least
        if largest <= least:
            break
        found = team.top(ids, rest, 1)
        pivot = int(found[0])
        here = slice(pivot - shard.first, pivot - shard.first + 1) if pivot in shard else slice(0)
        own = shard.take(found, L[here, :k])[0]
        L[:, k] = (column(pivot) - L[:, :k] @ own) / np.sqrt(largest)
        rest = np.maximum(rest - L[:, k] ** 2, 0.0)
        traces.append(float(team.sum(rest.sum())))
    return L[:, : len(traces)], np.array(traces)


class _LowRankProblem(PairProblem):
    """The whole problem with K ≈ L Lᵀ + diag(rest); arrays of pairs are (m, n) inside."""

    def __init__(
        self, L: FloatArray, diagonal: FloatArray, y: LabelArray, C: FloatArray, m: int, team: Team = SOLO
    ) -> None:
        n, self.team = len(y), team
        self.L, self.LT = L, np.ascontiguousarray(L.T)
        self.norm, self.diagonal = (L**2).sum(axis=1), diagonal
        self.rest = np.maximum(diagonal - self.norm, _RANK_DONE * team.max(float(diagonal.max(initial=0.0))))
        self.y, self.budget, self.m = y, C, m
        self.of, self.r = np.tile(np.arange(n), m), np.repeat(np.arange(m), n)
        self.z = np.tile(C / m, m)
        own = self.r == y[self.of]
        self.gradient = own + self._multiply(self.z - np.where(own, C[self.of], 0.0))
        spread = np.ptp(self.gradient.reshape(m, n), axis=0)
        self._start(float(team.sum(spread.sum()) / team.sum(n)))

    def _multiply(self, v: FloatArray) -> FloatArray:
        V = v.reshape(self.m, len(self.y))
        return np.asarray(self.team.sum(V @ self.L) @ self.LT + self.rest * V).ravel()

    def _factor(self, D: FloatArray) -> bool:
        self.P = 1.0 / (D.reshape(self.m, len(self.y)) + self.rest)
        self.total = self.P.sum(axis=0)
        others = self._others()
        Q = self.P * others / self.total  # the diagonals of Q_i
        coupled = (Q >= _COUPLED * Q.max(axis=0)) & (Q * self.norm > _NOTICED)
        M = self._coupling(self.P * coupled / np.sqrt(self.total), coupled)
        p = self.L.shape[1]
        for a in range(self.m):
            part = slice(a * p, a * p + p)
            M[part, part] = (self.LT * Q[a]) @ self.L
        M = self.team.sum(M.T).T  # in LAPACK's order
        M.flat[:: len(M) + 1] += 1.0
        self.cholesky, failed = lapack.dpotrf(M, lower=1, overwrite_a=1)
        return self.team.agree(not failed)

    def _others(self) -> FloatArray:
        """Σ_{q ≠ r} P_iq, without cancellation if one class outweighs the others."""
        top, every = self.P.argmax(axis=0), np.arange(self.P.shape[1])
        others = self.total - self.P
        without = self.P.copy()
        without[top, every] = 0.0
        others[top, every] = without.sum(axis=0)
        return np.asarray(others)

    def _coupling(self, V: FloatArray, coupled: np.ndarray) -> np.ndarray:
        """- Σ_i V_i V_iᵀ ⊗ l_i l_iᵀ below the diagonal blocks, in LAPACK's order."""
        p, size = self.L.shape[1], self.m * self.L.shape[1]
        M = np.zeros((size, size), order="F")
        if np.count_nonzero(coupled) > _DENSE * coupled.size:
            for first in range(0, V.shape[1], _CHUNK):
                part = slice(first, first + _CHUNK)
                B = (V[:, None, part] * self.LT[None, :, part]).reshape(size, -1)
                M = blas.dsyrk(-1.0, B.T, beta=1.0, c=M, trans=1, lower=1, overwrite_c=1)
            return M
        for a in range(self.m):
            with_a = np.flatnonzero(coupled[a])
            for b in range(a):
                both = with_a[coupled[b, with_a]]
                if len(both):
                    L = self.L[both]
                    M[a * p : a * p + p, b * p : b * p + p] = -(L.T * (V[a, both] * V[b, both])) @ L
        return M

    def _project(self, T: FloatArray) -> FloatArray:
        """Q_i t_i of every sample."""
        scaled = self.P * T
        return np.asarray(scaled - self.P * (scaled.sum(axis=0) / self.total))

    def _solve(self, t: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        T = t.reshape(self.m, len(self.y))
        direct = self._project(T) + self.P * (u / self.total)
        W = self._conjugate_gradients(self.team.sum(direct @ self.L)) @ self.LT
        dl = ((self.P * (W - T)).sum(axis=0) + u) / self.total
        return (direct - self._project(W)).ravel(), dl

    def _conjugate_gradients(self, rhs: FloatArray) -> FloatArray:
        """The solution (m, p) of the system in the module's head."""
        v, residual = np.zeros_like(rhs), rhs.copy()
        step = better = self._precondition(residual)
        rho = start = self.team.agree(float(np.vdot(residual, better)))
        for _ in range(_CG_STEPS):
            if not rho > _CG_SHARE * start:
                break
            image = step + self.team.sum(self._project(step @ self.LT) @ self.L)
            length = rho / float(np.vdot(step, image))
            v += length * step
            residual -= length * image
            better = self._precondition(residual)
            rho, last = self.team.agree(float(np.vdot(residual, better))), rho
            step = better + (rho / last) * step
        return v

    def _precondition(self, v: FloatArray) -> FloatArray:
        return np.asarray(lapack.dpotrs(self.cholesky, v.ravel(), lower=1)[0].reshape(v.shape))

    def coefficients(self) -> FloatArray:
        """α of all samples."""
        z = self._rounded().reshape(self.m, len(self.y))
        return coefficients(z.T.copy(), self.y, self.budget)
