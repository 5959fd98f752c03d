"""Native solvers of the four machines beside Crammer-Singer, each against its definition alone.

A machine is here its matrix M(y): a row of coefficients is alpha_i = M beta_i with 0 <= beta_ir <= u_i, and
all the rest follows: gamma = M'G, the projection, the linear problem, the optimum (SciPy's least squares).
"""

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import lsq_linear

from multimargin import _core

MACHINES = ["weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest"]
SEEDS = range(6)
ON_BOUND = 1e-8


def generator(machine, y, m):
    """M: alpha_i = M beta_i."""
    if machine == "one-vs-rest":
        return np.diag(np.where(np.arange(m) == y, 1.0, -1.0))
    others = np.delete(-np.eye(m), y, axis=1)
    if machine == "weston-watkins":
        others[y] = 1.0
        return others
    return others + 1.0 / m


def upper(machine, C):
    return np.inf if machine == "msvm2" else C


def target(machine, y, m):
    own = np.arange(m) == np.asarray(y)[:, None]
    if machine == "weston-watkins":
        return own.astype(float)
    return np.where(own, 1.0, -1.0 if machine == "one-vs-rest" else -1.0 / (m - 1))


def betas(machine, alpha, y):
    """beta of every row, from the table of the contract."""
    own = alpha[np.arange(len(y)), y]
    if machine == "one-vs-rest":
        return np.where(np.arange(alpha.shape[1]) == y[:, None], alpha, -alpha)
    plain = -alpha if machine == "weston-watkins" else own[:, None] - alpha
    return np.stack([np.delete(row, label) for row, label in zip(plain, y, strict=True)])


def gammas(machine, G, y):
    return np.stack([generator(machine, label, len(g)).T @ g for g, label in zip(G, y, strict=True)])


def assert_feasible(machine, alpha, y, C):
    beta, scale = betas(machine, alpha, y), np.maximum(np.abs(alpha).max(axis=1), C)
    assert (beta >= -1e-14 * scale[:, None]).all()
    assert (beta <= np.broadcast_to(upper(machine, C), C.shape)[:, None] + 1e-14 * scale[:, None]).all()
    rebuilt = [generator(machine, label, alpha.shape[1]) @ b for label, b in zip(y, beta, strict=True)]
    np.testing.assert_allclose(alpha, rebuilt, atol=1e-13 * scale.max(), rtol=0)


def random_rows(machine, rng, n, m, scale=1.0):
    """Feasible rows, some betas on their bounds, and gradients with sums of zero (but for one-vs-rest)."""
    y = rng.integers(m, size=n).astype(np.int32)
    C = scale * rng.uniform(0.3, 3.0, n)
    k = m if machine == "one-vs-rest" else m - 1
    beta = np.clip(rng.uniform(-1.0, 2.0, (n, k)), 0.0, 1.0) * C[:, None]
    alpha = np.stack([generator(machine, label, m) @ b for label, b in zip(y, beta, strict=True)])
    G = rng.normal(size=(n, m))
    if machine != "one-vs-rest":
        G -= G.mean(axis=1, keepdims=True)
    return np.ascontiguousarray(alpha), G, y, C


def update(machine, name, alpha, G, y, C, k, seed=0):
    alpha = alpha.copy()
    _core.update_samples(machine, name, alpha, G, y, C, k, seed)
    return alpha


def measure(machine, alpha, G, y, C):
    violation, gain = np.empty(len(y)), np.empty(len(y))
    _core.measure(machine, G, alpha, y, C, None, violation, gain, 1)
    return violation, gain


