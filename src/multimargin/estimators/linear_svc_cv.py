"""Cross-validation over C of the linear machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import validate_data

from ..engines import Setting, find_engine
from ..kernels import Linear
from ..run.fingerprint import fingerprint
from ..selection.linear_fits import LinearFits, LinearFitted
from ..system.data import without_duplicates
from ..system.team import SOLO
from ..system.typing import Data, FloatArray
from .base import Rows
from .cross_validation import CrossValidation, Deciding, Given, Grid
from .grid import cost_values, values_of
from .linear_model import DATA, model_attributes
from .linear_svc import LinearSVC
from .starts import CheckpointSetting

_LEAST_C, _MOST_C = 1e-3, 1e3  # of a number of costs


class LinearSVCCV(CrossValidation):
    """Linear support vector machine with C chosen by cross-validation.

    Every C is fitted in every fold, from small to large. Each fit starts from the solution for the next
    smaller C of its fold, and is certified to the same ``tol`` as a fit of :class:`LinearSVC` alone. Values
    of C that cannot be the best any more are not finished.

    Parameters
    ----------
    machine : str or list of str, default="crammer-singer"
        The multiclass machine, as for :class:`LinearSVC`. A list tries each of them.
    Cs : int or sequence of float, default=7
        Costs to try; a number k stands for k values from 0.001 to 1000, evenly on a logarithmic scale.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        As for :class:`LinearSVC`.
    cv, scoring, refit, drop, calibration, n_jobs, checkpoint, verbose, on_interrupt
        As for :class:`KernelSVCCV`. Machines are what ``n_jobs`` fits at the same time.
    tol, max_iter, fit_intercept, intercept_scaling, class_weight, n_threads, random_state
        As for :class:`LinearSVC`.

    Attributes
    ----------
    best_estimator_ : LinearSVC
        The best point, fitted to all rows; only if ``refit``.
    cv_results_ : dict of arrays
        As for :class:`KernelSVCCV`; "split0_n_iter" counts passes, and there are no kernel rows.
    n_iter_ : int
        Passes of that fit over the data.
    classes_, best_index_, best_params_, best_score_, refit_time_, calibrator_, temperature_, scorer_
        As for :class:`KernelSVCCV`; and so are ``n_splits_``, ``interrupted_``, ``n_features_in_`` and
        ``feature_names_in_``.

    Examples
    --------
    >>> from multimargin import LinearSVCCV
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> search = LinearSVCCV(Cs=[0.01, 1, 100]).fit(X, y)
    >>> bool(search.best_score_ > 0.9), search.best_estimator_.status_.converged
    (True, True)
    """

    def __init__(
        self,
        machine: Any = "crammer-singer",
        *,
        Cs: Any = 7,
        loss: str = "hinge",
        cv: Any = None,
        scoring: Any = None,
        refit: bool | str = True,
        drop: str | float | None = "exact",
        calibration: str = "temperature",
        tol: float = 1e-3,
        max_iter: int = 1000,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: dict[Any, float] | str | None = None,
        n_threads: int | None = None,
        n_jobs: int | None = None,
        checkpoint: CheckpointSetting = None,
        random_state: Any = None,
        verbose: int = 0,
        on_interrupt: str = "raise",
    ) -> None:
        self.machine = machine
        self.Cs = Cs
        self.loss = loss
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.drop = drop
        self.calibration = calibration
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.n_threads = n_threads
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose
        self.on_interrupt = on_interrupt

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Score every C by cross-validation, and fit the best one to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, as for :class:`LinearSVC`.
        y : array-like of shape (n_samples,)
            Labels of any kind.
        sample_weight : array-like of shape (n_samples,) or None
            Factors of C for each sample, and its weight in scores. Samples of weight 0 are left out.
        groups : array-like of shape (n_samples,) or None
            For splitters that keep groups together.

        Returns
        -------
        self : LinearSVCCV
            The fitted estimator.
        """
        self._search(X, y, sample_weight, groups, SOLO)
        return self

    def _check_params(self) -> Deciding:
        cost_values(self.Cs, _LEAST_C, _MOST_C)
        for machine in values_of("machine", self.machine):
            self._svc(machine=machine)._check_params()
        return self._check_search()

    def _setting(self) -> Setting:
        return find_engine("cpu")

    def _svc(self, **point: Any) -> LinearSVC:
        """One point of the grid, as an estimator."""
        names = ("loss", "tol", "max_iter", "fit_intercept", "intercept_scaling", "class_weight", "n_threads")
        shared = {name: getattr(self, name) for name in (*names, "random_state", "on_interrupt")}
        return LinearSVC(**(shared | {"machine": values_of("machine", self.machine)[0]} | point))

    def _template(self) -> LinearSVC:
        return self._svc()

    def _training_data(self, X: Any, y: Any) -> tuple[Data, np.ndarray]:
        X, y = validate_data(self, X, y, **DATA)
        return without_duplicates(X), y

    def _grid(self, X: Data, rows: Rows) -> Grid:
        several = isinstance(self.machine, list | tuple | np.ndarray)
        machines = [{"machine": name} for name in values_of("machine", self.machine)] if several else [{}]
        return Grid(cost_values(self.Cs, _LEAST_C, _MOST_C), machines, list(range(len(machines))))

    def _fits(self, column: dict[str, Any], given: Given) -> LinearFits:
        svc, rows = self._svc(**column), given.rows
        kept = given.X if len(rows.kept) == given.n else given.X[rows.kept]
        constant = float(svc.intercept_scaling) if svc.fit_intercept else 0.0
        options = replace(svc._options(), seed=given.seed)
        size = len(rows.labels), constant, svc._problem()
        return LinearFits(kept, rows.y, given.folds, options, *size)

    def _problem(self, X: Data, rows: Rows, n: int, unit: FloatArray) -> dict[str, Any]:
        svc = self._svc()
        kept = X if len(rows.kept) == n else X[rows.kept]
        bias = "regularized", float(svc.intercept_scaling) if svc.fit_intercept else 0.0
        return fingerprint(svc._problem(), Linear(), bias, kept, rows.y, unit, rows.labels, rows.kept, SOLO)

    def _model(self, fitted: LinearFitted, rows: Rows, given: int, factors: FloatArray) -> LinearSVC:
        svc, solution, data = self._svc(**self.best_params_), fitted.solution, fitted.data
        svc.__dict__.update(model_attributes(data, rows, solution.weights, solution.alpha))
        svc._store_certificate(solution)
        svc.n_iter_ = solution.passes
        svc._stream, svc._rows_fitted, svc._constant_fitted = None, given, data.constant
        svc._problem_fitted = data.machine
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(svc, name, getattr(self, name))
        svc._warn_unless_proved(solution)
        self.n_iter_ = solution.passes
        return svc

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
