"""The kernel block of a working set on a team, whose processes have only parts of kernel rows.

A set for once: every process puts the same block together. The values between samples of the last set are
kept. The others come from the samples themselves, which are guests. A solver that needs nothing but products
with the block may share it: then each process has the columns of the samples that it holds, and its part of a
product (Niu & Yuan, Algorithm 5). Other large sets are treated as growing ones.

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
from .row_store import chunks

_LARGE = 1000  # samples of a set for once above which the first process solves it, unless products suffice
_WORTH_A_MESSAGE = 1e7  # multiplications of a product with a block


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

    def by_first(self, W: IntArray, inner: InnerSolver) -> bool:
        """Whether a set for once is so large that the first process should have its block."""
        return len(W) > _LARGE and not inner.by_products

    def shares(self, W: IntArray, inner: InnerSolver) -> bool:
        """Whether the processes should share the products of a set for once."""
        return inner.by_products and len(W) ** 2 * self.state.m >= _WORTH_A_MESSAGE

    # -- a set for once ------------------------------------------------------------------------------
    def once(self, W: IntArray) -> Block:
        return super().once(self._old_first(self._whole, W))

    def _gathered(self, W: IntArray) -> np.ndarray:
        K, old, _ = self._from_last(self._whole, W, W)
        new = np.arange(old, len(W))
        if self.rows.values.task.kernel.pairwise:
            K[new] = self._columns_of_all(W, W[new])
        else:
            between = self.rows.table(W)
            for part in chunks(new, self._rows_at_once(len(W))):
                K[part] = between(W[part], len(W))
        K[:old, old:] = K[old:, :old].T
        self._whole = _Values(W, W, K)
        return K

    @timed("memory")
    def shared(self, W: IntArray) -> SharedBlock:
        """The block of a set that will not come again, of which each process has its columns."""
        W = self._old_first(self._part, W)
        places, here = self._shard.mine(W)
        columns = W[places]
        K, old, old_columns = self._from_last(self._part, W, columns)
        for part in chunks(np.arange(old, len(W)), self._rows_at_once(len(W))):
            K[part] = self.rows.against(W[part], here)
        if old_columns < len(columns):
            for part in chunks(np.arange(old), self._rows_at_once(len(W))):
                K[part, old_columns:] = self.rows.against(W[part], here[old_columns:])
        self._part = _Values(W, columns, K)
        block = self._block(W, K)
        K[places, np.arange(len(here))] = block.diagonal[places]
        return SharedBlock(**vars(block), exchange=partial(self._shard.take, W))

    def _old_first(self, last: _Values | None, W: IntArray) -> IntArray:
        """The same samples, those of the last block first: so their values are copied fast."""
        if last is None or len(W) == 1:
            return W
        old = np.isin(W, last.rows, assume_unique=True)
        return np.concatenate([W[old], W[~old]])

    def _from_last(self, last: _Values | None, W: IntArray, columns: IntArray) -> tuple[np.ndarray, int, int]:
        """Values of ``W`` against ``columns``, as far as the last block has them.

        Also how many of ``W`` and of ``columns`` it has, which come first.
        """
        K = np.empty((len(W), len(columns)), dtype=self.dtype)
        if last is None:
            return K, 0, 0
        rows, at = _places(last.rows, W), _places(last.columns, columns)
        K[: len(rows), : len(at)] = last.K.take(rows, axis=0).take(at, axis=1)
        return K, len(rows), len(at)

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
                self._kept = self._empty_block()
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


def _places(known: IntArray, ids: IntArray) -> IntArray:
    """Places of ``ids`` among ``known``, for the first of them that are."""
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known, ids, sorter=order), len(known) - 1)
    places = order[at] if len(known) else order
    return np.asarray(places[: np.count_nonzero(known[places] == ids[: len(places)])])
