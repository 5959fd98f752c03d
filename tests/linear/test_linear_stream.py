"""partial_fit: one pass over batches is one pass over the data, and what must stay the same stays."""

import pickle
import tracemalloc

import numpy as np
import pytest
from helpers import audit_linear, unfinished
from oracle import dense
from scipy import sparse
from sklearn.feature_extraction import FeatureHasher

from multimargin import LinearSVC

SETTINGS = {"C": 0.5, "max_iter": 1, "shuffle": False, "dtype": "float64", "n_threads": 1}


@pytest.fixture(scope="module")
def rows(digits):
    X, y = digits
    return X, np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])[y]


def one_pass(X, y, sample_weight=None, **changes):
    with unfinished():
        return LinearSVC(**(SETTINGS | changes)).fit(X, y, sample_weight=sample_weight)


def stream(X, y, sizes, sample_weight=None, **changes):
    model, first = LinearSVC(**(SETTINGS | changes)), 0
    for size in sizes:
        part = slice(first, first + size)
        weight = None if sample_weight is None else sample_weight[part]
        model.partial_fit(X[part], y[part], classes=np.unique(y), sample_weight=weight)
        first += size
    assert first == X.shape[0]
    return model


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("sizes", [[150], [50, 50, 50], [1, 140, 9], [1] * 150])
def test_batches_are_one_pass_of_fit(sizes, form, intercept, rows):
    X, y = rows
    X = sparse.csr_array(X) if form == "sparse" else X
    whole = one_pass(X, y, fit_intercept=intercept)
    parts = stream(X, y, sizes, fit_intercept=intercept, keep_dual=True)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-12)
    np.testing.assert_allclose(parts.intercept_, whole.intercept_, atol=1e-12)
    np.testing.assert_array_equal(parts.support_, whole.support_)
    np.testing.assert_allclose(parts.dual_coef_.toarray(), whole.dual_coef_.toarray(), atol=1e-12)
    assert parts.dual_objective_ == pytest.approx(whole.dual_objective_, rel=1e-12)
    assert parts.n_iter_ == 1
    np.testing.assert_array_equal(parts.predict(X), whole.predict(X))


@pytest.mark.parametrize("subproblem", ["sort", "pivot", "bisection", "fixed-point", "smo", "frank-wolfe"])
def test_every_subproblem(subproblem, rows):
    X, y = rows
    parts = stream(X, y, [75, 75], subproblem=subproblem)
    np.testing.assert_allclose(parts.coef_, one_pass(X, y, subproblem=subproblem).coef_, atol=1e-7)


def test_weights_and_rows_of_weight_zero(rows):
    X, y = rows
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    weight[::4] = 0.0
    weight[50:60] = 0.0  # a whole batch
    by_class = {"one": 2.0, "seven": 0.25}
    whole = one_pass(X, y, weight, class_weight=by_class)
    parts = stream(X, y, [50, 10, 90], weight, class_weight=by_class, keep_dual=True)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-12)
    np.testing.assert_array_equal(parts.support_, whole.support_)
    assert parts.dual_objective_ == pytest.approx(whole.dual_objective_, rel=1e-12)


def test_a_first_batch_of_weight_zero(rows):
    X, y = rows
    model = LinearSVC(keep_dual=True).partial_fit(
        X[:5], y[:5], classes=np.unique(y), sample_weight=np.zeros(5)
    )
    np.testing.assert_array_equal(model.coef_, 0.0)
    assert model.dual_coef_.shape == (0, 10)
    assert model.dual_objective_ == 0.0
    model.partial_fit(X[5:], y[5:])
    assert model.support_.min() >= 5


