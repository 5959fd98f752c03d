"""The end of a hard linear fit: proximal point steps, each by a semismooth Newton method on the weights.

If C is large, thousands of passes of coordinate descent change little, because samples of nearly tied
classes undo each other's steps. A proximal point step minimises the dual plus a penalty on the way gone,

    D(α) + ‖α - α_k‖² / 2σ,    whose optimum has   α(W) = P((α_k / σ - X W + T) t),   W = Xᵀ α(W),

with t_i = 1 / (1/σ + R_i), P the projection onto each sample's feasible set, and T and R those of the machine
(``problems/base.py``). So W is the root of g(W) = W - Xᵀ α(W), the gradient of a convex function of d m
unknowns. A sample matters for Newton's matrix only if some of its entries are free to move
(``Problem.face``). ``native/linear/proximal_point.hpp`` computes α(W) and its weights, and
``problems/newton_direction.py`` solves with the matrix

    M = I + Σ_i t_i x_i x_iᵀ ⊗ Q_i Q_iᵀ,    Q_i a basis of what moves.

The larger σ, the fewer proximal steps and the more Newton steps in each. If the machine has a ridge R, as the
squared hinge has, σ is infinite: this is then Newton's method on the primal. The dual never rises.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..problems.newton_direction import NoDirectionError, newton_direction
from ..solution import falls
from ..system.team import SOLO
from ..system.typing import FloatArray
from .descent import LinearFit

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
_LOOSE = 30.0  # the cheap bound of an error is at most about so many times too large


class ProximalNewton:
    """The dual point of one fit, brought to optimality."""

    def __init__(self, fit: LinearFit) -> None:
        data = fit.data
        self.fit, self.problem, self.tuning = fit, data.problem, fit.options.tuning
        self.X, self.y, self.C, self.constant = data.X, data.y, data.C, data.constant
        ridge = self.problem.ridge(data.C)
        self.exact = ridge is not None  # σ is infinite, and one proximal step is the whole way
        self.ridge = np.zeros(len(data.C)) if ridge is None else ridge
        self.longest = float(np.sqrt(fit.problem.norms().max(initial=0.0)))
        self.sigma = first_sigma(fit)
        self.undecided = 0  # samples with entries that are free to move, as of the last step
        self.alpha = fit.alpha().toarray()
        self._take(self.alpha)

    def _take(self, alpha: FloatArray) -> None:
        """Go to a point, and measure it."""
        proof = self.fit.measure_exactly()
        self.alpha, self.W = alpha, self.fit.exact.copy()
        self.dual, self.violation, self.gap = self.fit.dual, proof.violation, proof.gap

    def is_met(self, tol: float, gap_tol: float) -> bool:
        """Whether the point is good enough; the primal objective is gap - dual."""
        return self.violation <= tol or self.gap <= gap_tol * (self.gap - self.dual)

    def step(self, tol: float, goes_on: Callable[[], bool]) -> bool:
        """One proximal step, whose Newton steps ``goes_on`` may forbid; False if no further step can help."""
        newton = _Newton(self, self.sigma)
        finished = newton.solve(max(_SHARE * self.violation, _TOL_SHARE * tol), goes_on)
        before, self.undecided = (self.alpha, self.dual, self.violation), newton.undecided
        try:
            self.fit.set_dense_dual(newton.alpha)
            self._take(newton.alpha)
        except KeyboardInterrupt:
            self.fit.set_dense_dual(self.alpha)
            raise
        level = self.dual <= before[1] + _ROUNDING * abs(before[1]) and self.violation < before[2]
        better = falls(self.dual, before[1]) or level
        if not better:
            self.fit.set_dense_dual(before[0])
            self._take(before[0])
        if self.exact:
            return better and not newton.too_large
        if not finished:
            self.sigma /= _FALL
        elif newton.steps <= _FEW_STEPS:
            self.sigma *= _GROWTH
        return (better or not finished) and not newton.too_large and self.sigma > _LEAST_SIGMA * self.C.max()

    def largest_score(self, W: FloatArray, enough: float) -> float:
        """Largest |X W|, or a bound of it that is below ``enough`` or far above."""
        with np.errstate(over="ignore"):
            bound = self.longest * float(np.sqrt((W**2).sum(axis=0).max()))
        if not enough < bound <= _LOOSE * enough:
            return bound
        d = self.X.shape[1]
        scores = np.asarray(self.X @ W[:d])
        if self.constant:
            scores += self.constant * W[d]
        return float(np.abs(scores).max(initial=0.0))

    def dense_rows(self, ids: np.ndarray) -> FloatArray:
        """Samples with their constant feature."""
        rows, d = np.empty((len(ids), len(self.W))), self.X.shape[1]
        rows[:, :d] = self.X[ids].toarray() if sp.issparse(self.X) else self.X[ids]
        rows[:, d:] = self.constant
        return rows


def first_sigma(fit: LinearFit) -> float:
    """The σ of the first proximal step."""
    data = fit.data
    if data.problem.ridge(data.C) is not None:
        return np.inf
    norm = float(fit.problem.norms().mean())
    return min(float(data.C.max()), fit.options.tuning.first_sigma / norm if norm else np.inf)


def first_face(fit: LinearFit, ids: np.ndarray) -> np.ndarray:
    """Mask of the entries of some samples that the first Newton step would find free to move."""
    data, d = fit.data, int(fit.data.X.shape[1])
    y, C, W = data.y[ids], data.C[ids], fit.weights_by_class()[:, : data.m]
    scores = np.asarray(data.X[ids] @ W[:d] + (data.constant * W[d] if data.constant else 0.0))
    ridge, sigma = data.problem.ridge(C), first_sigma(fit)
    t = 1.0 / (1.0 / sigma + (0.0 if ridge is None else ridge[:, None]))
    moved = (fit.alpha()[ids].toarray() / sigma + data.problem.target(y) - scores) * t
    return data.problem.face(data.problem.project(moved, y, C), y, C)


class _Newton:
    """One proximal step with a given σ."""

    def __init__(self, point: ProximalNewton, sigma: float) -> None:
        self.point, self.alpha = point, point.alpha
        self.t = 1.0 / (1.0 / sigma + point.ridge)
        self.steps, self.undecided, self.too_large = 0, 0, False

    def solve(self, error: float, goes_on: Callable[[], bool]) -> bool:
        """Newton steps until the scores of W and of Xᵀ α(W) differ by at most ``error``."""
        W = self.point.W
        self.alpha, g = self._at(W)
        while True:
            if self.point.largest_score(g, error) <= error:
                return True
            step = self._direction(g) if self.steps < _STEPS and goes_on() else None
            if step is None:
                return False
            self.steps += 1
            W, self.alpha, g = self._search(W, g, step)

    def _at(self, W: FloatArray) -> tuple[FloatArray, FloatArray]:
        """α(W) and g(W)."""
        alpha, product = np.empty(self.point.alpha.shape), np.empty(W.shape)
        self.point.fit.problem.proximal_point(W, self.point.alpha, self.t, alpha, product)
        return alpha, np.subtract(W, product, out=product)

    def _direction(self, g: FloatArray) -> FloatArray | None:
        """-M⁻¹ g; None if M would be too large, or is not definite to rounding."""
        point, m = self.point, self.alpha.shape[1]
        free = np.empty(self.alpha.shape, dtype=bool)
        _core.face(point.problem.name, self.alpha, point.y, point.C, free)
        ids = np.flatnonzero(free.any(axis=1))
        self.undecided = len(ids)
        rows, rest = point.dense_rows(ids), (point.problem.sums_to_zero, SOLO, point.tuning.newton_bytes)
        step = np.zeros(g.shape)
        try:
            step[:, :m] = newton_direction(
                rows, free[ids], self.t[ids], np.ascontiguousarray(g[:, :m]), *rest
            )
        except NoDirectionError:
            self.too_large = True
            return None
        return step

    def _search(
        self, W: FloatArray, g: FloatArray, step: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The point along the step at which the slope, ⟨g, step⟩, is small: W, α(W) and g(W)."""
        slope = float(np.vdot(g, step))
        low, high, at_low, at_high, length = 0.0, np.inf, slope, 0.0, 1.0
        for _ in range(_MOST_TRIALS):
            there = W + length * step
            alpha, g = self._at(there)
            now = float(np.vdot(g, step))
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
        return there, alpha, g
