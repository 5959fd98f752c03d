"""The machine of Lee, Lin & Wahba (2004), with the margin κ = 1/(m - 1) of MSVMpack.

Primal, scores of a sample summing to zero:

    min  ½ Σ_r ‖w_r‖² + Σ_i C_i Σ_{r ≠ y_i} [s_ir + κ]₊

Dual, minimised, over 0 ≤ β_ir ≤ C_i for r ≠ y_i, with the mean β̄_i = (1/m) Σ_r β_ir:

    D = ½ ⟨α, Kα⟩ - κ Σ β_ir,    α_ir = β̄_i - β_ir  (so β_ir = α_{i,y_i} - α_ir)

In α the linear term is ⟨T, α⟩ with T = 1 on the label and -κ elsewhere. G = S - T sums to zero over the
classes, and the gradient in β is γ_ir = -G_ir; see ``box.py`` for the conditions.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..system.team import SOLO, Team
from ..system.typing import FloatArray, LabelArray
from .base import one_hot
from .box import BoxProblem, solve_clipped, without_own
from .quantiles import Levels, inside, levels_of


class LeeLinWahba(BoxProblem):
    """Formulas of the Lee-Lin-Wahba machine; see the module's head."""

    name: ClassVar[str] = "lee-lin-wahba"
    feasible_set: ClassVar[str] = "shifted box"
    one_sided: ClassVar[bool] = False

    @property
    def kappa(self) -> float:
        return 1.0 / (self.m - 1)

    @property
    def gap_scale(self) -> float:
        return self.m - 1.0

    def target(self, y: LabelArray) -> FloatArray:
        return (1.0 + self.kappa) * one_hot(y, self.m) - self.kappa

    def loss(self, S: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        return np.asarray(C * without_own(np.maximum(S + self.kappa, 0.0), y).sum(axis=1))

    def beta(self, alpha: FloatArray, y: LabelArray) -> FloatArray:
        return np.maximum(alpha[np.arange(len(y)), y][:, None] - alpha, 0.0)

    def alpha(self, beta: FloatArray, y: LabelArray) -> FloatArray:
        alpha = beta.mean(axis=1, keepdims=True) - beta
        own = np.arange(len(y)), y
        alpha[own] = 0.0
        alpha[own] = -alpha.sum(axis=1)
        return np.asarray(alpha)

    def gamma(self, G: FloatArray, y: LabelArray) -> FloatArray:
        return without_own(0.0 - G, y)

    def project(self, w: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        # ½ ‖Π(β + w)‖²: β_r = clip(mean(w) - w_r + t, 0, bound) with t = mean(β).
        a = w.mean(axis=1, keepdims=True) - w
        a[np.arange(len(y)), y] = np.nan
        bound = self.bound(C)
        t = solve_clipped(a, 1.0, bound, np.zeros(len(y)), float(self.m))
        a[np.arange(len(y)), y] = -np.inf
        return self.alpha(np.clip(a + t[:, None], 0.0, bound[:, None]), y)

    def spread(self, room: FloatArray, mu: FloatArray, y: LabelArray) -> FloatArray:
        return self.alpha(-room * (mu - mu.mean()), y)

    def best_bias(
        self,
        S: FloatArray,
        y: LabelArray,
        C: FloatArray,
        start: FloatArray | None = None,
        team: Team = SOLO,
    ) -> FloatArray:
        # f_r(b_r) = Σ_{y_i≠r} C_i [S_ir + κ + b_r]_+ has slope θ at the weighted quantile of mass θ. At the
        # minimum under Σ_r b_r = 0 all slopes are equal.
        weight = without_own(np.repeat(C[:, None], S.shape[1], axis=1), y)
        levels, none = levels_of(self.target(y) - S, weight, team), np.zeros(S.shape[1])
        return inside(*levels.interval(levels.balance(none) - none))

    def balanced_vertex(self, G: FloatArray, y: LabelArray, C: FloatArray, sums: FloatArray) -> FloatArray:
        # Σ_i α_ir = Σ_i β̄_i - Σ_i β_ir = sums_r: class r gets the mass θ - sums_r, θ = Σ_i β̄_i, smallest γ_ir
        # first. The best θ is the one at which the levels reached sum to zero.
        weight = without_own(np.repeat(self.farthest(C)[:, None], G.shape[1], axis=1), y)
        levels = Levels(-G, weight)
        return self.alpha(levels.fill(levels.balance(sums) - sums), y)
