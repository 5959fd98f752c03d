"""What couples all samples, on a team whose ranks hold some of them each: the same answers as one process."""

import numpy as np
import pytest
from thread_team import ThreadTeam, run_ranks

from multimargin.problems import PROBLEMS, flows
from multimargin.problems.base import DualRows
from multimargin.problems.selection import first_reached, smallest
from multimargin.problems.zero_sums import balanced, with_zero_sums
from multimargin.system.shard import Shard
from multimargin.system.team import SOLO

CASES = ("plain", "ties", "weights", "class by class", "one class", "no scores")
CUTS = ([0, 20, 60], [0, 0, 60], [0, 7, 30, 60], [0, 13, 13, 14, 60])  # where the samples of a rank begin


def case_of(machine, kind, seed=0, n=60):
    """A machine with scores, labels and costs; 4 classes, or 2."""
    rng = np.random.default_rng(seed)
    m = 2 if machine == "c-svc" else 4
    problem = PROBLEMS[machine](m)
    y = rng.integers(m, size=n).astype(np.int32)
    S = rng.normal(size=(n, problem.columns)) + 0.3 * rng.normal(size=problem.columns)
    C = rng.uniform(0.2, 3.0, n)
    if kind == "ties":
        S, C = np.round(2 * S) / 2, np.ones(n)
    elif kind == "weights":
        C = 10.0 ** rng.uniform(-6, 6, n)
    elif kind == "class by class":
        y = np.sort(y)
    elif kind == "one class":
        y[:] = 1
    elif kind == "no scores":
        S[:] = 0.0
    if m > 2:
        S -= S.mean(axis=1, keepdims=True)
    return problem, S, y, C


def on_ranks(cuts, function, *arrays):
    """``function(team, *parts)`` on every rank, each with its rows of the arrays."""

    def work(team):
        return function(team, *(a[cuts[team.rank] : cuts[team.rank + 1]] for a in arrays))

    return run_ranks(len(cuts) - 1, work)


def assert_alike(results):
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def best_bias(problem, start=None):
    return lambda team, S, y, C: problem.best_bias(S, y, C, start, team)


