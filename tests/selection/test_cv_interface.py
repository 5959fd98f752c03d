"""KernelSVCCV as scikit-learn's users meet it: checks, parameters, scores, probabilities, Ctrl-C."""

import os
import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss, make_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from multimargin import KernelSVC, KernelSVCCV, Status
from multimargin.selection.fits import KernelFits
from multimargin.selection.temperature import fit_temperature, log_probabilities

FEW = {"Cs": [0.5, 5.0], "gammas": [0.05, 0.2], "cv": 3}


@parametrize_with_checks([KernelSVCCV(), KernelSVCCV(Cs=[0.1, 1.0], gammas=["scale"], cv=3)])
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def two():
    """Two overlapping classes."""
    return make_blobs(200, centers=2, n_features=3, cluster_std=4.0, random_state=0)


def test_results_have_the_form_of_grid_search(wine):
    X, y = wine
    cv = StratifiedKFold(3)
    ours = KernelSVCCV(Cs=FEW["Cs"], gammas=FEW["gammas"], cv=cv, drop=None).fit(X, y)
    theirs = GridSearchCV(KernelSVC(), {"gamma": FEW["gammas"], "C": FEW["Cs"]}, cv=cv).fit(X, y)
    missing = set(theirs.cv_results_) - set(ours.cv_results_)
    assert missing == {"mean_score_time", "std_score_time"}  # nothing is predicted
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=0.01)
    for name, values in ours.cv_results_.items():
        assert len(values) == 4, name
    assert ours.best_params_ == ours.cv_results_["params"][ours.best_index_]
    assert ours.cv_results_["rank_test_score"][ours.best_index_] == 1
    assert isinstance(ours.best_estimator_, KernelSVC)
    assert ours.best_estimator_.C == ours.best_params_["C"]
    pandas = pytest.importorskip("pandas")
    assert len(pandas.DataFrame(ours.cv_results_)) == 4


def test_best_estimator_is_a_model_of_its_own(wine):
    X, y = wine
    search = KernelSVCCV(**FEW).fit(X, y)
    best = search.best_estimator_
    again = clone(best).fit(X, y)
    np.testing.assert_allclose(best.decision_function(X), again.decision_function(X), atol=0.01)
    np.testing.assert_array_equal(best.predict(X), search.predict(X))
    assert best.status_.converged
    assert best.label_distribution(int(best.support_[0])).shape == (3,)
    back = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(back.predict_proba(X), search.predict_proba(X))


def test_a_single_point_is_fitted_to_all_rows_first(wine, monkeypatch):
    X, y = wine
    fit, seen = KernelFits.fit, []
    monkeypatch.setattr(KernelFits, "fit", lambda self, C, fold: seen.append(fold) or fit(self, C, fold))
    search = KernelSVCCV(Cs=[5.0], gammas=[0.05], cv=3).fit(X, y)
    assert seen == [3, 0, 1, 2]
    alone = KernelSVC(C=5.0, gamma=0.05).fit(X, y)
    np.testing.assert_allclose(search.decision_function(X), alone.decision_function(X), atol=0.01)
    np.testing.assert_array_equal(search.best_estimator_.support_, alone.support_)


def test_defaults_cover_a_grid_around_scale(wine):
    X, y = wine
    search = KernelSVCCV().fit(X, y)
    gammas = np.unique(search.cv_results_["param_gamma"])
    assert len(search.cv_results_["params"]) == 15
    np.testing.assert_allclose(gammas[1:] / gammas[:-1], 4.0)
    np.testing.assert_allclose(gammas[1], 1 / (X.shape[1] * X.var()))
    mixed = KernelSVCCV(Cs=2, gammas=["scale", "auto", 0.5]).fit(X, y)
    assert len(mixed.cv_results_["params"]) == 6
    assert KernelSVCCV(Cs=2, kernel="linear").fit(X, y).best_params_.keys() == {"C"}


def test_frames_and_pipelines(wine):
    pandas = pytest.importorskip("pandas")
    X, y = wine
    frame = pandas.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])])
    search = KernelSVCCV(**FEW).fit(frame, y)
    assert list(search.feature_names_in_) == list(frame.columns)
    search.predict(frame)
    search.best_estimator_.predict(frame)
    assert make_pipeline(StandardScaler(), KernelSVCCV(**FEW)).fit(X, y).score(X, y) > 0.9
    assert is_classifier(search)


# -- scores ---------------------------------------------------------------------------------------------
def test_several_scores(wine):
    X, y = wine
    search = KernelSVCCV(**FEW, scoring=["accuracy", "f1_macro"], refit="f1_macro").fit(X, y)
    table = search.cv_results_
    assert search.best_score_ == table["mean_test_f1_macro"][search.best_index_]
    assert set(search.scorer_) == {"accuracy", "f1_macro"}
    assert 0.9 < search.score(X, y) <= 1.0
    named = KernelSVCCV(**FEW, scoring={"a": "accuracy", "b": "f1_macro"}, refit="a").fit(X, y)
    assert "mean_test_b" in named.cv_results_
    none = KernelSVCCV(**FEW, scoring=["accuracy", "f1_macro"], refit=False).fit(X, y)
    assert not hasattr(none, "best_index_")
    assert not none.cv_results_["dropped"].any()


