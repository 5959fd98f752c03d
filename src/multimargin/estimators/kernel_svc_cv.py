"""Cross-validation over C and gamma, with kernel values that all fits share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from ..engines import Mpi
from ..kernels import Kernel
from .kernel_search import KernelSearch
from .placed import numpy_array
from .starts import CheckpointSetting


class KernelSVCCV(KernelSearch):
    """Kernel support vector machine with C and gamma chosen by cross-validation.

    Every point (C, gamma) is fitted in every fold, and each fit is certified to the same ``tol`` as a fit of
    :class:`KernelSVC` alone. All fits with the same gamma share one cache of kernel rows. A fit starts from
    the solution for the next smaller C. The gradient of a fit has the scores of the rows that it leaves out,
    so that nothing is predicted. Points that cannot be the best any more are not finished.

    Parameters
    ----------
    machine : str or list of str, default="crammer-singer"
        The multiclass machine, as for :class:`KernelSVC`. A list tries each of them.
    Cs : int or sequence of float, default=5
        Costs to try; a number k stands for k values from 0.1 to 1000, evenly on a logarithmic scale.
    gammas : int, sequence of float or None, default=None
        Coefficients of the kernel to try; a number k stands for k values by factors of 4 around "scale", and
        None for 3 of them. "scale" and "auto" may be among the values. They are computed from all training
        rows, not from those of each fold. Only for the kernels "rbf", "poly", "sigmoid" and "laplacian".
    kernel : str, callable or kernel object, default="rbf"
        As for :class:`KernelSVC`. A kernel object has a gamma of its own.
    degree : int or list of int, default=3
        Degree of "poly"; a list tries each of them.
    coef0 : float or list of float, default=0.0
        Constant of "poly" and "sigmoid"; a list tries each of them.
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
    calibration : {"temperature", "sigmoid", "isotonic"}, default="temperature"
        How scores become probabilities. One temperature for all classes never changes which class is the most
        probable. A sigmoid or an increasing function per class may.
    tol : float, default=1e-3
        Largest KKT violation allowed, in units of the margin, in every fit.
    cache_size : float or "auto", default="auto"
        MB for kernel values, of all fits together: see :class:`KernelSVC`. Fits that run at the same time
        divide it. The last solutions and scores of each worker, at most 16, come on top.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for each class; "balanced" by the rows that train a fold.
    engine : {"auto", "cpu", "cuda", "mpi"} or multimargin.engines.Mpi, default="auto"
        "cuda" is one NVIDIA GPU, which keeps the kernel of all rows for the folds and costs if that fits its
        memory; "auto" goes there if the data are there. "mpi" spreads the kernels over all processes that
        ``mpiexec`` has started. Each of them gives the same data to ``fit``, and has the results and the
        model in the end.
    n_threads : int or None, default=None
        Threads of each fit; None is every core, or joblib's share of them if fits run at the same time.
    n_jobs : int or None, default=None
        Kernels (gammas, machines, …) that are fitted at the same time, by joblib; None is 1, or what
        ``joblib.parallel_config`` says, which also chooses the backend. Results do not depend on it if
        ``n_threads`` is given.
    checkpoint : path, (path, seconds) or None, default=None
        File that finished points are written to, every 60 or so many ``seconds`` and at the end, Ctrl-C
        included. If it exists when ``fit`` is called, the search goes on with it. A damaged file, or one of
        another search, raises ``ValueError`` and is not changed. With MPI, rank 0 reads and writes it.
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
        "split0_duality_gap", "split0_violation", "split0_converged", "split0_fit_time", "split0_n_iter",
        "split0_n_updates" (steps of single samples) and "split0_kernel_rows" (those that had to be computed);
        and for each point "dropped" and
        "bound_test_score", the largest mean score that it could have reached. What was not fitted is NaN.
    best_index_ : int
        The best point's place in ``cv_results_``; the first of equal ones.
    best_params_ : dict
        Its C, gamma, and whatever else had several values.
    best_score_ : float
        Its mean score.
    best_estimator_ : KernelSVC
        The best point, fitted to all rows; only if ``refit``.
    refit_time_ : float
        Seconds of that fit.
    calibrator_ : object
        Makes probabilities of scores; found from the out-of-fold scores of the best point, so that it takes
        no further fit.
    temperature_ : float
        Scores are divided by it before they become probabilities; NaN with another ``calibration``.
    scorer_ : callable or dict of callables
        What points are scored by.
    n_splits_ : int
        Number of folds.
    interrupted_ : bool
        Whether Ctrl-C has ended the search early.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
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
        machine: Any = "crammer-singer",
        *,
        Cs: Any = 5,
        gammas: Any = None,
        kernel: str | Callable[[Any, Any], Any] | Kernel = "rbf",
        degree: Any = 3,
        coef0: Any = 0.0,
        bias: str = "auto",
        cv: Any = None,
        scoring: Any = None,
        refit: bool | str = True,
        drop: str | float | None = "exact",
        calibration: str = "temperature",
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        engine: str | Mpi = "auto",
        n_threads: int | None = None,
        n_jobs: int | None = None,
        checkpoint: CheckpointSetting = None,
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
        self.calibration = calibration
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.engine = engine
        self.n_threads = n_threads
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
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
        team = self._setting().assemble()
        with team.together():
            self._search(X, numpy_array(y), numpy_array(sample_weight), numpy_array(groups), team)
        return self
