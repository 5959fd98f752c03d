"""Every machine with every bias through the public estimator, judged by the oracle in float64."""

import numpy as np
import pytest
from helpers import audit, solver_for
from oracle import MACHINES, certify, codes, full_alpha, kernel_matrix, solve
from scipy import sparse
from scipy.optimize import linprog
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from multimargin import KernelSVC

TOL = 1e-3
OURS = tuple(name for name in MACHINES if name != "c-svc")
NEW = tuple(name for name in OURS if name != "crammer-singer")
BIASES = ("none", "regularized", "free")
# What other suites do not cover: they are about Crammer-Singer without a free bias.
NEW_PAIRS = [(machine, bias) for machine in OURS for bias in BIASES if machine in NEW or bias == "free"]
PAIRS = [(machine, bias) for machine in OURS for bias in BIASES]
KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.2},
    "poly": {"gamma": 0.2, "coef0": 1.0, "degree": 2},
    "precomputed": {"gamma": 0.3},  # values of the Gaussian kernel
}
FORMS = [(kernel, "dense") for kernel in KERNELS] + [(k, "sparse") for k in KERNELS if k != "precomputed"]
ENGINES = {"numpy": "dasmc", "cpu": "auto"}  # with the solver that meets every kernel and form
WAYS = [(*form, *way) for form in FORMS for way in ENGINES.items()] + [
    (kernel, form, engine, solver)
    for kernel, form in (("rbf", "dense"), ("linear", "sparse"))
    for engine, solver in (("numpy", "growing"), ("cpu", "growing"), ("cpu", "dasmc"))
]
GAMMA = 0.2


def gaussian(X, bias="none", gamma=GAMMA):
    return kernel_matrix("rbf", X, gamma=gamma, offset=float(bias == "regularized"))


def pairs_of(pairs):
    return pytest.mark.parametrize(("machine", "bias"), pairs)


# -- optimality -----------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "form", "engine", "solver"), WAYS)
@pairs_of(NEW_PAIRS)
def test_converges(machine, bias, kernel, form, engine, solver, iris):
    """The certificate is true and as small as promised, and the decision is that of the coefficients."""
    rows = slice(0, 42 if engine == "cpu" else 9)
    X, y = iris[0][rows] * (np.random.default_rng(0).random(iris[0][rows].shape) < 0.6), iris[1][rows]
    options = KERNELS[kernel]
    name = "rbf" if kernel == "precomputed" else kernel
    K = kernel_matrix(name, X, offset=float(bias == "regularized"), **options)
    given = kernel_matrix(name, X, **options) if kernel == "precomputed" else X
    given = sparse.csr_array(given) if form == "sparse" else given
    settings = {
        "kernel": kernel,
        "bias": bias,
        "solver": solver_for(solver, machine),
        "engine": engine,
        "tol": TOL,
    }
    model = KernelSVC(machine, C=2.0, **settings, **options).fit(given, y)
    found = audit(model, K, y, 2.0, TOL)
    np.testing.assert_allclose(model.violation_, found.psi.max() / found.kappa, rtol=1e-6, atol=1e-9)

    scores = K @ full_alpha(model, len(y)) + (model.intercept_ if bias == "free" else 0.0)
    decision = model.decision_function(given)
    np.testing.assert_allclose(decision, scores, atol=1e-4 * (1 + np.abs(scores).max()))
    np.testing.assert_array_equal(model.predict(given), model.classes_[decision.argmax(axis=1)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "options"), [("digits", {}), ("wine", {"dtype": "float32"}), ("blobs", {"working_set_size": 16})]
)
@pairs_of(NEW_PAIRS)
def test_real_data(machine, bias, data, options, request):
    X, y = request.getfixturevalue(data)
    model = KernelSVC(machine, C=4.0, gamma=0.05, bias=bias, tol=TOL, **options).fit(X, y)
    audit(model, gaussian(X, bias, 0.05), y, 4.0, TOL)


