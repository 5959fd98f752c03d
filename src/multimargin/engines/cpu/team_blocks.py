"""The kernel block of a working set on a team, whose processes have only parts of kernel rows.

A set for once: every process puts the same block together. The values between samples of the last set are
kept. The others come from the samples themselves, which are guests. A solver that needs nothing but products
with the block may share it: then each process has the columns of the samples that it holds, and its part of a
product (Niu & Yuan, Algorithm 5). Other large sets are treated as growing ones.

A growing set that all processes solve together: each has the columns of the samples that it holds, and keeps
them from round to round (``kept_part.py``).

Any other growing set: the first process alone has the block. If a process's part of a row is longer than half
of the block's, the first process computes the values itself. Else it gets them from the processes that hold
the columns. The others compute rows of the newcomers while it solves the block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ... import _core
from ...inner.base import InnerSolver
from ...inner.block import Block
from ...run.profile import timed
from ...system.fixed_point import FIXED_POINT, decoded, encoded
from ...system.shard import Shard
from ...system.typing import FloatArray, IntArray
from .blocks import Blocks
from .kept_part import KeptPart
from .kernel_values import Table
from .last_block import Values, from_last, old_and_new
from .row_store import chunks

_LARGE = 1000  # samples of a set for once above which the first process solves it, unless products suffice
_WORTH_A_MESSAGE = 1e7  # multiplications of a product with a block


@dataclass
class SharedBlock(Block):
    """A block of which K has only the columns of samples held here; all processes solve it alike."""

    exchange: Callable[[FloatArray], FloatArray]  # from this process's rows of a product to all


@dataclass
class PartBlock(Block):
    """The samples of a block that are held here. K has a row for every sample of the block."""

    here: IntArray  # their numbers in this process
    source: _core.RowSource  # K, and where its rows are completed from

    @property
    def movable(self) -> int:
        return len(self.K)


class TeamBlocks(Blocks):
    """Makes the blocks of one fit that several processes share; all of them must make the same calls."""

    _part: Values | None = None  # of the last block that was shared
    _kept_part: KeptPart | None = None  # of a growing set that all processes solve together
    _copies: np.ndarray | None = None  # memory for ``copies_of_rows``

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

    # -- a set that all processes solve together -----------------------------------------------------
    @timed("memory")
    def part(self, W: IntArray) -> PartBlock:
        """The samples of a growing set that are held here, and the kernel between all of it and them.

        Rows are completed from kept kernel rows, if these can all be kept. Else they are complete.
        """
        if self._kept_part is None:
            self._kept_part = KeptPart(self._shard, self.largest, self._part_dtype)
        kept, state = self._kept_part, self.state
        kept.admit(W)
        here, K, slots = kept.here, kept.kernel, np.full(len(kept.members), -1)
        diagonal, store = self.diagonal[here], self.rows.kept
        places = {"columns": here, "places": kept.places}
        source = _core.RowSource(K=K, known=kept.known, store=store, slots=slots, diag=diagonal, **places)
        if len(slots) > self.rows.cache.capacity:
            self._complete(kept)
        else:
            new = self.rows.cache.peek(kept.members) < 0
            for _, at, which in self.rows.visit(kept.members):
                slots[which] = at
                source.complete(which[new[which]])  # while they are in the processor's cache
        rows = state.alpha[here], state.G[here], state.y[here], state.C[here]
        return PartBlock(kept.members[kept.places], K, diagonal, *rows, here=here, source=source)

    def _complete(self, kept: KeptPart) -> None:
        """Compute the values that are missing."""
        K, width = kept.kernel, len(kept.here)
        for known in np.unique(kept.known[kept.known < width]):
            for part in chunks(np.flatnonzero(kept.known == known), self._rows_at_once(width)):
                values = self.rows.against(kept.members[part], kept.here[known:])
                K[part, known:] = encoded(values, K.dtype)
        K[kept.places, np.arange(width)] = encoded(self.diagonal[kept.here], K.dtype)
        kept.known[:] = width

    @property
    def _part_dtype(self) -> np.dtype[Any]:
        """Of the values of a part: only coordinate descent solves these."""
        return FIXED_POINT if self._values_fit_fixed_point else self.dtype

    def copies_of_rows(self) -> np.ndarray:
        """Memory in which a shared descent may copy parts of the kernel rows of a part."""
        if self._copies is None:
            self._copies = np.empty(self.largest**2, dtype=self._part_dtype)
        return self._copies

    def forget_part(self) -> None:
        """Give back the memory of the part: the first process will have the blocks."""
        self._kept_part = self._copies = None

    # -- a set for once ------------------------------------------------------------------------------
    def _table(self, columns: IntArray) -> Table:
        if self.rows.values.task.kernel.pairwise:
            return lambda ids, count: self._columns_of_all(columns[:count], ids)
        return super()._table(columns)

    def _is_kept(self, W: IntArray) -> bool:
        return True  # every value that is not kept is computed

    @timed("memory")
    def shared(self, W: IntArray) -> SharedBlock:
        """The block of a set that will not come again, of which each process has its columns."""
        W = np.concatenate(old_and_new(self._part, W))
        places, here = self._shard.mine(W)
        columns = W[places]
        K, old, old_columns = from_last(self._part, W, columns, self.dtype)
        for part in chunks(np.arange(old, len(W)), self._rows_at_once(len(W))):
            K[part] = self.rows.against(W[part], here)
        if old_columns < len(columns):
            for part in chunks(np.arange(old), self._rows_at_once(len(W))):
                K[part, old_columns:] = self.rows.against(W[part], here[old_columns:])
        self._part = Values(W, columns, K)
        block = self._block(W, K)
        K[places, np.arange(len(here))] = block.diagonal[places]
        return SharedBlock(**vars(block), exchange=partial(self._shard.take, W))

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
            new = self._kept.missing(W, self.options.n_threads)
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
                        values[place] = decoded(np.take(store[slot], here), self.dtype)
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
