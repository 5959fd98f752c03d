"""The feasible set of a block as gradient projection sees it: rows by themselves, or coupled by their sum."""

from __future__ import annotations

import numpy as np

from ..problems.base import Problem
from ..problems.projections import project_balanced
from ..system.typing import FloatArray
from .block import Block

PROJECTIONS = ("pardalos-kovoor", "dai-fletcher")  # how native engines search for the λ of ``projections.py``


def check_projection(method: str) -> None:
    """Raise ``ValueError`` if there is no such search."""
    if method not in PROJECTIONS:
        raise ValueError(f"Unknown projection {method!r}; use one of {', '.join(map(repr, PROJECTIONS))}.")


class RowSets:
    """The feasible set of a block whose rows are each in a set of their own."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def project(self, block: Block, w: FloatArray) -> FloatArray:
        """The nearest point of the set to ``w``."""
        return self.problem.project(w, block.y, block.C)

    def towards(self, block: Block, target: FloatArray, step: float) -> FloatArray:
        """The point at this share, at most 1, of the way to ``target``."""
        return target if step == 1 else block.alpha + step * (target - block.alpha)

    def closeness(self, block: Block) -> float:
        """The largest measure g_i / c_i of the block's samples."""
        return float(self.problem.closeness(*self.problem.measure(block.rows()), block.C).max())


class BalancedBox(RowSets):
    """The feasible set of a block with bounds and with the sum that its samples have at the start."""

    def __init__(self, problem: Problem, block: Block) -> None:
        super().__init__(problem)
        self.low, self.high = problem.bounds(block.y, block.C)
        self.total = float(block.alpha.sum())

    def project(self, block: Block, w: FloatArray) -> FloatArray:
        return project_balanced(w[:, 0], self.low, self.high, self.total)[:, None]

    def towards(self, block: Block, target: FloatArray, step: float) -> FloatArray:
        return np.clip(super().towards(block, target, step), self.low[:, None], self.high[:, None])

    def closeness(self, block: Block) -> float:
        """The largest violation at the best bias; G is shifted to this bias.

        It is 0 if all samples are at the same end of their boxes: then nothing can move.
        """
        shift = self.problem.centre(block.rows())
        if not np.isfinite(shift):
            return 0.0
        block.G[:] += shift
        return float(self.problem.measure(block.rows())[0].max())
