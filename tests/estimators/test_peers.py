"""Agreement with other people's solvers: scikit-learn's SVC (LIBSVM) and LinearSVC (LIBLINEAR)."""

import warnings

import numpy as np
import pytest
from helpers import ENGINES, METHODS, SOLVERS, audit
from oracle import kernel_matrix, one_hot, solve_binary
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as PeerLinearSVC

from multimargin import KernelSVC

GAMMA = 0.3


@pytest.fixture(scope="module")
def two_classes(iris):
    """The two hard classes of iris."""
    X, y = iris
    return X[y > 0], y[y > 0]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("C", [0.5, 8.0])
def test_two_classes_are_a_binary_machine_with_twice_the_cost(C, method, engine, two_classes):
    """D_CS(C) = 1/2 D_CSVC(2C), f = s_1 - s_0, without bias (the papers forget the factor 2)."""
    X, y = two_classes
    K = kernel_matrix("rbf", X, gamma=GAMMA)
    model = KernelSVC(C=C, gamma=GAMMA, solver=SOLVERS[method], **ENGINES[engine], tol=1e-6).fit(X, y)
    audit(model, K, y, C, 1e-6)
    binary = solve_binary(K, 2 * y - 3, 2 * C)
    assert model.dual_objective_ == pytest.approx(binary / 2, rel=1e-5)
    assert model.dual_objective_ != pytest.approx(solve_binary(K, 2 * y - 3, C) / 2, rel=1e-3)


@pytest.mark.parametrize("kernel", [{"kernel": "linear"}, {"kernel": "poly", "degree": 3, "gamma": 0.5}])
def test_svc_where_symmetry_removes_its_bias(kernel, two_classes):
    """With (x, y) beside (-x, -y) and an odd kernel LIBSVM's free bias is zero, and both machines are one."""
    X, y = two_classes
    X, sign = np.vstack([X, -X]), np.concatenate([2 * y - 3, 3 - 2 * y])
    C = 0.7
    ours = KernelSVC(C=C, bias="none", tol=1e-6, **kernel).fit(X, sign)
    peer = SVC(C=2 * C, tol=1e-8, **kernel).fit(X, sign)
    assert abs(peer.intercept_[0]) < 1e-5
    Y_b = peer.dual_coef_[0]
    K = kernel_matrix(kernel["kernel"], X, gamma=kernel.get("gamma", 1.0))[
        np.ix_(peer.support_, peer.support_)
    ]
    peer_dual = 0.5 * Y_b @ K @ Y_b - np.abs(Y_b).sum()
    assert ours.dual_objective_ == pytest.approx(peer_dual / 2, rel=1e-5)
    grid = np.random.default_rng(0).normal(size=(200, X.shape[1]))
    np.testing.assert_allclose(ours.decision_function(grid), peer.decision_function(grid), atol=1e-2)


@pytest.mark.parametrize("data", ["iris", "wine", "blobs", "digits"])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_linear_kernel_is_liblinears_crammer_singer(data, C, request):
    X, y = request.getfixturevalue(data)
    peer = PeerLinearSVC(
        multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-8, max_iter=100_000, random_state=0
    )
    with warnings.catch_warnings():  # its own stop rule; the objective below is what counts
        warnings.simplefilter("ignore", ConvergenceWarning)
        peer.fit(X, y)
    scores = X @ peer.coef_.T
    E = one_hot(y, scores.shape[1])
    slack = (scores + 1 - E).max(axis=1) - (scores * E).sum(axis=1)
    peer_primal = 0.5 * (peer.coef_**2).sum() + C * slack.sum()
    ours = KernelSVC(C=C, kernel="linear", bias="none", tol=1e-5).fit(X, y)
    assert ours.primal_objective_ == pytest.approx(peer_primal, rel=1e-4)
    assert -ours.dual_objective_ == pytest.approx(peer_primal, rel=1e-4)
