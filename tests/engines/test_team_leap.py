"""The leap of a team: every rank has the rows of its own samples, and all take the same steps."""

from types import SimpleNamespace

import numpy as np
import pytest
from oracle import assert_feasible, certify, kernel_matrix
from thread_team import ThreadTeam, run_ranks

import multimargin.engines.cpu.leap as low_rank
from multimargin.engines import CpuEngine, EngineOptions
from multimargin.engines.base import LowRank, Selection, Task
from multimargin.engines.cpu.leap import Leap, pivoted_cholesky
from multimargin.kernels import make_kernel
from multimargin.problems import CrammerSinger
from multimargin.system.shard import Shard
from multimargin.system.team import SOLO

N, M, RANK = 90, 4, 6
CUTS = ([0, 40, 90], [0, 0, 90], [0, 30, 30, 90], [0, 1, 20, 50, 90])  # where the samples of a rank begin


def samples(n=N, m=M, seed=0):
    """Samples of overlapping classes, their kernel matrix and costs."""
    rng = np.random.default_rng(seed)
    y = np.sort(np.resize(np.arange(m), n)).astype(np.int32)  # a class is on one or two ranks only
    X = rng.normal(size=(n, 4)) + 0.5 * rng.normal(size=(m, 4))[y]
    return kernel_matrix("rbf", X, gamma=0.05), y, 10.0 * rng.uniform(0.5, 1.5, n)


def on_ranks(cuts, function):
    """``function(team, rows)`` on each rank; ``rows`` is the slice of its samples."""
    return run_ranks(len(cuts) - 1, lambda team: function(team, slice(cuts[team.rank], cuts[team.rank + 1])))


def factor(K, rows, shard, rank=RANK):
    return pivoted_cholesky(K.diagonal()[rows].copy(), lambda i: K[rows, i], rank, shard)


def problem_of(K, y, C, rows, team, rank=RANK):
    L, _ = factor(K, rows, Shard(rows.stop - rows.start, team), rank)
    return low_rank._LowRankProblem(
        np.ascontiguousarray(L), K.diagonal()[rows].copy(), y[rows], C[rows], int(y.max()) + 1, team
    )


@pytest.mark.parametrize("cuts", CUTS)
def test_factor_is_that_of_one_process(cuts):
    K, _, _ = samples()
    K[17:19] = K[17]  # two samples are the same: the pivot is a tie
    K[:, 17:19] = K[:, 17:18]
    L, traces = factor(K, slice(0, N), Shard(N), 20)
    parts = on_ranks(cuts, lambda team, rows: factor(K, rows, Shard(rows.stop - rows.start, team), 20))
    np.testing.assert_allclose(np.concatenate([part[0] for part in parts]), L, atol=1e-9)
    for _, found in parts:
        np.testing.assert_array_equal(found, parts[0][1])
        np.testing.assert_allclose(found, traces, atol=1e-9)


def test_factor_of_a_kernel_of_zeros_has_no_columns():
    parts = on_ranks([0, 0, 5], lambda team, rows: factor(np.zeros((5, 5)), rows, Shard(rows.stop, team)))
    assert [L.shape for L, _ in parts] == [(0, 0), (5, 0)]


@pytest.mark.parametrize("dense", [0.0, 1.1])  # coupling by one product, or pair of classes by pair
@pytest.mark.parametrize("cuts", CUTS)
def test_newton_system_is_solved(cuts, dense, monkeypatch):
    monkeypatch.setattr(low_rank, "_DENSE", dense)
    K, y, C = samples()
    L, _ = factor(K, slice(0, N), Shard(N))
    near = L @ L.T
    near[np.diag_indices(N)] = 1.0
    rng = np.random.default_rng(3)
    D, t = np.exp(3.0 * rng.normal(size=(M, N))), rng.normal(size=(M, N))
    u = rng.normal(size=N)

    def work(team, rows):
        problem = problem_of(K, y, C, rows, team)
        assert problem._factor(D[:, rows].ravel())
        dz, dl = problem._solve(t[:, rows].ravel(), u[rows])
        return dz.reshape(M, -1), dl

    parts = on_ranks(cuts, work)
    dz, dl = (np.concatenate([part[k] for part in parts], axis=-1) for k in (0, 1))
    np.testing.assert_allclose(dz.sum(axis=0), u, atol=1e-8)
    np.testing.assert_allclose(dz @ near + D * dz - dl - t, 0.0, atol=1e-6)


