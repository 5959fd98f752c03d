"""KernelSVCCV: every point as independent fits find it, whatever the folds; what is shared and dropped."""

import numpy as np
import pytest
from helpers import audit
from oracle import kernel_matrix
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)

from multimargin import KernelSVC, KernelSVCCV
from multimargin.problems import PROBLEMS
from multimargin.selection.dropping import Dropping, largest_score
from multimargin.selection.fits import KernelFits

CS, GAMMAS = [0.3, 3.0, 30.0], [0.02, 0.1]
MACHINES = sorted(set(PROBLEMS) - {"c-svc"})


def points(search):
    return list(zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True))


def split_scores(search, k, name="score"):
    table = search.cv_results_
    return np.array([table[f"split{fold}_test_{name}"][k] for fold in range(search.n_splits_)])


def assert_like_refits(search, X, y, cv, alone, **options):
    """Each fold's score is that of a fit alone, up to a test row that lies on the border."""
    for k, (params, mean) in enumerate(points(search)):
        model = clone(alone).set_params(**params)
        expected = cross_val_score(model, X, y, cv=cv, **options)
        rows = [len(test) for _, test in cv.split(X, y, options.get("groups"))]
        tie = 1.01 / np.array(rows)
        assert (np.abs(split_scores(search, k) - expected) <= tie).all()
        assert abs(mean - expected.mean()) <= tie.mean() / 2


@pytest.fixture(scope="module")
def overlap():
    """400 rows of five overlapping classes."""
    X, y = make_blobs(400, centers=5, n_features=4, cluster_std=3.0, random_state=1)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_every_machine_like_independent_fits(machine, bias, blobs):
    X, y = blobs
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    search = KernelSVCCV(machine, Cs=[0.5, 5.0], gammas=[0.02], bias=bias, cv=cv, drop=None).fit(X, y)
    assert_like_refits(search, X, y, cv, KernelSVC(machine, bias=bias))


def test_binary_machine_like_independent_fits(overlap):
    X, y = overlap
    y = np.where(y < 2, "no", "yes")
    cv = StratifiedKFold(4)
    search = KernelSVCCV("c-svc", Cs=CS, gammas=GAMMAS, cv=cv, drop=None).fit(X, y)
    assert_like_refits(search, X, y, cv, KernelSVC("c-svc"))
    assert set(search.predict(X)) == {"no", "yes"}


@pytest.mark.parametrize(
    "cv",
    [
        KFold(3, shuffle=True, random_state=0),
        StratifiedKFold(5),
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
        ShuffleSplit(3, test_size=0.3, train_size=0.5, random_state=0),
        PredefinedSplit(np.where(np.arange(400) % 7 == 0, -1, np.arange(400) % 3)),
        RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0),  # more folds than are remembered
    ],
    ids=["kfold", "stratified", "repeated", "shuffled", "predefined", "many"],
)
def test_splits_like_independent_fits(cv, overlap):
    X, y = overlap
    search = KernelSVCCV(Cs=CS, gammas=[0.1], cv=cv, drop=None).fit(X, y)
    assert search.n_splits_ == cv.get_n_splits(X, y)
    assert_like_refits(search, X, y, cv, KernelSVC())


def test_groups_like_independent_fits(overlap):
    X, y = overlap
    groups, cv = np.arange(400) // 20, GroupKFold(4)
    search = KernelSVCCV(Cs=CS, gammas=[0.1], cv=cv, drop=None).fit(X, y, groups=groups)
    assert_like_refits(search, X, y, cv, KernelSVC(), groups=groups)
    with pytest.raises(ValueError, match="groups"):
        KernelSVCCV(Cs=CS, gammas=[0.1], cv=cv).fit(X, y)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 5.0, 3: 0.2}])
def test_weights_like_independent_fits(class_weight, overlap):
    X, y = overlap
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    cv = KFold(4, shuffle=True, random_state=1)
    search = KernelSVCCV(Cs=[0.1, 1.0], gammas=[0.1], cv=cv, class_weight=class_weight, drop=None)
    search.fit(X, y, sample_weight=weight)
    for k, C in enumerate([0.1, 1.0]):
        alone = KernelSVC(C=C, gamma=0.1, class_weight=class_weight)
        expected = [alone.fit(X[a], y[a], weight[a]).score(X[b], y[b], weight[b]) for a, b in cv.split(X, y)]
        np.testing.assert_allclose(split_scores(search, k), expected, atol=4 / 100)
        assert abs(search.cv_results_["mean_test_score"][k] - np.mean(expected)) < 0.01
    best = KernelSVC(**search.best_params_, class_weight=class_weight).fit(X, y, weight)
    np.testing.assert_allclose(search.best_estimator_.primal_objective_, best.primal_objective_, rtol=2e-3)


