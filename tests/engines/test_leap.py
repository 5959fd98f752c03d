"""The leap: when it is taken, that it goes downhill only, and fits that descent alone cannot end."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import audit
from leap_problems import MACHINES, wide
from oracle import kernel_matrix

from multimargin import KernelSVC
from multimargin.engines import CpuEngine, EngineOptions
from multimargin.engines.base import Task
from multimargin.engines.cpu import leap as leap_module
from multimargin.engines.cpu.leap import Leap
from multimargin.engines.cpu.near_point import NearPoint
from multimargin.engines.cpu.pivoted_cholesky import PivotedCholesky
from multimargin.engines.cpu.proximal_newton import ProximalModel, Solved
from multimargin.kernels import make_kernel
from multimargin.methods.table import find_method
from multimargin.problems import PROBLEMS
from multimargin.problems.newton_direction import NoDirectionError

AGES = 10**15  # units of work that pay for any leap


def engine_of(X, y, C=10.0, gamma=2.0**-10, kernel="rbf", machine="crammer-singer", leap=True, cache=200):
    k = make_kernel(kernel, degree=3, gamma=gamma, coef0=0.0).resolve(X, None)
    costs = C * np.random.default_rng(1).uniform(0.5, 1.5, len(y))
    task = Task(PROBLEMS[machine](int(y.max()) + 1), k, X, y, costs)
    return CpuEngine(task, EngineOptions(cache_bytes=cache << 20, block_share=0.3, leap=leap))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_leap_ends_at_the_optimum_of_the_exact_kernel(machine, kernel):
    X, y = wide()
    e = engine_of(X, y, gamma=0.05, kernel=kernel, machine=machine)
    e.solvers.work = AGES
    assert e.leap(1e-3)
    assert e.prove().violation <= 1e-3


@pytest.mark.parametrize("left_out", [None, 7])
def test_leap_does_not_believe_a_dual_of_rounded_steps(left_out):
    """A descent's dual may be too low by more than a leap gains."""
    X, y = wide()
    e = engine_of(X, y, gamma=0.05)
    if left_out is not None:
        mask = np.arange(len(y)) % left_out == 0
        k, task = e.task.kernel, e.task
        part = Task(task.problem, k, X, y, task.C, left_out=mask)
        e = CpuEngine(part, e.options)
    e.solvers.work = AGES
    e.state.dual -= 1e4  # far below the optimum
    assert e.leap(1e-3)
    seen = e.dual
    assert e.prove().violation <= 1e-3
    assert e.dual == pytest.approx(seen, rel=1e-9)


def test_leap_that_fails_leaves_the_exact_point(monkeypatch):
    """Where a model leads uphill, the old point comes back with the gradient and the dual that it has."""
    X, y = wide()
    e = engine_of(X, y, gamma=0.05)
    e.solvers.work = AGES
    worse = -0.1 * np.ones(e.state.alpha.shape)
    worse[np.arange(len(y)), y] = 0.5
    monkeypatch.setattr(ProximalModel, "minimise", lambda self, *_: Solved(-worse, np.zeros((1, 6)), 1))
    monkeypatch.setattr(Leap, "_grow", lambda *_: False)
    assert not e.leap(1e-3)
    assert not e.state.alpha.any()
    assert e.dual == 0.0
    np.testing.assert_array_equal(e.state.G, e.problem.gradient(np.zeros(worse.shape), worse, y, e.task.C))


def test_engine_that_was_not_asked_does_not_leap():
    X, y = wide(60)
    e = engine_of(X, y, leap=False)
    e.solvers.work = AGES
    assert not e.leap(1e-3)