@pytest.mark.parametrize("cuts", CUTS)
def test_point_is_optimal_for_the_approximate_kernel(cuts):
    K, y, C = samples()
    L, _ = factor(K, slice(0, N), Shard(N))
    near = L @ L.T
    near[np.diag_indices(N)] = 1.0

    def work(team, rows):
        problem = problem_of(K, y, C, rows, team)
        return problem.minimise(1e-4, 60), problem.coefficients()

    parts = on_ranks(cuts, work)
    assert len({steps for steps, _ in parts}) == 1
    assert parts[0][0] < 60
    alpha = np.concatenate([rows for _, rows in parts])
    assert_feasible(alpha, y, C)
    assert certify(near, y, alpha, C).psi.max() < 5e-4


def test_messages_do_not_grow_with_the_samples(monkeypatch):
    largest, exchange = {}, ThreadTeam.exchange

    def watched(self, verb, value, nbytes=0):
        largest[n] = max(largest.get(n, 0), nbytes)
        return exchange(self, verb, value, nbytes)

    monkeypatch.setattr(ThreadTeam, "exchange", watched)
    for n in (60, 600):
        K, y, C = samples(n)
        on_ranks(
            [0, n // 3, n], lambda team, rows, of=(K, y, C): problem_of(*of, rows, team).minimise(1e-3, 9)
        )
    assert largest[600] == largest[60] == 8 * (M * RANK) ** 2


@pytest.mark.parametrize("short_of_memory", [False, True])
def test_ranks_decide_alike(short_of_memory):
    """Ranks that count their work or their memory differently leap together, or not at all."""
    K, y, C = samples()

    def work(team, rows):
        def select(*_):
            return Selection(np.array([0]), 1.0, 1.0, 1)

        shard = Shard(rows.stop - rows.start, team)
        state = SimpleNamespace(
            team=team,
            shard=shard,
            y=y[rows],
            C=C[rows],
            n=N,
            m=M,
            alpha=np.zeros((shard.count, M)),
            select=select,
        )
        leap = Leap(LowRank(most=20), state, K.diagonal()[rows].copy())
        points = [
            leap.point(
                1e-3,
                done + team.rank,
                100 if short_of_memory and team.rank == 1 else 1 << 30,
                lambda i: K[rows, i],
                lambda: False,
            )
            for done in (0, 10**15, 10**15)
        ]
        return [None if alpha is None else len(alpha) for alpha in points]

    sizes = on_ranks([0, 30, 30, 90], work)
    taken = [None] * 3 if short_of_memory else [30, 0, 60]
    assert sizes == [[None, size, None] for size in taken]


@pytest.mark.parametrize("cuts", CUTS)
def test_engine_leaps_to_the_point_of_one_process(cuts):
    rng = np.random.default_rng(0)
    y = np.resize(np.arange(M), N).astype(np.int32)
    X, C = rng.normal(size=(N, 4)) + 0.5 * rng.normal(size=(M, 4))[y], rng.uniform(5.0, 15.0, N)
    kernel = make_kernel("rbf", degree=3, gamma=2.0**-10, coef0=0.0).resolve(X, None)

    def leap(team, rows):
        task = Task(CrammerSinger(M), kernel, X[rows].copy(), y[rows], C[rows], team=team)
        engine = CpuEngine(task, EngineOptions(block_share=0.3))
        engine.solvers.work = 10**15
        return engine.leap(LowRank(), 1e-3), engine.dual, engine.prove().violation

    taken, dual, violation = leap(SOLO, slice(0, N))
    assert taken
    for found in on_ranks(cuts, leap):
        assert found == (True, pytest.approx(dual, rel=1e-9), pytest.approx(violation, rel=1e-3))
