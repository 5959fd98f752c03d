"""Every method on a team of ranks: the optimum that one process finds, judged by the oracle in float64.

How a block is put together and who solves it depends on its size, on the shards, on time limits and on
whether all ranks compute the same bits. Each way is taken here on purpose.
"""

import numpy as np
import pytest
from oracle import MACHINES, certify, kernel_matrix
from ranks import cuts_of
from thread_team import run_ranks

from multimargin.engines import CpuEngine, EngineOptions
from multimargin.engines.base import Task
from multimargin.engines.cpu import solvers, team_blocks
from multimargin.engines.mpi.columns import ColumnsEngine
from multimargin.kernels import RBF, CallableKernel, Precomputed
from multimargin.methods.table import METHODS, find_method
from multimargin.problems import PROBLEMS
from multimargin.run.monitor import Monitor
from multimargin.solution import Status

TOL, GAMMA, N = 1e-3, 0.3, 150
SHARES = {"two": (0.5, 0.5), "ragged": (0.1, 0.0, 0.9), "four": (0.25, 0.25, 0.25, 0.25)}


def rbf(A, B):
    return np.exp(-GAMMA * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def problem_of(machine, n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = rng.integers(0, 2 if machine == "c-svc" else 4, n).astype(np.int32)
    X[np.arange(n), y % 3] += 1.5
    return X, np.sort(y), 10.0 ** rng.uniform(-1, 0.5, n)  # sorted: some ranks do not have all classes


def solve(
    team,
    machine,
    solver,
    shares=(1.0,),
    *,
    kernel=None,
    n=N,
    uniform=True,
    seconds=None,
    size="auto",
    kind=CpuEngine,
    **options,
):
    """One rank's part of a fit."""
    X, y, C = problem_of(machine, n)
    cuts = cuts_of(n, shares)
    here = slice(cuts[team.rank], cuts[team.rank + 1])
    team.uniform = uniform
    if isinstance(kernel, Precomputed):
        X = rbf(X, X)
    method = find_method(solver, size, machine, False)
    task = Task(PROBLEMS[machine](y.max() + 1), kernel or RBF(GAMMA), X[here], y[here], C[here], team=team)
    shares_of_memory = {"block_share": method.block_share, "working_set": method.largest_set}
    options = {"cache_bytes": 20 << 20, "inner": method.inner} | shares_of_memory | options
    engine = kind(task, EngineOptions(lazy_blocks=method.lazy_blocks, **options))
    monitor = Monitor(3000, seconds)
    return method.run(engine, monitor, tol=TOL, rng=np.random.default_rng(0))


def assert_optimal(machine, results, tol=TOL, n=N):
    """All ranks have the same bits, and the oracle finds no sample that violates by more than tol."""
    first = results[0]
    for other in results[1:]:
        np.testing.assert_array_equal(first.coef, other.coef)
        np.testing.assert_array_equal(first.support, other.support)
        assert (first.dual, first.gap, first.status) == (other.dual, other.gap, other.status)
    X, y, C = problem_of(machine, n)
    bias = first.bias if machine == "c-svc" else None
    truth = certify(kernel_matrix("rbf", X, gamma=GAMMA), y, first.alpha, C, machine, bias)
    assert first.status is Status.CONVERGED
    assert first.gap == pytest.approx(truth.gain.sum(), abs=1e-8 * (1 + truth.primal))
    assert first.violation == pytest.approx(truth.psi.max() / truth.kappa, abs=1e-8)
    return truth


FITTING = [
    (machine, solver)
    for machine in MACHINES
    for solver in ("auto", "dasmc", "vpdt", "svm-light", "ell-based")
    if (machine == "c-svc") == (solver in ("vpdt", "svm-light")) or (solver == "auto")
    if solver != "ell-based" or machine == "crammer-singer"
]
LARGE_STEPS = [(machine, solver) for machine, solver in FITTING if solver in ("auto", "dasmc", "vpdt")]
every_fitting = pytest.mark.parametrize(("machine", "solver"), FITTING)
every_large_step = pytest.mark.parametrize(("machine", "solver"), LARGE_STEPS)


@pytest.mark.parametrize("shares", SHARES)
@every_fitting
def test_every_method_finds_the_optimum(machine, solver, shares):
    n = N if (machine, solver) in LARGE_STEPS else 40
    parts = SHARES[shares]
    results = run_ranks(len(parts), lambda team: solve(team, machine, solver, parts, n=n))
    assert_optimal(machine, results, n=n)


def test_every_method_that_has_a_name_is_tested():
    assert {solver for _, solver in FITTING} >= set(METHODS) - {"mcsvm", "msvmpack", "pdasmc"}


@pytest.mark.parametrize("uniform", [True, False])
@every_large_step
def test_the_scheme_of_columns_finds_the_optimum(machine, solver, uniform):
    results = run_ranks(
        3, lambda team: solve(team, machine, solver, (0.4, 0.0, 0.6), kind=ColumnsEngine, uniform=uniform)
    )
    assert_optimal(machine, results)


@pytest.mark.parametrize("way", ["shared", "by one", "in time", "not together"])
@every_large_step
def test_whoever_solves_the_block(machine, solver, way, monkeypatch):
    """Products shared by all; rank 0 alone: bits differ, time is limited, or a shared descent fails."""
    if way == "shared":
        monkeypatch.setattr(team_blocks, "_WORTH_A_MESSAGE", 1.0)
    if way == "not together":
        monkeypatch.setattr(solvers, "_SWEEPS_TOGETHER", 0)
        monkeypatch.setattr(solvers, "_VISITS", 0)
    options = {"by one": {"uniform": False}, "in time": {"seconds": 1000.0}}.get(way, {})
    results = run_ranks(3, lambda team: solve(team, machine, solver, (0.4, 0.0, 0.6), **options))
    assert_optimal(machine, results)


@pytest.mark.parametrize("kernel", [Precomputed(), CallableKernel(rbf)], ids=["precomputed", "callable"])
@every_large_step
def test_kernels_in_python(machine, solver, kernel):
    results = run_ranks(2, lambda team: solve(team, machine, solver, (0.3, 0.7), kernel=kernel))
    assert_optimal(machine, results)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kilobytes", [4, 40])
def test_little_memory(machine, kilobytes):
    """Rows that are not kept, blocks that hold a part of the support vectors."""
    n = 60
    options = {"cache_bytes": kilobytes << 10, "n": n}
    results = run_ranks(2, lambda team: solve(team, machine, "auto", (0.5, 0.5), **options))
    assert_optimal(machine, results, n=n)


def test_more_ranks_compute_fewer_kernel_values_if_the_cache_is_small():
    """A rank's rows are shorter, so that more of them fit: the joint cache of Niu & Yuan, Section 5.2."""
    options = {"cache_bytes": 60_000, "n": 150, "size": 20}

    def rows(P):
        parts = [1 / P] * P
        found = run_ranks(P, lambda team: solve(team, "crammer-singer", "dasmc", parts, **options))
        return found[0].trace[-1].rows

    assert rows(2) < rows(1)


def test_a_time_limit_ends_all_ranks_with_one_point():
    results = run_ranks(2, lambda team: solve(team, "crammer-singer", "auto", (0.5, 0.5), seconds=1e-6))
    assert all(result.status is Status.TIME_LIMIT for result in results)
    np.testing.assert_array_equal(results[0].coef, results[1].coef)


@pytest.mark.parametrize("even", [False, True])
def test_no_more_candidates_travel_than_some_rank_has(even):
    """However many samples a rule asks for: few violate near the optimum."""
    X, y, C = problem_of("crammer-singer")

    def received(team):
        here = slice(team.rank * N // 2, (team.rank + 1) * N // 2)
        task = Task(PROBLEMS["crammer-singer"](4), RBF(GAMMA), X[here], y[here], C[here], team=team)
        engine = CpuEngine(task, EngineOptions())
        found = []
        for above in (0.0, 1.5):  # at alpha = 0 all samples violate by 1
            before = team.received.get("top", 0)
            chosen = engine.select(100_000, above=above, even=even)
            found.append((len(chosen.ids), chosen.above, team.received["top"] - before))
        return found

    for all_of_them, none in run_ranks(2, received):
        assert all_of_them[:2] == (N, N)
        assert all_of_them[2] <= 16 * N * (4 if even else 1)  # evenly: for each class
        assert none == (0, 0, 0)
