"""Prediction by the point that a search has chosen, and probabilities from its scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..selection.calibration import Calibrator
from ..selection.plots import plot_grid
from ..selection.tables import grid_table
from .exporting import ExportedModel
from .fold_model import Scorer, evaluate
from .kernel_svc import KernelSVC
from .keywords import ForeignKeywords
from .notebook import NotebookMixin
from .placed import Scored, beside, numpy_array
from .reporting import ReportMixin
from .samples import new_data
from .storing import StoredModel


class ChosenModel(
    StoredModel, ExportedModel, ReportMixin, NotebookMixin, ForeignKeywords, ClassifierMixin, BaseEstimator
):
    """The base of ``KernelSVCCV``: what it does with the best point once that is fitted."""

    scoring: Any
    refit: bool | str
    classes_: np.ndarray
    scorer_: Scorer | dict[str, Scorer]
    best_estimator_: Any
    calibrator_: Calibrator
    cv_results_: dict[str, Any]
    best_params_: dict[str, Any]

    def _best(self) -> Any:
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"{type(self).__name__} was fitted with refit=False: it has no model.")
        return self.best_estimator_

    def decision_function(self, X: Any) -> Any:
        """Scores of every class by the best point, as :meth:`KernelSVC.decision_function`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data, or (n_samples, n_training_samples) kernel values.

        Returns
        -------
        scores : ndarray of shape (n_samples, m) or (n_samples,)
            The largest score is the predicted class.
        """
        return self._scored(X).handed_back()

    def _scored(self, X: Any) -> Scored:
        best = self._best()
        if not isinstance(best, KernelSVC):
            return Scored(X, np.asarray(best.decision_function(X)))
        data = new_data(self, best._kernel, X)
        return Scored(data, best._margins(data))

    def predict(self, X: Any) -> Any:
        """The class with the largest score.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data, or (n_samples, n_training_samples) kernel values.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Predicted labels; the smallest in a tie.
        """
        return self._scored(X).labels(self.classes_)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of ``predict_proba``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data, or (n_samples, n_training_samples) kernel values.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, m)
            One column per class, in the order of ``classes_``.
        """
        scored = self._scored(X)
        logarithms = self.calibrator_.log_probabilities(scored.on_host())
        return Scored(scored.data, beside(scored.data, logarithms)).handed_back()

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of every class; by temperature, the most probable one is what ``predict`` returns.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data, or (n_samples, n_training_samples) kernel values.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, m)
            One column per class, in the order of ``classes_``.
        """
        scored = self._scored(X)
        probabilities = np.exp(self.calibrator_.log_probabilities(scored.on_host()))
        return Scored(scored.data, beside(scored.data, probabilities)).handed_back()

    def summary(self) -> str:
        """The mean scores of the grid as a table in text, the best point in brackets.

        Returns
        -------
        table : str
            A row per gamma (or another parameter with several values) and a column per C, "-" for points that
            were dropped. If further parameters have several values, each cell is the best over these.
        """
        return grid_table(*self._shown())

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean scores of the grid as a heat map, with the best point.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None
            Where to draw; None makes a figure. It needs the extra ``multimargin[plot]``.

        Returns
        -------
        ax : matplotlib.axes.Axes
            The axes.
        """
        return plot_grid(*self._shown(), ax)

    def _shown(self) -> tuple[dict[str, Any], str, str, str, dict[str, Any]]:
        """What tables and pictures show: results, the parameters of rows and columns, the score, the best."""
        check_is_fitted(self)
        if not hasattr(self, "best_params_"):
            raise AttributeError("There is no best point: no score decides, because refit=False.")
        several = [name for name in self.best_params_ if name != "C"]
        counts = {name: len(np.unique(np.asarray(self.cv_results_[f"param_{name}"]))) for name in several}
        rows = max(several, key=lambda name: (counts[name] > 1, name == "gamma"), default="C")
        score = str(self.refit) if isinstance(self.scorer_, dict) else "score"
        return self.cv_results_, rows, "C", score, self.best_params_

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score that decided the search, of the best point.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data, or kernel values.
        y : array-like of shape (n_samples,)
            True labels.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the samples.

        Returns
        -------
        score : float
            Its value; the accuracy unless ``scoring`` says otherwise.
        """
        best, y, sample_weight = self._best(), numpy_array(y), numpy_array(sample_weight)
        if self.scoring is None:
            return float(best.score(X, y, sample_weight))
        scorer = self.scorer_[str(self.refit)] if isinstance(self.scorer_, dict) else self.scorer_
        return evaluate(scorer, self, numpy_array(X), y, sample_weight)
