"""Frank & Wolfe's method on a block: the inner solver of MSVMpack (Didiot & Lauer 2015, Section 3).

    u = argmin ⟨G_W, u⟩ over the feasible set,  d = u - α_W,  λ = min(1, -⟨G_W, d⟩ / ⟨d, K_WW d⟩),  α_W += λ d

(K_WW with the ridge of the machine, if it has one.) Every step is the exact minimum along its direction, so
the dual never rises, and a convex combination of feasible points is feasible. Without a free bias the linear
problem falls apart into samples (``Problem.vertex``). With one, u must have the class sums that α_W has:

    one-vs-rest      each class by itself: the largest gradients first, to the mass that the sum leaves
    lee-lin-wahba,   every class gets the same mass θ, shifted by its sum, smallest γ_ir first, and θ is where
    msvm2            the levels reached sum to zero: then another θ costs no less
    crammer-singer,  the cheapest flow of ``flows.py``
    weston-watkins

The method converges like 1/t, and is here for comparison: coordinate descent serves all machines better. For
msvm2, whose set is unbounded, the linear problem bounds β by a large multiple of C_i, as MSVMpack does by a
constant: vertices are far away, and a step hardly shrinks anything while something in the block is to grow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..problems.base import Problem, one_hot
from ..problems.box import BoxProblem, without_own
from ..problems.flows import cheapest_flow
from ..problems.quantiles import Levels, balance
from ..system.typing import FloatArray, LabelArray
from .base import ANY_SET, InnerSolver
from .block import Block


@dataclass(frozen=True)
class FrankWolfe(InnerSolver):
    """Steps of Frank & Wolfe's method, with exact line search.

    Parameters
    ----------
    balanced : bool
        Keep the class sums Σ_i α_i of the block: what a free bias asks for.
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

    def solve(self, problem: Problem, block: Block, eps: float, rng: np.random.Generator) -> int:
        alpha, G, y, C = block.alpha, block.G, block.y, block.C
        # ⟨-G, d⟩ is the sum of the samples' gaps, each at least 0: below it no g_i/c_i is above eps. A first
        # step is made even so: what is little here may be all that can be had while the class sums stay.
        enough = eps * problem.gap_scale * float(C.min())
        sums = alpha.sum(axis=0)
        for step in range(self.max_iter):
            if self.balanced:
                direction = balanced_vertex(problem, G, y, C, sums) - alpha
            else:
                direction = problem.vertex(G, y, C) - alpha
            gap = -float(np.vdot(G, direction))
            if gap <= (enough if step else 0.0):
                return step
            change = block.K @ direction
            curvature = float(np.vdot(direction, change))
            length = min(1.0, gap / curvature) if curvature > 0 else 1.0
            alpha += length * direction
            G += length * change
        return self.max_iter


def balanced_vertex(
    problem: Problem, G: FloatArray, y: LabelArray, C: FloatArray, sums: FloatArray
) -> FloatArray:
    """The u of least ⟨G, u⟩ with feasible rows and Σ_i u_i = sums, which some feasible point must have."""
    return _VERTICES[problem.name](problem, G, y, C, sums)


def _one_vs_rest(
    problem: Problem, G: FloatArray, y: LabelArray, C: FloatArray, sums: FloatArray
) -> FloatArray:
    # v_ir = C_i δ_{r,y_i} - u_ir is between 0 and C_i, and best where -G_ir is smallest.
    most = C[:, None] * one_hot(y, G.shape[1])
    levels = Levels(-G, np.broadcast_to(C[:, None], G.shape))
    return most - levels.fill(most.sum(axis=0) - sums)


def _shifted_box(
    problem: BoxProblem, G: FloatArray, y: LabelArray, C: FloatArray, sums: FloatArray
) -> FloatArray:
    # Σ_i α_ir = Σ_i β̄_i - Σ_i β_ir = sums_r: class r gets the mass θ - sums_r, θ = Σ_i β̄_i.
    weight = without_own(np.repeat(problem.farthest(C)[:, None], G.shape[1], axis=1), y)
    levels = Levels(-G, weight)
    return problem.alpha(levels.fill(balance(levels, sums) - sums), y)


def _crammer_singer(
    problem: Problem, G: FloatArray, y: LabelArray, C: FloatArray, sums: FloatArray
) -> FloatArray:
    return cheapest_flow(G, y, C, sums, joint=True).alpha


def _weston_watkins(
    problem: Problem, G: FloatArray, y: LabelArray, C: FloatArray, sums: FloatArray
) -> FloatArray:
    return cheapest_flow(G, y, C, sums, joint=False).alpha


_VERTICES: dict[str, Callable[..., FloatArray]] = {
    "crammer-singer": _crammer_singer,
    "weston-watkins": _weston_watkins,
    "lee-lin-wahba": _shifted_box,
    "msvm2": _shifted_box,
    "one-vs-rest": _one_vs_rest,
}
