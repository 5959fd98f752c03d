"""The linear estimator's behaviour: settings, limits, warm starts, traces, threads."""

import copy
import pickle
import time

import numpy as np
import pytest
from helpers import audit_linear, unfinished
from linear_cases import ANY_SIZE_IN_PARALLEL
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from multimargin import LinearSVC
from multimargin.solution import Status

SMALL_X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0], [0.5, 0.5], [2.5, 1.5]])
SMALL_Y = np.array([0, 1, 2, 2, 0, 1])


@pytest.fixture
def any_size_in_parallel(monkeypatch):
    """Small problems are shared by threads too."""
    monkeypatch.setattr(LinearSVC, "_tuning", ANY_SIZE_IN_PARALLEL)


# -- what is refused -------------------------------------------------------------------------------
def refuses(match, X=SMALL_X, y=SMALL_Y, error=ValueError, sample_weight=None, **settings):
    with pytest.raises(error, match=match):
        LinearSVC(**settings).fit(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_features_not_finite(value, form):
    X = SMALL_X.copy()
    X[2, 1] = value
    refuses("NaN|infinity|inf", X=form(X))
    model = LinearSVC().fit(form(SMALL_X), SMALL_Y)
    with pytest.raises(ValueError, match=r"NaN|infinity|inf"):
        model.predict(form(X))


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"machine": "msvm2"}, ValueError, "machine must be one of 'crammer-singer', 'weston-watkins'"),
        ({"loss": "squared hinge"}, ValueError, "loss must be one of 'hinge', 'squared_hinge'"),
        ({"loss": "squared_hinge"}, ValueError, "loss='squared_hinge' is for machine='one-vs-rest', not for"),
        (
            {"machine": "weston-watkins", "subproblem": "pivot"},
            ValueError,
            "subproblem='pivot' is not for machine='weston-watkins'.*use 'auto' or 'sort' or 'frank-wolfe'",
        ),
        (
            {"machine": "one-vs-rest", "loss": "squared_hinge", "subproblem": "frank-wolfe"},
            ValueError,
            "subproblem='frank-wolfe' is not for machine='one-vs-rest' with loss='squared_hinge'",
        ),
        ({"subproblem": "newton"}, ValueError, "subproblem must be one of 'auto', 'sort'"),
        ({"subproblem": 3}, ValueError, "subproblem must be one of 'auto', 'sort'"),
        ({"dtype": "float16"}, ValueError, "dtype must be one of 'auto', 'float32', 'float64'"),
        ({"on_interrupt": "ignore"}, ValueError, "on_interrupt must be one of 'raise', 'keep'"),
        ({"gap_tol": 0.0}, ValueError, "gap_tol must be a finite number > 0"),
        ({"gap_tol": "small"}, TypeError, "gap_tol must be a finite number > 0"),
        ({"C": 0.0}, ValueError, "C must be a finite number > 0"),
        ({"C": -1.0}, ValueError, "C must be a finite number > 0"),
        ({"C": np.inf}, ValueError, "C must be a finite number > 0"),
        ({"C": "large"}, TypeError, "C must be a finite number > 0"),
        ({"tol": 0.0}, ValueError, "tol must be a finite number > 0"),
        ({"tau": 0.0, "subproblem": "bisection"}, ValueError, "tau must be a finite number > 0"),
        ({"tau": 1e-3}, ValueError, "tau is for subproblem='bisection' or 'smo', not for 'auto'"),
        ({"intercept_scaling": 0.0}, ValueError, "intercept_scaling must be a finite number > 0"),
        ({"intercept_scaling": -2.0}, ValueError, "intercept_scaling must be a finite number > 0"),
        ({"max_iter": -2}, ValueError, "max_iter must be an integer >= -1"),
        ({"max_iter": 1.5}, TypeError, "max_iter must be an integer >= -1"),
        ({"time_limit": 0.0}, ValueError, "time_limit must be a finite number > 0"),
        ({"n_threads": 0}, ValueError, "n_threads must be an integer >= 1"),
        ({"callback": 3}, TypeError, "callback must be callable or None"),
        ({"class_weight": {0: -1.0}}, ValueError, "class_weight must be a finite number > 0"),
        ({"class_weight": {0: np.nan}}, ValueError, "class_weight must be a finite number > 0"),
        ({"class_weight": "heavy"}, ValueError, "class_weight"),
    ],
)
def test_bad_settings_are_named(settings, error, match):
    refuses(match, error=error, **settings)


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (-np.ones(6), "negative values; weights must be >= 0"),
        (np.array([1, 1, 1, 1, 1, np.nan]), "must be finite and >= 0"),
        (np.ones(5), r"must have shape \(6,\)"),
        (np.zeros(6), "All sample weights are zero"),
        (np.array([1.0, 0, 0, 0, 1, 0]), "At least 2 classes are needed"),
    ],
)
def test_bad_sample_weights(weight, match):
    refuses(match, sample_weight=weight)


