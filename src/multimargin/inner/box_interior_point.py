"""A dense interior point method for blocks of c-svc, whose samples are coupled by their sum.

    minimise  ½ ⟨x, K x⟩ + ⟨c, x⟩   subject to   low ≤ x ≤ high,   Σ_i x_i = total

With the distances l = x - low and u = high - x from the bounds, their multipliers λ, μ ≥ 0 and the bias b of
the sum, a point is optimal if K x + c + b - λ + μ = 0, l λ = 0, u μ = 0. Each step of the predictor-corrector
method solves

    (K + D) dx + db = t,   Σ_i dx_i = 0,        D = λ/l + μ/u

by one Cholesky factor, in q³/3 multiply-adds. The method has the role of pr_LOQO in SVM-light and in the
tables of Serafini, Zanghirati & Zanni.
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
from .predictor_corrector import PredictorCorrector, cholesky

_RIDGES = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)  # shares of the largest K_ii, tried in turn
_FIRST_SHARE, _LATER_SHARE = 0.2, 0.1  # of eps before the first rounding to bounds; of the share after each
_ROUNDS = 4  # of rounding to bounds, each from a more exact point than the one before


@dataclass(frozen=True)
class BoxInteriorPoint(InnerSolver):
    """Interior point over all samples of a block that are coupled by their sum; see the module's head.

    For small blocks, or as a reference: the cost of a step is cubic in the block's size, and two copies of
    the kernel block are kept in float64. If the dual is not lower at the end, the block is left as it was.

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

    name: ClassVar[str] = "box-interior-point"
    handles: ClassVar[frozenset[str]] = frozenset({"balanced box"})
    measure: ClassVar[str] = "psi"
    max_iter: int = 100

    def __post_init__(self) -> None:
        if self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1, got {self.max_iter!r}.")

    def block_bytes(self, itemsize: int) -> int:
        return 32  # the block in float64, its factor, the next factor, and a copy on the way there

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
            steps += inside.minimise(share * eps, self.max_iter - steps, block.late)
            x = inside.rounded()
            shift = inside.K @ (x - alpha)
            change = float((x - alpha) @ (G - inside.multiplier + 0.5 * shift))
            if change < best_change:
                best, best_change = x, change
            block.alpha[:, 0], block.G[:, 0] = x, G + shift
            if box.closeness(block) <= eps or steps >= self.max_iter or inside.stuck or block.late():
                break
            share *= _LATER_SHARE
        block.alpha[:, 0], block.G[:, 0] = best, G + inside.K @ (best - alpha)
        return steps


class _Interior(PredictorCorrector):
    """The state of the method: x - low and high - x in ``z``, one group of all samples, -b its multiplier.

    It starts feasible for the sum and for the gradient, and stays so.
    """

    def __init__(self, block: Block, box: BalancedBox) -> None:
        self.box, self.diagonal = box, block.diagonal
        self.K = block.K.astype(np.float64)
        width, budget = box.high - box.low, box.total - box.low.sum()
        part = budget / width.sum()
        self.z = np.concatenate([part * width, (1.0 - part) * width])
        self.of, self.budget = np.zeros(len(width), dtype=np.int64), np.array([budget])
        self.gradient = block.G[:, 0] + self.K @ (box.low + self._point() - block.alpha[:, 0])
        self.multiplier = np.array([np.median(self.gradient)])
        pull = self.gradient - self.multiplier
        spread = max(0.1 * float(np.abs(pull).max()), 1e-3)
        self.slack = np.maximum(self._sides(pull), 0.0) + spread

    @staticmethod
    def exists(box: BalancedBox) -> bool:
        """Whether the set has a point off all bounds."""
        width, low = box.high - box.low, float(box.low.sum())
        room = min(box.total - low, float(box.high.sum()) - box.total)
        return bool(width.min() > 0 and room > 1e-12 * width.sum())

    def _sides(self, x: FloatArray) -> FloatArray:
        return np.concatenate([x, -x])

    def _merged(self, v: FloatArray) -> FloatArray:
        low, high = v.reshape(2, -1)
        return np.asarray(low - high)

    def _point(self) -> FloatArray:
        return self.z[: len(self.of)]

    def _lengths(self, dz: FloatArray, ds: FloatArray) -> tuple[float, float]:
        both = min(super()._lengths(dz, ds))  # one length keeps the gradient's condition
        return both, both

    def _multiply(self, v: FloatArray) -> FloatArray:
        return np.asarray(self.K @ v)

    def _factor(self, D: FloatArray) -> bool:
        self._cholesky = cholesky(self.K, D.reshape(2, -1).sum(axis=0), _RIDGES)
        return self._cholesky is not None

    def _solve(self, t: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        forward, ones = lapack.dpotrs(self._cholesky, np.column_stack([t, np.ones(len(t))]), lower=1)[0].T
        dl = (u - forward.sum()) / ones.sum()
        return forward + dl * ones, dl

    def _on_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Which samples go to their lower and upper bounds.

        z K_ii and s have the same unit. One of the two goes to 0, and the other one does not.
        """
        below, above = self.z.reshape(2, -1)
        low, high = self.z.reshape(2, -1) * self.diagonal < self.slack.reshape(2, -1)
        return low & ((below < above) | ~high), high & ((below >= above) | ~low)

    def _settled(self, eps: float) -> bool:
        """Whether free samples are optimal to ``eps``, and rounding the others moves no gradient by more.

        |Σ_i K_ij δ_i| ≤ √K_jj Σ_i √K_ii |δ_i|.
        """
        low, high = self._on_bounds()
        (below, above), (lam, mu) = self.z.reshape(2, -1), self.slack.reshape(2, -1)
        left = np.where(low, mu, np.where(high, lam, np.maximum(lam, mu)))
        if left.max() > eps or np.abs(self._residual()).max() > eps or self._ranges() is None:
            return False
        moved, root = np.where(low, below, np.where(high, above, 0.0)), np.sqrt(self.diagonal)
        return bool(root.max() * float(root @ moved) <= eps)

    def _ranges(self) -> tuple[FloatArray, FloatArray] | None:
        """The box with samples on their bounds fixed there; None if no point of it has the sum, to rounding.

        If costs are tiny, all samples may seem to be on bounds.
        """
        (low, high), box = self._on_bounds(), self.box
        least, most = np.where(high, box.high, box.low), np.where(low, box.low, box.high)
        slack = 1e-12 * float((box.high - box.low).sum())
        return (least, most) if least.sum() - slack <= box.total <= most.sum() + slack else None

    def rounded(self) -> FloatArray:
        """The point with samples on their bounds there, and the free ones moved to keep the sum."""
        (below, above), box = self.z.reshape(2, -1), self.box
        least, most = self._ranges() or (box.low, box.high)
        x = np.where(below < above, box.low + below, box.high - above)
        return project_balanced(x, least, most, float(np.clip(box.total, least.sum(), most.sum())))
