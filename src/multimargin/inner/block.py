"""The subproblem of a working set.

Given a working set W, minimise over its rows alone, the others fixed (Niu & Yuan (2.6)):

    ½ ⟨Δ, K_WW Δ⟩ + ⟨G_W, Δ⟩,   Δ = α_W - α_W^old,   each α_i feasible.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..problems.base import DualRows
from ..system.typing import FloatArray, IntArray, LabelArray


class Block(NamedTuple):
    """A working set with all that its subproblem needs. Solvers change ``alpha`` and ``G`` in place."""

    W: IntArray  # (q,) sample ids
    K: np.ndarray  # (q, q) kernel block
    diagonal: FloatArray  # (q,) exact K_ii, at least 1e-12 of the largest
    alpha: FloatArray  # (q, m)
    G: FloatArray  # (q, m)
    y: LabelArray
    C: FloatArray
    lazy: bool = False  # whether K is only room for rows that the engine's solver will compute
    slots: IntArray | None = None  # K is the engine's row store, and these its rows; -1 cannot move

    @property
    def movable(self) -> int:
        """How many of its samples can move."""
        return len(self.W) if self.slots is None else int(np.count_nonzero(self.slots >= 0))

    def rows(self) -> DualRows:
        """The block's samples as the machine sees them."""
        return DualRows(self.alpha, self.G, self.y, self.C)

    def shift_gradient(self, rows: IntArray, delta: FloatArray, step: int = 512) -> None:
        """G += K[:, rows] delta, in float64."""
        for first in range(0, len(self.W), step):
            part = slice(first, first + step)
            self.G[part] += self.K[part][:, rows].astype(np.float64) @ delta
