"""The interface of a machine: everything a solver needs to know about its dual.

In the coefficients α (n, m) all machines have one dual, and differ in the feasible set of a row:

    D(α) = ½ ⟨α, (K + R) α⟩ - ⟨T, α⟩,   α_i ∈ F_i,        G = (K + R) α - T

with the targets T (from the labels) and, for M-SVM² alone, a ridge R = diag(1 / 2C_i). A free bias b adds b
to every row of G, and nothing else changes. So engines and solvers work with α and G, and ask the machine
only about single rows: every formula below is row-local (P(α) + D(α) = Σᵢ gᵢ with gᵢ ≥ 0 computable from row
i alone), and the exact problem of one sample is the projection of α_i - G_i / K_ii on F_i. The exceptions are
the questions at the end of ``Problem`` about a free bias, which couples the samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..system.shard import Shard
from ..system.team import SOLO, Team
from ..system.typing import FloatArray, IntArray, LabelArray

# Ways to solve the problem of one sample; all but the last are exact.
UPDATES = ("sort", "pivot", "bisection", "fixed-point", "smo", "frank-wolfe")
ON_BOUND = 1e-8  # a dual variable within this share of C_i of a bound counts as on it


class DualRows(NamedTuple):
    """The dual variables and gradients of some samples: all of them, or a working set."""

    alpha: FloatArray  # (k, m)
    G: FloatArray  # (k, m) gradient of the dual
    y: LabelArray  # (k,)
    C: FloatArray  # (k,) cost of each sample

    def take(self, which: IntArray | slice) -> DualRows:
        """A part of them."""
        return DualRows(self.alpha[which], self.G[which], self.y[which], self.C[which])


class Problem(ABC):
    """A machine for ``m`` classes.

    ``alpha`` (n, columns) are the coefficients, ``S = K alpha`` the scores, ``G`` the gradient of the
    dual objective. ``C`` holds one cost per sample.
    """

    name: ClassVar[str]
    feasible_set: ClassVar[str]  # what an inner solver must be able to handle
    updates: ClassVar[tuple[str, ...]] = ("sort", "frank-wolfe")  # ways to solve for a single sample
    coupled: ClassVar[bool] = True  # whether the classes of a sample are coupled
    sums_to_zero: ClassVar[bool] = True  # whether rows of α do
    one_sided: ClassVar[bool] = True  # whether α_r ≤ 0 for all classes r but the label
    idle_without_loss: ClassVar[bool] = (
        True  # whether samples without weight that do not violate have no loss
    )
    balanced: ClassVar[bool] = False  # whether the machine itself has a free bias b and asks for Σ_i α_i = 0

    def __init__(self, m: int) -> None:
        self.m = m

    @property
    def columns(self) -> int:
        """Width of α: one column per class, except for c-svc."""
        return self.m

    @property
    def kappa(self) -> float:
        """Target margin; tol is relative to it."""
        return 1.0

    @property
    @abstractmethod
    def gap_scale(self) -> float:
        """c_i / C_i; c_i times the violation of a sample bounds its gap."""

    # -- the dual ----------------------------------------------------------------------------------
    @abstractmethod
    def target(self, y: LabelArray) -> FloatArray:
        """T, the linear term of the dual."""

    def ridge(self, C: FloatArray) -> FloatArray | None:
        """The diagonal of R, one number per sample; None means zero."""
        return None

    def gradient(self, S: FloatArray, alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """G from the scores."""
        ridge = self.ridge(C)
        return S - self.target(y) if ridge is None else S + ridge[:, None] * alpha - self.target(y)

    def scores(self, G: FloatArray, alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """The scores from G: the inverse of ``gradient``."""
        ridge = self.ridge(C)
        return G + self.target(y) if ridge is None else G - ridge[:, None] * alpha + self.target(y)

    def dual(self, alpha: FloatArray, S: FloatArray, y: LabelArray, C: FloatArray) -> float:
        """Dual objective, minimised, at most 0 at the optimum."""
        ridge = self.ridge(C)
        squares = 0.0 if ridge is None else 0.5 * float(np.vdot(ridge[:, None] * alpha, alpha))
        return 0.5 * float(np.vdot(alpha, S)) + squares - float(np.vdot(self.target(y), alpha))

    # -- the primal --------------------------------------------------------------------------------
    @abstractmethod
    def loss(self, S: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """Primal loss of each sample with the scores S, bias included."""

    def primal(
        self, alpha: FloatArray, S: FloatArray, bias: FloatArray, y: LabelArray, C: FloatArray
    ) -> float:
        """Primal objective of the machine with these coefficients."""
        return 0.5 * float(np.vdot(alpha, S)) + float(self.loss(S + bias, y, C).sum())

    # -- optimality --------------------------------------------------------------------------------
    @abstractmethod
    def measure(self, rows: DualRows) -> tuple[FloatArray, FloatArray]:
        """KKT violation (in units of the scores) and gap of each sample."""

    def closeness(self, violation: FloatArray, gain: FloatArray, C: FloatArray) -> FloatArray:
        """What ``stop="gain"`` bounds: g_i / c_i, from the results of ``measure``."""
        return np.asarray(gain / (self.gap_scale * C))

    @abstractmethod
    def group(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> np.ndarray:
        """0 for a free sample, 1 for a zero one, 2 for a bounded one (Algorithm 4's order)."""

    def settled(self, rows: DualRows, reach: float) -> np.ndarray:
        """Whether a sample is at its bounds and stays there if entries of G change by at most ``reach``."""
        return np.zeros(len(rows.y), dtype=bool)

    # -- the feasible set --------------------------------------------------------------------------
    @abstractmethod
    def project(self, w: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """Euclidean projection of each row onto its feasible set."""

    @abstractmethod
    def vertex(self, G: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """The feasible u_i of least ⟨G_i, u_i⟩, row by row."""

    def listed(self, alpha: FloatArray, G: FloatArray, y: LabelArray, width: float) -> np.ndarray:
        """Mask of the entries (i, r) that may leave their bounds if G changes by up to ``width``."""
        return np.ones(G.shape, dtype=bool)

    def update(self, name: str, alpha: FloatArray, G: FloatArray, y: int, C: float, kii: float) -> FloatArray:
        """The new row: the minimiser a of ½ K_ii ‖a - alpha‖² + ⟨G, a - alpha⟩.

        The exact updates of any name find the same row: the projection of alpha - G / K_ii. "frank-wolfe" is
        one step towards the best vertex u, of length min(1, -⟨G, u - alpha⟩ / (K_ii ‖u - alpha‖²)).
        """
        label, cost = np.array([y]), np.array([C])
        vertex: FloatArray = self.vertex(G[None], label, cost)[0]
        if kii <= 0:
            return vertex
        if name != "frank-wolfe":
            return np.asarray(self.project((alpha - G / kii)[None], label, cost)[0])
        direction = vertex - alpha
        length = kii * float(direction @ direction)
        step = min(1.0, max(0.0, -float(G @ direction) / length)) if length > 0 else 0.0
        return np.asarray(alpha + step * direction)

    def shrink_into(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """A feasible point near ``alpha``, which was feasible for other costs (warm start)."""
        return self.project(alpha, y, C)

    # -- the linear machine ------------------------------------------------------------------------
    def shrink_sparse_into(self, alpha: sp.csr_array, y: LabelArray, C: FloatArray) -> sp.csr_array:
        """``shrink_into`` for a sparse ``alpha``."""
        raise NotImplementedError(f"{self.name} has no linear form.")

    def face(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> np.ndarray:
        """Mask of the entries that move if a point whose projection is ``alpha`` moves a little.

        If rows of α sum to zero, the projection of the change is the change of these entries minus its mean.
        """
        raise NotImplementedError(f"{self.name} has no derivative of its projection of this form.")

    # -- a free bias -------------------------------------------------------------------------------
    # Rows are those that this process of a team holds; what is asked of all samples is asked of the team.
    @abstractmethod
    def room(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """How far each dual variable may move both up and down; 0 at a bound."""

    @abstractmethod
    def spread(self, room: FloatArray, mu: FloatArray, y: LabelArray) -> FloatArray:
        """Changes of α, linear in ``mu`` (m,); feasible if entries and their differences are at most 1."""

    @abstractmethod
    def best_bias(
        self,
        S: FloatArray,
        y: LabelArray,
        C: FloatArray,
        start: FloatArray | None = None,
        team: Team = SOLO,
    ) -> FloatArray:
        """The bias of least primal at given scores: argmin over b of Σ_i L_i(S_i + b).

        At the optimum this is the multiplier of the constraints Σ_i α_i = 0. At any other point it gives the
        smallest upper bound P(α, b) at these scores, Didiot & Lauer's U. All machines except one-vs-rest
        and c-svc return a bias with Σ_r b_r = 0. A good ``start`` saves time in the iterative methods.
        """

    def balanced_vertex(
        self, G: FloatArray, y: LabelArray, C: FloatArray, sums: FloatArray
    ) -> FloatArray | None:
        """The u of least ⟨G, u⟩ with feasible rows and Σ_i u_i = ``sums``, which must be attainable.

        None if it was not found: a linear program may fail.
        """
        raise NotImplementedError(f"{self.name} has no linear problem with class sums.")

    def bounds(self, y: LabelArray, C: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Least and largest α of each sample of a balanced problem, whose rows have one entry."""
        raise NotImplementedError(f"{self.name} has no box for α.")

    def centre(self, rows: DualRows, team: Team = SOLO) -> float:
        """What to add to the bias of a balanced problem to minimise the largest violation."""
        raise NotImplementedError(f"{self.name} has no bias of its own.")

    def pairs(self, rows: DualRows, most: int, shard: Shard) -> tuple[IntArray, IntArray]:
        """The steepest feasible direction of a balanced problem: ``most`` samples to move up, and down."""
        raise NotImplementedError(f"{self.name} has rows that move by themselves.")

    def gaining_pairs(
        self, rows: DualRows, pair: IntArray, curvature: FloatArray, most: int, shard: Shard
    ) -> tuple[IntArray, IntArray]:
        """The same, ranked by gain: the ``pair`` (up, down), then samples that gain most with one of the two.

        ``curvature`` (2, n) is the curvature along the pairs of each row's sample with either of the two.
        """
        raise NotImplementedError(f"{self.name} has rows that move by themselves.")

    # -- labels ------------------------------------------------------------------------------------
    @abstractmethod
    def label_distribution(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """How each sample is spread over the classes: non-negative, summing to 1, all on y if α_i = 0."""


def one_hot(y: LabelArray, m: int) -> FloatArray:
    """e_y of every sample."""
    E = np.zeros((len(y), m))
    E[np.arange(len(y)), y] = 1.0
    return E
