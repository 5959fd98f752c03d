"""What weights mean for classes, for gamma and for costs, and what is said about wrong ones."""

import numpy as np
import pytest
from helpers import audit
from oracle import kernel_matrix
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as PeerLinearSVC

from multimargin import KernelSVC, LinearSVC
from multimargin.problems import PROBLEMS

MULTICLASS = [name for name, problem in PROBLEMS.items() if not problem.balanced]


@pytest.mark.parametrize("empty", [0, 1, 2])
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("machine", MULTICLASS)
def test_a_class_whose_rows_all_have_weight_zero_stays_a_class(machine, bias, empty, iris):
    X, y = iris
    weight = (y != empty).astype(float)
    kept = y != empty
    model = KernelSVC(machine, gamma=0.3, bias=bias).fit(X, y, sample_weight=weight)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.n_support_[empty] == 0
    assert model.decision_function(X).shape == (len(y), 3)
    without = KernelSVC(machine, gamma=0.3, bias=bias).fit(X[kept], y[kept])
    assert model.score(X[kept], y[kept]) >= without.score(X[kept], y[kept]) - 0.05
    assert not np.any(model.predict(X[kept]) == empty)


@pytest.mark.parametrize("machine", MULTICLASS)
def test_an_empty_class_is_certified_by_the_oracle(machine, iris):
    X, y = iris[0][iris[1] != 1], iris[1][iris[1] != 1]
    X_all, y_all = np.vstack([X, X[:1]]), np.append(y, 1)
    model = KernelSVC(machine, gamma=0.3).fit(X_all, y_all, sample_weight=np.append(np.ones(len(y)), 0.0))
    audit(model, kernel_matrix("rbf", X, gamma=0.3), y, 1.0, 1e-3)


def test_an_empty_class_of_the_linear_machine(iris):
    X, y = iris
    model = LinearSVC(max_iter=-1).fit(X, y, sample_weight=(y != 1).astype(float))
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.coef_.shape == (3, 4)
    assert not np.any(model.predict(X[y != 1]) == 1)


@pytest.mark.parametrize("estimator", [KernelSVC, LinearSVC])
def test_two_classes_of_positive_weight_are_needed(estimator, iris):
    X, y = iris
    with pytest.raises(ValueError, match=r"At least 2 classes.*positive weight have 1 class: \[2\]"):
        estimator().fit(X, y, sample_weight=(y == 2).astype(float))


@pytest.mark.parametrize(
    "settings", [{}, {"class_weight": "balanced"}, {"machine": "one-vs-rest"}, {"kernel": "linear"}]
)
def test_a_row_of_weight_two_is_two_rows_for_gamma_and_balanced(settings, blobs):
    """SVC's gamma="scale" and "balanced" count every row once, whatever its weight, so there it is not."""
    X, y = blobs
    times = np.random.default_rng(0).integers(0, 4, len(y))
    again = np.repeat(np.arange(len(y)), times)
    for make, exact in ((KernelSVC, True), (SVC, False)):
        if make is SVC and ("machine" in settings or "kernel" in settings):
            continue
        options = settings | {"tol": 1e-6}
        weighted = make(**options).fit(X, y, sample_weight=times).decision_function(X)
        repeated = make(**options).fit(X[again], y[again]).decision_function(X)
        assert (np.abs(weighted - repeated).max() <= 1e-3) == exact


def test_balanced_is_what_scikit_learns_linear_machine_means_by_it(wine):
    X, y = wine
    weight = np.random.default_rng(1).uniform(0.5, 3.0, len(y))
    model = KernelSVC(class_weight="balanced").fit(X, y, sample_weight=weight)
    totals = np.bincount(y, weights=weight)
    np.testing.assert_allclose(model.class_weight_, totals.sum() / (3 * totals))
    peer, named = (
        PeerLinearSVC(class_weight=given, random_state=0, max_iter=20_000).fit(X, y, sample_weight=weight)
        for given in ("balanced", dict(enumerate(model.class_weight_)))
    )
    np.testing.assert_allclose(peer.coef_, named.coef_, atol=1e-6)


