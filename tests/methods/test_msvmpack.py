"""MSVMpack's method: Frank-Wolfe on random chunks, its stopping rule on the gap, its rule of working sets."""

import math

import numpy as np
import pytest
from stand_in import StandIn

from multimargin import KernelSVC
from multimargin.inner import CoordinateDescent, FrankWolfe
from multimargin.methods import find_method
from multimargin.methods.decomposition import Decomposition
from multimargin.working_set import Gain, Growing, Random


def test_random_draws_distinct_samples_and_looks_once_a_pass():
    engine = StandIn(psi=np.linspace(0.1, 1.0, 10))
    rule = Random(q=4).choose(engine, "psi", 1e-3, np.random.default_rng(0))
    choices = [next(rule) for _ in range(7)]
    assert all(len(np.unique(choice.W)) == 4 for choice in choices)
    assert len({tuple(choice.W) for choice in choices}) > 1
    assert [math.isfinite(choice.gap) for choice in choices] == [True, False, False] * 2 + [True]
    assert len(engine.asked) == 3


def test_random_ends_when_nothing_violates():
    rule = Random(q=20)
    assert list(rule.choose(StandIn(psi=[1e-3, 0.0]), "psi", 1e-3, np.random.default_rng(0))) == []
    few = next(rule.choose(StandIn(psi=[1.0, 2.0]), "psi", 1e-3, np.random.default_rng(0)))
    assert list(few.W) == [0, 1]
    assert Random(q=3).resized(7) == Random(q=7)


def fit_reference(optima, name, **options):
    case = next(case for case in optima["cases"] if case["id"] == name)
    data = optima["datasets"][case["dataset"]]
    model = KernelSVC(
        machine=optima["names"][case["machine"]],
        C=case["C"],
        kernel=case["kernel"],
        gamma=case["gamma"] or 1.0,
        bias=optima["names"].get(case["bias"], case["bias"]),
        **options,
    )
    return case["dual_opt"], model.fit(data["X"], data["y"], sample_weight=data["sample_weight"])


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["numpy", "cpu"])
@pytest.mark.parametrize("bias", ["none", "reg", "free"])
@pytest.mark.parametrize("machine", ["cs", "ww", "llw", "msvm2", "ovr"])
def test_the_method_reaches_the_papers_gap(optima, machine, bias, engine):
    """dual / U >= 0.98, and the stored optimum lies between the two."""
    optimum, model = fit_reference(
        optima, f"{machine}-{bias}-A3", solver="msvmpack", tol=0.02, engine=engine, random_state=0
    )
    assert model.status_.converged
    assert model.duality_gap_ <= 0.02 * model.primal_objective_
    assert model.duality_gap_ == pytest.approx(model.primal_objective_ + model.dual_objective_, abs=1e-9)
    assert model.dual_objective_ >= optimum - 1e-9
    assert model.primal_objective_ >= -optimum - 1e-9
    if bias == "free":
        np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0.0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("data", ["B4", "Z3"])
@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("machine", ["cs", "ww", "llw", "ovr"])
def test_a_smaller_gap_is_nearer_to_the_optimum(optima, machine, bias, data):
    optimum, model = fit_reference(
        optima, f"{machine}-{bias}-{data}", solver="msvmpack", tol=5e-3, working_set_size=20, random_state=0
    )
    assert model.status_.converged
    assert model.dual_objective_ == pytest.approx(optimum, rel=5e-3)
    assert model.primal_objective_ == pytest.approx(-optimum, rel=5.1e-3)


@pytest.mark.parametrize("machine", ["cs", "ww", "llw", "msvm2", "ovr"])
def test_any_solver_may_stop_on_the_gap(optima, machine):
    solver = Decomposition(Growing(), CoordinateDescent(), stop="gap")
    optimum, model = fit_reference(optima, f"{machine}-none-C5", solver=solver, tol=1e-6)
    assert model.status_.converged
    assert model.duality_gap_ <= 1e-6 * model.primal_objective_
    assert model.dual_objective_ == pytest.approx(optimum, rel=1e-6)


def test_the_gap_stops_a_free_bias_by_steps_of_it(optima):
    solver = Decomposition(Growing(), CoordinateDescent(), stop="gap")
    optimum, model = fit_reference(optima, "ww-free-C5", solver=solver, tol=1e-4)
    assert model.status_.converged
    assert model.duality_gap_ <= 1e-4 * model.primal_objective_
    assert model.dual_objective_ == pytest.approx(optimum, rel=1e-4)


def test_a_start_is_balanced_or_dropped(iris):
    X, y = iris
    model = KernelSVC("weston-watkins", bias="none", warm_start=True).fit(X, y)
    model.set_params(bias="free", solver="msvmpack", tol=0.02, random_state=0).fit(X, y)
    assert model.status_.converged
    np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0.0, atol=1e-10)


def test_the_table_ranks_for_crammer_singer_and_draws_for_the_others():
    assert find_method("msvmpack", "auto", "crammer-singer").working_set == Gain(q=10)
    assert find_method("msvmpack", 50, "weston-watkins").working_set == Random(q=50)
    assert find_method("msvmpack", "auto", "crammer-singer", True).inner == FrankWolfe(balanced=True)


def test_class_sums_are_kept_for_a_free_bias_only(iris):
    solver = Decomposition(Random(), FrankWolfe(balanced=True), stop="gap")
    with pytest.raises(ValueError, match="bias='free'"):
        KernelSVC("weston-watkins", solver=solver).fit(*iris)
    with pytest.raises(ValueError, match="polish"):
        Decomposition(Random(), FrankWolfe(balanced=True), polish=10)
    with pytest.raises(ValueError, match="'gap'"):
        Decomposition(Random(), FrankWolfe(), stop="dual")