@pairs_of(PAIRS)
def test_optimum_is_the_oracles(machine, bias, iris):
    X, y = iris
    K, C = gaussian(X, bias), np.linspace(0.5, 3.0, len(y))
    model = KernelSVC(machine, gamma=GAMMA, bias=bias, tol=1e-6).fit(X, y, sample_weight=C)
    found = audit(model, K, y, C, 1e-6)
    alpha, b = solve(K, y, C, machine, free=bias == "free")
    best = certify(K, y, alpha, C, machine, b)
    assert found.dual == pytest.approx(best.dual, rel=1e-6)
    np.testing.assert_allclose(K @ full_alpha(model, len(y)), K @ alpha, atol=1e-3)


# -- two classes ----------------------------------------------------------------------------------------
# machine: (a, c, f): D(C) = a D_CSVC(c C), and the decision s_1 - s_0 is f times that of the binary machine.
BINARY = {
    "crammer-singer": (0.5, 2.0, 1.0),
    "weston-watkins": (0.5, 2.0, 1.0),
    "lee-lin-wahba": (2.0, 0.5, 2.0),
    "one-vs-rest": (2.0, 1.0, 2.0),
}


@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("machine", BINARY)
def test_two_classes_are_a_binary_machine(machine, bias, iris):
    X, y = iris[0][iris[1] > 0], iris[1][iris[1] > 0] - 1
    factor, cost, scale = BINARY[machine]
    K, free = gaussian(X), bias == "free"
    model = KernelSVC(machine, C=1.5, gamma=GAMMA, bias=bias, tol=1e-7).fit(X, y)
    audit(model, K, y, 1.5, 1e-7)
    alpha, b = solve(K, y, cost * 1.5, "c-svc", free=free)
    binary = certify(K, y, alpha, cost * 1.5, "c-svc", b)
    assert model.dual_objective_ == pytest.approx(factor * binary.dual, rel=1e-6)
    if not free:  # a free bias need not be unique
        np.testing.assert_allclose(model.decision_function(X), scale * (K @ alpha)[:, 0], atol=1e-3)


def test_one_vs_rest_with_a_free_bias_is_scikit_learns(wine):
    """The dual is the sum of those of m C-SVC machines, trained by LIBSVM."""
    X, y = wine
    model = KernelSVC("one-vs-rest", C=2.0, gamma=0.05, bias="free", tol=1e-5).fit(X, y)
    dual = 0.0
    for label in model.classes_:
        peer = SVC(C=2.0, gamma=0.05, tol=1e-7).fit(X, y == label)
        b = np.zeros(len(y))
        b[peer.support_] = peer.dual_coef_[0]
        dual += 0.5 * b @ gaussian(X, gamma=0.05) @ b - np.abs(b).sum()
    assert model.dual_objective_ == pytest.approx(dual, rel=1e-5)


# -- weights --------------------------------------------------------------------------------------------
@pairs_of(PAIRS)
def test_integer_weights_are_repeated_rows(machine, bias, iris):
    X, y = iris
    times = np.random.default_rng(0).integers(0, 4, len(y))
    settings = {"C": 0.7, "gamma": GAMMA, "bias": bias, "tol": 1e-6}
    weighted = KernelSVC(machine, **settings).fit(X, y, sample_weight=times)
    repeated = KernelSVC(machine, **settings).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.dual_objective_ == pytest.approx(repeated.dual_objective_, rel=1e-6)
    scores = [K_scores(model, X) for model in (weighted, repeated)]
    np.testing.assert_allclose(*scores, atol=1e-3)


def K_scores(model, X):  # noqa: N802
    """Scores without the free bias, which need not be unique."""
    return model.decision_function(X) - (model.intercept_ if model.bias_ == "free" else 0.0)


@pairs_of(PAIRS)
def test_class_weights(machine, bias, blobs):
    X, y = blobs[0][:60], blobs[1][:60]
    weights = {0: 0.2, 2: 5.0}
    C = 1.5 * np.array([weights.get(label, 1.0) for label in y])
    model = KernelSVC(machine, C=1.5, gamma=0.1, bias=bias, class_weight=weights).fit(X, y)
    audit(model, gaussian(X, bias, 0.1), y, C, TOL)


