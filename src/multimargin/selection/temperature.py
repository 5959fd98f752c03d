"""Probabilities from scores: one temperature for all classes, so that the largest score stays the largest.

    p_r = exp(t s_r) / Σ_q exp(t s_q),    t = 1 / temperature  minimises  -Σ_i w_i log p_{i, y_i}

The objective is convex in t. Scores must not be those of samples that the machine was trained on.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from ..system.typing import FloatArray, LabelArray

_LEAST, _MOST = -12.0, 12.0  # of log t, relative to scores of size 1


def two_columns(scores: FloatArray) -> FloatArray:
    """One score per class; a single score s stands for -s/2 and s/2."""
    flat = scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores
    return np.column_stack([-0.5 * flat, 0.5 * flat]) if flat.ndim == 1 else flat


def fit_temperature(scores: FloatArray, y: LabelArray, weight: FloatArray) -> float:
    """The temperature of least log loss, for labels 0..m-1.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    >>> t = fit_temperature(scores, np.array([0, 0, 0, 0]), np.ones(4))
    >>> round(float(1 / (1 + np.exp(-2 / t))), 2)  # three of four are right
    0.75
    """
    S = two_columns(scores)
    own = S[np.arange(len(y)), y]
    size = float(np.abs(S - S.mean(axis=1, keepdims=True)).mean())
    unit = 1.0 / size if size > 0 else 1.0

    def loss(log_t: float) -> float:
        t = unit * math.exp(log_t)
        losses = np.logaddexp.reduce(t * S, axis=1) - t * own
        return float(weight @ losses / weight.sum())

    found = minimize_scalar(loss, bounds=(_LEAST, _MOST), method="bounded", options={"xatol": 1e-8})
    return 1.0 / (unit * math.exp(float(found.x)))


def log_probabilities(scores: FloatArray, temperature: float) -> FloatArray:
    """Logarithms of the probabilities of every class."""
    return np.asarray(log_softmax(two_columns(scores) / temperature, axis=1))
