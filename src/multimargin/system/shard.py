"""Which samples of a problem this process holds.

Samples have ids 0..n-1 in the order of the ranks: a process holds the ids from ``first`` on, one per row that
it has. One process holds them all.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import scipy.sparse as sp

from .team import SOLO, Team
from .typing import Data, IntArray


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
        counts = [count] if self.alone else team.collect(count)
        bounds = [0, *accumulate(counts)]
        self.bounds: IntArray = np.array(bounds, dtype=np.int64)
        self.first, self.n = bounds[team.rank], bounds[-1]
        self.largest = max(counts)  # samples of the process that has most

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
        return self._in_order(self._route(ids), rows)

    def take_all(self, ids: IntArray, *rows: np.ndarray) -> list[np.ndarray]:
        """The same for several arrays of rows, one message each."""
        if self.alone:
            return list(rows)
        route = self._route(ids)
        return [self._in_order(route, each) for each in rows]

    def _route(self, ids: IntArray) -> tuple[list[int], IntArray | None]:
        """How many of ``ids`` each process sends, and ``sent_order``; None if they come in order."""
        owners = self.owners(ids)
        counts: list[int] = np.bincount(owners, minlength=self.team.size).tolist()
        return counts, None if (owners[1:] >= owners[:-1]).all() else _places_by(owners)

    def _in_order(self, route: tuple[list[int], IntArray | None], rows: np.ndarray) -> np.ndarray:
        counts, order = route
        joined = self.team.join(rows, counts)
        return np.asarray(joined if order is None else joined[order])

    def take_data(self, ids: IntArray, rows: Data) -> Data:
        """The same for rows of any form of data."""
        if sp.issparse(rows):
            return self._take_sparse(ids, rows)
        if rows.dtype.hasobject:
            return np.concatenate(self.team.collect(rows))[self.sent_order(ids)]
        return self.take(ids, rows)

    def _take_sparse(self, ids: IntArray, rows: sp.csr_array) -> sp.csr_array:
        lengths = self.team.join(np.diff(rows.indptr), self.counts(ids))
        ends = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.diff(ends[np.concatenate([[0], np.cumsum(self.counts(ids))])]).tolist()
        index = np.int32 if rows.shape[1] <= np.iinfo(np.int32).max else np.int64
        indices = self.team.join(rows.indices.astype(index, copy=False), entries)
        joined = sp.csr_array(
            (self.team.join(rows.data, entries), indices, ends), shape=(len(ids), rows.shape[1])
        )
        return joined[self.sent_order(ids)]

    def take_columns(self, ids: IntArray, values: np.ndarray) -> np.ndarray:
        """An array with a column for each of ``ids``; ``values`` has those of the samples held here."""
        counts, owners = self.counts(ids), self.owners(ids)
        height = len(values)
        parts = self.team.join(np.ascontiguousarray(values).ravel(), [height * count for count in counts])
        out, first = np.empty((height, len(ids)), dtype=values.dtype), 0
        for rank, count in enumerate(counts):
            last = first + height * count
            out[:, owners == rank] = parts[first:last].reshape(height, count)
            first = last
        return out

    def counts(self, ids: IntArray) -> list[int]:
        """How many of ``ids`` each process holds."""
        return [int(count) for count in np.bincount(self.owners(ids), minlength=self.team.size)]

    def sent_order(self, ids: IntArray) -> IntArray:
        """The place of each of ``ids`` if every process sends its own, one process after the other."""
        return _places_by(self.owners(ids))


def _places_by(owners: IntArray) -> IntArray:
    order = np.argsort(owners, kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places
