"""The leap with a kernel of low rank: its factor, its Newton system, its point, and when it is taken."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import audit
from oracle import assert_feasible, certify, kernel_matrix, one_hot

import multimargin.engines.cpu.leap as low_rank
from multimargin import KernelSVC
from multimargin.engines import CpuEngine, EngineOptions
from multimargin.engines.base import LowRank, Task
from multimargin.engines.cpu.leap import Leap, pivoted_cholesky
from multimargin.inner import work
from multimargin.kernels import make_kernel
from multimargin.methods import METHODS
from multimargin.problems import CrammerSinger
from multimargin.system.shard import Shard


def wide(n=300, m=6, d=4, seed=0):
    """Samples of overlapping classes: with a small gamma almost all of them are support vectors."""
    rng = np.random.default_rng(seed)
    y = np.resize(np.arange(m), n).astype(np.int32)
    return rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(m, d))[y], y


def engine_of(X, y, C=10.0, gamma=2.0**-10, kernel="rbf", cache_bytes=200 << 20):
    k = make_kernel(kernel, degree=3, gamma=gamma, coef0=0.0).resolve(X, None)
    costs = C * np.random.default_rng(1).uniform(0.5, 1.5, len(y))
    task = Task(CrammerSinger(int(y.max()) + 1), k, X, y, costs)
    return CpuEngine(task, EngineOptions(cache_bytes=cache_bytes, block_share=0.3))


def factor(engine, most):
    return pivoted_cholesky(engine.diagonal, engine.column, most, Shard(engine.n))


def test_factor_leaves_what_it_says():
    X, y = wide(80)
    K = kernel_matrix("rbf", X, gamma=0.1)
    L, traces = factor(engine_of(X, y, gamma=0.1), 20)
    assert L.shape == (80, 20)
    for k in (1, 7, 20):
        rest = K - L[:, :k] @ L[:, :k].T
        assert traces[k - 1] == pytest.approx(np.trace(rest), rel=1e-9, abs=1e-10)
        assert np.linalg.eigvalsh(rest).min() > -1e-10


def test_factor_of_a_linear_kernel_is_exact():
    X, y = wide(80, d=4)
    L, traces = factor(engine_of(X, y, kernel="linear"), 20)
    assert L.shape == (80, 4)
    np.testing.assert_allclose(L @ L.T, X @ X.T, atol=1e-10)
    assert traces[-1] < 1e-9


def problem_of(n=60, m=4, rank=5, C=10.0, seed=0):
    X, y = wide(n, m, seed=seed)
    engine = engine_of(X, y, C, gamma=0.05)
    L, _ = factor(engine, rank)
    K = L @ L.T
    K[np.diag_indices(n)] = 1.0
    return low_rank._LowRankProblem(np.ascontiguousarray(L), engine.diagonal, y, engine.task.C, m), K


@pytest.mark.parametrize("dense", [0.0, 1.1])  # coupling by one product, or pair of classes by pair
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_newton_system_is_solved(monkeypatch, dense, scale):
    monkeypatch.setattr(low_rank, "_DENSE", dense)
    problem, K = problem_of()
    n, m = len(problem.y), problem.m
    rng = np.random.default_rng(3)
    D = np.exp(rng.normal(size=n * m) * np.log10(scale + 9))  # up to 12 orders of magnitude apart
    t, u = rng.normal(size=n * m), rng.normal(size=n)
    assert problem._factor(D)
    dz, dl = problem._solve(t, u)
    np.testing.assert_allclose(np.bincount(problem.of, dz), u, atol=1e-8)
    left = (K @ dz.reshape(m, n).T).T.ravel() + D * dz - dl[problem.of] - t
    np.testing.assert_allclose(left, 0.0, atol=1e-5)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("m", [2, 5, 15])
def test_point_is_optimal_for_the_approximate_kernel(C, m):
    problem, K = problem_of(120, m, 6, C)
    assert problem.minimise(1e-4, 60) < 60
    alpha = problem.coefficients()
    assert_feasible(alpha, problem.y, problem.budget)
    assert certify(K, problem.y, alpha, problem.budget).psi.max() < 5e-4


def test_engine_leaps_only_downhill(monkeypatch):
    X, y = wide(60)
    e = engine_of(X, y)
    good = 1e-3 * (one_hot(y, 6) - 1 / 6)
    monkeypatch.setattr(Leap, "point", lambda *_: good)
    assert e.leap(LowRank(), 1e-3)
    dual, G = e.dual, e.state.G.copy()
    assert dual < 0
    monkeypatch.setattr(Leap, "point", lambda *_: -good)
    assert not e.leap(LowRank(), 1e-3)
    assert e.dual == dual
    np.testing.assert_array_equal(e.state.G, G)
    np.testing.assert_array_equal(e.state.alpha, good)


def test_leap_waits_for_its_turn_and_is_taken_once():
    X, y = wide()
    e = engine_of(X, y)
    assert not e.leap(LowRank(), 1e-3)
    e.solvers.work = 10**15
    assert e.leap(LowRank(), 1e-3)
    assert e.prove().violation < 0.1
    assert not e.leap(LowRank(), 1e-3)


def test_no_plan_where_nothing_violates(monkeypatch):
    X, y = wide(60)
    e = engine_of(X, y)
    e.solvers.work = 10**15
    monkeypatch.setattr(low_rank, "pivoted_cholesky", None)
    assert not e.leap(LowRank(), 1e3)


def test_no_leap_where_the_kernel_is_zero():
    X, y = wide(60)
    e = engine_of(np.zeros_like(X), y, kernel="linear")
    e.solvers.work = 10**15
    assert not e.leap(LowRank(), 1e-3)


@pytest.mark.parametrize("why", ["memory", "rank"])
def test_no_leap(why, monkeypatch):
    X, y = wide(2000, d=4 if why == "memory" else 200)
    e = engine_of(X, y, gamma=2.0**-10 if why == "memory" else 1.0)
    e.solvers.work = 10**15
    if why == "memory":
        monkeypatch.setattr(type(e.rows.budget), "finisher_bytes", 10**6)
    assert not e.leap(LowRank(), 1e-3)
    assert not e.state.alpha.any()


@pytest.fixture
def taken(monkeypatch):
    """What the leaps of a fit said; descent is made to look expensive, so that they come early."""
    said, leap = [], CpuEngine.leap

    def watched(self, rule, tol):
        said.append(leap(self, rule, tol))
        return said[-1]

    monkeypatch.setattr(work, "LEAP", 1e6)
    monkeypatch.setattr(CpuEngine, "leap", watched)
    return said


@pytest.mark.slow
def test_fit_that_leaps_finds_the_same_optimum(taken):
    X, y = wide(2500)
    leap = KernelSVC(gamma=2.0**-10).fit(X, y)
    assert sum(taken) == 1
    alone = KernelSVC(gamma=2.0**-10, solver=replace(METHODS["auto"], leap=None)).fit(X, y)
    assert sum(taken) == 1
    for model in (leap, alone):
        audit(model, kernel_matrix("rbf", X, gamma=2.0**-10), y, 1.0, tol=1e-3)
    assert leap.dual_objective_ == pytest.approx(alone.dual_objective_, rel=1e-4)


@pytest.mark.slow
def test_fit_that_takes_minutes_without_a_leap(taken):
    X, y = wide(1500)
    model = KernelSVC(C=100.0, gamma=2.0**-10, dtype="float32", time_limit=60).fit(X, y)
    assert sum(taken) == 1
    audit(model, kernel_matrix("rbf", X, gamma=2.0**-10), y, 100.0, tol=1e-3)
