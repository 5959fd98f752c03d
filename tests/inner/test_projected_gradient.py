"""The block solvers: projected gradient (Niu & Yuan's Algorithm 3) and block coordinate descent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import assert_feasible, certify, kernel_matrix, one_hot, project_simplex, solve_crammer_singer

from multimargin import _core
from multimargin.inner import Block, CoordinateDescent, ProjectedGradient
from multimargin.problems import CrammerSinger

SIDES = ("plain", "native")
STEPS = ("projected", "ell")
UPDATES = ("sort", "pivot", "bisection", "fixed-point", "smo", "frank-wolfe")


class Problem:
    """A random block: a kernel matrix, costs, a feasible start and its gradient."""

    def __init__(self, seed, n=15, m=4, kernel="rbf", rank=None, start="inside", scale=1.0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, rank or 5))
        self.K = np.ascontiguousarray(kernel_matrix(kernel, X, gamma=0.4))
        self.y = rng.integers(m, size=n).astype(np.int32)
        self.y[:m] = np.arange(m)
        self.C = scale * rng.uniform(0.3, 3.0, n)
        E = one_hot(self.y, m)
        mix = {
            "inside": rng.dirichlet(np.ones(m), n),
            "zero": E,
            "vertex": one_hot(rng.integers(m, size=n), m),
        }
        self.alpha = self.C[:, None] * (E - mix[start])
        # A linear term from samples outside of the block, as in a working set.
        self.linear = 0.3 * rng.normal(size=(n, m)) - E
        self.G = self.K @ self.alpha + self.linear

    def value(self, alpha):
        return 0.5 * np.vdot(alpha, self.K @ alpha) + np.vdot(self.linear, alpha)

    def measures(self, alpha):
        """(psi, g / C) of every row."""
        G = self.K @ alpha + self.linear
        z = self.C[:, None] * one_hot(self.y, alpha.shape[1]) - alpha
        below = G.max(axis=1, keepdims=True) - G
        psi = np.where(z > 1e-8 * self.C[:, None], below, 0).max(axis=1)
        return psi, (z * below).sum(axis=1) / self.C

    def projected_gradient(self, side, eps, cap, initial_step="projected"):
        alpha, G = self.alpha.copy(), self.G.copy()
        if side == "native":
            options = _core.GradientOptions(
                eps=eps,
                max_iter=cap,
                rho_min=1e-10,
                rho_max=1e10,
                memory=2,
                patience=2,
                initial_step=initial_step,
            )
            arrays = self.K, G, alpha, self.y, self.C
            steps, measure = _core.projected_gradient("crammer-singer", *arrays, options, 1)
        else:
            solver = ProjectedGradient(max_iter=cap, initial_step=initial_step)
            steps = solver.solve(
                CrammerSinger(alpha.shape[1]), self.block(alpha, G), eps, np.random.default_rng(0)
            )
            measure = None
        return alpha, G, steps, measure

    def coordinate_descent(self, side, update, eps, staged=True, cap=10_000):
        alpha, G = self.alpha.copy(), self.G.copy()
        if side == "native":
            _core.coordinate_descent(
                "crammer-singer",
                self.K,
                np.diag(self.K).copy(),
                G,
                alpha,
                self.y,
                self.C,
                _core.DescentOptions(eps=eps, max_sweeps=cap, update=update, staged=staged),
            )
        else:
            solver = CoordinateDescent(update=update, staged=staged, max_sweeps=cap)
            solver.solve(CrammerSinger(alpha.shape[1]), self.block(alpha, G), eps, np.random.default_rng(0))
        return alpha, G

    def block(self, alpha, G):
        return Block(np.arange(len(self.y)), self.K, np.diag(self.K).copy(), alpha, G, self.y, self.C)


@pytest.mark.parametrize("initial_step", STEPS)
@pytest.mark.parametrize("side", SIDES)
@given(
    seed=st.integers(0, 10_000), cap=st.integers(1, 12), start=st.sampled_from(["inside", "zero", "vertex"])
)
def test_iterates_stay_feasible_and_end_no_worse(side, initial_step, seed, cap, start):
    """Whatever the cap: feasible, the gradient belongs to the point, the value not above the start's."""
    problem = Problem(seed, start=start)
    alpha, G, _, _ = problem.projected_gradient(side, 1e-12, cap, initial_step)
    assert_feasible(alpha, problem.y, problem.C, atol=1e-12)
    np.testing.assert_allclose(G, problem.K @ alpha + problem.linear, atol=1e-9)
    assert problem.value(alpha) <= problem.value(problem.alpha) + 1e-12 * abs(problem.value(problem.alpha))


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("initial_step", STEPS)
@pytest.mark.parametrize("side", SIDES)
def test_agrees_with_coordinate_descent(side, initial_step, scale):
    for seed in range(12):
        problem = Problem(seed, scale=scale)
        alpha, _, steps, measure = problem.projected_gradient(side, 1e-9, 20_000, initial_step)
        gain = problem.measures(alpha)[1].max()
        assert gain <= 1.01e-9 + 1e-13 * scale
        assert 0 < steps < 20_000
        if measure is not None:
            assert measure == pytest.approx(gain, abs=1e-12 + 1e-13 * scale)
        other, _ = problem.coordinate_descent(side, "sort", 1e-9)
        assert problem.value(alpha) == pytest.approx(problem.value(other), rel=1e-7, abs=1e-8 * scale)
        np.testing.assert_allclose(problem.K @ alpha, problem.K @ other, atol=1e-3 * max(1.0, np.sqrt(scale)))


