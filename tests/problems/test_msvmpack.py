"""Frank-Wolfe on random chunks, as MSVMpack trains: the linear problems, the steps, the whole method."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from test_intercepts import MACHINES
from test_working_set import StandIn

from multimargin import KernelSVC
from multimargin.inner import Block, CoordinateDescent
from multimargin.inner.frank_wolfe import FrankWolfe, balanced_vertex
from multimargin.methods import find_method
from multimargin.methods.decomposition import Decomposition
from multimargin.problems import PROBLEMS
from multimargin.working_set import Gain, Growing, Random


def chunk(machine, seed, q=6, m=3, moves=3):
    """A random block at a feasible point that some projections lead to."""
    rng = np.random.default_rng(seed)
    problem = PROBLEMS[machine](m)
    y = rng.integers(m, size=q).astype(np.int32)
    C = rng.uniform(0.5, 2.0, size=q)
    X = rng.normal(size=(q, 2))
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    ridge = problem.ridge(C)
    H = K if ridge is None else K + np.diag(ridge)
    alpha = np.zeros((q, m))
    for _ in range(moves):
        alpha = problem.project(alpha + rng.normal(size=(q, m)), y, C)
    G = H @ alpha - problem.target(y)
    return problem, Block(np.arange(q), H, np.diag(H).copy(), alpha, G, y, C)


def dual(problem, block):
    H, alpha = block.K, block.alpha
    return 0.5 * np.vdot(alpha, H @ alpha) - np.vdot(problem.target(block.y), alpha)


def by_linear_program(machine, G, y, C, sums):
    """min ⟨G, u⟩ over feasible rows (and class sums), written out in β, or z for Crammer-Singer."""
    q, m = G.shape
    columns, upper, owner = [], [], []  # each variable's (q, m) effect on u
    constant = np.zeros((q, m))
    for i in range(q):
        if machine == "crammer-singer":
            constant[i, y[i]] = C[i]
        for r in range(m):
            effect = np.zeros((q, m))
            if machine == "crammer-singer":
                effect[i, r] = -1.0
            elif machine == "one-vs-rest":
                effect[i, r] = 1.0 if r == y[i] else -1.0
            elif r == y[i]:
                continue
            elif machine == "weston-watkins":
                effect[i, y[i]], effect[i, r] = 1.0, -1.0
            else:
                effect[i] = 1.0 / m
                effect[i, r] -= 1.0
            columns.append(effect)
            owner.append(i)
            upper.append(1000.0 * C[i] if machine == "msvm2" else C[i])
    A = np.array([effect.sum(axis=0) for effect in columns]).T
    rhs = sums - constant.sum(axis=0)
    if machine != "one-vs-rest":
        A, rhs = A[:-1], rhs[:-1]
    if machine == "crammer-singer":
        A = np.vstack([A, [[float(o == i) for o in owner] for i in range(q)]])
        rhs = np.concatenate([rhs, C])
    cost = np.array([np.vdot(G, effect) for effect in columns])
    answer = linprog(cost, A_eq=A, b_eq=rhs, bounds=[(0, u) for u in upper], method="highs-ipm")
    return answer.fun + np.vdot(G, constant)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("q", "m"), [(1, 3), (4, 2), (6, 3), (12, 5)])
def test_the_vertex_with_class_sums_is_the_linear_programs(machine, q, m):
    for seed in range(6):
        problem, block = chunk(machine, seed, q, m)
        sums = block.alpha.sum(axis=0)
        u = balanced_vertex(problem, block.G, block.y, block.C, sums)
        size = 1000.0 if machine == "msvm2" else 1.0
        np.testing.assert_allclose(u.sum(axis=0), sums, atol=1e-12 * size)
        np.testing.assert_allclose(problem.project(u, block.y, block.C), u, atol=1e-12 * size)
        least = by_linear_program(machine, block.G, block.y, block.C, sums)
        assert np.vdot(block.G, u) == pytest.approx(least, abs=1e-7 * size)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_vertex_does_not_see_a_bias(machine):
    problem, block = chunk(machine, 5)
    sums, b = block.alpha.sum(axis=0), np.array([0.7, -0.3, -0.4])
    values = [
        np.vdot(block.G, balanced_vertex(problem, block.G + shift, block.y, block.C, sums))
        for shift in (0.0, b)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-9)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("balanced", [False, True])
def test_steps_are_monotone_and_stay_feasible(machine, balanced):
    problem, block = chunk(machine, 1, q=8, m=4)
    solver, rng = FrankWolfe(balanced=balanced), np.random.default_rng(0)
    sums, before = block.alpha.sum(axis=0), dual(problem, block)
    for _ in range(60):
        steps = solver.solve(problem, block, 0.0, rng)
        now = dual(problem, block)
        assert now <= before + 1e-13 * abs(before)
        before = now
        np.testing.assert_allclose(problem.project(block.alpha, block.y, block.C), block.alpha, atol=1e-12)
        if balanced:
            np.testing.assert_allclose(block.alpha.sum(axis=0), sums, atol=1e-12)
        exact = block.K @ block.alpha - problem.target(block.y)
        np.testing.assert_allclose(block.G, exact, atol=1e-10)
        if steps == 0:
            break


@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins", "lee-lin-wahba", "one-vs-rest"])
def test_many_steps_are_one_step_many_times(machine):
    problem, one = chunk(machine, 2)
    many = one._replace(alpha=one.alpha.copy(), G=one.G.copy())
    for _ in range(7):
        FrankWolfe().solve(problem, one, 0.0, np.random.default_rng(0))
    assert FrankWolfe(max_iter=7).solve(problem, many, 0.0, np.random.default_rng(0)) == 7
    np.testing.assert_allclose(many.alpha, one.alpha, atol=1e-14)


def test_a_solved_block_is_hardly_touched():
    problem, block = chunk("weston-watkins", 3)
    FrankWolfe(max_iter=20_000).solve(problem, block, 1e-2, np.random.default_rng(0))
    assert FrankWolfe(max_iter=10).solve(problem, block, 1e-2, np.random.default_rng(0)) <= 2
    assert (problem.measure(block.rows())[1] / (problem.gap_scale * block.C)).max() <= 1e-2


@pytest.mark.parametrize("steps", [0, -1, 1.5, True])
def test_bad_number_of_steps(steps):
    with pytest.raises(ValueError, match="max_iter"):
        FrankWolfe(max_iter=steps)


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
