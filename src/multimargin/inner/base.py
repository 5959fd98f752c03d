"""The interface of a solver of the block subproblem (``block.py``).

Each class declares its parameters and the feasible sets it can handle, and ``solve`` is its executable
specification in plain NumPy; engines may run a native version of the same method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from ..problems.base import Problem
from .block import Block

ANY_SET = frozenset({"simplex", "box", "shifted box", "cone"})  # the feasible sets of single rows


@dataclass(frozen=True)
class InnerSolver(ABC):
    """Base of the inner solvers."""

    name: ClassVar[str]
    handles: ClassVar[frozenset[str]]  # feasible sets
    measure: ClassVar[
        str
    ]  # what ``eps`` bounds: "psi" (max ψ_i, in units of the scores) or "gain" (max g_i/c_i)
    lazy: ClassVar[bool] = False  # whether engines may leave K out where a machine lets it do with few rows

    @property
    def keeps_sums(self) -> bool:
        """Whether its steps leave Σ_i α_i as it was, so that a free bias needs nothing else."""
        return False

    @abstractmethod
    def solve(self, problem: Problem, block: Block, eps: float, rng: np.random.Generator) -> int:
        """Solve the block to ``eps`` in place; return the iterations (single-sample updates for CD)."""

    def check(self, problem: Problem) -> None:
        """Raise ``ValueError`` if the machine is not for this solver."""
        if problem.feasible_set not in self.handles:
            able = [c.name for c in InnerSolver.__subclasses__() if problem.feasible_set in c.handles]
            raise ValueError(
                f"{self.name} cannot handle the {problem.feasible_set} of {problem.name}; "
                f"use {' or '.join(able)}."
            )


class Finisher(InnerSolver):
    """An inner solver for blocks that are nearly solved: a part of another one, no solver by itself."""

    handles: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def within(self, work: int, memory: int) -> Self:
        """The same, refusing what would take longer than so much work of descent, or more bytes."""

    @abstractmethod
    def fits(self, block: Block, eps: float) -> bool:
        """Whether it is worth while: the block is nearly solved, and what is undecided is small."""
