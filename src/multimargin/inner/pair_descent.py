"""Descent by pairs of samples, for machines with one coefficient per sample, bounds and a fixed sum.

    min  ½ ⟨Δ, K_WW Δ⟩ + ⟨G_W, Δ⟩,   Δ = α_W - α_W^old,   low ≤ α ≤ high,   Σ_W Δ = 0

At least two coefficients must move to keep the sum. With I_up = {α_i < high_i} and I_low = {α_j > low_j}, a
step takes the largest violator i of I_up and the partner j with which the dual falls most (Fan, Chen & Lin
2005, WSS 2):

    i = argmin over I_up of G,    j = argmax over I_low with b = G_j - G_i > 0 of b² / a
    a = K_ii + K_jj - 2 K_ij
    α_i += t,    α_j -= t,    t = min(b / a, high_i - α_i, α_j - low_j)

until max_low G - min_up G ≤ 2 eps. With the bias in the middle no sample then violates by more than eps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..problems.base import Problem
from .base import InnerSolver
from .block import Block

_TINY, _TINIEST = 1e-12, 1e-30  # a is at least _TINY of the largest K_ii, and at least _TINIEST


@dataclass(frozen=True)
class PairDescent(InnerSolver):
    """Second-order pairs, as in LIBSVM.

    Parameters
    ----------
    max_iter : int
        Largest number of pairs moved per block.

    Examples
    --------
    >>> from multimargin import Decomposition, KernelSVC
    >>> from multimargin.inner import PairDescent
    >>> from multimargin.working_set import SvmLight
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> solver = Decomposition(SvmLight(n_sp=40, n_c=20), PairDescent())
    >>> KernelSVC("c-svc", solver=solver).fit(X, y).status_.converged
    True
    """

    name: ClassVar[str] = "smo"
    handles: ClassVar[frozenset[str]] = frozenset({"balanced box"})
    measure: ClassVar[str] = "psi"
    max_iter: int = 10_000_000
    lazy: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1, got {self.max_iter!r}.")

    def solve(self, problem: Problem, block: Block, eps: float, rng: np.random.Generator) -> int:
        low, high = problem.bounds(block.y, block.C)
        alpha, G, K, diagonal = block.alpha[:, 0], block.G[:, 0], block.K, block.diagonal
        tiny = max(_TINY * diagonal.max(), _TINIEST)
        for steps in range(self.max_iter):
            above, below = np.where(alpha < high, G, np.inf), np.where(alpha > low, G, -np.inf)
            i = int(above.argmin())
            if not below.max() - above[i] > 2 * eps or block.late():
                return steps
            b = np.maximum(below - G[i], 0.0)
            a = np.maximum(diagonal[i] + diagonal - 2.0 * K[i], tiny)
            j = int((b * b / a).argmax())
            t = min(b[j] / a[j], high[i] - alpha[i], alpha[j] - low[j])
            alpha[i] = high[i] if t == high[i] - alpha[i] else alpha[i] + t
            alpha[j] = low[j] if t == alpha[j] - low[j] else alpha[j] - t
            G += t * (K[i].astype(np.float64) - K[j])
            if G[j] - G[i] == b[j] and low[i] < alpha[i] < high[i] and low[j] < alpha[j] < high[j]:
                return steps  # the step is below the resolution of float64
        return self.max_iter
