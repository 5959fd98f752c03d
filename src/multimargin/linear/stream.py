"""One pass over a stream of batches: what the linear machine must remember between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..system.typing import FloatArray, IntArray
from .descent import LinearDescent, LinearOptions, LinearTask, new_weights


class Stream:
    """The weights, and of the dual only its sum, unless it is to be kept.

    A batch is visited once, in its order, with exact updates from α_i = 0: the same as one pass over all
    rows, since a sample's own coefficients are all that Algorithm 1 needs of it.
    """

    def __init__(self, task: LinearTask, keeps: bool) -> None:
        self.weights: FloatArray = new_weights(task, np.float64)
        self.m, self.constant, self.keeps = task.m, task.constant, keeps
        self.rows = 0  # seen so far, those of weight 0 too
        self._own = 0.0  # Σ_i α_{i,y_i}
        self._ids: list[IntArray] = []
        self._alpha: list[sp.csr_array] = []

    def take_over(
        self,
        coef: FloatArray,
        intercept: FloatArray,
        dual: float,
        rows: int,
        ids: IntArray,
        alpha: sp.csr_array,
    ) -> None:
        """Go on from a fit: its rows were the stream's first."""
        d = coef.shape[1]
        self.weights[:d, : self.m] = coef.T
        if self.constant:
            self.weights[d, : self.m] = intercept / self.constant
        self.rows = rows
        self._own = 0.5 * _core.squared_norm(self.weights) - dual
        if self.keeps:
            self._ids, self._alpha = [ids], [alpha]

    def learn(self, task: LinearTask, options: LinearOptions, kept: IntArray, rows: int) -> None:
        """Visit the rows of a batch: those ``kept`` of its ``rows`` rows."""
        if len(kept):
            plain = replace(options, dtype="float64", shrinking=False, shuffle=False, n_threads=1, parts=1)
            descent = LinearDescent(task, plain, self.weights)
            descent.run_pass(over_all=True)
            self._own += descent.problem.dual_sum()
            if self.keeps:
                alpha = descent.alpha()
                ids = np.flatnonzero(np.diff(alpha.indptr))
                self._ids.append(self.rows + kept[ids])
                self._alpha.append(alpha[ids])
        self.rows += rows

    @property
    def dual(self) -> float:
        """The dual objective, as if all rows so far were one problem."""
        return 0.5 * _core.squared_norm(self.weights) - self._own

    def support(self) -> tuple[IntArray, sp.csr_array]:
        """Row numbers over all batches and coefficients of those that were kept."""
        if not self._ids:
            return np.empty(0, dtype=np.int64), sp.csr_array((0, self.m))
        self._ids, self._alpha = [np.concatenate(self._ids)], [sp.csr_array(sp.vstack(self._alpha))]
        return self._ids[0], self._alpha[0]