@pytest.mark.parametrize("side", SIDES)
def test_reaches_the_qp_solvers_optimum(side, iris):
    """The whole problem as one block: the oracle's interior-point value."""
    X, y = iris
    y = y.astype(np.int32)
    K = np.ascontiguousarray(kernel_matrix("rbf", X, gamma=0.3))
    C = np.linspace(0.5, 3, len(y))
    best = certify(K, y, solve_crammer_singer(K, y, C), C).dual
    problem = Problem(0, n=len(y), m=3)
    problem.K, problem.y, problem.C, problem.linear = K, y, C, -one_hot(y, 3)
    problem.alpha = np.zeros((len(y), 3))
    problem.G = problem.linear.copy()
    alpha, _, _, _ = problem.projected_gradient(side, 1e-9, 20_000)
    assert certify(K, y, alpha, C).dual == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("side", SIDES)
def test_optimal_start_stays(side):
    problem = Problem(5)
    problem.alpha, problem.G, _, _ = problem.projected_gradient(side, 1e-9, 20_000)
    alpha, _, steps, _ = problem.projected_gradient(side, 1e-6, 100)
    assert steps == 0
    np.testing.assert_array_equal(alpha, problem.alpha)


@pytest.mark.parametrize("side", SIDES)
def test_singular_kernel(side):
    """Linear kernel of rank 2 with duplicated rows and a zero one: no curvature along many directions."""
    problem = Problem(3, n=12, kernel="linear", rank=2)
    problem.K[:, 5] = problem.K[5] = 0.0
    problem.K[:, 7] = problem.K[:, 6]
    problem.K[7] = problem.K[6]
    problem.G = problem.K @ problem.alpha + problem.linear
    alpha, _, _, _ = problem.projected_gradient(side, 1e-7, 50_000)
    assert_feasible(alpha, problem.y, problem.C)
    assert problem.measures(alpha)[1].max() <= 1.01e-7


@pytest.mark.slow
@pytest.mark.parametrize("staged", [True, False])
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("side", SIDES)
def test_coordinate_descent(side, update, staged):
    """Every update drives the block to its tolerance, and the exact ones to the same value."""
    eps, cap = (1e-3, 400) if update == "frank-wolfe" else (1e-6, 10_000)
    for seed in range(3):
        problem = Problem(seed, n=10)
        alpha, G = problem.coordinate_descent(side, update, eps, staged, cap)
        assert_feasible(alpha, problem.y, problem.C, atol=1e-12)
        np.testing.assert_allclose(G, problem.K @ alpha + problem.linear, atol=1e-9)
        best = problem.value(problem.projected_gradient("native", 1e-10, 20_000)[0])
        if update == "frank-wolfe":  # sublinear: classes lose their last mass too slowly for psi
            assert problem.value(alpha) - best <= 0.05 * abs(best)
        else:
            assert problem.measures(alpha)[0].max() <= eps * (1 + 1e-6)
            assert problem.value(alpha) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("side", SIDES)
