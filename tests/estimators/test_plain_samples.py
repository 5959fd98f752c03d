"""Samples that are evidently valid skip scikit-learn's checks; all others do not."""

import warnings

import numpy as np
import pytest
from sklearn.utils.validation import validate_data

from multimargin import KernelSVC
from multimargin.estimators import samples
from multimargin.kernels import RBF

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.arange(12) % 3


@pytest.fixture
def checked(monkeypatch):
    """How often scikit-learn was asked."""
    calls = []
    monkeypatch.setattr(samples, "validate_data", lambda *a, **k: calls.append(a) or validate_data(*a, **k))
    return calls


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("labels", [np.int64, np.uint8])
def test_plain_arrays_are_taken_as_they_are(dtype, labels, checked):
    model, rows, y = KernelSVC(), X.astype(dtype), Y.astype(labels)
    found = samples.training_data(model, RBF(), rows, y)
    assert found[0] is rows
    assert found[1] is y
    assert model.n_features_in_ == 3
    assert not checked


class Rows(np.ndarray):
    """An array of another class."""


@pytest.mark.parametrize(
    ("rows", "y"),
    [
        (X.tolist(), Y),
        (X, Y.tolist()),
        (np.asfortranarray(X), Y),
        (X[::2], Y[::2]),
        (X.view(Rows), Y),
        (X.astype(">f8"), Y),
        (X.astype(np.float16), Y),
        (np.round(X).astype(int), Y),
        (X, Y.astype(float)),
        (X, Y.astype(str)),
        (X, Y.astype(bool)),
        (np.where(X > 0, 1.7e308, X), Y),
    ],
    ids=["list", "list of labels", "F", "strided", "subclass", "swapped", "half", "int", "float labels",
         "text", "bool", "sum overflows"],
)  # fmt: skip
def test_other_arrays_are_checked(rows, y, checked):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        samples.training_data(KernelSVC(), RBF(), rows, y)
    assert len(checked) == 1


@pytest.mark.parametrize(
    ("rows", "y", "match"),
    [
        (np.where(X == X.max(), np.nan, X), Y, "NaN"),
        (np.where(X == X.max(), np.inf, X), Y, "infinity"),
        (X, Y[:-1], "inconsistent"),
        (X[0], Y[:3], "2D"),
        (X[:0], Y[:0], "0 sample"),
        (X[:, :0], Y, "0 feature"),
    ],
)
def test_errors_are_those_of_scikit_learn(rows, y, match):
    with pytest.raises(ValueError, match=match):
        samples.training_data(KernelSVC(), RBF(), rows, y)


def test_names_of_an_earlier_fit_are_forgotten():
    pandas = pytest.importorskip("pandas")
    model = KernelSVC().fit(pandas.DataFrame(X, columns=["a", "b", "c"]), Y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    model.fit(X, Y)
    assert not hasattr(model, "feature_names_in_")
