"""Descent by pairs, for machines of one coefficient a sample with bounds and a fixed sum.

    min  ½ ⟨Δ, K_WW Δ⟩ + ⟨G_W, Δ⟩,   Δ = α_W - α_W^old,   low ≤ α ≤ high,   Σ_W α as it was

Two coefficients are the fewest that can move. With I_up = {α_i < high_i} and I_low = {α_j > low_j} a step takes the
largest violator of one side and the partner with which the dual falls most (Fan, Chen & Lin 2005, WSS 2):

    i = argmin over I_up of G,    j = argmax over I_low with b = G_j - G_i > 0 of b² / a,    a = K_ii + K_jj - 2 K_ij
    α_i += t,    α_j -= t,    t = min(b / a, high_i - α_i, α_j - low_j)

until max_low G - min_up G ≤ 2 eps: with the bias in the middle no sample violates by more than eps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .inner import Block, InnerSolver
from .problems import CSvc, Problem
from .typing import FloatArray, IntArray

_TINY = 1e-12  # of the largest K_ii: a is at least this


@dataclass(frozen=True)
class PairDescent(InnerSolver):
    """Second-order pairs, as in LIBSVM.

    Parameters
    ----------
    max_iter : int
        Largest number of pairs moved in a block.
    reach : float or None
        Samples at a bound take part only if they lie at most this far, in margin units, on the right side of the
        margin; the others can hardly leave it. Their gradient stays as it was until the block is taken over. None
        is all samples.

    Examples
    --------
    >>> from multimargin import Decomposition, KernelSVC
    >>> from multimargin.smo import PairDescent
    >>> from multimargin.working_set import MaxViolator
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> solver = Decomposition(MaxViolator(q=40), PairDescent())
    >>> KernelSVC("c-svc", solver=solver).fit(X, y).status_.converged
    True
    """

    name: ClassVar[str] = "smo"
    handles: ClassVar[frozenset[str]] = frozenset({"balanced box"})
    measure: ClassVar[str] = "psi"
    max_iter: int = 10_000_000
    reach: float | None = None

    def __post_init__(self) -> None:
        if self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1, got {self.max_iter!r}.")
        if self.reach is not None and not self.reach >= 0:
            raise ValueError(f"reach must be None or at least 0, got {self.reach!r}.")

    def solve(self, problem: Problem, block: Block, eps: float, rng: np.random.Generator) -> int:
        low, high = bounds(problem, block)
        alpha, K = block.alpha[:, 0], block.K
        near = self._near(alpha, block.G[:, 0], low, high)
        if not len(near):
            return 0
        G, diagonal = block.G[near, 0], block.diagonal[near]
        tiny = _TINY * max(diagonal.max(), 1e-18)
        for steps in range(self.max_iter):
            above = np.where(alpha[near] < high[near], G, np.inf)
            below = np.where(alpha[near] > low[near], G, -np.inf)
            i = int(above.argmin())
            if not below.max() - above[i] > 2 * eps:
                break
            b = np.maximum(below - G[i], 0.0)
            a = np.maximum(diagonal[i] + diagonal - 2.0 * K[near[i], near], tiny)
            j = int((b * b / a).argmax())
            s, r = near[i], near[j]
            t = min(b[j] / a[j], high[s] - alpha[s], alpha[r] - low[r])
            alpha[s] = high[s] if t == high[s] - alpha[s] else alpha[s] + t
            alpha[r] = low[r] if t == alpha[r] - low[r] else alpha[r] - t
            change = t * (K[s, near].astype(np.float64) - K[r, near])
            if not (change[i] or change[j]) and alpha[s] < high[s] and alpha[r] > low[r]:
                break
            G += change
        else:
            steps = self.max_iter
        block.G[near, 0] = G
        return steps

    def _near(self, alpha: FloatArray, G: FloatArray, low: FloatArray, high: FloatArray) -> IntArray:
        """The samples that take part."""
        up, lower = alpha < high, alpha > low
        if self.reach is None or not up.any() or not lower.any():
            return np.arange(len(G))
        middle = 0.5 * (G[up].min() + G[lower].max())
        return np.flatnonzero(
            (up & lower) | (up & (G - middle <= self.reach)) | (lower & (middle - G <= self.reach))
        )


def bounds(problem: Problem, block: Block) -> tuple[FloatArray, FloatArray]:
    """low and high of the block's coefficients."""
    if not isinstance(problem, CSvc):
        raise TypeError(f"Descent by pairs is for c-svc, not for {problem.name}.")
    return problem.bounds(block.y, block.C)
