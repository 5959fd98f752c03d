"""The dual state of one fit: alpha, the gradient G, the bias, and what is measured of them.

A process has the rows of alpha and G of the samples that it holds. Everything that is decided from all
samples goes through the team. Ids name samples of all processes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ... import _core
from ...inner.block import Aim, Block
from ...problems.base import DualRows
from ...system.shard import Shard
from ...system.typing import FloatArray, IntArray, LabelArray
from ..base import Certificate, EngineOptions, Found, Selection, Task
from ..divergence import check_dual
from ..solved_costs import SolvedCosts
from .guests import Guests
from .shrinking import Shrinking

_VALUES_AT_ONCE = 1 << 20  # of alpha, in temporary arrays


def rows_not_zero(A: FloatArray) -> np.ndarray:
    """Which rows of ``A`` have a value that is not zero, as a mask; faster than ``A.any(axis=1)``."""
    found = np.empty(len(A), dtype=bool)
    _core.rows_not_zero(np.ascontiguousarray(A), found)
    return found


class State:
    """Alpha and G of the samples held here, kept together by every change."""

    def __init__(
        self,
        task: Task,
        options: EngineOptions,
        costs: SolvedCosts,
        shard: Shard,
        guests: Guests | None = None,
    ) -> None:
        self.task, self.problem, self.team, self.n_threads = task, task.problem, task.team, options.n_threads
        self.shard, self.guests = shard, guests
        self.y, self.n, self.m = task.y, shard.n, task.m
        self.costs, self.C = costs, costs.solved
        self.alpha = task.alpha()
        if task.left_out is not None and self.alpha[task.left_out].any():
            raise ValueError("A sample that is left out has no weight, but the start gives it some.")
        self.bias = np.zeros(self.m) if task.bias is None else task.bias
        self.ridge = self.problem.ridge(task.C)
        self.G = self.bias - self.problem.target(task.y)  # at alpha = 0; see ``take_scores``
        self.dual = 0.0
        self.is_exact = False  # whether all rows of G were computed from alpha as it is, in float64
        self.shrinking = Shrinking(shard, options.shrinking)
        self._psi, self._gain = np.zeros(shard.count), np.zeros(shard.count)
        self._here = slice(shard.first, shard.first + shard.count)
        self._ids = np.arange(self._here.start, self._here.stop)
        # Those held here that take part, by their numbers; None if all do.
        self._part = None if task.left_out is None else np.flatnonzero(~task.left_out)
        self._find_support()

    # -- the support vectors -------------------------------------------------------------------------
    def _find_support(self) -> None:
        self._is_support = np.zeros(self.n, dtype=bool)  # every process knows all support vectors
        self._is_support[self.team.join(self.shard.first + np.flatnonzero(rows_not_zero(self.alpha)))] = True
        self._support: IntArray | None = None  # until it is asked for: it costs a look at all samples

    @property
    def support(self) -> IntArray:
        """The support vectors of all processes, ascending."""
        if self._support is None:
            self._support = self._is_support.nonzero()[0]
        return self._support

    def _own(self) -> IntArray:
        """The support vectors held here, by their numbers."""
        return self.support if self.shard.alone else np.flatnonzero(self.is_support_here)

    def _rest(self) -> IntArray:
        """The other samples held here that take part."""
        has_weight = self.is_support_here
        return np.flatnonzero(~(has_weight if self._part is None else has_weight | self.task.left_out))

    @property
    def n_support(self) -> int:
        """How many they are."""
        return int(np.count_nonzero(self._is_support))

    @property
    def is_support(self) -> np.ndarray:
        """Which samples of all processes are support vectors, as a mask."""
        return self._is_support

    @property
    def is_support_here(self) -> np.ndarray:
        """Which samples held here are support vectors, as a mask."""
        return self._is_support[self._here]

    def largest_psi(self, ids: IntArray) -> float:
        """The largest ψ_i of samples held here, when they were measured last."""
        return float(self._psi[ids].max(initial=0.0))

    def unsettled(self, reach: float) -> IntArray:
        """Support vectors that are off their bounds, or less than ``reach`` from leaving them."""
        own = self._own()
        free = own[~self.problem.settled(self.rows().take(own), reach)]
        return self.team.join(np.asarray(self.shard.first + free))

    # -- measures ------------------------------------------------------------------------------------
    def rows(self, C: FloatArray | None = None) -> DualRows:
        """The samples held here as the machine sees them, with the costs to solve with or others."""
        return DualRows(self.alpha, self.G, self.y, self.C if C is None else C)

    def part(self) -> IntArray | slice:
        """The samples held here that take part, by their numbers."""
        return slice(None) if self._part is None else self._part

    @property
    def count(self) -> int:
        """How many samples of all processes take part."""
        return self.n if self._part is None else len(self._part)

    def whole(self, alpha: FloatArray) -> FloatArray:
        """Rows of alpha of all samples held here, from those of the samples that take part."""
        if self._part is None:
            return alpha
        every = np.zeros_like(self.alpha)
        every[self._part] = alpha
        return every

    def named(self, W: IntArray) -> DualRows:
        """The rows of samples of all processes, which are guests."""
        if self.guests is None:
            return DualRows(self.alpha[W], self.G[W], self.y[W], self.C[W])
        _, own = self.shard.mine(W)
        alpha, G = self.shard.take_all(W, self.alpha[own], self.G[own])
        facts = self.guests.facts(W)
        return DualRows(alpha, G, facts.y, self.costs.capped(facts.C))

    def coefficients(self, ids: IntArray) -> FloatArray:
        """Rows of alpha of samples of all processes."""
        return self.shard.take(ids, self.alpha[self.shard.mine(ids)[1]])

    def groups(self, ids: IntArray) -> np.ndarray:
        """See ``Engine.groups``."""
        _, own = self.shard.mine(ids)
        return self.shard.take(ids, self.problem.group(self.alpha[own], self.y[own], self.C[own]))

    def _measure(self, ids: IntArray | None) -> None:
        psi, gain, name = self._psi, self._gain, self.problem.name
        _core.measure(name, self.G, self.alpha, self.y, self.C, ids, psi, gain, self.n_threads)

    def _measure_asked(self) -> tuple[FloatArray, FloatArray]:
        """Violations and gaps of the samples held here, at the costs asked for.

        A sample at a capped cost may grow. Near zero the share of the capped cost is the stricter one.
        """
        self._measure(self._part)
        if not self.costs.are_capped:
            return self._psi, self._gain
        psi, gap = np.zeros_like(self._psi), np.zeros_like(self._gain)
        name, C = self.problem.name, self.costs.asked
        _core.measure(name, self.G, self.alpha, self.y, C, self._part, psi, gap, self.n_threads)
        return np.maximum(psi, self._psi), gap

    def select(
        self, k: int, rank: str, stop: str, above: float, among: str, even: bool, seen: bool = False
    ) -> Selection:
        """See ``Engine.select``."""
        if among == "near" and (near := self.shrinking.near()) is not None:
            found = self._select(near, k, rank, stop, above, even)
            if found.violation > above:
                return found
        ids = self._part
        if among not in ("all", "near"):
            ids = {"support": self._own, "rest": self._rest}[among]()
        found = self._select(ids, k, rank, stop, above, even, seen)
        if among == "near":
            self.shrinking.saw_all((self._psi == 0) & ~self._is_support[self._here])
        return found

    def _select(
        self,
        ids: IntArray | None,
        k: int,
        rank: str,
        stop: str,
        above: float,
        even: bool,
        seen: bool = False,
    ) -> Selection:
        """Select among samples with these numbers here, all samples if None.

        The gap is known if ids are those that take part.
        """
        if ids is not None and not len(ids) and self.shard.alone:
            return Selection(np.empty(0, dtype=np.int64), 0.0, math.nan, 0)
        if not seen:
            self._measure(ids)
        at = slice(None) if ids is None else ids
        psi, gain, y = self._psi[at], self._gain[at], self.y[at]
        closeness, kappa = self.problem.closeness, self.problem.kappa
        value = closeness(psi, gain, self.C[at]) if stop != "psi" else psi if kappa == 1.0 else psi / kappa
        largest, gap = float(value.max(initial=0.0)), float(gain.sum()) if ids is self._part else math.nan
        if self.shard.alone and largest <= above:  # most fits end here
            return Selection(np.empty(0, dtype=np.int64), largest, gap, 0)
        score = np.where(value > above, psi if rank == "psi" else gain, -1.0)
        among = self._ids if ids is None else self.shard.first + ids
        looks = self.team.join(np.array([[largest, gap, np.count_nonzero(score > 0)]]), [1] * self.team.size)
        most = int(looks[:, 2].max())
        return Selection(
            self._evenly(among, score, y, k, most) if even else self.team.top(among, score, k, most),
            float(looks[:, 0].max()),
            float(looks[:, 1].sum()),
            int(looks[:, 2].sum()),
        )

    def _evenly(self, ids: IntArray, score: FloatArray, y: LabelArray, k: int, most: int) -> IntArray:
        """Each class's largest, then each class's second largest, and so on."""
        m = self.problem.m
        tops = [self.team.top(ids, np.where(y == r, score, -1.0), -(-k // m), most) for r in range(m)]
        turns = np.concatenate([np.arange(len(top)) for top in tops])
        return np.asarray(np.concatenate(tops)[np.argsort(turns, kind="stable")])

    def measures(self, rows: DualRows) -> tuple[FloatArray, FloatArray]:
        """As ``problem.measure``."""
        (alpha, G, y, C), psi, gain = rows, np.empty(len(rows.y)), np.empty(len(rows.y))
        _core.measure(self.problem.name, G, alpha, y, C, None, psi, gain, self.n_threads)
        return psi, gain

    def slack(self, ids: IntArray, out: FloatArray) -> None:
        """How far samples held here are from a violation if they have no weight, into ``out[ids]``."""
        _core.slack(self.problem.name, self.G, self.y, ids, out, self.n_threads)

    def violation_at(self, rows: DualRows) -> float:
        """The largest ψ_i of some samples, in the units of the scores."""
        return float(self.measures(rows)[0].max(initial=0.0)) / self.problem.kappa

    def largest_violation(self, block: Block) -> float:
        """The largest ψ_i of a block."""
        return float(self.measures(block.rows())[0].max(initial=0.0))

    def eps(self, aim: Aim, measure: str, block: Block) -> float:
        """How exactly to solve a block, in the solver's own measure."""
        return aim.eps(self.problem, measure, block, self.count, self.measures)

    def raise_costs(self) -> FloatArray | None:
        """Raise capped costs; the point to go on from, None if nothing was raised."""
        alpha = self.costs.rise(self.alpha, self.y)
        self.C = self.costs.solved
        return alpha

    # -- changes -------------------------------------------------------------------------------------
    def take_over(self, W: IntArray, alpha: FloatArray) -> None:
        """Give the samples ``W`` new rows of alpha; G and the dual follow elsewhere."""
        self.is_exact = False
        places, own = self.shard.mine(W)
        self.alpha[own] = alpha[places]
        now = rows_not_zero(alpha)
        if not np.array_equal(now, self._is_support[W]):
            self._is_support[W] = now
            self._support = None

    def take_over_part(
        self, own: IntArray, alpha: FloatArray, moved: IntArray, is_support: np.ndarray
    ) -> None:
        """The same for samples held here, by their numbers; ``moved`` are all that moved in any process."""
        self.is_exact = False
        self.alpha[own] = alpha
        if not np.array_equal(is_support, self._is_support[moved]):
            self._is_support[moved] = is_support
            self._support = None

    def place(self, alpha: FloatArray) -> None:
        """Take over ``alpha`` of the samples held here; ``take_scores`` must follow."""
        self.is_exact = False
        self.alpha = alpha
        self._find_support()

    def take_scores(self, S: FloatArray, here: IntArray | None = None) -> None:
        """G and the dual from the scores S = K α, in float64.

        ``here`` are the samples that they belong to, by their numbers; all if None. All support vectors held
        here must be among them.
        """
        if self.team.max(float(not np.isfinite(S).all())):
            check_dual(self.task, math.nan, 0.0)
        dual = 0.0
        self.is_exact = False
        if here is None:
            self.G = S
        else:
            self.G[here] = S
        for part in self._parts(len(S)):
            rows = part if here is None else here[part]
            alpha, scores, y, C = self.rows(self.costs.asked).take(rows)
            dual += self.problem.dual(alpha, scores, y, C)
            self.G[rows] = self.problem.gradient(scores, alpha, y, C) + self.bias
        self.dual = float(self.team.sum(dual)) + float(self.bias @ self.sums())

    def _parts(self, count: int) -> Iterator[slice]:
        step = max(1, _VALUES_AT_ONCE // self.m)
        return (slice(first, first + step) for first in range(0, count, step))

    def _places(self) -> Iterator[slice | IntArray]:
        """The samples held here that take part, some at a time."""
        if self._part is None:
            yield from self._parts(self.shard.count)
        else:
            yield from (self._part[some] for some in self._parts(len(self._part)))

    def sums(self) -> FloatArray:
        """Σ_i α_i."""
        return self.team.sum(self.alpha.sum(axis=0))

    def shift(self, change: FloatArray) -> None:
        """Add ``change`` to the bias."""
        self.is_exact = False
        self.bias = self.bias + change
        self.G += change
        self.dual += float(change @ self.sums())

    # -- results -------------------------------------------------------------------------------------
    def scores(self, which: IntArray | slice) -> FloatArray:
        """The scores S = K α of some samples held here, without the bias."""
        alpha, G, y, C = self.rows(self.costs.asked).take(which)
        return self.problem.scores(G - self.bias, alpha, y, C)

    def certificate(self) -> Certificate:
        """See ``Engine.certificate``."""
        (psi, gap), C = self._measure_asked(), self.costs.asked
        closeness = self.problem.closeness(psi, gap, C)
        primal = sum(
            self.problem.primal(self.alpha[at], self.scores(at), self.bias, self.y[at], C[at])
            for at in self._places()
        )
        return Certificate(
            violation=self.team.max(float(psi.max(initial=0.0)) / self.problem.kappa),
            gain=self.team.max(float(closeness.max(initial=0.0))),
            primal=float(self.team.sum(primal)),
            dual=self.dual,
            gap=float(self.team.sum(gap.sum())),
        )

    def found(self) -> Found:
        """See ``Engine.found``."""
        ids, own = self.support, self._own()
        loss = self.problem.loss(self.scores(own) + self.bias, self.y[own], np.ones(len(own)))
        intercept = self.bias + self.task.offset * self.sums()
        return Found(ids, self.coefficients(ids), self.shard.take(ids, loss), intercept)
