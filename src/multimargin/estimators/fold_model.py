"""Scores of one fold by scikit-learn's scorers, from decision values that are there already."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring

from ..system.typing import FloatArray
from .base import margins, winners

Scorer = Callable[..., float]


class FoldModel(ClassifierMixin, BaseEstimator):
    """What a scorer sees of the model of a fold: it knows the test rows of that fold, and no others."""

    def __init__(self, classes: np.ndarray, scores: FloatArray) -> None:
        self.classes_, self._scores = classes, margins(scores)

    def decision_function(self, X: Any) -> FloatArray:
        """The decision values of the test rows, which ``X`` must be."""
        if len(self._scores) != (X.shape[0] if hasattr(X, "shape") else len(X)):
            raise ValueError("A scorer of KernelSVCCV can only ask for all test rows of a fold at once.")
        return self._scores

    def predict(self, X: Any) -> np.ndarray:
        """The labels of the test rows."""
        return winners(self.decision_function(X), self.classes_)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def find_scorers(estimator: Any, scoring: Any) -> dict[str, Scorer]:
    """The scorers by their names; a single one is called "score"."""
    if isinstance(scoring, dict):
        named = scoring
    elif isinstance(scoring, list | tuple | set):
        if not all(isinstance(name, str) for name in scoring):
            raise ValueError(
                f"A list of scores must have names only; use a dict for others. Got {scoring!r}."
            )
        named = {name: name for name in scoring}
    else:
        return {"score": check_scoring(estimator, scoring)}
    if not named:
        raise ValueError("scoring must name at least one score.")
    return {name: check_scoring(estimator, score) for name, score in named.items()}


def evaluate(scorer: Scorer, model: Any, X: Any, y: np.ndarray, weight: FloatArray | None) -> float:
    """One score; with the weights of the test rows if they are given, and the scorer takes any."""
    if weight is None or not _takes_weights(scorer):
        return float(scorer(model, X, y))
    return float(scorer(model, X, y, sample_weight=weight))


def _takes_weights(scorer: Scorer) -> bool:
    parameters = signature(scorer).parameters.values()
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters)
