"""The processes that hold one problem together, each with some of its samples.

Whatever is decided from all samples is decided through the team, so that every process decides the same:
sums and maxima, the largest scores, the set of labels, and what one process alone can know (its clock, a
callback's answer, a random seed). One process is a team of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from .typing import FloatArray, IntArray

Value = TypeVar("Value")


class Processes(ABC):
    """Processes that work on one thing together, and that tell each other what they know."""

    rank: int = 0  # the number of this process
    size: int = 1

    @abstractmethod
    def collect(self, value: Value) -> list[Value]:
        """Every process's value, in the order of ranks: small objects, which are pickled."""

    def attempt(self, work: Callable[[], Value]) -> Value:
        """What ``work`` returns here; if it fails in some process, an error in all of them.

        ``work`` must not call any verb. The error is that of the first process that has one; its
        ``raised_on`` is the rank of this one, so that a program can tell it once.
        """
        result, error = None, None
        try:
            result = work()
        except Exception as failure:
            error = failure
        told = self.collect(None if error is None else (type(error), str(error)))
        for rank, failed in enumerate(told):
            if failed is not None:
                shared = _error_of(rank, *failed)
                shared.raised_on = self.rank  # type: ignore[attr-defined]
                raise shared from error
        return cast("Value", result)


class Team(Processes):
    """All processes of a fit.

    Every verb must be called by all processes, in the same order. What it returns is the same in each of
    them, to the last bit.
    """

    ranks_on_host: int = 1  # processes of the team that share this host's memory
    core_share: float = (
        1.0  # of the cores that this process may use, if other processes of the team may use them too
    )
    uniform: bool = True  # whether the same calculation gives the same bits in every process

    @abstractmethod
    def sum(self, x: ArrayLike) -> FloatArray:
        """The sum of every process's ``x``, entry by entry, with the same bits in every process."""

    @abstractmethod
    def max(self, x: float) -> float:
        """The largest ``x``."""

    @abstractmethod
    def union(self, values: np.ndarray) -> np.ndarray:
        """The different values of all processes, ascending."""

    @abstractmethod
    def top(self, ids: IntArray, score: FloatArray, k: int, most: int | None = None) -> IntArray:
        """Ids of the ``k`` largest positive scores, largest first; among equals the smallest id.

        ``most`` is how many positive scores a process has at most, if that is known: so many are sent.
        """

    @abstractmethod
    def agree(self, value: Value) -> Value:
        """The value of the first process."""

    @abstractmethod
    def join(self, mine: np.ndarray, counts: Sequence[int] | None = None) -> np.ndarray:
        """The rows of every process's array, one process after the other.

        The arrays differ in their number of rows at most. ``counts`` has these numbers, if they are known:
        then one message is enough.
        """

    @abstractmethod
    def gather(self, mine: np.ndarray) -> np.ndarray:
        """Every process's array of numbers, all of one shape; the first axis is the rank."""

    def together(self) -> AbstractContextManager[Any]:
        """Context of a fit: an exception in one process ends all of them."""
        return nullcontext()

    def facts(self) -> dict[str, object]:
        """What the messages have cost so far, for the trace."""
        return {}


class Solo(Team):
    """A team of one process."""

    def sum(self, x: ArrayLike) -> FloatArray:
        return np.asarray(x, dtype=np.float64)

    def max(self, x: float) -> float:
        return x

    def union(self, values: np.ndarray) -> np.ndarray:
        return np.unique(values)

    def top(self, ids: IntArray, score: FloatArray, k: int, most: int | None = None) -> IntArray:
        return np.asarray(ids[largest_first(score, k)])

    def agree(self, value: Value) -> Value:
        return value

    def join(self, mine: np.ndarray, counts: Sequence[int] | None = None) -> np.ndarray:
        return mine

    def gather(self, mine: np.ndarray) -> np.ndarray:
        return mine[None]

    def collect(self, value: Value) -> list[Value]:
        return [value]

    def attempt(self, work: Callable[[], Value]) -> Value:
        return work()


def _error_of(rank: int, kind: type[Exception], message: str) -> Exception:
    """The error of another process, of the same class if that can be made of a message alone."""
    text = f"{message} (on rank {rank})"
    try:
        return kind(text)
    except Exception:  # the constructor wants something else than a message, and may say so by any error
        return RuntimeError(f"{kind.__name__}: {text}")


SOLO = Solo()


def largest_first(score: FloatArray, k: int, above: float = 0.0) -> IntArray:
    """Positions of the ``k`` largest scores that are ``above``, largest first; equals in their order."""
    if k == 1:
        best = score.argmax()
        return np.array([best][: int(score[best] > above)], dtype=np.int64)
    top = np.argpartition(-score, k - 1)[:k] if k < len(score) else np.arange(len(score))
    top = top[score[top] > above]
    return np.asarray(top[np.lexsort((top, -score[top]))], dtype=np.int64)
