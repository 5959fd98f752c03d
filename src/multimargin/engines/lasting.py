"""What a search asks of an engine beside the seam: many fits to the same samples with the same kernel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, Self

from ..system.typing import FloatArray, IntArray
from .base import Engine, Task


class Place(Protocol):
    """A point that a fit has reached, and what its engine knows of the scores there."""

    alpha: FloatArray  # (n, m)

    def scaled(self, factor: float) -> Self:
        """The point ``factor`` alpha: its scores need no kernel value."""

    def at(self, alpha: FloatArray) -> Self:
        """The same with ``alpha``, which differs by rounding alone."""


class Lasting(Engine):
    """An engine that outlives a fit, and keeps its kernel values for the next one.

    Fits may differ in costs, in where they start, and in the samples that are left out. The first task must
    have the largest costs of all: the precision of kernel values depends on them.
    """

    task: Task

    def serves(self, task: Task) -> bool:
        """Whether ``task`` has the machine and the kernel values of this engine."""
        mine = self.task
        same = task.X is mine.X and task.kernel == mine.kernel and task.offset == mine.offset
        return same and type(task.problem) is type(mine.problem)

    def check_serves(self, task: Task) -> None:
        """Raise ``ValueError`` if it does not."""
        if not self.serves(task):
            raise ValueError("Another fit of an engine needs the same machine, samples, kernel and offset.")

    @property
    def may_have_twins(self) -> bool:
        """Whether several fits may run at the same time, in threads, with the same kernel values."""
        return False

    def twins(self, count: int) -> list[Self]:
        """Engines for ``count`` fits at the same time, or none; they divide the threads and the memory."""
        return []

    def lent_to(self, twins: Sequence[Self]) -> AbstractContextManager[None]:
        """Lend the kernel values to twins: they are used inside of the context, and this one is not."""
        return nullcontext()

    @abstractmethod
    def another(self, task: Task, near: Any = None) -> None:
        """Begin another fit to the same samples with the same kernel: the kernel values stay.

        Costs, start and the samples that are left out may be others. The gradient of the start is computed
        from that of ``near``, a ``Place`` that an earlier fit of this engine has reached, or from zero.
        """

    @abstractmethod
    def reached(self) -> Any:
        """The current point as a ``Place``, for another fit to start near it."""

    @abstractmethod
    def scores(self, ids: IntArray) -> FloatArray:
        """What a model of the current point scores the samples ``ids``, in the precision of G."""
