"""Fit, then judge what came back: no benchmark believes a solver's own figures.

Accuracy, KKT violation and duality gap are recomputed in float64 from the model's coefficients alone, by
the tests' oracle, with kernel values that multimargin did not compute.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.lib.data import ROOT, Split
from benchmarks.lib.turns import take_turns

sys.path.insert(0, str(ROOT / "tests"))
from oracle import (
    ALL_MACHINES,
    assert_feasible,
    bounded_samples,
    certify,
    codes,
    dense,
    full_alpha,
    has_free_bias,
    kernel_matrix,
)

BLOCK_VALUES = 1 << 22  # kernel values held at a time
# Methods that bring Crammer-Singer's machine to a violation (msvmpack stops on the gap, others are c-svc's).
EXACT_METHODS = ("mcsvm", "ell-based", "dasmc", "auto")
FEW_FEATURES = 1000  # sparse rows of so many are multiplied faster as dense ones


class Coefficients(NamedTuple):
    """A machine by its coefficients alone, in the names of a fitted KernelSVC."""

    support_: np.ndarray
    dual_coef_: np.ndarray
    classes_: np.ndarray
    intercept_: np.ndarray | float = 0.0
    machine: str = "crammer-singer"
    bias: str = "none"  # or "free", which c-svc's always is


class Weights(NamedTuple):
    """A linear model by its weights alone."""

    coef_: np.ndarray  # (m, features)
    classes_: np.ndarray


class InfeasibleError(ValueError):
    """Coefficients that are no point of the dual problem: nothing can be said of them."""


@dataclass
class Judgement:
    """What the coefficients are worth, whoever found them."""

    support: int
    bounded: int  # support vectors at the bound of a coefficient, those of the published "BSV"
    accuracy: float  # per cent
    psi: float  # largest violation, in units of the margin
    gain: float  # largest g_i / c_i, Niu & Yuan's measure
    primal: float
    dual: float
    gap: float

    def certified(self, tol: float) -> bool:
        return self.psi <= tol * (1 + 1e-9)  # the sum was taken in another order


@dataclass
class Outcome(Judgement):
    """A fit of ours and its judgement."""

    seconds: float
    iterations: int
    steps: int  # of the inner solver
    inner_seconds: float  # in the inner solver
    rows: int  # kernel rows computed
    hits: int  # kernel rows found in the cache
    evictions: int
    cache_rows: int  # kernel rows that fit the cache
    converged: bool


class KernelRows:
    """K(A, B) as something to multiply with: values come and go in blocks."""

    def __init__(self, A, B, gamma):
        self.A, self.B, self.gamma = plain(A), plain(B), gamma
        some = np.linspace(0, self.A.shape[0] - 1, 3).astype(int)
        exact = kernel_matrix("rbf", self.A[some], self.B[:200], gamma=gamma)
        np.testing.assert_allclose(rbf_kernel(self.A[some], self.B[:200], gamma=gamma), exact, atol=1e-10)

    def __matmul__(self, coef):
        used = np.flatnonzero(coef.any(axis=1))
        B, coef = self.B[used], coef[used]
        step = max(1, BLOCK_VALUES // max(1, len(used)))
        blocks = (self.A[first : first + step] for first in range(0, self.A.shape[0], step))
        return np.concatenate([rbf_kernel(A, B, gamma=self.gamma) @ coef for A in blocks])


def plain(X: Any) -> Any:
    """In float64; sparse rows of many features stay so."""
    return X.astype(np.float64) if issparse(X) and X.shape[1] > FEW_FEATURES else dense(X)


class LinearRows:
    """K(A, B) = A Bᵀ as something to multiply with, by the weights: A (Bᵀ coef)."""

    def __init__(self, A, B):
        self.A, self.B = (X.astype(np.float64, copy=False) for X in (A, B))

    def __matmul__(self, coef):
        return self.A @ (self.B.T @ coef)


def kernel_rows(A: Any, B: Any, gamma: float | None) -> KernelRows | LinearRows:
    """The RBF kernel's values, or the linear kernel's if there is no gamma."""
    return LinearRows(A, B) if gamma is None else KernelRows(A, B, gamma)


def timed_fit(model, split: Split):
    """The fitted model and its wall seconds; a limit that was set on purpose raises no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = perf_counter()
        model.fit(split.X_train, split.y_train)
        return model, perf_counter() - start


