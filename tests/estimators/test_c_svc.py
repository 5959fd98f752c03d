"""The binary machine with a free bias through the estimator, against the oracle and scikit-learn's SVC."""

import pickle

import numpy as np
import pytest
from helpers import audit, unfinished
from oracle import certify, codes, full_alpha, kernel_matrix, least_violation, solve
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from multimargin import Decomposition, KernelSVC
from multimargin.inner import CoordinateDescent, ProjectedGradient
from multimargin.inner.box_interior_point import BoxInteriorPoint
from multimargin.inner.pair_descent import PairDescent
from multimargin.inner.variable_projection import VariableProjection
from multimargin.solution import Status
from multimargin.working_set import Growing, SvmLight

TOL = 1e-3
NAMED = ("auto", "vpdt", "svm-light")
INNER = (VariableProjection(), ProjectedGradient(), PairDescent(), BoxInteriorPoint())
BY_HAND = {
    f"{type(rule).__name__} + {inner.name}": Decomposition(rule, inner)
    for inner in INNER
    for rule in (SvmLight(n_sp=24, n_c=12), Growing(start=16, whole=20, least=8))
}
SOLVERS = {name: name for name in NAMED} | BY_HAND
every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_named = pytest.mark.parametrize("solver", NAMED)
every_engine = pytest.mark.parametrize("engine", ["numpy", "cpu"])


def svc(solver="auto", **settings):
    return KernelSVC("c-svc", solver=SOLVERS.get(solver, solver), **settings)


def gaussian(X, Y=None, gamma=0.05):
    return kernel_matrix("rbf", X, Y, gamma=gamma)


def judge(model, K, y, C, tol=TOL):
    """``audit``, and what holds for this machine only."""
    found = audit(model, K, y, C, tol)
    C = np.broadcast_to(np.asarray(C, dtype=float), (len(y),))
    labels, alpha = codes(model, y), full_alpha(model, len(y))
    assert model.dual_coef_.shape == (len(model.support_), 1)
    assert model.intercept_.shape == (1,)
    best = certify(K, labels, alpha, C, "c-svc", "free")
    assert best.primal <= found.primal * (1 + 1e-9)
    assert best.gap <= found.gap + 1e-9 * found.primal
    if tol is not None:
        assert model.violation_ <= tol
        assert least_violation(K @ alpha, labels, alpha, C) <= model.violation_ * (1 + 1e-6) + 1e-9
    return found


@pytest.fixture(scope="module")
def pair(wine):
    """Two classes of wine that overlap in their first four features: 80 rows, bounded and free ones."""
    X, y = wine
    return X[y < 2][:, 1:5], y[y < 2]


@pytest.fixture(scope="module")
def cancer():
    """300 rows of scikit-learn's breast cancer."""
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:300], y[:300]


# -- optimality -----------------------------------------------------------------------------------------
@every_engine
@every_solver
def test_converges(solver, engine, pair):
    X, y = pair
    model = svc(solver, C=2.0, gamma=0.3, engine=engine).fit(X, y)
    assert model.status_ is Status.CONVERGED
    judge(model, gaussian(X, gamma=0.3), y, 2.0)


@every_solver
def test_optimum_is_the_oracles(solver, pair):
    X, y = pair
    K, C = gaussian(X, gamma=0.3), np.linspace(0.5, 3.0, len(y))
    model = svc(solver, gamma=0.3, tol=1e-6).fit(X, y, sample_weight=C)
    found = judge(model, K, y, C, 1e-6)
    alpha, b = solve(K, y, C, "c-svc", free=True)
    best = certify(K, y, alpha, C, "c-svc", b)
    assert found.dual == pytest.approx(best.dual, rel=1e-6)
    np.testing.assert_allclose(K @ full_alpha(model, len(y)), K @ alpha, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@every_named
def test_real_data(solver, dtype, cancer):
    X, y = cancer
    model = svc(solver, C=4.0, gamma=0.02, dtype=dtype).fit(X, y)
    judge(model, gaussian(X, gamma=0.02), y, 4.0)


KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.2},
    "poly": {"gamma": 0.2, "coef0": 1.0, "degree": 2},
    "laplacian": {"gamma": 0.2},
}


