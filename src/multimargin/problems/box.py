"""What the machines with one bounded dual variable β_ir per sample and class have in common.

0 ≤ β_ir ≤ C_i,    γ_ir = ∂D/∂β_ir
optimal:    β = 0 ⇒ γ ≥ 0,    β = C_i ⇒ γ ≤ 0,    γ = 0 in between
violation   v_i = max_r max( [-γ_ir]₊ if β_ir < C_i,  [γ_ir]₊ if β_ir > 0 )
gap         g_i = Σ_r (C_i - β_ir) [-γ_ir]₊ + β_ir [γ_ir]₊
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from ..system.typing import FloatArray, LabelArray
from .base import ON_BOUND, DualRows, Problem


class BoxProblem(Problem):
    """A machine whose rows are an affine image of a box; α and β determine each other."""

    @abstractmethod
    def beta(self, alpha: FloatArray, y: LabelArray) -> FloatArray:
        """β from α."""

    @abstractmethod
    def alpha(self, beta: FloatArray, y: LabelArray) -> FloatArray:
        """α from β."""

    @abstractmethod
    def gamma(self, G: FloatArray, y: LabelArray) -> FloatArray:
        """∂D/∂β from G; 0 if there is no β."""

    def bound(self, C: FloatArray) -> FloatArray:
        """Largest β of each sample."""
        return C

    def farthest(self, C: FloatArray) -> FloatArray:
        """The bound of β in linear problems, which need a finite one."""
        return self.bound(C)

    def measure(self, rows: DualRows) -> tuple[FloatArray, FloatArray]:
        beta, gamma = self.beta(rows.alpha, rows.y), self.gamma(rows.G, rows.y)
        return self._violation(beta, gamma, rows.C), self._gap(beta, gamma, rows.C)

    def _violation(self, beta: FloatArray, gamma: FloatArray, C: FloatArray) -> FloatArray:
        least, most = ON_BOUND * C[:, None], (self.bound(C) - ON_BOUND * C)[:, None]
        wrong = np.maximum(np.where(beta < most, -gamma, 0.0), np.where(beta > least, gamma, 0.0))
        return np.asarray(np.maximum(wrong, 0.0).max(axis=1))

    @staticmethod
    def _gap(beta: FloatArray, gamma: FloatArray, C: FloatArray) -> FloatArray:
        left = np.maximum(C[:, None] - beta, 0.0)
        return np.asarray((left * np.maximum(-gamma, 0.0) + beta * np.maximum(gamma, 0.0)).sum(axis=1))

    def group(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> np.ndarray:
        beta = self.beta(alpha, y)
        free = (beta > ON_BOUND * C[:, None]) & (beta < (self.bound(C) - ON_BOUND * C)[:, None])
        return np.where(free.any(axis=1), 0, np.where(alpha.any(axis=1), 2, 1))

    def settled(self, rows: DualRows, reach: float) -> np.ndarray:
        beta, gamma = self.beta(rows.alpha, rows.y), self.gamma(rows.G, rows.y)
        least, most = ON_BOUND * rows.C[:, None], (self.bound(rows.C) - ON_BOUND * rows.C)[:, None]
        at_zero, at_bound = (beta <= least) & (gamma > reach), (beta >= most) & (gamma < -reach)
        return np.asarray((at_zero | at_bound).all(axis=1))

    def vertex(self, G: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        return self.alpha(np.where(self.gamma(G, y) < 0, self.farthest(C)[:, None], 0.0), y)

    def room(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        beta = self.beta(alpha, y)
        room = np.minimum(beta, self.bound(C)[:, None] - beta)
        return np.where(room > ON_BOUND * C[:, None], room, 0.0)

    def label_distribution(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """β_ir as a share of the largest possible Σ_r β_ir, and the rest on the label."""
        beta = self.beta(alpha, y)
        return with_rest(beta / ((self.m - 1) * C[:, None]), y)


def listed_in_box(alpha: FloatArray, gamma: FloatArray, y: LabelArray, width: float) -> np.ndarray:
    """``Problem.listed`` if β_ir moves only the entries of r and of the label."""
    mask = (alpha != 0) | (gamma <= width)
    mask[np.arange(len(y)), y] = True
    return np.asarray(mask)


def without_own(values: FloatArray, y: LabelArray) -> FloatArray:
    """The same with 0 in the column of the label."""
    values[np.arange(len(y)), y] = 0.0
    return values


def with_rest(share: FloatArray, y: LabelArray) -> FloatArray:
    """Shares of the other classes, and what they leave of 1 on the label."""
    share = np.maximum(without_own(share, y), 0.0)
    total = share.sum(axis=1)
    share /= np.maximum(total, 1.0)[:, None]
    share[np.arange(len(y)), y] = np.maximum(1.0 - total, 0.0)
    return share


def solve_clipped(
    a: FloatArray, sign: float, bound: FloatArray, left: FloatArray, slope: float
) -> FloatArray:
    """The t of every row with Σ_r clip(a_r + sign t, 0, bound) = left + slope t.

    Left minus right falls in t with a slope of at most -1, and is linear between the 2m values at which an
    entry meets a bound. Those are sorted, the interval with the root is found by bisection, and the root by
    interpolation. NaN in ``a`` is left out.
    """
    n = len(a)

    def excess(t: FloatArray) -> FloatArray:
        inside = np.clip(a + sign * t[:, None], 0.0, bound[:, None])
        return np.asarray(np.nansum(inside, axis=1) - left - slope * t)

    first, last = -a / sign, (bound[:, None] - a) / sign
    points = np.concatenate([first, np.where(np.isfinite(last), last, first)], axis=1)
    points = np.sort(np.where(np.isnan(points), np.nanmin(points, axis=1, keepdims=True), points), axis=1)
    ends = [points[:, :1], points[:, -1:]]
    reach = [np.abs(excess(end[:, 0]))[:, None] * (1 + 1e-12) + 1e-300 for end in ends]
    points = np.concatenate([ends[0] - reach[0], points, ends[1] + reach[1]], axis=1)
    low, high, every = np.zeros(n, dtype=int), np.full(n, points.shape[1] - 1), np.arange(n)
    while (high - low > 1).any():
        middle = (low + high) // 2
        positive = excess(points[every, middle]) > 0
        low, high = np.where(positive, middle, low), np.where(positive, high, middle)
    t0, t1 = points[every, low], points[every, high]
    e0, e1 = excess(t0), excess(t1)
    fall = e0 - e1
    share = np.where(fall > 0, e0 / np.where(fall > 0, fall, 1.0), 0.0)
    return np.asarray(t0 + np.clip(share, 0.0, 1.0) * (t1 - t0))
