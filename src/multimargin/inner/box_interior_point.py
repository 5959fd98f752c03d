"""A dense primal-dual interior point method for blocks whose samples are coupled by their sum.

    minimise  ½ ⟨x, K x⟩ + ⟨c, x⟩   subject to   low ≤ x ≤ high,   Σ_i x_i = total

With the distances l = x - low and u = high - x from the bounds, their multipliers λ, μ ≥ 0 and the bias b of
the sum, a point is optimal where K x + c + b - λ + μ = 0, l λ = 0, u μ = 0. Mehrotra's predictor-corrector
method makes Newton steps for l λ = u μ = σ, each from one Cholesky factor:

    (K + D) dx + db = t,   Σ_i dx_i = 0,        D = λ/l + μ/u

It takes 10 to 30 steps whatever the condition of K, of q³/3 multiply-adds each: the role of pr_LOQO in
SVM-light and in Serafini, Zanghirati & Zanni's tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import lapack

from ..problems.base import Problem
from ..problems.projections import project_balanced
from ..system.typing import FloatArray
from .base import InnerSolver
from .block import Block
from .feasible_sets import BalancedBox
from .predictor_corrector import step_length

_STEP = 0.995  # of the way to the boundary
_RIDGES = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)  # of the largest K_ii, tried in turn
_FIRST_SHARE, _LATER_SHARE = 0.2, 0.1  # of eps, for the point before it is rounded to its bounds
_ROUNDS = 4  # of rounding, each more exact than the one before


@dataclass(frozen=True)
class BoxInteriorPoint(InnerSolver):
    """Interior point over all samples of a block that are coupled by their sum; see the module's head.

    For small blocks, or as a reference: a step costs the cube of the block's size, and two copies of the
    kernel block are kept in float64. A result whose dual is not lower is thrown away.

    Parameters
    ----------
    max_iter : int
        Largest number of steps.

    Examples
    --------
    >>> from multimargin import Decomposition, KernelSVC
    >>> from multimargin.inner import BoxInteriorPoint
    >>> from multimargin.working_set import SvmLight
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> solver = Decomposition(SvmLight(n_sp=10, n_c=4), BoxInteriorPoint())
    >>> KernelSVC(machine="c-svc", solver=solver).fit(X, y == 1).status_.converged
    True
    """

    name: ClassVar[str] = "interior-point"
    handles: ClassVar[frozenset[str]] = frozenset({"balanced box"})
    measure: ClassVar[str] = "psi"
    max_iter: int = 100

    def __post_init__(self) -> None:
        if self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1, got {self.max_iter!r}.")

    def solve(self, problem: Problem, block: Block, eps: float, rng: np.random.Generator) -> int:
        box = BalancedBox(problem, block)
        alpha, G = block.alpha[:, 0].copy(), block.G[:, 0].copy()
        if box.closeness(block) <= eps or not _Interior.exists(box):
            block.G[:, 0] = G
            return 0
        inside = _Interior(block, box)
        steps, share = 0, _FIRST_SHARE
        best, best_change = alpha, 0.0
        for _ in range(_ROUNDS):
            steps += inside.minimise(share * eps, self.max_iter - steps)
            x = inside.rounded()
            shift = inside.K @ (x - alpha)
            change = float((x - alpha) @ (G + inside.bias + 0.5 * shift))
            if change < best_change:
                best, best_change = x, change
            block.alpha[:, 0], block.G[:, 0] = x, G + shift
            if box.closeness(block) <= eps or steps >= self.max_iter or inside.stuck:
                break
            share *= _LATER_SHARE
        block.alpha[:, 0], block.G[:, 0] = best, G + inside.K @ (best - alpha)
        return steps


class _Interior:
    """The state of the method. It starts feasible, for the sum and for the gradient, and stays so."""

    def __init__(self, block: Block, box: BalancedBox) -> None:
        self.box, self.diagonal = box, block.diagonal
        self.K = block.K.astype(np.float64)
        width = box.high - box.low
        part = (box.total - box.low.sum()) / width.sum()
        self.l, self.u = part * width, (1.0 - part) * width
        self.gradient = block.G[:, 0] + self.K @ (box.low + self.l - block.alpha[:, 0])
        self.bias = -float(np.median(self.gradient))
        pull = self.gradient + self.bias
        spread = max(0.1 * float(np.abs(pull).max()), 1e-3)
        self.lam, self.mu = np.maximum(pull, 0.0) + spread, np.maximum(-pull, 0.0) + spread
        self.stuck = False

    @staticmethod
    def exists(box: BalancedBox) -> bool:
        """Whether the set has a point off all bounds."""
        width, low = box.high - box.low, float(box.low.sum())
        room = min(box.total - low, float(box.high.sum()) - box.total)
        return bool(width.min() > 0 and room > 1e-12 * width.sum())

    def minimise(self, eps: float, max_iter: int) -> int:
        """Step until the violation of the point that ``rounded`` would give is about ``eps``; the steps."""
        for step in range(max_iter):
            if self._settled(eps):
                return step
            if not self._factor(self.lam / self.l + self.mu / self.u):
                self.stuck = True
                return step
            self._step()
        return max_iter

    def _step(self) -> None:
        low, high = self.l * self.lam, self.u * self.mu
        mean = (low.sum() + high.sum()) / (2 * len(low))
        dx, _, dlam, dmu = self._newton(low, high)
        a = self._longest(dx, dlam, dmu)
        ahead = (self.l + a * dx) @ (self.lam + a * dlam) + (self.u - a * dx) @ (self.mu + a * dmu)
        target = (float(ahead) / (2 * len(low)) / mean) ** 3 * mean
        dx, db, dlam, dmu = self._newton(low + dx * dlam - target, high - dx * dmu - target)
        a = _STEP * self._longest(dx, dlam, dmu)
        self.l, self.u = self.l + a * dx, self.u - a * dx
        self.lam, self.mu, self.bias = self.lam + a * dlam, self.mu + a * dmu, self.bias + a * db
        self.gradient += a * (self.K @ dx)
        self.stuck = a < 1e-10

    def _longest(self, dx: FloatArray, dlam: FloatArray, dmu: FloatArray) -> float:
        pairs = (self.l, dx), (self.u, -dx), (self.lam, dlam), (self.mu, dmu)
        return min(step_length(value, change) for value, change in pairs)

    def _newton(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, float, FloatArray, FloatArray]:
        """(dx, db, dλ, dμ) that take the products l λ and u μ down by ``low`` and ``high``."""
        residual = self.gradient + self.bias - self.lam + self.mu
        both = np.column_stack([-residual - low / self.l + high / self.u, np.ones(len(low))])
        solved = lapack.dpotrs(self._cholesky, both, lower=1)[0]
        missing = self.box.total - float((self.box.low + self.l).sum())
        db = float((solved[:, 0].sum() - missing) / solved[:, 1].sum())
        dx = solved[:, 0] - db * solved[:, 1]
        return dx, db, -(low + self.lam * dx) / self.l, (-high + self.mu * dx) / self.u

    def _factor(self, D: FloatArray) -> bool:
        """Cholesky's factor of K + D + ρ with the smallest ρ of a few that makes it positive definite.

        float32 rounds the kernel of a nearly singular block to an indefinite one. With ρ the step is that of
        the problem with ½ ρ ‖dx‖² added: shorter, towards the same optimum.
        """
        top = float(self.diagonal.max())
        for share in _RIDGES:
            M = self.K.copy()
            M[np.diag_indices_from(M)] += D + share * top
            self._cholesky, failed = lapack.dpotrf(M.T, lower=1, overwrite_a=1)  # M.T is M, as LAPACK has it
            if not failed:
                return True
        return False

    def _on_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Which samples go to their lower and upper bounds.

        l K_ii and λ have the same unit; one of them goes to 0, and the other one does not.
        """
        low, high = self.l * self.diagonal < self.lam, self.u * self.diagonal < self.mu
        nearer = self.l < self.u
        return low & (nearer | ~high), high & (~nearer | ~low)

    def _settled(self, eps: float) -> bool:
        """Whether free samples are optimal to ``eps``, and rounding the others moves no gradient by more.

        |Σ_i K_ij δ_i| ≤ √K_jj Σ_i √K_ii |δ_i|.
        """
        low, high = self._on_bounds()
        left = np.where(low, self.mu, np.where(high, self.lam, np.maximum(self.lam, self.mu)))
        residual = self.gradient + self.bias - self.lam + self.mu
        if left.max() > eps or np.abs(residual).max() > eps:
            return False
        if not self._keeps_sum(*self._ranges(low, high)):
            return False
        moved = np.where(low, self.l, np.where(high, self.u, 0.0))
        root = np.sqrt(self.diagonal)
        return bool(root.max() * float(root @ moved) <= eps)

    def _ranges(self, low: np.ndarray, high: np.ndarray) -> tuple[FloatArray, FloatArray]:
        """Least and largest values with samples on their bounds there."""
        box = self.box
        return np.where(high, box.high, box.low), np.where(low, box.low, box.high)

    def _keeps_sum(self, least: FloatArray, most: FloatArray) -> bool:
        """Whether a point between has the sum, to rounding: where costs are tiny, all may seem on bounds."""
        slack = 1e-12 * float((self.box.high - self.box.low).sum())
        return bool(least.sum() - slack <= self.box.total <= most.sum() + slack)

    def rounded(self) -> FloatArray:
        """The point with samples on their bounds there, the free ones moved to keep the sum."""
        low, high = self._on_bounds()
        box = self.box
        x = np.where(self.l < self.u, box.low + self.l, box.high - self.u)
        least, most = self._ranges(low, high)
        if self._keeps_sum(least, most):
            return project_balanced(x, least, most, float(np.clip(box.total, least.sum(), most.sum())))
        return project_balanced(x, box.low, box.high, box.total)