WRONG = {
    "an unknown label": ({"a": 1.0}, r"weight for 'a', which is no label in y, and none for 0, 1, 2"),
    "a negative number": ({0: -1.0}, r"finite number > 0 for every class, got -1.0 for 0"),
    "zero": ({1: 0}, r"got 0 for 1"),
    "not a number": ({2: np.nan}, r"got nan for 2"),
    "infinite": ({2: np.inf}, r"got inf for 2"),
    "text": ({0: "heavy"}, r"got 'heavy' for 0"),
    "a misspelt word": ("balance", r"None, 'balanced' or a dict.*'balance'"),
    "a list": ([1.0, 2.0, 3.0], r"None, 'balanced' or a dict"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("estimator", [KernelSVC, LinearSVC])
def test_a_wrong_class_weight(estimator, case, iris):
    class_weight, words = WRONG[case]
    with pytest.raises(ValueError, match=words):
        estimator(class_weight=class_weight).fit(*iris)


def test_a_label_without_a_class_weight_has_weight_one(iris):
    X, y = iris
    assert KernelSVC(class_weight={1: 3.0}).fit(X, y).class_weight_.tolist() == [1.0, 3.0, 1.0]
    all_three = {0: 1.0, 1: 2.0, 2: 3.0}
    assert KernelSVC(class_weight=all_three).fit(X[y > 0], y[y > 0]).class_weight_.tolist() == [2.0, 3.0]


@pytest.mark.parametrize(("C", "weight"), [(1e10, 1e300), (1e-300, 1e-200)])
@pytest.mark.parametrize("estimator", [KernelSVC, LinearSVC])
def test_a_cost_beyond_float64_is_not_blamed_on_c(estimator, C, weight, iris):
    X, y = iris
    with pytest.raises(ValueError, match=r"C times class_weight times sample_weight"):
        estimator(C=C).fit(X, y, sample_weight=np.full(len(y), weight))


@pytest.mark.parametrize("estimator", [KernelSVC, LinearSVC])
def test_weights_whose_sum_overflows(estimator, iris):
    X, y = iris
    with pytest.raises(ValueError, match=r"sum of the sample weights overflows \(the largest is 1e\+308\)"):
        estimator(C=1e-10).fit(X, y, sample_weight=np.full(len(y), 1e308))


def test_one_huge_weight_is_one_hard_constraint(iris):
    X, y = iris
    model = KernelSVC().fit(X, y, sample_weight=np.append(1e300, np.ones(len(y) - 1)))
    assert model.status_.converged
    assert model.predict(X[:1]) == y[0]


UNUSED = [
    ({"verbose": -1}, "verbose must be an integer >= 0, got -1"),
    ({"verbose": "yes"}, "verbose must be an integer >= 0, got 'yes'"),
    ({"verbose": 0.5}, "verbose must be an integer"),
    ({"shrinking": "no"}, "shrinking must be True or False, got 'no'"),
    ({"shrinking": 1}, "shrinking must be True or False"),
    ({"warm_start": "yes"}, "warm_start must be True or False"),
    ({"max_iter": -2}, "max_iter must be an integer >= -1"),
]
OF_KERNELS = [
    ({"degree": -1}, "degree must be an integer >= 0"),
    ({"degree": 2.5}, "degree must be an integer >= 0"),
    ({"gamma": -1.0, "kernel": "linear"}, "gamma must be"),
    ({"gamma": "scales", "kernel": "precomputed"}, "gamma must be"),
    ({"coef0": np.nan}, "coef0 must be a finite number"),
    ({"coef0": "one", "kernel": "linear"}, "coef0 must be a finite number"),
]
OF_LINEAR = [
    ({name: "no"}, f"{name} must be True or False") for name in ("fit_intercept", "shuffle", "keep_dual")
]


@pytest.mark.parametrize(
    ("estimator", "parameters", "words"),
    [(KernelSVC, *case) for case in UNUSED + OF_KERNELS]
    + [(LinearSVC, *case) for case in UNUSED + OF_LINEAR],
)
def test_parameters_are_checked_whether_they_are_used_or_not(estimator, parameters, words, iris):
    with pytest.raises((ValueError, TypeError), match=words):
        estimator(**parameters).fit(*iris)


def test_values_that_svc_takes_are_taken(iris):
    X, y = iris
    for parameters in ({"verbose": False}, {"shrinking": np.bool_(False)}, {"degree": 0}):
        SVC(**parameters).fit(X, y)
        KernelSVC(**parameters).fit(X, y)