def test_wrong_data():
    refuses("inconsistent", y=SMALL_Y[:-1])
    refuses("At least 2 classes", y=np.ones(6, dtype=int))
    refuses("[Uu]nknown label", y=SMALL_Y + 0.5)
    refuses("0 feature", X=np.empty((6, 0)))
    with pytest.raises(NotFittedError):
        LinearSVC().predict(SMALL_X)
    with pytest.raises(ValueError, match="features"):
        LinearSVC().fit(SMALL_X, SMALL_Y).predict(SMALL_X[:, :1])


def test_a_fit_that_fails_leaves_no_model():
    model = LinearSVC(C=-1.0)
    with pytest.raises(ValueError, match="C must be"):
        model.fit(SMALL_X, SMALL_Y)
    assert not hasattr(model, "coef_")


# -- limits, callbacks, trace ----------------------------------------------------------------------
@pytest.mark.parametrize("max_iter", [1, 3, 5, 10])
def test_few_passes_are_passes_over_all_samples(max_iter, digits):
    X, y = digits
    with pytest.warns(
        ConvergenceWarning, match=r"max_iter.*violation .*, duality gap .* of the primal.*tol is 1e-06"
    ):
        model = LinearSVC(max_iter=max_iter, tol=1e-6).fit(X, y)
    assert model.status_ is Status.MAX_ITER
    assert model.n_iter_ == max_iter == len(model.trace_)
    assert (model.trace_["working_set"] == len(y)).all()
    audit_linear(model, X, y, 1.0)


def test_more_passes_never_do_more_than_allowed(digits):
    X, y = digits
    for max_iter in (11, 20, 37):
        with unfinished():
            model = LinearSVC(max_iter=max_iter, tol=1e-9, subproblem="sort").fit(X, y)  # passes alone
        assert model.trace_["working_set"].sum() <= max_iter * len(y)
        assert model.n_iter_ <= max_iter
    assert len(model.trace_) > model.n_iter_  # passes over active samples are shorter


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("gap_tol", [1e-1, 1e-2, 1e-4])
def test_a_gap_that_is_small_enough(gap_tol, shrinking, threads, digits, any_size_in_parallel):
    X, y = digits
    model = LinearSVC(tol=1e-9, gap_tol=gap_tol, shrinking=shrinking, n_threads=threads, max_iter=-1).fit(
        X, y
    )
    assert model.status_ is Status.WITHIN_GAP and model.status_.converged
    found = audit_linear(model, X, y, 1.0)
    assert found.gap <= gap_tol * found.primal
    assert found.gap > 0.05 * gap_tol * found.primal  # it does not go on for long
    assert model.violation_ > 1e-9


def test_a_violation_that_is_small_enough_comes_before_the_gap(digits):
    X, y = digits
    model = LinearSVC(C=0.1, tol=1e-2, gap_tol=1e-12).fit(X, y)
    assert model.status_ is Status.CONVERGED and model.violation_ <= 1e-2


def test_no_pass_at_all(iris):
    X, y = iris
    with unfinished():
        model = LinearSVC(max_iter=0).fit(X, y)
    assert model.n_iter_ == 0 and len(model.support_) == 0
    assert model.primal_objective_ == model.duality_gap_ == len(y)
    assert model.dual_objective_ == 0.0
    np.testing.assert_array_equal(model.coef_, 0.0)


