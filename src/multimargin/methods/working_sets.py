"""Which samples to optimise next.

A rule is a small value object; ``choose`` is a generator that looks at the engine's current
measurements, yields one working set a time, and ends when no sample violates by more than ``tol``.
What a rule must remember between choices lives in that generator's local variables.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np

from ..system.memory import WHOLE_SAMPLES
from ..system.typing import IntArray

if TYPE_CHECKING:
    from ..engines.base import Engine


class Choice(NamedTuple):
    """A working set and what was seen when it was chosen."""

    W: IntArray
    violation: float  # largest stopping measure among the samples examined
    gap: float = math.nan  # duality gap, if all samples were examined


@dataclass(frozen=True)
class WorkingSet(ABC):
    """Base of the selection rules."""

    name: ClassVar[str]
    block_share: ClassVar[float] = 0.0  # of the memory budget, for kernel blocks of large working sets
    grows: ClassVar[bool] = False  # whether a working set has most samples of the one before
    by_pairs: ClassVar[bool] = False  # whether it chooses samples that can move together if none can alone

    @property
    def largest(self) -> int | None:
        """Samples of its largest working set; None if it asks the engine what fits."""
        return None

    @abstractmethod
    def choose(self, engine: Engine, stop: str, tol: float, rng: np.random.Generator) -> Iterator[Choice]:
        """Yield working sets until the ``stop`` measure ("psi" or "gain") is at most ``tol`` everywhere."""

    @abstractmethod
    def resized(self, size: int) -> Self:
        """The same rule with working sets of (at most) ``size`` samples."""

    def patience(self, n: int) -> int:
        """How many steps in a row may change nothing before the rule is stuck."""
        return 1


@dataclass(frozen=True)
class FixedSize(WorkingSet):
    """Base of the rules whose working sets have at most ``q`` samples."""

    q: int = 1

    def __post_init__(self) -> None:
        _check_size("q", self.q)

    @property
    def largest(self) -> int:
        return self.q

    def resized(self, size: int) -> Self:
        return replace(self, q=size)


# Crammer & Singer, Section 7: accuracy ε(t) of the t-th pass, from ε₀ = 0.999 down.
COOLING: dict[str, Callable[[int], float]] = {
    "exponential": lambda t: 0.999 * math.exp(-t),
    "linear": lambda t: 0.999 / (t + 1),
    "logarithmic": lambda t: 0.999 / math.log10(t + 10),
}
# The logarithmic schedule alone would need 10^999 passes to come down to 1e-3, so a pass asks for at most
# this share of the violation the pass before it left.
COOLING_SHARE = 0.9


@dataclass(frozen=True)
class Greedy(FixedSize):
    """The ``q`` samples that are worst by some measure, among those that still violate.

    Parameters
    ----------
    q : int
        Size of the working set.
    active_set : bool
        First exhaust the samples that are support vectors already, and look at the others only when
        none of those violates (Crammer & Singer, Section 7).
    cooling : {None, "exponential", "linear", "logarithmic"}
        Reach the tolerance in passes of increasing accuracy ε(t).
    """

    rank: ClassVar[str]
    active_set: bool = False
    cooling: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cooling is not None and self.cooling not in COOLING:
            raise ValueError(f"cooling must be None or one of {', '.join(map(repr, COOLING))}.")

    def choose(self, engine: Engine, stop: str, tol: float, rng: np.random.Generator) -> Iterator[Choice]:
        groups = ("support", "rest") if self.active_set else ("near",)
        t, left = 0, math.inf
        while True:
            eps = self._accuracy(t, left, tol)
            violations: list[float] = []
            for group in groups:
                worst = engine.select(self.q, rank=self.rank, stop=stop, above=eps, among=group)
                violations.append(worst.violation)
                if len(worst.ids):
                    yield Choice(worst.ids, worst.violation, worst.gap)
                    break
            else:  # this pass is complete
                left = max(violations)
                if eps <= tol:
                    return
                t += 1

    def _accuracy(self, t: int, left: float, tol: float) -> float:
        if self.cooling is None:
            return tol
        return max(tol, min(COOLING[self.cooling](t), COOLING_SHARE * left))


@dataclass(frozen=True)
class MaxViolator(Greedy):
    """The largest ψ_i (Crammer & Singer, Section 5; q = 1 there)."""

    name: ClassVar[str] = "max-violator"
    rank: ClassVar[str] = "psi"


@dataclass(frozen=True)
class Gain(Greedy):
    """The largest g_i = -ℓ_i (Niu & Yuan, Algorithm 2)."""

    name: ClassVar[str] = "gain"
    rank: ClassVar[str] = "gain"


@dataclass(frozen=True)
class Practical(FixedSize):
    """Niu & Yuan's Algorithm 4: ``n_new`` largest g_i, the rest inherited from the previous set.

    Samples that still violate come first: with unequal costs, or when ψ decides the stop, those of the
    largest g_i need not be among them.
    Inherited first are free samples (C₀), then zero ones (C₁), then bounded ones (C₂); within a group
    those that spent the fewest consecutive iterations in the set.
    """

    name: ClassVar[str] = "practical"
    q: int = 400
    n_new: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_size("n_new", self.n_new)
        if self.n_new > self.q:
            raise ValueError(f"n_new must be at most q, got n_new={self.n_new} and q={self.q}.")

    def choose(self, engine: Engine, stop: str, tol: float, rng: np.random.Generator) -> Iterator[Choice]:
        last, stays = np.arange(0), np.zeros(engine.n, dtype=np.int32)  # how often in a row it was in the set
        while True:
            worst = engine.select(self.n_new, rank="gain", stop=stop, above=tol)
            if not len(worst.ids):
                return
            new = worst.ids
            if len(new) < self.n_new:
                rest = engine.select(self.n_new, rank="gain", stop=stop).ids
                new = np.concatenate([new, rest[~np.isin(rest, new)]])[: self.n_new]
            W = np.concatenate([new, self._inherit(engine, new, last, stays)])
            stayed, stays[last] = stays[W] + 1, 0
            stays[W], last = stayed, W
            yield Choice(W, worst.violation, worst.gap)

    def resized(self, size: int) -> Self:
        return replace(self, q=size, n_new=max(1, size // 2))

    def _inherit(self, engine: Engine, new: IntArray, last: IntArray, stays: np.ndarray) -> IntArray:
        candidates = np.sort(last[~np.isin(last, new, assume_unique=True)])
        order = np.lexsort((stays[candidates], engine.groups(candidates)))
        return candidates[order[: self.q - len(new)]]


@dataclass(frozen=True)
class Growing(WorkingSet):
    """All support vectors plus the worst violators: Crammer & Singer's active set, in batches.

    Starts from ``start`` random samples, or from all if there are at most ``whole``. A round adds the
    worst violators that are no support vectors: at most ``share`` of the support vectors' number, half of
    those that violate, and at least ``least``; if the engine keeps no kernel rows, newcomers cost little,
    and ``share_anew`` takes the place of ``share``. If more than the share ``everyone`` of the first set
    became support vectors, the next set is all samples, provided that its kernel block fits. If the set
    would be larger than ``most``, or its kernel block than the memory budget, only some support vectors take
    part: the worst violators for one half, then a random choice, free before bounded ones. With ``reach``,
    bounded support vectors that are farther inside the margin than that and the largest violation together
    stay out until the scores bring them nearer. With ``even``, newcomers are taken evenly from the classes:
    if a sum of coefficients is kept, samples of one class alone can hardly move.
    """

    name: ClassVar[str] = "growing"
    block_share: ClassVar[float] = 0.3
    grows: ClassVar[bool] = True
    by_pairs: ClassVar[bool] = True
    rank: str = "psi"
    start: int = 256
    whole: int = WHOLE_SAMPLES
    share: float = 0.3
    share_anew: float | None = None
    least: int = 128
    most: int | None = None
    reach: float = math.inf
    even: bool = False
    everyone: float = 1.0

    def __post_init__(self) -> None:
        _check_size("start", self.start)
        _check_size("least", self.least)
        _check_size("most", 1 if self.most is None else self.most)

    def resized(self, size: int) -> Self:
        return replace(self, most=size)

    def choose(self, engine: Engine, stop: str, tol: float, rng: np.random.Generator) -> Iterator[Choice]:
        n = len(everyone := engine.everyone())
        largest = min(engine.largest_block(), self.most or n)
        worst = engine.select(1, rank=self.rank, stop=stop, above=tol)
        if len(worst.ids) and not len(engine.support()):
            size = min(n if n <= self.whole else self.start, largest)
            W = everyone if size == n else np.sort(engine.draw(size, rng))
            yield Choice(self._with_pair(engine, W), worst.violation, worst.gap)
            if n <= largest and len(engine.support()) > self.everyone * size:
                yield Choice(everyone, worst.violation, worst.gap)
        while True:
            worst = engine.select(1, rank=self.rank, stop=stop, above=tol)
            if not len(worst.ids):
                return
            new = self._newcomers(engine, stop, tol, largest)
            support, room = engine.support(self.reach + worst.violation), largest - len(new)
            if len(support) > room:
                violators = engine.select(room, rank=self.rank, stop=stop, above=tol, among="support").ids
                support = self._part(engine, violators, room, rng)
            yield Choice(self._with_pair(engine, np.concatenate([support, new])), worst.violation, worst.gap)

    def _with_pair(self, engine: Engine, W: IntArray) -> IntArray:
        """A set of limited size with the steepest pair in it, if samples can only move in pairs."""
        if self.most is None or not engine.problem.balanced or len(W) < self.most:
            return W
        pair = np.concatenate(engine.pairs(1))
        return np.concatenate([pair, W[~np.isin(W, pair)]])[: self.most]

    def _part(self, engine: Engine, violators: IntArray, room: int, rng: np.random.Generator) -> IntArray:
        """As many support vectors as there is room for."""
        rest = np.setdiff1d(engine.support(), violators)
        rest = rest[np.lexsort((rng.permutation(len(rest)), engine.groups(rest)))]
        half = (room + 1) // 2
        return np.concatenate([violators[:half], rest, violators[half:]])[:room]

    def _newcomers(self, engine: Engine, stop: str, tol: float, largest: int) -> IntArray:
        """The worst violators among the samples that are no support vectors, right after a look at all."""
        share = self.share if engine.keeps_rows or self.share_anew is None else self.share_anew
        k = min(max(self.least, int(share * len(engine.support()))), (largest + 1) // 2)
        new = engine.select(k, rank=self.rank, stop=stop, above=tol, among="rest", even=self.even, seen=True)
        return new.ids[: max(self.least, new.above // 2)]


# Which inherited samples come first: by ``Engine.groups``.
_GROUPS = {"free": 0, "zero": 1, "bounded": 2}


@dataclass(frozen=True)
class SvmLight(WorkingSet):
    """Joachims' rule for c-svc, with Serafini, Zanghirati & Zanni's order of what is inherited (Section 4).

    The steepest feasible direction with at most ``n_c`` samples, problem (5); then samples of the previous
    set up to ``n_sp``, group by group in the order of ``fill``. The first set is filled at random.

    Parameters
    ----------
    n_sp : int
        Size of the working set, at least 2.
    n_c : int
        How many of them the direction may move; at most ``n_sp``.
    fill : tuple of str
        Order of "free" (0 < β < C), "zero" and "bounded" samples. The paper sometimes swaps the last two.
    select : {"steepest", "second-order"}
        "second-order" takes the steepest pair (i, j), then fills both halves with those samples that gain
        most in a pair with j or i: (ω_i - ω_j)² / 2(K_ii + K_jj - 2K_ij).
    """

    name: ClassVar[str] = "svm-light"
    by_pairs: ClassVar[bool] = True
    n_sp: int = 10
    n_c: int = 4
    fill: tuple[str, ...] = ("free", "zero", "bounded")
    select: str = "steepest"

    def __post_init__(self) -> None:
        _check_size("n_sp", self.n_sp)
        _check_size("n_c", self.n_c)
        if not 2 <= self.n_c <= self.n_sp:
            raise ValueError(f"2 <= n_c <= n_sp must hold, got n_c={self.n_c} and n_sp={self.n_sp}.")
        if sorted(self.fill) != sorted(_GROUPS):
            raise ValueError(f"fill must be an order of {', '.join(map(repr, _GROUPS))}, got {self.fill!r}.")
        if self.select not in ("steepest", "second-order"):
            raise ValueError(f"select must be 'steepest' or 'second-order', got {self.select!r}.")

    @property
    def largest(self) -> int:
        return self.n_sp

    def choose(self, engine: Engine, stop: str, tol: float, rng: np.random.Generator) -> Iterator[Choice]:
        previous = engine.draw(self.n_sp, rng)
        while True:
            worst = engine.select(1, stop=stop, above=tol)
            if not len(worst.ids):
                return
            new = np.concatenate(engine.pairs(self.n_c // 2, self.select == "second-order"))
            previous = np.concatenate([new, self._inherit(engine, previous, new)])
            yield Choice(previous, worst.violation, worst.gap)

    def resized(self, size: int) -> Self:
        return replace(self, n_sp=max(2, size), n_c=max(2, size // 2))

    def _inherit(self, engine: Engine, previous: IntArray, new: IntArray) -> IntArray:
        left = np.setdiff1d(previous, new)
        place = np.argsort([_GROUPS[name] for name in self.fill])
        order = np.lexsort((left, place[engine.groups(left)]))
        return left[order[: self.n_sp - len(new)]]


@dataclass(frozen=True)
class Cyclic(FixedSize):
    """Every sample in turn, whether it violates or not: the base line of Crammer & Singer's Section 7."""

    name: ClassVar[str] = "cyclic"

    def choose(self, engine: Engine, stop: str, tol: float, rng: np.random.Generator) -> Iterator[Choice]:
        while True:
            worst = engine.select(1, rank="psi", stop=stop, above=tol)
            if not len(worst.ids):
                return
            for first in range(0, len(everyone := engine.everyone()), self.q):
                W = everyone[first : first + self.q]
                yield Choice(W, worst.violation, worst.gap if first == 0 else math.nan)

    def patience(self, n: int) -> int:
        return math.ceil(n / self.q)


@dataclass(frozen=True)
class Random(FixedSize):
    """``q`` samples drawn at random each step, whether they violate or not: MSVMpack's rule (Didiot & Lauer).

    All samples are measured once per pass, that is, every n/q steps.
    """

    name: ClassVar[str] = "random"
    q: int = 10

    def choose(self, engine: Engine, stop: str, tol: float, rng: np.random.Generator) -> Iterator[Choice]:
        size = min(self.q, len(everyone := engine.everyone()))
        while True:
            worst = engine.select(1, rank="psi", stop=stop, above=tol)
            if not len(worst.ids):
                return
            for step in range(math.ceil(len(everyone) / self.q)):
                W = np.sort(rng.choice(everyone, size, replace=False, shuffle=False))
                yield Choice(W, worst.violation, worst.gap if step == 0 else math.nan)

    def patience(self, n: int) -> int:
        return 20 * math.ceil(n / self.q)  # all of them miss a given sample with a chance of e^-20


def _check_size(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}.")


RULES: tuple[type[WorkingSet], ...] = (MaxViolator, Gain, Practical, Growing, SvmLight, Cyclic, Random)