def test_leap_waits_until_it_is_paid_for():
    X, y = wide()
    e = engine_of(X, y)
    e.solvers.creeps = True
    assert not e.leap(1e-3)
    e.solvers.work = int(e._leap.next) - 1
    assert not e.leap(1e-3)
    e.solvers.work = AGES
    assert e.leap(1e-3)
    assert not e.leap(1e-3)  # nothing violates
    assert not e.leap(1e-6)  # the next one is not paid for
    e.solvers.work += int(e._leap.next) - AGES + 1
    assert e.leap(1e-6)
    assert e.prove().violation <= 1e-6


def test_leap_comes_first_if_the_rank_is_very_low():
    X, y = wide(2100)
    assert engine_of(X, y, gamma=2.0**-10).leap(1e-3)
    assert not engine_of(X, y, gamma=4.0).leap(1e-3)  # of high rank: after four columns that is clear
    assert not engine_of(X, y, C=1e-3, gamma=2.0**-10).leap(1e-3)  # descent is fast
    assert not engine_of(X[:2000], y[:2000], gamma=2.0**-10).leap(1e-3)  # small


def test_leap_that_comes_first_takes_columns_as_if_most_samples_were_undecided(monkeypatch):
    """Then a Newton step has an unknown per column and class, so columns that nobody needs are dear."""
    X, y = wide(2200, m=26, d=8)
    ranks = {}
    for share in (0.2, leap_module._UNDECIDED_FAR):
        monkeypatch.setattr(leap_module, "_UNDECIDED_FAR", share)
        e = engine_of(X, y, C=0.25, gamma=0.003)
        monkeypatch.setattr(Leap, "take", lambda leap, *_: ranks.setdefault(len(ranks), leap._rank))
        e.leap(1e-3)
    assert 2 * ranks[1] < ranks[0]


def test_leap_does_not_come_first_from_a_given_start():
    X, y = wide(2100)
    e = engine_of(X, y, gamma=2.0**-10)
    start = np.arange(2), 0.1 * (np.eye(6)[y[:2]] - 1 / 6)
    assert not CpuEngine(replace(e.task, start=start), e.options).leap(1e-3)


def test_leap_of_many_samples_is_dear_unless_the_rank_is_low():
    X, y = wide(2100)
    leap = engine_of(X, y)._leap
    assert leap._price(120) < leap.work(120)
    assert leap._price(130) > 2 * leap.work(130)
    few = engine_of(X[:2000], y[:2000])._leap
    assert few._price(130) < few.work(130)


def test_near_point_is_exact_for_a_kernel_of_its_rank():
    X, y = wide()
    e = engine_of(X, y, kernel="linear")
    near = NearPoint(e.state, X.astype(float))
    worse, better = (sign * (np.eye(6)[y] - 1 / 6) for sign in (-1e-2, 1e-2))
    assert not near.move(worse)
    assert near.move(better)
    e.place(better)
    np.testing.assert_allclose(near.G, e.state.G, atol=1e-9)
    assert near.dual == pytest.approx(e.dual)
    assert near.violation() == pytest.approx(e.select(1).violation)


def test_work_of_descents_that_reach_their_aims_counts_less():
    X, y = wide()
    e = engine_of(X, y)
    e.solvers.work = 2 * int(e._leap.next)
    assert not e.leap(1e-3)
    assert e._leap._factor.rank == 0  # not even looked at
    e.solvers.creeps = True
    e.leap(1e-3)
    assert e._leap._factor.rank > 0


def test_factor_goes_as_far_as_it_is_paid_for(monkeypatch):
    monkeypatch.setattr("multimargin.engines.cpu.leap._LOOKING", 0.0)  # no columns that only look
    monkeypatch.setattr("multimargin.engines.cpu.leap._FIRST", 0.05)
    monkeypatch.setattr("multimargin.engines.cpu.pivoted_cholesky.AT_ONCE", 2)
    X, y = wide(2000, d=8)
    e = engine_of(X, y, gamma=0.03, cache=2000)
    e.solvers.creeps = True
    ranks = []
    while not e.leap(1e-3):
        assert e._leap.next > e.solvers.work
        ranks.append(e._leap._factor.rank)
        e.solvers.work = int(e._leap.next) + 1
    assert len(ranks) > 3
    assert ranks == sorted(ranks)
    assert e.prove().violation <= 1e-3


