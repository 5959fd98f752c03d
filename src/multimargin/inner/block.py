"""The subproblem of a working set, and how exactly to solve it.

Given a working set W, minimise over its rows alone, the others fixed (Niu & Yuan (2.6)):

    ½ ⟨Δ, K_WW Δ⟩ + ⟨G_W, Δ⟩,   Δ = α_W - α_W^old,   each α_i feasible.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..problems import Problem
from ..problems.base import DualRows
from ..system.fixed_point import decoded
from ..system.typing import FloatArray, IntArray, LabelArray

Measures = Callable[[DualRows], tuple[FloatArray, FloatArray]]  # ``Problem.measure``


@dataclass
class Block:
    """A working set with all that its subproblem needs. Solvers change ``alpha`` and ``G`` in place."""

    W: IntArray  # (q,) sample ids
    K: np.ndarray  # (q, q) kernel block; for coordinate descent perhaps fixed-point numbers
    diagonal: FloatArray  # (q,) exact K_ii, at least 1e-12 of the largest
    alpha: FloatArray  # (q, m)
    G: FloatArray  # (q, m)
    y: LabelArray
    C: FloatArray
    late: Callable[[], bool] = field(default=lambda: False, kw_only=True)  # whether the time limit has passed

    @property
    def movable(self) -> int:
        """How many of its samples can move."""
        return len(self.W)

    def rows(self) -> DualRows:
        """The block's samples as the machine sees them."""
        return DualRows(self.alpha, self.G, self.y, self.C)

    def kernel(self, rows: IntArray | slice, columns: IntArray) -> FloatArray:
        """K between some of its samples and others, by their places in the block, in float64."""
        return decoded(self.K[rows][:, columns])

    def shift_gradient(self, rows: IntArray, delta: FloatArray, most_bytes: float = math.inf) -> None:
        """G += K[:, rows] delta, in float64, with copies of parts of K in at most ``most_bytes``."""
        step = int(max(1, min(512, most_bytes // (16 * max(1, len(rows))))))
        for first in range(0, len(self.W), step):
            part = slice(first, first + step)
            self.G[part] += self.kernel(part, rows) @ delta


@dataclass(frozen=True)
class Aim:
    """How exactly to solve a block, in margin units.

    The block is solved to ``share`` of its own largest violation, but no further than ``least``. A block of
    one sample, or of the whole problem, is solved straight to ``least``, unless that is 0.
    """

    least: float
    share: float = 0.0

    def eps(
        self, problem: Problem, measure: str, block: Block, n: int, look: Measures | None = None
    ) -> float:
        """The tolerance in the solver's own ``measure``: "psi" (in units of the scores) or "gain".

        An engine may have a faster form of ``problem.measure``: ``look``.
        """
        psi = measure == "psi"
        least = self.least * (problem.kappa if psi else 1.0)
        if self.share == 0 or (least > 0 and block.movable in (1, n)):
            return least
        measures = (look or problem.measure)(block.rows())
        start = measures[0] if psi else problem.closeness(*measures, block.C)
        return max(self.share * float(start.max(initial=0.0)), least)
