"""The trained linear machine: shapes of its weights, what may be done with them, how fast a row is scored."""

import copy
import pickle
from time import perf_counter

import numpy as np
import pytest
from oracle import certify
from scipy import sparse
from sklearn.feature_selection import SelectFromModel
from sklearn.svm import LinearSVC as PeerLinearSVC

from multimargin import LinearSVC


@pytest.fixture(scope="module")
def pair(wine):
    """Two classes of wine."""
    X, y = wine
    return X[y > 0], np.array(["", "no", "yes"])[y[y > 0]]


# -- two classes -----------------------------------------------------------------------------------
def test_two_classes_have_the_weights_of_the_second_class(pair):
    """Two weight vectors of this machine are those of one hinge loss with half the cost."""
    X, y = pair
    model = LinearSVC(C=0.05, tol=1e-7).fit(X, y)
    peer = PeerLinearSVC(C=0.1, loss="hinge", tol=1e-9, max_iter=100_000).fit(X, y)
    assert model.coef_.shape == peer.coef_.shape == (1, X.shape[1])
    assert model.intercept_.shape == peer.intercept_.shape == (1,)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-3)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, (X @ model.coef_.T + model.intercept_).ravel(), atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(scores > 0).astype(int)])


def test_two_classes_in_a_stream(pair):
    X, y = pair
    whole = LinearSVC(keep_dual=True).partial_fit(X, y, classes=["no", "yes"])
    parts = LinearSVC(keep_dual=True)
    for part in (slice(0, 30), slice(30, 50), slice(50, None)):
        parts.partial_fit(X[part], y[part], classes=["no", "yes"])
        parts = pickle.loads(pickle.dumps(parts))
        assert parts.coef_.shape == (1, X.shape[1]) and parts.intercept_.shape == (1,)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-12)
    np.testing.assert_allclose(parts.intercept_, whole.intercept_, atol=1e-12)
    alpha = np.zeros((len(y), 2))
    alpha[whole.support_] = whole.dual_coef_.toarray()
    np.testing.assert_allclose(whole.coef_, np.diff(alpha.T @ X, axis=0), atol=1e-12)
    assert whole.dual_objective_ == pytest.approx(
        0.5 * ((alpha.T @ X) ** 2).sum() + 0.5 * (alpha.sum(axis=0) ** 2).sum() - alpha.max(axis=1).sum()
    )


def test_a_stream_of_two_classes_goes_on_from_fit(pair):
    X, y = pair
    model = LinearSVC(C=0.05).fit(X, y)
    before = model.coef_.copy()
    model.partial_fit(X[:1], y[:1], sample_weight=[1e-9])
    np.testing.assert_allclose(model.coef_, before, atol=1e-7)


def test_two_classes_start_warm(pair):
    X, y = pair
    model = LinearSVC(C=0.05, warm_start=True).fit(X, y)
    assert model.fit(X, y).n_iter_ <= 5


# -- weights that the user sets --------------------------------------------------------------------
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("classes", [2, 3, 8])
def test_assigned_weights_are_used(classes, form):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)) * (rng.random((60, 5)) < 0.5), np.arange(60) % classes
    model = LinearSVC(C=0.1).fit(form(X), y)
    rows = 1 if classes == 2 else classes

    def expected():
        scores = X @ model.coef_.T + model.intercept_
        return scores.ravel() if rows == 1 else scores

    model.coef_ *= 2.0  # in place
    np.testing.assert_allclose(model.decision_function(form(X)), expected(), atol=1e-12)
    np.testing.assert_allclose(model.decision_function(form(X)[:1]), expected()[:1], atol=1e-12)
    for order in "CF":
        model.coef_ = np.array(rng.normal(size=(rows, 5)), order=order)
        model.intercept_ = rng.normal(size=rows)
        np.testing.assert_allclose(model.decision_function(form(X)), expected(), atol=1e-12)
        np.testing.assert_allclose(model.decision_function(form(X)[:1]), expected()[:1], atol=1e-12)
    before = expected()
    model.partial_fit(form(X)[:1], y[:1], sample_weight=[1e-9])  # goes on from the assigned weights
    np.testing.assert_allclose(model.decision_function(form(X)), before, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_sparsify_and_densify(classes, wine):
    X, y = wine
    X, y = X[y < classes], y[y < classes]
    model = LinearSVC(C=0.05).fit(X, y)
    scores, coef = model.decision_function(X), model.coef_.copy()
    assert model.sparsify() is model
    assert sparse.issparse(model.coef_) and model.coef_.shape == coef.shape
    for other in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert sparse.issparse(other.coef_)
        for form in (np.asarray, sparse.csr_array):
            found = other.decision_function(form(X))
            assert isinstance(found, np.ndarray)
            np.testing.assert_allclose(found, scores, atol=1e-12)
    assert model.sparsify().densify() is model
    np.testing.assert_array_equal(model.densify().coef_, coef)
    np.testing.assert_allclose(model.decision_function(sparse.csr_array(X)), scores, atol=1e-12)
    model.sparsify().partial_fit(X[:1], y[:1], sample_weight=[1e-9])
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-6)


