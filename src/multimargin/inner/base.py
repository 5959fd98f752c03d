"""The interface of a solver of the block subproblem (``block.py``).

Each class declares its parameters and the feasible sets it can handle. ``solve`` is its executable
specification in plain NumPy. An engine may run a native version of the same method instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from ..problems import Problem
from .block import Block

ANY_SET = frozenset({"simplex", "box", "shifted box", "cone"})  # feasible sets that belong to single rows


@dataclass(frozen=True)
class InnerSolver(ABC):
    """Base of the inner solvers."""

    name: ClassVar[str]
    handles: ClassVar[frozenset[str]]  # feasible sets
    measure: ClassVar[str]  # what eps bounds: "psi" (max ψ_i, in units of the scores) or "gain" (max g_i/c_i)
    by_products: ClassVar[bool] = False  # whether all it needs of a native block are products with it
    fixed_point: ClassVar[frozenset[str]] = frozenset()  # machines whose blocks may have fixed-point values
    together: ClassVar[frozenset[str]] = frozenset()  # machines whose blocks several processes may share
    lazy: ClassVar[bool] = False  # whether it may ask for kernel rows one by one instead of the whole block

    @property
    def keeps_sums(self) -> bool:
        """Whether its steps leave Σ_i α_i unchanged, so that a free bias needs nothing else."""
        return False

    def looks_at_all(self, samples: int, m: int) -> bool:
        """Whether it measures all samples of a block of this size before every round.

        Then it needs whole kernel rows.
        """
        return False

    def block_bytes(self, itemsize: int) -> int:
        """Memory that it needs beside the block, per kernel value of ``itemsize`` bytes.

        Work space that an engine provides does not count, nor what grows more slowly than the block.
        """
        return 0

    @abstractmethod
    def solve(self, problem: Problem, block: Block, eps: float, rng: np.random.Generator) -> int:
        """Solve the block to ``eps`` in place; return the iterations (single-sample updates for CD)."""

    def check(self, problem: Problem) -> None:
        """Raise ``ValueError`` if the solver cannot handle the machine."""
        if problem.feasible_set not in self.handles:
            from . import SOLVERS  # the list needs all solvers, and each of them this file

            able = [solver.name for solver in SOLVERS if problem.feasible_set in solver.handles]
            raise ValueError(
                f"{self.name} cannot handle the {problem.feasible_set} of {problem.name}; "
                f"use {' or '.join(able)}."
            )


class Finisher(InnerSolver):
    """A solver for blocks that are nearly solved: a part of another solver, not one by itself."""

    @abstractmethod
    def within(self, work: int, memory: int) -> Self:
        """The same finisher, refusing what would take more than ``work`` of descent, or more bytes."""

    @abstractmethod
    def fits(self, block: Block, eps: float) -> bool:
        """Whether using it pays: the block is nearly solved, and what is undecided is small."""