def test_precomputed_sparse_and_callable_kernels_agree(overlap):
    X, y = overlap
    cv = StratifiedKFold(4)
    search = KernelSVCCV(Cs=CS, gammas=[0.1], cv=cv, drop=None).fit(X, y)
    K = kernel_matrix("rbf", X, gamma=0.1)
    others = [
        KernelSVCCV(Cs=CS, kernel="precomputed", bias="none", cv=cv, drop=None).fit(K, y),
        KernelSVCCV(Cs=CS, gammas=[0.1], cv=cv, drop=None).fit(sparse.csr_array(X), y),
        KernelSVCCV(
            Cs=CS, kernel=lambda A, B: kernel_matrix("rbf", A, B, gamma=0.1), bias="none", cv=cv, drop=None
        ).fit(X, y),
    ]
    for other in others:
        for k in range(len(CS)):
            np.testing.assert_allclose(split_scores(other, k), split_scores(search, k), atol=1.01 / 100)
    assert list(others[0].cv_results_["params"][0]) == ["C"]
    assert others[0].best_params_["C"] == search.best_params_["C"]
    scores = search.decision_function(X[:50])  # labels may differ: a free support vector has two equal scores
    np.testing.assert_allclose(others[0].decision_function(K[:50]), scores, atol=5e-3)


@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins", "one-vs-rest"])
def test_certificates_are_those_of_the_oracle(machine, overlap, monkeypatch):
    """Each fit of the search, audited as a model of its own."""
    X, y = overlap
    K, seen = kernel_matrix("rbf", X, gamma=0.1), []
    fit = KernelFits.fit

    def audited(self, C, fold):
        found = fit(self, C, fold)
        out = self.folds[fold].left_out
        inside = np.ones(len(y), dtype=bool) if out is None else ~out
        model, solution = KernelSVC(machine), found.solution
        model.classes_, model.bias_, model.intercept_ = np.arange(5), "none", np.zeros(5)
        model.support_ = np.searchsorted(np.flatnonzero(inside), solution.support)
        model.dual_coef_ = solution.coef
        model.primal_objective_, model.dual_objective_ = solution.primal, solution.dual
        model.duality_gap_ = solution.gap
        audit(model, K[np.ix_(inside, inside)], y[inside], C, 1e-3)
        seen.append(solution.gap)
        return found

    monkeypatch.setattr(KernelFits, "fit", audited)
    search = KernelSVCCV(machine, Cs=[1.0, 0.1, 100.0], gammas=[0.1], cv=3, drop=None).fit(X, y)
    table = search.cv_results_
    assert len(seen) == 10  # with the refit
    for k in range(3):
        assert set(table[f"split{k}_duality_gap"]) <= set(seen)
        assert table[f"split{k}_converged"].all()
        assert (table[f"split{k}_violation"] <= 1e-3).all()
        assert (table[f"split{k}_fit_time"] > 0).all()
    audit(search.best_estimator_, K, y, search.best_params_["C"], 1e-3)


def test_large_costs_and_small_gammas(overlap):
    X, y = overlap
    cv = StratifiedKFold(3)
    search = KernelSVCCV(Cs=[1.0, 1e4, 1e8], gammas=[1e-3], cv=cv, drop=None).fit(X, y)
    assert all(search.cv_results_[f"split{k}_converged"].all() for k in range(3))
    assert_like_refits(search, X, y, cv, KernelSVC())


def test_kernel_values_are_computed_once():
    X, y = make_blobs(2500, centers=6, n_features=60, cluster_std=6.0, random_state=0)
    search = KernelSVCCV(Cs=[0.1, 1.0, 10.0], gammas=[1e-3], cv=5, drop=None, cache_size=100).fit(X, y)
    rows = np.array([search.cv_results_[f"split{k}_kernel_rows"] for k in range(5)])
    assert rows.sum() <= 2500  # each row of 2,500 at most once in 15 fits
    alone = KernelSVC(C=1.0, gamma=1e-3).fit(X, y).trace_[-1].rows
    assert rows[1:].sum() < 2 * alone


def test_memory_budget_is_held(overlap):
    """A cache of a few rows gives the same scores, and one that is too small is refused."""
    X, y = make_blobs(2500, centers=6, n_features=60, cluster_std=6.0, random_state=0)
    options = {"Cs": [1.0], "gammas": [1e-3], "cv": 3, "drop": None}
    plenty = KernelSVCCV(**options).fit(X, y)
    scarce = KernelSVCCV(**options, cache_size=5).fit(X, y)
    np.testing.assert_allclose(split_scores(scarce, 0), split_scores(plenty, 0), atol=2.01 / 833)
    with pytest.raises(ValueError, match="cache_size"):
        KernelSVCCV(**options, cache_size=0.001).fit(X, y)