# -- hard cases -----------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("solver", ["auto", "dasmc"])
@pytest.mark.parametrize("C", [1e-6, 1e6])
@pairs_of(NEW_PAIRS)
def test_extreme_costs(machine, bias, C, solver, iris):
    X, y = iris
    model = KernelSVC(machine, C=C, gamma=GAMMA, bias=bias, solver=solver).fit(X, y)
    audit(model, gaussian(X, bias), y, C, TOL)


def normal(n=12, classes=3):
    return np.random.default_rng(5).normal(size=(n, 3)), np.arange(n) % classes


def with_zero_rows():
    X, y = normal()
    X[::4] = 0
    return X, y


ODD = {
    "one-sample classes": lambda: (normal()[0], np.array([0] * 8 + [1, 2, 3, 4])),
    "as many classes as samples": lambda: normal(7, 7),
    "two samples": lambda: normal(2),
    "zero rows": with_zero_rows,
    "all zero": lambda: (np.zeros((12, 3)), normal()[1]),
    "equal rows": lambda: (np.ones((11, 3)), normal(11)[1]),
    "tiny kernel": lambda: (1e-6 * normal()[0], normal()[1]),
}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("data", ODD)
@pairs_of(NEW_PAIRS)
def test_odd_data(machine, bias, data, engine):
    X, y = ODD[data]()
    solver = solver_for(ENGINES[engine], machine)
    model = KernelSVC(machine, kernel="linear", bias=bias, engine=engine, solver=solver).fit(X, y)
    audit(model, kernel_matrix("linear", X, offset=float(bias == "regularized")), y, 1.0, TOL)