@pytest.mark.parametrize("form", ["dense", "sparse", "precomputed", "callable"])
@pytest.mark.parametrize("kernel", KERNELS)
@every_named
def test_kernels_and_forms(solver, kernel, form, pair):
    X, y = pair
    X, y = X * (np.random.default_rng(0).random(X.shape) < 0.6), y
    options = KERNELS[kernel]
    K = kernel_matrix(kernel, X, **options)
    given, settings = {
        "dense": (X, {"kernel": kernel, **options}),
        "sparse": (sparse.csr_array(X), {"kernel": kernel, **options}),
        "precomputed": (K, {"kernel": "precomputed"}),
        "callable": (X, {"kernel": lambda A, B: kernel_matrix(kernel, A, B, **options)}),
    }[form]
    model = svc(solver, C=2.0, **settings).fit(given, y)
    judge(model, K, y, 2.0)
    scores = (K @ full_alpha(model, len(y)))[:, 0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(given), scores, atol=1e-4 * (1 + np.abs(scores).max()))


# -- against scikit-learn -------------------------------------------------------------------------------
def peer_dual(peer, K):
    """The minimised dual of a fitted SVC, from its coefficients."""
    alpha = np.zeros(len(K))
    alpha[peer.support_] = peer.dual_coef_[0]
    return 0.5 * alpha @ K @ alpha - np.abs(alpha).sum()


def bounded(model, C):
    """How many coefficients are at their bound."""
    return int((np.abs(np.ravel(model.dual_coef_)) >= C[model.support_] * (1 - 1e-8)).sum())


def same_count(ours, theirs):
    """To 1%, and at least one."""
    return abs(ours - theirs) <= max(1, 0.01 * theirs)


def digit_rows(n):
    X, y = load_digits(return_X_y=True)
    return X[:n] / 16.0, np.isin(y[:n], (3, 8, 9)).astype(int)


LIKE_SVC = {
    "cancer": (lambda request: request.getfixturevalue("cancer"), 1.0, 0.02),
    "cancer, C = 100": (lambda request: request.getfixturevalue("cancer"), 100.0, 0.02),
    "overlapping": (lambda request: request.getfixturevalue("pair"), 0.5, 0.5),
    "digits": (lambda request: digit_rows(700), 10.0, 0.02),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", LIKE_SVC)
@every_named
def test_the_same_model_as_scikit_learn(solver, case, request):
    data, C, gamma = LIKE_SVC[case]
    X, y = data(request)
    K = gaussian(X, gamma=gamma)
    ours = svc(solver, C=C, gamma=gamma, tol=1e-5).fit(X, y)
    judge(ours, K, y, C, 1e-5)
    peer = SVC(C=C, gamma=gamma, tol=1e-6).fit(X, y)
    assert ours.dual_objective_ == pytest.approx(peer_dual(peer, K), rel=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-4)
    costs = np.full(len(y), C)
    assert same_count(len(ours.support_), len(peer.support_))
    assert same_count(bounded(ours, costs), bounded(peer, costs))


@every_named
def test_class_and_sample_weights_as_scikit_learn(solver, cancer):
    X, y = cancer
    K, weight = gaussian(X, gamma=0.02), np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    for class_weight in (None, {0: 0.3, 1: 4.0}, "balanced"):
        weights = None if class_weight == "balanced" else weight  # SVC's "balanced" is blind to weights
        ours = svc(solver, C=2.0, gamma=0.02, class_weight=class_weight, tol=1e-5)
        peer = SVC(C=2.0, gamma=0.02, class_weight=class_weight, tol=1e-6)
        ours.fit(X, y, sample_weight=weights)
        peer.fit(X, y, sample_weight=weights)
        share = dict(enumerate(peer.class_weight_))
        C = 2.0 * np.array([share[label] for label in y]) * (1.0 if weights is None else weight)
        judge(ours, K, y, C, 1e-5)
        assert ours.dual_objective_ == pytest.approx(peer_dual(peer, K), rel=1e-6)
        np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-4)