class Case:
    """A block: random samples, unequal costs, the ridge of msvm2 on the diagonal."""

    def __init__(self, machine, seed=0, n=14, m=4, scale=1.0, gamma=0.4, dtype=np.float64):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 3))
        self.machine, self.m = machine, m
        self.y = rng.integers(m, size=n).astype(np.int32)
        self.C = scale * rng.uniform(0.3, 3.0, n)
        self.K = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
        if machine == "msvm2":
            self.K[np.diag_indices(n)] += 0.5 / self.C
        self.K = self.K.astype(dtype)
        self.alpha, self.T = np.zeros((n, m)), target(machine, self.y, m)
        self.G = -self.T

    def gradient(self):
        return self.K.astype(np.float64) @ self.alpha - self.T

    def dual(self):
        return 0.5 * np.vdot(self.alpha, self.K.astype(np.float64) @ self.alpha) - np.vdot(self.T, self.alpha)

    def measure(self):
        return measure(self.machine, self.alpha, self.gradient(), self.y, self.C)

    def descend(
        self, eps=1e-9, update="sort", sweeps=20000, relax=1.0, width=np.inf, faces=False, staged=True
    ):
        diagonal = np.diag(self.K).astype(np.float64)
        room = np.empty(len(self.y) ** 2, dtype=self.K.dtype)
        arrays = self.K, diagonal, self.G, self.alpha, self.y, self.C
        options = _core.DescentOptions(
            eps=eps,
            max_sweeps=sweeps,
            update=update,
            seed=1,
            staged=staged,
            relax=relax,
            width=width,
            faces=faces,
        )
        return _core.coordinate_descent(self.machine, *arrays, options, room)

    def project(self, eps=1e-10, max_iter=20000, initial_step="projected"):
        arrays = self.K, self.G, self.alpha, self.y, self.C
        steps = {"rho_min": 1e-10, "rho_max": 1e10, "memory": 2, "patience": 2, "initial_step": initial_step}
        options = _core.GradientOptions(eps=eps, max_iter=max_iter, **steps)
        return _core.projected_gradient(self.machine, *arrays, options, 1)

    def optimum(self):
        """By bounded least squares: with K = LL', 1/2 |L'alpha|^2 - <T, alpha> over alpha = M beta."""
        n, L = len(self.y), np.linalg.cholesky(self.K.astype(np.float64) + 1e-13 * np.eye(len(self.y)))
        M = block_diag(*(generator(self.machine, label, self.m) for label in self.y))
        A = np.kron(L.T, np.eye(self.m)) @ M
        b = np.linalg.solve(np.kron(L, np.eye(self.m)), self.T.ravel())
        most = np.repeat(upper(self.machine, self.C) * np.ones(n), M.shape[1] // n)
        beta = lsq_linear(A, b, (0.0, most), method="bvls", tol=1e-14, max_iter=5000).x
        return 0.5 * np.sum((A @ beta) ** 2) - self.T.ravel() @ M @ beta

    def assert_solved(self, violation):
        assert_feasible(self.machine, self.alpha, self.y, self.C)
        np.testing.assert_allclose(self.G, self.gradient(), atol=1e-10 * max(1.0, np.abs(self.G).max()))
        assert self.measure()[0].max() <= violation
        return self


# -- one row ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("m", [2, 3, 7, 60])
@pytest.mark.parametrize("machine", MACHINES)
def test_the_exact_update_is_the_projection(machine, m, scale):
    rng = np.random.default_rng(m)
    alpha, G, y, C = random_rows(machine, rng, 40, m, scale)
    k = 10.0 ** rng.uniform(-2, 2, 40) / scale
    if machine == "msvm2":
        k = np.maximum(k, 0.5 / C)
    new = update(machine, "sort", alpha, G, y, C, k)
    assert_feasible(machine, new, y, C)
    for i, w in enumerate(alpha - G / k[:, None]):
        M, size = generator(machine, y[i], m), np.abs(w).max() + C[i]
        # <w - p, u - p> <= 0 for all feasible u: the linear problem over the box, class by class.
        pull = M.T @ (w - new[i])
        beta = np.linalg.lstsq(M, new[i], rcond=None)[0]
        assert (pull[beta < upper(machine, C[i]) - 1e-9 * C[i]] <= 1e-11 * size).all()
        assert (pull[beta > 1e-9 * C[i]] >= -1e-11 * size).all()


@pytest.mark.parametrize("machine", MACHINES)
def test_the_exact_update_against_bounded_least_squares(machine):
    rng = np.random.default_rng(3)
    alpha, G, y, C = random_rows(machine, rng, 60, 6)
    k = np.full(60, 0.9) if machine != "msvm2" else np.maximum(0.9, 0.5 / C)
    new = update(machine, "sort", alpha, G, y, C, k)
    for i, w in enumerate(alpha - G / k[:, None]):
        M = generator(machine, y[i], 6)
        beta = lsq_linear(M, w, (0.0, upper(machine, C[i])), method="bvls", tol=1e-14).x
        np.testing.assert_allclose(new[i], M @ beta, atol=1e-10)


@pytest.mark.parametrize("machine", MACHINES)
def test_ties_and_repeated_updates(machine):
    """Equal gradients get equal coefficients, and an exact update of its own result changes nothing."""
    m, n = 5, 4
    y, C, k = np.arange(n, dtype=np.int32), np.ones(n), np.full(n, 1.3)
    G = -target(machine, y, m)
    new = update(machine, "sort", np.zeros((n, m)), G, y, C, k)
    for row, label in zip(new, y, strict=True):
        assert len(set(np.delete(row, label))) == 1
    again = update(machine, "sort", new, G + k[:, None] * new, y, C, k)
    np.testing.assert_allclose(again, new, atol=1e-14)


@pytest.mark.parametrize("machine", MACHINES)
def test_frank_wolfe_is_the_best_step_to_the_best_vertex(machine):
    rng = np.random.default_rng(5)
    alpha, G, y, C = random_rows(machine, rng, 60, 6)
    k = np.maximum(10.0 ** rng.uniform(-2, 2, 60), 0.5 / C)
    new = update(machine, "frank-wolfe", alpha, G, y, C, k)
    assert_feasible(machine, new, y, C)
    for i in range(60):
        M = generator(machine, y[i], 6)
        most = 1000.0 * C[i] if machine == "msvm2" else C[i]
        direction = M @ np.where(M.T @ G[i] < 0, most, 0.0) - alpha[i]
        t = min(1.0, -(G[i] @ direction) / max(k[i] * direction @ direction, 1e-300))
        np.testing.assert_allclose(
            new[i], alpha[i] + t * direction, atol=1e-11 * (1 + np.abs(direction).max())
        )


@pytest.mark.parametrize("name", ["sort", "frank-wolfe"])
@pytest.mark.parametrize("machine", MACHINES)
def test_no_curvature_leaves_the_linear_problem(machine, name):
    """K_ii = 0: beta = C where gamma < 0, 0 where gamma > 0. msvm2 always has the curvature of its ridge."""
    alpha, G, y, C = random_rows(machine, np.random.default_rng(8), 30, 5)
    new = update(machine, name, alpha, G, y, C, np.zeros(30))
    assert_feasible(machine, new, y, C)
    if machine == "msvm2":
        np.testing.assert_array_equal(new, update(machine, name, alpha, G, y, C, 0.5 / C))
        return
    expected = np.where(gammas(machine, G, y) < 0, C[:, None], 0.0)
    np.testing.assert_allclose(betas(machine, new, y), expected, atol=1e-13)


@pytest.mark.parametrize("k", [1e-300, 1e-13, 1e13, 1e300])
@pytest.mark.parametrize("machine", MACHINES)
def test_extreme_curvature(machine, k):
    alpha, G, y, C = random_rows(machine, np.random.default_rng(9), 30, 5)
    new = update(machine, "sort", alpha, G, y, C, np.full(30, k))
    assert_feasible(machine, new, y, C)
    if k > 1:
        np.testing.assert_allclose(new, alpha, atol=1e-12)
    elif machine == "one-vs-rest":
        np.testing.assert_allclose(new, update(machine, "sort", alpha, G, y, C, np.zeros(30)), atol=1e-13)


@pytest.mark.parametrize("machine", MACHINES)
def test_measures_are_those_of_the_definition(machine):
    rng = np.random.default_rng(11)
    for m in (2, 5, 30):
        alpha, G, y, C = random_rows(machine, rng, 50, m, 2.0)
        violation, gain = measure(machine, alpha, G, y, C)
        beta, gamma, c = betas(machine, alpha, y), gammas(machine, G, y), C[:, None]
        up = (beta < (1 - ON_BOUND) * c) | (machine == "msvm2")
        bad = np.maximum(np.where(up, -gamma, 0), np.where(beta > ON_BOUND * c, gamma, 0))
        np.testing.assert_allclose(violation, np.maximum(bad, 0).max(axis=1), atol=1e-12)
        if machine != "msvm2":
            expected = (c - beta) * np.maximum(-gamma, 0) + beta * np.maximum(gamma, 0)
            np.testing.assert_allclose(gain, expected.sum(axis=1), rtol=1e-12, atol=1e-12)


def quadratic_loss(s, y, C):
    """C min sum xi^2 + (sum xi)^2 over xi_r >= s_r + kappa, r != y: by the sorted form."""
    m = len(s)
    t = 2 * C * (np.delete(s, y) + 1 / (m - 1))
    best = np.zeros(m - 1)
    for k in range(1, m):
        mean = np.sort(t)[::-1][:k].sum() / (m - k)
        if np.sort(t)[::-1][k - 1] + mean <= 0:
            break
        best = np.maximum(t + mean, 0)
    return (np.sum(best**2) - best.sum() ** 2 / m) / (4 * C)


@pytest.mark.parametrize("m", [2, 3, 8])
def test_the_gain_of_msvm2_is_loss_plus_conjugate(m):
    alpha, G, y, C = random_rows("msvm2", np.random.default_rng(m), 40, m)
    gain = measure("msvm2", alpha, G, y, C)[1]
    beta = betas("msvm2", alpha, y)
    for i in range(40):
        s = G[i] - alpha[i] / (2 * C[i]) - np.where(np.arange(m) == y[i], 0.0, 1 / (m - 1))
        margin = np.delete(s, y[i]) + 1 / (m - 1)
        expected = quadratic_loss(s, y[i], C[i]) + alpha[i] @ alpha[i] / (4 * C[i]) - beta[i] @ margin
        assert gain[i] == pytest.approx(expected, rel=1e-10, abs=1e-12)
    best = update("msvm2", "sort", alpha, G, y, C, 0.5 / C)  # optimal for these scores: no gain is left
    after = G + (best - alpha) / (2 * C[:, None])
    np.testing.assert_allclose(measure("msvm2", best, after, y, C)[1], 0.0, atol=1e-12)


# -- blocks ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("machine", MACHINES)
def test_both_solvers_reach_the_optimum(machine, seed):
    descent, gradient = Case(machine, seed), Case(machine, seed)
    assert descent.descend()[2] <= 1e-9
    assert gradient.project(1e-8)[1] <= 1e-8
    expected = descent.optimum()
    assert descent.assert_solved(2e-9).dual() == pytest.approx(expected, rel=1e-9)
    assert_feasible(machine, gradient.alpha, gradient.y, gradient.C)
    assert gradient.dual() == pytest.approx(expected, rel=1e-7)
    np.testing.assert_allclose(descent.gradient(), gradient.gradient(), atol=1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1e2, 1e6])
