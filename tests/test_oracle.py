"""The judge is judged: its kernels against scikit-learn's, its QP solver against optimality conditions."""

import numpy as np
import pytest
from oracle import (
    assert_feasible,
    certify,
    kernel_matrix,
    project_simplex,
    solve_binary,
    solve_crammer_singer,
)
from sklearn.metrics import pairwise


@pytest.mark.parametrize(
    ("name", "peer", "options"),
    [
        ("linear", pairwise.linear_kernel, {}),
        ("rbf", pairwise.rbf_kernel, {"gamma": 0.3}),
        ("poly", pairwise.polynomial_kernel, {"gamma": 0.3, "coef0": 1.0, "degree": 2}),
        ("sigmoid", pairwise.sigmoid_kernel, {"gamma": 0.1, "coef0": 0.2}),
        ("laplacian", pairwise.laplacian_kernel, {"gamma": 0.3}),
    ],
)
def test_kernels_agree_with_scikit_learn(name, peer, options, wine):
    X, _ = wine
    np.testing.assert_allclose(
        kernel_matrix(name, X[:30], X[30:50], **options), peer(X[:30], X[30:50], **options)
    )


def test_normalised_polynomial_has_unit_diagonal(wine):
    K = kernel_matrix("poly", wine[0], gamma=0.3, coef0=1.0, degree=2, normalize=True)
    np.testing.assert_allclose(np.diag(K), 1.0)
    assert (np.abs(K) <= 1 + 1e-12).all()


@pytest.mark.parametrize("name", ["linear", "rbf"])
def test_crammer_singer_solver_is_optimal(name, iris):
    X, y = iris
    K, C = kernel_matrix(name, X, gamma=0.5), np.linspace(0.5, 2.0, len(y))
    alpha = solve_crammer_singer(K, y, C)
    assert_feasible(alpha, y, C)
    found = certify(K, y, alpha, C)
    assert found.psi.max() < 1e-6
    assert 0 <= found.gap + 1e-12 and found.gap < 1e-8 * found.primal


def test_binary_solver_beats_random_feasible_points(iris):
    X, y = iris
    X, sign = X[y < 2], 2 * y[y < 2] - 1
    K = kernel_matrix("rbf", X, gamma=0.5)
    best = solve_binary(K, sign, 1.5)
    b = np.random.default_rng(0).uniform(0, 1.5, (2000, len(sign)))
    values = 0.5 * np.einsum("ki,ij,kj->k", b * sign, K, b * sign) - b.sum(axis=1)
    assert best < values.min()


def test_simplex_projection_is_nearest():
    rng = np.random.default_rng(1)
    D = rng.normal(size=6)
    z = np.asarray(project_simplex(D, 2.0), dtype=float)
    np.testing.assert_allclose(z.sum(), 2.0)
    others = 2.0 * rng.dirichlet(np.ones(6), 5000)
    assert ((z - D) ** 2).sum() <= ((others - D) ** 2).sum(axis=1).min()
