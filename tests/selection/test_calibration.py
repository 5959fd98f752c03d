"""Probabilities from out-of-fold scores, against CalibratedClassifierCV, which takes more fits."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import scale

from multimargin import KernelSVC, KernelSVCCV
from multimargin.selection.calibration import METHODS, Isotonic, Sigmoid


def made():
    return make_classification(1200, 12, n_informative=8, n_classes=4, flip_y=0.15, random_state=0)


def standardised(load):
    X, y = load(return_X_y=True)
    return scale(X), y


DATA = {
    "digits": lambda: (load_digits().data / 16, load_digits().target),
    "wine": lambda: standardised(load_wine),
    "cancer": lambda: standardised(load_breast_cancer),
    "made": made,
}


def calibration_error(P, y, bins=10):
    """The mean difference between how sure and how right the most probable class is, in equal bins."""
    sure, right = P.max(axis=1), P.argmax(axis=1) == y
    parts = np.array_split(np.argsort(sure), bins)
    return sum(len(part) * abs(sure[part].mean() - right[part].mean()) for part in parts) / len(y)


@pytest.mark.parametrize("name", DATA)
def test_no_worse_than_calibrated_classifier(name):
    X, y = DATA[name]()
    train = np.random.default_rng(0).permutation(len(y)) < len(y) // 2
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    ours = KernelSVCCV(Cs=[1.0], gammas=["scale"], cv=cv).fit(X[train], y[train])
    theirs = CalibratedClassifierCV(KernelSVC(), method="temperature", cv=cv, ensemble=False)
    theirs.fit(X[train], y[train])
    P, Q = ours.predict_proba(X[~train]), theirs.predict_proba(X[~train])
    assert log_loss(y[~train], P) <= log_loss(y[~train], Q) * 1.01 + 1e-3
    assert calibration_error(P, y[~train]) <= calibration_error(Q, y[~train]) + 0.01
    np.testing.assert_array_equal(ours.classes_[P.argmax(axis=1)], ours.predict(X[~train]))


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("name", ["digits", "made"])
def test_other_methods_against_calibrated_classifier(name, method):
    X, y = DATA[name]()
    train = np.random.default_rng(0).permutation(len(y)) < len(y) // 2
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    ours = KernelSVCCV(Cs=[1.0], gammas=["scale"], cv=cv, calibration=method).fit(X[train], y[train])
    theirs = CalibratedClassifierCV(KernelSVC(), method=method, cv=cv, ensemble=False)
    theirs.fit(X[train], y[train])
    P, Q = ours.predict_proba(X[~train]), theirs.predict_proba(X[~train])
    assert np.isnan(ours.temperature_)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.log(P), ours.predict_log_proba(X[~train]), atol=1e-9)
    assert calibration_error(P, y[~train]) <= calibration_error(Q, y[~train]) + 0.01
    if method == "sigmoid":  # steps to zero make the log loss of isotonic functions a matter of luck
        assert log_loss(y[~train], P) <= 1.05 * log_loss(y[~train], Q)


def scores_and_labels():
    rng = np.random.default_rng(0)
    s = rng.normal(size=(4000, 1)) * 2
    return s, (rng.uniform(size=4000) < 1 / (1 + np.exp(-1.5 * s[:, 0] - 0.5))).astype(int)


def test_sigmoids_are_those_of_logistic_regression():
    s, y = scores_and_labels()
    found = Sigmoid.fit(s, y, np.ones(4000), 2)
    model = LogisticRegression(C=np.inf).fit(s, y)
    expected = model.predict_proba(s)[:, 1]
    np.testing.assert_allclose(np.exp(found.log_probabilities(s))[:, 1], expected, atol=2e-3)
    doubled = Sigmoid.fit(np.concatenate([s, s]), np.concatenate([y, y]), np.ones(8000), 2)
    weighted = Sigmoid.fit(s, y, np.full(4000, 2.0), 2)
    np.testing.assert_allclose(doubled.slope, weighted.slope, rtol=1e-5)


def test_isotonic_functions_are_those_of_scikit_learn():
    s, y = scores_and_labels()
    found = Isotonic.fit(s, y, np.ones(4000), 2)
    expected = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(s[:, 0], y).predict(s[:, 0])
    np.testing.assert_allclose(np.exp(found.log_probabilities(s))[:, 1], expected, atol=1e-9)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_class_that_no_fold_has_tested(method):
    """Probabilities are finite if a class has no sample among the out-of-fold scores, or all scores agree."""
    S = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0], [2.0, 0.5, -1.0], [0.0, 3.0, 0.0]])
    found = METHODS[method].fit(S, np.array([0, 1, 0, 1]), np.ones(4), 3)
    P = np.exp(found.log_probabilities(S))
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    flat = METHODS[method].fit(np.zeros((6, 3)), np.array([0, 1, 2, 0, 1, 2]), np.ones(6), 3)
    np.testing.assert_allclose(np.exp(flat.log_probabilities(np.zeros((1, 3)))), 1 / 3, atol=0.02)
