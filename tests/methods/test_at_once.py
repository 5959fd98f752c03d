"""Small problems solved without the outer loop: the same optimum, and the loop takes over if that fails."""

import numpy as np
import pytest
from helpers import audit
from oracle import kernel_matrix

from multimargin import KernelSVC
from multimargin.engines.cpu import at_once
from multimargin.engines.cpu.engine import CpuEngine
from multimargin.methods.decomposition import Decomposition


def clusters(n=230, m=3):
    rng = np.random.default_rng(5)
    y = rng.integers(m, size=n)
    return rng.normal(size=(m, 4))[y] + 0.8 * rng.normal(size=(n, 4)), y


@pytest.fixture
def engines(monkeypatch):
    """How many engines were made."""
    made, make = [], CpuEngine.__init__

    def init(self, *args):
        made.append(self)
        make(self, *args)

    monkeypatch.setattr(CpuEngine, "__init__", init)
    return made


@pytest.mark.parametrize("n", [80, 230])
@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins"])
@pytest.mark.parametrize(("kernel", "bias"), [("rbf", "auto"), ("rbf", "regularized"), ("laplacian", "auto")])
def test_the_optimum_is_that_of_the_outer_loop(machine, kernel, bias, n, engines):
    X, y = clusters(n)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, n)
    setting = {"C": 20.0, "kernel": kernel, "gamma": 0.1, "bias": bias}
    model = KernelSVC(machine, **setting).fit(X, y, weight)
    assert not engines
    K = kernel_matrix(kernel, X, gamma=0.1, offset=float(bias == "regularized"))
    found = audit(model, K, y, 20.0 * weight, tol=1e-3)
    watched = KernelSVC(machine, time_limit=1e6, **setting).fit(X, y, weight)
    assert engines
    assert found.dual == pytest.approx(watched.dual_objective_, rel=1e-4)
    assert set(model.trace_.info) >= {"engine", "kernel_form", "profile", "row_dtype", "seconds", "solver"}
    assert model.n_iter_ == len(model.trace_) == 1
    assert model.trace_[-1].support == len(model.support_)


@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins"])
def test_what_creeps_is_solved_by_proximal_steps(machine, engines):
    """Large costs and a wide kernel: updates alone would take more work than there is here."""
    X, y = clusters(300, m=4)
    model = KernelSVC(machine, C=2000.0, gamma=1e-2).fit(X, y)
    assert not engines
    audit(model, kernel_matrix("rbf", X, gamma=1e-2), y, 2000.0, tol=1e-3)


def test_what_one_descent_does_not_solve_goes_on_in_the_outer_loop(engines, monkeypatch):
    X, y = clusters()
    whole = KernelSVC(C=1e3, gamma=1e-2).fit(X, y)
    monkeypatch.setattr(at_once, "_WORK", 200_000)
    monkeypatch.setattr(at_once, "_WORK_PER_VALUE", 0)
    model = KernelSVC(C=1e3, gamma=1e-2).fit(X, y)
    assert len(engines) == 1
    assert model.trace_[0].working_set == len(y) and len(model.trace_) > 1
    assert np.diff(model.trace_["dual"]).max() <= 0.0
    audit(model, kernel_matrix("rbf", X, gamma=1e-2), y, 1e3, tol=1e-3)
    assert model.dual_objective_ == pytest.approx(whole.dual_objective_, rel=1e-4)


@pytest.mark.parametrize(
    "setting",
    [
        {"time_limit": 1e6},
        {"max_iter": 1000},
        {"callback": lambda row: False},
        {"on_interrupt": "keep"},
        {"dtype": "float32"},
        {"working_set_size": 50},
        {"kernel": "linear"},
        {"bias": "free"},
        {"solver": "mcsvm"},
        {"machine": "one-vs-rest"},
        {"cache_size": 1.0},
    ],
)
def test_whoever_asks_for_more_gets_an_engine(setting, engines):
    X, y = clusters()
    assert KernelSVC(C=1.0, tol=1e-2).set_params(**setting).fit(X, y).status_.converged
    assert len(engines) == 1


def test_large_costs_ask_for_a_small_gap(engines):
    X, y = clusters(120)
    model = KernelSVC(C=1e4, gamma=0.25).fit(X, y)
    assert model.duality_gap_ <= 0.05 * model.primal_objective_


def test_a_decomposition_of_the_user_may_be_solved_so_too(engines):
    X, y = clusters()
    auto = KernelSVC()._method()
    assert isinstance(auto, Decomposition)
    first, second = (KernelSVC(C=5.0, solver=solver).fit(X, y) for solver in ("auto", auto))
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)
    assert not engines
