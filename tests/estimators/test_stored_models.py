"""Models that version 0.1.0 pickled: they load, and give the answers that 0.1.0 gave."""

import lzma
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning

from multimargin import KernelSVC, LinearSVC

STORED = Path(__file__).resolve().parents[1] / "reference" / "models-0.1.0.pkl.xz"
CASES = pickle.loads(lzma.decompress(STORED.read_bytes()))


def load(case):
    with warnings.catch_warnings():  # another scikit-learn than the one that wrote them
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        return pickle.loads(case["model"])


def assert_same(found, stored):
    np.testing.assert_allclose(found, stored, rtol=1e-12, atol=1e-12 * np.abs(stored).max())


@pytest.mark.parametrize("name", CASES)
def test_a_stored_model_answers_as_before(name):
    case = CASES[name]
    model = load(case)
    assert_same(model.decision_function(case["rows"]), case["decision"])
    np.testing.assert_array_equal(model.predict(case["rows"]), case["labels"])
    if isinstance(model, KernelSVC):
        assert_same(model.label_distribution(case["asked"]), case["distribution"])
        np.testing.assert_array_equal(model.suspects(5), case["suspects"])
        assert model.status_.converged
        assert len(model.trace_) == len(model.trace_["dual"]) > 0


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "batch" in case])
def test_a_stored_linear_model_goes_on_learning(name):
    case = CASES[name]
    model = load(case).partial_fit(*case["batch"])
    assert isinstance(model, LinearSVC)
    assert_same(model.decision_function(case["rows"]), case["after"])


@pytest.mark.parametrize("name", CASES)
def test_a_stored_model_can_be_copied_and_pickled_again(name):
    """Its parameters are those of the classes of today: the solver of a decomposition among them."""
    case = CASES[name]
    model = load(case)
    assert repr(clone(model)) == repr(model)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.decision_function(case["rows"]), model.decision_function(case["rows"]))


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("solver ")])
def test_a_stored_solver_still_fits(name, iris):
    model = clone(load(CASES[name]))
    X, y = iris
    X, y = (X[y > 0], y[y > 0]) if model.machine == "c-svc" else (X, y)
    assert model.fit(X, y).status_.converged
