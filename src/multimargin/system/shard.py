"""Which samples of a problem this process holds.

Samples have ids 0..n-1 in the order of the ranks: a process holds the ids from ``first`` on, one per row that
it has. One process holds them all.
"""

from __future__ import annotations

import numpy as np

from .team import SOLO, Team
from .typing import IntArray


class Shard:
    """The part of one process of a team that holds ``count`` samples.

    Examples
    --------
    >>> shard = Shard(5)
    >>> shard.n, shard.first
    (5, 0)
    """

    def __init__(self, count: int, team: Team = SOLO) -> None:
        self.team, self.count = team, count
        self.alone = team.size == 1
        counts = np.array([count]) if self.alone else np.array(team.collect(count))
        self.bounds: IntArray = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.first, self.n = int(self.bounds[team.rank]), int(self.bounds[-1])
        self.largest = int(counts.max())  # samples of the process that has most

    def __contains__(self, sample: int) -> bool:
        return self.first <= sample < self.first + self.count

    def owners(self, ids: IntArray) -> IntArray:
        """The rank that holds each of ``ids``."""
        return np.asarray(np.searchsorted(self.bounds, ids, side="right") - 1)

    def mine(self, ids: IntArray) -> tuple[IntArray | slice, IntArray]:
        """Those of ``ids`` that this process holds: their places in ``ids``, and their rows here."""
        if self.alone:
            return slice(None), ids
        places = np.flatnonzero((ids >= self.first) & (ids < self.first + self.count))
        return places, ids[places] - self.first

    def take(self, ids: IntArray, rows: np.ndarray) -> np.ndarray:
        """Rows of all samples ``ids``; ``rows`` are those of the samples that ``mine`` names."""
        if self.alone:
            return rows
        owners = self.owners(ids)
        order = np.argsort(owners, kind="stable")  # of ``ids``, as the processes send them
        counts = np.bincount(owners, minlength=self.team.size)
        joined = self.team.join(rows, counts.tolist())
        out = np.empty_like(joined)
        out[order] = joined
        return out
