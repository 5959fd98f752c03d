"""Projected gradient over a block (Niu & Yuan, Section 3)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import takewhile
from typing import ClassVar

import numpy as np

from ..problems.base import Problem
from .base import ANY_SET, InnerSolver
from .block import Block
from .feasible_sets import BalancedBox, RowSets, check_projection


@dataclass(frozen=True)
class ProjectedGradient(InnerSolver):
    """Projected gradient, Niu & Yuan's Algorithm 3.

    Exact projection, multi-step Barzilai-Borwein lengths over the last ``memory`` + 1 pairs (step s, change y
    of the gradient), Dai & Fletcher's nonmonotone line search with ``patience`` failures. It stops if
    max_i g_i/c_i ≤ eps. If samples are coupled by their sum (c-svc), it stops on the violation at the best
    bias, which is larger.

    Parameters
    ----------
    max_iter : int
        Largest number of steps.
    rho_min, rho_max : float
        Bounds of the step length.
    memory : int
        A step length uses up to ``memory`` + 1 pairs.
    patience : int
        Number of failures to improve on the best value, after which the reference value is lowered.
    initial_step : {"projected", "ell"}
        The first length: Dai & Fletcher's 1/‖P(w - F) - w‖_∞, or the paper's 1/‖ℓ‖_∞.
    projection : {"pardalos-kovoor", "dai-fletcher"}
        How native engines project if samples are coupled. Both find the same point: by a median of the
        breakpoints in O(q), or by secants.

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
    by_products: ClassVar[bool] = True
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
        feasible = BalancedBox(problem, block) if problem.balanced else RowSets(problem)
        w_old, G_old, w_best = w.copy(), F.copy(), w.copy()
        f = f_best = f_c = 0.0  # from the value at the start; f_c is the candidate for the next f_ref
        f_ref, failures, steps = np.inf, 0, 0
        pairs: deque[tuple[float, float]] = deque(maxlen=self.memory + 1)  # (⟨s, s⟩, ⟨s, y⟩), oldest first
        left = feasible.closeness(block)
        rho = self._first_step(problem, feasible, block)
        while left > eps and steps < self.max_iter and not block.late():
            target = feasible.project(block, w - rho * F)
            d = target - w
            Hd = K @ d
            slope, curvature = float(np.vdot(F, d)), float(np.vdot(d, Hd))
            search = steps == 0 or f + slope + 0.5 * curvature > f_ref  # the first length is a guess
            theta = min(1.0, -slope / curvature) if search and curvature > 0 else 1.0
            w[:] = feasible.towards(block, target, theta)
            F += theta * Hd
            f += theta * slope + 0.5 * theta**2 * curvature
            pairs.append((theta**2 * float(np.vdot(d, d)), theta**2 * curvature))
            rho = self._next_step(pairs)
            if f < f_best:
                f_best, f_c, failures = f, f, 0
                w_best[:] = w
            else:
                f_c, failures = max(f_c, f), failures + 1
                if failures == self.patience:
                    f_ref, f_c, failures = f_c, f, 0
            steps += 1
            if steps % self.refresh_every == 0:
                F[:] = G_old + K @ (w - w_old)
            left = feasible.closeness(block)
        if left > eps and f > f_best:  # cut short at a point above the best one, as steps are nonmonotone
            w[:] = w_best
        F[:] = G_old + K @ (w - w_old)
        return steps

    def _first_step(self, problem: Problem, feasible: RowSets, block: Block) -> float:
        if self.initial_step == "ell":
            size = float((problem.measure(block.rows())[1] / block.C**2).max())
        else:
            size = float(np.abs(feasible.project(block, block.alpha - block.G) - block.alpha).max())
        return self._clip(1.0 / max(size, 1e-300))

    def _next_step(self, pairs: deque[tuple[float, float]]) -> float:
        """Σ⟨s, s⟩ / Σ⟨s, y⟩ over the newest pairs of positive curvature."""
        newest = list(takewhile(lambda pair: pair[1] > 0, reversed(pairs)))
        if not newest:
            return self.rho_max
        return self._clip(sum(ss for ss, _ in newest) / sum(sy for _, sy in newest))

    def _clip(self, rho: float) -> float:
        return min(max(rho, self.rho_min), self.rho_max)