def test_integer_weights_are_repeated_rows(pair):
    X, y = pair
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = svc(C=0.7, gamma=0.3, tol=1e-6).fit(X, y, sample_weight=times)
    repeated = svc(C=0.7, gamma=0.3, tol=1e-6).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.dual_objective_ == pytest.approx(repeated.dual_objective_, rel=1e-7)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-4)


# -- degenerate cases -----------------------------------------------------------------------------------
@every_solver
@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_extreme_costs(C, solver, pair):
    X, y = pair
    model = svc(solver, C=C, gamma=2.0).fit(X, y)
    judge(model, gaussian(X, gamma=2.0), y, C)


@every_solver
@pytest.mark.parametrize("light", [0, 1])
def test_one_class_nearly_weightless(light, solver, pair):
    """Its rows all come to their bound, and the other class can only follow that far."""
    X, y = pair
    C = np.where(y == light, 1e-7, 1.0)
    model = svc(solver, gamma=0.3).fit(X, y, sample_weight=C)
    judge(model, gaussian(X, gamma=0.3), y, C)
    assert (model.predict(X) == 1 - light).all()


@pytest.mark.parametrize("weightless", [0, 1])
def test_a_class_without_weight_is_no_class(weightless, pair):
    X, y = pair
    with pytest.raises(ValueError, match="At least 2 classes"):
        svc().fit(X, y, sample_weight=np.where(y == weightless, 0.0, 1.0))


def normal(n=12):
    return np.random.default_rng(5).normal(size=(n, 3)), np.arange(n) % 2


def with_zero_rows():
    X, y = normal()
    X[::4] = 0
    return X, y


ODD = {
    "two samples": lambda: normal(2),
    "one against many": lambda: (normal()[0], np.array([1] + [0] * 11)),
    "many against one": lambda: (normal()[0], np.array([1] * 11 + [0])),
    "zero rows": with_zero_rows,
    "all zero": lambda: (np.zeros((12, 3)), normal()[1]),
    "equal rows": lambda: (np.ones((11, 3)), normal(11)[1]),
    "equal rows, balanced": lambda: (np.ones((12, 3)), normal()[1]),
    "tiny kernel": lambda: (1e-6 * normal()[0], normal()[1]),
    "contradictions": lambda: (np.repeat(normal(6)[0], 2, axis=0), normal()[1]),
}


@every_engine
@pytest.mark.parametrize("data", ODD)
@every_solver
def test_odd_data(solver, data, engine):
    X, y = ODD[data]()
    model = svc(solver, kernel="linear", engine=engine).fit(X, y)
    found = judge(model, kernel_matrix("linear", X), y, 1.0)
    assert np.isfinite(model.intercept_).all()
    assert found.gap <= 1e-3 * len(y)


def test_two_samples_have_the_known_machine():
    """K = I: alpha = ±1, b = 0 where C allows; ±C below."""
    for C, expected in ((5.0, 1.0), (0.25, 0.25)):
        model = svc(C=C, kernel="linear").fit(np.eye(2), [0, 1])
        np.testing.assert_allclose(model.dual_coef_, [[-expected], [expected]], atol=1e-9)
        np.testing.assert_allclose(model.decision_function(np.eye(2)).sum(), 0, atol=1e-9)


def test_identical_points_are_given_to_the_heavier_class():
    X = np.ones((10, 2))
    for labels in (np.arange(10) < 3, np.arange(10) >= 3):
        y = labels.astype(int)
        model = svc(gamma=1.0).fit(X, y)
        assert (model.predict(X) == np.bincount(y).argmax()).all()
        assert model.primal_objective_ == pytest.approx(2.0 * 3)


