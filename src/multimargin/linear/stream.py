"""One pass over a stream of batches: what the linear machine remembers between them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ..system.typing import FloatArray, IntArray
from .descent import LinearFit, LinearOptions, TrainingSet


class Stream:
    """How many rows were seen; their dual only if ``keeps``. The weights belong to the caller.

    A batch is visited once, in its order, with exact updates from α_i = 0. This equals one pass over all
    rows, since Algorithm 1 needs no coefficients but those of the sample at hand.
    """

    machine = "crammer-singer"  # of stored streams that do not say

    def __init__(self, data: TrainingSet, keeps: bool) -> None:
        self.m, self.constant, self.keeps, self.machine = data.m, data.constant, keeps, data.machine
        self.rows = 0  # seen so far, those of weight 0 included
        self._ids: list[IntArray] = []
        self._alpha: list[sp.csr_array] = []

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restore a stored stream; that of version 0.1.0 had weights of its own."""
        self.__dict__.update(
            {name: value for name, value in state.items() if name not in ("weights", "_own")}
        )

    def keep(self, ids: IntArray, alpha: sp.csr_array) -> None:
        """Keep the coefficients of rows."""
        self._ids.append(ids)
        self._alpha.append(alpha)

    def learn(
        self, data: TrainingSet, options: LinearOptions, weights: FloatArray, kept: IntArray, rows: int
    ) -> float:
        """Visit ``data``, the rows ``kept`` of a batch of ``rows`` rows; returns the change of the dual.

        The dual is that of all rows so far as one problem.
        """
        change = 0.0
        if len(kept):
            plain = replace(options, dtype="float64", shrinking=False, shuffle=False, n_threads=1, parts=1)
            fit = LinearFit(data, plain, weights)
            change = fit.run_pass(over_all=True).change
            if self.keeps:
                alpha = fit.alpha()
                ids = np.flatnonzero(np.diff(alpha.indptr))
                self.keep(self.rows + kept[ids], alpha[ids])
        self.rows += rows
        return change

    def support(self) -> tuple[IntArray, sp.csr_array]:
        """The kept coefficients that are not zero, with their row numbers over all batches."""
        if not self._ids:
            return np.empty(0, dtype=np.int64), sp.csr_array((0, self.m))
        self._ids, self._alpha = [np.concatenate(self._ids)], [sp.csr_array(sp.vstack(self._alpha))]
        return self._ids[0], self._alpha[0]
