"""Fit, then judge what came back: no benchmark believes a solver's own figures.

Accuracy, KKT violation and duality gap are recomputed in float64 from the model's coefficients alone, by
the tests' oracle, with kernel values that multimargin did not compute.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from _data import ROOT, Split
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

sys.path.insert(0, str(ROOT / "tests"))
from oracle import assert_feasible, certify, codes, dense, full_alpha, kernel_matrix

BLOCK_VALUES = 1 << 22  # kernel values held at a time


@dataclass
class Outcome:
    """A fit and its judgement."""

    seconds: float
    iterations: int
    rows: int  # kernel rows computed
    hits: int  # kernel rows found in the cache
    evictions: int
    cache_rows: int  # kernel rows that fit the cache
    converged: bool
    support: int
    accuracy: float  # per cent
    psi: float  # largest violation, in units of the margin
    gain: float  # largest g_i / C_i, Niu & Yuan's measure
    primal: float
    dual: float
    gap: float


class KernelRows:
    """K(A, B) as something to multiply with: values come and go in blocks."""

    def __init__(self, A, B, gamma):
        self.A, self.B, self.gamma = dense(A), dense(B), gamma
        some = np.linspace(0, len(self.A) - 1, 3).astype(int)
        exact = kernel_matrix("rbf", self.A[some], self.B[:200], gamma=gamma)
        np.testing.assert_allclose(rbf_kernel(self.A[some], self.B[:200], gamma=gamma), exact, atol=1e-10)

    def __matmul__(self, coef):
        used = np.flatnonzero(coef.any(axis=1))
        B, coef = self.B[used], coef[used]
        step = max(1, BLOCK_VALUES // max(1, len(used)))
        blocks = (self.A[first : first + step] for first in range(0, len(self.A), step))
        return np.concatenate([rbf_kernel(A, B, gamma=self.gamma) @ coef for A in blocks])


def timed_fit(model, split: Split):
    """The fitted model and its wall seconds; a limit that was set on purpose raises no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = perf_counter()
        model.fit(split.X_train, split.y_train)
        return model, perf_counter() - start


def judge(model, seconds: float, split: Split, C: float, gamma: float) -> Outcome:
    """Score a fitted model."""
    alpha, y = full_alpha(model, split.n), codes(model, split.y_train)
    assert_feasible(alpha, y, C)
    found = certify(KernelRows(split.X_train, split.X_train, gamma), y, alpha, C)
    scores = KernelRows(split.X_test, split.X_train[model.support_], gamma) @ model.dual_coef_
    right = model.classes_[scores.argmax(axis=1)] == split.y_test
    last = model.trace_[-1]
    return Outcome(
        seconds=seconds,
        iterations=model.n_iter_,
        rows=last.rows,
        hits=last.hits,
        evictions=last.evictions,
        cache_rows=model.trace_.info.get("cache_rows", 0),
        converged=model.status_.converged,
        support=len(model.support_),
        accuracy=100 * float(right.mean()),
        psi=float(found.psi.max()),
        gain=float(found.gain.max()) / C,
        primal=found.primal,
        dual=found.dual,
        gap=found.gap,
    )


def compete(models: dict, splits: dict[str, Split] | Split, repeats: int, C: float, gamma: float) -> dict:
    """Fit every model ``repeats`` times, taking turns, and judge it: the outcomes with their best time.

    ``splits`` is one for all, or one for each name (the same rows in another storage).
    """
    best: dict[str, tuple] = {}  # name -> (model, seconds, split)
    for _ in range(repeats):
        for name, model in models.items():
            split = splits[name] if isinstance(splits, dict) else splits
            fitted, seconds = timed_fit(clone(model), split)
            if name not in best or seconds < best[name][1]:
                best[name] = (fitted, seconds, split)
    return {name: judge(*found, C, gamma) for name, found in best.items()}