# -- dropping ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
def test_exact_dropping_never_changes_the_best_point(seed):
    X, y = make_blobs(250, centers=4, n_features=3, cluster_std=2.5, random_state=seed)
    options = {"Cs": np.geomspace(1e-3, 1e3, 7), "gammas": np.geomspace(1e-3, 10, 5), "cv": 4}
    # No mean is lower by more than 1: the same order of fits, and nothing is dropped.
    whole, exact = (KernelSVCCV(**options, drop=drop).fit(X, y) for drop in (1.0, "exact"))
    assert exact.best_params_ == whole.best_params_
    assert exact.best_score_ == whole.best_score_
    dropped = exact.cv_results_["dropped"]
    assert dropped.any()
    assert not whole.cv_results_["dropped"].any()
    table = exact.cv_results_
    assert np.isnan(table["mean_test_score"][dropped]).all()
    assert (table["bound_test_score"][dropped] < exact.best_score_).all()
    assert (table["bound_test_score"] >= whole.cv_results_["mean_test_score"] - 2 / 250).all()
    assert np.isnan(table["split3_test_score"][dropped]).all()
    assert not np.isnan(table["split0_test_score"]).any()
    assert (table["rank_test_score"][dropped] > table["rank_test_score"][~dropped].max()).all()


def test_the_best_of_the_first_fold_is_finished_before_others(overlap, monkeypatch):
    """All first folds, then the point that is best there, then what may still be better."""
    X, y = overlap
    fit, seen = KernelFits.fit, []

    def watched(self, C, fold):
        seen.append((C, self.task.kernel.gamma, fold))
        return fit(self, C, fold)

    monkeypatch.setattr(KernelFits, "fit", watched)
    search = KernelSVCCV(Cs=CS, gammas=GAMMAS, cv=4, refit=False).fit(X, y)
    table = search.cv_results_
    assert {fold for *_, fold in seen[:6]} == {0}
    best = table["params"][int(np.argmax(table["split0_test_score"]))]
    assert seen[6:9] == [(best["C"], best["gamma"], fold) for fold in (1, 2, 3)]
    assert all(fold > 0 for *_, fold in seen[6:])
    assert len(set(seen)) == len(seen)


def test_inexact_dropping_drops_more(overlap):
    X, y = overlap
    options = {"Cs": np.geomspace(1e-3, 1e3, 5), "gammas": [0.01, 0.1, 1.0], "cv": 4}
    exact, more = (KernelSVCCV(**options, drop=drop).fit(X, y) for drop in ("exact", 0.0))
    assert more.cv_results_["dropped"].sum() > exact.cv_results_["dropped"].sum()
    assert more.best_score_ <= exact.best_score_


def test_nothing_is_dropped_if_the_largest_score_is_not_known(overlap):
    X, y = overlap
    score = make_scorer(balanced_accuracy_score)
    search = KernelSVCCV(Cs=[1e-3, 1.0], gammas=[0.1], scoring=score).fit(X, y)
    assert not search.cv_results_["dropped"].any()
    assert largest_score(score) is None
    assert largest_score("recall_weighted") == 1.0


def test_rules_of_dropping():
    rule, done = Dropping("exact", 1.0), np.array([0.8, 0.8])
    assert not rule.drops(np.array([0.0, np.nan]))  # nothing to compare with
    rule.saw(done)
    assert rule.drops(np.array([0.5, np.nan]))
    assert not rule.drops(np.array([0.6, np.nan]))  # may still be equal
    assert rule.bound(np.array([0.6, np.nan])) == 0.8
    assert not Dropping(None, 1.0).drops(np.array([0.0, np.nan]))
    share = Dropping(0.1, None)
    share.saw(done)
    assert share.drops(np.array([0.69, np.nan]))
    assert not share.drops(np.array([0.71, np.nan]))


# -- where fits start ------------------------------------------------------------------------------------
def test_a_solution_without_bounded_samples_is_that_of_every_larger_cost():
    X, y = make_blobs(300, centers=3, n_features=5, cluster_std=0.5, random_state=0)
    search = KernelSVCCV(Cs=[1.0, 1.5, 2.0], gammas=[0.1], cv=3, drop=None).fit(X, y)
    for k in range(3):
        iterations = search.cv_results_[f"split{k}_n_iter"]
        assert iterations[0] > 0
        assert (iterations[1:] == 0).all()
        assert search.cv_results_[f"split{k}_converged"].all()
