"""One-vs-rest: m binary machines with the hinge loss, trained as one problem on one set of kernel rows.

Primal, with Y_ir = 1 on the label and -1 elsewhere:

    min  ½ Σ_r ‖w_r‖² + Σ_i C_i Σ_r [1 - Y_ir s_ir]₊

Dual, minimised, over 0 ≤ β_ir ≤ C_i:

    D = ½ ⟨α, Kα⟩ - Σ β_ir,    α_ir = Y_ir β_ir

With G = S - Y the gradient in β is γ_ir = Y_ir G_ir; see ``box.py`` for the conditions. ``class_weight``
gives a sample the same weight in all m machines.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from ..system.team import SOLO, Team
from ..system.typing import FloatArray, LabelArray
from .base import one_hot
from .box import BoxProblem, listed_in_box, with_rest, without_own
from .quantiles import Levels, hinge_bias


class OneVsRest(BoxProblem):
    """Formulas of one-vs-rest; see the module's head."""

    name: ClassVar[str] = "one-vs-rest"
    feasible_set: ClassVar[str] = "box"
    coupled: ClassVar[bool] = False
    sums_to_zero: ClassVar[bool] = False

    @property
    def gap_scale(self) -> float:
        return float(self.m)

    def target(self, y: LabelArray) -> FloatArray:
        return 2.0 * one_hot(y, self.m) - 1.0

    def loss(self, S: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        return np.asarray(C * np.maximum(1.0 - self.target(y) * S, 0.0).sum(axis=1))

    def beta(self, alpha: FloatArray, y: LabelArray) -> FloatArray:
        return np.maximum(_signed(alpha, y), 0.0)

    def alpha(self, beta: FloatArray, y: LabelArray) -> FloatArray:
        return _signed(beta, y)

    def gamma(self, G: FloatArray, y: LabelArray) -> FloatArray:
        return _signed(G, y)

    def project(self, w: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        own = np.arange(len(y)), y
        alpha = np.minimum(w, 0.0)
        alpha[own] = np.maximum(w[own], 0.0)
        if np.isfinite(most := self.bound(C)).all():
            np.clip(alpha, -most[:, None], most[:, None], out=alpha)
        return alpha

    def listed(self, alpha: FloatArray, G: FloatArray, y: LabelArray, width: float) -> np.ndarray:
        return listed_in_box(alpha, self.gamma(G, y), y, width)

    def shrink_sparse_into(self, alpha: sp.csr_array, y: LabelArray, C: FloatArray) -> sp.csr_array:
        entries = alpha.tocoo()
        own, most = entries.col == y[entries.row], self.bound(C)[entries.row]
        values = np.clip(entries.data, np.where(own, 0.0, -most), np.where(own, most, 0.0))
        return sp.csr_array((values, (entries.row, entries.col)), shape=alpha.shape)

    def face(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> np.ndarray:
        beta = self.beta(alpha, y)
        return np.asarray((beta > 0) & (beta < self.bound(C)[:, None]))

    def spread(self, room: FloatArray, mu: FloatArray, y: LabelArray) -> FloatArray:
        return room * mu

    def best_bias(
        self,
        S: FloatArray,
        y: LabelArray,
        C: FloatArray,
        start: FloatArray | None = None,
        team: Team = SOLO,
    ) -> FloatArray:
        return hinge_bias(S, self.target(y), C, team)

    def balanced_vertex(self, G: FloatArray, y: LabelArray, C: FloatArray, sums: FloatArray) -> FloatArray:
        # Each class by itself: v_ir = C_i δ_{r,y_i} - u_ir is between 0 and C_i; the largest G_ir come first.
        most = C[:, None] * one_hot(y, G.shape[1])
        levels = Levels(-G, np.broadcast_to(C[:, None], G.shape))
        return most - levels.fill(most.sum(axis=0) - sums)

    def label_distribution(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """β_ir / (m C_i); the β of the label's own machine is spread evenly over the other classes."""
        beta = self.beta(alpha, y)
        own = beta[np.arange(len(y)), y]
        share = without_own(beta, y) + own[:, None] / (self.m - 1)
        return with_rest(share / (self.m * C[:, None]), y)


def _signed(values: FloatArray, y: LabelArray) -> FloatArray:
    """Y_ir times the values: the sign changes except on the label."""
    own = np.arange(len(y)), y
    signed = 0.0 - values
    signed[own] = values[own]
    return signed