def test_trace(digits):
    X, y = digits
    rows = []
    model = LinearSVC(C=0.1, tol=1e-6, dtype="float64", callback=rows.append).fit(X, y)
    trace = model.trace_
    assert len(rows) == len(trace)
    np.testing.assert_array_equal(trace["iteration"], np.arange(1, len(trace) + 1))
    assert (np.diff(trace["seconds"]) >= 0).all()
    assert (np.diff(trace["dual"]) <= 1e-9).all()
    assert trace["dual"][-1] == pytest.approx(model.dual_objective_, rel=1e-9)
    assert model.n_iter_ == -(-int(trace["working_set"].sum()) // len(y))
    assert (trace["inner"] <= trace["working_set"]).all()
    assert trace["support"][-1] == len(model.support_)
    assert not trace["rows"].any() and not trace["hits"].any()  # no kernel here
    assert trace["violation"][-1] <= 1e-6
    measured = trace["gap"][np.isfinite(trace["gap"])]
    assert len(measured) >= 2 and (measured > 0).all()
    assert measured[-1] < measured[0]
    bound = model.primal_objective_ - model.duality_gap_  # minus the optimum is at most this
    assert (trace["dual"] >= -model.primal_objective_ - 1e-9).all()
    gaps = trace["dual"][np.isfinite(trace["gap"])] + bound  # distance of the dual from its optimum
    assert (measured >= gaps - 1e-9).all()
    assert trace.info["subproblem"] == "auto"
    assert trace.info["dtype"] == "float64"
    assert trace.info["n_threads"] == 1
    assert trace.info["seconds"] >= trace["seconds"][-1]


def test_callback_stops(digits):
    X, y = digits
    with pytest.warns(ConvergenceWarning, match="callback"):
        model = LinearSVC(tol=1e-9, callback=lambda row: row.iteration >= 4).fit(X, y)
    assert model.status_ is Status.CALLBACK
    assert len(model.trace_) == 4
    audit_linear(model, X, y, 1.0)


def test_callback_that_raises_is_not_swallowed(iris):
    def broken(row):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        LinearSVC(callback=broken).fit(*iris)


def test_time_limit():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 60)), rng.integers(8, size=1500)
    start = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = LinearSVC(C=1e4, tol=1e-9, max_iter=-1, time_limit=0.3).fit(X, y)
    assert time.perf_counter() - start < 3.0
    assert model.status_ is Status.TIME_LIMIT
    assert model.trace_["seconds"][-2] < 0.3
    audit_linear(model, X, y, 1e4)


@pytest.mark.parametrize("verbose", [1, 2])
def test_progress_is_shown(verbose, iris, capsys):
    LinearSVC(verbose=verbose).fit(*iris)
    shown = capsys.readouterr()
    assert not shown.out
    assert ("converged" in shown.err) or ("LinearSVC" in shown.err)


# -- warm start ------------------------------------------------------------------------------------
def test_a_path_of_costs_is_shorter_warm(text):
    X, y = text
    path = np.geomspace(0.05, 5.0, 9)
    warm, visits = LinearSVC(warm_start=True, tol=1e-4), {"warm": 0, "cold": 0}
    for C in path:
        warm.set_params(C=C).fit(X, y)
        audit_linear(warm, X, y, C, 1e-4)
        visits["warm"] += warm.trace_["working_set"].sum()
        visits["cold"] += LinearSVC(C=C, tol=1e-4).fit(X, y).trace_["working_set"].sum()
    assert visits["warm"] < 0.85 * visits["cold"]
    warm.fit(X, y)
    assert warm.n_iter_ == 1
    for C in path[::-1]:  # and back: the old point must be made feasible
        warm.set_params(C=C).fit(X, y)
        audit_linear(warm, X, y, C, 1e-4)


@pytest.mark.parametrize("change", ["labels", "weights", "columns", "rows", "fewer classes", "intercept"])
def test_warm_start_with_something_else(change, digits):
    X, y = digits
    model = LinearSVC(C=0.3, warm_start=True, tol=1e-4).fit(X, y)
    weight = np.ones(len(y))
    if change == "labels":
        y = np.roll(y, 1)
    elif change == "weights":
        weight = np.linspace(0.1, 2.0, len(y))
        weight[::5] = 0.0
    elif change == "columns":
        X = X[:, 10:50]
    elif change == "rows":
        X, y, weight = X[:90], y[:90], weight[:90]
    elif change == "fewer classes":
        y = y % 4
    else:
        model.set_params(fit_intercept=False)
    model.fit(X, y, sample_weight=weight)
    kept = weight > 0
    audit = clone(model).set_params(warm_start=False).fit(X[kept], y[kept], sample_weight=weight[kept])
    audit_linear(audit, X[kept], y[kept], 0.3 * weight[kept], 1e-4)
    assert model.status_ is Status.CONVERGED
    assert model.primal_objective_ == pytest.approx(audit.primal_objective_, rel=1e-3)
    if change != "weights":
        audit_linear(model, X, y, 0.3, 1e-4)


def test_interrupted_fit_goes_on_warm(digits):
    X, y = digits
    model = LinearSVC(warm_start=True, tol=1e-4, max_iter=3)
    with unfinished():
        model.fit(X, y)
    early = model.dual_objective_
    model.set_params(max_iter=1000).fit(X, y)
    assert model.trace_["dual"][0] <= early + 1e-9
    audit_linear(model, X, y, 1.0, 1e-4)