def test_scores_by_decision_values_and_by_functions(two):
    X, y = two
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    search = KernelSVCCV(Cs=[1.0], gammas=[0.1], cv=cv, scoring="roc_auc").fit(X, y)
    model = KernelSVC(C=1.0, gamma=0.1)
    S = cross_val_predict(model, X, y, cv=cv, method="decision_function")
    for k, (_, test) in enumerate(cv.split(X, y)):
        expected = roc_auc_score(y[test], S[test])
        assert search.cv_results_[f"split{k}_test_score"][0] == pytest.approx(expected, abs=2e-3)
    seen = []

    def rows(estimator, X, y):
        seen.append(X.shape)
        return float((estimator.predict(X) == y).mean())

    by_function = KernelSVCCV(Cs=[1.0], gammas=[0.1], cv=cv, scoring=rows).fit(X, y, np.ones(len(y)))
    assert seen == [(50, 3)] * 4
    by_scorer = KernelSVCCV(Cs=[1.0], gammas=[0.1], cv=cv, scoring=make_scorer(_accuracy)).fit(X, y)
    assert by_scorer.best_score_ == by_function.best_score_
    assert by_function.score(X, y) == KernelSVC(C=1.0, gamma=0.1).fit(X, y).score(X, y)


def _accuracy(y, predicted):
    return float((y == predicted).mean())


def test_without_a_model(wine):
    X, y = wine
    search = KernelSVCCV(**FEW, refit=False).fit(X, y)
    assert search.best_params_["C"] in FEW["Cs"]
    with pytest.raises(AttributeError, match="refit=False"):
        search.predict(X)
    with pytest.raises(NotFittedError):
        KernelSVCCV().predict(X)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"Cs": []}, "Cs must have at least one value"),
        ({"Cs": [1.0, 1.0]}, "twice"),
        ({"Cs": [-1.0]}, "Cs must be a finite number > 0"),
        ({"Cs": 0}, "Cs must be an integer >= 1"),
        ({"gammas": ["wide"]}, "gammas must be a finite number"),
        ({"kernel": "linear", "gammas": [1.0]}, "none to choose"),
        ({"drop": "now"}, "drop must be"),
        ({"drop": -0.1}, "drop must be"),
        ({"refit": "accuracy"}, "single one"),
        ({"scoring": ["accuracy", "f1_macro"]}, "refit must be one of"),
        ({"scoring": []}, "at least one score"),
        ({"scoring": [len]}, "use a dict"),
        ({"machine": "svm"}, "machine must be one of"),
        ({"tol": 0.0}, "tol must be"),
        ({"on_interrupt": "ignore"}, "on_interrupt must be"),
        ({"cv": []}, "no split"),
        ({"cv": [(np.arange(40), np.array([], dtype=int))]}, "no test row"),
    ],
)
def test_refusals(wrong, words, wine):
    X, y = wine
    with pytest.raises((ValueError, TypeError), match=words):
        KernelSVCCV(**(FEW | wrong)).fit(X, y)


def test_a_fold_that_trains_on_one_class_is_refused(wine):
    X, y = wine
    with pytest.raises(ValueError, match=r"Split 0 trains on rows of 1 class: \[0\]"):
        KernelSVCCV(**(FEW | {"cv": [(np.flatnonzero(y == 0), np.flatnonzero(y == 1))]})).fit(X, y)


def test_a_score_of_nan_is_refused(wine):
    X, y = wine
    with pytest.raises(ValueError, match="gave NaN"):
        KernelSVCCV(**FEW, scoring=lambda *_: np.nan).fit(X, y)


def test_fits_that_do_not_converge_are_counted(wine, monkeypatch):
    X, y = wine
    fit = KernelFits.fit

    def stalled(self, C, fold):
        found = fit(self, C, fold)
        if fold == 1:
            found.solution.status = Status.STALLED
        return found

    monkeypatch.setattr(KernelFits, "fit", stalled)
    search = KernelSVCCV(**FEW, drop=None)
    with pytest.warns(ConvergenceWarning, match="4 of 12 fits did not reach tol"):
        search.fit(X, y)
    assert search.cv_results_["split0_converged"].all()
    assert not search.cv_results_["split1_converged"].any()


# -- probabilities ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("machine", ["crammer-singer", "one-vs-rest", "lee-lin-wahba"])
def test_probabilities_agree_with_predict(machine, blobs):
    X, y = blobs
    search = KernelSVCCV(machine, **FEW).fit(X, y)
    P = search.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(search.classes_[P.argmax(axis=1)], search.predict(X))
    np.testing.assert_allclose(np.log(P), search.predict_log_proba(X), atol=1e-9)


@pytest.mark.parametrize("machine", ["c-svc", "crammer-singer"])
def test_probabilities_of_two_classes(machine, two):
    X, y = two
    search = KernelSVCCV(machine, **FEW).fit(X, y)
    P = search.predict_proba(X)
    assert P.shape == (200, 2)
    np.testing.assert_array_equal(P[:, 1] > 0.5, search.predict(X) == 1)