def test_the_kept_dual_is_a_start_for_fit(rows):
    """The stream's point is feasible for all rows, and its weights are those of its coefficients."""
    X, y = rows
    parts = stream(X, y, [60, 90], keep_dual=True)
    alpha = np.zeros((len(y), 10))
    alpha[parts.support_] = dense(parts.dual_coef_)
    assert (alpha <= 0.5 * (parts.classes_ == y[:, None]) + 1e-12).all()
    np.testing.assert_allclose(alpha.sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(parts.coef_, alpha.T @ X, atol=1e-12)
    np.testing.assert_allclose(parts.intercept_, alpha.sum(axis=0), atol=1e-12)


def test_without_keep_dual_only_the_weights_stay(rows):
    X, y = rows
    parts = stream(X, y, [60, 90])
    for name in (
        "dual_coef_",
        "support_",
        "primal_objective_",
        "duality_gap_",
        "violation_",
        "trace_",
        "status_",
    ):
        assert not hasattr(parts, name), name
    assert parts.score(X, y) > 0.8


def test_hashed_batches():
    rng = np.random.default_rng(4)
    words = np.array([f"w{k}" for k in range(400)])
    y = rng.integers(5, size=300)
    texts = [words[(rng.integers(80, size=12) + 80 * label) % 400] for label in y]
    hasher = FeatureHasher(2**12, input_type="string", dtype=np.float32)
    model = LinearSVC(C=1.0)
    for first in range(0, 200, 40):
        part = slice(first, first + 40)
        model.partial_fit(hasher.transform(texts[part]), y[part], classes=range(5))
    assert model.coef_.shape == (5, 2**12)
    assert model.score(hasher.transform(texts[200:]), y[200:]) > 0.9
    with unfinished():
        whole = LinearSVC(C=1.0, max_iter=1, shuffle=False, dtype="float64").fit(
            hasher.transform(texts[:200]), y[:200]
        )
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-12)


def test_memory_does_not_grow_with_the_stream():
    rng = np.random.default_rng(0)
    batch = sparse.random_array((400, 500), density=0.02, format="csr", rng=rng)
    y = rng.integers(4, size=400)
    model = LinearSVC().partial_fit(batch, y, classes=range(4))
    tracemalloc.start()
    try:
        model.partial_fit(batch, y)
        settled = tracemalloc.get_traced_memory()[0]
        for _ in range(20):
            model.partial_fit(batch, y)
        assert tracemalloc.get_traced_memory()[0] - settled < 20_000
    finally:
        tracemalloc.stop()


def test_order_and_random_state_do_not_matter(rows):
    X, y = rows
    models = [stream(X, y, [150], shuffle=True, random_state=seed) for seed in (0, 1)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_pickled_in_the_middle(rows):
    X, y = rows
    straight = stream(X, y, [70, 80], keep_dual=True)
    model = LinearSVC(**SETTINGS, keep_dual=True).partial_fit(X[:70], y[:70], classes=np.unique(y))
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.coef_, model.coef_)
    back.partial_fit(X[70:], y[70:])
    np.testing.assert_array_equal(back.coef_, straight.coef_)
    np.testing.assert_array_equal(back.support_, straight.support_)


def test_two_classes(rows):
    X, y = rows
    kept = np.isin(y, ["one", "two"])
    model = LinearSVC().partial_fit(X[kept], y[kept], classes=["two", "one"])
    assert model.decision_function(X).shape == (len(y),)
    assert model.score(X[kept], y[kept]) > 0.9


# -- fit and streams -------------------------------------------------------------------------------
@pytest.mark.parametrize("intercept", [True, False])
def test_a_stream_goes_on_from_fit(intercept, rows):
    """One pass of fit and then batches is one pass over all; what only fit knew is gone."""
    X, y = rows
    assert set(y[:80]) == set(y)
    model = one_pass(X[:80], y[:80], fit_intercept=intercept, keep_dual=True, intercept_scaling=3.0)
    model.partial_fit(X[80:100], y[80:100]).partial_fit(X[100:], y[100:], classes=np.unique(y))
    whole = one_pass(X, y, fit_intercept=intercept, intercept_scaling=3.0)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, atol=1e-12)
    np.testing.assert_array_equal(model.support_, whole.support_)
    np.testing.assert_allclose(model.dual_coef_.toarray(), whole.dual_coef_.toarray(), atol=1e-12)
    assert model.dual_objective_ == pytest.approx(whole.dual_objective_, rel=1e-10)
    for name in ("primal_objective_", "duality_gap_", "violation_", "trace_", "status_"):
        assert not hasattr(model, name), f"{name} of the fit is still there"


