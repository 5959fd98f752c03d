"""The judge is judged: its kernels against scikit-learn's, its machines against derivatives of their margins,
its QP solver against optimality conditions."""

from itertools import product

import numpy as np
import pytest
from oracle import (
    ALL_MACHINES,
    assert_feasible,
    best_bias,
    certify,
    interior_point,
    kernel_matrix,
    least_violation,
    project_simplex,
    random_point,
    solve,
    solve_binary,
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


class Tiny:
    """12 random samples of 4 classes (2 for the binary machine) with unequal costs."""

    def __init__(self, machine, seed=0):
        self.rng = np.random.default_rng(seed)
        self.machine, self.binary = machine, machine == "c-svc"
        self.m = 1 if self.binary else 4
        self.y = np.arange(12) % (2 if self.binary else 4)
        self.C = self.rng.uniform(0.3, 3.0, 12)
        self.K = kernel_matrix("rbf", self.rng.normal(size=(12, 2)), gamma=0.5)
        self.alpha = random_point(machine, self.y, self.m, self.C, self.rng)

    def bias(self):
        b = self.rng.normal(size=self.m)
        return b - b.mean() * ALL_MACHINES[self.machine].margin.centred


@pytest.mark.parametrize("machine", ALL_MACHINES)
def test_multipliers_are_those_of_the_margins(machine):
    """alpha = -J' beta, J the derivative of shortfalls in the scores; centred where scores sum to zero."""
    tiny, margin = Tiny(machine), ALL_MACHINES[machine].margin
    beta = margin.lower(tiny.alpha, tiny.y)
    zero = np.zeros((12, tiny.m))
    J = [margin.shortfall(zero + unit, tiny.y) - margin.shortfall(zero, tiny.y) for unit in np.eye(tiny.m)]
    alpha = -np.einsum("kir,ir->ik", np.array(J), beta)
    alpha -= margin.centred * alpha.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(tiny.alpha, alpha, atol=1e-12)
    np.testing.assert_allclose(margin.lift(beta, tiny.y), alpha, atol=1e-12)
    assert margin.shortfall(zero, tiny.y).max() == margin.kappa(tiny.m)


def test_squared_loss_is_its_slack_problem():
    """min 1/2 xi'Hxi with H = 2 (I + 11') over xi = shortfall + u, u >= 0, by the QP solver."""
    rng, cost = np.random.default_rng(2), ALL_MACHINES["msvm2"].cost
    short, H = rng.normal(size=(40, 5)), 2 * (np.eye(4) + 1)
    pair = np.eye(5)[rng.integers(5, size=40)] == 0
    for row, there in zip(short, pair, strict=True):
        u, _ = interior_point(H, H @ row[there], np.zeros((0, 4)), np.zeros(0))
        xi = row[there] + u
        expected = 3.0 * (xi @ xi + xi.sum() ** 2)
        found = cost.loss((row * there)[None], there[None], np.array([3.0]))[0]
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("machine", ALL_MACHINES)
@pytest.mark.parametrize("seed", range(5))
def test_gaps_are_not_negative(machine, seed):
    """Weak duality, sample by sample, at a random point with a random bias."""
    tiny = Tiny(machine, seed)
    assert_feasible(tiny.alpha, tiny.y, tiny.C, machine=machine)
    found = certify(tiny.K, tiny.y, tiny.alpha, tiny.C, machine, tiny.bias())
    assert (found.gain >= -1e-12 * found.scale).all()
    assert found.gain.max() > 1e-3 and found.psi.max() > 1e-3


@pytest.mark.parametrize("machine", ALL_MACHINES)
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("name", ["linear", "rbf"])
def test_solver_is_optimal(name, bias, machine, iris):
    X, y = iris
    X, y = (X[y > 0], y[y > 0] - 1) if machine == "c-svc" else (X, y)
    K = kernel_matrix(name, X, gamma=0.5, offset=float(bias == "regularized"))
    C = np.linspace(0.5, 2.0, len(y))
    alpha, b = solve(K, y, C, machine, free=bias == "free")
    assert_feasible(alpha, y, C, machine=machine, free=bias == "free")
    found = certify(K, y, alpha, C, machine, b)
    assert found.psi.max() < 1e-5 * found.kappa
    assert abs(found.gap) < 1e-8 * found.primal


SPOILED = {
    "row sum": lambda alpha, y, C: alpha + 1e-6 * C[:, None],
    "not finite": lambda alpha, y, C: alpha * np.nan,
    "negative": lambda alpha, y, C: -alpha,
    "too large": lambda alpha, y, C: 10 * alpha,
}


NO_SUCH_CONSTRAINT = {
    ("row sum", "one-vs-rest"),
    ("row sum", "squared-one-vs-rest"),
    ("row sum", "c-svc"),
    ("too large", "msvm2"),
    ("too large", "squared-one-vs-rest"),
}


@pytest.mark.parametrize(
    ("spoiled", "machine"),
    [pair for pair in product(SPOILED, ALL_MACHINES) if pair not in NO_SUCH_CONSTRAINT],
)
def test_infeasible_points_are_refused(spoiled, machine):
    tiny = Tiny(machine)
    with pytest.raises(AssertionError):
        assert_feasible(SPOILED[spoiled](tiny.alpha, tiny.y, tiny.C), tiny.y, tiny.C, machine=machine)


@pytest.mark.parametrize("machine", ALL_MACHINES)
def test_columns_must_sum_to_zero_with_a_free_bias(machine):
    tiny = Tiny(machine)
    with pytest.raises(AssertionError):
        assert_feasible(tiny.alpha, tiny.y, tiny.C, machine=machine, free=True)


def test_binary_solver_beats_random_feasible_points(iris):
    X, y = iris
    X, sign = X[y < 2], 2 * y[y < 2] - 1
    K = kernel_matrix("rbf", X, gamma=0.5)
    best = solve_binary(K, sign, 1.5)
    b = np.random.default_rng(0).uniform(0, 1.5, (2000, len(sign)))
    values = 0.5 * np.einsum("ki,ij,kj->k", b * sign, K, b * sign) - b.sum(axis=1)
    assert best < values.min()


def binary_scores(seed, ties):
    """Scores, labels, costs and a balanced point of 16 samples; with ties, of a few values only."""
    rng = np.random.default_rng(seed)
    y, C = np.arange(16) % 2, rng.uniform(0.3, 3.0, 16)
    S = rng.normal(size=(16, 1))
    if ties:
        S, C = np.round(S), np.ones(16)
    alpha = random_point("c-svc", y, 1, C, rng)
    excess = alpha.sum() * (2 * y - 1)
    alpha[excess > 0] *= 1 - np.abs(alpha.sum()) / np.abs(alpha[excess > 0]).sum()
    assert_feasible(alpha, y, C, machine="c-svc", free=True)
    return S, y, C, alpha


def steps(S, y):
    """Every bias at which a loss has a kink, those between, and some beyond."""
    kinks = np.sort((2 * y - 1) - S[:, 0])
    return np.concatenate([kinks, (kinks[1:] + kinks[:-1]) / 2, kinks + 1e-4, kinks - 1e-4])


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("ties", [False, True])
def test_least_primal_and_least_violation_over_the_bias(seed, ties):
    """Against every bias that could be the best: kinks of the primal, and midpoints of pairs of them."""
    S, y, C, alpha = binary_scores(seed, ties)
    loss = lambda b: (C * np.maximum(1 - (2 * y - 1) * (S[:, 0] + b), 0)).sum()  # noqa: E731
    b = best_bias(S, y, C)
    assert b.shape == (1,)
    assert loss(b[0]) == pytest.approx(min(map(loss, steps(S, y))), rel=1e-12)

    found = lambda b: certify(Scores(S), y, alpha, C, "c-svc", [b]).psi.max()  # noqa: E731
    kinks = (2 * y - 1) - S[:, 0]
    tried = [found(b) for b in {*kinks, *((kinks[:, None] + kinks) / 2).ravel()}]
    assert least_violation(S, y, alpha, C) == pytest.approx(min(tried), abs=1e-12)


class Scores:
    """In place of a kernel matrix: these are its products."""

    def __init__(self, S):
        self.S = S

    def __matmul__(self, alpha):
        return self.S


def test_best_bias_of_one_class_alone():
    for label in (0, 1):
        y, C = np.full(5, label), np.ones(5)
        S = np.random.default_rng(0).normal(size=(5, 1))
        assert (1 - (2 * y - 1) * (S[:, 0] + best_bias(S, y, C)) <= 1e-12).all()


def test_the_free_bias_of_the_primal_is_that_of_the_optimum():
    tiny = Tiny("c-svc")
    alpha, b = solve(tiny.K, tiny.y, tiny.C, "c-svc", free=True)
    found = certify(tiny.K, tiny.y, alpha, tiny.C, "c-svc", "free")
    assert found.primal <= certify(tiny.K, tiny.y, alpha, tiny.C, "c-svc", b).primal * (1 + 1e-12)
    assert abs(found.gap) < 1e-8 * found.primal
    assert least_violation(tiny.K @ alpha, tiny.y, alpha, tiny.C) < 1e-6


def test_simplex_projection_is_nearest():
    rng = np.random.default_rng(1)
    D = rng.normal(size=6)
    z = np.asarray(project_simplex(D, 2.0), dtype=float)
    np.testing.assert_allclose(z.sum(), 2.0)
    others = 2.0 * rng.dirichlet(np.ones(6), 5000)
    assert ((z - D) ** 2).sum() <= ((others - D) ** 2).sum(axis=1).min()
