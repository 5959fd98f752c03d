"""What the judged data say: who was taken for whom, and by which margin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..system.typing import FloatArray, IntArray
from .subject import Judged

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_NORMAL = 1.959964  # 97.5% quantile of the normal distribution


@dataclass(frozen=True)
class Outcome:
    """Labels and predictions by numbers. Labels that the model does not know come after its classes."""

    judged: Judged
    classes: np.ndarray

    @cached_property
    def names(self) -> list[object]:
        """The model's classes, then the labels that it does not know."""
        return [*self.classes.tolist(), *self.unknown.tolist()]

    @cached_property
    def unknown(self) -> np.ndarray:
        """Labels of the data that are no class of the model."""
        return np.setdiff1d(self.judged.y, self.classes)

    @cached_property
    def truth(self) -> IntArray:
        """Number of each row's label among ``names``."""
        at = np.searchsorted(self.classes, self.judged.y).clip(max=len(self.classes) - 1)
        known = self.classes[at] == self.judged.y
        return np.where(known, at, len(self.classes) + np.searchsorted(self.unknown, self.judged.y))

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.judged.y)

    @cached_property
    def right(self) -> np.ndarray:
        """Whether each row was predicted right."""
        return np.asarray(self.truth == self.judged.predicted)

    @property
    def accuracy(self) -> float:
        """The share of rows that were predicted right."""
        return float(self.right.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of the accuracy."""
        z, n, p = _NORMAL, self.n, self.accuracy
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        reach = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, middle - reach), min(1.0, middle + reach)

    @cached_property
    def cells(self) -> dict[tuple[int, int], int]:
        """How many rows of label i were predicted as j, for the (i, j) that occur."""
        m = len(self.classes)
        keys, counts = np.unique(self.truth.astype(np.int64) * m + self.judged.predicted, return_counts=True)
        return {(int(k) // m, int(k) % m): int(c) for k, c in zip(keys, counts, strict=True)}

    @cached_property
    def rows(self) -> IntArray:
        """Rows of each label."""
        return np.bincount(self.truth, minlength=len(self.names))

    @cached_property
    def predicted(self) -> IntArray:
        """Rows predicted as each class."""
        return np.bincount(self.judged.predicted, minlength=len(self.names))

    @cached_property
    def known(self) -> np.ndarray:
        """Whether each row's label is a class of the model."""
        return np.asarray(self.truth < len(self.classes))

    @cached_property
    def margins(self) -> FloatArray:
        """Score of the own class minus the largest other one; NaN for labels that the model does not know."""
        scores, truth = self.judged.scores, np.where(self.known, self.truth, 0)
        if scores.ndim == 1:
            margins = np.where(truth == 1, scores, -scores)
        else:
            own = scores[np.arange(self.n), truth]
            others = scores.copy()
            others[np.arange(self.n), truth] = -np.inf
            margins = own - others.max(axis=1)
        return np.where(self.known, margins, np.nan)

    def quantiles(self, values: FloatArray) -> list[float]:
        """The quantiles that a box shows."""
        return [float(q) for q in np.quantile(values, QUANTILES)]
