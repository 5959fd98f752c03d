"""The linear estimator against the oracle: primal, dual, gap and violation from data and dual_coef_ alone."""

import numpy as np
import pytest
from helpers import audit_linear, unfinished
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_cases import ANY_SIZE_IN_PARALLEL
from oracle import certify, kernel_matrix, one_hot, solve_crammer_singer
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC as PeerLinearSVC

from multimargin import KernelSVC, LinearSVC
from multimargin.linear.descent import SUBPROBLEMS
from multimargin.solution import Status

# scikit-learn takes so many classes for a regression problem, and says so.
one_row_a_class = pytest.mark.filterwarnings("ignore:The number of unique classes")
EXACT = tuple(name for name in SUBPROBLEMS if name != "frank-wolfe")


@pytest.fixture
def two_threads(monkeypatch):
    """Small problems are shared by threads too."""
    monkeypatch.setattr(LinearSVC, "_tuning", ANY_SIZE_IN_PARALLEL)
    return 2


def stored(X, form, dtype=np.float64):
    """The same values in another form."""
    if form == "dense":
        return np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=dtype)
    X = sparse.csr_array(X, dtype=dtype)
    width = np.int64 if form == "csr64" else np.int32
    X.indices, X.indptr = X.indices.astype(width), X.indptr.astype(width)
    return X


# -- the oracle ------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "csr32", "csr64"])
@pytest.mark.parametrize("data", ["digits", "text"])
def test_storage(data, form, dtype, request):
    X, y = request.getfixturevalue(data)
    X = stored(X, form, dtype)
    if form != "dense":
        assert X.indices.dtype == X.indptr.dtype == (np.int64 if form == "csr64" else np.int32)
    model = LinearSVC(C=0.7, tol=1e-5).fit(X, y)
    assert model.status_ is Status.CONVERGED
    audit_linear(model, X, y, 0.7, 1e-5)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, X @ model.coef_.T + model.intercept_, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("subproblem", EXACT)
def test_subproblems(subproblem, shrinking, shuffle, threads, text, two_threads):
    X, y = text
    model = LinearSVC(
        C=2.0, subproblem=subproblem, shrinking=shrinking, shuffle=shuffle, n_threads=threads, tol=1e-4
    ).fit(X, y)
    assert model.trace_.info["n_threads"] == threads
    audit_linear(model, X, y, 2.0, 1e-4)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shrinking", [True, False])  # which is for exact updates: here it changes nothing
def test_frank_wolfe_is_sublinear(shrinking, threads, text, two_threads):
    X, y = text
    with unfinished():
        model = LinearSVC(
            C=2.0, subproblem="frank-wolfe", tol=1e-6, max_iter=500, shrinking=shrinking, n_threads=threads
        ).fit(X, y)
    assert (model.trace_["working_set"] == len(y)).all()
    found = audit_linear(model, X, y, 2.0)
    assert found.gap <= 2e-2 * found.primal


def test_bisection_with_a_tolerance_is_feasible_and_better_with_a_smaller_one(text):
    X, y = text
    shares = []
    for tau in (1e-2, 1e-4, 1e-6):
        with unfinished():
            model = LinearSVC(C=2.0, subproblem="bisection", tau=tau, tol=1e-6, max_iter=200).fit(X, y)
        found = audit_linear(model, X, y, 2.0)
        shares.append(found.gap / found.primal)
    assert shares[0] > shares[1] > shares[2]
    assert shares[0] < 0.5
    assert shares[2] < 1e-3


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("dtype", ["auto", "float32", "float64"])
def test_precision_of_the_weights(dtype, tol, threads, digits, two_threads):
    X, y = digits
    with unfinished():
        model = LinearSVC(C=0.1, dtype=dtype, tol=tol, n_threads=threads, max_iter=2000).fit(X, y)
    assert model.coef_.dtype == np.float64
    found = audit_linear(model, X, y, 0.1)
    if dtype == "float32" and tol == 1e-8:
        assert model.status_ is not Status.CONVERGED
        assert found.gap <= 1e-3 * found.primal
    else:
        assert model.status_ is Status.CONVERGED
        audit_linear(model, X, y, 0.1, tol)
    used = {"float32": {"float32"}, "float64": {"float64"}, "auto": {"float32", "float64"}}[dtype]
    assert model.trace_.info["dtype"] in used


