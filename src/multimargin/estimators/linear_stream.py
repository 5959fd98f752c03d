"""A linear machine that learns from a stream: ``partial_fit``."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from ..engines import Mpi, Setting
from ..linear.descent import LinearOptions, TrainingSet
from ..linear.stream import Stream
from ..system.data import without_duplicates
from ..system.team import SOLO, Team
from ..system.typing import Data, FloatArray
from .base import Rows
from .costs import check_weights
from .linear_model import DATA, OF_TRAINING, LinearModel, coefficients, model_attributes, trained_weights

OLDER = "crammer-singer"  # the machine of models that do not say which one they are of
_CERTIFICATE = ("status_", "violation_", "primal_objective_", "duality_gap_")
_OF_FIT = (*OF_TRAINING, *_CERTIFICATE, "_rows_fitted", "_constant_fitted", "_problem_fitted")


class LinearStream(LinearModel):
    """The part of a linear estimator that learns one batch at a time."""

    class_weight: dict[Any, float] | str | None
    dual_objective_: float
    _stream: Stream | None

    def _check_params(self) -> None:
        raise NotImplementedError

    def _setting(self) -> Setting:
        raise NotImplementedError

    def _options(self, team: Team = SOLO) -> LinearOptions:
        raise NotImplementedError

    def _training_set(
        self, X: Data, rows: Rows, alpha: sp.csr_array | None, team: Team = SOLO
    ) -> TrainingSet:
        raise NotImplementedError

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one batch of a stream, in one pass; the batch is never needed again.

        After ``fit`` training goes on from there, as if the rows of ``fit`` had been the stream's first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The batch.
        y : array-like of shape (n_samples,)
            Labels of the batch.
        classes : array-like of shape (m,) or None
            All labels that will ever come. The first call needs them, unless ``fit`` came before.
        sample_weight : array-like of shape (n_samples,) or None
            One factor of ``C`` per sample. Samples of weight 0 are left out.

        Returns
        -------
        self : LinearSVC
            The estimator. ``coef_`` may change in place: copy it to keep earlier weights.

        Examples
        --------
        >>> from multimargin import LinearSVC
        >>> model = LinearSVC()
        >>> for x, label in (([0.0, 1.0], "up"), ([1.0, 0.0], "right")):
        ...     model = model.partial_fit([x], [label], classes=["right", "up"])
        >>> model.predict([[0.1, 2.0]])
        array(['up'], dtype='<U5')
        """
        self._check_params()
        if isinstance(self._setting(), Mpi):
            raise ValueError("partial_fit learns in one process: use engine='auto', or fit with all rows.")
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all labels at once; give a dict of weights instead."
            )
        known = getattr(self, "classes_", None)
        X, y = validate_data(self, X, y, reset=known is None, **DATA)
        rows = _stream_rows(y, classes, known, sample_weight)
        data = self._training_set(without_duplicates(X), rows, None)
        stream, weights = self._open_stream(data)
        self.dual_objective_ += stream.learn(data, self._options(), weights, rows.kept, X.shape[0])
        self.__dict__.update(model_attributes(data, rows, weights))
        self.n_iter_ = 1
        if stream.keeps:
            self.support_, self.dual_coef_ = stream.support()
        return self

    def _open_stream(self, data: TrainingSet) -> tuple[Stream, FloatArray]:
        """The stream so far, or a new one that goes on from the last ``fit``, if any; and its weights."""
        keeps, stream = bool(self.keep_dual), getattr(self, "_stream", None)
        started = stream.constant if stream is not None else getattr(self, "_constant_fitted", data.constant)
        if started != data.constant or (stream is not None and stream.keeps != keeps):
            raise ValueError(
                "fit_intercept, intercept_scaling and keep_dual must stay as they were when training began."
            )
        if stream is not None or hasattr(self, "_rows_fitted"):
            machine = getattr(self, "_problem_fitted", OLDER) if stream is None else stream.machine
            if machine != data.machine:
                raise ValueError("machine and loss must stay as they were when training began.")
        if stream is None:
            stream = Stream(data, keeps)
            if hasattr(self, "_rows_fitted"):
                stream.rows = self._rows_fitted
                if keeps:
                    self._check_has_dual()
                    stream.keep(self.support_, self.dual_coef_)
            else:
                self.__dict__.update(dual_objective_=0.0, **self._no_weights(data))
            for name in _OF_FIT:  # untrue of the stream's weights
                self.__dict__.pop(name, None)
            self._stream = stream
        return stream, trained_weights(self.__dict__, data.layout(), data.constant)

    def _check_has_dual(self) -> None:
        if not hasattr(self, "dual_coef_"):
            raise ValueError(
                "keep_dual needs the coefficients of the rows of fit. A pickle has them only if keep_dual or "
                "warm_start was set before."
            )

    @staticmethod
    def _no_weights(data: TrainingSet) -> dict[str, Any]:
        return coefficients(data.layout().zeros(np.float64), data.X.shape[1], data.m, data.constant)


def _stream_rows(y: np.ndarray, classes: Any, known: np.ndarray | None, sample_weight: Any) -> Rows:
    """The rows of a batch; ``classes``, if given, must be those ``known`` from earlier calls, if any."""
    if classes is None and known is None:
        raise ValueError("classes must be given in the first call of partial_fit: all labels that will come.")
    labels = np.unique(np.asarray(known if classes is None else classes))
    if len(labels) < 2:
        raise ValueError(f"At least 2 classes are needed, got {labels.tolist()}.")
    if known is not None and not np.array_equal(labels, known):
        raise ValueError(f"classes must stay {known.tolist()}, got {labels.tolist()}.")
    weight = check_weights(sample_weight, len(y))
    kept = np.flatnonzero(weight)
    if len(unknown := np.setdiff1d(y, labels)):
        raise ValueError(f"y has labels {unknown.tolist()}, which are not in classes {labels.tolist()}.")
    return Rows(kept, labels, np.searchsorted(labels, y[kept]).astype(np.int32), weight[kept])
