"""Taking over what a block solver has found: alpha, the gradient of all samples held here, and the dual."""

from __future__ import annotations

import math

import numpy as np

from ... import _core
from ...inner import work
from ...inner.block import Block
from ...run.profile import Profile, timed
from ...system.typing import FloatArray, IntArray
from ..base import EngineOptions
from ..divergence import check_dual
from .blocks import LazyBlock, StoreBlock
from .kernel_values import NativeValues
from .pair_watch import PairWatch
from .proof import Proof
from .row_store import RowStore
from .state import State, rows_not_zero
from .team_blocks import PartBlock
from .watch import Watch


class Steps:
    """Takes over solved blocks. Kernel rows are needed only of samples that moved."""

    def __init__(self, state: State, options: EngineOptions, profile: Profile) -> None:
        self.state, self.profile, self.n_threads = state, profile, options.n_threads
        self._moves = np.zeros(state.n, dtype=np.int64)  # of each sample in lazy blocks

    def use(self, rows: RowStore) -> None:
        """Take kernel rows from ``rows`` from now on."""
        self.rows = rows
        kind = Watch if self.state.problem.coupled else PairWatch
        self.watch = None if rows.keeps_rows else kind(self.state, rows, self.profile)
        self.proof = Proof(self.state, rows, self.watch, self.profile)

    def forget(self) -> None:
        """Let go of the kernel rows, and of what is known of G by them."""
        del self.rows, self.watch, self.proof

    @timed("gradient")
    def take(self, block: Block, before: tuple[FloatArray, FloatArray] | None = None) -> bool:
        """Take over a block of which this process has all rows of alpha and G; whether anything moved.

        ``before`` are the rows of alpha and G that the block had, if the state does not have them all.
        """
        state, W = self.state, block.W
        old = (state.alpha[W], state.G[W]) if before is None else before
        delta = block.alpha - old[0]
        moved = np.flatnonzero(rows_not_zero(delta))
        if not len(moved):
            return False
        if self._is_sooner_recomputed(block, len(moved)):
            state.take_over(W, block.alpha)
            self.refresh()
            return True
        self._change_dual(_gain(block.G, old[1], delta))
        if self.watch is not None:
            worst = state.largest_psi(W)
            state.G[W] = block.G
            state.take_over(W, block.alpha)
            self.watch.after_step(W, worst)
            return True
        if isinstance(block, StoreBlock) and len(W) == state.n:  # G is complete
            state.G[W] = block.G
            self.proof.lose()
        else:
            self._add_to_gradient(W[moved], delta[moved], self._worth_keeping(block, moved))
            self.proof.add(delta[moved])
        if state.ridge is not None:
            places, own = state.shard.mine(W[moved])
            state.G[own] += state.ridge[own, None] * delta[moved][places]
        state.take_over(W, block.alpha)
        return True

    @timed("gradient")
    def take_part(self, part: PartBlock) -> bool:
        """Take over the samples of a block that are held here, and what other processes say of theirs."""
        state, shard, team, m = self.state, self.state.shard, self.state.team, self.state.m
        delta = part.alpha - state.alpha[part.here]
        moved = np.flatnonzero(delta.any(axis=1))
        own = np.column_stack([delta[moved], part.alpha[moved].any(axis=1)])
        with self.profile.phase("messages"):
            ids = team.join(part.W[moved])
            rows: FloatArray = team.join(own, shard.counts(ids))
            gain = float(team.sum(_gain(part.G[moved], state.G[part.here[moved]], delta[moved])))
        if not len(ids):
            return False
        self._change_dual(gain)
        self._add_to_gradient(ids, np.ascontiguousarray(rows[:, :m]), None)
        self.proof.add(rows[:, :m])
        state.take_over_part(part.here, part.alpha, ids, rows[:, m] > 0)
        return True

    def _is_sooner_recomputed(self, block: Block, moved: int) -> bool:
        """Whether to compute G from alpha rather than from the steps: then a proof need not.

        It takes rows of the whole kernel matrix that are exact, and costs about the same if most of the
        support vectors have moved.
        """
        whole = block.K is self.rows.kept and not isinstance(block, StoreBlock)
        if not (whole and self.rows.is_exact):
            return False
        return 2 * moved > int(np.count_nonzero(rows_not_zero(block.alpha)))

    def refresh(self, here: IntArray | None = None) -> None:
        """Recompute G and the dual from alpha; only the rows of the samples ``here`` if given."""
        state, watch, proof = self.state, self.watch, self.proof
        if here is not None and watch is not None:
            watch.complete()  # rows of samples that are left out were not looked at
        state.take_scores(self._exact_scores(here), here)
        if here is None:
            proof.saw_all()
            state.is_exact = True
        elif watch is not None:
            proof.add(watch.length()[None])
        if watch is not None:
            watch.see_all()

    def refresh_pairs(self, matters: np.ndarray) -> None:
        """The same for single entries of G, of a machine whose classes nothing couples.

        The others are right up to the error that the proof knows of. Their coefficients are zero, so the dual
        does not have them.
        """
        self.state.take_scores(self.proof.scores_of_pairs(matters))
        if self.watch is not None:
            self.proof.add(self.watch.length()[None])
            self.watch.see_all()

    def bound_error(self) -> None:
        """If nobody knows how wrong G is, sum it anew from kept kernel rows; a proof then computes less."""
        state, support = self.state, self.state.support
        unknown = self.proof.can_bound and not math.isfinite(self.proof.error())
        if not unknown or self.watch is not None or not state.shard.alone:
            return
        if self.rows.cache.peek(support).min(initial=0) < 0:
            return
        zeros, alpha = np.zeros_like(state.G), state.alpha
        state.G = state.problem.gradient(zeros, alpha, state.y, state.costs.asked) + state.bias
        self._add_to_gradient(support, alpha[support], None)
        self.proof.sum_anew()

    def _exact_scores(self, here: IntArray | None) -> FloatArray:
        """Scores of the samples ``here`` in float64; of all samples held here if None."""
        return self.proof.scores(here)

    def _change_dual(self, change: float) -> None:
        state = self.state
        state.dual += change
        check_dual(state.task, state.dual, state.costs.asked_total)

    def _add_to_gradient(self, ids: IntArray, delta: FloatArray, keep: np.ndarray | None) -> None:
        """G += K[:, ids] delta."""
        for store, slots, which in self.rows.visit(ids, keep):
            with self.rows.values.one_blas_thread():
                _core.update_gradient(self.state.G, store, slots, delta[which], self.n_threads)

    def _worth_keeping(self, block: Block, moved: IntArray) -> np.ndarray | None:
        """Whose rows to keep, as a mask; None is all.

        After a lazy block: samples off their bounds, once their repeated rows cost more than memory.
        """
        values = self.rows.values
        if not isinstance(block, LazyBlock) or not isinstance(values, NativeValues):
            return None
        ids = block.W[moved]
        self._moves[ids] += 1
        dear = self._moves[ids] * values.work >= work.FIRST_TOUCH
        free = self.state.problem.group(block.alpha[moved], block.y[moved], block.C[moved]) == 0
        return np.asarray(dear & free)


def _gain(G: FloatArray, before: FloatArray, delta: FloatArray) -> float:
    """The change of the dual: G_new - G_old = K_WW delta on W, so it needs no further product."""
    return 0.5 * float(np.vdot(G + before, delta))
