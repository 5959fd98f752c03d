"""Frank-Wolfe on a block: its steps descend, stay feasible and keep class sums if asked to."""

from dataclasses import replace

import numpy as np
import pytest

from multimargin.inner import Block, FrankWolfe
from multimargin.problems import PROBLEMS

MACHINES = ("crammer-singer", "weston-watkins", "lee-lin-wahba", "one-vs-rest", "msvm2")


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
    many = replace(one, alpha=one.alpha.copy(), G=one.G.copy())
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
