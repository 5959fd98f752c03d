"""The estimators: validate → solve → attributes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .decomposition import Decomposition
from .engines import EngineOptions, find_engine
from .engines.base import Task
from .kernels import Kernel, make_kernel
from .label_noise import LabelNoiseMixin
from .memory import cache_bytes
from .methods import find_method
from .model import ModelMaker
from .monitor import Monitor, Observer
from .problems import PROBLEMS
from .progress import Progress, SklearnCallbacks
from .sklearn_callbacks import CallbackSupportMixin, callback_context, with_callbacks
from .solution import Solution, TraceRow
from .threads import effective_threads
from .typing import FloatArray, IntArray, LabelArray
from .validation import STORED, canonical, check_choice, check_integer, check_number, same_storage, warn_user
from .weights import check_weights, sample_costs

_DATA: dict[str, Any] = {  # what scikit-learn's validate_data is asked for
    "accept_sparse": "csr",
    "dtype": STORED,
    "order": "C",
    "accept_large_sparse": True,
}
_BIAS_SCALE = {"none": 0.0, "regularized": 1.0}  # the constant added to the kernel


class KernelSVC(CallbackSupportMixin, LabelNoiseMixin, ClassifierMixin, BaseEstimator):
    """Exact multiclass kernel support vector machine with a certificate of optimality.

    All classes are trained in one problem. For the Crammer-Singer machine, the dual

        min ½ ⟨α, Kα⟩ - Σ_i α_{i,y_i}   subject to   α_i ≤ C_i e_{y_i},  Σ_r α_ir = 0

    is solved until every sample meets its optimality condition to ``tol``, which is then proved in
    float64; ``duality_gap_`` bounds how far both objectives are from the optimum.

    Parameters
    ----------
    machine : {"crammer-singer"}, default="crammer-singer"
        Which multiclass machine.
    C : float, default=1.0
        Cost of a margin error; multiplied by class and sample weights.
    kernel : str, callable or kernel object, default="rbf"
        "linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed", a function of two sample arrays
        that returns their matrix of values, or an object from :mod:`multimargin.kernels`.
    degree : int, default=3
        Degree of "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of "rbf", "poly", "sigmoid" and "laplacian": 1 / (n_features · X.var()),
        1 / n_features, or the number given.
    coef0 : float, default=0.0
        Constant of "poly" and "sigmoid".
    bias : {"none", "regularized"}, default="none"
        "regularized" gives every class a bias that is penalised like the weights (kernel K + 1).
    solver : str or Decomposition, default="auto"
        "auto" (fastest), a paper's method by name ("mcsvm", "ell-based", "dasmc"), or a
        :class:`multimargin.Decomposition` built by hand.
    tol : float, default=1e-3
        Largest KKT violation allowed, in units of the margin. "auto" goes further on problems of at
        most 100 samples, where that costs milliseconds.
    max_iter : int, default=-1
        Largest number of outer iterations; -1 is no limit.
    time_limit : float or None, default=None
        Seconds after which the solver stops at its current point. Looked at between outer iterations; the
        final proof comes on top.
    cache_size : float or "auto", default="auto"
        MB (10**6 bytes) for kernel rows and blocks; "auto" is half of the free memory, and plenty for
        up to 512 samples.
    working_set_size : int or "auto", default="auto"
        Samples optimised together; "auto" is the method's own choice.
    shrinking : bool, default=True
        Leave samples that have met their condition for several checks out of the next ones. The final
        proof always covers all samples.
    class_weight : dict, "balanced" or None, default=None
        Factors of ``C`` for each class.
    engine : {"auto", "cpu", "numpy"}, default="auto"
        Where the work is done: "cpu" is native and threaded, "numpy" the plain specification.
    n_threads : int or None, default=None
        Threads, BLAS included; None is every core.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel rows; "auto" is float32 where that is safe and pays. The dual state is always
        float64, and so is the final proof. How rows are computed is the data's choice: see ``X`` of ``fit``.
    warm_start : bool, default=False
        Start from the previous solution, if it was for as many rows.
    random_state : int, RandomState or None, default=None
        Seed of the order in which samples are visited. None is a fixed seed: fits are reproducible.
    verbose : int, default=0
        1 shows progress (a bar where tqdm is installed); 2 shows lines, and at the end where the time went.
    callback : callable or None, default=None
        Called with a :class:`multimargin.solution.TraceRow` after every outer iteration; a true answer
        stops the fit.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: raise ``KeyboardInterrupt``, or keep the current point as a model whose
        ``status_`` says that it was interrupted.

    Attributes
    ----------
    classes_ : ndarray of shape (m,)
        The labels.
    support_ : ndarray of shape (n_SV,)
        Row numbers of the support vectors, ascending.
    dual_coef_ : ndarray of shape (n_SV, m)
        Their coefficients α.
    intercept_ : ndarray of shape (m,)
        Bias of each class (zeros for ``bias="none"``).
    n_iter_ : int
        Outer iterations.
    status_ : Status
        Why the solver stopped.
    violation_ : float
        Largest KKT violation, in units of the margin.
    primal_objective_, dual_objective_, duality_gap_ : float
        Certified in float64; the dual is minimised, and the gap is their sum. The gap is a proof for
        positive semidefinite kernels only.
    trace_ : Trace
        One row an outer iteration; ``trace_.info`` has what was used and, as "profile", the seconds of each
        phase.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, if the training data had them.

    Examples
    --------
    >>> from multimargin import KernelSVC
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelSVC(C=10).fit(X, y)
    >>> model.predict(X[:1])
    array([0])
    >>> bool(model.duality_gap_ <= 1e-3 * model.primal_objective_)
    True
    """

    def __init__(
        self,
        machine: str = "crammer-singer",
        C: float = 1.0,
        *,
        kernel: str | Callable[[Any, Any], Any] | Kernel = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        bias: str = "none",
        solver: str | Decomposition = "auto",
        tol: float = 1e-3,
        max_iter: int = -1,
        time_limit: float | None = None,
        cache_size: float | str = "auto",
        working_set_size: int | str = "auto",
        shrinking: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        engine: str = "auto",
        n_threads: int | None = None,
        dtype: str = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[TraceRow], object] | None = None,
        on_interrupt: str = "raise",
    ) -> None:
        self.machine = machine
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.bias = bias
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.working_set_size = working_set_size
        self.shrinking = shrinking
        self.class_weight = class_weight
        self.engine = engine
        self.n_threads = n_threads
        self.dtype = dtype
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.on_interrupt = on_interrupt

    # -- fit ---------------------------------------------------------------------------------------
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data; (n_samples, n_samples) kernel values for ``kernel="precomputed"``. Integers of 8 or
            16 bits and bool are kept as they are; they, and floats that are such integers times one scale
            (``X / 255``), have exact integer kernels of their own. ``trace_.info["kernel_form"]`` says which.
        y : array-like of shape (n_samples,)
            Labels of any kind.
        sample_weight : array-like of shape (n_samples,) or None
            Factors of ``C`` for each sample. Samples of weight 0 are left out.

        Returns
        -------
        self : KernelSVC
            The fitted estimator.
        """
        self._check_params()
        X, y = validate_data(self, X, y, **_DATA)
        X = canonical(X)
        check_classification_targets(y)
        weight = check_weights(sample_weight, X.shape[0])
        kept = np.flatnonzero(weight)
        if not len(kept):
            raise ValueError("All sample weights are zero; some samples need a positive weight.")
        labels, coded = np.unique(y[kept], return_inverse=True)
        if len(labels) < 2:
            raise ValueError(
                f"At least 2 classes are needed, but rows of positive weight have {len(labels)} class: "
                f"{labels.tolist()}."
            )
        task = self._task(X, kept, labels, coded.astype(np.int32), weight[kept], sample_weight is not None)
        model = ModelMaker(task, labels, kept)
        solution = self._solve(task, model, X, y)
        self._store(task, model, X.shape[0], solution)
        if not solution.status.converged:
            warn_user(
                f"KernelSVC {solution.status} Largest violation {solution.violation:.3g} (tol {self.tol:g}), "
                f"duality gap {solution.gap:.3g} of {solution.primal:.6g}.",
                ConvergenceWarning,
            )
        return self

    def _task(
        self, X: Any, kept: IntArray, labels: np.ndarray, y: LabelArray, weight: FloatArray, weighted: bool
    ) -> Task:
        """The problem to solve, on the rows ``kept``."""
        kernel = make_kernel(self.kernel, degree=self.degree, gamma=self.gamma, coef0=self.coef0)
        if kernel.pairwise and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"kernel='precomputed' needs a square matrix of kernel values to fit, got shape {X.shape}."
            )
        problem = PROBLEMS[self.machine]()
        C = self.C * sample_costs(self.class_weight, labels, y, weight)
        start = self._previous_alpha(X.shape[0], labels)
        if start is not None:
            start = problem.shrink_into(start[kept], y, C)
        if len(kept) < X.shape[0]:
            X = X[kept][:, kept] if kernel.pairwise else X[kept]
        kernel = kernel.resolve(X, weight if weighted else None)
        return Task(problem, kernel, X, y, C, len(labels), _BIAS_SCALE[self.bias], start)

    def _solve(self, task: Task, model: ModelMaker, X: Any, y: Any) -> Solution:
        method = find_method(self.solver, self.working_set_size)
        seed = 0 if self.random_state is None else check_random_state(self.random_state).randint(2**31)
        options = EngineOptions(
            effective_threads(self.n_threads),
            cache_bytes(self.cache_size, len(task.y)),
            method.block_share,
            self.dtype,
            bool(self.shrinking),
            int(seed),
        )
        progress = Progress(self.tol, int(self.verbose)) if self.verbose else None
        observers: list[Observer] = [o for o in (progress, self.callback) if o is not None]
        context = callback_context(self, self.max_iter)
        if context is not None:
            observers.append(SklearnCallbacks(self, context, X, y, lambda: model(engine.result()[0])))
        monitor = Monitor(self.max_iter, self.time_limit, observers)
        engine = find_engine(self.engine)(task, options)
        monitor.trace.info["solver"] = self.solver if isinstance(self.solver, str) else repr(self.solver)
        if context is not None:
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        with progress or nullcontext():
            solution = method.run(
                engine,
                monitor,
                tol=self.tol,
                rng=np.random.default_rng(seed),
                bias_scale=task.offset,
                keep_interrupted=self.on_interrupt == "keep",
            )
            if progress is not None:
                progress.finish(solution)
        if context is not None:
            context.call_on_fit_task_end(
                estimator=self, X=X, y=y, reconstruction_attributes=model(solution.alpha)
            )
        return solution

    def _store(self, task: Task, model: ModelMaker, rows: int, solution: Solution) -> None:
        for name, value in model(solution.alpha).items():
            setattr(self, name, value)
        ids = np.flatnonzero(solution.alpha.any(axis=1))
        self.status_ = solution.status
        self.n_iter_ = len(solution.trace)
        self.violation_ = solution.violation
        self.primal_objective_ = solution.primal
        self.dual_objective_ = solution.dual
        self.duality_gap_ = solution.gap
        self.trace_ = solution.trace
        self._labels = task.y
        self._kept = model.kept
        self._rows_fitted = rows
        self._costs = task.C
        self._support_loss = task.problem.loss(solution.scores[ids], task.y[ids], np.ones(len(ids)))

    # -- predict -----------------------------------------------------------------------------------
    def decision_function(self, X: Any) -> FloatArray:
        """Scores of every class; for two classes the second score minus the first, as in scikit-learn.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data, or (n_samples, n_training_samples) kernel values.

        Returns
        -------
        scores : ndarray of shape (n_samples, m) or (n_samples,)
            The largest score is the predicted class.
        """
        check_is_fitted(self)
        X = canonical(validate_data(self, X, reset=False, **_DATA))
        X, support = (X, self._support) if self._kernel.pairwise else same_storage(X, self._support)
        scores = find_engine(self.engine).scores(
            self._kernel, support, self.dual_coef_, X, n_threads=effective_threads(self.n_threads)
        )
        scores += self.intercept_
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
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
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    # -- validation --------------------------------------------------------------------------------
    def _check_params(self) -> None:
        check_choice("machine", self.machine, tuple(PROBLEMS))
        check_choice("bias", self.bias, tuple(_BIAS_SCALE))
        check_choice("dtype", self.dtype, ("auto", "float32", "float64"))
        check_choice("on_interrupt", self.on_interrupt, ("raise", "keep"))
        check_number("C", self.C)
        check_number("tol", self.tol)
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit)
        if self.cache_size != "auto":
            check_number("cache_size", self.cache_size, positive=False)
        if self.working_set_size != "auto":
            check_integer("working_set_size", self.working_set_size, 1)
        if self.n_threads is not None:
            check_integer("n_threads", self.n_threads, 1)
        check_integer("max_iter", self.max_iter, -1)
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be callable or None, got {self.callback!r}.")
        find_engine(self.engine)
        find_method(self.solver, self.working_set_size)

    def _previous_alpha(self, n: int, labels: np.ndarray) -> FloatArray | None:
        """The previous solution, if it is of this problem's shape."""
        if not self.warm_start or not hasattr(self, "dual_coef_"):
            return None
        if self._rows_fitted != n or not np.array_equal(self.classes_, labels):
            return None
        alpha = np.zeros((n, len(labels)))
        alpha[self.support_] = self.dual_coef_
        return alpha

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        pairwise = self.kernel == "precomputed" or getattr(self.kernel, "pairwise", False)
        tags.input_tags.pairwise = bool(pairwise)
        return tags
