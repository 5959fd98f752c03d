"""The estimators: validate → solve → attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from sklearn.metrics import accuracy_score

from ..engines import Mpi, Scorer
from ..engines.mpi.data import own_rows
from ..engines.rounding import score_asymmetry, score_rounding
from ..kernels import Kernel
from ..methods.decomposition import Decomposition
from ..solution import TraceRow
from ..system.shard import Shard
from ..system.threads import effective_threads
from ..system.typing import Data
from .attributes import EVERYWHERE, ModelMaker, intercept
from .base import margins
from .callbacks import with_callbacks
from .costs import class_factors, sample_costs
from .kernel_fit import KernelFit
from .label_noise import LabelNoiseMixin
from .placed import Scored, beside, numpy_array
from .samples import new_data, training_data
from .starts import CheckpointSetting


class KernelSVC(LabelNoiseMixin, KernelFit):
    """Exact multiclass kernel support vector machine with a certificate of optimality.

    All classes are trained in one problem. For the Crammer-Singer machine, for example, the dual

        min ½ ⟨α, Kα⟩ - Σ_i α_{i,y_i}   subject to   α_i ≤ C_i e_{y_i},  Σ_r α_ir = 0

    is solved until every sample meets its optimality condition to ``tol``, which is then proved in
    float64; ``duality_gap_`` bounds how far both objectives are from the optimum.

    Parameters
    ----------
    machine : str, default="crammer-singer"
        The multiclass machine: "crammer-singer" (one slack per sample), "weston-watkins" (one per sample and
        class), "lee-lin-wahba" (scores sum to zero), "msvm2" (the same with squared slacks), "one-vs-rest"
        (a binary machine for every class, trained together) or, for two classes, "c-svc" (what
        scikit-learn's ``SVC`` solves).
    C : float, default=1.0
        Cost of a margin error; multiplied by class and sample weights.
    kernel : str, callable or kernel object, default="rbf"
        "linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed", a function of two sample arrays
        that returns their matrix of values, or an object from :mod:`multimargin.kernels`.
    degree : int, default=3
        Degree of "poly", at most 2³¹ - 1.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of "rbf", "poly", "sigmoid" and "laplacian": 1 / (n_features · X.var()),
        1 / n_features, or the number given. The variance counts a row of weight 2 twice; ``SVC`` counts it
        once.
    coef0 : float, default=0.0
        Constant of "poly" and "sigmoid".
    bias : {"auto", "none", "regularized", "free"}, default="auto"
        "regularized" gives every class a bias that is penalised like the weights (kernel K + 1), "free" one
        that is not penalised. "auto" is "none" for "rbf" and "laplacian", which do not need one, and
        "regularized" for all other kernels, for "linear", "poly" and "precomputed" with the geometric mean
        of the K(x, x) in place of 1: data far off the origin need a large bias, which then costs less.
        "c-svc" has a free bias by definition: use "auto" or "free".
    solver : str or Decomposition, default="auto"
        "auto" (fastest), a paper's method by name ("mcsvm", "ell-based", "dasmc", "msvmpack"; "vpdt" and
        "svm-light" for c-svc), or a :class:`multimargin.Decomposition` built by hand. "pdasmc" is
        "dasmc" with ``engine="mpi"``.
    tol : float, default=1e-3
        Largest KKT violation allowed, in units of the margin; for "msvmpack" the duality gap, as a share of
        the primal (its authors' is 0.02). "auto" goes further on problems of at most 100 samples, which costs
        milliseconds.
    max_iter : int, default=-1
        Largest number of outer iterations; -1 is no limit.
    time_limit : float or None, default=None
        Seconds after which the solver stops at its current point. Inner solvers look at it too; only the
        final proof comes on top.
    cache_size : float or "auto", default="auto"
        MB (10**6 bytes) for kernel values: kept rows, blocks of working sets, and the copies and matrices
        that solvers make of them. It is a hard limit: what does not fit is computed again, and a method that
        needs more raises ``ValueError`` before it starts. The data, α, the gradient and a few MB of work
        space come on top. "auto" is half of the free memory, and plenty for up to 1024 samples. With MPI each
        process has a cache of this size; for "auto" they share the free memory.
    working_set_size : int or "auto", default="auto"
        Samples optimised together; "auto" is the method's own choice.
    shrinking : bool, default=True
        Leave samples that have met their condition for several checks out of the next ones. The final
        proof always covers all samples.
    class_weight : dict, "balanced" or None, default=None
        Factors of ``C`` for each class; 1 for a label that is not in the dict. "balanced" makes the total
        cost of all classes equal. It counts a row of weight 2 twice; ``SVC`` counts it once.
    engine : {"auto", "cpu", "cuda", "numpy", "mpi"} or Mpi, default="auto"
        What does the work: "cpu" is native and threaded; "cuda" is one NVIDIA GPU, which "auto" takes
        only if ``X`` is on it; "numpy" is the plain specification, which is slow, keeps no kernel rows but a
        small matrix, and always looks at all samples. "mpi" is "cpu" in all processes that ``mpiexec`` has
        started, each with a part of the rows; an object :class:`multimargin.engines.Mpi` has its options,
        GPUs among them. Prediction needs no MPI.
    n_threads : int or None, default=None
        Threads, BLAS included; None is every core. Processes of an MPI fit on the same host share its cores.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel rows; "auto" is float32 if that is safe and pays. The dual state is always
        float64, and so is the final proof. How rows are computed is the data's choice: see ``X`` of ``fit``.
    warm_start : bool, default=False
        Start from the previous solution, if it was for as many rows.
    checkpoint : path, (path, seconds) or None, default=None
        File that the fit writes its state to every 60 or so many ``seconds``, and at its end. It is written
        between two iterations: a long iteration delays it. If the file exists when ``fit`` is called, the fit
        goes on with it instead of any previous solution. Solver, engine, ``tol`` and the number of threads or
        processes may be others. ``n_iter_`` counts on; ``max_iter``, ``time_limit`` and the seconds of the
        trace are those of each call, and ``trace_.info["checkpoint"]`` says what it went on from. After a fit
        has converged the file stays, and another fit only proves the result. Ctrl-C with
        ``on_interrupt="raise"`` leaves the state that was written last. A damaged file, or one of another
        problem (as the fits of ``GridSearchCV`` would be), raises ``ValueError`` and is not changed. A write
        that fails is a warning. With MPI, rank 0 alone reads and writes the file.
    random_state : int, RandomState or None, default=None
        Seed of the order in which samples are visited. None is a fixed seed: fits are reproducible.
    verbose : int, default=0
        1 shows progress (a bar if tqdm is installed); 2 shows lines, and at the end what took the time.
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
    class_weight_ : ndarray of shape (m,)
        The factor of ``C`` of each class.
    support_ : ndarray of shape (n_SV,)
        Row numbers of the support vectors, ascending; among the rows of all ranks with ``engine="mpi"``.
    support_vectors_ : {ndarray, sparse array} of shape (n_SV, n_features)
        The support vectors; sparse if X was, and empty for a precomputed kernel.
    n_support_ : ndarray of shape (m,)
        Number of support vectors of each class.
    dual_coef_ : ndarray of shape (n_SV, m), or (n_SV, 1) for "c-svc"
        Their coefficients α: one row per support vector and one column per class, while ``SVC`` has rows for
        classes. Scores are Σ_i α_i K(x_i, x) plus the bias, whatever the machine.
    coef_ : ndarray of shape (m, n_features), or (1, n_features) for two classes
        Weights, for a linear kernel only: scores are ``X @ coef_.T + intercept_``.
    intercept_ : ndarray of shape (m,), or (1,) for two classes
        Bias of each class (zeros without a bias); for two classes the second's minus the first's.
    bias_ : {"none", "regularized", "free"}
        The kind of bias that was used.
    n_iter_ : int
        Outer iterations.
    status_ : Status
        Why the solver stopped.
    fit_status_ : int
        0 if it converged, 1 if not.
    violation_ : float
        Largest KKT violation, in units of the margin.
    primal_objective_, dual_objective_, duality_gap_ : float
        Certified in float64; the dual is minimised, and the gap is their sum. The gap is a proof for
        positive semidefinite kernels only.
    trace_ : Trace
        One row an outer iteration; ``trace_.info`` has what was used and, as "profile", the seconds of each
        phase.
    shape_fit_ : tuple of int
        Shape of the training data.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
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

    A fit that may be killed, and that goes on when the program is started again:

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "iris.checkpoint")
    >>> model = KernelSVC(C=10, checkpoint=(path, 300)).fit(X, y)  # writes every five minutes
    >>> again = KernelSVC(C=10, checkpoint=path).fit(X, y)
    >>> again.trace_.info["checkpoint"]["resumed"]["iterations"] == model.n_iter_
    True
    """

    _not_stored = frozenset({"_scorer"})

    def __init__(
        self,
        machine: str = "crammer-singer",
        C: float = 1.0,
        *,
        kernel: str | Callable[[Any, Any], Any] | Kernel = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        bias: str = "auto",
        solver: str | Decomposition = "auto",
        tol: float = 1e-3,
        max_iter: int = -1,
        time_limit: float | None = None,
        cache_size: float | str = "auto",
        working_set_size: int | str = "auto",
        shrinking: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        engine: str | Mpi = "auto",
        n_threads: int | None = None,
        dtype: str = "auto",
        warm_start: bool = False,
        checkpoint: CheckpointSetting = None,
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
        self.checkpoint = checkpoint
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
            Training data, on the host or (CuPy, PyTorch, JAX) on a GPU; (n_samples, n_samples) kernel values
            for ``kernel="precomputed"``. Integers of 8 or 16 bits and bool are kept as they are; they, and
            floats that are such integers times one scale (``X / 255``), have exact integer kernels of their
            own. ``trace_.info["kernel_form"]`` says which.
            A callable kernel also gets strings, objects, or an array of any shape, as they are; a list of
            them becomes an array. With ``engine="mpi"`` every rank gives the same data, or its own rows: then
            the rows of all ranks count, in the order of the ranks. For ``kernel="precomputed"`` a row has a
            value for each of these.
        y : array-like of shape (n_samples,)
            Labels of any kind.
        sample_weight : array-like of shape (n_samples,) or None
            Factors of ``C`` for each sample. Samples of weight 0 are left out, but their labels stay in
            ``classes_``.

        Returns
        -------
        self : KernelSVC
            The fitted estimator.
        """
        setting = self._setting_for(X)
        y, sample_weight = numpy_array(y), numpy_array(sample_weight)
        team = setting.assemble()
        with team.together():
            team.attempt(self._check_params)
            self._check_same_parameters(team)
            method = self._method(setting)
            first = method.first_share(self.machine)
            X, y, sample_weight = own_rows(team, setting.data, X, y, sample_weight, first)
            X, y = training_data(self, self._make_kernel(), X, y, team, setting.takes_device_data)
            rows = self._rows(y, sample_weight, team)
            factors = class_factors(self.class_weight, rows.labels, rows.y, rows.weight, team)
            C = team.attempt(lambda: sample_costs(self.C, factors, rows.y, rows.weight))
            given = Shard(len(y), team)
            task = self._task(X, rows, given, C)
            kept, bias = given.first + rows.kept, self._kind_of_bias()
            model = ModelMaker(task, rows.labels, given.n, kept, factors, bias, setting.place)
            solution, made = self._solve(setting, method, task, model, X, y)
            attributes = model.of(solution) if made is None else made  # the engine's memory is free again
            self._store_model(attributes, setting.model == "all" or team.rank == 0)
            self._store_certificate(solution)
            point = task, solution.support, solution.coef
            doubts = score_rounding(*point), score_asymmetry(*point)
            if team.rank == 0:
                self._warn_unless_proved(solution, *doubts)
        return self

    def _store_model(self, attributes: dict[str, Any], complete: bool) -> None:
        """Take over a model: all of it, or what a process without the model has too."""
        for name, value in attributes.items():
            if complete or name in EVERYWHERE:
                setattr(self, name, value)
            elif hasattr(self, name):  # of the model of an earlier fit
                delattr(self, name)

    # -- predict -----------------------------------------------------------------------------------
    def decision_function(self, X: Any) -> Any:
        """Scores of every class; for two classes the second score minus the first, as in scikit-learn.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data, or (n_samples, n_training_samples) kernel values.

        Returns
        -------
        scores : array of shape (n_samples, m) or (n_samples,)
            The largest score is the predicted class. On a GPU, of the kind of X, if X is there; else NumPy's.
        """
        return self._scored(X).handed_back()

    def predict(self, X: Any) -> Any:
        """The class with the largest score.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            New data, or (n_samples, n_training_samples) kernel values.

        Returns
        -------
        labels : array of shape (n_samples,)
            Predicted labels; the smallest in a tie. If X is on a GPU, so are they if they are numbers.
        """
        return self._scored(X).labels(self.classes_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the samples whose label is predicted.

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
        accuracy : float
            Between 0 and 1.
        """
        predicted = numpy_array(self.predict(X))
        return float(accuracy_score(numpy_array(y), predicted, sample_weight=numpy_array(sample_weight)))

    def _scored(self, X: Any) -> Scored:
        """Scores of new samples, and the samples."""
        self._check_has_model()
        data = new_data(self, self._kernel, X)
        return Scored(data, self._margins(data))

    def _margins(self, X: Data) -> Any:
        """``decision_function`` of checked samples, where these are."""
        if self._scorer.coef is not self.dual_coef_:
            self._prepare_scorer()
        scores = margins(self._scorer(X, effective_threads(self.n_threads)))
        return scores + beside(X, self.intercept_)

    def _prepare_scorer(self) -> None:
        """Make what prediction needs; support vectors are laid out when the first data come, and stay so."""
        self._scorer = Scorer(self._kernel, self._support, self.dual_coef_, self._setting().place)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled model."""
        if state.get("machine") == "c-svc" and state["bias"] == "none":  # the default of version 0.1.0
            state = state | {"bias": "auto"}
        super().__setstate__(state)
        if not hasattr(self, "dual_coef_"):
            return
        if not hasattr(self, "bias_"):  # version 0.1.0 had one intercept per class, and no bias="auto"
            self.bias_, self._class_bias = self._kind_of_bias(), self.intercept_
            self.intercept_ = intercept(self._class_bias)
        self._prepare_scorer()
