"""A point of a problem whose kernel has low rank, beginning at an exact point.

    G(α) = G_0 + F Fᵀ (α - α_0),      G_0 the exact gradient at α_0.

An exact gradient needs kernel values of all samples that moved against all others. This one needs two thin
products, so the models of a leap (``leap.py``) can follow each other at once. Where they end, the exact
gradient tells what F has left out.
"""

from __future__ import annotations

import numpy as np

from ...problems.base import DualRows
from ...system.typing import FloatArray
from .leap_point import Point
from .proximal_newton import Centre


class NearPoint:
    """The samples of an ``exact`` point, with the kernel ``F Fᵀ``."""

    def __init__(self, exact: Point, F: FloatArray) -> None:
        self._exact, self._F, self.team = exact, F, exact.team
        self.alpha, self.G, self.dual = exact.alpha, exact.G, exact.dual

    def move(self, alpha: FloatArray) -> bool:
        """Move to ``alpha`` if the dual is lower there; whether it is."""
        D = alpha - self.alpha
        G = self.G + self._F @ np.asarray(self.team.sum(self._F.T @ D))
        change = 0.5 * float(self.team.sum(float(np.vdot(self.G + G, D))))
        if not change < 0.0:
            return False
        self.alpha, self.G, self.dual = alpha, G, self.dual + change
        return True

    def centre(self, length: float) -> Centre:
        """What a model around this point is built of, with lengths of so many times C."""
        return Centre(self.alpha, self.G, length * self._exact.C)

    def violation(self) -> float:
        """The largest violation of all samples."""
        rows = DualRows(self.alpha, self.G, self._exact.y, self._exact.C)
        return self.team.max(self._exact.violation_at(rows))
