"""The interface of a machine: everything a solver needs to know about its dual.

Every formula is row-local: it needs the rows of alpha and of the scores, never the kernel
(P(α) + D(α) = Σᵢ gᵢ, where gᵢ ≥ 0 is computable from row i alone).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from ..typing import FloatArray, IntArray, LabelArray


class Rows(NamedTuple):
    """Some samples of the problem: all of them, or a working set."""

    alpha: FloatArray  # (k, m)
    G: FloatArray  # (k, m) gradient of the dual
    y: LabelArray  # (k,)
    C: FloatArray  # (k,) cost of each sample

    def take(self, which: IntArray | slice) -> Rows:
        """Some of them."""
        return Rows(self.alpha[which], self.G[which], self.y[which], self.C[which])


class Problem(ABC):
    """A multiclass machine with no free bias.

    ``alpha`` (n, m) are the coefficients, ``S = K alpha`` the scores, ``G`` the gradient of the
    dual objective. ``C`` holds one cost a sample.
    """

    name: ClassVar[str]
    feasible_set: ClassVar[str]  # what an inner solver must be able to project on
    kappa: ClassVar[float]  # target margin; tol is relative to it

    @abstractmethod
    def gradient(self, S: FloatArray, y: LabelArray) -> FloatArray:
        """G from the scores, in a new array."""

    @abstractmethod
    def scores(self, G: FloatArray, y: LabelArray) -> FloatArray:
        """The scores from G: the inverse of ``gradient``."""

    @abstractmethod
    def measure(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """KKT violation and gap of each sample."""

    @abstractmethod
    def group(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> np.ndarray:
        """0 for a free sample, 1 for a zero one, 2 for a bounded one (Algorithm 4's order)."""

    @abstractmethod
    def project(self, w: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """Euclidean projection of each row onto its feasible set."""

    @abstractmethod
    def loss(self, S: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """Primal loss of each sample."""

    @abstractmethod
    def dual(self, alpha: FloatArray, S: FloatArray, y: LabelArray) -> float:
        """Dual objective, minimised, at most 0 at the optimum."""

    @abstractmethod
    def shrink_into(self, alpha: FloatArray, y: LabelArray, C: FloatArray) -> FloatArray:
        """A feasible point near ``alpha``, which was feasible for other costs (warm start)."""

    def primal(self, alpha: FloatArray, S: FloatArray, y: LabelArray, C: FloatArray) -> float:
        """Primal objective of the machine with these coefficients."""
        return 0.5 * float(np.vdot(alpha, S)) + float(self.loss(S, y, C).sum())
