"""bias="auto": a machine is right wherever the data lie, and says which bias it used."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from multimargin import KernelSVC, kernels


def dots(A, B):
    return A @ B.T


class Shifted(kernels.Kernel):
    """A kernel of one's own, which says nothing about the bias."""

    def between(self, A, B):
        return A @ B.T + 2.0

    def diagonal(self, A):
        return np.einsum("ij,ij->i", A, A) + 2.0


EXPECTED = [
    ("rbf", "none"),
    ("laplacian", "none"),
    (kernels.RBF(0.1), "none"),
    ("linear", "regularized"),
    ("poly", "regularized"),
    ("sigmoid", "regularized"),
    (dots, "regularized"),
    (kernels.Polynomial(0.1, normalize=True), "regularized"),
    (Shifted(), "regularized"),
]


@pytest.mark.parametrize(("kernel", "bias"), EXPECTED)
def test_auto_is_no_bias_only_for_kernels_that_ignore_the_origin(kernel, bias, iris):
    X, y = iris
    model = KernelSVC(kernel=kernel, C=0.1).fit(X, y)
    named = KernelSVC(kernel=kernel, C=0.1, bias=bias).fit(X, y)
    assert model.bias == "auto"
    assert model.bias_ == named.bias_ == bias
    assert bool(np.any(model.intercept_)) == (bias != "none")
    if bias == "none":
        np.testing.assert_array_equal(model.decision_function(X), named.decision_function(X))


@pytest.mark.parametrize("kernel", ["linear", "precomputed", "poly"])
def test_the_bias_of_auto_depends_on_no_unit_of_length(kernel, iris):
    """Ten times the data and a hundredth of the cost, or what a cubic kernel makes of it, is one machine."""
    X, y = iris[0] + 3.0, iris[1]
    scores = []
    for scale in (1.0, 10.0):
        C = scale ** (-6.0 if kernel == "poly" else -2.0)
        given = scale**2 * X @ X.T if kernel == "precomputed" else scale * X
        model = KernelSVC(kernel=kernel, gamma=0.1, C=C, tol=1e-6).fit(given, y)
        scores.append(model.decision_function(given))
    np.testing.assert_allclose(*scores, atol=1e-3)


def test_a_named_regularised_bias_adds_one(iris):
    X, y = iris
    named = KernelSVC(kernel="linear", bias="regularized", tol=1e-6).fit(X, y)
    plus_one = KernelSVC(kernel="precomputed", bias="none", tol=1e-6).fit(X @ X.T + 1.0, y)
    np.testing.assert_allclose(
        named.decision_function(X), plus_one.decision_function(X @ X.T + 1.0), atol=1e-4
    )


def test_auto_of_a_kernel_matrix_and_of_the_binary_machine(iris):
    X, y = iris
    assert KernelSVC(kernel="precomputed").fit(X @ X.T, y).bias_ == "regularized"
    assert KernelSVC("c-svc").fit(X, y == 1).bias_ == "free"
    assert KernelSVC(bias="free").fit(X, y).bias_ == "free"


def test_standardised_iris_with_a_linear_kernel_is_as_accurate_as_svc():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours, theirs = (
        model.fit(X, y).score(X, y) for model in (KernelSVC(kernel="linear"), SVC(kernel="linear"))
    )
    assert ours >= theirs - 0.01


@pytest.mark.parametrize("start", [5.0, 50.0, 500.0])
def test_a_separable_line_of_points_is_separated(start):
    X = np.linspace(start, start + 1.0, 60)[:, None]
    y = np.arange(60) >= 30
    ours, theirs = (model(kernel="linear").fit(X, y).score(X, y) for model in (KernelSVC, SVC))
    assert ours >= theirs - 0.05


@pytest.mark.parametrize("kernel", ["linear", "poly", "precomputed"])
def test_data_off_the_origin(kernel):
    X, y = make_blobs(90, centers=[[20, 20], [24, 20], [22, 24]], cluster_std=0.4, random_state=0)
    X = X @ X.T if kernel == "precomputed" else X
    model = KernelSVC(kernel=kernel, C=10, tol=1e-2).fit(X, y)
    assert model.score(X, y) == 1.0


def test_the_kind_of_bias_is_kept_by_copies_and_warm_starts(iris):
    X, y = iris
    model = KernelSVC(kernel="linear", warm_start=True).fit(X, y)
    assert pickle.loads(pickle.dumps(model)).bias_ == "regularized"
    assert not hasattr(clone(model), "bias_")
    again = model.set_params(kernel="rbf").fit(X, y)
    assert again.bias_ == "none"
    np.testing.assert_array_equal(again.intercept_, 0.0)
    free = model.set_params(bias="free").fit(X, y)
    assert free.bias_ == "free"
    assert free.status_.converged