def test_no_factor_if_nothing_violates(monkeypatch):
    X, y = wide(60)
    e = engine_of(X, y)
    e.solvers.work = AGES
    monkeypatch.setattr(PivotedCholesky, "grow", None)
    assert not e.leap(1e3)


def test_no_leap_if_the_kernel_is_zero():
    X, y = wide(60)
    e = engine_of(np.zeros_like(X), y, kernel="linear")
    e.solvers.work = AGES
    assert not e.leap(1e-3)
    assert e._leap.next == np.inf


def test_no_leap_without_memory(monkeypatch):
    X, y = wide(2000)
    e = engine_of(X, y)
    e.solvers.work = AGES
    monkeypatch.setattr(type(e.rows.budget), "finisher_bytes", 10**6)
    assert not e.leap(1e-3)
    assert not e.state.alpha.any()


def test_leap_goes_downhill_only(monkeypatch):
    X, y = wide(60)
    e = engine_of(X, y)
    e.solvers.work = AGES
    uphill = -1e-3 * (np.eye(6)[y] - 1 / 6)
    monkeypatch.setattr(ProximalModel, "minimise", lambda self, at, eps, U, *_: Solved(uphill, U, 3))
    G = e.state.G.copy()
    assert not e.leap(1e-3)
    assert e.dual == 0
    np.testing.assert_array_equal(e.state.G, G)
    assert not e.state.alpha.any()
    assert e._leap.next >= 2 * AGES  # again after as much work as all before


def test_leap_without_a_direction_keeps_the_point(monkeypatch):
    X, y = wide(60)
    e = engine_of(X, y)
    e.solvers.work = AGES

    def fail(*_):
        raise NoDirectionError

    monkeypatch.setattr(ProximalModel, "minimise", fail)
    assert not e.leap(1e-3)
    assert not e.state.alpha.any()


def test_interrupted_leap_keeps_the_point(monkeypatch):
    X, y = wide(60)
    e = engine_of(X, y)
    e.solvers.work = AGES

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(e.steps, "refresh", interrupt)
    with pytest.raises(KeyboardInterrupt):
        e.leap(1e-3)
    assert not e.state.alpha.any()


@pytest.mark.parametrize("machine", MACHINES)
def test_fit_that_descent_alone_cannot_end(machine, monkeypatch):
    """Descent of single samples takes minutes here; the leap is what ends it, long before the time limit."""
    taken = []
    take = Leap.take
    monkeypatch.setattr(Leap, "take", lambda self, *args: taken.append(take(self, *args)) or taken[-1])
    X, y = wide(1500)
    auto = find_method("auto", "auto", machine)
    alone = replace(auto, inner=replace(auto.inner, partners=False))
    model = KernelSVC(C=100.0, gamma=2.0**-10, machine=machine, solver=alone, time_limit=60).fit(X, y)
    assert any(taken)
    audit(model, kernel_matrix("rbf", X, gamma=2.0**-10), y, 100.0, tol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_fit_that_leaps_finds_the_optimum_of_descent(machine):
    X, y = wide(600)
    auto = find_method("auto", "auto", machine)
    models = [
        KernelSVC(gamma=2.0**-6, machine=machine, solver=replace(auto, leap=leap)).fit(X, y)
        for leap in (True, False)
    ]
    assert models[0].dual_objective_ == pytest.approx(models[1].dual_objective_, rel=1e-4)


@pytest.mark.parametrize("machine", ["lee-lin-wahba", "msvm2"])
def test_machines_without_a_leap_say_so(machine):
    solver = replace(find_method("auto", "auto", machine), leap=True)
    with pytest.raises(ValueError, match="leap=False"):
        KernelSVC(machine=machine, solver=solver).fit(*wide(60))
