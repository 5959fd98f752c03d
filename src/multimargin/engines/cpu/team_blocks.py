"""The kernel block of a working set on a team, whose processes have only parts of kernel rows.

A set for once: every process puts the same block together. The values between samples of the last set are
kept. The others come from the samples themselves, which are guests, or, if the set is large, from the columns
that each process has. A solver that needs nothing but products with the block may share it: then each process
has the columns of the samples that it holds, and its part of a product (Niu & Yuan, Algorithm 5).

A growing set: the first process alone has the block. If a process's part of a row is longer than half of the
block's, the first process computes the values itself. Else it gets them from the processes that hold the
columns. The others compute rows of the newcomers while it solves the block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...inner.base import InnerSolver
from ...inner.block import Block
from ...run.profile import timed
from ...system.shard import Shard
from ...system.typing import FloatArray, IntArray
from .blocks import Blocks
from .kept_block import KeptBlock
from .row_store import chunks

_BY_ALL = 1000  # samples of a set for once above which the processes share the work of its block
_WORTH_A_MESSAGE = 1e7  # multiplications of a product with a block
_OldNew = tuple[IntArray, IntArray]


class _Values(NamedTuple):
    """Kernel values of some samples against others."""

    rows: IntArray
    columns: IntArray
    K: np.ndarray


@dataclass
class SharedBlock(Block):
    """A block of which K has only the columns of samples held here; all processes solve it alike."""

    exchange: Callable[[FloatArray], FloatArray]  # from this process's rows of a product to all


class TeamBlocks(Blocks):
    """Makes the blocks of one fit that several processes share; all of them must make the same calls."""

    _whole: _Values | None = None  # of the last block for once that was whole
    _part: _Values | None = None  # the same of the last one that was shared

    @property
    def _shard(self) -> Shard:
        return self.state.shard

    @property
    def _is_first(self) -> bool:
        return self._shard.team.rank == 0

    def shares(self, W: IntArray, inner: InnerSolver) -> bool:
        """Whether the processes should share the products of a set for once."""
        return inner.by_products and len(W) ** 2 * self.state.m >= _WORTH_A_MESSAGE

    # -- a set for once ------------------------------------------------------------------------------
    def _gathered(self, W: IntArray) -> np.ndarray:
        K, (old, new), _ = self._from_last(self._whole, W, W)
        by_all = len(W) > _BY_ALL or self.rows.values.task.kernel.pairwise
        between = partial(self._columns_of_all, W) if by_all else self.rows.table(W)
        for part in chunks(new, self._rows_at_once(len(W))):
            K[part] = between(W[part])
        K[np.ix_(old, new)] = K[np.ix_(new, old)].T
        self._whole = _Values(W, W, K)
        return K

    @timed("memory")
    def shared(self, W: IntArray) -> SharedBlock:
        """The block of a set that will not come again, of which each process has its columns."""
        places, here = self._shard.mine(W)
        columns = W[places]
        K, (old, new), (_, new_columns) = self._from_last(self._part, W, columns)
        for part in chunks(new, self._rows_at_once(len(W))):
            K[part] = self.rows.against(W[part], here)
        if len(new_columns):
            for part in chunks(old, self._rows_at_once(len(W))):
                K[np.ix_(part, new_columns)] = self.rows.against(W[part], here[new_columns])
        self._part = _Values(W, columns, K)
        block = self._block(W, K)
        K[places, np.arange(len(here))] = block.diagonal[places]
        return SharedBlock(**vars(block), exchange=partial(self._shard.take, W))

    def _from_last(
        self, last: _Values | None, W: IntArray, columns: IntArray
    ) -> tuple[np.ndarray, _OldNew, _OldNew]:
        """Values of ``W`` against ``columns``, as far as the last block has them.

        Also which of ``W`` and which of ``columns`` are old and new: all values of what is old are there.
        """
        K = np.empty((len(W), len(columns)), dtype=self.dtype)
        last = last or _Values(W[:0], W[:0], K[:0, :0])
        _, old, at = np.intersect1d(W, last.rows, assume_unique=True, return_indices=True)
        _, here, at_column = np.intersect1d(columns, last.columns, assume_unique=True, return_indices=True)
        K[np.ix_(old, here)] = last.K[np.ix_(at, at_column)]
        new = np.setdiff1d(np.arange(len(W)), old)
        return K, (old, new), (here, np.setdiff1d(np.arange(len(columns)), here))

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