def test_coordinate_descent_stops_at_its_cap_no_worse(side):
    problem = Problem(11, n=40)
    values = [
        problem.value(problem.coordinate_descent(side, "sort", 1e-10, cap=cap)[0]) for cap in (1, 3, 20)
    ]
    assert problem.value(problem.alpha) > values[0] >= values[1] >= values[2]


def test_native_descent_reports_the_violation_it_leaves():
    problem = Problem(2, n=30)
    alpha, G = problem.alpha.copy(), problem.G.copy()
    sweeps, updates, violation, work = _core.coordinate_descent(
        "crammer-singer",
        problem.K,
        np.diag(problem.K).copy(),
        G,
        alpha,
        problem.y,
        problem.C,
        _core.DescentOptions(eps=1e-3, max_sweeps=10_000),
    )
    assert violation == pytest.approx(problem.measures(alpha)[0].max(), rel=1e-6, abs=1e-9)
    assert violation <= 1e-3
    assert 0 < sweeps and 0 < updates < work


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_native_descent_takes_either_precision(dtype):
    problem = Problem(4)
    alpha, G = problem.alpha.copy(), problem.G.copy()
    _core.coordinate_descent(
        "crammer-singer",
        problem.K.astype(dtype),
        np.diag(problem.K).copy(),
        G,
        alpha,
        problem.y,
        problem.C,
        _core.DescentOptions(eps=1e-4, max_sweeps=10_000),
    )
    assert problem.measures(alpha)[0].max() <= 1e-3


@given(seed=st.integers(0, 10_000), m=st.integers(2, 200))
def test_projection_is_the_nearest_feasible_point(seed, m):
    rng = np.random.default_rng(seed)
    C, y = rng.uniform(0.1, 5, 4), rng.integers(m, size=4).astype(np.int32)
    w = 3 * rng.normal(size=(4, m))
    rows = CrammerSinger(w.shape[1]).project(w.copy(), y, C)
    assert_feasible(rows, y, C, atol=1e-12 * m)
    for i in range(4):
        e = one_hot(y[i], m)
        nearest = C[i] * e - np.asarray(project_simplex(C[i] * e - w[i], C[i]), dtype=float)
        np.testing.assert_allclose(rows[i], nearest, atol=1e-11)


@pytest.mark.parametrize("step", [1e4, 1e8, 1e10])
def test_projection_of_a_long_step_is_feasible(step):
    """Step lengths go up to rho_max: the simplex must not be lost in the rounding of w - rho F."""
    problem = Problem(6, n=20, scale=1e-4)
    rows = CrammerSinger(problem.alpha.shape[1]).project(
        problem.alpha - step * problem.G, problem.y, problem.C
    )
    assert_feasible(rows, problem.y, problem.C, atol=1e-12)


# The other native verbs that the block solvers stand on.


@pytest.mark.parametrize("chosen", ["all", "some"])
def test_native_measure(chosen):
    problem = Problem(1, n=60, m=6)
    psi, gain = np.full(60, -1.0), np.full(60, -1.0)
    ids = None if chosen == "all" else np.array([3, 59, 0, 17])
    _core.measure("crammer-singer", problem.G, problem.alpha, problem.y, problem.C, ids, psi, gain, 2)
    at = np.arange(60) if ids is None else ids
    expected_psi, expected_gain = problem.measures(problem.alpha)
    np.testing.assert_allclose(psi[at], expected_psi[at], atol=1e-12)
    np.testing.assert_allclose(gain[at], (expected_gain * problem.C)[at], atol=1e-12)
    left = np.setdiff1d(np.arange(60), at)
    assert (psi[left] == -1).all() and (gain[left] == -1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "m", "k"), [(50, 3, 1), (300, 2, 7), (200, 40, 150), (3000, 10, 64)])
def test_native_gradient_update(n, m, k, dtype):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(k + 5, n)).astype(dtype)
    slots = rng.permutation(k + 5)[:k].astype(np.int64)
    delta = rng.normal(size=(k, m)) * (rng.random((k, m)) < 0.4)
    G = rng.normal(size=(n, m))
    expected = G + rows[slots].astype(np.float64).T @ delta
    _core.update_gradient(G, rows, slots, delta, 2)
    # Up to 64 rows are added in their own precision, the sums of those in float64.
    rounding = min(k, 64) * np.finfo(dtype).eps * np.abs(rows).max() * np.abs(delta).max()
    np.testing.assert_allclose(G, expected, atol=1e-10 + rounding)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "m"), [(5, 2), (129, 3), (700, 10)])
