"""The attributes of scikit-learn's SVC on a fitted KernelSVC."""

import pickle

import numpy as np
import pytest
from helpers import unfinished
from oracle import class_biases
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.svm import SVC

from multimargin import KernelSVC, kernels
from multimargin.problems import PROBLEMS

MULTICLASS = [name for name, problem in PROBLEMS.items() if not problem.balanced]
DERIVED = ("support_vectors_", "n_support_", "shape_fit_", "fit_status_", "coef_")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, bool])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_support_vectors_are_rows_of_x(dtype, form, digits):
    X, y = (digits[0] * 16).astype(dtype), digits[1]
    model = KernelSVC(gamma=1e-3).fit(form(X), y)
    found = model.support_vectors_
    assert sparse.issparse(found) == (form is sparse.csr_array)
    assert found.dtype == (dtype if dtype is np.float32 else np.float64)
    np.testing.assert_array_equal(found.toarray() if sparse.issparse(found) else found, X[model.support_])


def test_a_precomputed_kernel_has_no_support_vectors(iris):
    X, y = iris
    ours, theirs = (model(kernel="precomputed").fit(X @ X.T, y) for model in (KernelSVC, SVC))
    assert ours.support_vectors_.shape == theirs.support_vectors_.shape == (0, 0)
    assert ours.n_support_.sum() == len(ours.support_)


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_of_support_vectors(weighted, blobs):
    X, y = blobs
    weight = np.where(np.arange(len(y)) % 5, 1.0, 0.0) if weighted else None
    model = KernelSVC().fit(X, y, sample_weight=weight)
    assert model.n_support_.dtype == SVC().fit(X, y).n_support_.dtype == np.int32
    np.testing.assert_array_equal(model.n_support_, np.bincount(y[model.support_], minlength=4))


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 2: 0.5}])
def test_class_weights_as_in_svc(class_weight, blobs):
    X, y = blobs[0][20:], blobs[1][20:]
    ours, theirs = (model(class_weight=class_weight).fit(X, y) for model in (KernelSVC, SVC))
    np.testing.assert_allclose(ours.class_weight_, theirs.class_weight_, rtol=1e-12)


def test_shape_and_status(iris):
    X, y = iris
    assert KernelSVC().fit(X, y).shape_fit_ == SVC().fit(X, y).shape_fit_ == X.shape
    assert KernelSVC().fit(X, y).fit_status_ == 0
    with unfinished():
        assert KernelSVC(max_iter=0).fit(X, y).fit_status_ == SVC(max_iter=1).fit(X, y).fit_status_ == 1


@pytest.mark.parametrize("bias", ["auto", "none", "free"])
@pytest.mark.parametrize("machine", MULTICLASS)
@pytest.mark.parametrize("classes", [2, 3])
def test_coef_and_intercept_give_the_scores(classes, machine, bias, wine):
    X, y = wine[0] + 1.0, wine[1] % classes
    for data in (X, sparse.csr_array(X)):
        model = KernelSVC(machine, kernel="linear", bias=bias, C=0.1).fit(data, y)
        rows = 1 if classes == 2 else classes
        assert model.coef_.shape == (rows, X.shape[1])
        assert model.intercept_.shape == (rows,)
        scores = X @ model.coef_.T + model.intercept_
        scores = scores[:, 0] if rows == 1 else scores
        np.testing.assert_allclose(model.decision_function(data), scores, atol=1e-9)


def test_two_classes_have_the_sign_of_svc(iris):
    X, y = iris[0], np.where(iris[1] == 0, "no", "yes")
    ours = KernelSVC("c-svc", kernel="linear", tol=1e-6).fit(X, y)
    theirs = SVC(kernel="linear", tol=1e-6).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    joint = KernelSVC(kernel="linear", C=0.5).fit(X, y)
    assert joint.intercept_.shape == theirs.intercept_.shape
    assert np.sum(joint.coef_ * theirs.coef_) > 0


@pytest.mark.parametrize("kernel", ["rbf", "poly", kernels.RBF(1.0), "precomputed"])
def test_only_linear_kernels_have_weights(kernel, iris):
    X, y = iris
    X = X @ X.T if kernel == "precomputed" else X
    model = KernelSVC(kernel=kernel).fit(X, y)
    assert not hasattr(model, "coef_")
    with pytest.raises(AttributeError, match="only available when using a linear kernel"):
        _ = model.coef_


def test_weights_of_a_kernel_object_and_of_integers(digits):
    X, y = (digits[0] * 16).astype(np.uint8), digits[1]
    by_name, by_object = (
        KernelSVC(kernel=kernel, C=1e-3).fit(X, y) for kernel in ("linear", kernels.Linear())
    )
    np.testing.assert_array_equal(by_name.coef_, by_object.coef_)
    np.testing.assert_allclose(
        by_name.decision_function(X), X @ by_name.coef_.T + by_name.intercept_, atol=1e-9
    )
    with pytest.raises(ValueError, match="read-only"):
        by_name.coef_[0, 0] = 1.0


@pytest.mark.parametrize("name", DERIVED)
def test_nothing_before_the_fit(name):
    assert not hasattr(KernelSVC(kernel="linear"), name)
    with pytest.raises(NotFittedError):
        getattr(KernelSVC(kernel="linear"), name)


def test_features_are_selected_by_weights(wine):
    X, y = np.hstack([wine[0], 1e-3 * np.random.default_rng(0).normal(size=wine[0].shape)]), wine[1]
    for labels in (y, y == 1):
        kept = RFE(KernelSVC(kernel="linear"), n_features_to_select=8, step=6).fit(X, labels).support_
        assert not kept[13:].any()
        kept = SelectFromModel(KernelSVC(kernel="linear")).fit(X, labels).get_support()
        assert kept[:13].any()
        assert not kept[13:].any()


@pytest.mark.parametrize("machine", MULTICLASS)
def test_two_classes_start_warm_with_a_free_bias(machine, iris):
    X, y = iris[0], iris[1] == 1
    model = KernelSVC(machine, bias="free", warm_start=True).fit(X, y)
    assert class_biases(model).shape == (2,)
    first, before = model.n_iter_, model.decision_function(X)
    model.fit(X, y)
    assert model.n_iter_ <= first
    np.testing.assert_allclose(model.decision_function(X), before, atol=5e-3)


def test_derived_attributes_take_no_room_in_a_pickle(digits):
    X, y = digits
    model = KernelSVC(gamma=0.05).fit(X, y)
    before = len(pickle.dumps(model))
    for name in DERIVED[:-1]:
        getattr(model, name)
    model.predict(X)
    assert len(pickle.dumps(model)) == before
    assert set(DERIVED).isdisjoint(vars(model))
