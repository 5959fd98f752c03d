"""Projected gradient over a block (Niu & Yuan, Section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..problems.base import Problem
from ..problems.projections import BalancedBox, check_projection
from ..system.typing import FloatArray
from .base import ANY_SET, InnerSolver
from .block import Block


class RowSets:
    """The feasible set of a block whose rows are each in a set of their own."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def project(self, block: Block, w: FloatArray) -> FloatArray:
        """The nearest point of the set to ``w``."""
        return self.problem.project(w, block.y, block.C)

    def towards(self, block: Block, target: FloatArray, step: float) -> FloatArray:
        """The point at this part, up to 1, of the way to ``target``."""
        return target if step == 1 else block.alpha + step * (target - block.alpha)

    def closeness(self, block: Block) -> float:
        """How far the block is from solved."""
        return float(self.problem.closeness(*self.problem.measure(block.rows()), block.C).max())


@dataclass(frozen=True)
class ProjectedGradient(InnerSolver):
    """Projected gradient, Niu & Yuan's Algorithm 3.

    Exact projection, multi-step Barzilai-Borwein lengths over the last ``memory`` + 1 pairs, Dai &
    Fletcher's nonmonotone line search with ``patience`` failures, stop on max_i g_i/c_i ≤ eps; where samples
    are coupled by their sum (c-svc), on the violation at the best bias, which is larger.

    Parameters
    ----------
    max_iter : int
        Largest number of steps.
    rho_min, rho_max : float
        Bounds of the step length.
    memory : int
        A step length is made of up to ``memory`` + 1 pairs.
    patience : int
        Failures to improve on the best value before the reference value is lowered.
    initial_step : {"projected", "ell"}
        The first length: Dai & Fletcher's 1/‖P(w - F) - w‖_∞, or the paper's 1/‖ℓ‖_∞.
    projection : {"pardalos-kovoor", "dai-fletcher"}
        How to project where samples are coupled (``balanced_box.py``).

    Examples
    --------
    >>> from multimargin import Decomposition, KernelSVC
    >>> from multimargin.inner import ProjectedGradient
    >>> from multimargin.working_set import SvmLight
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> solver = Decomposition(SvmLight(n_sp=150, n_c=150), ProjectedGradient())
    >>> KernelSVC(machine="c-svc", solver=solver).fit(X, y == 1).status_.converged
    True
    """

    name: ClassVar[str] = "projected-gradient"
    handles: ClassVar[frozenset[str]] = ANY_SET | {"balanced box"}
    measure: ClassVar[str] = "gain"
    max_iter: int = 2_000
    rho_min: float = 1e-10
    rho_max: float = 1e10
    memory: int = 2
    patience: int = 2
    initial_step: str = "projected"
    projection: str = "pardalos-kovoor"
    refresh_every: ClassVar[int] = 100

    def __post_init__(self) -> None:
        if self.initial_step not in ("projected", "ell"):
            raise ValueError(f"initial_step must be 'projected' or 'ell', got {self.initial_step!r}.")
        check_projection(self.projection)

    def solve(self, problem: Problem, block: Block, eps: float, rng: np.random.Generator) -> int:
        w, F, K = block.alpha, block.G, block.K
        feasible = BalancedBox(problem, block, self.projection) if problem.balanced else RowSets(problem)
        w_old, G_old = w.copy(), F.copy()
        f = f_best = f_c = 0.0
        f_ref, failures = np.inf, 0
        pairs: list[tuple[float, float]] = []  # (⟨s, s⟩, ⟨s, y⟩), oldest first
        w_best = w.copy()
        left = feasible.closeness(block)
        rho = self._clip(self._first_step(problem, feasible, block))
        for iteration in range(self.max_iter):
            if left <= eps:
                break
            target = feasible.project(block, w - rho * F)
            d = target - w
            Hd = K @ d
            slope, curvature = float(np.vdot(F, d)), float(np.vdot(d, Hd))
            theta = 1.0
            search = not pairs or f + slope + 0.5 * curvature > f_ref  # the first length is a guess
            if search and curvature > 0:
                theta = min(1.0, -slope / curvature)
            w[:] = feasible.towards(block, target, theta)
            F += theta * Hd
            f += theta * slope + 0.5 * theta**2 * curvature
            pairs = [*pairs, (theta**2 * float(np.vdot(d, d)), theta**2 * curvature)][-self.memory - 1 :]
            rho = self._next_step(pairs)
            if f < f_best:
                f_best = f_c = f
                failures = 0
                w_best[:] = w
            else:
                f_c, failures = max(f_c, f), failures + 1
                if failures == self.patience:
                    f_ref, f_c, failures = f_c, f, 0
            if (iteration + 1) % self.refresh_every == 0:
                F[:] = G_old + K @ (w - w_old)
            left = feasible.closeness(block)
        else:  # cut short, and nonmonotone: hand back the best point seen
            w[:] = w if f <= f_best else w_best
        F[:] = G_old + K @ (w - w_old)
        return iteration

    def _first_step(self, problem: Problem, feasible: RowSets | BalancedBox, block: Block) -> float:
        if self.initial_step == "ell":
            gain = problem.measure(block.rows())[1]
            return 1.0 / max(float((gain / block.C**2).max()), 1e-300)
        move = feasible.project(block, block.alpha - block.G) - block.alpha
        return 1.0 / max(float(np.abs(move).max()), 1e-300)

    def _next_step(self, pairs: list[tuple[float, float]]) -> float:
        newest: list[tuple[float, float]] = []
        for ss, sy in reversed(pairs):
            if sy <= 0:
                break
            newest.append((ss, sy))
        if not newest:
            return self.rho_max
        return self._clip(sum(ss for ss, _ in newest) / sum(sy for _, sy in newest))

    def _clip(self, rho: float) -> float:
        return min(max(rho, self.rho_min), self.rho_max)