# -- the same again --------------------------------------------------------------------------------
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bitwise_repeatable(dtype, threads, digits, any_size_in_parallel):
    X, y = digits
    first, second, other = (
        LinearSVC(C=0.5, dtype=dtype, n_threads=threads, random_state=seed).fit(X, y) for seed in (3, 3, 4)
    )
    assert first.trace_.info["n_threads"] == min(threads, 2)  # of 8 classes at least
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(first.support_, second.support_)
    np.testing.assert_array_equal(first.dual_coef_.toarray(), second.dual_coef_.toarray())
    np.testing.assert_array_equal(first.trace_["dual"], second.trace_["dual"])
    assert np.abs(first.coef_ - other.coef_).max() > 0
    assert first.primal_objective_ == pytest.approx(other.primal_objective_, rel=1e-3)


def test_random_state_none_is_a_fixed_seed_and_an_instance_is_used(digits):
    X, y = digits
    np.testing.assert_array_equal(LinearSVC().fit(X, y).coef_, LinearSVC().fit(X, y).coef_)
    state = np.random.RandomState(0)
    assert (
        LinearSVC(random_state=state).fit(X, y).coef_ != LinearSVC(random_state=state).fit(X, y).coef_
    ).any()


def test_threads_reach_the_same_optimum_where_they_are_used():
    """Enough work for threads without being told, on correlated dense rows."""
    rng = np.random.default_rng(0)
    y = rng.integers(50, size=1600)
    X = np.abs(rng.normal(size=(50, 700))[y] + rng.normal(size=(1600, 700)))
    one, two = (LinearSVC(C=0.001, tol=1e-3, n_threads=threads).fit(X, y) for threads in (1, 2))
    assert (one.trace_.info["n_threads"], two.trace_.info["n_threads"]) == (1, 2)
    assert one.status_ is two.status_ is Status.CONVERGED
    audit_linear(two, X, y, 0.001, 1e-3)
    assert two.primal_objective_ == pytest.approx(
        one.primal_objective_, abs=one.duality_gap_ + two.duality_gap_
    )


# -- company ---------------------------------------------------------------------------------------
def test_pickle_copy_and_clone(digits):
    X, y = digits
    model = LinearSVC(C=0.2, subproblem="pivot", warm_start=True).fit(X, y)
    for back in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(back.coef_, model.coef_)
        np.testing.assert_allclose(back.decision_function(X), model.decision_function(X), atol=1e-12)
        assert back.duality_gap_ == model.duality_gap_ and back.status_ is model.status_
        np.testing.assert_array_equal(back.trace_["dual"], model.trace_["dual"])
        assert back.fit(X, y).n_iter_ == 1
    new = clone(model)
    assert new.get_params() == model.get_params() and not hasattr(new, "coef_")


def test_fit_does_not_change_its_arguments(digits):
    X, y = sparse.csr_array(digits[0]), digits[1].copy()
    X.data.flags.writeable = X.indices.flags.writeable = X.indptr.flags.writeable = False
    y.flags.writeable = False
    before = LinearSVC().get_params()
    model = LinearSVC().fit(X, y)
    assert model.get_params() == before
    assert is_classifier(model) and model.__sklearn_tags__().input_tags.sparse


def test_integer_labels_and_names(iris):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])
    model = LinearSVC(C=1.0).fit(X, names[y])
    numbers = LinearSVC(C=1.0).fit(X, 10 * y - 7)
    np.testing.assert_array_equal(model.classes_, names)
    np.testing.assert_array_equal(numbers.classes_, [-7, 3, 13])
    np.testing.assert_array_equal(model.coef_, numbers.coef_)
    assert model.score(X, names[y]) > 0.9
    assert set(model.predict(X)) <= set(names)


def test_text_pipeline():
    texts = [
        "the cat sat",
        "a cat and a dog",
        "dogs bark",
        "red wine",
        "white wine and cheese",
        "old cheese",
    ] * 3
    labels = ["animal", "animal", "animal", "food", "food", "food"] * 3
    pipeline = make_pipeline(HashingVectorizer(n_features=2**10), LinearSVC())
    search = GridSearchCV(pipeline, {"linearsvc__C": [0.1, 1.0]}, cv=3).fit(texts, labels)
    assert search.best_score_ == 1.0
    assert search.predict(["cat bark", "wine"]).tolist() == ["animal", "food"]