@pytest.mark.parametrize("form", ["dense", "csr32"])
def test_class_and_sample_weights(form, text):
    X, y = text
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.2, 3.0, len(y))
    weight[rng.choice(len(y), 15, replace=False)] = 0.0
    by_class = dict(enumerate(np.linspace(0.5, 2.0, 10)))
    model = LinearSVC(C=1.5, class_weight=by_class, tol=1e-5).fit(stored(X, form), y, sample_weight=weight)
    cost = 1.5 * weight * np.array([by_class[label] for label in y])
    kept = weight > 0
    assert set(model.support_) <= set(np.flatnonzero(kept))
    part = LinearSVC(C=1.5, class_weight=by_class, tol=1e-5).fit(
        stored(X[kept], form), y[kept], sample_weight=weight[kept]
    )
    audit_linear(part, X[kept], y[kept], cost[kept], 1e-5)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(kept)[part.support_])
    np.testing.assert_array_equal(model.dual_coef_.toarray(), part.dual_coef_.toarray())
    np.testing.assert_array_equal(model.coef_, part.coef_)


def test_balanced_weights(blobs):
    X, y = blobs[0][:70], blobs[1][:70]
    model = LinearSVC(class_weight="balanced", tol=1e-4).fit(X, y)
    cost = len(y) / (4 * np.bincount(y))
    assert len(set(cost)) > 1
    audit_linear(model, X, y, cost[y], 1e-4)


@pytest.mark.parametrize("scaling", [0.1, 1.0, 20.0])
def test_intercept_is_a_constant_feature(scaling, wine):
    X, y = wine
    model = LinearSVC(C=0.05, intercept_scaling=scaling, tol=1e-6).fit(X, y)
    audit_linear(model, X, y, 0.05, 1e-6)
    wider = np.hstack([X, np.full((len(y), 1), scaling)])
    plain = LinearSVC(C=0.05, fit_intercept=False, tol=1e-6).fit(wider, y)
    np.testing.assert_array_equal(plain.intercept_, 0.0)
    np.testing.assert_allclose(model.primal_objective_, plain.primal_objective_, rtol=1e-5)
    np.testing.assert_allclose(model.intercept_, scaling * plain.coef_[:, -1], atol=1e-3)


@pytest.mark.slow
@settings(max_examples=150)
@given(
    n=st.integers(2, 14), m=st.integers(2, 6), d=st.integers(1, 5), C=st.sampled_from([0.02, 1.0, 30.0]),
    density=st.sampled_from([0.3, 1.0]), intercept=st.booleans(), shrinking=st.booleans(),
    seed=st.integers(0, 999),
)  # fmt: skip
def test_random_small_problems(n, m, d, C, density, intercept, shrinking, seed):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1) * (rng.random((n, d)) < density)
    y = np.concatenate([[0, 1], rng.integers(m, size=n - 2)])
    costs = rng.uniform(0.5, 2.0, n)
    model = LinearSVC(
        C=C, fit_intercept=intercept, shrinking=shrinking, tol=1e-6, max_iter=-1, random_state=seed
    )
    model.fit(sparse.csr_array(X), y, sample_weight=costs)
    found = audit_linear(model, X, y, C * costs, 1e-6)
    _, coded = np.unique(y, return_inverse=True)
    K = X @ X.T + float(intercept)
    best = certify(K, coded, solve_crammer_singer(K, coded, C * costs), C * costs)
    scale = C * costs.sum()
    assert abs(found.dual - best.dual) <= 1e-6 * scale + best.gap
    assert abs(found.primal - best.primal) <= 1e-6 * scale + best.gap


