"""What a search has found: ``cv_results_`` in scikit-learn's form, with the certificate of each fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from ..system.typing import FloatArray
from .column import FACTS, Point


class Results:
    """Scores and certificates of all points (C, gamma, …) and folds; NaN for what was not fitted."""

    def __init__(self, params: Sequence[dict[str, Any]], folds: int, metrics: Sequence[str]) -> None:
        self.params, self.folds = list(params), folds
        shape = len(self.params), folds
        self.scores = {name: np.full(shape, np.nan) for name in metrics}
        self.facts = {name: np.full(shape, np.nan) for name in FACTS}
        self.dropped = np.zeros(shape[0], dtype=bool)
        self.bound = np.full(shape[0], np.nan)  # the largest mean that a point could have reached

    def take(self, point: Point) -> None:
        """Write a point down."""
        for fold, (facts, scores) in enumerate(zip(point.facts, point.scores, strict=True)):
            for name, value in zip(FACTS, facts, strict=True):
                self.facts[name][point.number, fold] = value
            for name, score in scores.items():
                self.scores[name][point.number, fold] = score
        self.dropped[point.number], self.bound[point.number] = point.dropped, point.bound

    @property
    def known(self) -> np.ndarray:
        """Which points nothing more is to be done for, as a mask."""
        return np.asarray(self.done | self.dropped)

    @property
    def unproved(self) -> int:
        """How many fits did not converge."""
        return int((self.facts["converged"] == 0).sum())

    @property
    def done(self) -> np.ndarray:
        """Which points have been fitted in all folds, as a mask."""
        return np.asarray(~np.isnan(self.facts["fit_time"]).any(axis=1))

    def table(self) -> dict[str, Any]:
        """Return ``cv_results_``.

        A point that was dropped, or that an interrupt has left undone, has NaN for the folds that were not
        fitted, and for its mean.
        """
        table: dict[str, Any] = {}
        times = self.facts["fit_time"]
        seen = ~np.isnan(times).all(axis=1)
        for word, of in (("mean", np.nanmean), ("std", np.nanstd)):
            table[f"{word}_fit_time"] = np.full(len(times), np.nan)
            table[f"{word}_fit_time"][seen] = of(times[seen], axis=1)
        for name in self.params[0]:
            values = [point[name] for point in self.params]
            table[f"param_{name}"] = np.ma.MaskedArray(values, mask=False)
        table["params"] = self.params
        for name, scores in self.scores.items():
            suffix = "score" if name == "score" else name
            for fold in range(self.folds):
                table[f"split{fold}_test_{suffix}"] = scores[:, fold].copy()
            mean = scores.mean(axis=1)
            table[f"mean_test_{suffix}"] = mean
            table[f"std_test_{suffix}"] = scores.std(axis=1)
            table[f"rank_test_{suffix}"] = _ranks(mean)
        for name, facts in self.facts.items():
            for fold in range(self.folds):
                table[f"split{fold}_{name}"] = _as_they_are(name, facts[:, fold])
        return table | {"dropped": self.dropped.copy(), "bound_test_score": self.bound.copy()}


def _ranks(mean: FloatArray) -> np.ndarray:
    """1 for the largest; points without a mean come last."""
    low = np.nanmin(mean) - 1.0 if np.isfinite(mean).any() else 0.0
    ranks = rankdata(-np.where(np.isnan(mean), low, mean), method="min")
    return np.asarray(ranks, dtype=np.int32)


def _as_they_are(name: str, facts: FloatArray) -> np.ndarray:
    """Yes or no for ``converged``: no if there was no fit."""
    return facts == 1 if name == "converged" else facts.copy()
