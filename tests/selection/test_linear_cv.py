"""LinearSVCCV: every point as independent fits find it; certificates; checkpoints; several machines."""

import numpy as np
import pytest
from helpers import audit_linear
from scipy import sparse
from sklearn.datasets import make_blobs, make_classification
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from multimargin import LinearSVC, LinearSVCCV
from multimargin.selection.linear_fits import LinearFits

CS = [0.01, 0.3, 10.0]


@parametrize_with_checks([LinearSVCCV(), LinearSVCCV(Cs=[0.1, 1.0], cv=3)])
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def overlap():
    X, y = make_classification(400, 12, n_informative=8, n_classes=4, random_state=0)
    return X, y


def splits(search, k):
    return np.array([search.cv_results_[f"split{f}_test_score"][k] for f in range(search.n_splits_)])


@pytest.mark.parametrize(
    ("machine", "loss"),
    [
        ("crammer-singer", "hinge"),
        ("weston-watkins", "hinge"),
        ("one-vs-rest", "hinge"),
        ("one-vs-rest", "squared_hinge"),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_points_like_independent_fits(machine, loss, form, overlap):
    X, y = overlap
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    search = LinearSVCCV(machine, loss=loss, Cs=CS, cv=cv, drop=None).fit(form(X), y)
    for k, C in enumerate(CS):
        expected = cross_val_score(LinearSVC(machine, C, loss=loss), X, y, cv=cv)
        np.testing.assert_allclose(splits(search, k), expected, atol=1.01 / 100)
    table = search.cv_results_
    assert all(table[f"split{f}_converged"].all() for f in range(4))
    assert max(table[f"split{f}_violation"].max() for f in range(4)) <= 1e-3
    best = search.best_estimator_
    audit_linear(best, X, y, search.best_params_["C"], 1e-3)
    np.testing.assert_array_equal(best.predict(X), search.predict(form(X)))
    P = search.predict_proba(X)
    np.testing.assert_array_equal(search.classes_[P.argmax(axis=1)], search.predict(X))


def test_certificates_of_folds(overlap, monkeypatch):
    X, y = overlap
    fit, seen = LinearFits.fit, []

    def audited(self, C, fold):
        found = fit(self, C, fold)
        data, solution = found.data, found.solution
        model = LinearSVC(C=C)
        from multimargin.estimators.base import Rows
        from multimargin.estimators.linear_model import model_attributes

        rows = Rows(np.arange(len(data.y)), np.arange(4), data.y, np.ones(len(data.y)))
        model.__dict__.update(model_attributes(data, rows, solution.weights, solution.alpha))
        model._store_certificate(solution)
        audit_linear(model, np.asarray(data.X), data.y, C, 1e-3)
        seen.append((C, fold))
        return found

    monkeypatch.setattr(LinearFits, "fit", audited)
    LinearSVCCV(Cs=CS, cv=3, drop=None).fit(X, y)
    assert len(seen) == 10


def test_warm_starts_save_updates():
    """Where no sample is bounded any more, larger costs have nothing left to do."""
    X, y = make_classification(300, 60, n_informative=30, n_classes=3, class_sep=2.0, random_state=0)
    Cs = np.geomspace(0.01, 10, 10)
    warm = LinearSVCCV(Cs=Cs, cv=3, drop=None).fit(X, y).cv_results_
    cold = sum(
        LinearSVC(C=C).fit(X[train], y[train]).trace_["inner"].sum()
        for C in Cs
        for train, _ in StratifiedKFold(3).split(X, y)
    )
    assert sum(warm[f"split{f}_n_updates"].sum() for f in range(3)) < 0.7 * cold


def test_groups_weights_and_machines(overlap):
    X, y = overlap
    groups, cv = np.arange(400) // 20, GroupKFold(4)
    weight = np.random.default_rng(0).integers(0, 3, 400).astype(float)
    machines = ["crammer-singer", "one-vs-rest"]
    search = LinearSVCCV(machines, Cs=CS, cv=cv, drop=None, class_weight="balanced")
    search.fit(X, y, weight, groups=groups)
    table = search.cv_results_
    assert list(table["param_machine"]) == [name for name in machines for _ in CS]
    for k, point in enumerate(table["params"]):
        model = LinearSVC(**point, class_weight="balanced")
        expected = [
            model.fit(X[a], y[a], weight[a]).score(X[b], y[b], weight[b]) for a, b in cv.split(X, y, groups)
        ]
        np.testing.assert_allclose(splits(search, k), expected, atol=4 / 100)
    again = LinearSVCCV(machines, Cs=CS, cv=cv, drop=None, class_weight="balanced", n_jobs=2)
    again.fit(X, y, weight, groups=groups)
    np.testing.assert_array_equal(again.cv_results_["mean_test_score"], table["mean_test_score"])


def test_a_search_goes_on(overlap, tmp_path, monkeypatch):
    X, y = overlap
    options = {"Cs": CS, "cv": 3, "drop": None, "checkpoint": tmp_path / "search"}
    first = LinearSVCCV(**options).fit(X, y)
    fit, seen = LinearFits.fit, []
    monkeypatch.setattr(LinearFits, "fit", lambda self, C, k: seen.append(k) or fit(self, C, k))
    again = LinearSVCCV(**options).fit(X, y)
    assert seen == [3]
    assert again.best_params_ == first.best_params_
    with pytest.raises(ValueError, match="the machine"):
        LinearSVCCV("one-vs-rest", **options).fit(X, y)


def test_two_classes():
    X, y = make_blobs(200, centers=2, n_features=3, cluster_std=4.0, random_state=0)
    search = LinearSVCCV(Cs=CS).fit(X, y)
    assert search.decision_function(X).shape == (200,)
    assert search.predict_proba(X).shape == (200, 2)
    assert search.best_estimator_.coef_.shape == (1, 3)


def test_refusals(overlap):
    for wrong in ({"Cs": []}, {"loss": "log"}, {"machine": ["msvm2"]}, {"drop": "now"}):
        with pytest.raises(ValueError, match=r"must|is for"):
            LinearSVCCV(**wrong).fit(*overlap)