@pytest.mark.parametrize("machine", MACHINES)
def test_extreme_costs(machine, scale):
    case = Case(machine, 1, scale=scale)
    case.descend(1e-8)
    case.assert_solved(1e-7)
    assert (case.measure()[1] >= 0).all()


@pytest.mark.parametrize("m", [2, 40])
@pytest.mark.parametrize("machine", MACHINES)
def test_few_and_many_classes(machine, m):
    case, other = Case(machine, 2, n=40, m=m), Case(machine, 2, n=40, m=m)
    case.descend()
    case.assert_solved(2e-9)
    other.project(1e-9)
    assert other.dual() == pytest.approx(case.dual(), rel=1e-7)


@pytest.mark.parametrize("options", [{"relax": 0.6}, {"relax": 1.7}, {"staged": False}, {"faces": True}])
@pytest.mark.parametrize("machine", MACHINES)
def test_options_of_descent_end_at_the_same_optimum(machine, options):
    plain, case = Case(machine, 3, n=60), Case(machine, 3, n=60)
    plain.descend()
    case.descend(**options)
    assert case.assert_solved(2e-9).dual() == pytest.approx(plain.dual(), rel=1e-10)


@pytest.mark.parametrize("machine", MACHINES)
def test_faces_help_where_the_kernel_is_nearly_singular(machine):
    plain, case = (Case(machine, 4, n=120, gamma=0.03, scale=10.0) for _ in range(2))
    updates = plain.descend(1e-6)[1], case.descend(1e-6, faces=True)[1]
    assert case.assert_solved(2e-6).dual() == pytest.approx(plain.dual(), rel=1e-6)
    assert updates[1] <= updates[0]