# -- other solvers ---------------------------------------------------------------------------------
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("data", ["iris", "digits", "text"])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_equals_the_kernel_machine(C, data, bias, request):
    X, y = request.getfixturevalue(data)
    kernel = KernelSVC(C=C, kernel="linear", bias=bias, tol=1e-7).fit(X, y)
    linear = LinearSVC(C=C, fit_intercept=bias == "regularized", tol=1e-7, max_iter=-1).fit(X, y)
    assert linear.primal_objective_ == pytest.approx(kernel.primal_objective_, rel=1e-5)
    assert linear.dual_objective_ == pytest.approx(kernel.dual_objective_, rel=1e-5)
    np.testing.assert_allclose(linear.decision_function(X), kernel.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("form", ["dense", "csr32"])
@pytest.mark.parametrize("data", ["iris", "digits", "text"])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_equals_liblinear(C, data, form, request):
    X, y = request.getfixturevalue(data)
    X = stored(X, form)
    peer = PeerLinearSVC(
        multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-9, max_iter=200_000, random_state=0
    )
    with unfinished():  # its own stop rule; the objective below is what counts
        peer.fit(X, y)
    scores = X @ peer.coef_.T
    E = one_hot(y, scores.shape[1])
    slack = (scores + 1 - E).max(axis=1) - (scores * E).sum(axis=1)
    peer_primal = 0.5 * (peer.coef_**2).sum() + C * slack.sum()
    model = LinearSVC(C=C, fit_intercept=False, tol=1e-7, max_iter=-1).fit(X, y)
    assert model.primal_objective_ == pytest.approx(peer_primal, rel=1e-5)
    assert -model.dual_objective_ == pytest.approx(peer_primal, rel=1e-5)


def test_two_classes_are_a_binary_machine(iris):
    X, y = iris
    X, y = X[y > 0], np.array(["", "no", "yes"])[y[y > 0]]
    model = LinearSVC(C=0.5, tol=1e-6, max_iter=-1).fit(X, y)
    audit_linear(model, X, y, 0.5, 1e-6)
    decision = model.decision_function(X)
    assert decision.shape == (len(y),)
    assert model.coef_.shape == (1, X.shape[1]) and model.intercept_.shape == (1,)
    np.testing.assert_allclose(decision, (X @ model.coef_.T + model.intercept_).ravel(), atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), np.where(decision > 0, "yes", "no"))


# -- odd problems ----------------------------------------------------------------------------------
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("form", ["dense", "csr32"])
def test_empty_rows_and_rows_of_one_value(form, intercept, threads, text, two_threads):
    X, y = text
    X = X.toarray()
    X[::7] = 0.0
    X[3::7] = 0.0
    X[3::7, 5] = 1.5
    model = LinearSVC(fit_intercept=intercept, tol=1e-5, n_threads=threads).fit(stored(X, form), y)
    audit_linear(model, X, y, 1.0, 1e-5)
    if not intercept:  # an empty row pays its whole cost: only its dual says so
        own = model.dual_coef_.toarray()[np.isin(model.support_, np.arange(0, len(y), 7))].max(axis=1)
        np.testing.assert_array_equal(own, np.ones(len(range(0, len(y), 7))))


def test_all_rows_empty():
    X, y = sparse.csr_array((6, 4)), np.array([0, 0, 1, 1, 2, 2])
    model = LinearSVC(fit_intercept=False).fit(X, y)
    audit_linear(model, X, y, 1.0, 1e-3)
    assert model.primal_objective_ == 6.0
    np.testing.assert_array_equal(model.coef_, 0.0)


