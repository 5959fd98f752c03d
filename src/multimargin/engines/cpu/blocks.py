"""The kernel block of a working set: several ways to have one, the cheapest that serves.

one sample          its diagonal entry
a set for once      from the last set, from cached rows, the rest computed  ``Block``
a growing set       kept from round to round (``kept_block.py``)            ``Block``
all samples         the row store itself, once it holds all rows            ``Block``
uncoupled classes   rows of the store; each class uses its own part         ``StoreBlock``
values not kept     room for those between the samples of each class, if    ``SampleBlock``
                    the block is not small
pairs of samples    room for some rows, each computed when it is needed     ``LazyBlock``

On a team they are made otherwise: see ``team_blocks.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _core
from ...inner.block import Block
from ...run.profile import Profile, timed
from ...system.fixed_point import FIXED_POINT, encoded
from ...system.memory import WHOLE_SAMPLES
from ...system.typing import FloatArray, IntArray
from ..base import EngineOptions
from .kept_block import KeptBlock
from .kernel_values import NativeValues, Table, fixed_point_serves
from .last_block import Values, from_last, old_and_new
from .row_store import RowStore, chunks
from .state import State

# Above this share of pairs (sample, class) with weight, whole kernel rows are faster than those of a class.
_DENSE = 0.08
_WORTH_KEEPING = 64  # samples of a set for once: values of fewer are found as fast in cached rows
_ROWS = 128  # of a block, computed in one call


@dataclass
class StoreBlock(Block):
    """A block whose K is the row store. Sample W[i] has row slots[i]; those with -1 cannot move."""

    slots: IntArray

    @property
    def movable(self) -> int:
        return int(np.count_nonzero(self.slots >= 0))


@dataclass
class LazyBlock(Block):
    """A block whose K is only room for rows; the solver computes or copies those that it needs."""

    source: dict[str, Any]  # where it gets them: arguments of ``_core.pair_descent``


@dataclass
class SampleBlock(Block):
    """A block without K: the solver computes the values between the samples of each class, in ``room``."""

    values: NativeValues
    room: np.ndarray

    def kernel(self, rows: IntArray | slice, columns: IntArray) -> FloatArray:
        K = self.values.against(self.W[rows], self.W[columns]).astype(np.float64)
        same = np.nonzero(self.W[rows][:, None] == self.W[columns])
        K[same] = self.diagonal[columns][same[1]]
        return K


class Blocks:
    """Makes the blocks of one fit."""

    def __init__(
        self, state: State, rows: RowStore, diagonal: FloatArray, options: EngineOptions, profile: Profile
    ) -> None:
        self.state, self.rows, self.diagonal, self.profile = state, rows, diagonal, profile
        self.options, self.budget, self.dtype = options, rows.budget, rows.values.dtype
        self._kept: KeptBlock | None = None
        self._last: Values | None = None  # of the last set for once
        self._lazy_room = np.empty(0, dtype=self.dtype)
        self._room: np.ndarray | None = None  # of blocks without K

    def take_over(self, last: Blocks) -> None:
        """Go on with the kernel values and the memory of the blocks of an earlier fit with the same rows."""
        dtype = self._growing_dtype
        if last._room is not None and last._room.dtype == dtype:
            self._room = last._room
        kept, part = last._kept, self.state.part()
        if kept is None or kept.kernel.dtype != dtype or self.rows is not last.rows:
            return
        if kept.largest != min(self.state.n, self.largest) or not self._plain_diagonal:
            return
        if not isinstance(part, slice):
            kept.retain(np.isin(kept.members, part))
        self._kept = kept

    def work_space(self, block: Block) -> np.ndarray | None:
        """Memory in which a solver may copy parts of a kept block."""
        return None if self._kept is None else self._kept.room(block.K.dtype)

    def _empty_block(self) -> KeptBlock:
        """A block that will be kept from round to round."""
        return KeptBlock(self.state.n, self.largest, self._growing_dtype)

    @property
    def _growing_dtype(self) -> np.dtype[Any]:
        """Of the values of growing blocks."""
        inner = self.options.inner
        able = inner is not None and self.state.problem.name in inner.fixed_point
        return FIXED_POINT if able and self._values_fit_fixed_point else self.dtype

    @property
    def _values_fit_fixed_point(self) -> bool:
        """Whether fixed-point numbers are good enough for the kernel values of a block."""
        are_already = self.rows.values.row_dtype == FIXED_POINT
        serves = fixed_point_serves(self.state.task, self.state.costs.largest)
        return self.dtype == np.float32 and (are_already or serves)

    @property
    def _is_lazy(self) -> bool:
        """Whether growing blocks are lazy; a small kernel matrix is as soon computed as a whole."""
        native = self.state.problem.balanced and isinstance(self.rows.values, NativeValues)
        return self.options.lazy_blocks and native and self.state.n > WHOLE_SAMPLES

    @property
    def largest(self) -> int:
        """The largest working set whose block fits the memory budget."""
        return self.budget.largest_lazy_block if self._is_lazy else self.budget.largest_block

    def _block(self, W: IntArray, K: np.ndarray) -> Block:
        alpha, G, y, C = self.state.named(W)
        return Block(W, K, self._diagonal_of(W), alpha, G, y, C)

    def _diagonal_of(self, W: IntArray) -> FloatArray:
        guests = self.state.guests
        return self.diagonal[W] if guests is None else guests.facts(W).diagonal

    @timed("memory")
    def once(self, W: IntArray) -> Block:
        """The block of a set that will not come again."""
        if len(W) > self.budget.largest_block:
            raise ValueError(
                f"The kernel block of a working set of {len(W)} samples does not fit the memory budget; use "
                f"at most {self.budget.largest_block} samples or a larger cache_size."
            )
        if len(W) == 1:
            return self._block(W, self._diagonal_of(W).astype(self.dtype).reshape(1, 1))
        block = self._block(*self._put_together(W))
        np.fill_diagonal(block.K, block.diagonal)
        return block

    def _put_together(self, W: IntArray) -> tuple[IntArray, np.ndarray]:
        """K_WW and the order of its samples: those of the last set, of cached rows, and the others."""
        old, new = old_and_new(self._last, W)
        copied = self._rows_to_copy(new)
        store, slots = copied["store"], copied["slots"]
        cached = slots >= 0
        W = np.concatenate([old, new[cached], new[~cached]])
        K, done, _ = from_last(self._last, W, W, self.dtype)
        if cached.any():
            known = W[: done + np.count_nonzero(cached)]
            _core.extend_block(K, done, store, slots[cached], known, self.options.n_threads)
            done = len(known)
        self._compute(K, W, done)
        self._last = Values(W, W, K) if self._is_kept(W) else None
        return W, K

    def _compute(self, K: np.ndarray, W: IntArray, done: int) -> None:
        """Complete K_WW, of which the first rows and columns are there."""
        if done == len(W):
            return
        between, columns = self._table(W), np.arange(len(W))
        for part in chunks(columns[done:], min(_ROWS, self._rows_at_once(len(W)))):
            count = part[-1] + 1  # by symmetry, columns after these need no values
            values = between(W[part], count)
            rows = columns[: len(part)]
            _core.extend_block(K, part[0], values, rows, columns[:count], self.options.n_threads)

    def _table(self, columns: IntArray) -> Table:
        """See ``RowStore.table``."""
        return self.rows.table(columns)

    def _is_kept(self, W: IntArray) -> bool:
        """Whether the values of a set for once should serve the next one, and fit beside its own."""
        return len(W) >= _WORTH_KEEPING and 2 * len(W) ** 2 <= self.budget.largest_block**2

    def _rows_at_once(self, columns: int) -> int:
        """Rows of a block with so many columns that take no more memory than the rows that pass by."""
        return max(1, self.budget.passing_rows * self.budget.row // columns)

    @timed("memory")
    def growing(self, W: IntArray) -> Block:
        """The block of a set that has most samples of the one before, and perhaps more of these."""
        if self._is_lazy:
            return self._lazy(W)
        if not self.rows.keeps_rows and not self._is_small(W):
            self._kept = None
            return self._of_samples(W)
        if (by_class := self._by_class(W)) is not None:
            return by_class
        if self._kept is None:
            self._kept = self._empty_block()
        return self._whole_store(W) or self._grown(W, self._kept)

    def _is_small(self, W: IntArray) -> bool:
        """Whether the solver needs whole kernel rows of a block of this size."""
        inner = self.options.inner
        return inner is not None and inner.looks_at_all(len(W), self.state.m)

    def _of_samples(self, W: IntArray) -> SampleBlock:
        """Untouched pages of the room cost nothing, and it stays from round to round.

        Without couplings the kernel of a class is computed when its turn comes, and needs no room.
        """
        if self._room is None:
            side = min(self.largest, self.state.n) if self.state.problem.coupled else 0
            self._room = np.empty(side**2, dtype=self._growing_dtype)
        values = self.rows.values
        assert isinstance(values, NativeValues)
        W = np.sort(W)  # so that samples are read forwards
        no_values = np.empty((0, 0), dtype=self.dtype)
        return SampleBlock(**vars(self._block(W, no_values)), values=values, room=self._room)

    def _lazy(self, W: IntArray) -> LazyBlock:
        W = np.sort(W)  # so that copies of cached rows read memory forwards
        rows, values = self.budget.lazy_room(len(W))
        size = rows * len(W)
        if len(self._lazy_room) < size:
            self._lazy_room = np.empty(max(size, values), dtype=self.dtype)
        assert isinstance(self.rows.values, NativeValues)
        source = {"kernel": self.rows.values.row_by_row(W), "columns": W} | self._rows_to_copy(W)
        K = self._lazy_room[:size].reshape(rows, len(W))
        return LazyBlock(**vars(self._block(W, K)), source=source)

    def _rows_to_copy(self, W: IntArray) -> dict[str, Any]:
        """Kernel rows of ``W`` that a lazy block need not compute."""
        return {"store": self.rows.kept, "slots": self.rows.cache.peek(W)}

    @property
    def _plain_diagonal(self) -> bool:
        """Whether the block's diagonal is the kernel's own."""
        return self.state.ridge is None and bool(self.diagonal.min() > 0)

    def _by_class(self, W: IntArray) -> StoreBlock | None:
        """For descent class by class: rows of the store, of all samples if many pairs have weight.

        None if the machine's classes are coupled, or the rows of ``W`` do not fit the store.
        """
        state, cache = self.state, self.rows.cache
        if not self.options.lazy_blocks or state.problem.coupled or not self._plain_diagonal:
            return None
        if len(W) > cache.capacity:
            return None
        self.rows.load(W[cache.peek(W) < 0])
        if cache.peek(W).min() < 0:
            return None
        if np.count_nonzero(state.alpha) > _DENSE * state.alpha.size:
            W = np.arange(state.n)[state.part()]
        return StoreBlock(**vars(self._block(W, self.rows.kept)), slots=cache.peek(W))

    def _whole_store(self, W: IntArray) -> Block | None:
        """The row store as K_WW: all samples in their order, once all rows are computed."""
        n = self.state.n
        if len(W) < n or self.rows.cache.capacity < n or not self._plain_diagonal:
            return None
        every = np.arange(n)
        if (every != W).any() or (self.rows.load(W) != every).any():
            return None
        return self._block(W, self.rows.kept)

    def _grown(self, W: IntArray, kept: KeptBlock) -> Block:
        """The kept block, with the newcomers of ``W`` added."""
        threads = self.options.n_threads
        new = kept.missing(W, threads)
        if len(kept.members) + len(new) <= self.rows.cache.capacity:
            for store, slots, which in self.rows.visit(new):
                kept.extend(new[which], store, slots, threads)
                self._exact_diagonal(kept, len(which))
        else:
            self._grow_by_values(new, kept)
        return self._block(kept.members, kept.kernel)

    def _grow_by_values(self, new: IntArray, kept: KeptBlock) -> None:
        """Add members, of whose kernel rows only the values in the block are computed."""
        if not len(new):
            return
        everyone = np.concatenate([kept.members, new])
        between = self.rows.table(everyone)
        for part in chunks(new, self._rows_at_once(len(everyone))):
            count = len(kept.members) + len(part)
            kept.extend_by(part, between(part, count), self.options.n_threads)
            self._exact_diagonal(kept, len(part))

    def _exact_diagonal(self, kept: KeptBlock, added: int) -> None:
        """Give the last ``added`` members their exact diagonal entries."""
        at = np.arange(len(kept.members) - added, len(kept.members))
        kept.kernel[at, at] = encoded(self._diagonal_of(kept.members[at]), kept.kernel.dtype)
