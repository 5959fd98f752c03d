"""Samples that have come here from other processes of a team.

A process holds some rows of X. To compute the kernel between those and a working set it needs the rows of
that set too. Each row travels once, when its sample is needed for the first time, with its label, its cost
and its diagonal entry. All processes keep the same guests, so all know who is missing. Rows travel and are
kept in the compact form of the kernel values' layout, such as small integers. Rows of X itself, which a model
has of its support vectors, are made of these if that gives every value exactly. Else they travel when they
are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ...system.data import features_per_sample
from ...system.shard import Shard
from ...system.typing import Data, FloatArray, IntArray, LabelArray
from ..base import Task

_FIRST_ROOM = 1024  # rows
_MESSAGE_BYTES = 1 << 18  # of rows in one message, about: so messages do not grow with the number of guests
_COMPARED = 64  # rows at a time: they stay in the processor's cache
_POSITION_BYTES = 4  # of a value in a sparse row, which travels in a message of its own

Form = Callable[[Data], Data]


class Facts(NamedTuple):
    """What a block needs of samples beside their rows of X."""

    y: LabelArray
    C: FloatArray  # as asked for
    diagonal: FloatArray


class Guests:
    """Compact rows of X by sample id, own ones included."""

    def __init__(self, task: Task, shard: Shard) -> None:
        self.task, self.shard = task, shard
        self.diagonal: FloatArray = np.empty(0)  # of the samples held here; set before the first guest comes
        self._place = np.full(shard.n, -1, dtype=np.int64)  # of each sample among the guests
        self._count = 0
        self._facts = np.empty((0, 3))
        X = task.X
        # Values of a row, on average over the team; rows of a callable may be arrays of any shape.
        self._features = features_per_sample(X, shard.team) if sp.issparse(X) else math.prod(X.shape[1:])
        self.keep_as(lambda rows: rows, lambda rows: rows)

    def keep_as(self, compact: Form, restored: Form) -> None:
        """Choose the compact form of rows of X, and the way back; the same for all guests."""
        self._compact, self._restored = compact, restored
        if not self._count:
            self._rows = compact(self.task.X[:0])

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
            self._rows = _extended(self._rows, before, self._brought(new, self._compact))
        self._count += len(new)
        self._place[new] = np.arange(before, self._count)

    def _brought(self, ids: IntArray, form: Form) -> Data:
        """Rows of all processes in some form of X, a few at a time."""
        X, shard, none = self.task.X, self.shard, form(self.task.X[:0])
        value = max(none.dtype.itemsize, _POSITION_BYTES if sp.issparse(X) else 0)
        at_once = max(1, int(_MESSAGE_BYTES / max(1.0, self._features * value)))
        parts = (
            shard.take_data(part, form(X[shard.mine(part)[1]]))
            for part in (ids[first : first + at_once] for first in range(0, len(ids), at_once))
        )
        if sp.issparse(X):
            return sp.csr_array(sp.vstack(list(parts), "csr"))
        rows, end = np.empty((len(ids), *none.shape[1:]), dtype=none.dtype), 0
        for part in parts:
            rows[end : end + len(part)] = part
            end += len(part)
        return rows

    def rows(self, ids: IntArray) -> Data:
        """Compact rows of guests."""
        return self._rows[self._place[ids]]

    def originals(self, ids: IntArray) -> Data:
        """Rows of X of any samples; every process must ask for the same ones."""
        X = self.task.X
        if not len(ids):
            return X[:0]
        self.welcome(ids)
        rows = self._restored(self.rows(ids))
        if self._rows.dtype != X.dtype and self.shard.team.max(float(not self._are_mine(ids, rows))):
            return self._brought(ids, lambda rows: rows)
        return rows

    def _are_mine(self, ids: IntArray, rows: Data) -> bool:
        """Whether ``rows`` are those of X, of the samples that are held here."""
        X, (places, own), step = self.task.X, self.shard.mine(ids), _COMPARED
        places = np.arange(len(ids))[places]
        return all(
            _equal(rows[places[first : first + step]], X[own[first : first + step]])
            for first in range(0, len(own), step)
        )

    def facts(self, ids: IntArray) -> Facts:
        """The other facts of guests."""
        y, C, diagonal = np.ascontiguousarray(self._facts[self._place[ids]].T)
        return Facts(y.astype(np.int32), C, diagonal)


def _equal(a: Data, b: Data) -> bool:
    if not sp.issparse(a):
        return np.array_equal(a, b)
    return all(np.array_equal(getattr(a, part), getattr(b, part)) for part in ("indptr", "indices", "data"))


def _extended(values: Data, count: int, more: Data) -> Data:
    """The first ``count`` rows of ``values``, then ``more``; an array gets room for others."""
    if sp.issparse(values):
        return sp.csr_array(sp.vstack([values, more], "csr"))
    end = count + len(more)
    if end > len(values):
        room = np.empty((max(_FIRST_ROOM, 2 * end), *values.shape[1:]), dtype=more.dtype)
        room[:count] = values[:count]
        values = room
    values[count:end] = more
    return values
