"""The estimator of the linear machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from ..engines import CpuEngine, Mpi, Setting, find_engine
from ..engines.mpi.data import own_rows
from ..linear.descent import SUBPROBLEMS, LinearOptions, TrainingSet
from ..linear.stages import StagedFit
from ..linear.tuning import Tuning
from ..problems import LINEAR_PROBLEMS
from ..run.monitor import Monitor
from ..solution import LinearSolution, TraceRow
from ..system.data import without_duplicates
from ..system.shard import Shard
from ..system.team import SOLO, Team
from ..system.threads import effective_threads
from ..system.typing import Data
from .base import Rows
from .callbacks import with_callbacks
from .costs import class_factors, sample_costs
from .linear_model import DATA, model_attributes
from .linear_stream import OLDER, LinearStream
from .samples import agreed_data
from .validation import check_bool, check_choice, check_number

MACHINES = ("crammer-singer", "weston-watkins", "one-vs-rest")
LOSSES = ("hinge", "squared_hinge")


class LinearSVC(LinearStream):
    """Exact multiclass linear support vector machine for large sparse data, with a certificate of optimality.

    All classes are trained in one problem. For the Crammer-Singer machine, with w_r = Σ_i α_ir x_i, the dual

        min ½ Σ_r ‖w_r‖² - Σ_i α_{i,y_i}   subject to   α_i ≤ C_i e_{y_i},  Σ_r α_ir = 0

    is solved by coordinate descent. Each sample's update is an exact projection onto the simplex. Other
    machines have another feasible set. The fit ends when every sample meets its optimality condition to
    ``tol``, which is then proved in float64.

    Besides the data and the sparse dual, a fit takes 8 bytes per feature and class (padded to a multiple of
    8 classes), the memory of ``coef_``; twice that if threads share passes in float64.

    Parameters
    ----------
    machine : {"crammer-singer", "weston-watkins", "one-vs-rest"}, default="crammer-singer"
        The multiclass machine: one slack per sample, one per sample and wrong class, or a binary machine for
        every class, all of them trained together.
    C : float, default=1.0
        Cost of a margin error; multiplied by class and sample weights. A sample has the same cost in all
        binary machines of "one-vs-rest".
    loss : {"hinge", "squared_hinge"}, default="hinge"
        What a margin error costs: C times the error, or C times its square, which is for "one-vs-rest" only
        and the default of scikit-learn's ``LinearSVC``.
    subproblem : str, default="auto"
        How a sample's problem is solved: "sort", "pivot", "bisection", "fixed-point" and "smo" are exact,
        "frank-wolfe" makes one step. "auto" is "sort" for up to 128 classes, else "pivot". Machines other
        than "crammer-singer" know "sort" and, with the hinge loss, "frank-wolfe". With "auto" alone,
        if 100 passes are not enough and samples or features are few, Newton steps on the weights take over.
        Each counts as a pass.
    tau : float or None, default=None
        Tolerance of "bisection" and "smo", relative to ``C``; None is exact.
    tol : float, default=1e-3
        Largest KKT violation allowed, in units of the margin.
    gap_tol : float or None, default=None
        Duality gap, as a share of the primal objective, that ends the fit even if ``tol`` is not met; None
        is never. It is proved in float64, too.
    max_iter : int, default=1000
        Most passes over the data, counted in samples visited; -1 is no limit. Up to 10 visit all samples.
        The fit has converged if the last point meets ``tol``, whichever limit ended it.
    time_limit : float or None, default=None
        Seconds after which the solver stops, read between passes. The final proof takes extra time.
    fit_intercept : bool, default=True
        Whether a constant feature is appended: every class has an intercept, penalised like the weights.
    intercept_scaling : float, default=1.0
        Value of the constant feature; larger values penalise the intercept less.
    class_weight : dict, "balanced" or None, default=None
        One factor of ``C`` per class.
    shrinking : bool, default=True
        Whether most passes visit only the samples that still change. It has no effect if ``subproblem`` is
        "frank-wolfe". The final proof always covers all samples.
    shuffle : bool, default=True
        Whether samples are visited in random order, a new one in each pass.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of the weights while they change. "auto" starts in float32 if ``tol`` is at least 1e-5, and
        goes on in float64 if that does not suffice; "float32" does not. The dual, the proof and ``coef_`` are
        always float64.
    engine : {"auto", "cpu", "mpi"} or multimargin.engines.Mpi, default="auto"
        "mpi" fits with all processes that ``mpiexec`` has started: each holds some of the samples, and all of
        them get ``coef_``. There are no Newton steps then, and ``partial_fit`` is for one process.
    n_threads : int or None, default=None
        Threads; None is every core. Proofs use all of them. Each thread of a pass has classes of its own: a
        pass uses one thread per 24 classes, at most 8, and only one if rows are short or much alike.
    keep_dual : bool, default=False
        Whether ``partial_fit`` keeps the coefficients of all rows seen so far in ``dual_coef_``. A pickle
        has ``support_``, ``dual_coef_`` and ``trace_`` only with ``keep_dual`` or ``warm_start``.
    warm_start : bool, default=False
        Whether ``fit`` starts from the previous solution, if that had as many rows and the same classes.
    random_state : int, RandomState or None, default=None
        Seed of the order in which samples are visited. None is a fixed seed: fits are reproducible.
    verbose : int, default=0
        1 shows progress (a bar if tqdm is installed); 2 shows lines.
    callback : callable or None, default=None
        Called with a :class:`multimargin.solution.TraceRow` after every pass; a true answer stops the fit.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: raise ``KeyboardInterrupt``, or keep the current point as a model whose
        ``status_`` says that it was interrupted.

    Attributes
    ----------
    classes_ : ndarray of shape (m,)
        The labels.
    coef_ : ndarray of shape (m, n_features), or (1, n_features) for two classes
        Weights of each class; for two classes those of ``classes_[1]`` minus those of ``classes_[0]``, as in
        scikit-learn (of "one-vs-rest" twice as much: both binary machines count). It may be replaced:
        predictions and ``partial_fit`` use what it holds.
    intercept_ : ndarray of shape (m,), or (1,) for two classes
        Intercept of each class (zeros without ``fit_intercept``).
    support_ : ndarray of shape (n_SV,)
        Row numbers of the support vectors, ascending; after ``partial_fit`` over all batches, and only with
        ``keep_dual``. With ``engine="mpi"`` each process has those of its own rows.
    dual_coef_ : sparse array of shape (n_SV, m)
        Coefficients α of the support vectors, of two classes both.
    n_iter_ : int
        Passes over the data: samples visited over their number, rounded up.
    status_ : Status
        Why the solver stopped.
    violation_ : float
        Largest KKT violation, in units of the margin.
    primal_objective_, dual_objective_, duality_gap_ : float
        Certified in float64. The dual is minimised, and the gap is the sum of both. After ``partial_fit``
        only the dual is known: the others would need all rows again.
    trace_ : Trace
        One row per pass: ``working_set`` is the number of samples visited, ``inner`` of those updated.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
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

    _tuning = Tuning()  # no parameter: only the tests use other values

    def __init__(
        self,
        machine: str = "crammer-singer",
        C: float = 1.0,
        *,
        loss: str = "hinge",
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
        engine: str | Mpi = "auto",
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
        self.loss = loss
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
        self.engine = engine
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
            One factor of ``C`` per sample. Samples of weight 0 are left out, but their labels stay in
            ``classes_``.

        Returns
        -------
        self : LinearSVC
            The fitted estimator.
        """
        setting = self._setting()
        team = setting.assemble()
        with team.together():
            team.attempt(self._check_params)
            self._check_same_parameters(team)
            X, y, sample_weight = own_rows(team, setting.data, X, y, sample_weight)
            X, y = agreed_data(self, partial(self._checked, X, y), X, y, team)
            rows, given = self._rows(y, sample_weight, team), Shard(len(y), team)
            data = self._training_set(X, rows, self._previous_alpha(given, rows), team)
            rows = rows._replace(kept=given.first + rows.kept)  # their numbers among all rows
            solution = self._solve(data, rows, X, y)
            self._stream = None
            self.__dict__.update(model_attributes(data, rows, solution.weights, solution.alpha))
            self._store_certificate(solution)
            self.n_iter_ = solution.passes
            self._rows_fitted, self._constant_fitted = given.n, data.constant
            self._problem_fitted = data.machine
            if team.rank == 0:
                self._warn_unless_proved(solution)
        return self

    def _setting(self) -> Setting:
        """Which processes share the fit."""
        setting = find_engine(self.engine)
        if isinstance(setting, Mpi):
            if (setting.model, setting.scheme) != ("all", "rows"):
                raise ValueError(
                    "LinearSVC shares the rows, and all ranks have the whole model: use Mpi(model='all', "
                    f"scheme='rows'), not {setting!r}."
                )
        elif self.engine not in ("auto", CpuEngine.name):
            raise ValueError(
                f"engine of LinearSVC must be 'auto', 'cpu', 'mpi' or an Mpi, got {self.engine!r}."
            )
        return setting

    def _checked(self, X: Any, y: Any) -> tuple[Data, np.ndarray]:
        X, y = validate_data(self, X, y, **DATA)
        return without_duplicates(X), y

    def _training_set(
        self, X: Data, rows: Rows, alpha: sp.csr_array | None, team: Team = SOLO
    ) -> TrainingSet:
        factors = class_factors(self.class_weight, rows.labels, rows.y, rows.weight, team)
        C = team.attempt(lambda: sample_costs(self.C, factors, rows.y, rows.weight))
        if alpha is not None:
            problem = LINEAR_PROBLEMS[self._problem()](len(rows.labels))
            alpha = problem.shrink_sparse_into(alpha[rows.kept], rows.y, C)
        if len(rows.kept) < X.shape[0]:
            X = X[rows.kept]
        constant = float(self.intercept_scaling) if self.fit_intercept else 0.0
        return TrainingSet(X, rows.y, C, len(rows.labels), constant, alpha, team, self._problem())

    def _problem(self) -> str:
        """The problem's name in ``LINEAR_PROBLEMS``."""
        return self.machine if self.loss == "hinge" else f"squared-{self.machine}"

    def _options(self, team: Team = SOLO) -> LinearOptions:
        return LinearOptions(
            self.subproblem,
            self.tau or 0.0,
            self.tol,
            self.gap_tol or 0.0,
            int(self.max_iter),
            bool(self.shrinking),
            bool(self.shuffle),
            self.dtype,
            effective_threads(self.n_threads, team.core_share),
            team.agree(self._seed()),
            tuning=self._tuning,
        )

    def _solve(self, data: TrainingSet, rows: Rows, X: Any, y: Any) -> LinearSolution:
        staged: StagedFit

        def run(monitor: Monitor) -> LinearSolution:
            nonlocal staged
            staged = StagedFit(data, self._options(data.team))
            monitor.trace.info["subproblem"] = self.subproblem
            return staged.solve(monitor, keep_interrupted=self.on_interrupt == "keep")

        return self._train(
            run,
            X,
            y,
            now=lambda: model_attributes(data, rows, staged.fit.weights_by_class(), staged.fit.alpha()),
            final=lambda solution: model_attributes(data, rows, solution.weights, solution.alpha),
            team=data.team,
        )

    def _previous_alpha(self, given: Shard, rows: Rows) -> sp.csr_array | None:
        """The previous solution of the rows here, if it is of this problem's shape on all processes."""
        fits = self.warm_start and getattr(self, "_rows_fitted", None) == given.n
        fits = fits and hasattr(self, "dual_coef_") and np.array_equal(self.classes_, rows.labels)
        fits = fits and getattr(self, "_problem_fitted", OLDER) == self._problem()
        place = self.support_ - given.first if fits else np.empty(0, dtype=np.int64)
        fits = fits and bool(((place >= 0) & (place < given.count)).all())
        if given.team.max(float(not fits)):
            return None
        old = self.dual_coef_.tocoo()
        return sp.csr_array((old.data, (place[old.row], old.col)), shape=(given.count, len(rows.labels)))

    # -- validation --------------------------------------------------------------------------------
    def _check_params(self) -> None:
        check_choice("machine", self.machine, MACHINES)
        check_choice("loss", self.loss, LOSSES)
        check_choice("subproblem", self.subproblem, SUBPROBLEMS)
        if self._problem() not in LINEAR_PROBLEMS:
            raise ValueError(
                f"loss={self.loss!r} is for machine='one-vs-rest', not for {self.machine!r}: leave it out."
            )
        known = LINEAR_PROBLEMS[self._problem()].updates
        if self.subproblem not in ("auto", *known):
            raise ValueError(
                f"subproblem={self.subproblem!r} is not for machine={self.machine!r} with "
                f"loss={self.loss!r}: use 'auto' or {' or '.join(map(repr, known))}."
            )
        check_choice("dtype", self.dtype, ("auto", "float32", "float64"))
        self._check_common_params()
        check_number("C", self.C)
        check_number("intercept_scaling", self.intercept_scaling)
        for name in ("fit_intercept", "shuffle", "keep_dual"):
            check_bool(name, getattr(self, name))
        if self.gap_tol is not None:
            check_number("gap_tol", self.gap_tol)
        if self.tau is not None:
            check_number("tau", self.tau)
            if self.subproblem not in ("bisection", "smo"):
                raise ValueError(f"tau is for subproblem='bisection' or 'smo', not for {self.subproblem!r}.")
