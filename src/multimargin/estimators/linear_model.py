"""What a trained linear machine is: ``coef_``, ``intercept_``, scores, and its pickled form.

Training keeps one row of weights per feature, padded to whole vectors. With three or more classes ``coef_``
is a view of these rows, so that neither a batch of a stream nor a prediction copies all weights. Two classes
have opposite weights, and ``coef_`` is their difference, as in scikit-learn.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from ..linear.descent import TrainingSet
from ..linear.weights import WeightLayout
from ..system.typing import Data, FloatArray
from .base import MachineClassifier, Rows

# What scikit-learn's validate_data is asked for.
DATA: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}

OF_TRAINING = ("support_", "dual_coef_", "trace_")  # what a trained model no longer needs


class LinearModel(MachineClassifier):
    """The part of a linear estimator that needs no training data."""

    coef_: Any
    intercept_: FloatArray
    warm_start: bool
    keep_dual: bool
    _not_stored = frozenset({"_weights"})

    def decision_function(self, X: Any) -> FloatArray:
        """Scores of every class; for two classes the second score minus the first, as in scikit-learn.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Returns
        -------
        scores : ndarray of shape (n_samples, m) or (n_samples,)
            The class with the largest score is predicted.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **DATA)
        scores = linear_scores(X, self.__dict__)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def sparsify(self) -> Self:
        """Make ``coef_`` a sparse matrix, which saves memory if most weights are zero.

        Returns
        -------
        self : LinearSVC
            The estimator. It predicts as before.
        """
        check_is_fitted(self)
        self.coef_, self._weights = sp.csr_matrix(self.coef_), None
        return self

    def densify(self) -> Self:
        """Make ``coef_`` an array again, which is the default.

        Returns
        -------
        self : LinearSVC
            The estimator.
        """
        check_is_fitted(self)
        if sp.issparse(self.coef_):
            self.coef_ = self.coef_.toarray(order="F")
        return self

    def __getstate__(self) -> dict[str, Any]:
        """What prediction and ``partial_fit`` need, and the certificate; all of it if training may go on."""
        state = super().__getstate__()
        if isinstance(self.__dict__.get("coef_"), np.ndarray):  # in the order in which rows are multiplied
            state["coef_"] = np.asfortranarray(self.coef_)
        if self.warm_start or self.keep_dual:
            return state
        return {name: value for name, value in state.items() if name not in OF_TRAINING}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a stored model; version 0.1.0 had two rows of weights for two classes."""
        super().__setstate__(state)
        coef = self.__dict__.get("coef_")
        if coef is not None and len(self.classes_) == coef.shape[0] == 2:
            self.coef_, self.intercept_ = coef[1:] - coef[:1], np.diff(self.intercept_)


def coefficients(weights: FloatArray, d: int, m: int, constant: float) -> dict[str, Any]:
    """The attributes ``coef_`` and ``intercept_``, and the weights that ``coef_`` may be a view of."""
    rows = weights[:, :m]
    intercept = constant * rows[d] if constant else np.zeros(m)
    if m > 2:
        return {"coef_": rows[:d].T, "intercept_": intercept, "_weights": weights}
    difference = rows[:d, 1] - rows[:d, 0]
    return {"coef_": difference[None], "intercept_": intercept[1:] - intercept[:1], "_weights": weights}


def model_attributes(data: TrainingSet, rows: Rows, weights: FloatArray, alpha: Any = None) -> dict[str, Any]:
    """The attributes of a model: weights, not copied, and support vectors if ``alpha`` is known."""
    model = coefficients(weights, data.X.shape[1], data.m, data.constant) | {"classes_": rows.labels}
    if alpha is None:
        return model
    ids = np.flatnonzero(np.diff(alpha.indptr))
    return model | {"support_": rows.kept[ids], "dual_coef_": alpha[ids]}


def trained_weights(model: dict[str, Any], layout: WeightLayout, constant: float) -> FloatArray:
    """The weights to go on from: those of ``coef_`` and ``intercept_`` as they are now, whoever set them.

    ``model`` is the ``__dict__`` of an estimator. The array is its own if ``coef_`` is still a view of it.
    """
    m, coef, intercept = layout.m, model["coef_"], model["intercept_"]
    weights = model.get("_weights")
    if weights is None or weights.shape != layout.shape or not is_view(coef, weights):
        weights = layout.zeros(np.float64)
        coef = coef.toarray() if sp.issparse(coef) else coef
        weights[: coef.shape[1], :m] = _opposites(coef).T if m == 2 else coef.T
    if constant:
        weights[-1, :m] = (_opposites(intercept[:, None])[:, 0] if m == 2 else intercept) / constant
    return weights


def is_view(coef: Any, weights: FloatArray) -> bool:
    """Whether ``coef_`` is the view of ``weights`` that training made."""
    return (
        isinstance(coef, np.ndarray) and coef.strides == weights.strides[::-1] and coef.base is weights.base
    )


def _opposites(difference: FloatArray) -> FloatArray:
    """The weights of two classes, from their difference; halves are exact."""
    return np.concatenate([-0.5 * difference, 0.5 * difference])


def linear_scores(X: Data, model: dict[str, Any]) -> FloatArray:
    """``X @ coef_.T + intercept_``, without a copy of ``coef_``.

    ``model`` is the ``__dict__`` of an estimator. SciPy copies what is not contiguous. A few sparse
    rows are therefore multiplied by whole rows of weights, padding included.
    """
    coef, intercept, weights = model["coef_"], model["intercept_"], model.get("_weights")
    few = sp.issparse(X) and X.nnz < X.shape[1]
    if few and weights is not None and is_view(coef, weights):
        products = (X @ weights[: X.shape[1]])[:, : len(intercept)]
    else:
        products = safe_sparse_dot(X, coef.T, dense_output=True)
    return np.asarray(products + intercept)
