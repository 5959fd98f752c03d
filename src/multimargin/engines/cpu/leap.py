"""A leap: all samples at once, with a kernel of low rank as a model of the exact one.

A wide Gaussian, a linear or a polynomial kernel of few features is nearly of low rank. Such problems are the
hardest for coordinate descent, because thousands of samples have classes that are almost tied. A proximal
point method with Newton's method inside (``proximal_newton.py``) takes a few dozen steps on them, whatever C
is:

    repeat   follow models from the exact gradient at α on (``approach.py``);
             compute the exact gradient where they end;
             stay there if the exact dual has fallen, else lengthen the factor, or shorten the models.

Descent leaves a dual that is a sum of rounded steps. Near the optimum that can be wrong by more than a leap
gains. So before a leap counts as a failure, the dual at α is computed exactly too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...inner import work
from ...problems.newton_direction import NoDirectionError, SystemSize
from ...system.memory import WHOLE_SAMPLES
from ...system.typing import FloatArray
from .approach import ENOUGH, LEFT, LENGTH, Approach
from .leap_point import Point
from .pivoted_cholesky import AT_ONCE, Columns, PivotedCholesky

_LESS, _FREE = 0.05, 0.2  # models leave so much of that, if it makes a leap longer by this share at most
_FAR = 8.0  # units per pair of samples, for columns that make exact gradients rare: two of these take as long
_MOST_LEFT = 0.02  # of the diagonal: else it is no kernel of low rank
_STEADY = 0.5  # of the violation before: it must fall by that, or the factor is lengthened
_MOST_FAILURES = 4
# Newton's method usually works on about so many of the samples, and on so many entries of each.
_UNDECIDED, _ENTRIES = 0.2, 2.2
_UNDECIDED_FAR = 0.7  # the same of the first models of a leap that comes before descent
_LOW_RANK, _EARLY = 0.4, 0.25  # of the samples; of the work of a leap if the rank is far below that
_HIGHER_RANK, _DEAR = 0.06, 2.0  # of many samples; of the work of a leap if the rank is above that
_LOWEST = 0.01  # of the samples: a kernel of such a rank is hard for descent
_DESCENT = 200.0  # units per pair of samples that descent usually takes then, or more
_FIRST = 0.75  # the same of the first look at the kernel, if a descent is cut short for it
_NEAR = 2.0  # times tol: descent will soon be done
_AGAIN = 0.1  # of the work of a leap: the next one starts near its end
_FIRST_LOOK = 16  # columns of a leap that would be worth its while, before anything is known of the kernel
_LOOKING = 0.01  # of the work that was done: columns that are only to see how the rest falls
_FIRST_COLUMNS, _FLAT = 4, 0.9  # if these leave so much of the diagonal, the rank is high
_LOOK = 8  # columns after which the fall of the rest says something of how it goes on
_STEP_WORK = 250_000.0  # units of work that a step takes if the problem is tiny
_ENTRY_WORK = 200.0  # and per sample and class: projections, faces, the exact gradient
_PRODUCTS = 1.5  # of F with all classes per step; that of its transpose is sparse
_FACTOR = 3.0  # units per multiply-add of the factor: thin products, kernel values included


class Means(NamedTuple):
    """What a leap may use."""

    done: int  # units of work of all blocks so far
    creeps: bool  # whether a limit ended the last descent, short of its aim
    memory: int  # bytes
    columns: Columns
    place: Callable[[FloatArray], None]  # moves to a point, and computes the exact gradient there
    late: Callable[[], bool]


class Leap:
    """The leaps of one fit: each is taken when the blocks before it have cost as much as it will.

    Newton's method is expected to work on the share ``undecided`` of the samples. The first leap may be taken
    before descent if ``at_once``: small problems and those that begin near their solution are descended
    first, because that hardly takes longer than looking at the kernel.
    """

    def __init__(
        self, state: Point, diagonal: FloatArray, undecided: float = _UNDECIDED, at_once: bool = False
    ) -> None:
        self.state, self._diagonal = state, diagonal
        self.shard, self.team = state.shard, state.team
        self._begun: PivotedCholesky | None = None
        self._undecided = undecided
        self._rank = 0  # columns of the models
        self._share = 1.0  # of the usual work of a leap
        self._taken_at = 0.0  # work that had been done at the last leap
        self._least_price = _EARLY
        self._is_exact = False  # G and the dual: they were computed from α, and no step was added
        self._at_once = at_once  # until that is decided
        first = _FIRST if self.shard.n <= WHOLE_SAMPLES else _EARLY
        self._due = 0.0 if at_once else first * self.work(_FIRST_LOOK)  # after that

    @property
    def _factor(self) -> PivotedCholesky:
        if self._begun is None:
            self._begun = PivotedCholesky(self._diagonal, self.shard)
        return self._begun

    @property
    def next(self) -> float:
        """The work after which ``is_due`` should be asked again."""
        return self._taken_at + self._due

    def is_due(self, tol: float, means: Means) -> bool:
        """Whether the work that was done pays for a leap, and there is memory for it."""
        due = self._is_paid(tol, means)
        self._at_once &= due
        return due

    def _is_paid(self, tol: float, means: Means) -> bool:
        """Continue the factor as far as the work that was done pays for; whether it pays for a leap.

        As long as no limit ends descents, their work counts less: they will soon be done.
        """
        if self._due == np.inf:
            return False
        done, creeps = self.team.agree((means.done, means.creeps))
        paid = (done - self._taken_at) * (1.0 if creeps else _EARLY)
        violation = self.team.agree(self._violation()) if paid >= self._due else 0.0
        if violation <= tol:
            return False
        self._least_price = _EARLY if violation > _NEAR * tol else 1.0
        factor, memory = self._factor, self._least(means.memory)
        rest = self._left_at(LENGTH)
        while factor.left > rest:
            # It would take more digits, or more memory.
            if factor.done or not self._fits(factor.rank + AT_ONCE, memory):
                self._due = np.inf
                return False
            flat = self._at_once and factor.rank > 0 and factor.left > _FLAT * factor.start
            known = factor.rank >= _LOOK or flat
            self._due = self._price(factor.rank_that_leaves(rest) if known else factor.rank + 1)
            if paid < self._due and not (known and self._may_look(paid)):
                return False
            few = self._at_once and factor.rank == 0
            factor.grow(means.columns, rest, _FIRST_COLUMNS if few else None)
            self._rank = factor.rank
        self._due = self._price(self._rank) if self._rank else np.inf
        if paid < self._due:
            return False
        self._take_free_columns(_LESS * rest, memory, means.columns)
        return True

    def _may_look(self, paid: float) -> bool:
        """Whether another column is cheap, though a leap seems not to pay: outliers come first.

        While they do, the rest hardly falls, and says nothing of what will be left.
        """
        rank, n = self._factor.rank, self.shard.n
        return paid >= self._price(rank + 1) and paid * _LOOKING >= n * rank * (rank / 2 + work.KERNEL_VALUE)

    def _left_at(self, length: float, share: float = _MOST_LEFT) -> float:
        """What may be left of the kernel's diagonal if a model has this length, at most this share of it."""
        most = LEFT / (length * self.team.max(float(self.state.C.max(initial=0.0))))
        return min(most, share * self._factor.start)

    def _take_free_columns(self, rest: float, memory: int, columns: Columns) -> None:
        """Give models more columns, down to ``rest``, as far as a leap takes hardly longer for that.

        Before descent most samples are undecided: then a Newton step soon takes longer with more columns.
        """
        factor, rank = self._factor, self._rank
        undecided = _UNDECIDED_FAR if self._at_once else self._undecided
        most = (1.0 + _FREE) * self.work(rank, undecided)
        while factor.left > rest and not factor.done and self._fits(factor.rank + AT_ONCE, memory):
            longer = factor.rank + 1
            if self.work(longer, undecided) + self._factor_work(rank, longer) > most:
                break
            factor.grow(columns, rest)
            self._rank = factor.rank

    def _grow(self, rest: float, memory: int, columns: Columns) -> bool:
        """Continue the factor until it leaves ``rest``; whether that added columns.

        They may take about as long as exact gradients do.
        """
        factor, rank, most = self._factor, self._factor.rank, _FAR * self.shard.n**2
        while factor.left > rest and not factor.done and self._fits(factor.rank + AT_ONCE, memory):
            if self._factor_work(rank, factor.rank + 1) > most:
                break
            factor.grow(columns, rest)
        return factor.rank > rank

    def take(self, tol: float, means: Means) -> bool:
        """Move as far as models of the problem lead; whether anything moved. The dual falls."""
        self._taken_at = float(self.team.agree(means.done))
        self._is_exact = False
        memory = self._least(means.memory)
        approach = Approach(
            self.state, self._factor, self._rank, memory - self._kept_bytes(self._factor.rank)
        )
        if self._at_once:
            approach.begin_far()
        violation, failures, moved, self._at_once = self._violation(), 0, False, False
        while violation > ENOUGH * tol and failures < _MOST_FAILURES and not means.late():
            if self._rank * self.state.m <= self.shard.n:  # else an exact gradient costs as little
                self._grow(approach.rest(), memory, means.columns)
            try:
                near = approach.run(violation, tol, means.late)
            except NoDirectionError:
                break
            if self._move(near.alpha, means.place):
                moved, before, violation = True, violation, self._violation()
                if violation <= _STEADY * before:
                    continue
            failures += 1
            grew = self._grow(_LESS * self._factor.left, memory, means.columns)
            if not (approach.widen() and grew):
                approach.shorten()
        self._share, self._rank = _AGAIN, approach.rank
        usual = self._price(self._rank)
        self._due = usual if moved else max(usual, self._taken_at)  # after as much work as all before
        return moved

    def _move(self, alpha: FloatArray, place: Callable[[FloatArray], None]) -> bool:
        """Move to ``alpha`` if the exact dual is lower there; whether it is."""
        state = self.state
        before = state.alpha, state.G, state.dual
        try:
            place(alpha)
        except KeyboardInterrupt:
            state.place(before[0])
            raise
        if state.dual >= before[2] and not self._is_exact:
            after = state.G, state.dual
            place(before[0])
            before = before[0], state.G, state.dual
            state.place(alpha)
            state.G, state.dual = after
        self._is_exact = True
        if state.dual < before[2]:
            return True
        state.place(before[0])
        _, state.G, state.dual = before
        return False

    def _violation(self) -> float:
        return self.state.select(1, "psi", "psi", 0.0, "all", False).violation

    def _price(self, rank: float) -> float:
        """The work after which a leap is taken: less than its own, if the rank is low.

        Descent is slowest then, and models fail least. But near the end it would soon be done. If the samples
        are many, descent usually ends in the time of a leap unless the rank is low.
        """
        whole = self.work(rank) + self._factor_work(self._factor.rank, rank)
        if self._is_hard(rank) and whole <= _DESCENT * self.shard.n**2:
            return 0.0
        if self.shard.n > WHOLE_SAMPLES and rank > _HIGHER_RANK * self.shard.n:
            return _DEAR * whole
        return whole * float(np.clip(rank / (_LOW_RANK * self.shard.n), self._least_price, 1.0))

    def _is_hard(self, rank: float) -> bool:
        """Whether descent will be slow for certain: the rank is very low, and costs are not small."""
        costs_are_small = self._left_at(LENGTH, 1.0) >= self._factor.start
        return self._at_once and rank <= _LOWEST * self.shard.n and not costs_are_small

    def work(self, rank: float, undecided: float | None = None) -> float:
        """Units of work that a leap with a factor of this rank usually takes."""
        entries = self.shard.n * self.state.m
        step = _PRODUCTS * entries * rank + min(self._system(rank, undecided).work)
        return self._share * work.LEAP_STEPS * (_STEP_WORK + _ENTRY_WORK * entries + step / work.LEAP)

    def _factor_work(self, rank: float, longer: float) -> float:
        """Units of work that take the factor from one rank to a higher one."""
        return _FACTOR * self.shard.n * max(longer**2 - rank**2, 0.0) / 2

    def _system(self, rank: float, undecided: float | None = None) -> SystemSize:
        """The size that Newton's systems usually have, or with this share of the samples undecided."""
        share = self._undecided if undecided is None else undecided
        m, samples = self.state.m, share * self.shard.n
        members = np.full(m, _ENTRIES * samples / m)
        return SystemSize(members, _ENTRIES**2 * samples, samples, rank, self.state.problem.sums_to_zero)

    def _kept_bytes(self, rank: int) -> int:
        """The factor, a copy and some of its rows; rows of alpha, G and the like."""
        return 8 * self.shard.largest * (12 * self.state.m + 3 * rank)

    def _fits(self, rank: int, memory: int) -> bool:
        return self._kept_bytes(rank) + min(self._system(rank).bytes) <= memory

    def _least(self, memory: int) -> int:
        """What all processes have."""
        return -int(self.team.max(-memory))