# -- the best bias -------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("machine", PROBLEMS)
def test_best_bias_is_that_of_one_process(machine, kind):
    problem, S, y, C = case_of(machine, kind)
    alone = problem.best_bias(S, y, C)
    least = problem.loss(S + alone, y, C).sum()
    for cuts in CUTS:
        found = on_ranks(cuts, best_bias(problem), S, y, C)
        assert_alike(found)
        loss = problem.loss(S + found[0], y, C).sum()
        assert loss == pytest.approx(least, rel=1e-10, abs=1e-10 * C.sum())
        if machine in ("c-svc", "one-vs-rest", "lee-lin-wahba"):  # exact, with the same rule for ties
            np.testing.assert_allclose(found[0], alone, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins"])
@pytest.mark.parametrize("kind", ["plain", "ties", "class by class"])
def test_best_bias_by_few_arcs_at_a_time(machine, kind, monkeypatch):
    for seed in range(2):
        problem, S, y, C = case_of(machine, kind, seed)
        S[:, 2] += 2.0
        least = problem.loss(S + problem.best_bias(S, y, C), y, C).sum()
        with monkeypatch.context() as few:
            few.setattr(flows, "MOST_ARCS", 25)
            for cuts in CUTS[1:3]:
                found = on_ranks(cuts, best_bias(problem), S, y, C)
                assert_alike(found)
                assert problem.loss(S + found[0], y, C).sum() == pytest.approx(least, rel=1e-9)


def test_a_program_that_is_not_solved_leaves_the_start_on_all_ranks(monkeypatch):
    problem, S, y, C = case_of("crammer-singer", "plain")
    start = np.array([0.3, -0.1, 0.0, -0.2])
    monkeypatch.setattr(flows, "_solved", lambda *_: None)
    for bias in on_ranks(CUTS[2], best_bias(problem, start), S, y, C):
        np.testing.assert_allclose(bias, start, atol=1e-16)


@pytest.mark.parametrize("machine", PROBLEMS)
def test_messages_of_a_best_bias_do_not_grow_with_the_samples(machine, monkeypatch):
    largest, exchange = {}, ThreadTeam.exchange

    def watched(self, verb, value, nbytes=0):
        largest[n] = max(largest.get(n, 0), nbytes)
        return exchange(self, verb, value, nbytes)

    monkeypatch.setattr(flows, "MOST_ARCS", 30)
    monkeypatch.setattr(ThreadTeam, "exchange", watched)
    for n in (300, 2400):
        problem, S, y, C = case_of(machine, "plain", n=n)
        on_ranks([0, n // 3, n], best_bias(problem), S, y, C)
    assert largest[2400] <= 2 * largest[300]


# -- quantiles -----------------------------------------------------------------------------------------
def test_smallest_is_the_sorted_value():
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(size=50) * 10.0 ** rng.integers(-300, 300, 50), np.zeros(9), [-0.0]])
    ordered = np.sort(values)
    for k in (0, 1, 25, 30, 59):
        found = on_ranks([0, 5, 5, 60], lambda team, v, k=k: smallest(v, k, team), values)
        assert found == [ordered[k]] * 3
        assert smallest(values, k, SOLO) == ordered[k]


def test_a_mass_that_is_never_reached_is_infinite():
    everything = np.array([-np.inf]), np.array([np.inf])
    found = on_ranks(
        [0, 1, 2],
        lambda team, v: first_reached(lambda t: 1.0 * (t >= v[0]), np.array([3.0]), team, *everything),
        np.array([1.0, 2.0]),
    )
    assert_alike(found)
    assert found[0] == np.inf


# -- pairs of c-svc ------------------------------------------------------------------------------------
def binary_rows(seed, n=60, ties=False):
    rng = np.random.default_rng(seed)
    y, C = rng.integers(2, size=n).astype(np.int32), rng.uniform(0.5, 2.0, n)
    problem = PROBLEMS["c-svc"](2)
    alpha = problem.project(rng.normal(size=(n, 1)), y, C)
    G = rng.normal(size=(n, 1))
    return problem, DualRows(alpha, np.round(G) if ties else G, y, C)


@pytest.mark.parametrize("most", [1, 4, 100])
@pytest.mark.parametrize("cuts", CUTS)
def test_pairs_are_those_of_one_process(cuts, most):
    for seed in range(4):
        problem, rows = binary_rows(seed)
        alone = problem.pairs(rows, most, Shard(60))
        found = on_ranks(
            cuts, lambda team, *r, p=problem: p.pairs(DualRows(*r), most, Shard(len(r[0]), team)), *rows
        )
        assert_alike(found)
        np.testing.assert_array_equal(found[0], alone)


@pytest.mark.parametrize("most", [2, 5])
@pytest.mark.parametrize("cuts", CUTS)
def test_gaining_pairs_are_those_of_one_process(cuts, most):
    for seed in range(4):
        problem, rows = binary_rows(seed)
        pair = np.concatenate(problem.pairs(rows, 1, Shard(60)))
        curvature = np.random.default_rng(seed).uniform(0.1, 2.0, (60, 2))
        alone = problem.gaining_pairs(rows, pair, curvature.T, most, Shard(60))

        def work(team, curvature, *r, problem=problem, pair=pair):
            return problem.gaining_pairs(DualRows(*r), pair, curvature.T, most, Shard(len(r[0]), team))

        found = on_ranks(cuts, work, curvature, *rows)
        assert_alike(found)
        np.testing.assert_array_equal(found[0], alone)
        assert found[0][0][0] == pair[0]
        assert found[0][1][0] == pair[1]


def test_pairs_of_ties_descend_and_are_disjoint():
    problem, rows = binary_rows(0, ties=True)
    found = on_ranks(CUTS[3], lambda team, *r: problem.pairs(DualRows(*r), 10, Shard(len(r[0]), team)), *rows)
    assert_alike(found)
    up, down = found[0]
    alone = problem.pairs(rows, 10, Shard(60))
    assert len(set(up.tolist() + down.tolist())) == 2 * len(up)
    np.testing.assert_array_equal(rows.G[down] - rows.G[up], rows.G[alone[1]] - rows.G[alone[0]])


@pytest.mark.parametrize("cuts", CUTS)
def test_centre_is_that_of_one_process(cuts):
    problem, rows = binary_rows(3)
    found = on_ranks(cuts, lambda team, *r: problem.centre(DualRows(*r), team), *rows)
    assert found == [problem.centre(rows)] * len(found)


# -- zero sums -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["plain", "weights", "class by class"])
@pytest.mark.parametrize("machine", PROBLEMS)
def test_zero_sums_are_those_of_one_process(machine, kind):
    problem, S, y, C = case_of(machine, kind)
    alpha = problem.project(0.3 * C[:, None] * S, y, C)
    alone = with_zero_sums(problem, alpha, y, C, SOLO)
    for cuts in CUTS:
        rows = on_ranks(cuts, lambda team, *r: with_zero_sums(problem, *r, team), alpha, y, C)
        found = np.concatenate(rows)
        assert np.abs(found.sum(axis=0)).max() <= 1e-13 * C.sum()
        np.testing.assert_allclose(problem.project(found, y, C), found, atol=1e-12 * C.max())
        np.testing.assert_allclose(found, alone, rtol=1e-6, atol=1e-9 * C.max())


def test_balanced_gives_up_on_all_ranks_alike():
    problem, S, y, C = case_of("weston-watkins", "plain")
    alpha = problem.vertex(-S, y, C)  # no variable is off its bounds
    assert balanced(problem, alpha, y, C, SOLO) is None
    for cuts in CUTS:
        found = on_ranks(cuts, lambda team, *r: balanced(problem, *r, team), alpha, y, C)
        assert found == [None] * len(found)