def test_far_constants_of_the_kernel_change_nothing(pair):
    X, y = pair
    K = gaussian(X, gamma=0.3)
    plain, shifted = (svc(kernel="precomputed", C=2.0, tol=1e-6).fit(K + c, y) for c in (0.0, 7.0))
    assert shifted.dual_objective_ == pytest.approx(plain.dual_objective_, rel=1e-6)
    np.testing.assert_allclose(shifted.decision_function(K + 7.0), plain.decision_function(K), atol=1e-4)


# -- the estimator --------------------------------------------------------------------------------------
def test_labels_of_any_kind_and_the_sign(pair):
    X, y = pair
    names = np.array(["ham", "spam"])
    model = svc(gamma=0.3, C=2.0).fit(X, names[y])
    decision = model.decision_function(X)
    assert decision.shape == (len(y),)
    assert model.classes_.tolist() == ["ham", "spam"]
    np.testing.assert_array_equal(model.predict(X), names[(decision > 0).astype(int)])
    np.testing.assert_allclose(decision, svc(gamma=0.3, C=2.0).fit(X, 2 * y - 1).decision_function(X))
    mirrored = svc(gamma=0.3, C=2.0, tol=1e-6).fit(X, 1 - y)
    exact = svc(gamma=0.3, C=2.0, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(mirrored.decision_function(X), -exact.decision_function(X), atol=1e-4)


def test_the_bias_is_free_and_no_other_is_taken(pair):
    X, y = pair
    plain, named = (svc(gamma=0.3, bias=bias).fit(X, y) for bias in ("auto", "free"))
    assert plain.bias_ == named.bias_ == "free"
    np.testing.assert_array_equal(plain.decision_function(X), named.decision_function(X))
    for bias in ("none", "regularized"):
        with pytest.raises(ValueError, match=rf"bias='auto'.*{bias}.*one-vs-rest"):
            svc(bias=bias).fit(X, y)


def test_more_classes_are_refused_with_the_choices(wine):
    with pytest.raises(ValueError, match="Only binary") as error:
        svc().fit(*wine)
    text = str(error.value)
    multiclass = ("crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest")
    for choice in (*multiclass, "OneVsOneClassifier", "OneVsRestClassifier"):
        assert choice in text


@pytest.mark.parametrize("solver", ["mcsvm", "ell-based", "dasmc", "msvmpack"])
def test_solvers_of_other_machines_name_their_own(solver, pair):
    with pytest.raises(ValueError, match=r"c-svc.*use .*(smo|svm-light)"):
        svc(solver, gamma=0.3).fit(*pair)


@pytest.mark.parametrize("solver", ["vpdt", "svm-light"])
def test_methods_of_this_machine_refuse_others(solver, wine):
    with pytest.raises(ValueError, match=r"coordinate-descent|sort"):
        KernelSVC(solver=solver).fit(*wine)


def test_coordinate_descent_by_hand_is_refused(pair):
    with pytest.raises(ValueError, match=r"balanced box.*smo"):
        svc(Decomposition(Growing(), CoordinateDescent())).fit(*pair)


def test_wrappers_make_it_multiclass(wine):
    X, y = wine
    for wrapper in (OneVsOneClassifier, OneVsRestClassifier):
        ours = wrapper(svc(gamma=0.05, tol=1e-5)).fit(X, y)
        peer = wrapper(SVC(gamma=0.05, tol=1e-6)).fit(X, y)
        np.testing.assert_array_equal(ours.predict(X), peer.predict(X))
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-3)


def test_labels_that_do_not_fit(wine):
    X, y = wine[0][wine[1] < 2], wine[1][wine[1] < 2]
    flipped = [3, 50, 77]
    y[flipped] = 1 - y[flipped]
    model = svc(gamma=0.05).fit(X, y)
    assert set(model.suspects(3)) == set(flipped)
    eta = model.label_distribution(np.arange(len(y)))
    assert eta.shape == (len(y), 2)
    assert (eta >= 0).all()
    np.testing.assert_allclose(eta.sum(axis=1), 1.0)
    rest = np.setdiff1d(np.arange(len(y)), model.support_)
    np.testing.assert_array_equal(eta[rest], np.eye(2)[y[rest]])
    other = eta[np.arange(len(y)), 1 - y]
    np.testing.assert_allclose(other[model.support_], np.abs(model.dual_coef_[:, 0]), atol=1e-12)


