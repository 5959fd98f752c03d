"""The leap of a team: every rank has the rows of its own samples, and all take the same steps."""

import numpy as np
import pytest
from leap_problems import MACHINES, wide
from thread_team import run_ranks

from multimargin.engines import CpuEngine, EngineOptions
from multimargin.engines.base import Task
from multimargin.engines.cpu.leap import Means
from multimargin.kernels import make_kernel
from multimargin.problems import PROBLEMS
from multimargin.system.team import SOLO

N, M = 90, 4
CUTS = ([0, 40, 90], [0, 0, 90], [0, 30, 30, 90], [0, 1, 20, 50, 90])  # where the samples of a rank begin


def engines(machine="crammer-singer"):
    """A function that makes the engine of a rank with these rows."""
    X, y = wide(N, M)
    C = np.random.default_rng(0).uniform(5.0, 15.0, N)
    kernel = make_kernel("rbf", degree=3, gamma=2.0**-6, coef0=0.0).resolve(X, None)

    def make(team, rows):
        task = Task(PROBLEMS[machine](M), kernel, X[rows].copy(), y[rows], C[rows], team=team)
        return CpuEngine(task, EngineOptions(block_share=0.3, leap=True))

    return make


def on_ranks(cuts, function):
    """``function(team, rows)`` on each rank; ``rows`` is the slice of its samples."""
    return run_ranks(len(cuts) - 1, lambda team: function(team, slice(cuts[team.rank], cuts[team.rank + 1])))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("cuts", CUTS)
def test_engine_leaps_to_the_point_of_one_process(machine, cuts):
    make = engines(machine)

    def leap(team, rows):
        engine = make(team, rows)
        engine.solvers.work = 10**15
        return engine.leap(1e-3), engine.dual, engine.prove().violation

    taken, dual, violation = leap(SOLO, slice(0, N))
    assert taken
    assert violation <= 1e-3
    for found in on_ranks(cuts, leap):
        assert found[0]
        assert found[1] == pytest.approx(dual, rel=1e-6)
        assert found[2] <= 1e-3


@pytest.mark.parametrize("short_of_memory", [False, True])
def test_ranks_decide_alike(short_of_memory):
    """Ranks that count their work or their memory differently leap together, or not at all."""
    make = engines()

    def leap(team, rows):
        engine = make(team, rows)
        memory = 100 if short_of_memory and team.rank == 1 else 1 << 30
        means = Means(0, True, memory, engine.columns, engine.place, lambda: False)
        due = [means._replace(done=done + team.rank) for done in (0, 10**15)]
        return [engine._leap.is_due(1e-3, with_these) for with_these in due]

    decided = on_ranks([0, 30, 30, 90], leap)
    assert decided == [[False, not short_of_memory]] * 3
