"""The pivoted Cholesky factor of a kernel, one column after the other: K ≈ F Fᵀ.

The next pivot is the sample of which most is left, rest_i = K_ii - ‖f_i‖². The largest rest bounds every
entry of K - F Fᵀ, because that matrix is positive semidefinite.

The processes of a team have the rows of F of their own samples.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...system.shard import Shard
from ...system.typing import FloatArray

_RANK_DONE = 1e-12  # of the largest K_ii: nothing is left to factor
_FIRST_COLUMNS = 16

Column = Callable[[int], FloatArray]  # kernel values of a sample against those held here


class PivotedCholesky:
    """A factor that can be continued."""

    def __init__(self, diagonal: FloatArray, shard: Shard) -> None:
        self._shard = shard
        self._ids = shard.first + np.arange(len(diagonal))
        self.rest = diagonal.copy()
        self.rank = 0
        self.start = self.left = self._largest_rest()
        self._columns = np.empty((len(diagonal), _FIRST_COLUMNS), order="F")

    @property
    def factor(self) -> FloatArray:
        """The factor so far (n, rank)."""
        return self._columns[:, : self.rank]

    @property
    def done(self) -> bool:
        """Whether nothing but rounding is left."""
        return self.left <= _RANK_DONE * self.start

    def grow(self, column: Column) -> None:
        """Add one column of the factor, from one of the kernel."""
        k, shard = self.rank, self._shard
        if k == self._columns.shape[1]:
            self._columns = np.concatenate([self._columns, np.empty_like(self._columns)], axis=1)
            self._columns = np.asfortranarray(self._columns)
        F = self.factor
        found = shard.team.top(self._ids, self.rest, 1)
        pivot = int(found[0])
        here = slice(pivot - shard.first, pivot - shard.first + 1) if pivot in shard else slice(0)
        own = shard.take(found, F[here])[0]
        new = (column(pivot) - F @ own) / np.sqrt(self.left)
        self._columns[:, k] = new
        self.rest = np.maximum(self.rest - new**2, 0.0)
        self.rank, self.left = k + 1, self._largest_rest()

    def rank_that_leaves(self, rest: float) -> float:
        """About how many columns leave at most ``rest``: its logarithm is taken to fall like √rank."""
        if self.left <= rest or not self.rank:
            return float(max(self.rank, 1))
        fallen = np.log(self.start / self.left)
        return float(self.rank * (np.log(self.start / rest) / fallen) ** 2) if fallen > 0 else np.inf

    def _largest_rest(self) -> float:
        return self._shard.team.max(float(self.rest.max(initial=0.0)))