def test_without_keep_dual_the_fits_dual_goes_too(rows):
    X, y = rows
    model = one_pass(X, y).partial_fit(X, y)
    assert not hasattr(model, "dual_coef_") and not hasattr(model, "support_")


def test_what_fit_began_with_must_stay(rows):
    X, y = rows
    for change in ({"fit_intercept": False}, {"intercept_scaling": 2.0}):
        with pytest.raises(ValueError, match="must stay as they were when training began"):
            one_pass(X, y).set_params(**change).partial_fit(X, y)
    with pytest.raises(ValueError, match="classes must stay"):
        one_pass(X, y).partial_fit(X, y, classes=["one", "two"])
    with pytest.raises(ValueError, match="features"):
        one_pass(X, y).partial_fit(X[:, :3], y)


def test_fit_after_a_stream_starts_anew(rows):
    X, y = rows
    model = stream(X, y, [150], keep_dual=True, max_iter=1000)
    model.fit(X[:, :20], y)
    audit_linear(model, X[:, :20], y, 0.5, 1e-3)


def test_warm_start_after_a_longer_stream(rows):
    X, y = rows
    model = LinearSVC(C=0.5, warm_start=True, keep_dual=True).fit(X[:60], y[:60])
    model.partial_fit(X[:60], y[:60], classes=np.unique(y)).partial_fit(X[60:], y[60:])
    model.fit(X[:60], y[:60])
    audit_linear(model, X[:60], y[:60], 0.5, 1e-3)


# -- what is refused -------------------------------------------------------------------------------
def test_changed_settings_and_classes(rows):
    X, y = rows
    model = LinearSVC()
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        model.partial_fit(X, y)
    model.partial_fit(X, y, classes=np.unique(y))
    before = model.coef_.copy()
    for classes in (["one", "two"], [*np.unique(y), "ten"]):
        with pytest.raises(ValueError, match=r"classes must stay .*'one'"):
            model.partial_fit(X, y, classes=classes)
    with pytest.raises(ValueError, match=r"'ten'.* not in classes"):
        model.partial_fit(X[:1], ["ten"])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :5], y)
    for change in ({"fit_intercept": False}, {"intercept_scaling": 2.0}, {"keep_dual": True}):
        changed = LinearSVC().partial_fit(X, y, classes=np.unique(y)).set_params(**change)
        with pytest.raises(
            ValueError, match="fit_intercept, intercept_scaling and keep_dual must stay as they were"
        ):
            changed.partial_fit(X, y)
    np.testing.assert_array_equal(model.coef_, before)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"class_weight": "balanced"}, "balanced.* dict"),
        ({"C": -1.0}, "C must be a finite number > 0"),
        ({"subproblem": "newton"}, "subproblem must be one of"),
    ],
)
def test_bad_settings(change, match, rows):
    X, y = rows
    with pytest.raises(ValueError, match=match):
        LinearSVC(**change).partial_fit(X, y, classes=np.unique(y))


def test_bad_batches(rows):
    X, y = rows
    labels = np.unique(y)
    with pytest.raises(ValueError, match="At least 2 classes"):
        LinearSVC().partial_fit(X, np.full(len(y), "one"), classes=["one"])
    bad = X.copy()
    bad[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LinearSVC().partial_fit(bad, y, classes=labels)
    with pytest.raises(ValueError, match="negative"):
        LinearSVC().partial_fit(X, y, classes=labels, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match="not in classes"):
        LinearSVC().partial_fit(X[:2], [1, 2], classes=labels)
    with pytest.raises(ValueError, match="not in classes"):
        LinearSVC().partial_fit(X[:2], [0.5, 1.0], classes=[0, 1])