def test_temperature_is_that_of_least_loss():
    rng = np.random.default_rng(0)
    S, y = rng.normal(size=(500, 4)) * 3, rng.integers(4, size=500)
    S[np.arange(500), y] += 2.0
    weight = rng.uniform(0.1, 2.0, 500)

    def loss(T):
        return -weight @ log_probabilities(S, T)[np.arange(500), y]

    T = fit_temperature(S, y, weight)
    assert all(loss(T) <= loss(T * f) for f in (0.5, 0.9, 0.999, 1.001, 1.1, 2.0))
    assert fit_temperature(100 * S, y, weight) == pytest.approx(100 * T, rel=1e-5)


def test_probabilities_are_as_good_as_those_of_calibrated_fits():
    X, y = load_digits(return_X_y=True)
    X, train = X / 16, np.arange(1797) < 900
    search = KernelSVCCV(Cs=[1.0], gammas=[0.05]).fit(X[train], y[train])
    sigmoid = CalibratedClassifierCV(KernelSVC(C=1.0, gamma=0.05), cv=5, ensemble=False)
    sigmoid.fit(X[train], y[train])
    ours, theirs = (log_loss(y[~train], model.predict_proba(X[~train])) for model in (search, sigmoid))
    assert ours <= 1.05 * theirs


# -- watching, and Ctrl-C ---------------------------------------------------------------------------------
def test_verbose_shows_lines(wine, capsys):
    X, y = wine
    KernelSVCCV(**FEW, verbose=2).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert "12 of 12 fits" in lines[-1]
    assert "gamma=" in lines[0]
    pytest.importorskip("tqdm")
    KernelSVCCV(**FEW, verbose=1).fit(X, y)
    assert "12 of 12 fits" in capsys.readouterr().err


def interrupt_after(fits, monkeypatch):
    fit, seen = KernelFits.fit, []

    def interrupted(self, C, fold):
        seen.append(fold)
        if len(seen) == fits + 1:
            raise KeyboardInterrupt
        return fit(self, C, fold)

    monkeypatch.setattr(KernelFits, "fit", interrupted)


def test_interrupt_keeps_what_is_done(wine, monkeypatch):
    X, y = wine
    interrupt_after(8, monkeypatch)
    search = KernelSVCCV(**FEW, on_interrupt="keep", drop=None).fit(X, y)
    assert search.interrupted_
    done = ~np.isnan(search.cv_results_["mean_test_score"])
    assert done.sum() == 2
    assert done[search.best_index_]
    assert search.best_estimator_.status_.converged
    assert search.predict_proba(X).shape == (120, 3)
    assert not KernelSVCCV(**FEW).fit(X, y).interrupted_


@pytest.mark.parametrize(("fits", "on_interrupt"), [(8, "raise"), (1, "keep")])
def test_interrupt_is_raised(fits, on_interrupt, wine, monkeypatch):
    X, y = wine
    interrupt_after(fits, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        KernelSVCCV(**FEW, on_interrupt=on_interrupt).fit(X, y)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGINT needs a POSIX system")
def test_ctrl_c_in_the_middle_of_a_fit():
    from interrupts import interrupted

    script = """
import sys, time, warnings
import numpy as np
from sklearn.datasets import make_classification
from multimargin import KernelSVCCV
warnings.simplefilter("ignore")
X, y = make_classification(4000, 30, n_informative=10, n_classes=6, flip_y=0.3, random_state=0)
print("ready", flush=True)
Cs = np.geomspace(1e-2, 1e4, 40)
search = KernelSVCCV(Cs=Cs, gammas=[0.003], cv=3, drop=None, on_interrupt="keep").fit(X, y)
done = int((~np.isnan(search.cv_results_["split0_fit_time"])).sum())
print("kept", time.monotonic(), search.interrupted_, done < 40, search.best_score_ > 0.3, flush=True)
"""
    seconds, words = interrupted(script, after=3.0)
    assert words == ["kept", "True", "True", "True"]
    assert seconds < 20


def test_metadata_routing(wine):
    """Weights and groups reach the search through a pipeline and an outer cross-validation."""
    X, y = wine
    weight, groups = np.linspace(0.5, 2.0, len(y)), np.arange(len(y)) // 4
    seen = []

    class Watched(KernelSVCCV):
        def fit(self, X, y, sample_weight=None, groups=None):
            seen.append((len(sample_weight), len(np.unique(groups))))
            return super().fit(X, y, sample_weight, groups)

    with sklearn.config_context(enable_metadata_routing=True):
        search = Watched(Cs=[1.0], gammas=[0.05], cv=GroupKFold(3))
        search.set_fit_request(sample_weight=True, groups=True).set_score_request(sample_weight=True)
        model = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), search)
        params = {"sample_weight": weight, "groups": groups}
        found = cross_validate(model, X, y, cv=KFold(2), params=params)
    assert seen == [(60, 15), (60, 15)]
    assert (found["test_score"] > 0).all()
