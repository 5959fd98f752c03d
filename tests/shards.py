"""Samples divided among the ranks of a team of threads."""

from itertools import pairwise

import pytest
from thread_team import run_ranks


def splits_of(n):
    """A decorator that runs a test with ``bounds``, the first row of each rank and the end of the last.

    One to four ranks, evenly, with a few rows on some, and with ranks that have no samples.
    """
    half, third = n // 2, n // 3
    bounds = [
        [0, n],
        [0, half, n],
        [0, 1, n],
        [0, 0, n],
        [0, third, third, n],
        [0, 7, half, half + 1, n],
        [0, n, n, n, n],
    ]
    return pytest.mark.parametrize("bounds", bounds, ids=lambda bounds: "-".join(map(str, bounds)))


def on_ranks(bounds, X, function):
    """What ``function(rows, team)`` gives on each rank, which has its rows of ``X``."""
    rows = [X[first:last] for first, last in pairwise(bounds)]
    return run_ranks(len(rows), lambda team: function(rows[team.rank], team))
