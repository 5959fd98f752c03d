"""A step over the whole problem computes G from alpha: the proof that follows need not do it again."""

import numpy as np
import pytest
from oracle import kernel_matrix

from multimargin.engines.base import EngineOptions, Task
from multimargin.engines.cpu.engine import CpuEngine
from multimargin.inner.block import Aim
from multimargin.kernels import RBF
from multimargin.methods.table import find_method
from multimargin.problems import PROBLEMS

N, M, GAMMA = 90, 3, 0.3
MACHINES = ["crammer-singer", "weston-watkins", "lee-lin-wahba"]


def engine_for(machine="crammer-singer"):
    rng = np.random.default_rng(0)
    y = rng.integers(M, size=N).astype(np.int32)
    X = rng.normal(size=(M, 4))[y] + rng.normal(size=(N, 4))
    method = find_method("auto", "auto", machine)
    task = Task(PROBLEMS[machine](M), RBF(GAMMA), X, y, np.full(N, 2.0))
    options = EngineOptions(inner=method.inner, lazy_blocks=method.lazy_blocks, block_share=0.3)
    return CpuEngine(task, options), method


def exact_gradient(engine):
    task = engine.task
    K = kernel_matrix("rbf", task.X, gamma=GAMMA)
    return K @ engine.state.alpha - task.problem.target(task.y) + engine.bias


def count_refreshes(engine, monkeypatch):
    calls, refresh = [], engine.steps.refresh
    monkeypatch.setattr(engine.steps, "refresh", lambda *here: calls.append(here) or refresh(*here))
    return calls


@pytest.mark.parametrize("machine", MACHINES)
def test_whole_step_leaves_an_exact_gradient(machine, monkeypatch):
    engine, method = engine_for(machine)
    engine.improve(engine.everyone(), method.inner, Aim(1e-3), keep=True)
    assert engine.state.is_exact
    np.testing.assert_allclose(engine.state.G, exact_gradient(engine), atol=1e-12)
    calls, G = count_refreshes(engine, monkeypatch), engine.state.G.copy()
    proof = engine.prove()
    assert not calls
    engine.steps.refresh()
    np.testing.assert_array_equal(engine.state.G, G)
    assert engine.certificate() == proof


def moved(engine, method):
    engine.improve(np.arange(5), method.inner, Aim(1e-9))


def shifted(engine, method):
    engine.shift(np.array([0.1, -0.2, 0.1]))


def placed(engine, method):
    engine.state.place(0.5 * engine.state.alpha)


def interrupted(engine, method):
    engine.state.take_over(np.arange(5), np.zeros((5, M)))


@pytest.mark.parametrize("change", [moved, shifted, placed, interrupted])
def test_proof_after_any_change_computes_the_gradient(change, monkeypatch):
    engine, method = engine_for()
    engine.improve(engine.everyone(), method.inner, Aim(1e-2), keep=True)
    engine.prove()
    change(engine, method)
    calls = count_refreshes(engine, monkeypatch)
    engine.prove()
    assert calls
    np.testing.assert_allclose(engine.state.G, exact_gradient(engine), atol=1e-12)


def test_wrong_gradient_is_found_unless_it_was_computed_from_alpha():
    """An error that is injected after a step that updated G does not reach the certificate."""
    engine, method = engine_for()
    engine.improve(engine.everyone(), method.inner, Aim(1e-2), keep=True)
    moved(engine, method)
    assert not engine.state.is_exact
    engine.state.G[7] += 1.0
    engine.prove()
    np.testing.assert_allclose(engine.state.G, exact_gradient(engine), atol=1e-12)