@pytest.mark.parametrize("form", ["dense", "csr32"])
def test_duplicate_rows(form, text):
    X, y = text
    twice, labels = sparse.vstack([X, X], format="csr"), np.concatenate([y, y])
    labels[-10:] = (labels[-10:] + 1) % 6  # ten of them under another label
    model = LinearSVC(tol=1e-5).fit(stored(twice, form), labels)
    audit_linear(model, twice, labels, 1.0, 1e-5)


def test_rows_of_weight_two_are_two_rows(text):
    X, y = text
    twice = LinearSVC(tol=1e-7).fit(sparse.vstack([X, X], format="csr"), np.concatenate([y, y]))
    heavy = LinearSVC(tol=1e-7).fit(X, y, sample_weight=np.full(len(y), 2.0))
    assert heavy.primal_objective_ == pytest.approx(twice.primal_objective_, rel=1e-6)


def test_unsorted_and_duplicate_entries(text):
    X, y = text
    rng = np.random.default_rng(3)
    coo = X.tocoo()
    order = rng.permutation(8 * coo.nnz)  # so many parts that the sum of their squares is no norm at all
    rows, columns = np.tile(coo.row, 8)[order], np.tile(coo.col, 8)[order]
    values = np.tile(0.125 * coo.data, 8)[order]
    by_row = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(y)))])
    messy = sparse.csr_array((values[by_row], columns[by_row], indptr), shape=X.shape)
    before = messy.data.copy(), messy.indices.copy()
    model = LinearSVC(tol=1e-5).fit(messy, y)
    audit_linear(model, X, y, 1.0, 1e-5)
    np.testing.assert_array_equal(messy.data, before[0])
    np.testing.assert_array_equal(messy.indices, before[1])
    stream = LinearSVC().partial_fit(messy, y, classes=np.arange(10))
    np.testing.assert_allclose(
        stream.coef_, LinearSVC().partial_fit(X, y, classes=np.arange(10)).coef_, atol=1e-12
    )


@pytest.mark.parametrize("layout", ["fortran", "slice", "integers", "list", "csc", "coo matrix"])
def test_unusual_arrays(layout, digits):
    X, y = digits
    X = np.round(16 * X)
    given = {
        "fortran": np.asfortranarray(X),
        "slice": np.repeat(X, 2, axis=1)[:, ::2],
        "integers": X.astype(np.int16),
        "list": X.tolist(),
        "csc": sparse.csc_array(X),
        "coo matrix": sparse.coo_matrix(X),
    }[layout]
    model = LinearSVC(C=1e-3, tol=1e-4).fit(given, y)
    audit_linear(model, X, y, 1e-3, 1e-4)


@pytest.mark.slow
@one_row_a_class
@pytest.mark.parametrize("threads", [1, 2])
def test_five_thousand_classes_of_one_row_each(threads, two_threads):
    rng = np.random.default_rng(0)
    m, C = 5000, 0.5
    X = sparse.random_array((m, 50), density=0.04, format="csr", rng=rng)
    y = rng.permutation(m)
    with unfinished():
        model = LinearSVC(C=C, max_iter=1, n_threads=threads).fit(X, y)
    alpha = model.dual_coef_
    own = alpha[np.arange(len(model.support_)), y[model.support_]]
    assert alpha.shape == (len(model.support_), m)
    assert alpha.nnz < 0.05 * m * m
    assert np.abs(alpha.sum(axis=1)).max() < 1e-9
    assert 0 < own.min() and own.max() <= C * (1 + 1e-12)
    weights, bias = (alpha.T @ X[model.support_]).toarray(), alpha.sum(axis=0)
    np.testing.assert_allclose(model.coef_, weights, atol=1e-9)
    scores = X @ weights.T + bias
    loss = (scores + 1 - (np.arange(m) == y[:, None])).max(axis=1) - scores[np.arange(m), y]
    half = 0.5 * ((weights**2).sum() + (bias**2).sum())
    assert model.primal_objective_ == pytest.approx(half + C * loss.sum(), rel=1e-8)
    assert model.dual_objective_ == pytest.approx(half - own.sum(), rel=1e-8)
    assert 0 <= model.duality_gap_ <= 0.9 * model.primal_objective_


