"""The kernel block of a working set on a team, whose processes have only parts of kernel rows.

A set for once: every process puts the same block together. The values between samples of the last set are
kept. The others come from the samples themselves, which are guests, or, if the set is large, from the columns
that each process has.

A growing set: the first process alone has the block. If a process's part of a row is longer than half of the
block's, the first process computes the values itself. Else it gets them from the processes that hold the
columns. The others compute rows of the newcomers while it solves the block.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...inner.block import Block
from ...run.profile import timed
from ...system.shard import Shard
from ...system.typing import IntArray
from .blocks import Blocks
from .kept_block import KeptBlock
from .row_store import chunks

_SHARED = 1000  # samples of a set for once above which the processes share the work of its block


class TeamBlocks(Blocks):
    """Makes the blocks of one fit that several processes share; all of them must make the same calls."""

    _last: tuple[IntArray, np.ndarray] | None = None  # the last set for once, and its block

    @property
    def _shard(self) -> Shard:
        return self.state.shard

    @property
    def _is_first(self) -> bool:
        return self._shard.team.rank == 0

    # -- a set for once ------------------------------------------------------------------------------
    def _gathered(self, W: IntArray) -> np.ndarray:
        K = np.empty((len(W), len(W)), dtype=self.dtype)
        old, new, known = self._in_last(W)
        K[np.ix_(old, old)] = known
        share = len(W) > _SHARED or self.rows.values.task.kernel.pairwise
        between = partial(self._columns_of_all, W) if share else self.rows.table(W)
        for part in chunks(new, self._rows_at_once(len(W))):
            K[part] = between(W[part])
        K[np.ix_(old, new)] = K[np.ix_(new, old)].T
        self._last = W, K
        return K

    def _in_last(self, W: IntArray) -> tuple[IntArray, IntArray, np.ndarray]:
        """Places in ``W`` of samples that the last set had, and of the others; the block of the first."""
        if self._last is None:
            return np.empty(0, dtype=np.int64), np.arange(len(W)), np.empty((0, 0), dtype=self.dtype)
        before, K = self._last
        _, old, at = np.intersect1d(W, before, assume_unique=True, return_indices=True)
        return old, np.setdiff1d(np.arange(len(W)), old), K[np.ix_(at, at)]

    def _columns_of_all(self, columns: IntArray, ids: IntArray) -> np.ndarray:
        """Kernel values of ``ids`` against ``columns``, which each process computes for those it holds."""
        return self._shard.take_columns(columns, self.rows.against(ids, self._shard.mine(columns)[1]))

    # -- a growing set -------------------------------------------------------------------------------
    @timed("memory")
    def growing(self, W: IntArray) -> Block:
        if self._is_lazy:
            return self._lazy(W)
        old, new = self._members(W)
        members = np.concatenate([old, new])
        if 2 * self._shard.largest < len(members) or self.rows.values.task.kernel.pairwise:
            self._grow_by_columns(old, new)
        elif self._kept is not None:
            self._grow_by_values(new, self._kept)
        nothing = np.empty((0, 0), dtype=self.dtype)
        return self._block(members, nothing if self._kept is None else self._kept.kernel)

    def _members(self, W: IntArray) -> tuple[IntArray, IntArray]:
        """The samples of the block: of the one before, perhaps more than ``W`` has, and the newcomers."""
        old = new = W[:0]
        if self._is_first:
            if self._kept is None:
                self._kept = KeptBlock(self.state.n, self.largest, self.dtype)
            new = self._kept.missing(W)
            old = self._kept.members
        return self._shard.team.join(old), self._shard.team.join(new)

    def _grow_by_columns(self, old: IntArray, new: IntArray) -> None:
        """Add the newcomers: each process has the columns of the members that it holds, in its rows."""
        keep = len(old) + len(new) <= self.rows.cache.capacity
        members = old
        for part in chunks(new, self._rows_at_once(len(old) + len(new))):
            members = np.concatenate([members, part])
            if keep:
                _, here = self._shard.mine(members)
                values = np.empty((len(part), len(here)), dtype=self.dtype)
                for store, slots, which in self.rows.visit(part):
                    for place, slot in zip(which, slots, strict=True):
                        np.take(store[slot], here, out=values[place], mode="clip")
                rows = self._shard.take_columns(members, values)
            else:
                rows = self._columns_of_all(members, part)
            if self._kept is not None:
                self._kept.extend_by(part, rows, self.options.n_threads)
                self._exact_diagonal(self._kept, len(part))

    def _rows_to_copy(self, W: IntArray) -> dict[str, Any]:
        none: IntArray = np.full(len(W), -1)
        return {"store": np.empty((0, self.state.n), dtype=self.dtype), "slots": none}

    def while_first_solves(self, block: Block) -> None:
        """Compute kernel rows that the step will need if the samples move, as those of a growing set do."""
        if not self._is_lazy and len(block.W) <= self.rows.cache.capacity:
            self.rows.load(block.W[self.rows.cache.peek(block.W) < 0])
