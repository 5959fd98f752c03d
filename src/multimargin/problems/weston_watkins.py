"""The machine of Weston & Watkins (1998), with margin 1 as MSVMpack has it.

Primal:

    min  ½ Σ_r ‖w_r‖² + Σ_i C_i Σ_{r ≠ y_i} [1 - s_{i,y_i} + s_ir]₊

Dual, minimised, over 0 ≤ β_ir ≤ C_i for r ≠ y_i:

    D = ½ ⟨α, Kα⟩ - Σ_i α_{i,y_i},    α_ir = -β_ir,  α_{i,y_i} = Σ_r β_ir

It is Crammer & Singer's dual with a larger feasible set: C_i bounds every class by itself, not their sum.
With G = S - e_y the gradient in β is γ_ir = G_{i,y_i} - G_ir; see ``box.py`` for the conditions.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from ..system.team import SOLO, Team
from ..system.typing import FloatArray, LabelArray
from .base import one_hot
from .box import BoxProblem, listed_in_box, solve_clipped, without_own
from .flows import cheapest_flow, least_loss_bias


class WestonWatkins(BoxProblem):
    """Formulas of the Weston-Watkins machine; see the module's head."""

    name: ClassVar[str] = "weston-watkins"
    feasible_set: ClassVar[str] = "box"

    @property
    def gap_scale(self) -> float:
        return self.m - 1.0

    def target(self, y: LabelArray) -> FloatArray:
        return one_hot(y, self.m)

    def loss(self, S: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        own = S[np.arange(len(y)), y][:, None]
        return np.asarray(C * without_own(np.maximum(1.0 - own + S, 0.0), y).sum(axis=1))

    def beta(self, alpha: FloatArray, y: LabelArray) -> FloatArray:
        return without_own(np.maximum(-alpha, 0.0), y)

    def alpha(self, beta: FloatArray, y: LabelArray) -> FloatArray:
        alpha = 0.0 - beta
        alpha[np.arange(len(y)), y] = beta.sum(axis=1)
        return alpha

    def gamma(self, G: FloatArray, y: LabelArray) -> FloatArray:
        return G[np.arange(len(y)), y][:, None] - G

    def project(self, w: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        # ½ Σ (β_r + w_r)² + ½ (Σ β - w_y)²: β_r = clip(-w_r - t, 0, C) with t = Σ β - w_y.
        a = -w
        a[np.arange(len(y)), y] = np.nan
        t = solve_clipped(a, -1.0, C, w[np.arange(len(y)), y], 1.0)
        beta = np.clip(-w - t[:, None], 0.0, C[:, None])
        return self.alpha(without_own(beta, y), y)

    def listed(self, alpha: FloatArray, G: FloatArray, y: LabelArray, width: float) -> np.ndarray:
        return listed_in_box(alpha, self.gamma(G, y), y, width)

    def shrink_sparse_into(self, alpha: sp.csr_array, y: LabelArray, C: FloatArray) -> sp.csr_array:
        entries, rows = alpha.tocoo(), np.arange(len(y))
        was_label = np.zeros(len(y), dtype=bool)  # otherwise the label has changed
        was_label[entries.row[(entries.col == y[entries.row]) & (entries.data > 0)]] = True
        off = (entries.data < 0) & was_label[entries.row]
        row, col = entries.row[off], entries.col[off]
        beta = np.minimum(-entries.data[off], C[row])
        values = np.concatenate([-beta, np.bincount(row, beta, len(y))])
        where = np.concatenate([row, rows]), np.concatenate([col, y])
        return sp.csr_array((values, where), shape=alpha.shape)

    def face(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> np.ndarray:
        free = (alpha < 0) & (alpha > -C[:, None])
        free[np.arange(len(y)), y] = free.any(axis=1)
        return free

    def spread(self, room: FloatArray, mu: FloatArray, y: LabelArray) -> FloatArray:
        own = mu[y][:, None]
        return self.alpha(room * (own - mu), y)

    def best_bias(
        self,
        S: FloatArray,
        y: LabelArray,
        C: FloatArray,
        start: FloatArray | None = None,
        team: Team = SOLO,
    ) -> FloatArray:
        return least_loss_bias(self, S, y, C, start, joint=False, team=team)

    def balanced_vertex(
        self, G: FloatArray, y: LabelArray, C: FloatArray, sums: FloatArray
    ) -> FloatArray | None:
        flow = cheapest_flow(G, y, C, sums, joint=False)
        return None if flow is None else flow.alpha
