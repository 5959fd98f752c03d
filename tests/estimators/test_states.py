"""A model's state is plain data: pickle, joblib, copies and skops give the same model back."""

import copy
import inspect
import io
import pickle

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import chi2_kernel

from multimargin import Decomposition, KernelSVC, LinearSVC, kernels
from multimargin.estimators.states import CLASSES, from_plain, to_plain
from multimargin.inner import CoordinateDescent
from multimargin.solution import Trace, TraceRow
from multimargin.working_set import Gain

try:
    import skops.io as skops
except ImportError:
    skops = None

needs_skops = pytest.mark.skipif(skops is None, reason="skops is not installed")
PLAIN = (str, bool, int, float, type(None), np.ndarray, np.random.RandomState)


class Own(kernels.Kernel):
    """A kernel of a user's own."""

    def between(self, A, B):
        return np.asarray(A) @ np.asarray(B).T

    def diagonal(self, A):
        return np.einsum("ij,ij->i", A, A)


def stream(X, y):
    return LinearSVC(keep_dual=True).partial_fit(X, y, classes=np.unique(y))


def makers():
    linear = {"tol": 1e-2, "max_iter": -1}
    by_hand = Decomposition(Gain(q=10), CoordinateDescent("pivot"))
    return {
        "defaults": lambda X, y: KernelSVC().fit(X, y),
        "not fitted": lambda X, y: KernelSVC(kernel=kernels.RBF(2.0)),
        "sparse rows": lambda X, y: KernelSVC(class_weight={0: 1, 1: 2, 2: 3}).fit(sparse.csr_array(X), y),
        "sparse matrix": lambda X, y: KernelSVC().fit(sparse.csr_matrix(X), y),
        "kernel object": lambda X, y: KernelSVC(kernel=kernels.Polynomial(normalize=True)).fit(X, y),
        "precomputed": lambda X, y: KernelSVC(kernel="precomputed").fit(X @ X.T, y),
        "solver by hand": lambda X, y: KernelSVC(solver=by_hand, random_state=3).fit(X, y),
        "free bias": lambda X, y: KernelSVC("weston-watkins", bias="free").fit(X, y),
        "binary": lambda X, y: KernelSVC("c-svc").fit(X, y == 1),
        "linear": lambda X, y: LinearSVC(**linear).fit(X, y),
        "linear, two classes": lambda X, y: LinearSVC(**linear).fit(X, y == 0),
        "linear stream": stream,
    }


def fitted(name, iris):
    return makers()[name](*iris)


def is_plain(value):
    if isinstance(value, dict):
        return all(is_plain(part) for part in (*value, *value.values()))
    if isinstance(value, (list, tuple)):
        return all(is_plain(part) for part in value)
    return isinstance(value, PLAIN)


def by_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


WAYS = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "joblib": by_joblib,
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


def assert_same(back, model, X):
    assert type(back) is type(model)
    assert repr(back) == repr(model)
    assert repr(clone(back)) == repr(clone(model))
    if not hasattr(model, "classes_"):
        return
    X = X @ X.T if getattr(model, "kernel", None) == "precomputed" else X
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    for name in ("status_", "violation_", "duality_gap_", "bias_", "n_iter_"):
        assert getattr(back, name, None) == getattr(model, name, None)
    if isinstance(model, KernelSVC):
        assert repr(list(back.trace_)) == repr(list(model.trace_))
        assert back.trace_.info == model.trace_.info
        np.testing.assert_array_equal(back.label_distribution([0, 1]), model.label_distribution([0, 1]))


@pytest.mark.parametrize("name", makers())
def test_the_state_is_plain_data(name, iris):
    assert is_plain(fitted(name, iris).__getstate__())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", makers())
def test_copies_are_the_same_model(name, way, iris):
    model = fitted(name, iris)
    assert_same(WAYS[way](model), model, iris[0])


@needs_skops
@pytest.mark.parametrize("name", makers())
def test_skops_needs_trust_in_the_estimator_alone(name, iris):
    model = fitted(name, iris)
    data = skops.dumps(model)
    trusted = [f"{type(model).__module__}.{type(model).__name__}"]
    assert skops.get_untrusted_types(data=data) == trusted
    assert_same(skops.loads(data, trusted=trusted), model, iris[0])


@needs_skops
def test_skops_asks_for_trust_in_a_users_function_or_kernel(iris):
    X, y = iris
    X = np.abs(X)
    for kernel, name in ((chi2_kernel, "sklearn.metrics.pairwise.chi2_kernel"), (Own(), f"{__name__}.Own")):
        model = KernelSVC(kernel=kernel, C=0.1).fit(X, y)
        data = skops.dumps(model)
        untrusted = skops.get_untrusted_types(data=data)
        assert set(untrusted) == {"multimargin.estimators.kernel_svc.KernelSVC", name}
        with pytest.raises(TypeError, match=name.rpartition(".")[2]):
            skops.loads(data, trusted=["multimargin.estimators.kernel_svc.KernelSVC"])
        back = skops.loads(data, trusted=untrusted)
        np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))


def test_a_model_that_came_back_is_fitted_and_trained_on(iris):
    X, y = iris
    model = pickle.loads(pickle.dumps(KernelSVC(warm_start=True).fit(X, y)))
    assert model.fit(X, y).n_iter_ <= 2
    again = pickle.loads(pickle.dumps(stream(X, y))).partial_fit(X, y)
    np.testing.assert_array_equal(again.coef_, stream(X, y).partial_fit(X, y).coef_)


def test_every_kernel_has_a_plain_form():
    defined = {
        name
        for name, cls in inspect.getmembers(kernels, inspect.isclass)
        if issubclass(cls, kernels.Kernel) and not inspect.isabstract(cls)
    }
    assert defined <= set(CLASSES)


def test_a_kind_of_object_from_a_later_version_is_named():
    state = to_plain(kernels.RBF(1.0))
    assert from_plain(state) == kernels.RBF(1.0)
    with pytest.raises(ValueError, match=r"'Wavelet'.*version"):
        from_plain({key: "Wavelet" if value == "RBF" else value for key, value in state.items()})


def test_a_restored_trace_grows_and_has_no_empty_room():
    row = TraceRow(1, 0.5, 1.0, -1.0, 2.0, 3, 4, 5, 6, 7, 8)
    trace = Trace()
    empty = pickle.loads(pickle.dumps(trace))
    for each in (trace, empty):
        for _ in range(3):
            each.append(row)
        each = pickle.loads(pickle.dumps(each))
        each.append(row)
        assert list(each) == [row] * 4
    assert len(pickle.dumps(trace)) < 1000