def judge(model: Any, split: Split, C: float, gamma: float | None) -> tuple[Judgement, np.ndarray]:
    """The worth of a model (a fitted one or Coefficients), and the labels it gives the test rows.

    The kernel is linear if ``gamma`` is None; the bias is none or a free one.
    """
    alpha, y, free = full_alpha(model, split.n), codes(model, split.y_train), has_free_bias(model)
    rounding = 1e-9 if model.dual_coef_.dtype == np.float64 else 1e-5
    try:
        assert_feasible(alpha, y, C, rounding, model.machine, free)
    except AssertionError:
        sums = [np.abs(alpha.sum(axis=axis)).max() for axis in (1, 0)]
        raise InfeasibleError(
            f"no point of {model.machine}'s dual: a row of its coefficients sums to {sums[0]:.2g}, "
            f"a column to {sums[1]:.2g}, or one passes its bound"
        ) from None
    K = kernel_rows(split.X_train, split.X_train, gamma)
    found = certify(K, y, alpha, C, model.machine, model.intercept_ if free else None)
    scores = kernel_rows(split.X_test, split.X_train[model.support_], gamma) @ model.dual_coef_
    scores = scores + model.intercept_
    best = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
    labels = model.classes_[best]
    judgement = Judgement(
        support=len(model.support_),
        bounded=int(bounded_samples(alpha, y, C, model.machine).sum()),
        accuracy=accuracy(labels, split.y_test),
        psi=float(found.psi.max()) / found.kappa,
        gain=float((found.gain / found.scale).max()),
        primal=found.primal,
        dual=found.dual,
        gap=found.gap,
    )
    return judgement, labels


def primal(model: Any, split: Split, C: float, machine: str = "crammer-singer") -> float:
    """P(W) = ½‖W‖² + the losses of all rows, of Weights, in float64."""
    W, y = model.coef_.astype(np.float64, copy=False), codes(model, split.y_train)
    margin, cost, _ = ALL_MACHINES[machine]
    short = margin.shortfall(np.asarray(split.X_train.astype(np.float64, copy=False) @ W.T), y)
    loss = cost.loss(short, margin.pairs(y, len(W)), np.full(split.n, C))
    return 0.5 * float(np.vdot(W, W)) + float(loss.sum())


def accuracy(labels: np.ndarray, truth: np.ndarray) -> float:
    """Per cent."""
    return 100 * float(np.mean(labels == truth))


def outcome(model: Any, seconds: float, split: Split, C: float, gamma: float) -> Outcome:
    judgement, _ = judge(model, split, C, gamma)
    last = model.trace_[-1]
    return Outcome(
        **asdict(judgement),
        seconds=seconds,
        iterations=model.n_iter_,
        steps=int(np.sum(model.trace_["inner"])),
        inner_seconds=model.trace_.info["profile"]["inner"],
        rows=last.rows,
        hits=last.hits,
        evictions=last.evictions,
        cache_rows=model.trace_.info.get("cache_rows", 0),
        converged=model.status_.converged,
    )


def compete(models: dict, splits: dict[str, Split] | Split, repeats: int, C: float, gamma: float) -> dict:
    """Fit every model ``repeats`` times, taking turns, and judge it: the outcomes with their best time.

    ``splits`` is one for all, or one for each name (the same rows in another storage).
    """
    best: dict[str, tuple] = {}  # name -> (model, seconds, split)

    def fit(name: str) -> float:
        split = splits[name] if isinstance(splits, dict) else splits
        fitted, seconds = timed_fit(clone(models[name]), split)
        if name not in best or seconds < best[name][1]:
            best[name] = (fitted, seconds, split)
        return seconds

    take_turns(models, fit, repeats)
    return {name: outcome(*found, C, gamma) for name, found in best.items()}
