"""Cross-validation over C and gamma, with kernel values that all fits share."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..engines.rounding import score_rounding
from ..kernels import Kernel
from ..selection.dropping import Dropping, largest_score
from ..selection.fits import Fitted, Fold, KernelFits
from ..selection.progress import SearchProgress
from ..selection.search import Search
from ..selection.temperature import fit_temperature
from ..system.shard import Shard
from ..system.typing import Data, FloatArray
from ..system.warn import warn_user
from .attributes import ModelMaker
from .base import Rows
from .chosen import ChosenModel
from .fold_model import FoldModel, Scorer, evaluate, find_scorers
from .grid import WITH_GAMMA, FoldMaker, check_gammas, cost_values, gamma_values
from .kernel_svc import KernelSVC
from .samples import training_data


class KernelSVCCV(ChosenModel):
    """Kernel support vector machine with C and gamma chosen by cross-validation.

    Every point (C, gamma) is fitted in every fold, and each fit is certified to the same ``tol`` as a fit of
    :class:`KernelSVC` alone. All fits with the same gamma share one cache of kernel rows. A fit starts from
    the solution for the next smaller C. The gradient of a fit has the scores of the rows that it leaves out,
    so that nothing is predicted. Points that cannot be the best any more are not finished.

    Parameters
    ----------
    machine : str, default="crammer-singer"
        The multiclass machine, as for :class:`KernelSVC`.
    Cs : int or sequence of float, default=5
        Costs to try; a number k stands for k values from 0.1 to 1000, evenly on a logarithmic scale.
    gammas : int, sequence of float or None, default=None
        Coefficients of the kernel to try; a number k stands for k values by factors of 4 around "scale", and
        None for 3 of them. "scale" and "auto" may be among the values. They are computed from all training
        rows, not from those of each fold. Only for the kernels "rbf", "poly", "sigmoid" and "laplacian".
    kernel : str, callable or kernel object, default="rbf"
        As for :class:`KernelSVC`. A kernel object has a gamma of its own.
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=0.0
        Constant of "poly" and "sigmoid".
    bias : {"auto", "none", "regularized", "free"}, default="auto"
        As for :class:`KernelSVC`. If the constant of a regularised bias depends on the data, it is that of
        all training rows in every fold.
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn: None is 5 stratified folds.
    scoring : str, callable, list, tuple, dict or None, default=None
        One score or several, as in ``GridSearchCV``; None is the accuracy. Scores can use predictions or
        decision values; there are no probabilities yet. Sample weights count in every score that takes some.
    refit : bool or str, default=True
        Fit the best point to all rows. With several scores, the name of the one that decides, or False.
    drop : {"exact"}, float or None, default="exact"
        "exact" does not finish a point if its remaining folds, at the largest possible score, cannot lift its
        mean above that of the best point: the best point is the same as without. It needs a score whose
        largest value is known: "accuracy", "balanced_accuracy", "f1_macro" and the like by name; with any
        other nothing is dropped. A number such as 0.02 also drops a point whose mean is lower by more than
        that than the best point's over the same folds, which may drop the best one. None finishes all.
    tol : float, default=1e-3
        Largest KKT violation allowed, in units of the margin, in every fit.
    cache_size : float or "auto", default="auto"
        MB for kernel values, of all fits together: see :class:`KernelSVC`. The last solution and scores of up
        to 16 folds come on top.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for each class; "balanced" by the rows that train a fold.
    n_threads : int or None, default=None
        Threads of each fit; None is every core. Fits run one after another.
    random_state : int, RandomState or None, default=None
        Seed of the order in which samples are visited. Folds have the seed of their splitter.
    verbose : int, default=0
        1 shows a bar with the time left (if tqdm is installed); 2 shows a line per point.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: raise ``KeyboardInterrupt``, or end the search with the points that are done, if
        there are any, and refit the best of those.

    Attributes
    ----------
    classes_ : ndarray of shape (m,)
        The labels.
    cv_results_ : dict of arrays
        As in ``GridSearchCV``, a value per point. Beside the scores it has, for each fit,
        "split0_duality_gap", "split0_violation", "split0_converged", "split0_fit_time", "split0_n_iter" and
        "split0_kernel_rows" (those that had to be computed); and for each point "dropped" and
        "bound_test_score", the largest mean score that it could have reached. What was not fitted is NaN.
    best_index_ : int
        The best point's place in ``cv_results_``; the first of equal ones.
    best_params_ : dict
        Its C and gamma.
    best_score_ : float
        Its mean score.
    best_estimator_ : KernelSVC
        The best point, fitted to all rows; only if ``refit``.
    refit_time_ : float
        Seconds of that fit.
    temperature_ : float
        Scores are divided by it before they become probabilities; found from the out-of-fold scores of the
        best point, so that it takes no further fit.
    scorer_ : callable or dict of callables
        What points are scored by.
    n_splits_ : int
        Number of folds.
    interrupted_ : bool
        Whether Ctrl-C has ended the search early.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, if the training data had them.

    Examples
    --------
    >>> from multimargin import KernelSVCCV
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> search = KernelSVCCV(Cs=[1, 10, 100], gammas=[0.01, 0.1]).fit(X, y)
    >>> bool(search.best_score_ > 0.95), search.best_estimator_.status_.converged
    (True, True)
    >>> search.predict_proba(X[:2]).argmax(axis=1) == search.predict(X[:2])
    array([ True,  True])
    """

    def __init__(
        self,
        machine: str = "crammer-singer",
        *,
        Cs: Any = 5,
        gammas: Any = None,
        kernel: str | Callable[[Any, Any], Any] | Kernel = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        bias: str = "auto",
        cv: Any = None,
        scoring: Any = None,
        refit: bool | str = True,
        drop: str | float | None = "exact",
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        on_interrupt: str = "raise",
    ) -> None:
        self.machine = machine
        self.Cs = Cs
        self.gammas = gammas
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.bias = bias
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.drop = drop
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose
        self.on_interrupt = on_interrupt

    # -- fit ---------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Score every point of the grid by cross-validation, and fit the best one to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, as for :class:`KernelSVC`; kernel values for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of any kind.
        sample_weight : array-like of shape (n_samples,) or None
            Factors of C for each sample, and its weight in scores. Samples of weight 0 are left out.
        groups : array-like of shape (n_samples,) or None
            For splitters that keep groups together.

        Returns
        -------
        self : KernelSVCCV
            The fitted estimator.
        """
        scorers, by = self._check_params()
        template = self._svc()
        X, y = training_data(self, template._make_kernel(), X, y)
        rows = template._rows(y, sample_weight)
        Cs, gammas = cost_values(self.Cs), self._gammas(template, X, rows)
        maker = FoldMaker(rows, self.class_weight, len(y), Cs)
        folds = maker.folds(self.cv, X, y, groups)
        problems = [*folds, maker.whole()]
        seed = template._seed()
        grid = [{"C": C} | ({} if g is None else {"gamma": g}) for g in gammas for C in Cs]

        def fits_of(gamma: float | None) -> KernelFits:
            return self._fits(gamma, X, rows, len(y), problems, Cs, seed)

        search = Search(
            [lambda gamma=gamma: fits_of(gamma) for gamma in gammas],  # type: ignore[misc]
            Cs,
            grid,
            folds,
            self._scoring(scorers, X, y, rows),
            list(scorers),
            by,
            Dropping(self.drop, largest_score(self._deciding_score(by))),
            SearchProgress(len(grid) * len(folds), int(self.verbose)),
            len(grid) == 1 and bool(self.refit),
        )
        search.run(self.on_interrupt == "keep")
        self._store_results(search, rows.labels, scorers, by)
        if by is not None and self.refit:
            fitted, kernel = search.refitted, search.best // len(Cs)
            if fitted is None:
                last = search.last
                fits = last[1] if last is not None and last[0] == kernel else fits_of(gammas[kernel])
                fitted = fits.fit(self.best_params_["C"], fits.whole)
            self._store_best(fitted, rows, len(y), maker.factors(np.ones(len(rows.y), dtype=bool)))
            scores = np.concatenate(search.out_of_fold)
            tested = np.concatenate([fold.test for fold in folds])
            self.temperature_ = fit_temperature(scores, rows.y[tested], rows.weight[tested])
        return self

    def _check_params(self) -> tuple[dict[str, Scorer], str | None]:
        """Check the parameters; the scorers, and the name of the one that decides, if one does."""
        cost_values(self.Cs)
        check_gammas(self.gammas, self.kernel)
        self._svc()._check_params()
        exact = isinstance(self.drop, str) and self.drop == "exact"
        share = isinstance(self.drop, Real) and not isinstance(self.drop, bool) and float(self.drop) >= 0
        if not (exact or share or self.drop is None):
            raise ValueError(f"drop must be 'exact', a number >= 0 or None, got {self.drop!r}.")
        scorers = find_scorers(self, self.scoring)
        if "score" in scorers and len(scorers) == 1:
            if isinstance(self.refit, str):
                raise ValueError("refit names one of several scores; with a single one it is True or False.")
            return scorers, "score"
        if self.refit and self.refit not in scorers:
            names = ", ".join(map(repr, scorers))
            raise ValueError(
                f"With several scores refit must be one of {names}, or False; got {self.refit!r}."
            )
        return scorers, str(self.refit) if self.refit else None

    def _deciding_score(self, by: str | None) -> Any:
        """The score that decides, as the user named it."""
        if by is None or by == "score":
            return "accuracy" if self.scoring is None else self.scoring
        return self.scoring[by] if isinstance(self.scoring, dict) else by

    def _svc(self, C: float = 1.0, gamma: float | str = "scale") -> KernelSVC:
        """One point of the grid, as an estimator."""
        names = ("kernel", "degree", "coef0", "bias", "tol", "cache_size", "class_weight", "n_threads")
        shared = {name: getattr(self, name) for name in (*names, "random_state", "on_interrupt")}
        return KernelSVC(self.machine, C, gamma=gamma, **shared)

    def _gammas(self, template: KernelSVC, X: Data, rows: Rows) -> list[float | None]:
        if not (isinstance(self.kernel, str) and self.kernel in WITH_GAMMA):
            return [None]
        weight = rows.weight if rows.weighted else None
        kept = X if len(rows.kept) == X.shape[0] else X[rows.kept]
        return [*gamma_values(self.gammas, template._make_kernel(), kept, weight)]

    def _fits(
        self,
        gamma: float | None,
        X: Data,
        rows: Rows,
        n: int,
        folds: list[Fold],
        Cs: list[float],
        seed: int,
    ) -> KernelFits:
        """The fits of one kernel; the last of ``folds`` has all rows."""
        svc = self._svc(min(Cs), "scale" if gamma is None else gamma)
        task = svc._task(X, rows, Shard(n), min(Cs) * folds[-1].unit)
        method = svc._method()
        options = svc._engine_options(method, len(rows.y), seed)
        largest = max(Cs) * np.max([fold.unit for fold in folds], axis=0)
        return KernelFits(task, largest, folds, method, options)

    def _scoring(
        self, scorers: dict[str, Scorer], X: Data, y: np.ndarray, rows: Rows
    ) -> Callable[[Fold, FloatArray], dict[str, float]]:
        """What scores a fold: all metrics from the decision values of its test rows."""
        named = isinstance(self.scoring, str | list | tuple | set | None)

        def score(fold: Fold, scores: FloatArray) -> dict[str, float]:
            model, given = FoldModel(rows.labels, scores), rows.kept[fold.test]
            data = given if named else X[given]  # scores by name read no data
            weight = rows.weight[fold.test] if rows.weighted else None
            return {name: evaluate(of, model, data, y[given], weight) for name, of in scorers.items()}

        return score

    def _store_results(
        self, search: Search, labels: np.ndarray, scorers: dict[str, Scorer], by: str | None
    ) -> None:
        results, done = search.results, int((~np.isnan(search.results.facts["fit_time"])).sum())
        self.classes_ = labels
        self.cv_results_ = results.table()
        self.scorer_ = scorers["score"] if list(scorers) == ["score"] else scorers
        self.n_splits_, self.interrupted_ = results.folds, search.interrupted
        if by is not None:
            if not search.out_of_fold:
                raise ValueError("No point has a score that is a number in every fold: scoring gave NaN.")
            self.best_index_ = search.best
            self.best_params_ = results.params[search.best]
            self.best_score_ = float(results.scores[by][search.best].mean())
        if results.unproved:
            warn_user(
                f"{results.unproved} of {done} fits did not reach tol = {self.tol:g}: see 'converged' and "
                "'violation' in cv_results_.",
                ConvergenceWarning,
            )

    def _store_best(self, fitted: Fitted, rows: Rows, given: int, factors: FloatArray) -> None:
        """Make a fitted ``KernelSVC`` of the solution for all rows."""
        best, solution, task = self._svc(**self.best_params_), fitted.solution, fitted.task
        kind = best._kind_of_bias()
        best._store_model(ModelMaker(task, rows.labels, given, rows.kept, factors, kind).of(solution), True)
        best._store_certificate(solution)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(best, name, getattr(self, name))
        best._warn_unless_proved(solution, score_rounding(task, solution.support, solution.coef))
        self.best_estimator_, self.refit_time_ = best, fitted.seconds

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), self._svc().__sklearn_tags__()
        tags.input_tags = own.input_tags
        tags.classifier_tags = own.classifier_tags
        return tags