def test_native_products_are_those_of_numpy(dtype, n, m):
    """Whatever the precision of K, the gradient is G + K d in float64; threads change nothing."""
    p = Problem(3, n, m)
    values = np.zeros((n, n + 7), dtype=dtype)  # rows of a larger array
    values[:, :n] = p.K
    K = values[:, :n]
    start = p.G - p.K @ p.alpha + K.astype(np.float64) @ p.alpha
    options = _core.GradientOptions(
        eps=0.0, max_iter=7, rho_min=1e-10, rho_max=1e10, memory=2, patience=2, initial_step="projected"
    )
    found = []
    for threads in (1, 2):
        alpha, G = p.alpha.copy(), start.copy()
        steps, _ = _core.projected_gradient("crammer-singer", K, G, alpha, p.y, p.C, options, threads)
        assert steps == 7
        np.testing.assert_allclose(G, start + K.astype(np.float64) @ (alpha - p.alpha), rtol=0, atol=1e-11)
        found.append((alpha, G))
    np.testing.assert_array_equal(found[0], found[1])


@given(st.integers(0, 1000), st.integers(2, 12), st.sampled_from([1e-8, 1e-2, 1.0, 1e3, 1e10]))
def test_one_native_step_is_the_projection(seed, m, rho):
    p = Problem(seed, n=12, m=m, start=("inside", "zero", "vertex")[seed % 3])
    options = _core.GradientOptions(
        eps=0.0, max_iter=1, rho_min=rho, rho_max=rho, memory=2, patience=2, initial_step="projected"
    )
    alpha, G = p.alpha.copy(), p.G.copy()
    K = np.zeros_like(p.K)  # no curvature: the whole step is made
    _core.projected_gradient("crammer-singer", K, G, alpha, p.y, p.C, options, 1)
    E = one_hot(p.y, m)
    for i in range(12):
        D = p.C[i] * E[i] - p.alpha[i] + rho * (p.G[i] - p.G[i].max())
        expected = p.C[i] * E[i] - project_simplex(D, p.C[i])
        np.testing.assert_allclose(alpha[i], expected, atol=1e-12 * p.C[i] * max(1.0, rho * 1e-3))


def one_step(p, rows, rho):
    """The rows of alpha that one step of length ``rho`` gives some rows of a problem without curvature."""
    options = _core.GradientOptions(
        eps=0.0, max_iter=1, rho_min=rho, rho_max=rho, memory=2, patience=2, initial_step="projected"
    )
    alpha, G = p.alpha[rows].copy(), p.G[rows].copy()
    K = np.zeros((len(rows), len(rows)))
    measure = _core.projected_gradient("crammer-singer", K, G, alpha, p.y[rows], p.C[rows], options, 1)[1]
    return alpha, measure


@pytest.mark.parametrize("m", [2, 3, 10, 40])
@pytest.mark.parametrize("rho", [1e-3, 1.0, 1e6])
def test_a_projected_row_does_not_depend_on_the_rows_beside_it(m, rho):
    """Eight rows are projected at a time: those of a step that ends early wait for the others."""
    p = Problem(1, n=40, m=m)
    p.G[::3] *= 50.0
    every, measure = one_step(p, np.arange(40), rho)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(40)
        np.testing.assert_array_equal(one_step(p, order, rho)[0], every[order])
    alone = [one_step(p, np.array([i]), rho) for i in range(40)]
    np.testing.assert_allclose(np.concatenate([row for row, _ in alone]), every, atol=1e-12)
    assert measure == pytest.approx(max(left for _, left in alone), abs=1e-12)


@pytest.mark.parametrize("place", [0, 5, 9])  # in lanes, and after them
def test_a_gradient_that_is_broken_does_not_look_optimal(place):
    p = Problem(1, n=10, m=4)
    p.G[place, 2] = np.nan
    alpha, measure = one_step(p, np.arange(10), 1.0)
    assert np.isnan(measure)
    np.testing.assert_array_equal(alpha, p.alpha)
