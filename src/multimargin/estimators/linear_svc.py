"""The estimator of the linear machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from ..linear.descent import (
    FEW_PASSES,
    INEXACT,
    SUBPROBLEMS,
    LinearDescent,
    LinearOptions,
    LinearTask,
    most_parts,
    solve_linear,
)
from ..linear.stream import Stream
from ..run.monitor import Monitor
from ..solution import LinearSolution, TraceRow
from ..system.data import without_duplicates
from ..system.threads import effective_threads
from ..system.typing import Data, FloatArray
from .base import MachineClassifier, Rows, margins
from .callbacks import with_callbacks
from .costs import check_weights, sample_costs
from .validation import check_choice, check_number

_DATA: dict[str, Any] = {  # what scikit-learn's validate_data is asked for
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "order": "C",
    "accept_large_sparse": True,
}
MACHINES = ("crammer-singer",)
_OF_FIT = (
    "support_",
    "dual_coef_",
    "status_",
    "violation_",
    "primal_objective_",
    "duality_gap_",
    "trace_",
    "_rows_fitted",
    "_constant_fitted",
)
_PARALLEL_WORK = 1e7  # non-zeros times classes of a pass that several threads share
_PARALLEL_ROW = 1e3  # the same, of a row: less, and threads mostly wait for each other


class LinearSVC(MachineClassifier):
    """Exact multiclass linear support vector machine for large sparse data, with a certificate of optimality.

    All classes are trained in one problem. For the Crammer-Singer machine, with w_r = Σ_i α_ir x_i, the dual

        min ½ Σ_r ‖w_r‖² - Σ_i α_{i,y_i}   subject to   α_i ≤ C_i e_{y_i},  Σ_r α_ir = 0

    is solved by coordinate descent, each sample by an exact projection onto the simplex, until every sample
    meets its optimality condition to ``tol``; that is then proved in float64.

    Parameters
    ----------
    machine : {"crammer-singer"}, default="crammer-singer"
        Which multiclass machine.
    C : float, default=1.0
        Cost of a margin error; multiplied by class and sample weights.
    subproblem : str, default="auto"
        How the problem of a single sample is solved: "sort", "pivot", "bisection", "fixed-point" and "smo"
        are exact, "frank-wolfe" makes one step. "auto" is "sort", and "pivot" for very many classes.
    tau : float or None, default=None
        Tolerance of "bisection" and "smo", relative to C; None is exact.
    tol : float, default=1e-3
        Largest KKT violation allowed, in units of the margin.
    gap_tol : float or None, default=None
        Relative duality gap, (primal - dual) / primal, at which to stop although ``tol`` is not met; None is
        never. It is proved in float64, too.
    max_iter : int, default=1000
        Largest number of passes over the data, counted in samples visited; -1 is no limit. Up to 10, every
        pass visits all samples.
    time_limit : float or None, default=None
        Seconds after which the solver stops at its current point. Looked at between passes; the final proof
        comes on top.
    fit_intercept : bool, default=True
        Give every class an intercept, penalised like the weights: a constant feature is appended.
    intercept_scaling : float, default=1.0
        Value of that feature; larger values penalise the intercept less.
    class_weight : dict, "balanced" or None, default=None
        Factors of ``C`` for each class.
    shrinking : bool, default=True
        Spend most passes on the samples that still change, unless ``subproblem`` is "frank-wolfe". The final
        proof always covers all samples.
    shuffle : bool, default=True
        Visit the samples in a random order, a new one each pass.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of the weights while they change; "auto" is float32 down to ``tol=1e-5``, and float64 where
        that does not suffice. The dual state, the proof and ``coef_`` are always float64.
    n_threads : int or None, default=None
        Threads; None is every core. Proofs use all of them. Passes use one for every 24 classes (8 at most)
        where rows are not too short and differ from each other: each thread has classes of its own.
    keep_dual : bool, default=False
        Whether ``partial_fit`` keeps the coefficients of the rows it has seen in ``dual_coef_``.
    warm_start : bool, default=False
        ``fit`` starts from the previous solution, if it was for as many rows.
    random_state : int, RandomState or None, default=None
        Seed of the order in which samples are visited. None is a fixed seed: fits are reproducible.
    verbose : int, default=0
        1 shows progress (a bar where tqdm is installed); 2 shows lines.
    callback : callable or None, default=None
        Called with a :class:`multimargin.solution.TraceRow` after every pass; a true answer stops the fit.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: raise ``KeyboardInterrupt``, or keep the current point as a model whose
        ``status_`` says that it was interrupted.

    Attributes
    ----------
    classes_ : ndarray of shape (m,)
        The labels.
    coef_ : ndarray of shape (m, n_features)
        Weights of each class.
    intercept_ : ndarray of shape (m,)
        Intercept of each class (zeros without ``fit_intercept``).
    support_ : ndarray of shape (n_SV,)
        Row numbers of the support vectors, ascending. After ``partial_fit`` only with ``keep_dual``, and then
        counted over all batches.
    dual_coef_ : sparse array of shape (n_SV, m)
        Their coefficients α.
    n_iter_ : int
        Passes over the data: samples visited over their number, rounded up.
    status_ : Status
        Why the solver stopped.
    violation_ : float
        Largest KKT violation, in units of the margin.
    primal_objective_, dual_objective_, duality_gap_ : float
        Certified in float64; the dual is minimised, and the gap is their sum. After ``partial_fit`` only the
        dual is known: the others would need all rows again.
    trace_ : Trace
        One row a pass: ``working_set`` is the samples visited, ``inner`` those updated.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, if the training data had them.

    Examples
    --------
    >>> from multimargin import LinearSVC
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC().fit(X, y)
    >>> model.predict(X[:1])
    array([0])
    >>> bool(model.duality_gap_ <= 1e-2 * model.primal_objective_)
    True
    """

    def __init__(
        self,
        machine: str = "crammer-singer",
        C: float = 1.0,
        *,
        subproblem: str = "auto",
        tau: float | None = None,
        tol: float = 1e-3,
        gap_tol: float | None = None,
        max_iter: int = 1000,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: dict[Any, float] | str | None = None,
        shrinking: bool = True,
        shuffle: bool = True,
        dtype: str = "auto",
        n_threads: int | None = None,
        keep_dual: bool = False,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[TraceRow], object] | None = None,
        on_interrupt: str = "raise",
    ) -> None:
        self.machine = machine
        self.C = C
        self.subproblem = subproblem
        self.tau = tau
        self.tol = tol
        self.gap_tol = gap_tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.shrinking = shrinking
        self.shuffle = shuffle
        self.dtype = dtype
        self.n_threads = n_threads
        self.keep_dual = keep_dual
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
            Training data; float32 and float64, dense (C order) or CSR, are used without a copy.
        y : array-like of shape (n_samples,)
            Labels of any kind.
        sample_weight : array-like of shape (n_samples,) or None
            Factors of ``C`` for each sample. Samples of weight 0 are left out.

        Returns
        -------
        self : LinearSVC
            The fitted estimator.
        """
        self._check_params()
        X, y = validate_data(self, X, y, **_DATA)
        X = without_duplicates(X)
        rows = self._rows(y, sample_weight)
        task = self._task(X, rows, self._previous_alpha(X.shape[0], rows))
        solution = self._solve(task, rows, X, y)
        self._stream: Stream | None = None
        for name, value in self._model(task, rows, solution.weights, solution.alpha).items():
            setattr(self, name, value)
        self._store_certificate(solution)
        self.n_iter_ = solution.passes
        self._rows_fitted, self._constant_fitted = X.shape[0], task.constant
        self._warn_unless_converged(solution)
        return self

    def _task(self, X: Data, rows: Rows, alpha: sp.csr_array | None) -> LinearTask:
        C = self.C * sample_costs(self.class_weight, rows.labels, rows.y, rows.weight)
        if alpha is not None:
            alpha = shrink_into(alpha[rows.kept], rows.y, C)
        if len(rows.kept) < X.shape[0]:
            X = X[rows.kept]
        return LinearTask(X, rows.y, C, len(rows.labels), self._constant(), alpha)

    def _options(self, task: LinearTask) -> LinearOptions:
        few = 0 <= self.max_iter <= FEW_PASSES
        n_threads = effective_threads(self.n_threads)
        return LinearOptions(
            self.subproblem,
            self.tau or 0.0,
            self.tol,
            self.gap_tol or 0.0,
            int(self.max_iter),
            bool(self.shrinking) and not few and self.subproblem not in INEXACT,
            bool(self.shuffle),
            self.dtype,
            n_threads,
            self._seed(),
            threads_worth_while(task, n_threads),
        )

    def _solve(self, task: LinearTask, rows: Rows, X: Any, y: Any) -> LinearSolution:
        descent: LinearDescent

        def run(monitor: Monitor) -> LinearSolution:
            nonlocal descent
            descent = LinearDescent(task, self._options(task))
            monitor.trace.info["subproblem"] = self.subproblem
            return solve_linear(descent, monitor, keep_interrupted=self.on_interrupt == "keep")

        return self._train(
            run,
            X,
            y,
            now=lambda: self._model(task, rows, descent.weights_by_class(), descent.alpha()),
            final=lambda solution: self._model(task, rows, solution.weights, solution.alpha),
        )

    def _model(
        self, task: LinearTask, rows: Rows, weights: FloatArray, alpha: sp.csr_array
    ) -> dict[str, Any]:
        """The attributes of a model."""
        ids = np.flatnonzero(np.diff(alpha.indptr))
        support = {"support_": rows.kept[ids], "dual_coef_": alpha[ids]}
        return _weights_of(task, rows.labels, weights) | support

    def _previous_alpha(self, n: int, rows: Rows) -> sp.csr_array | None:
        """The previous solution, if it is of this problem's shape."""
        if not self.warm_start or not hasattr(self, "_rows_fitted"):
            return None
        if self._rows_fitted != n or not np.array_equal(self.classes_, rows.labels):
            return None
        old = self.dual_coef_.tocoo()
        return sp.csr_array((old.data, (self.support_[old.row], old.col)), shape=(n, len(rows.labels)))

    # -- streams -----------------------------------------------------------------------------------
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """One pass over a batch, as in one pass over a stream: the batch is never needed again.

        After ``fit`` it goes on from there, as if the rows of ``fit`` had been the stream's first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The batch.
        y : array-like of shape (n_samples,)
            Its labels.
        classes : array-like of shape (m,) or None
            All labels that will ever come; needed in the first call, unless ``fit`` came before.
        sample_weight : array-like of shape (n_samples,) or None
            Factors of ``C`` for each sample. Samples of weight 0 are left out.

        Returns
        -------
        self : LinearSVC
            The estimator. ``coef_`` changes in place.

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
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all labels at once; give a dict of weights instead."
            )
        known = hasattr(self, "classes_")
        X, y = validate_data(self, X, y, reset=not known, **_DATA)
        rows = self._coded(y, self._all_classes(classes, known), sample_weight)
        task = self._task(without_duplicates(X), rows, None)
        stream = self._open_stream(task)
        stream.learn(task, self._options(task), rows.kept, X.shape[0])
        for name, value in _weights_of(task, rows.labels, stream.weights).items():
            setattr(self, name, value)
        self.dual_objective_ = stream.dual
        self.n_iter_ = 1
        if stream.keeps:
            self.support_, self.dual_coef_ = stream.support()
        return self

    def _open_stream(self, task: LinearTask) -> Stream:
        """The stream so far; a new one, that goes on from the last ``fit`` if there was one."""
        keeps, stream = bool(self.keep_dual), getattr(self, "_stream", None)
        started = stream.constant if stream is not None else getattr(self, "_constant_fitted", task.constant)
        if started != task.constant or (stream is not None and stream.keeps != keeps):
            raise ValueError(
                "fit_intercept, intercept_scaling and keep_dual must stay as they were when training began."
            )
        if stream is None:
            stream = Stream(task, keeps)
            if hasattr(self, "_rows_fitted"):
                stream.take_over(
                    self.coef_,
                    self.intercept_,
                    self.dual_objective_,
                    self._rows_fitted,
                    self.support_,
                    self.dual_coef_,
                )
            for name in _OF_FIT:  # must not outlive it beside the weights of a stream
                self.__dict__.pop(name, None)
            self._stream = stream
        return stream

    def _all_classes(self, classes: Any, known: bool) -> np.ndarray:
        if classes is None:
            if not known:
                raise ValueError(
                    "classes must be given in the first call of partial_fit: all labels that will come."
                )
            return self.classes_
        labels = np.unique(np.asarray(classes))
        if len(labels) < 2:
            raise ValueError(f"At least 2 classes are needed, got {labels.tolist()}.")
        if known and not np.array_equal(labels, self.classes_):
            raise ValueError(f"classes must stay {self.classes_.tolist()}, got {labels.tolist()}.")
        return labels

    def _coded(self, y: np.ndarray, labels: np.ndarray, sample_weight: Any) -> Rows:
        """The rows of positive weight, with labels of a fixed set."""
        weight = check_weights(sample_weight, len(y))
        kept = np.flatnonzero(weight)
        unknown = np.setdiff1d(y, labels)
        if len(unknown):
            raise ValueError(f"y has labels {unknown.tolist()}, which are not in classes {labels.tolist()}.")
        return Rows(kept, labels, np.searchsorted(labels, y[kept]).astype(np.int32), weight[kept])

    # -- predict -----------------------------------------------------------------------------------
    def decision_function(self, X: Any) -> FloatArray:
        """Scores of every class; for two classes the second score minus the first, as in scikit-learn.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data.

        Returns
        -------
        scores : ndarray of shape (n_samples, m) or (n_samples,)
            The largest score is the predicted class.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **_DATA)
        return margins(np.asarray(X @ self.coef_.T + self.intercept_))

    # -- validation --------------------------------------------------------------------------------
    def _constant(self) -> float:
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def _check_params(self) -> None:
        check_choice("machine", self.machine, MACHINES)
        check_choice("subproblem", self.subproblem, SUBPROBLEMS)
        check_choice("dtype", self.dtype, ("auto", "float32", "float64"))
        self._check_common_params()
        check_number("C", self.C)
        check_number("intercept_scaling", self.intercept_scaling)
        if self.gap_tol is not None:
            check_number("gap_tol", self.gap_tol)
        if self.tau is not None:
            check_number("tau", self.tau)
            if self.subproblem not in ("bisection", "smo"):
                raise ValueError(f"tau is for subproblem='bisection' or 'smo', not for {self.subproblem!r}.")


