"""The machine of Crammer & Singer (2001).

Primal (their Eq. (7) with β = 1/C), scores s_i = Σ_j α_j K(x_j, x_i):

    min  ½ Σ_r ‖w_r‖² + Σ_i C_i ( max_r (s_ir + 1 - δ_{r,y_i}) - s_{i,y_i} )

Dual, minimised (their Eq. (15), Niu & Yuan (2.3), with τ = α/C):

    D(α) = ½ ⟨α, Kα⟩ - Σ_i α_{i,y_i}   subject to   α_i ≤ C_i e_{y_i},  Σ_r α_ir = 0

With z_i = C_i e_{y_i} - α_i the feasible set is the simplex z_i ≥ 0, Σ_r z_ir = C_i, and the gradient
is G_i = S_i - e_{y_i}. Optimality: every class with z_ir > 0 attains max_r G_ir.

    violation  ψ_i = max_r G_ir - min_{r: z_ir > 0} G_ir            (Crammer & Singer (32))
    gap        g_i = Σ_r z_ir (max_q G_iq - G_ir) = -ℓ_i            (Niu & Yuan (2.12)),   Σ_i g_i = P + D
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from ..system.team import SOLO, Team
from ..system.typing import FloatArray, LabelArray
from .base import ON_BOUND, UPDATES, DualRows, Problem, one_hot
from .flows import cheapest_flow, least_loss_bias

_ROUNDING = 1e-14  # of C_i: z_{i,y} = C_i - α_{i,y} is not exact


class CrammerSinger(Problem):
    """Formulas of the Crammer-Singer machine; see the module's head."""

    name: ClassVar[str] = "crammer-singer"
    feasible_set: ClassVar[str] = "simplex"
    updates: ClassVar[tuple[str, ...]] = UPDATES

    @property
    def gap_scale(self) -> float:
        return 1.0

    def target(self, y: LabelArray) -> FloatArray:
        return one_hot(y, self.m)

    def measure(self, rows: DualRows) -> tuple[FloatArray, FloatArray]:
        z = simplex_point(rows.alpha, rows.y, rows.C)
        top = rows.G.max(axis=1, keepdims=True)
        below = top - rows.G
        psi = np.where(z > ON_BOUND * rows.C[:, None], below, 0.0).max(axis=1)
        return psi, np.einsum("ij,ij->i", z, below)

    def group(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> np.ndarray:
        own = alpha[np.arange(len(y)), y]
        bounded = own >= (1 - ON_BOUND) * C
        return np.where(own == 0, 1, np.where(bounded, 2, 0))

    def project(self, w: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        # Niu & Yuan (3.4): w_ir = min(ŵ_ir + λ_i, C_i δ_{r,y}); in z this is the projection [D - θ]₊ on the
        # simplex: θ = π(ρ), π(k) = (Σ_{l≤k} μ_l - C)/k, ρ the last k with μ_k > π(k), μ the sorted D.
        return coefficients(on_simplex(simplex_point(w, y, C), C), y, C)

    def vertex(self, G: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        rows, best = np.arange(len(y)), G.argmax(axis=1)
        best = np.where(G[rows, best] > G[rows, y], best, y)
        return coefficients(C[:, None] * one_hot(best, G.shape[1]), y, C)

    def listed(self, alpha: FloatArray, G: FloatArray, y: LabelArray, width: float) -> np.ndarray:
        mask = (alpha != 0) | (G >= G.max(axis=1, keepdims=True) - width)
        mask[np.arange(len(y)), y] = True
        return np.asarray(mask)

    def loss(self, S: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        G = S - one_hot(y, S.shape[1])  # max_r (s_r + 1 - δ_ry) - s_y = max_r G_r - G_y
        return np.asarray(C * (G.max(axis=1) - G[np.arange(len(y)), y]))

    def room(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        z = simplex_point(alpha, y, C)
        z[z <= ON_BOUND * C[:, None]] = 0.0
        return np.where((z > 0).sum(axis=1, keepdims=True) > 1, z, 0.0)

    def spread(self, room: FloatArray, mu: FloatArray, y: LabelArray) -> FloatArray:
        mean = (room @ mu) / np.maximum(room.sum(axis=1), 1e-300)
        return np.asarray(room * (mu - mean[:, None]))

    def best_bias(
        self,
        S: FloatArray,
        y: LabelArray,
        C: FloatArray,
        start: FloatArray | None = None,
        team: Team = SOLO,
    ) -> FloatArray:
        return least_loss_bias(self, S, y, C, start, joint=True, team=team)

    def balanced_vertex(
        self, G: FloatArray, y: LabelArray, C: FloatArray, sums: FloatArray
    ) -> FloatArray | None:
        flow = cheapest_flow(G, y, C, sums, joint=True)
        return None if flow is None else flow.alpha

    def label_distribution(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """η_i = z_i / C_i (Crammer & Singer, Section 3)."""
        return np.maximum(simplex_point(alpha, y, C) / C[:, None], 0.0)

    def shrink_into(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        scale = _row_scale(alpha[np.arange(len(y)), y], C)
        return coefficients(-alpha * scale[:, None], y, C)

    def shrink_sparse_into(self, alpha: sp.csr_array, y: LabelArray, C: FloatArray) -> sp.csr_array:
        entries, own = alpha.tocoo(), np.zeros(len(y))
        is_own = entries.col == y[entries.row]
        own[entries.row[is_own]] = entries.data[is_own]
        total = np.bincount(entries.row, np.where(is_own, 0.0, -entries.data), len(y))
        return alpha.multiply(_row_scale(np.where(own > 0, total, 0.0), C)[:, None]).tocsr()

    def face(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> np.ndarray:
        free = simplex_point(alpha, y, C) > _ROUNDING * C[:, None]
        return np.asarray(free & (np.count_nonzero(free, axis=1) > 1)[:, None])


def simplex_point(alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
    """z_i = C_i e_y - α_i."""
    z = -alpha
    z[np.arange(len(y)), y] += C
    return z


def on_simplex(D: FloatArray, C: FloatArray) -> FloatArray:
    """The nearest points with z ≥ 0, Σ_r z_r = C_i, row by row."""
    D = D - D.max(axis=1, keepdims=True)  # avoids cancellation and does not change the answer
    near = D > -C[:, None]  # all others get nothing
    z = np.where(near, C[:, None], 0.0)
    some = np.flatnonzero(np.count_nonzero(near, axis=1) > 1)
    D, C = D[some], C[some]
    mu = -np.sort(-D, axis=1)
    pi = (np.cumsum(mu, axis=1) - C[:, None]) / np.arange(1, D.shape[1] + 1)
    theta = pi[np.arange(len(D)), np.count_nonzero(mu > pi, axis=1) - 1]
    z[some] = np.maximum(D - theta[:, None], 0.0)
    return z


def coefficients(z: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
    """α_i from z_i: α_ir = -z_ir off the label, and minus their sum on it, so that rows sum to zero."""
    alpha = -z
    rows = np.arange(len(y))
    alpha[rows, y] = 0.0
    alpha[rows, y] = np.minimum(-alpha.sum(axis=1), C)
    return np.asarray(alpha + 0.0)  # no negative zeros


def _row_scale(own: FloatArray, C: FloatArray) -> FloatArray:
    """Factors that bring α_{i,y} = ``own`` down to C_i; 0 if it is not positive: the label has changed."""
    return np.where(own > 0, np.minimum(1.0, C / np.where(own > 0, own, 1.0)), 0.0)
