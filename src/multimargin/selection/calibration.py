"""Probabilities from scores, by what held-out samples say of the scores.

temperature   one number for all classes (``temperature.py``): the largest score stays the most probable class
sigmoid       for each class r  1 / (1 + exp(-a_r s_r - b_r))  of its score s_r, divided by their sum (Platt)
isotonic      for each class an increasing function of its score, divided by their sum

The last two are what scikit-learn's ``CalibratedClassifierCV`` does for several classes. Samples must not be
those that the machine was trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from ..system.typing import FloatArray, LabelArray
from .temperature import fit_temperature, log_probabilities, two_columns

_LEAST = 1e-12  # of a probability: so that logarithms are finite


class Calibrator(Protocol):
    """Makes probabilities of scores."""

    def log_probabilities(self, scores: FloatArray) -> FloatArray:
        """Logarithms of the probabilities of every class."""


@dataclass(frozen=True)
class Temperature:
    """One temperature for all classes."""

    temperature: float

    @classmethod
    def fit(cls, scores: FloatArray, y: LabelArray, weight: FloatArray, classes: int) -> Self:
        """The temperature of least log loss."""
        return cls(fit_temperature(scores, y, weight))

    def log_probabilities(self, scores: FloatArray) -> FloatArray:
        """Logarithms of the probabilities of every class."""
        return log_probabilities(scores, self.temperature)


@dataclass(frozen=True)
class Sigmoid:
    """A sigmoid per class."""

    slope: FloatArray
    shift: FloatArray

    @classmethod
    def fit(cls, scores: FloatArray, y: LabelArray, weight: FloatArray, classes: int) -> Self:
        """The sigmoids of least log loss, with Platt's targets for few samples."""
        S = two_columns(scores)
        found = [_platt(S[:, r], y == r, weight) for r in range(classes)]
        slope, shift = np.array(found).T
        return cls(slope, shift)

    def log_probabilities(self, scores: FloatArray) -> FloatArray:
        """Logarithms of the probabilities of every class."""
        return _normalised(expit(self.slope * two_columns(scores) + self.shift))


@dataclass(frozen=True)
class Isotonic:
    """An increasing step function per class, linear in between."""

    places: list[FloatArray]
    values: list[FloatArray]

    @classmethod
    def fit(cls, scores: FloatArray, y: LabelArray, weight: FloatArray, classes: int) -> Self:
        """The functions of least squared error."""
        S, places, values = two_columns(scores), [], []
        for r in range(classes):
            model = IsotonicRegression(y_min=0.0, y_max=1.0).fit(S[:, r], y == r, weight)
            places.append(np.asarray(model.X_thresholds_, dtype=np.float64))
            values.append(np.asarray(model.y_thresholds_, dtype=np.float64))
        return cls(places, values)

    def log_probabilities(self, scores: FloatArray) -> FloatArray:
        """Logarithms of the probabilities of every class."""
        S = two_columns(scores)
        found = [np.interp(S[:, r], *self._step(r)) for r in range(S.shape[1])]
        return _normalised(np.column_stack(found))

    def _step(self, r: int) -> tuple[FloatArray, FloatArray]:
        return self.places[r], self.values[r]


METHODS: dict[str, Any] = {"temperature": Temperature, "sigmoid": Sigmoid, "isotonic": Isotonic}


def _platt(s: FloatArray, is_class: np.ndarray, weight: FloatArray) -> tuple[float, float]:
    """Slope and shift of the sigmoid of one class."""
    inside, outside = float(weight[is_class].sum()), float(weight[~is_class].sum())
    target = np.where(is_class, (inside + 1) / (inside + 2), 1 / (outside + 2))
    unit = max(float(np.abs(s).mean()), np.finfo(float).tiny)
    x = s / unit

    def loss(p: FloatArray) -> tuple[float, FloatArray]:
        z = p[0] * x + p[1]
        value = weight @ (np.logaddexp(0.0, z) - target * z)
        pull = weight * (expit(z) - target)
        return float(value / weight.sum()), np.array([pull @ x, pull.sum()]) / weight.sum()

    start = np.array([1.0, np.log((inside + 1) / (outside + 1))])
    found = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-8}).x
    return float(found[0] / unit), float(found[1])


def _normalised(P: FloatArray) -> FloatArray:
    """Logarithms of rows that sum to 1; a row of zeros becomes even."""
    P = np.maximum(P, _LEAST)
    return np.asarray(np.log(P / P.sum(axis=1, keepdims=True)))