def test_features_are_selected_by_their_weights(pair):
    X, y = pair
    chosen = SelectFromModel(LinearSVC(C=0.05)).fit(X, y)
    size = np.abs(chosen.estimator_.coef_[0])
    np.testing.assert_array_equal(chosen.get_support(), size >= size.mean())


# -- classes without samples -----------------------------------------------------------------------
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0}])
@pytest.mark.parametrize("absent", [0, 2])
def test_a_class_whose_samples_have_no_weight_stays(absent, class_weight, wine):
    X, y = wine
    weight = np.where(y == absent, 0.0, 1.0)
    model = LinearSVC(C=0.1, class_weight=class_weight).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert model.coef_.shape == (3, X.shape[1]) and model.decision_function(X).shape == (len(y), 3)
    assert not np.isin(model.support_, np.flatnonzero(y == absent)).any()
    if class_weight is None:
        kept = y != absent
        alpha = np.zeros((len(y), 3))
        alpha[model.support_] = model.dual_coef_.toarray()
        found = certify(X[kept] @ X[kept].T + 1.0, y[kept], alpha[kept], np.full(kept.sum(), 0.1))
        assert found.psi.max() <= 1e-3
        assert model.duality_gap_ == pytest.approx(found.gap, abs=1e-9)
    assert (model.predict(X[y != absent]) == y[y != absent]).mean() > 0.95


# -- pickles ---------------------------------------------------------------------------------------
def test_a_pickle_holds_what_prediction_needs():
    """scikit-learn's takes 1.5 kB; ours has the certificate besides."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 8)), rng.integers(3, size=3000)
    model = LinearSVC().fit(X, y)
    stored = pickle.dumps(model)
    assert len(stored) < 3000
    back = pickle.loads(stored)
    np.testing.assert_array_equal(back.coef_, model.coef_)
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    assert (back.status_, back.n_iter_, back.violation_) == (model.status_, model.n_iter_, model.violation_)
    assert back.duality_gap_ == model.duality_gap_ and back.primal_objective_ == model.primal_objective_
    for name in ("support_", "dual_coef_", "trace_"):
        assert hasattr(model, name) and not hasattr(back, name)
    again, straight = (m.partial_fit(X[:9], y[:9]) for m in (back, model))
    np.testing.assert_array_equal(again.coef_, straight.coef_)
    assert again.dual_objective_ == straight.dual_objective_


def test_a_pickle_of_a_model_that_trains_on_has_its_dual(wine):
    X, y = wine
    for option in ("warm_start", "keep_dual"):
        back = pickle.loads(pickle.dumps(LinearSVC(C=0.1, **{option: True}).fit(X, y)))
        assert len(back.support_) == back.dual_coef_.shape[0] and len(back.trace_) > 0
    cold = pickle.loads(pickle.dumps(LinearSVC(C=0.1).fit(X, y)))
    assert cold.set_params(warm_start=True).fit(X, y).status_.converged  # nothing to start from
    late = pickle.loads(pickle.dumps(LinearSVC(C=0.1).fit(X, y))).set_params(keep_dual=True)
    with pytest.raises(ValueError, match="keep_dual needs the coefficients of the rows of fit"):
        late.partial_fit(X, y)


# -- one row ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("stored", [False, True])
def test_one_sparse_row_does_not_copy_the_weights(stored):
    """The weights are 42 MB: copying them takes tens of milliseconds."""
    rng = np.random.default_rng(0)
    d, m = 2**18, 20
    columns = np.sort(rng.choice(d, size=(40, 100)), axis=1)
    X = sparse.csr_array((rng.normal(size=4000), columns.ravel(), np.arange(0, 4001, 100)), shape=(40, d))
    X.sum_duplicates()
    model = LinearSVC().partial_fit(X, np.arange(40) % m, classes=range(m))
    expected = X @ model.coef_.T + model.intercept_
    if stored:
        model = pickle.loads(pickle.dumps(model))
    row, times = X[:1], []
    for _ in range(20):
        start = perf_counter()
        scores = model.decision_function(row)
        times.append(perf_counter() - start)
    np.testing.assert_allclose(scores, expected[:1], atol=1e-12)
    assert min(times) < 1e-3
