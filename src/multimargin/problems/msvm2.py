"""The M-SVM² of Guermeur & Monfrini (2011): Lee, Lin & Wahba's machine with squared slacks.

Primal, scores of a sample summing to zero, κ = 1/(m - 1), slacks of any sign:

    min  ½ Σ_r ‖w_r‖² + Σ_i C_i min { Σ_{r ≠ y_i} ξ_r² + (Σ_{r ≠ y_i} ξ_r)² :  ξ_r ≥ s_ir + κ }

Dual, minimised, over β_ir ≥ 0 for r ≠ y_i, with α_ir = β̄_i - β_ir as in ``lee_lin_wahba.py``:

    D = ½ ⟨α, Kα⟩ + Σ_i ‖α_i‖² / (4 C_i) - κ Σ β_ir

that is, the hard-margin machine with the kernel K + diag(1 / 2C_i). γ_ir = -G_ir; G includes the ridge.

Loss: with t_r = 2 C_i (s_r + κ) and β̂_r = [t_r + μ]₊, m μ = Σ_r β̂_r:  L_i = (Σ β̂² - (Σ β̂)²/m) / (4 C_i).
The gap g_i = L_i + ‖α_i‖²/(4 C_i) - Σ β_ir (s_ir + κ) is quadratic in the violation; therefore the violation
decides when to stop.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..system.team import SOLO, Team
from ..system.typing import FloatArray, LabelArray
from .base import DualRows
from .box import with_rest, without_own
from .lee_lin_wahba import LeeLinWahba

_MOST = 1000.0  # times C_i: the bound of β in the linear problem of Frank-Wolfe; MSVMpack bounds its LP too
_MOST_NEWTON = 100  # steps to the best bias
_FLAT = 1e-13  # a gradient of the sum of losses below this share of its terms counts as zero
_ARMIJO = 1e-4


class MSVM2(LeeLinWahba):
    """Formulas of the M-SVM²; see the module's head."""

    name: ClassVar[str] = "msvm2"
    idle_without_loss: ClassVar[bool] = False  # slacks may have any sign
    feasible_set: ClassVar[str] = "cone"

    @property
    def gap_scale(self) -> float:
        return self.m / (self.m - 1.0)

    def ridge(self, C: FloatArray) -> FloatArray:
        return 0.5 / C

    def bound(self, C: FloatArray) -> FloatArray:
        return np.full(len(C), np.inf)

    def farthest(self, C: FloatArray) -> FloatArray:
        return _MOST * C

    def slopes(self, S: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """β̂, the gradient of each sample's loss before its mean is subtracted."""
        # μ = Σ_A t / (m - |A|), with A the longest prefix of the sorted t in which every t_r + μ > 0.
        rows = np.arange(len(y))
        t = 2.0 * C[:, None] * (S + self.kappa)
        t[rows, y] = -np.inf
        ordered = -np.sort(-t, axis=1)[:, :-1]
        means = np.cumsum(ordered, axis=1) / (self.m - np.arange(1, self.m))
        active = np.logical_and.accumulate(ordered + means > 0, axis=1).sum(axis=1)
        mu = np.where(active > 0, means[rows, np.maximum(active, 1) - 1], 0.0)
        return np.maximum(t + mu[:, None], 0.0)

    def loss_of(self, slopes: FloatArray, C: FloatArray) -> FloatArray:
        """The loss of each sample from its slopes."""
        u = slopes / (2.0 * C[:, None])  # in units of the scores: squares of slopes overflow or vanish with C
        return np.asarray(C * (np.einsum("ij,ij->i", u, u) - u.sum(axis=1) ** 2 / self.m))

    def loss(self, S: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        return self.loss_of(self.slopes(S, y, C), C)

    def measure(self, rows: DualRows) -> tuple[FloatArray, FloatArray]:
        alpha, G, y, C = rows
        beta, gamma = self.beta(alpha, y), self.gamma(G, y)
        S = self.scores(G, alpha, y, C)
        square = np.einsum("ij,ij->i", alpha / (4.0 * C[:, None]), alpha)
        linear = (beta * without_own(S + self.kappa, y)).sum(axis=1)
        gap = self.loss(S, y, C) + square - linear
        return self._violation(beta, gamma, C), np.maximum(gap, 0.0)

    def closeness(self, violation: FloatArray, gain: FloatArray, C: FloatArray) -> FloatArray:
        return violation / self.kappa

    def best_bias(
        self,
        S: FloatArray,
        y: LabelArray,
        C: FloatArray,
        start: FloatArray | None = None,
        team: Team = SOLO,
    ) -> FloatArray:
        """Semismooth Newton on Σ_r b_r = 0 with Armijo's rule; the sum of losses is piecewise quadratic.

        The gradient is Π Σ_i β̂_i, the generalised Hessian Σ_i 2 C_i (I_A + 1_A 1_Aᵀ / (m - |A|)), with A the
        classes of β̂_ir > 0.
        """
        m = S.shape[1]
        centre = np.eye(m) - 1.0 / m
        b = np.zeros(m) if start is None else start - start.mean()
        slopes = self.slopes(S + b, y, C)
        value = float(team.sum(self.loss_of(slopes, C).sum()))
        for _ in range(_MOST_NEWTON):
            gradient = centre @ team.sum(slopes.sum(axis=0))
            if team.agree(bool(np.abs(gradient).max() <= _FLAT * team.sum(slopes.sum()))):
                break
            active = (slopes > 0).astype(np.float64)
            share = 2.0 * C / (m - active.sum(axis=1))
            H = np.diag(team.sum(2.0 * C @ active)) + team.sum((active * share[:, None]).T @ active)
            step = -np.linalg.lstsq(centre @ H @ centre, gradient, rcond=1e-12)[0]
            step, descent = team.agree(
                (step, float(gradient @ step))
            )  # their last bits depend on the machine
            length = 1.0
            while length > 1e-10:
                trial = self.slopes(S + (b + length * step), y, C)
                trial_value = float(team.sum(self.loss_of(trial, C).sum()))
                if trial_value <= value + _ARMIJO * length * descent:
                    break
                length *= 0.5
            else:  # no shorter step is lower: this is the minimum, to rounding
                break
            b, slopes, value = b + length * step, trial, trial_value
        return np.asarray(b - b.mean())

    def label_distribution(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """β_ir / (2 m C_i + Σ β): half of the mass is off the label if all scores are zero."""
        beta = self.beta(alpha, y)
        return with_rest(beta / (2.0 * self.m * C + beta.sum(axis=1))[:, None], y)
