"""Every machine of the linear estimator: the certificate against the oracle, and other solvers' optima."""

import numpy as np
import pytest
from helpers import audit_linear, machine_of, unfinished
from linear_cases import ANY_SIZE_IN_PARALLEL
from oracle import certify, solve
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC as PeerLinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from multimargin import KernelSVC, LinearSVC
from multimargin.linear.tuning import Tuning
from multimargin.solution import Status

NEW = [("weston-watkins", "hinge"), ("one-vs-rest", "hinge"), ("one-vs-rest", "squared_hinge")]
every_machine = pytest.mark.parametrize(("machine", "loss"), NEW)


# -- the oracle ------------------------------------------------------------------------------------
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("C", [0.03, 1.0, 30.0])
@pytest.mark.parametrize("m", [2, 3, 5])
@every_machine
def test_tiny_problems_have_the_optimum_of_a_dense_solver(machine, loss, m, C, intercept):
    rng = np.random.default_rng(m)
    X = np.round(rng.normal(size=(18, 4)), 1) * (rng.random((18, 4)) < 0.8)
    y = np.arange(18) % m
    weight = rng.uniform(0.5, 2.0, 18)
    model = LinearSVC(machine, C, loss=loss, fit_intercept=intercept, tol=1e-7, max_iter=-1)
    model.fit(sparse.csr_array(X), y, sample_weight=weight)
    found = audit_linear(model, X, y, C * weight, 1e-7)
    K = X @ X.T + float(intercept)
    name = machine_of(model)
    best = certify(K, y, solve(K, y, C * weight, name)[0], C * weight, name)
    scale = C * weight.sum()
    assert abs(found.dual - best.dual) <= 1e-6 * scale + best.gap
    assert abs(found.primal - best.primal) <= 1e-6 * scale + best.gap


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", [np.ascontiguousarray, sparse.csr_array])
@pytest.mark.parametrize("data", ["digits", "text"])
@every_machine
def test_storage_and_passes_alone(machine, loss, data, form, dtype, request):
    """A named subproblem takes no Newton steps: the descent itself gets there."""
    X, y = request.getfixturevalue(data)
    X = X.toarray() if sparse.issparse(X) else X
    X = form(X.astype(dtype))
    model = LinearSVC(machine, 0.1, loss=loss, subproblem="sort", tol=1e-4, max_iter=-1).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.trace_["working_set"].max() <= len(y)
    audit_linear(model, X, y, 0.1, 1e-4)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shrinking", [True, False])
@every_machine
def test_threads_and_shrinking(machine, loss, shrinking, threads, text, monkeypatch):
    monkeypatch.setattr(LinearSVC, "_tuning", ANY_SIZE_IN_PARALLEL)
    X, y = text
    options = {"shrinking": shrinking, "n_threads": threads, "tol": 1e-4, "max_iter": -1}
    model = LinearSVC(machine, loss=loss, **options).fit(X, y)
    assert model.trace_.info["n_threads"] == threads
    audit_linear(model, X, y, 1.0, 1e-4)


@every_machine
def test_class_and_sample_weights(machine, loss, text):
    X, y = text
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y))
    by_class = dict(enumerate(np.linspace(0.5, 2.0, 10)))
    model = LinearSVC(machine, loss=loss, class_weight=by_class, tol=1e-5).fit(X, y, sample_weight=weight)
    audit_linear(model, X, y, weight * np.array([by_class[label] for label in y]), 1e-5)


@pytest.mark.parametrize("intercept", [False, True])
@every_machine
def test_empty_rows(machine, loss, intercept, text):
    X, y = text
    X = X.toarray()
    X[::7] = 0.0
    model = LinearSVC(machine, loss=loss, fit_intercept=intercept, tol=1e-5).fit(X, y)
    audit_linear(model, X, y, 1.0, 1e-5)


@pytest.mark.parametrize("machine", ["weston-watkins", "one-vs-rest"])
def test_frank_wolfe(machine, text):
    X, y = text
    with unfinished():
        model = LinearSVC(machine, subproblem="frank-wolfe", tol=1e-6, max_iter=500).fit(X, y)
    found = audit_linear(model, X, y, 1.0)
    assert found.gap <= 5e-2 * found.primal


# -- other solvers ---------------------------------------------------------------------------------
@pytest.mark.parametrize("machine", ["weston-watkins", "one-vs-rest"])
@pytest.mark.parametrize("data", ["iris", "digits"])
def test_equals_the_kernel_machine(data, machine, request):
    X, y = request.getfixturevalue(data)
    kernel = KernelSVC(machine, kernel="linear", bias="regularized", tol=1e-6).fit(X, y)
    linear = LinearSVC(machine, tol=1e-6).fit(X, y)
    assert linear.primal_objective_ == pytest.approx(kernel.primal_objective_, rel=1e-5)
    np.testing.assert_allclose(linear.decision_function(X), kernel.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("data", ["iris", "digits", "text"])
def test_one_vs_rest_equals_scikit_learn(data, loss, request):
    X, y = request.getfixturevalue(data)
    model = LinearSVC("one-vs-rest", 0.5, loss=loss, tol=1e-6, max_iter=-1).fit(X, y)
    with unfinished():
        peer = PeerLinearSVC(C=0.5, loss=loss, tol=1e-8, max_iter=200_000, random_state=0).fit(X, y)
    scores = X @ peer.coef_.T + peer.intercept_
    missing = np.maximum(1 - (2 * (y[:, None] == peer.classes_) - 1) * scores, 0)
    cost = missing.sum() if loss == "hinge" else (missing**2).sum()
    primal = 0.5 * ((peer.coef_**2).sum() + (peer.intercept_**2).sum()) + 0.5 * cost
    assert model.primal_objective_ == pytest.approx(primal, rel=1e-5)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=2e-3)


