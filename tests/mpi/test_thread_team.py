"""Threads stand in for the ranks of a team: they must do what Team promises, and never hang."""

import numpy as np
import pytest
from thread_team import run_ranks

RANKS = pytest.mark.parametrize("P", [1, 2, 3, 4])


@RANKS
def test_sums_have_the_same_bits_on_every_rank(P):
    parts = np.random.default_rng(0).standard_normal((P, 50)) * 10.0 ** np.arange(-25, 25)
    sums = run_ranks(P, lambda team: team.sum(parts[team.rank]))
    assert all(total.tobytes() == sums[0].tobytes() for total in sums)
    np.testing.assert_allclose(sums[0], parts.sum(axis=0), rtol=1e-13, atol=0)


@RANKS
def test_the_verbs_give_every_rank_the_answer_of_one_process(P):
    rng = np.random.default_rng(1)
    score = rng.integers(-3, 6, size=40).astype(float)  # many equal scores
    labels = rng.choice(["a", "bcd", "ef"], size=40)
    rows = rng.standard_normal((40, 3))
    bounds = np.linspace(0, 40, P + 1).astype(int) // 3 * 3  # the last rank has fewer
    bounds[-1] = 40

    def verbs(team):
        mine = slice(bounds[team.rank], bounds[team.rank + 1])
        ids = np.arange(40)[mine]
        return (
            [team.top(ids, score[mine], k) for k in (0, 1, 7, 100)],
            team.union(labels[mine]),
            team.join(rows[mine]),
            team.join(rows[mine], np.diff(bounds)),
            team.max(score[mine].max(initial=-np.inf)),
            team.agree(team.rank + 5),
            team.collect({"rank": team.rank}),
        )

    positive = np.flatnonzero(score > 0)
    best = positive[np.lexsort((positive, -score[positive]))]
    for tops, union, joined, known, largest, agreed, collected in run_ranks(P, verbs):
        for top, k in zip(tops, (0, 1, 7, 100), strict=True):
            np.testing.assert_array_equal(top, best[:k])
        np.testing.assert_array_equal(union, np.unique(labels))
        np.testing.assert_array_equal(joined, rows)
        np.testing.assert_array_equal(known, rows)
        assert largest == score.max()
        assert agreed == 5
        assert collected == [{"rank": rank} for rank in range(P)]


def test_no_rank_can_change_what_another_rank_got():
    def change(team):
        mine = np.full(3, float(team.rank))
        total, joined, agreed = team.sum(mine), team.join(mine), team.agree([team.rank])
        mine += 100
        total += team.rank
        joined += team.rank
        agreed.append(team.rank)
        team.max(0.0)
        return total - team.rank, joined - team.rank, agreed[:1]

    for total, joined, agreed in run_ranks(2, change):
        assert total.tolist() == [1, 1, 1]
        assert joined.tolist() == [0, 0, 0, 1, 1, 1]
        assert agreed == [0]


def test_a_rank_that_raises_ends_the_others_and_its_own_exception_is_raised():
    def fail(team):
        if team.rank == 1:
            raise ZeroDivisionError("on rank 1")
        return team.sum(1.0)

    with pytest.raises(ZeroDivisionError, match="on rank 1"):
        run_ranks(3, fail)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda team: team.sum(1.0) if team.rank else team.max(1.0), "rank 0 called max, rank 1 called sum"),
        (lambda team: team.rank or team.max(1.0), "rank 0 called max, rank 1 called end"),
        (lambda team: team.join(np.zeros(2), [2, 2] if team.rank else None), "differs"),
        (lambda team: team.sum(np.zeros(team.rank)), "differs"),
    ],
)
def test_ranks_that_call_different_verbs_get_an_error_that_names_them(function, message):
    with pytest.raises(AssertionError, match=message):
        run_ranks(2, function)
