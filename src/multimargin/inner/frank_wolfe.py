"""Frank & Wolfe's method on a block: the inner solver of MSVMpack (Didiot & Lauer 2015, Section 3).

    u = argmin ⟨G_W, u⟩ over the feasible set,  d = u - α_W,  λ = min(1, -⟨G_W, d⟩ / ⟨d, K_WW d⟩),  α_W += λ d

K_WW includes the ridge of the machine, if it has one. Every step is the exact minimum along its direction, so
the dual never rises, and a convex combination of feasible points is feasible. Without a free bias the linear
problem separates into samples (``Problem.vertex``). With one, u must have the class sums of α_W
(``Problem.balanced_vertex``).

The method converges like 1/t and is here for comparison: coordinate descent is faster for all machines. The
feasible set of msvm2 is unbounded, so its linear problem bounds β by a large multiple of C_i (MSVMpack uses a
constant). Vertices are far away then, and steps are short as long as some sample of the block must grow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..problems.base import Problem
from .base import ANY_SET, InnerSolver
from .block import Block


@dataclass(frozen=True)
class FrankWolfe(InnerSolver):
    """Steps of Frank & Wolfe's method, with exact line search.

    Parameters
    ----------
    balanced : bool
        Keep the class sums Σ_i α_i of the block, as a free bias requires.
    max_iter : int
        Largest number of steps on a block; MSVMpack makes one.
    """

    name: ClassVar[str] = "frank-wolfe"
    handles: ClassVar[frozenset[str]] = ANY_SET
    measure: ClassVar[str] = "gain"
    balanced: bool = False
    max_iter: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.max_iter, bool) or not isinstance(self.max_iter, int) or self.max_iter < 1:
            raise ValueError(f"max_iter must be an integer >= 1, got {self.max_iter!r}.")

    @property
    def keeps_sums(self) -> bool:
        return self.balanced

    def block_bytes(self, itemsize: int) -> int:
        return 0 if itemsize == 8 else 8  # products are in float64

    def solve(self, problem: Problem, block: Block, eps: float, rng: np.random.Generator) -> int:
        alpha, G, y, C = block.alpha, block.G, block.y, block.C
        # ⟨-G, d⟩ is the sum of the samples' gaps g_i ≥ 0: below ``enough`` no g_i/c_i is above eps. A first
        # step is made in any case: if the class sums are kept, even the best gap may be that small.
        enough = eps * problem.gap_scale * float(C.min())
        sums = alpha.sum(axis=0)
        for step in range(self.max_iter):
            vertex = problem.balanced_vertex(G, y, C, sums) if self.balanced else problem.vertex(G, y, C)
            if vertex is None:
                return step
            direction = vertex - alpha
            gap = -float(np.vdot(G, direction))
            if gap <= (enough if step else 0.0) or block.late():
                return step
            change = block.K @ direction
            curvature = float(np.vdot(direction, change))
            length = min(1.0, gap / curvature) if curvature > 0 else 1.0
            alpha += length * direction
            G += length * change
        return self.max_iter