@pytest.mark.parametrize("machine", MACHINES)
def test_frank_wolfe_descends(machine):
    plain, case = Case(machine, 5), Case(machine, 5)
    plain.descend()
    before = case.dual()
    case.descend(1e-3, update="frank-wolfe", sweeps=3000)
    assert_feasible(machine, case.alpha, case.y, case.C)
    assert case.dual() < before
    gap = 0.2 if machine == "msvm2" else 0.02
    assert case.dual() - plain.dual() <= gap * abs(plain.dual())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("machine", MACHINES)
def test_rounds_over_listed_pairs_end_at_the_optimum_of_all(machine, dtype):
    plain = Case(machine, 6, n=150, m=12, gamma=2.0, dtype=dtype)
    plain.descend(1e-7)
    case = Case(machine, 6, n=150, m=12, gamma=2.0, dtype=dtype)
    case.descend(0.2)
    for _ in range(200):
        case.G = case.gradient()
        worst = case.measure()[0].max()
        if worst <= 1e-6:
            break
        before = case.dual(), case.alpha.copy(), case.G.copy()
        case.descend(1e-7, width=0.1 * worst)
        assert_feasible(machine, case.alpha, case.y, case.C)
        # What the engine takes for the change of the dual: exact though part of G is old.
        change = 0.5 * np.vdot(before[2] + case.G, case.alpha - before[1])
        assert case.dual() - before[0] == pytest.approx(change, rel=1e-6, abs=1e-8)
    assert worst <= 1e-6
    assert case.dual() == pytest.approx(plain.dual(), rel=1e-6)