@every_machine
def test_two_classes(machine, loss, iris):
    X, y = iris
    X, y = X[y > 0], np.array(["", "no", "yes"])[y[y > 0]]
    model = LinearSVC(machine, 0.5, loss=loss, tol=1e-6).fit(X, y)
    audit_linear(model, X, y, 0.5, 1e-6)
    assert model.coef_.shape == (1, X.shape[1]) and model.decision_function(X).shape == (len(y),)
    np.testing.assert_array_equal(model.predict(X), np.where(model.decision_function(X) > 0, "yes", "no"))


# -- hard data -------------------------------------------------------------------------------------
@pytest.mark.parametrize("C", [100.0, 1e4])
@every_machine
def test_large_costs_converge_at_the_defaults(machine, loss, C, wine):
    X, y = wine
    X = StandardScaler().fit_transform(X)
    model = LinearSVC(machine, C, loss=loss).fit(X, y)
    assert model.status_.converged and model.n_iter_ < 400
    audit_linear(model, X, y, C, 1e-3)


@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins", "one-vs-rest"])
def test_dense_data_of_unequal_scale_converges(machine):
    X, y = make_classification(1500, 60, n_informative=30, n_classes=5, random_state=0)
    X *= np.geomspace(0.1, 30.0, 60)
    model = LinearSVC(machine).fit(X, y)
    assert model.status_.converged
    audit_linear(model, X, y, 1.0, 1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1e5, 1e8])
@every_machine
def test_features_in_any_unit(machine, loss, scale):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = rng.normal(size=(300, 40)) + 1.5 * rng.normal(size=(3, 40))[y]
    model = LinearSVC(machine, loss=loss, fit_intercept=False).fit(X * scale, y)
    assert model.status_.converged
    assert model.score(X * scale, y) > 0.99
    assert model.primal_objective_ + model.dual_objective_ == pytest.approx(
        model.duality_gap_, abs=1e-9 * model.primal_objective_
    )


@every_machine
def test_a_fit_that_does_not_converge_says_so(machine, loss, digits):
    X, y = digits
    with pytest.warns(ConvergenceWarning, match=r"max_iter.*violation .*, duality gap"):
        model = LinearSVC(machine, 100.0, loss=loss, max_iter=3).fit(X, y)
    assert model.status_ is Status.MAX_ITER
    audit_linear(model, X, y, 100.0)


# -- the estimator ---------------------------------------------------------------------------------
@every_machine
def test_a_path_of_costs_warm_and_back(machine, loss, text):
    X, y = text
    warm = LinearSVC(machine, loss=loss, warm_start=True, tol=1e-4)
    for C in (0.05, 0.5, 5.0, 0.5, 0.05):
        warm.set_params(C=C).fit(X, y)
        audit_linear(warm, X, y, C, 1e-4)
    assert warm.fit(X, y).n_iter_ <= 1


def test_a_warm_start_is_of_the_same_machine(text):
    X, y = text
    model = LinearSVC(warm_start=True, tol=1e-4).fit(X, y)
    for machine, loss in [*NEW, ("crammer-singer", "hinge")]:
        model.set_params(machine=machine, loss=loss).fit(X, y)
        audit_linear(model, X, y, 1.0, 1e-4)


@every_machine
def test_a_stream_is_one_pass(machine, loss, text):
    X, y = text
    model = LinearSVC(machine, loss=loss, keep_dual=True)
    for part in np.array_split(np.arange(len(y)), 4):
        model.partial_fit(X[part], y[part], classes=np.arange(10))
    whole = LinearSVC(machine, loss=loss, shuffle=False, max_iter=1, dtype="float64")
    with unfinished():
        whole.fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-9)
    assert model.dual_objective_ == pytest.approx(whole.dual_objective_, rel=1e-9)
    with pytest.raises(ValueError, match="machine and loss must stay"):
        model.set_params(machine="crammer-singer", loss="hinge").partial_fit(X, y)


@every_machine
def test_repeatable_and_certified_gap(machine, loss, digits):
    X, y = digits
    first, second = (LinearSVC(machine, loss=loss, random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    rough = LinearSVC(machine, loss=loss, tol=1e-9, gap_tol=1e-2).fit(X, y)
    assert rough.status_.converged
    assert audit_linear(rough, X, y, 1.0).gap <= 1e-2 * rough.primal_objective_


def test_the_best_point_comes_back_if_newton_is_forbidden(monkeypatch, wine):
    """Unscaled data, passes alone: no convergence, and yet a certificate of what is returned."""
    monkeypatch.setattr(LinearSVC, "_tuning", Tuning(newton_values=0))
    X, y = wine
    for machine, loss in NEW:
        with unfinished():
            model = LinearSVC(machine, 10.0, loss=loss, max_iter=30).fit(X, y)
        audit_linear(model, X, y, 10.0)


@parametrize_with_checks([LinearSVC(machine, loss=loss) for machine, loss in NEW])
def test_estimator_checks(estimator, check):
    check(estimator)
