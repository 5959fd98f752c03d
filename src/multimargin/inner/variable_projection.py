"""The variable projection method, the inner solver of VPDT (Serafini, Zanghirati & Zanni, Section 3).

P is the projection onto the block's box and sum (``projections.py``). From z = α_W with the gradient G, step
ℓ = 1, 2, … is

    z̄ = P(z - ρ G),   d = z̄ - z,   z ← z + θ d,   θ = min(1, -⟨d, G⟩ / ⟨d, K d⟩),   θ = 1 for ℓ = 1
    ρ ← ⟨d, K d⟩ / ‖K d‖²  if ℓ mod ℓ̃ < ℓ̃ / 2,   else  ‖d‖² / ⟨d, K d⟩

with the scaling S = I. ρ stays as it was if ‖K d‖² ≤ ε ‖d‖². Nearly all of the cost is the product K z̄. Most
entries of z̄ are 0, and only the kernel rows of the others are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..problems.base import Problem
from ..system.typing import FloatArray
from .base import InnerSolver
from .block import Block
from .feasible_sets import BalancedBox, check_projection


@dataclass(frozen=True)
class VariableProjection(InnerSolver):
    """Variable projection for blocks whose samples are coupled by their sum; see the module's head.

    Made for Gaussian kernels. Native engines run its products on all threads. The defaults are the paper's.

    Parameters
    ----------
    max_iter : int
        Largest number of steps. If they end with a larger dual (the first step may go up), the block is left
        as it was.
    rho : float
        The first projection parameter ρ₁.
    period : int
        ℓ̃, the number of steps within which the two rules for ρ alternate.
    flat : float
        ε: ρ stays as it is if ‖K d‖² ≤ ε ‖d‖².
    projection : {"pardalos-kovoor", "dai-fletcher"}
        How native engines project. Both find the same point: by a median of the breakpoints in O(q), or by
        secants.

    Examples
    --------
    >>> from multimargin import Decomposition, KernelSVC
    >>> from multimargin.inner import VariableProjection
    >>> from multimargin.working_set import SvmLight
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> solver = Decomposition(SvmLight(n_sp=40, n_c=20), VariableProjection())
    >>> KernelSVC(machine="c-svc", solver=solver).fit(X, y == 1).status_.converged
    True
    """

    name: ClassVar[str] = "vpm"
    handles: ClassVar[frozenset[str]] = frozenset({"balanced box"})
    by_products: ClassVar[bool] = True
    measure: ClassVar[str] = "psi"
    max_iter: int = 20_000
    rho: float = 1.0
    period: int = 6
    flat: float = 1e-16
    projection: str = "pardalos-kovoor"

    def __post_init__(self) -> None:
        check_projection(self.projection)
        if not self.rho > 0 or self.period < 1 or not self.flat >= 0 or self.max_iter < 0:
            raise ValueError(
                "rho must be positive, period at least 1, flat and max_iter at least 0, got "
                f"{self.rho!r}, {self.period!r}, {self.flat!r}, {self.max_iter!r}."
            )

    def solve(self, problem: Problem, block: Block, eps: float, rng: np.random.Generator) -> int:
        box = BalancedBox(problem, block)
        K = block.K.astype(np.float64, copy=False)
        z, G = block.alpha, block.G
        z_old, G_old = z.copy(), G.copy()
        Kz, rho, steps = _product(K, z), self.rho, 0
        left = box.closeness(block)
        while left > eps and steps < self.max_iter and not block.late():
            target = box.project(block, z - rho * G)
            d, Kd = target - z, _product(K, target) - Kz
            curvature, length = float(np.vdot(d, Kd)), float(np.vdot(Kd, Kd))
            # d sums to 0, so the bias in G cancels. G is at the best bias, which keeps the rounding small.
            slope = float(np.vdot(d, G))
            theta = 1.0 if steps == 0 or curvature <= 0 else min(1.0, -slope / curvature)
            if not theta > 0 or not d.any():
                break
            steps += 1
            z[:] = box.towards(block, target, theta)
            Kz += theta * Kd
            G += theta * Kd
            if curvature > 0 and length > self.flat * np.vdot(d, d):
                first = 2 * (steps % self.period) < self.period
                rho = curvature / length if first else float(np.vdot(d, d)) / curvature
            left = box.closeness(block)
        delta = z - z_old
        K_delta = _product(K, delta)
        G[:] = G_old + K_delta
        if left > eps and float(np.vdot(delta, G_old + 0.5 * K_delta)) > 0:
            z[:], G[:] = z_old, G_old
        return steps


def _product(K: FloatArray, v: FloatArray) -> FloatArray:
    """K v from the rows (K is symmetric) of the entries of v that are not 0."""
    rows = np.flatnonzero(v)
    return np.asarray(K[rows].T @ v[rows])
