"""A judge in 80-bit arithmetic of a fitted model: violation, objectives and labels from its coefficients.

The machines are the oracle's of the tests; kernel values are true differences and products in extended
precision. A dual variable counts as off its bound by more than ``OFF`` of C, as in the package, or of a cost
that the model's coefficients come near to, if these are far below C. Float64 rounds scores by about
``ROUNDING`` of the sum of their terms' sizes: labels and gaps may differ by that. Scores of float32 data may
be off by ``SINGLE``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from benchmarks.lib.data import ROOT

sys.path.insert(0, str(ROOT / "tests"))
import oracle

Long = np.longdouble
BEYOND = 1e-3  # share of tol by which two computations of a violation may differ
ABOUT = 0.02  # share by which the figures of a fit that did not converge may differ
OFF = 1.01e-8
NEAR = 100.0  # times the largest coefficient: the largest cost that may have been solved instead of C
LARGE = 1e6  # costs up to here are solved as they are
ROUNDING = 1e-12
SINGLE = 1e-4


def long(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if issparse(X) else X).astype(Long)


def kernel(name: str, A: np.ndarray, B: np.ndarray, gamma: float, coef0: float, degree: int) -> np.ndarray:
    """Kernel values of all rows of A and B."""
    if name in ("rbf", "laplacian"):
        power = 2 if name == "rbf" else 1
        rows = [(np.abs(row - B) ** power).sum(axis=1) for row in A]
        return np.exp(-Long(gamma) * np.array(rows, dtype=Long).reshape(len(A), len(B)))
    dots = A @ B.T
    if name == "linear":
        return dots
    inner = Long(gamma) * dots + Long(coef0)
    return inner**degree if name == "poly" else np.tanh(inner)


@dataclass
class Found:
    """What the coefficients are worth."""

    violation: float  # in units of the margin
    primal: float
    gap: float
    rounding: float  # of the gap in float64
    disagreeing: int  # training labels that the model predicts otherwise, although they are clear
    finite: bool

    def wrong(self, model: Any) -> list[str]:
        """What the model says that is not true."""
        said = []
        if not self.finite:
            said.append("coefficients or scores are not finite")
        done = model.status_.converged
        if self.violation > (model.tol * (1 + BEYOND) if done else (1 + ABOUT) * model.violation_):
            said.append(f"violation {self.violation:.3g}, reported {model.violation_:.3g}")
        share = 1e-6 if done else ABOUT
        if abs(self.gap - model.duality_gap_) > share * (abs(self.primal) + abs(self.gap)) + self.rounding:
            said.append(f"gap {self.gap:.6g} of {self.primal:.6g}, reported {model.duality_gap_:.6g}")
        if self.disagreeing:
            said.append(f"{self.disagreeing} labels are not those of the coefficients")
        return said


def judge(model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Found:
    """Compute the violation, the objectives and the labels of the training data again."""
    machine = model.machine
    margin, cost, _ = oracle.MACHINES[machine]
    C = Long(model.C) * (np.ones(len(y)) if weight is None else weight).astype(Long)
    labels = np.searchsorted(model.classes_, y)
    coef = long(model.dual_coef_)
    alpha = np.zeros((len(y), coef.shape[1]), dtype=Long)
    alpha[model.support_] = coef
    K, bias = _kernel_and_bias(model, long(X))
    S = K @ alpha + bias
    rounding = ROUNDING * (1 + np.abs(bias).max() + (np.abs(K) @ np.abs(alpha)).max(axis=1))
    finite = bool(np.isfinite(S).all() and np.isfinite(coef).all())
    kept = C > 0
    rows = S[kept], labels[kept], alpha[kept], C[kept]
    psi = _violation(machine, *rows)
    m = alpha.shape[1]
    # A regularised bias is c Σ_i α_i; c times the squared norm of the sum is its penalty.
    regularised = getattr(model, "bias_", "regularized") == "regularized"
    penalty = bias @ alpha.sum(axis=0) if regularised else Long(0)
    norm = (alpha * (K @ alpha)).sum() + penalty
    short = margin.shortfall(rows[0], rows[1])
    pair, beta = margin.pairs(rows[1], m), margin.lower(rows[2], rows[1])
    primal = norm / 2 + cost.loss(short, pair, rows[3]).sum()
    ridge = cost.ridge * ((rows[2] ** 2).sum(axis=1) / (4 * rows[3])).sum()
    dual = norm / 2 + ridge - margin.kappa(m) * beta.sum()
    free = bias @ alpha.sum(axis=0) if getattr(model, "bias_", "") == "free" else Long(0)
    return Found(
        float(psi.max()) / margin.kappa(m),
        float(primal),
        float(primal + dual + free),
        float((C * rounding).sum()),
        _disagreeing(model, X, S, rounding),
        finite,
    )


def _kernel_and_bias(model: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kernel values without a constant, and what is added to the scores."""
    if not hasattr(model, "kernel"):  # LinearSVC
        constant = Long(model.intercept_scaling if model.fit_intercept else 0.0)
        return X @ X.T, constant**2 * np.asarray(long(model.dual_coef_).sum(axis=0))
    name = model.kernel
    gamma = getattr(model._kernel, "gamma", 0.0)
    return kernel(name, X, X, gamma, model.coef0, model.degree), model._class_bias.astype(Long)


def _violation(machine: str, S: np.ndarray, y: np.ndarray, alpha: np.ndarray, C: np.ndarray) -> np.ndarray:
    """The largest violation of each sample, in units of scores."""
    margin, cost, _ = oracle.MACHINES[machine]
    m = alpha.shape[1]
    short, pair, beta = margin.shortfall(S, y), margin.pairs(y, m), margin.lower(alpha, y)
    tiny = OFF * np.minimum(C, np.maximum(NEAR * np.abs(beta).max(), LARGE))[:, None]
    if cost is oracle.Largest:
        rest = C[:, None] - beta.sum(axis=1, keepdims=True)
        below = short.max(axis=1, keepdims=True) - short
        positive = np.where(pair, beta > tiny, rest > OFF * C[:, None])
        return np.where(positive, below, 0).max(axis=1)
    if cost is oracle.Sum:
        may_grow, may_shrink = pair & (beta < C[:, None] * (1 - OFF)), pair & (beta > tiny)
        return np.maximum(may_grow * short, may_shrink * -short).max(axis=1, initial=0)
    xi = (beta - beta.mean(axis=1, keepdims=True)) / (2 * C[:, None])
    missing = pair * (short - xi)
    return np.maximum(missing, -missing * (beta > tiny)).max(axis=1)


def _disagreeing(model: Any, X: Any, S: np.ndarray, rounding: np.ndarray) -> int:
    """Labels predicted otherwise than by the scores S, among rows whose best score is clearly the best."""
    if S.shape[1] == 1:
        best, clear = (S[:, 0] > 0).astype(int), np.abs(S[:, 0])
    else:
        ordered = np.sort(S, axis=1)
        best, clear = S.argmax(axis=1), ordered[:, -1] - ordered[:, -2]
    predicted = np.searchsorted(model.classes_, model.predict(X))
    off = (SINGLE if X.dtype == np.float32 else 1e-6) + rounding
    return int(np.count_nonzero((predicted != best) & (clear > 2 * off)))
