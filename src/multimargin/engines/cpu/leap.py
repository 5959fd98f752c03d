"""A leap: all samples at once, with a kernel of low rank as a model of the exact one.

A wide Gaussian, a linear or a polynomial kernel of few features is nearly of low rank. Such problems are the
hardest for coordinate descent, because thousands of samples have classes that are almost tied. A proximal
point method with Newton's method inside (``proximal_newton.py``) takes a few dozen steps on them, whatever C
is:

    repeat   solve the model around α, with lengths σ_i = s C_i;
             compute the exact gradient at its solution;
             move there if the exact dual falls, and lengthen s if Newton's method took few steps;
             else continue F, or shorten s.

Descent leaves a dual that is a sum of rounded steps. Near the optimum that can be wrong by more than a leap
gains. So before a leap counts as a failure, the dual at α is computed exactly too.

F must leave at most ``_LEFT`` / σ_i of the kernel's diagonal: then what the model leaves out changes the
gradient by less than the proximal term does. If a model fails because s has become long, F is continued.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import solve

from ...inner import work
from ...problems.base import Problem
from ...problems.newton_direction import NoDirectionError, SystemSize
from ...system.memory import WHOLE_SAMPLES
from ...system.shard import Shard
from ...system.team import Team
from ...system.typing import FloatArray, LabelArray
from ..base import Selection
from .pivoted_cholesky import AT_ONCE, Columns, PivotedCholesky
from .proximal_newton import Centre, ProximalModel

_LEFT = 0.5  # see above
_LESS, _FREE = 0.05, 0.2  # F leaves so much of that, if it makes a leap longer by this share at most
_LONGER_LEAP = 1.0  # the same after a model has failed
_LENGTH = 12.0  # s at the start
_LONGER, _FEW_STEPS = 4.0, 5
_SHORTER = 1.0 / 16.0
_LONGEST = 1e9
_SHARE_OF_VIOLATION = 0.1  # how exactly a model is solved
_SHARE_OF_TOL = 0.1
_ENOUGH = 0.5  # of tol
_MOST_STEPS = 120  # of Newton's method per model
_MOST_FAILURES = 4
_START_COLUMNS, _RIDGE = 100, 1e-2  # of the least squares fit that the first model starts from
_SCALES = 2.0 ** np.arange(-3, 12)  # of that fit
# Newton's method usually works on about so many of the samples, and on so many entries of each.
_UNDECIDED, _ENTRIES = 0.2, 2.2
_LOW_RANK, _EARLY = 0.4, 0.25  # of the samples; of the work of a leap if the rank is far below that
_FIRST = 0.75  # the same of the first look at the kernel, if a descent is cut short for it
_NEAR = 2.0  # times tol: descent will soon be done
_AGAIN = 0.1  # of the work of a leap: the next one starts near its end
_FIRST_LOOK = 16  # columns of a leap that would be worth its while, before anything is known of the kernel
_LOOKING = 0.01  # of the work that was done: columns that are only to see how the rest falls
_LOOK = 8  # columns after which the fall of the rest says something of how it goes on
_STEP_WORK = 250_000.0  # units of work that a step takes if the problem is tiny
_ENTRY_WORK = 200.0  # and per sample and class: projections, faces, the exact gradient
_PRODUCTS = 1.5  # of F with all classes per step; that of its transpose is sparse
_FACTOR = 3.0  # units per multiply-add of the factor: thin products, kernel values included


class Point(Protocol):
    """A problem and a point of it.

    It has all samples of a fit, those that take part (``part_point.py``), or those of a block
    (``block_leap.py``).
    """

    problem: Problem
    shard: Shard
    team: Team
    m: int
    G: FloatArray
    dual: float

    @property
    def y(self) -> LabelArray: ...

    @property
    def C(self) -> FloatArray: ...  # noqa: N802  (the name of the formulas)

    @property
    def alpha(self) -> FloatArray: ...

    @property
    def bias(self) -> FloatArray: ...

    def select(self, k: int, rank: str, stop: str, above: float, among: str, even: bool) -> Selection: ...

    def place(self, alpha: FloatArray) -> None: ...


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

    Newton's method is expected to work on the share ``undecided`` of the samples.
    """

    def __init__(self, state: Point, diagonal: FloatArray, undecided: float = _UNDECIDED) -> None:
        self.state, self._diagonal = state, diagonal
        self.shard, self.team = state.shard, state.team
        self._begun: PivotedCholesky | None = None
        self._undecided = undecided
        self._share = 1.0  # of the usual work of a leap
        self._taken_at = 0.0  # work that had been done at the last leap
        self._least_price = _EARLY
        self._is_exact = False  # G and the dual: they were computed from α, and no step was added
        first = _FIRST if self.shard.n <= WHOLE_SAMPLES else _EARLY
        self._due = first * self.work(_FIRST_LOOK)  # after that

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
        """Whether the work that was done pays for a leap, and there is memory for it.

        The factor is continued as far as that work pays for. As long as no limit ends descents, their work
        counts less: they will soon be done.
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
        rest = self._left_at(_LENGTH)
        while factor.left > rest:
            # It would take more digits, or more memory.
            if factor.done or not self._fits(factor.rank + AT_ONCE, memory):
                self._due = np.inf
                return False
            known = factor.rank >= _LOOK
            self._due = self._price(factor.rank_that_leaves(rest) if known else factor.rank + 1)
            if paid < self._due and not (known and self._may_look(paid)):
                return False
            factor.grow(means.columns, rest)
        self._due = self._price(factor.rank) if factor.rank else np.inf
        if paid < self._due:
            return False
        self._grow(_LESS * rest, _FREE, memory, means.columns)
        return True

    def _may_look(self, paid: float) -> bool:
        """Whether another column is cheap, though a leap seems not to pay: outliers come first.

        While they do, the rest hardly falls, and says nothing of what will be left.
        """
        rank, n = self._factor.rank, self.shard.n
        return paid >= self._price(rank + 1) and paid * _LOOKING >= n * rank * (rank / 2 + work.KERNEL_VALUE)

    def _left_at(self, length: float) -> float:
        """What may be left of the kernel's diagonal if a model has this length."""
        return _LEFT / (length * self.team.max(float(self.state.C.max(initial=0.0))))

    def _grow(self, rest: float, longer: float, memory: int, columns: Columns) -> bool:
        """Continue the factor until it leaves ``rest``; whether that added columns.

        They may make a leap longer by the share ``longer`` at most.
        """
        factor, rank = self._factor, self._factor.rank
        most = (1.0 + longer) * self.work(rank)
        while factor.left > rest and not factor.done and self._fits(factor.rank + AT_ONCE, memory):
            if self.work(factor.rank + 1) + self._factor_work(rank, factor.rank + 1) > most:
                break
            factor.grow(columns, rest)
        return factor.rank > rank

    def take(self, tol: float, means: Means) -> bool:
        """Move as far as models of the problem lead; whether anything moved. The dual falls."""
        self._taken_at = float(self.team.agree(means.done))
        self._is_exact = False
        memory = self._least(means.memory)
        model = self._model(memory)
        length, failures, moved = _LENGTH, 0, False
        violation, U = self._violation(), self._start(model, self._centre(length))
        while violation > _ENOUGH * tol and failures < _MOST_FAILURES and not means.late():
            eps = max(_SHARE_OF_VIOLATION * violation, _SHARE_OF_TOL * tol)
            try:
                found = model.minimise(self._centre(length), eps, U, _MOST_STEPS, means.late)
            except NoDirectionError:
                break
            if self._move(found.alpha, means.place):
                moved, U, violation = True, None, self._violation()
                length *= _LONGER if found.steps <= _FEW_STEPS and length < _LONGEST else 1.0
                continue
            failures += 1
            if self._grow(_LESS * self._factor.left, _LONGER_LEAP, memory, means.columns):
                model = self._model(memory)
            else:
                length *= _SHORTER
            U = None if U is None else model.padded(found.U)
        self._share = _AGAIN
        usual = self._price(self._factor.rank)
        self._due = usual if moved else max(usual, self._taken_at)  # after as much work as all before
        return moved

    def _model(self, memory: int) -> ProximalModel:
        state, F = self.state, self._factor.factor
        memory -= self._kept_bytes(F.shape[1])
        return ProximalModel(state.problem, F, state.y, state.C, memory, self.team)

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

    def _centre(self, length: float) -> Centre:
        state = self.state
        return Centre(state.alpha, state.G, length * state.C)

    def _violation(self) -> float:
        return self.state.select(1, "psi", "psi", 0.0, "all", False).violation

    def _start(self, model: ProximalModel, at: Centre) -> FloatArray | None:
        """U such that F U leads from the current scores to a multiple of the targets, or None for U = 0."""
        F = model.F[:, :_START_COLUMNS]
        target = self.state.problem.target(self.state.y)
        target = target - target.mean(axis=1, keepdims=True)
        now = at.G + self.state.problem.target(self.state.y) - self.state.bias
        A = np.asarray(self.team.sum(F.T @ F))
        A.flat[:: len(A) + 1] += _RIDGE
        fits = solve(A, np.asarray(self.team.sum(F.T @ np.hstack([target, now]))), assume_a="pos")
        U = np.zeros((model.F.shape[1], 2 * target.shape[1]))
        U[: len(fits)] = fits
        aim, now = np.hsplit(U, 2)
        Faim, Fnow = np.hsplit(model.F @ U, 2)

        @cache
        def value(k: int) -> float:
            return model.value(at, _SCALES[k] * aim - now, _SCALES[k] * Faim - Fnow)

        best = lowest(value, len(_SCALES))
        still = model.value(at, np.zeros_like(aim), np.zeros_like(Faim))
        return _SCALES[best] * aim - now if value(best) < still else None

    def _price(self, rank: float) -> float:
        """The work after which a leap is taken: less than its own, if the rank is low.

        Descent is slowest then, and models fail least. But near the end it would soon be done.
        """
        whole = self.work(rank) + self._factor_work(self._factor.rank, rank)
        return whole * float(np.clip(rank / (_LOW_RANK * self.shard.n), self._least_price, 1.0))

    def work(self, rank: float) -> float:
        """Units of work that a leap with a factor of this rank usually takes."""
        entries = self.shard.n * self.state.m
        step = _PRODUCTS * entries * rank + min(self._system(rank).work)
        return self._share * work.LEAP_STEPS * (_STEP_WORK + _ENTRY_WORK * entries + step / work.LEAP)

    def _factor_work(self, rank: float, longer: float) -> float:
        """Units of work that take the factor from one rank to a higher one."""
        return _FACTOR * self.shard.n * max(longer**2 - rank**2, 0.0) / 2

    def _system(self, rank: float) -> SystemSize:
        """The size that Newton's systems usually have."""
        m, samples = self.state.m, self._undecided * self.shard.n
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


def lowest(value: Callable[[int], float], count: int) -> int:
    """Where a function of 0, 1, ..., count - 1 that first falls and then rises is least."""
    first, last = 0, count - 1
    while first < last:
        middle = (first + last) // 2
        if value(middle) <= value(middle + 1):
            last = middle
        else:
            first = middle + 1
    return first
