"""Diagonal, costs and rounding of a problem that several processes hold are those of one process."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from shards import on_ranks, splits_of

from multimargin import kernels
from multimargin.engines.base import Task
from multimargin.engines.diagonal import exact_diagonal, kernel_diagonal, mean_log
from multimargin.engines.divergence import check_dual
from multimargin.engines.rounding import score_rounding
from multimargin.engines.solved_costs import SolvedCosts
from multimargin.problems import PROBLEMS
from multimargin.system.team import SOLO

N, M = 120, 3
splits = splits_of(N)
RNG = np.random.default_rng(11)
FLOATS = RNG.normal(size=(N, 5)) * np.geomspace(1e-3, 10, N)[:, None]
Y = (np.arange(N) * M // N).astype(np.int32)  # sorted: the first rank has classes that others have not
COSTS = np.geomspace(1e-2, 1e8, N)
PRECOMPUTED = FLOATS @ FLOATS.T
CASES = {
    "linear": (kernels.Linear(), FLOATS),
    "rbf": (kernels.RBF(0.5), FLOATS),
    "normalised": (kernels.Polynomial(0.2, degree=2, coef0=0.1, normalize=True), FLOATS),
    "poly of sparse": (
        kernels.Polynomial(0.2, degree=2),
        sparse.csr_array(np.where(FLOATS > 0, FLOATS, 0.0)),
    ),
    "precomputed": (kernels.Precomputed(), PRECOMPUTED),
    "callable": (kernels.CallableKernel(lambda A, B: (A @ B.T + 1) ** 2), FLOATS),
}
cases = pytest.mark.parametrize("case", list(CASES))


def task_of(case, part=slice(None), team=SOLO, machine="crammer-singer", offset=0.25):
    kernel, X = CASES[case]
    return Task(PROBLEMS[machine](M), kernel, X[part], Y[part], COSTS[part], offset, team=team)


def on_tasks(case, bounds, function, **options):
    """What ``function(task, part)`` gives on each rank."""

    def of_rank(ids, team):
        part = slice(ids[0], ids[-1] + 1) if len(ids) else slice(0, 0)
        return function(task_of(case, part, team, **options), part)

    return on_ranks(bounds, np.arange(N), of_rank)


@splits
@cases
@pytest.mark.parametrize("machine", ["crammer-singer", "msvm2"])
def test_ranks_have_their_parts_of_the_diagonal(machine, case, bounds):
    alone = task_of(case, machine=machine)
    expected = exact_diagonal(alone, kernel_diagonal(alone.kernel, alone.X, SOLO))

    def diagonal(task, _):
        return exact_diagonal(task, kernel_diagonal(task.kernel, task.X, task.team))

    found = on_tasks(case, bounds, diagonal, machine=machine)
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-14)


@splits
def test_tiny_values_are_raised_to_a_share_of_the_largest_of_all_ranks(bounds):
    values = np.geomspace(1e-30, 1.0, N)
    found = on_tasks("linear", bounds, lambda task, part: exact_diagonal(task, values[part]), offset=0.0)
    np.testing.assert_array_equal(np.concatenate(found), np.maximum(values, 1e-12))


def test_a_negative_diagonal_is_said_once():
    values = np.ones(N)
    values[-1] = -0.1  # on the last rank
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        on_tasks("linear", [0, 50, 50, N], lambda task, part: exact_diagonal(task, values[part]))
    assert [str(warning.message).split(":")[0] for warning in caught] == [
        "The kernel is not positive semidefinite"
    ]


def refused(match, function, *arguments):
    with pytest.raises(ValueError, match=match):
        function(*arguments)


def test_a_kernel_that_overflows_on_one_rank_is_refused_on_all():
    values = np.ones(N)
    values[60] = np.inf
    on_tasks(
        "linear", [0, 50, 70, N], lambda task, part: refused("overflows", exact_diagonal, task, values[part])
    )
    X = np.ones((N, 2))
    X[60] = 1e200
    kernel = kernels.Polynomial(1.0, degree=5)
    on_ranks([0, 50, 70, N], X, lambda rows, team: refused("overflows", kernel_diagonal, kernel, rows, team))


def test_an_error_in_a_callable_on_one_rank_is_an_error_on_all():
    kernel = kernels.CallableKernel(lambda A, B: np.full((len(A), len(B)), np.sqrt(A[:, :1].min())))
    X = np.ones((N, 1))
    X[60] = np.nan
    on_ranks([0, 50, 70, N], X, lambda rows, team: refused("on rank 1", kernel_diagonal, kernel, rows, team))


@splits
@pytest.mark.parametrize("weighted", [False, True])
def test_the_typical_value_is_that_of_all_samples(weighted, bounds):
    values = np.where(np.arange(N) % 5, np.geomspace(1e-8, 1e5, N), 0.0)
    weight = np.arange(N) % 4 + 0.5 if weighted else None
    expected = np.average(np.log(values[values > 0]), weights=None if weight is None else weight[values > 0])

    def found(ids, team):
        return mean_log(values[ids], team, None if weight is None else weight[ids])

    means = on_ranks(bounds, np.arange(N), found)
    assert len(set(means)) == 1
    assert means[0] == pytest.approx(expected, rel=1e-13)
    assert on_ranks(bounds, np.zeros(N), lambda rows, team: mean_log(rows, team)) == [None] * len(means)


@splits
@pytest.mark.parametrize("started", [False, True])
def test_costs_are_capped_as_by_one_process(started, bounds):
    """The cap, and how it rises when a sample of one rank comes near it."""
    alpha = np.zeros((N, M))
    alpha[-1] = 0.0, -1e5, 1e5

    def steps(task, part):
        ids = np.arange(N)[part]
        if started:  # the last sample, if it is here
            mine = np.flatnonzero(ids == N - 1)
            task.start = (mine, alpha[ids[mine]]) if len(mine) else None
        costs = SolvedCosts(task, kernel_diagonal(task.kernel, task.X, task.team) + 1e-3)
        first, last = costs.solved, (ids == N - 1)[:, None]
        assert costs.rise(alpha[part] * 0.0, task.y) is None
        moved = costs.rise(0.06 * last * costs.solved[:, None] * [-1, 0, 1], task.y)
        return costs.are_capped, costs.total, np.column_stack([first, costs.solved, moved])

    expected = steps(task_of("linear"), slice(None))
    assert expected[0]
    assert expected[2][-1, 1] < COSTS[-1]
    assert (expected[2][-1, 0] == 2e6) == started  # twenty times the largest coefficient
    assert expected[2][-1, 1] == pytest.approx(10 * expected[2][-1, 0])
    found = on_tasks("linear", bounds, steps)
    assert {part[0] for part in found} == {True}
    assert len({part[1] for part in found}) == 1
    assert found[0][1] == pytest.approx(expected[1], rel=1e-12)
    np.testing.assert_allclose(np.concatenate([part[2] for part in found]), expected[2], rtol=1e-12)


def test_the_sum_of_the_costs_is_asked_for_without_a_message():
    """It is compared with the dual in every round."""

    def messages(task, _):
        costs, before = SolvedCosts(task, np.ones(len(task.C))), task.team.calls
        assert costs.total == pytest.approx(np.minimum(COSTS, 1e4).sum())
        return task.team.calls - before

    assert on_tasks("linear", [0, 50, 50, N], messages) == [0, 0, 0]


@splits
@cases
def test_rounding_of_scores_is_that_of_one_process(case, bounds):
    ids = np.array([2, 40, 41, 77, 119])
    coef = RNG.normal(size=(len(ids), M))
    expected = score_rounding(task_of(case), ids, coef)
    assert (expected == 0) == (case == "callable")
    found = on_tasks(case, bounds, lambda task, _: score_rounding(task, ids, coef))
    assert len(set(found)) == 1
    assert found[0] == pytest.approx(expected, rel=1e-12)
    assert on_tasks(case, bounds, lambda task, _: score_rounding(task, ids[:0], coef[:0])) == [0.0] * len(
        found
    )


def test_a_dual_without_a_minimum_is_refused_on_all_ranks():
    def check(task, _):
        refused("positive semidefinite", check_dual, task, -1e30, 1.0)
        refused("NaN", check_dual, task_of("linear", team=task.team), np.nan, 1.0)

    on_tasks("linear", [0, 50, 50, N], check, machine="msvm2")