@pytest.mark.parametrize("machine", MACHINES)
def test_samples_without_influence_still_close_the_gap(machine):
    """Zero rows of the kernel (not msvm2, whose ridge is on the diagonal)."""
    case = Case(machine, 7)
    case.K[0], case.K[:, 0] = 0.0, 0.0
    if machine == "msvm2":
        case.K[0, 0] = 0.5 / case.C[0]
    case.descend()
    case.assert_solved(2e-9)
    assert case.measure()[1].max() <= 1e-6


def test_one_vs_rest_moves_samples_of_which_the_own_class_alone_is_listed():
    case = Case("one-vs-rest", 8, n=30, m=6, scale=0.2, gamma=3.0)
    case.G[np.arange(30), case.y] -= 5.0
    G = case.G.copy()
    case.descend(1e-9, width=0.0, sweeps=1)
    moved = case.alpha != 0
    assert moved[np.arange(30), case.y].all()
    assert (case.G != G).any()


# -- what is refused -------------------------------------------------------------------------------
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ["pivot", "bogus"])
def test_unknown_updates_name_the_two_there_are(machine, name):
    with pytest.raises(ValueError, match="'sort' 'frank-wolfe'"):
        Case(machine).descend(update=name)
    alpha, G, y, C = random_rows(machine, np.random.default_rng(0), 3, 4)
    with pytest.raises(ValueError, match="'sort' 'frank-wolfe'"):
        update(machine, name, alpha, G, y, C, C)


def test_unknown_machines_name_the_five_there_are():
    for call in (Case.descend, Case.project, Case.measure):
        case = Case("weston-watkins")
        case.machine = "bogus"
        with pytest.raises(
            ValueError, match="'crammer-singer' 'weston-watkins' 'lee-lin-wahba' 'msvm2' 'one-vs-rest'"
        ):
            call(case)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_broken_gradient_does_not_look_optimal(machine):
    alpha, G, y, C = random_rows(machine, np.random.default_rng(0), 3, 4)
    G[1] = np.nan
    assert np.isnan(measure(machine, alpha, G, y, C)[0][1])


@pytest.mark.parametrize("dtype, rtol", [(np.float32, 1e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("m, zeros", [(2, 0.0), (3, 0.1), (7, 0.1), (7, 0.5), (27, 0.0)])
def test_gradient_of_a_step(m, zeros, dtype, rtol, n_threads):
    """With most classes in most rows, or few; more rows than a chunk, and a part of a tile of columns."""
    rng = np.random.default_rng(0)
    rows, slots = rng.standard_normal((200, 700)).astype(dtype), rng.permutation(200)[:150]
    delta = rng.standard_normal((150, m)) * (rng.random((150, m)) >= zeros)
    delta[::19], delta[4, 1] = 0, 0
    G = rng.standard_normal((700, m))
    expected = G + rows[slots].T.astype(float) @ delta
    _core.update_gradient(G, rows, slots, delta, n_threads)
    np.testing.assert_allclose(G, expected, atol=rtol * np.abs(expected).max())
