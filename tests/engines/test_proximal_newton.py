"""The proximal model: its dual function, its solution, and the derivative of the projection."""

import numpy as np
import pytest
from leap_problems import MACHINES, factored, feasible, small
from thread_team import run_ranks

from multimargin import _core
from multimargin.engines.cpu.proximal_newton import Centre, ProximalModel
from multimargin.system.shard import Shard


def model_of(machine, length=25.0, rank=8, m=4):
    problem, K, y, C = small(machine, m=m)
    alpha = feasible(problem, y, C)
    F = factored(K, rank).factor
    at = Centre(alpha, K @ alpha - problem.target(y), length * C)
    return ProximalModel(problem, F, y, C), at


def never():
    return False


@pytest.mark.parametrize("machine", MACHINES)
def test_face_is_where_the_projection_moves(machine):
    problem, _, y, C = small(machine)
    rng = np.random.default_rng(5)
    w = rng.normal(size=(len(y), problem.m)) * C[:, None]
    here = problem.project(w, y, C)
    face = problem.face(here, y, C)
    d = rng.normal(size=w.shape)
    step = (problem.project(w + 1e-7 * d, y, C) - here) / 1e-7
    expected = np.where(face, d, 0.0)
    if problem.sums_to_zero:
        expected -= np.where(face, expected.sum(1, keepdims=True) / np.maximum(face.sum(1)[:, None], 1), 0.0)
    np.testing.assert_allclose(step, expected, atol=1e-5)
    assert 0 < face.mean() < 1


@pytest.mark.parametrize("machine", MACHINES)
def test_native_face_is_that_of_the_problem(machine):
    problem, _, y, C = small(machine)
    w = np.random.default_rng(6).normal(size=(len(y), problem.m)) * C[:, None]
    alpha, face = problem.project(w, y, C), np.empty((len(y), problem.m), dtype=bool)
    _core.face(machine, alpha, y, C, face)
    np.testing.assert_array_equal(face, problem.face(alpha, y, C))


def test_no_native_face_for_machines_whose_classes_share_their_mean():
    problem, _, y, C = small("lee-lin-wahba")
    alpha = feasible(problem, y, C)
    with pytest.raises(ValueError, match="another form"):
        _core.face("lee-lin-wahba", alpha, y, C, np.empty(alpha.shape, dtype=bool))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("n", [5, 8, 90])
def test_search_ends_at_the_point_of_its_length(machine, n):
    model, at = model_of(machine)
    model.F, model.y, model.C = model.F[:n], model.y[:n], model.C[:n]
    at = Centre(*(np.ascontiguousarray(part[:n]) for part in at))
    U = np.random.default_rng(3).normal(size=(model.F.shape[1], 4))
    g = U - model.F.T @ (model.point(at, model.F @ U) - at.alpha)
    t, alpha = model._search(at, U, model.F @ U, g, -g, -model.F @ g)
    np.testing.assert_allclose(alpha, model.point(at, model.F @ (U - t * g)), atol=1e-12 * at.sigma.max())
    slope = float(np.vdot(U - t * g - model.F.T @ (alpha - at.alpha), -g))
    assert abs(slope) <= 0.11 * float(np.vdot(g, g))
    np.testing.assert_allclose(model._back(alpha, at), model.F.T @ (alpha - at.alpha), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("machine", MACHINES)
def test_gradient_is_the_slope_of_the_dual_function(machine):
    model, at = model_of(machine)
    rng = np.random.default_rng(2)
    U, d = (rng.normal(size=(model.F.shape[1], 4)) for _ in range(2))
    h = 1e-5
    slope = (
        model.value(at, U + h * d, model.F @ (U + h * d)) - model.value(at, U - h * d, model.F @ (U - h * d))
    ) / (2 * h)
    g = U - model.F.T @ (model.point(at, model.F @ U) - at.alpha)
    assert slope == pytest.approx(float(np.vdot(g, d)), rel=1e-5)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("length", [0.1, 25.0, 400.0])
@pytest.mark.parametrize("m", [2, 5])
def test_solution_is_a_fixed_point_of_projected_gradient_steps(machine, length, m):
    model, at = model_of(machine, length, m=m)
    found = model.minimise(at, 1e-9, None, 200, never)
    assert found.steps < 200
    D = found.alpha - at.alpha
    gradient = at.G + model.F @ (model.F.T @ D) + D / at.sigma[:, None]
    for step in (1e-2, 1.0, 100.0):
        moved = model.problem.project(found.alpha - step * gradient, model.y, model.C)
        np.testing.assert_allclose(moved, found.alpha, atol=1e-6 * step + 1e-9)


@pytest.mark.parametrize("machine", MACHINES)
def test_start_changes_the_way_but_not_the_solution(machine):
    model, at = model_of(machine)
    U = np.random.default_rng(3).normal(size=(model.F.shape[1], 4))
    found = [model.minimise(at, 1e-9, start, 200, never).alpha for start in (None, U)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_late_and_limited_runs_stop():
    model, at = model_of("crammer-singer")
    assert model.minimise(at, 1e-12, None, 2, never).steps == 2
    assert model.minimise(at, 1e-12, None, 200, lambda: True).steps == 0


@pytest.mark.parametrize("machine", MACHINES)
def test_team_solves_the_model_of_one_process(machine):
    problem, K, y, C = small(machine)
    alpha = feasible(problem, y, C)
    G = K @ alpha - problem.target(y)
    alone, at = model_of(machine)
    expected = alone.minimise(at, 1e-9, None, 200, never).alpha
    cuts = [0, 30, 30, 90]

    def work(team):
        rows = slice(cuts[team.rank], cuts[team.rank + 1])
        F = factored(K, 8, rows, Shard(rows.stop - rows.start, team)).factor
        model = ProximalModel(problem, F, y[rows], C[rows], team=team)
        return model.minimise(Centre(alpha[rows], G[rows], 25.0 * C[rows]), 1e-9, None, 200, never)

    parts = run_ranks(3, work)
    assert len({part.steps for part in parts}) == 1
    np.testing.assert_allclose(np.concatenate([part.alpha for part in parts]), expected, atol=1e-6)
