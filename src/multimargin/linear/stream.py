"""One pass over a stream of batches: what the linear machine remembers between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..system.typing import FloatArray, IntArray
from .descent import LinearFit, LinearOptions, TrainingSet


class Stream:
    """The weights, and the sum of the dual; the dual itself only if ``keeps``.

    A batch is visited once, in its order, with exact updates from α_i = 0. This equals one pass over all
    rows, since Algorithm 1 needs no coefficients but those of the sample at hand.
    """

    def __init__(self, data: TrainingSet, keeps: bool) -> None:
        self.weights: FloatArray = data.layout().zeros(np.float64)
        self.m, self.constant, self.keeps = data.m, data.constant, keeps
        self.rows = 0  # seen so far, those of weight 0 included
        self._own = 0.0  # Σ_i α_{i,y_i}
        self._ids: list[IntArray] = []
        self._alpha: list[sp.csr_array] = []

    def take_over(self, coef: FloatArray, intercept: FloatArray, dual: float, rows: int) -> None:
        """Go on from a fit, as if its rows had been the stream's first."""
        d = coef.shape[1]
        self.weights[:d, : self.m] = coef.T
        if self.constant:
            self.weights[d, : self.m] = intercept / self.constant
        self._own = 0.5 * _core.squared_norm(self.weights) - dual
        self.rows = rows

    def keep(self, ids: IntArray, alpha: sp.csr_array) -> None:
        """Keep the coefficients of rows, if ``keeps``."""
        if self.keeps:
            self._ids.append(ids)
            self._alpha.append(alpha)

    def learn(self, data: TrainingSet, options: LinearOptions, kept: IntArray, rows: int) -> None:
        """Visit ``data``, the rows ``kept`` of a batch of ``rows`` rows."""
        if len(kept):
            plain = replace(options, dtype="float64", shrinking=False, shuffle=False, n_threads=1, parts=1)
            fit = LinearFit(data, plain, self.weights)
            fit.run_pass(over_all=True)
            self._own += fit.problem.dual_sum()
            if self.keeps:
                alpha = fit.alpha()
                ids = np.flatnonzero(np.diff(alpha.indptr))
                self.keep(self.rows + kept[ids], alpha[ids])
        self.rows += rows

    @property
    def dual(self) -> float:
        """The dual objective, as if all rows so far were one problem."""
        return 0.5 * _core.squared_norm(self.weights) - self._own

    def support(self) -> tuple[IntArray, sp.csr_array]:
        """The kept coefficients that are not zero, with their row numbers over all batches."""
        if not self._ids:
            return np.empty(0, dtype=np.int64), sp.csr_array((0, self.m))
        self._ids, self._alpha = [np.concatenate(self._ids)], [sp.csr_array(sp.vstack(self._alpha))]
        return self._ids[0], self._alpha[0]
