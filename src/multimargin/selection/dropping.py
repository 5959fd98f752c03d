"""Which points of a grid need not be finished.

exact      The remaining folds, at the largest score there is, cannot lift the mean above that of the best
           point. So the best point is the same as without dropping.
a share    The mean over the folds that are done is lower by more than this than that of the best point over
           the same folds. This may drop the point that would have been the best.
"""

from __future__ import annotations

import numpy as np

from ..system.typing import FloatArray

_ROUNDING = 1e-12  # of means: a point that may still be equal is finished

# The largest value of scikit-learn's scores for classifiers, those with an average ("f1_macro") included.
_LARGEST = {
    "accuracy": 1.0,
    "balanced_accuracy": 1.0,
    "top_k_accuracy": 1.0,
    "average_precision": 1.0,
    "matthews_corrcoef": 1.0,
    "f1": 1.0,
    "precision": 1.0,
    "recall": 1.0,
    "jaccard": 1.0,
    "roc_auc": 1.0,
}
_AVERAGES = ("_macro", "_micro", "_weighted")


def largest_score(scoring: object) -> float | None:
    """The largest value that a score can have; None if it is not known.

    Examples
    --------
    >>> largest_score("f1_macro"), largest_score("explained_variance")
    (1.0, None)
    """
    if not isinstance(scoring, str):
        return None
    for average in _AVERAGES:
        scoring = scoring.removesuffix(average)
    return _LARGEST.get(scoring)


class Dropping:
    """Compares a point with the best one so far.

    Parameters
    ----------
    rule : {"exact"}, float or None
        See above; None drops nothing.
    largest : float or None
        The largest score; nothing can be dropped exactly if it is not known.
    """

    def __init__(self, rule: str | float | None, largest: float | None) -> None:
        self.rule, self.largest = rule, largest
        self._best: FloatArray | None = None  # the scores of the best point in all folds

    def copy(self) -> Dropping:
        """One that knows the same, and can learn more on its own."""
        twin = Dropping(self.rule, self.largest)
        twin._best = self._best
        return twin

    @property
    def can_drop(self) -> bool:
        """Whether there is a rule, and all that it needs is known."""
        return self.rule is not None and (self.largest is not None or not isinstance(self.rule, str))

    @property
    def best_mean(self) -> float:
        """The mean of the best point so far; minus infinity if there is none."""
        return -np.inf if self._best is None else float(self._best.mean())

    def saw(self, scores: FloatArray) -> None:
        """A point has been finished, with these scores."""
        if np.isfinite(scores).all() and (self._best is None or scores.mean() > self._best.mean()):
            self._best = scores.copy()

    def bound(self, scores: FloatArray) -> float:
        """The largest mean that a point can still reach; NaN in ``scores`` is a fold that is not done."""
        done = ~np.isnan(scores)
        if done.all():
            return float(scores.mean())
        if self.largest is None:
            return np.inf
        return float(np.where(done, scores, self.largest).mean())

    def drops(self, scores: FloatArray) -> bool:
        """Whether to leave the point as it is."""
        if self._best is None or self.rule is None:
            return False
        if isinstance(self.rule, str):
            return self.bound(scores) < float(self._best.mean()) - _ROUNDING
        done = ~np.isnan(scores)
        return bool(scores[done].mean() < self._best[done].mean() - self.rule)