def test_pickle(pair):
    X, y = pair
    model = svc(gamma=0.3).fit(X, y)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(back.label_distribution(0), model.label_distribution(0))


@every_named
def test_warm_start(solver, cancer):
    """From the solution little is left to do; from another cost or other labels the answer is right too."""
    X, y = cancer
    K = gaussian(X, gamma=0.02)
    model = svc(solver, C=2.0, gamma=0.02, warm_start=True).fit(X, y)
    cold, dual = model.n_iter_, model.dual_objective_
    model.fit(X, y)
    assert model.n_iter_ <= max(2, cold // 4)
    assert model.dual_objective_ <= dual + 1e-9 * abs(dual)
    for C, labels in ((0.5, y), (8.0, y), (2.0, 1 - y), (2.0, y[::-1])):
        model.set_params(C=C).fit(X, labels)
        judge(model, K, labels, C)


@every_engine
@pytest.mark.parametrize("seed", [6, 11, 12])
def test_warm_start_with_much_smaller_costs(seed, engine):
    """What is left of the old point in the new box has sums far from zero, and little room to change that."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 3)), rng.integers(2, size=40)
    weights = 10.0 ** rng.uniform(-3, 0, 40)
    model = svc(C=1e3, gamma=0.3, engine=engine, warm_start=True).fit(X, y)
    model.fit(X, y, sample_weight=weights)
    judge(model, gaussian(X, gamma=0.3), y, 1e3 * weights)


def test_warm_start_after_another_machine(pair):
    X, y = pair
    model = KernelSVC(gamma=0.3, warm_start=True).fit(X, y)
    model.set_params(machine="c-svc").fit(X, y)
    judge(model, gaussian(X, gamma=0.3), y, 1.0)
    model.set_params(machine="crammer-singer").fit(X, y)
    audit(model, gaussian(X, gamma=0.3), y, 1.0, TOL)


@every_named
def test_a_run_cut_short_is_feasible_and_says_so(solver, cancer):
    X, y = cancer
    with unfinished():
        model = svc(solver, C=100.0, gamma=0.02, tol=1e-9, max_iter=1, working_set_size=20).fit(X, y)
    judge(model, gaussian(X, gamma=0.02), y, 100.0, tol=None)
    assert model.status_ is Status.MAX_ITER


@every_named
def test_small_memory(solver, cancer):
    """A cache of a few rows, and blocks as large as that allows."""
    X, y = cancer
    model = svc(solver, C=4.0, gamma=0.02, cache_size=0.05, working_set_size=80, dtype="float32").fit(X, y)
    judge(model, gaussian(X, gamma=0.02), y, 4.0)


def test_engines_agree(pair):
    X, y = pair
    models = [svc(C=2.0, gamma=0.3, tol=1e-6, engine=engine).fit(X, y) for engine in ("numpy", "cpu")]
    duals = [model.dual_objective_ for model in models]
    assert duals[0] == pytest.approx(duals[1], rel=1e-8)
    np.testing.assert_allclose(*(model.decision_function(X) for model in models), atol=1e-4)


def test_threads_give_the_same_optimum(cancer):
    X, y = cancer
    one, two = (svc(C=4.0, gamma=0.02, n_threads=n, tol=1e-5).fit(X, y) for n in (1, 2))
    assert one.dual_objective_ == pytest.approx(two.dual_objective_, rel=1e-7)


@pytest.mark.slow
@parametrize_with_checks(
    [KernelSVC("c-svc", engine=engine) for engine in ("cpu", "numpy")]
    + [KernelSVC("c-svc", solver=solver, tol=1e-9) for solver in ("vpdt", "svm-light")]
)
def test_estimator_checks(estimator, check):
    check(estimator)
