"""The pivoted Cholesky factor: what it leaves of the kernel, on one process and on a team."""

import numpy as np
import pytest
from leap_problems import factored, wide
from oracle import kernel_matrix
from thread_team import run_ranks

from multimargin.engines.cpu.pivoted_cholesky import AT_ONCE, PivotedCholesky
from multimargin.system.shard import Shard

CUTS = ([0, 40, 90], [0, 0, 90], [0, 30, 30, 90], [0, 1, 20, 50, 90])  # where the samples of a rank begin


def test_factor_leaves_what_it_says():
    K = kernel_matrix("rbf", wide(80)[0], gamma=0.1)
    for rank in (1, 7, 20):
        made = factored(K, rank)
        rest = K - made.factor @ made.factor.T
        np.testing.assert_allclose(rest.diagonal(), made.rest, atol=1e-10)
        assert np.linalg.eigvalsh(rest).min() > -1e-10
        assert made.left == pytest.approx(np.abs(rest).max(), rel=1e-9)


def test_factor_leaves_about_as_little_as_with_one_pivot_at_a_time():
    K = kernel_matrix("rbf", wide(300)[0], gamma=0.05)
    made, rest = factored(K, 40), K.copy()
    for _ in range(made.rank):
        i = rest.diagonal().argmax()
        rest -= np.outer(rest[i], rest[i]) / rest[i, i]
    assert 40 <= made.rank < 40 + AT_ONCE
    assert made.left <= 3 * rest.diagonal().max()


def test_factor_ends_where_only_rounding_is_left():
    K = np.ones((30, 30))
    made = PivotedCholesky(np.full(30, 1.0 + 1e-9), Shard(30))  # off by more than its columns leave
    for _ in range(4):
        if not made.done:
            made.grow(lambda ids: K[:, ids])
    assert made.done
    np.testing.assert_allclose(made.factor, np.ones((30, 1)))


def test_factor_of_a_linear_kernel_is_exact():
    X, _ = wide(80, d=4)
    made = factored(X @ X.T, 20)
    assert made.done
    assert made.factor.shape == (80, 4)
    np.testing.assert_allclose(made.factor @ made.factor.T, X @ X.T, atol=1e-10)


def test_kernel_of_zeros_has_no_columns():
    made = factored(np.zeros((5, 5)), 3)
    assert made.done
    assert made.factor.shape == (5, 0)


def test_needed_rank_is_guessed_from_what_is_left():
    made = factored(kernel_matrix("rbf", wide(300)[0], gamma=0.05), 10)
    assert made.rank_that_leaves(2 * made.left) == made.rank
    guesses = [made.rank_that_leaves(share * made.left) for share in (0.5, 1e-2, 1e-4)]
    assert made.rank < guesses[0] < guesses[1] < guesses[2] < np.inf


def test_no_end_is_guessed_if_nothing_falls():
    assert factored(np.eye(50), 10).rank_that_leaves(0.1) == np.inf


@pytest.mark.parametrize("cuts", CUTS)
def test_factor_of_a_team_is_that_of_one_process(cuts):
    K = kernel_matrix("rbf", wide(90)[0], gamma=0.05)
    K[17:19] = K[17]  # two samples are the same: the pivot is a tie
    K[:, 17:19] = K[:, 17:18]
    alone = factored(K, 20)

    def work(team):
        rows = slice(cuts[team.rank], cuts[team.rank + 1])
        return factored(K, 20, rows, Shard(rows.stop - rows.start, team))

    parts = run_ranks(len(cuts) - 1, work)
    np.testing.assert_allclose(np.concatenate([part.factor for part in parts]), alone.factor, atol=1e-9)
    assert len({part.left for part in parts}) == 1
    assert parts[0].left == pytest.approx(alone.left, rel=1e-9)
