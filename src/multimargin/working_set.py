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

from .typing import IntArray

if TYPE_CHECKING:
    from .engines.base import Engine


class Choice(NamedTuple):
    """A working set and what was seen when it was chosen."""

    W: IntArray
    violation: float  # largest stopping measure among the samples examined
    gap: float = math.nan  # duality gap, where all samples were examined


@dataclass(frozen=True)
class WorkingSet(ABC):
    """Base of the selection rules."""

    name: ClassVar[str]
    block_share: ClassVar[float] = 0.0  # of the memory budget, for kernel blocks of large working sets
    grows: ClassVar[bool] = False  # whether a working set has most samples of the one before

    @abstractmethod
    def choose(self, engine: Engine, stop: str, tol: float, rng: np.random.Generator) -> Iterator[Choice]:
        """Yield working sets until the ``stop`` measure ("psi" or "gain") is at most ``tol`` everywhere."""

    @abstractmethod
    def resized(self, size: int) -> Self:
        """The same rule with working sets of (at most) ``size`` samples."""

    def patience(self, n: int) -> int:
        """How many steps in a row may change nothing before the rule is stuck."""
        return 1


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
class Greedy(WorkingSet):
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
    q: int = 1
    active_set: bool = False
    cooling: str | None = None

    def __post_init__(self) -> None:
        _check_size("q", self.q)
        if self.cooling is not None and self.cooling not in COOLING:
            raise ValueError(f"cooling must be None or one of {', '.join(map(repr, COOLING))}.")

    def choose(self, engine: Engine, stop: str, tol: float, rng: np.random.Generator) -> Iterator[Choice]:
        groups = ("support", "rest") if self.active_set else ("near",)
        t, left = 0, math.inf
        while True:
            eps = self._accuracy(t, left, tol)
            violations: list[float] = []
            for group in groups:
                worst = engine.worst(self.q, rank=self.rank, stop=stop, above=eps, among=group)
                violations.append(worst.violation)
                if len(worst.ids):
                    yield Choice(worst.ids, worst.violation, worst.gap)
                    break
            else:  # this pass is complete
                left = max(violations)
                if eps <= tol:
                    return
                t += 1

    def resized(self, size: int) -> Self:
        return replace(self, q=size)

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
class Practical(WorkingSet):
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
        _check_size("q", self.q)
        _check_size("n_new", self.n_new)
        if self.n_new > self.q:
            raise ValueError(f"n_new must be at most q, got n_new={self.n_new} and q={self.q}.")

    def choose(self, engine: Engine, stop: str, tol: float, rng: np.random.Generator) -> Iterator[Choice]:
        previous = np.empty(0, dtype=np.int64)
        stays = np.zeros(engine.n, dtype=np.int64)
        while True:
            worst = engine.worst(self.n_new, rank="gain", stop=stop, above=tol)
            if not len(worst.ids):
                return
            new = worst.ids
            if len(new) < self.n_new:
                rest = engine.worst(self.n_new, rank="gain", stop=stop).ids
                new = np.concatenate([new, rest[~np.isin(rest, new)]])[: self.n_new]
            W = np.concatenate([new, self._inherit(engine, previous, new, stays)])
            longer = stays[W] + 1
            stays[previous] = 0
            stays[W] = longer
            previous = W
            yield Choice(W, worst.violation, worst.gap)

    def resized(self, size: int) -> Self:
        return replace(self, q=size, n_new=max(1, size // 2))

    def _inherit(self, engine: Engine, previous: IntArray, new: IntArray, stays: IntArray) -> IntArray:
        candidates = np.setdiff1d(previous, new)
        order = np.lexsort((stays[candidates], engine.groups(candidates)))
        return candidates[order[: self.q - len(new)]]


@dataclass(frozen=True)
class Growing(WorkingSet):
    """All support vectors plus the worst violators: Crammer & Singer's active set, in batches.

    Starts from ``start`` random samples, or from all where there are at most ``whole``. A round adds the
    worst violators that are no support vectors: at most ``share`` of the support vectors' number, half of
    those that violate, and at least ``least``. Where more than ``everyone`` of the first set became support
    vectors, the next one is all samples, if its kernel block fits.
    Where the set would pass ``most`` or its kernel block the memory budget, only a part of the support
    vectors takes part: the worst violators for one half, then a random choice, free before bounded ones.
    """

    name: ClassVar[str] = "growing"
    block_share: ClassVar[float] = 0.3
    grows: ClassVar[bool] = True
    rank: str = "psi"
    start: int = 256
    whole: int = 2048
    share: float = 0.3
    least: int = 128
    most: int | None = None
    everyone: float = 1.0

    def __post_init__(self) -> None:
        _check_size("start", self.start)
        _check_size("least", self.least)
        if self.most is not None:
            _check_size("most", self.most)

    def resized(self, size: int) -> Self:
        return replace(self, most=size)

    def choose(self, engine: Engine, stop: str, tol: float, rng: np.random.Generator) -> Iterator[Choice]:
        largest = min(engine.largest_block(), self.most or engine.n)
        worst = engine.worst(1, rank=self.rank, stop=stop, above=tol)
        if len(worst.ids) and not len(engine.support):
            size = min(engine.n if engine.n <= self.whole else self.start, largest)
            yield Choice(np.sort(rng.permutation(engine.n)[:size]), worst.violation, worst.gap)
            if engine.n <= largest and len(engine.support) > self.everyone * size:
                yield Choice(np.arange(engine.n), worst.violation, worst.gap)
        while True:
            worst = engine.worst(1, rank=self.rank, stop=stop, above=tol)
            if not len(worst.ids):
                return
            support, new = engine.support, self._newcomers(engine, stop, tol, largest)
            room = largest - len(new)
            if len(support) > room:
                violators = engine.worst(room, rank=self.rank, stop=stop, above=tol, among="support").ids
                support = self._part(engine, violators, room, rng)
            yield Choice(np.concatenate([support, new]), worst.violation, worst.gap)

    def _part(self, engine: Engine, violators: IntArray, room: int, rng: np.random.Generator) -> IntArray:
        """As many support vectors as there is room for."""
        rest = np.setdiff1d(engine.support, violators)
        rest = rest[np.lexsort((rng.permutation(len(rest)), engine.groups(rest)))]
        half = (room + 1) // 2
        return np.concatenate([violators[:half], rest, violators[half:]])[:room]

    def _newcomers(self, engine: Engine, stop: str, tol: float, largest: int) -> IntArray:
        """The worst violators among the samples that are no support vectors."""
        most = max(self.least, int(self.share * len(engine.support)))
        new = engine.worst(min(most, (largest + 1) // 2), rank=self.rank, stop=stop, above=tol, among="rest")
        return new.ids[: max(self.least, engine.violators // 2)]


@dataclass(frozen=True)
class Cyclic(WorkingSet):
    """Every sample in turn, whether it violates or not: the base line of Crammer & Singer's Section 7."""

    name: ClassVar[str] = "cyclic"
    q: int = 1

    def __post_init__(self) -> None:
        _check_size("q", self.q)

    def choose(self, engine: Engine, stop: str, tol: float, rng: np.random.Generator) -> Iterator[Choice]:
        while True:
            worst = engine.worst(1, rank="psi", stop=stop, above=tol)
            if not len(worst.ids):
                return
            for first in range(0, engine.n, self.q):
                W = np.arange(first, min(first + self.q, engine.n))
                yield Choice(W, worst.violation, worst.gap if first == 0 else math.nan)

    def resized(self, size: int) -> Self:
        return replace(self, q=size)

    def patience(self, n: int) -> int:
        return math.ceil(n / self.q)


@dataclass(frozen=True)
class Random(WorkingSet):
    """``q`` samples drawn at random each step, whether they violate or not: MSVMpack's rule (Didiot & Lauer).

    All samples are measured once a pass, that is, every n/q steps.
    """

    name: ClassVar[str] = "random"
    q: int = 10

    def __post_init__(self) -> None:
        _check_size("q", self.q)

    def choose(self, engine: Engine, stop: str, tol: float, rng: np.random.Generator) -> Iterator[Choice]:
        size = min(self.q, engine.n)
        while True:
            worst = engine.worst(1, rank="psi", stop=stop, above=tol)
            if not len(worst.ids):
                return
            for step in range(math.ceil(engine.n / self.q)):
                W = np.sort(rng.choice(engine.n, size, replace=False, shuffle=False))
                yield Choice(W, worst.violation, worst.gap if step == 0 else math.nan)

    def resized(self, size: int) -> Self:
        return replace(self, q=size)

    def patience(self, n: int) -> int:
        return 20 * math.ceil(n / self.q)  # all of them miss a given sample with a chance of e^-20


def _check_size(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {value!r}.")
