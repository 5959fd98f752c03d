"""A judge in 80-bit arithmetic of a fitted model: violation, objectives and labels from its coefficients.

The machines are the oracle's. A dual variable counts as off its bound by more than ``OFF`` of C, as in the
package, or of a cost that the model's coefficients come near to, if these are far below C. Float64 rounds
scores by about ``ROUNDING`` of the sum of their terms' sizes: labels and gaps may differ by that. Scores of
float32 data may be off by ``SINGLE``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import oracle
from truth import Long, Truth, long

BEYOND = 1e-3  # share of tol by which two computations of a violation may differ
ABOUT = 0.02  # share by which the figures of a fit that did not converge may differ
OFF = 1.01e-8
NEAR = 100.0  # times the largest coefficient: the largest cost that may have been solved instead of C
LARGE = 1e6  # costs up to here are solved as they are
ROUNDING = 1e-12
SINGLE = 1e-4
NUMBERS = ("violation_", "primal_objective_", "dual_objective_", "duality_gap_")


@dataclass
class Found:
    """What the coefficients are worth."""

    violation: float  # in units of the margin
    gain: float  # the largest share of a sample in the gap, as a share of its cost
    primal: float
    gap: float
    rounding: float  # of the gap in float64
    of_scores: float  # rounding of scores, in units of the margin
    faults: list[str]

    def faults_of(self, model, case):
        """What the model says that is not true."""
        said = list(self.faults)
        done = model.status_.converged
        about = (1 + ABOUT) * model.violation_ + self.of_scores
        reached = self.claim(model, case) if done else (self.violation, about)
        if not reached[0] <= reached[1]:
            said.append(f"{model.status_.name} with {reached[0]:.3g}, at most {reached[1]:.3g} was claimed")
        share = 1e-6 if done else ABOUT
        if (
            not abs(self.gap - model.duality_gap_)
            <= share * (abs(self.primal) + abs(self.gap)) + self.rounding
        ):
            said.append(f"gap {self.gap:.6g} of {self.primal:.6g}, reported {model.duality_gap_:.6g}")
        return said

    def claim(self, model, case):
        """The measure that ended the fit, and its limit."""
        limit = model.tol * (1 + BEYOND)
        if case.solver == "msvmpack":
            return self.gap - self.rounding, limit * self.primal
        if model.status_.name == "WITHIN_GAP":
            return self.gap - self.rounding, model.gap_tol * (1 + BEYOND) * self.primal
        by_gain = case.solver == "dasmc" and model.machine != "msvm2"
        return (self.gain if by_gain else self.violation), limit


def judge(model, case):
    """Compute the violation, the objectives and the labels of the training data again."""
    truth = Truth(case)
    machine = (
        model.machine
        if model.machine != "one-vs-rest" or case.params.get("loss") != "squared_hinge"
        else ("squared-one-vs-rest")
    )
    margin, cost, gap_scale = oracle.ALL_MACHINES[machine]
    coef, support = long(model.dual_coef_), model.support_
    m = coef.shape[1]
    alpha = np.zeros((truth.n, m), dtype=Long)
    alpha[support] = coef
    gamma = _gamma(model, truth)
    K, bias = truth.columns(support, gamma), _bias(model, truth, alpha)
    S = K @ coef + bias
    rounding = ROUNDING * (1 + np.abs(bias).max() + (np.abs(K) @ np.abs(coef)).max(axis=1, initial=0))
    if getattr(model, "bias_", "") == "free":  # class sums are zero to rounding, and their multiple a bias
        rounding += 4 * np.finfo(float).eps * np.abs(truth.diagonal(gamma)).mean() * np.abs(coef).sum()
    kept = truth.kept
    S_kept, y, a, C = S[kept], truth.y[kept], alpha[kept], truth.C[kept]
    short, pair, beta = margin.shortfall(S_kept, y), margin.pairs(y, m), margin.lower(a, y)
    psi = _violation(cost, short, pair, beta, C)
    # A regularised bias is c Σ_i α_i; c times the squared norm of the sum is its penalty.
    kind = getattr(model, "bias_", "regularized")
    sums = alpha.sum(axis=0)
    norm = (coef * (K[support] @ coef)).sum() + (bias @ sums if kind == "regularized" else Long(0))
    primal = norm / 2 + cost.loss(short, pair, C).sum()
    ridge = cost.ridge * ((a**2).sum(axis=1) / (4 * C)).sum()
    dual = norm / 2 + ridge - margin.kappa(m) * beta.sum()
    free = bias @ sums if kind == "free" else Long(0)
    of_loss = rounding[kept]
    if issubclass(cost, oracle.Squares):
        of_loss = of_loss * (2 * np.abs(short).max(axis=1) + m * of_loss)
    faults = [
        *_not_finite(model, case, S),
        *_not_feasible(machine, model, alpha, truth, kind),
        *_parameters(model, truth, gamma, sums, kind),
        *_labels(model, case, truth, S, rounding),
    ]
    return Found(
        float(psi.max()) / margin.kappa(m),
        float((cost.gain(short, beta, pair, C) / (C * gap_scale(m))).max()),
        float(primal),
        float(primal + dual + free),
        float((C * of_loss).sum()),
        float(rounding.max()) / margin.kappa(m),
        faults,
    )


def _gamma(model, truth):
    """The coefficient that the model used."""
    return Long(getattr(getattr(model, "_kernel", None), "gamma", 0.0))


def _bias(model, truth, alpha):
    """What is added to the scores of every class."""
    if hasattr(model, "_class_bias"):
        return model._class_bias.astype(Long)
    return truth.offset * alpha.sum(axis=0)


def _violation(cost, short, pair, beta, C):
    """The largest violation of each sample, in units of scores."""
    tiny = OFF * np.minimum(C, np.maximum(NEAR * np.abs(beta).max(), LARGE))[:, None]
    if cost is oracle.Largest:
        rest = C[:, None] - beta.sum(axis=1, keepdims=True)
        below = short.max(axis=1, keepdims=True) - short
        positive = np.where(pair, beta > tiny, rest > OFF * C[:, None])
        return np.where(positive, below, 0).max(axis=1)
    if cost is oracle.Sum:
        may_grow, may_shrink = pair & (beta < C[:, None] * (1 - OFF)), pair & (beta > tiny)
        return np.maximum(may_grow * short, may_shrink * -short).max(axis=1, initial=0)
    slack = beta - beta.mean(axis=1, keepdims=True) if cost is oracle.Squares else beta
    missing = pair * (short - slack / (2 * C[:, None]))
    return np.maximum(missing, -missing * (beta > tiny)).max(axis=1)


# -- what may be wrong with a model -----------------------------------------------------------------------
def _not_finite(model, case, S):
    said = [name for name in NUMBERS if not np.isfinite(getattr(model, name))]
    values = {
        "dual_coef_": long(model.dual_coef_),
        "intercept_": model.intercept_,
        "scores": model.decision_function(case.rows.X),
        "exact scores": S,
    }
    said += [name for name, array in values.items() if not np.isfinite(array).all()]
    return [f"{name} is not finite" for name in said]


def _not_feasible(machine, model, alpha, truth, kind):
    if alpha[~truth.kept].any():
        return ["a row of weight 0 has coefficients"]
    rows = alpha[truth.kept].astype(float), truth.y[truth.kept], truth.C[truth.kept].astype(float)
    try:
        oracle.assert_feasible(*rows, machine=machine, free=kind == "free")
    except AssertionError:
        return ["the coefficients are not feasible"]
    return []


def _parameters(model, truth, gamma, sums, kind):
    said = []
    scaled = truth.kernel in ("rbf", "laplacian", "poly", "sigmoid") and not truth.is_function
    if scaled and not _are_close(1 / gamma, 1 / truth.gamma, truth):
        said.append(f"gamma is {float(gamma):.9g}, not {float(truth.gamma):.9g}")
    if kind == "regularized" and hasattr(model, "_class_bias"):
        wanted = truth.offset * sums
        rounding = 1e-12 * truth.offset * np.abs(model.dual_coef_).sum(axis=0).max(initial=0)
        if not np.abs(model._class_bias - wanted).max() <= 1e-6 * np.abs(wanted).max() + rounding:
            said.append(f"the bias is {model._class_bias[:3]}, not {wanted[:3].astype(float)}")
    return said


def _are_close(found, wanted, truth):
    """Whether a variance is right to rounding, that of the mean included."""
    of_mean = truth.X.shape[1] * (1e-14 * np.abs(truth.X).max()) ** 2
    return abs(found - wanted) <= 1e-6 * wanted + of_mean * (truth.parameter("gamma") == "scale")


def _labels(model, case, truth, S, rounding):
    """Whether a label is predicted otherwise than by the scores S, if the best score is clearly the best."""
    if S.shape[1] == 1:
        best, clear = (S[:, 0] > 0).astype(int), np.abs(S[:, 0])
    else:
        ordered = np.sort(S, axis=1)
        best, clear = S.argmax(axis=1), ordered[:, -1] - ordered[:, -2]
    predicted = np.searchsorted(truth.labels, model.predict(case.rows.X))
    single = getattr(case.rows.X, "dtype", None) == np.float32
    off = (SINGLE if single else 1e-6) + rounding
    wrong = int(np.count_nonzero((predicted != best) & (clear > 2 * off)))
    return [f"{wrong} labels are not those of the coefficients"] if wrong else []