def _weights_of(task: LinearTask, labels: np.ndarray, weights: FloatArray) -> dict[str, Any]:
    """Weights as attributes, without a copy."""
    d, m = task.X.shape[1], task.m
    intercept = task.constant * weights[d, :m] if task.constant else np.zeros(m)
    return {"classes_": labels, "coef_": weights[:d, :m].T, "intercept_": intercept}


def shrink_into(alpha: sp.csr_array, y: np.ndarray, C: FloatArray) -> sp.csr_array:
    """A feasible point near ``alpha``: rows within their cost, zero where the label changed."""
    entries = alpha.tocoo()
    own = np.zeros(len(y))
    is_own = entries.col == y[entries.row]
    own[entries.row[is_own]] = entries.data[is_own]
    keeps = ~is_own & (entries.data < 0) & (own[entries.row] > 0)
    rows, columns, values = entries.row[keeps], entries.col[keeps], entries.data[keeps]
    total = np.bincount(rows, -values, len(y))
    factor = np.minimum(1.0, C / np.maximum(total, 1e-300))
    return sp.csr_array((values * factor[rows], (rows, columns)), shape=alpha.shape)


def threads_worth_while(task: LinearTask, n_threads: int) -> int:
    """Threads of a pass: one where it is short, or rows are, as they would mostly wait for each other."""
    stored = task.X.nnz if sp.issparse(task.X) else task.X.size
    n = task.X.shape[0]
    work = stored * task.m
    return min(n_threads, most_parts(task.m)) if work > _PARALLEL_WORK and work > _PARALLEL_ROW * n else 1