@pairs_of(NEW_PAIRS)
def test_warm_start(machine, bias, wine):
    """From the solution little is left to do; from another cost or other labels the answer is right too."""
    X, y = wine
    K = gaussian(X, bias, 0.05)
    model = KernelSVC(machine, C=2.0, gamma=0.05, bias=bias, warm_start=True).fit(X, y)
    cold, dual = model.n_iter_, model.dual_objective_
    model.fit(X, y)
    assert model.n_iter_ <= max(2, cold // 4)
    assert model.dual_objective_ <= dual + 1e-9 * abs(dual)
    for C, labels in ((0.5, y), (8.0, y), (2.0, (y + 1) % 3), (2.0, y[::-1])):
        model.set_params(C=C).fit(X, labels)
        audit(model, K, labels, C, TOL)


# -- what is special about a machine or a bias ----------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("machine", ["lee-lin-wahba", "msvm2"])
def test_scores_sum_to_zero(machine, bias, digits):
    X, y = digits
    model = KernelSVC(machine, C=3.0, gamma=0.02, bias=bias).fit(X[:100], y[:100])
    scores = model.decision_function(X[100:])
    assert np.abs(scores.sum(axis=1)).max() <= 1e-5 * np.abs(scores).max()
    assert abs(model.intercept_.sum()) <= 1e-9 * (1 + np.abs(model.intercept_).max())


def least_primal(K, y, alpha, C, machine):
    """min_b of the primal at alpha's scores, by linear programming: one slack for each loss term."""
    margin, cost, _ = MACHINES[machine]
    S, m = K @ alpha, alpha.shape[1]
    pair = margin.pairs(y, m)
    flat = lambda b: margin.shortfall(S + b, y)[pair]  # noqa: E731
    slope = np.array([flat(unit) - flat(np.zeros(m)) for unit in np.eye(m)]).T
    owner = np.nonzero(pair)[0] if cost.__name__ == "Largest" else np.arange(pair.sum())
    price = C if cost.__name__ == "Largest" else C[np.nonzero(pair)[0]]
    A = np.hstack([slope, -1.0 * (owner[:, None] == np.arange(len(price)))])
    bounds = [(None, None)] * m + [(0, None)] * len(price)
    centre = np.hstack([np.ones((1, m)), np.zeros((1, len(price)))]) if margin.sums_to_zero else None
    found = linprog(
        np.concatenate([np.zeros(m), price]),
        A,
        -flat(np.zeros(m)),
        centre,
        None if centre is None else [0.0],
        bounds,
    )
    return found.fun + 0.5 * (alpha * S).sum()


@pytest.mark.parametrize("solver", ["auto", "dasmc"])
@pytest.mark.parametrize("machine", [name for name in OURS if name != "msvm2"])
def test_free_bias_minimises_the_primal(machine, solver, blobs):
    """The intercept is the best for the scores, so that the gap is the smallest that alpha allows."""
    X, y = blobs[0][:60], blobs[1][:60]
    C = np.linspace(0.5, 2.0, 60)
    model = KernelSVC(machine, gamma=0.1, bias="free", solver=solver, tol=1e-2).fit(X, y, sample_weight=C)
    K = gaussian(X, gamma=0.1)
    found = audit(model, K, y, C, 1e-2)
    least = least_primal(K, codes(model, y), full_alpha(model, 60), C, machine)
    assert found.primal == pytest.approx(least, rel=1e-7)


def test_free_bias_minimises_the_smooth_primal(blobs):
    """M-SVM²: no small change of the intercept makes the primal smaller."""
    X, y = blobs[0][:60], blobs[1][:60]
    K = gaussian(X, gamma=0.1)
    model = KernelSVC("msvm2", gamma=0.1, bias="free", tol=1e-2).fit(X, y)
    found, alpha = audit(model, K, y, 1.0, 1e-2), full_alpha(model, 60)
    for step in 1e-4 * np.random.default_rng(0).normal(size=(50, 4)):
        step -= step.mean()
        moved = certify(K, y, alpha, 1.0, "msvm2", model.intercept_ + step)
        assert moved.primal >= found.primal * (1 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("machine", OURS)
def test_a_free_bias_absorbs_constants_of_the_kernel(machine, wine):
    X, y = wine
    K = gaussian(X, gamma=0.05)
    settings = {"C": 2.0, "kernel": "precomputed", "bias": "free", "tol": 1e-6}
    plain, shifted = (KernelSVC(machine, **settings).fit(K + c, y) for c in (0.0, 7.0))
    assert shifted.dual_objective_ == pytest.approx(plain.dual_objective_, rel=1e-6)
    np.testing.assert_array_equal(shifted.predict(K + 7.0), plain.predict(K))
    np.testing.assert_allclose(K_scores(shifted, K + 7.0), K_scores(plain, K), atol=1e-3)
    assert np.abs(full_alpha(plain, len(y)).sum(axis=0)).max() <= 1e-9 * 2.0 * len(y)


@pairs_of(NEW_PAIRS)
def test_labels_that_do_not_fit(machine, bias, wine):
    X, y = wine[0], wine[1].copy()
    flipped = [3, 50, 77]
    y[flipped] = (y[flipped] + 1) % 3
    model = KernelSVC(machine, gamma=0.05, bias=bias).fit(X, y)
    assert set(model.suspects(3)) == set(flipped)
    eta = model.label_distribution(np.arange(len(y)))
    assert (eta >= 0).all()
    np.testing.assert_allclose(eta.sum(axis=1), 1.0)
    rest = np.setdiff1d(np.arange(len(y)), model.support_)
    np.testing.assert_array_equal(eta[rest], np.eye(3)[y[rest]])
    own = eta[np.arange(len(y)), y]
    assert own[flipped].max() < np.median(own)


# -- the estimator --------------------------------------------------------------------------------------
@pytest.mark.slow
@parametrize_with_checks(
    # Weights and repetitions must agree to 1e-7; "auto" takes small problems so far only without a free bias.
    [KernelSVC(machine) for machine in NEW] + [KernelSVC(machine, bias="free") for machine in OURS]
)
def test_estimator_checks(estimator, check):
    check(estimator)


def test_unknown_machine():
    with pytest.raises(ValueError, match="weston-watkins"):
        KernelSVC("weston").fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("machine", NEW)
def test_solvers_of_one_machine_say_so(machine, iris):
    """The fixed-point update knows the simplex only; the message names updates that would do."""
    with pytest.raises(ValueError, match="sort"):
        KernelSVC(machine, solver="mcsvm").fit(*iris)