@one_row_a_class
@pytest.mark.parametrize("m", [2, 3, 7, 8, 9, 16, 33, 65, 129, 200])
def test_one_row_a_class(m):
    """Every width of the padded classes, and both choices of "auto"."""
    rng = np.random.default_rng(m)
    X, y = rng.normal(size=(m, 12)), rng.permutation(m)
    model = LinearSVC(C=0.3, tol=1e-5, max_iter=-1).fit(X, y)
    audit_linear(model, X, y, 0.3, 1e-5)


@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_costs_over_twelve_orders(C, shrinking, text):
    X, y = text
    model = LinearSVC(C=C, shrinking=shrinking, tol=1e-3, max_iter=20_000).fit(X, y)
    found = audit_linear(model, X, y, C, 1e-3)
    assert found.gap <= 1e-3 * C * len(y)


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_scaled_features_are_a_scaled_cost(scale, text):
    X, y = text
    model = LinearSVC(C=1.0 / scale**2, fit_intercept=False, tol=1e-4).fit(X * scale, y)
    plain = LinearSVC(C=1.0, fit_intercept=False, tol=1e-4).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.primal_objective_ * scale**2 == pytest.approx(plain.primal_objective_, rel=1e-4)


def test_values_that_single_precision_cannot_hold(text):
    X, y = text
    for scale in (1e30, 1e60):
        model = LinearSVC(C=1.0 / scale**2, fit_intercept=False, tol=1e-3, max_iter=2000).fit(X * scale, y)
        assert model.status_ is Status.CONVERGED
        assert model.violation_ <= 1e-3


@pytest.mark.parametrize("max_iter", [-1, 1000])
def test_single_precision_that_cannot_succeed_ends(max_iter, text):
    X, y = text
    with pytest.warns(ConvergenceWarning, match="stalled"):
        model = LinearSVC(
            C=1e-80, fit_intercept=False, dtype="float32", max_iter=max_iter, time_limit=20.0
        ).fit(X * 1e40, y)
    assert model.status_ is Status.STALLED
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("form", ["dense", "csr32"])
def test_overflow_is_refused(form, text):
    X, y = text
    with pytest.raises(ValueError, match=r"[Ss]cale the features"):
        LinearSVC().fit(stored(X, form) * 1e200, y)


def test_full_digits_are_learned():
    X, y = load_digits(return_X_y=True)
    model = LinearSVC(C=0.1).fit(X[:1200] / 16, y[:1200])
    assert model.score(X[1200:] / 16, y[1200:]) > 0.9
    audit_linear(model, X[:1200] / 16, y[:1200], 0.1, 1e-3)


def test_kernel_matrix_of_the_oracle_is_the_linear_one(iris):
    """The audit's kernel is written out here; the oracle's own must agree."""
    X, _ = iris
    np.testing.assert_allclose(X @ X.T + 1.0, kernel_matrix("linear", X, offset=1.0), atol=1e-12)


@pytest.mark.parametrize("dtype", ["auto", "float32"])
@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins", "one-vs-rest"])
def test_features_whose_products_float32_cannot_hold(machine, dtype):
    """Scores were NaN in float32, and the pass after that failed by an argument that was NaN."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = (rng.normal(size=(60, 4)) + 2.0 * rng.normal(size=(3, 4))[y]) * 1e60
    model = LinearSVC(machine, dtype=dtype, fit_intercept=False)
    if dtype == "float32":
        with pytest.warns(ConvergenceWarning, match=r"stalled.* use dtype='float64'"):
            model.fit(X, y)
        audit_linear(model, X, y, 1.0)
    else:
        with unfinished():  # C |x|² is 1e120, too much for boxes
            model.fit(X, y)
        audit_linear(model, X, y, 1.0, tol=None if machine == "one-vs-rest" else 1e-3)
