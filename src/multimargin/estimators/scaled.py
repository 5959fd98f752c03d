"""Scaling as the first step of a pipeline: what ``multimargin.load`` returns for a model with a scaling."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from ..files.scaling import Scaling
from ..system.data import STORED


class Scaler(TransformerMixin, BaseEstimator):
    """Scales features or rows as ``multimargin train --scale`` does.

    Parameters
    ----------
    kind : {"minmax", "standard", "unit"}, default="minmax"
        How: see :class:`multimargin.datasets.Scaling`.

    Attributes
    ----------
    scaling_ : Scaling
        The numbers that rows are scaled by.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from multimargin.estimators.scaled import Scaler
    >>> Scaler().fit_transform([[0.0], [4.0], [1.0]]).ravel()
    array([0.  , 1.  , 0.25])
    """

    def __init__(self, kind: str = "minmax") -> None:
        self.kind = kind

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the scaling that suits the rows of ``X``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : None
            Not used.

        Returns
        -------
        self : Scaler
            The fitted scaler.
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=STORED)
        self.scaling_ = Scaling.fit(self.kind, X)
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows in the same scale.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scaled : {ndarray, sparse array} of shape (n_samples, n_features)
            The scaled rows.
        """
        check_is_fitted(self)
        return self.scaling_.apply(validate_data(self, X, reset=False, accept_sparse="csr", dtype=STORED))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def scaled_pipeline(scaling: Scaling, model: Any) -> Pipeline:
    """A fitted pipeline that scales rows before a fitted model sees them."""
    scaler = Scaler(scaling.kind)
    scaler.scaling_, scaler.n_features_in_ = scaling, model.n_features_in_
    if hasattr(model, "feature_names_in_"):
        scaler.feature_names_in_ = model.feature_names_in_
    return Pipeline([("scaling", scaler), ("model", model)])
