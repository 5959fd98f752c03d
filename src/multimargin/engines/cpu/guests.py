"""Samples that have come here from other processes of a team.

A process holds some rows of X. To compute the kernel between those and a working set it needs the rows of
that set too. Each row travels once, when its sample is needed for the first time, with its label, its cost
and its diagonal entry. All processes keep the same guests, so all know who is missing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ...system.shard import Shard
from ...system.typing import Data, FloatArray, IntArray, LabelArray
from ..base import Task

_FIRST_ROOM = 1024  # rows


class Facts(NamedTuple):
    """What a block needs of samples beside their rows of X."""

    y: LabelArray
    C: FloatArray  # as asked for
    diagonal: FloatArray


class Guests:
    """Rows of X by sample id, own ones included."""

    def __init__(self, task: Task, shard: Shard) -> None:
        self.task, self.shard = task, shard
        self.diagonal: FloatArray = np.empty(0)  # of the samples held here; set before the first guest comes
        self._place = np.full(shard.n, -1, dtype=np.int64)  # of each sample among the guests
        self._count = 0
        self._facts = np.empty((0, 3))
        self._rows = task.X[:0]

    def welcome(self, ids: IntArray) -> None:
        """Bring the samples ``ids`` here, if they are not; every process must ask for the same ones."""
        new = ids[self._place[ids] < 0]
        if not len(new):
            return
        _, own = self.shard.mine(new)
        task, before = self.task, self._count
        facts = np.stack([task.y[own], task.C[own], self.diagonal[own]], axis=1).astype(np.float64)
        self._facts = _extended(self._facts, before, self.shard.take(new, facts))
        if not task.kernel.pairwise:
            self._bring_rows(new, own)
        self._count += len(new)
        self._place[new] = np.arange(before, self._count)

    def _bring_rows(self, new: IntArray, own: IntArray) -> None:
        X = self.task.X
        if sp.issparse(X):
            self._rows = sp.csr_array(sp.vstack([self._rows, self.shard.take_sparse(new, X[own])], "csr"))
        elif X.dtype.hasobject:
            parts = np.concatenate(self.shard.team.collect(X[own]))
            self._rows = _extended(self._rows, self._count, parts[self.shard.sent_order(new)])
        else:
            self._rows = _extended(self._rows, self._count, self.shard.take(new, X[own]))

    def rows(self, ids: IntArray) -> Data:
        """Rows of X of guests."""
        return self._rows[self._place[ids]]

    def facts(self, ids: IntArray) -> Facts:
        """The other facts of guests."""
        y, C, diagonal = np.ascontiguousarray(self._facts[self._place[ids]].T)
        return Facts(y.astype(np.int32), C, diagonal)


def _extended(values: np.ndarray, count: int, more: np.ndarray) -> np.ndarray:
    """The first ``count`` rows of ``values``, then ``more``, in an array with room for others."""
    end = count + len(more)
    if end > len(values):
        room = np.empty((max(_FIRST_ROOM, 2 * end), *values.shape[1:]), dtype=more.dtype)
        room[:count] = values[:count]
        values = room
    values[count:end] = more
    return values
