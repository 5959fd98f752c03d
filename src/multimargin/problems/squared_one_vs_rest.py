"""One-vs-rest with the squared hinge loss, as in scikit-learn's ``LinearSVC`` by default; linear form only.

Primal, with Y_ir = 1 on the label and -1 elsewhere:

    min  ½ Σ_r ‖w_r‖² + Σ_i C_i Σ_r [1 - Y_ir s_ir]₊²

Dual, minimised, over β_ir ≥ 0:

    D = ½ ⟨α, (K + R) α⟩ - Σ β_ir,    α_ir = Y_ir β_ir,    R = diag(1 / 2C_i)

With G = S + R α - Y the gradient in β is γ_ir = Y_ir G_ir. Optimality: γ_ir ≥ 0, and γ_ir = 0 if β_ir > 0.
With u = 1 - Y_ir s_ir the gap of one variable is C_i [u]₊² + β² / 4C_i - β u. That is C_i γ² if u ≥ 0, and
β (γ - β / 4C_i) otherwise, without a difference of large numbers.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..system.team import SOLO, Team
from ..system.typing import FloatArray, LabelArray
from .base import DualRows
from .one_vs_rest import OneVsRest

_NO_BIAS = "The squared hinge is for linear machines, whose intercept is a feature: they have no free bias."


class SquaredOneVsRest(OneVsRest):
    """Formulas of one-vs-rest with the squared hinge; see the module's head."""

    name: ClassVar[str] = "squared-one-vs-rest"
    feasible_set: ClassVar[str] = "cone"
    updates: ClassVar[tuple[str, ...]] = ("sort",)

    def ridge(self, C: FloatArray) -> FloatArray:
        return 0.5 / C

    def bound(self, C: FloatArray) -> FloatArray:
        return np.full(len(C), np.inf)

    def loss(self, S: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        return np.asarray(C * (np.maximum(1.0 - self.target(y) * S, 0.0) ** 2).sum(axis=1))

    def measure(self, rows: DualRows) -> tuple[FloatArray, FloatArray]:
        beta, gamma, C = self.beta(rows.alpha, rows.y), self.gamma(rows.G, rows.y), rows.C[:, None]
        gap = np.where(beta >= 2.0 * C * gamma, C * gamma**2, beta * (gamma - 0.25 * beta / C))
        return self._violation(beta, gamma, rows.C), np.asarray(gap.sum(axis=1))

    def face(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> np.ndarray:
        return np.asarray(alpha != 0)

    def best_bias(
        self,
        S: FloatArray,
        y: LabelArray,
        C: FloatArray,
        start: FloatArray | None = None,
        team: Team = SOLO,
    ) -> FloatArray:
        raise NotImplementedError(_NO_BIAS)

    def balanced_vertex(self, G: FloatArray, y: LabelArray, C: FloatArray, sums: FloatArray) -> FloatArray:
        raise NotImplementedError(_NO_BIAS)

    def label_distribution(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        raise NotImplementedError("The squared hinge bounds no coefficient, so α tells no shares of labels.")
