"""The pivoted Cholesky factor of a kernel, some columns at a time: K ≈ F Fᵀ.

Pivots are samples of which much is left, rest_i = K_ii - ‖f_i‖². The largest rest bounds every entry of
K - F Fᵀ, because that matrix is positive semidefinite. Of a few samples with the largest rests, those become
pivots of which, after the others, at least a share of the largest rest is still left: so all products are of
matrices, and the factor has hardly more columns than if the largest rest were looked for after each.

The processes of a team have the rows of F of their own samples.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from ... import _core
from ...system.shard import Shard
from ...system.typing import FloatArray, IntArray

_RANK_DONE = 1e-12  # of the largest K_ii: nothing is left to factor
_FIRST_COLUMNS = 16

AT_ONCE = 16  # samples that may become pivots at a time
_WORTH = 0.4  # of the largest rest: so much must be left of a pivot

Columns = Callable[[IntArray], FloatArray]  # kernel values of some samples against those held here


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

    def grow(self, columns: Columns, least: float = 0.0, most: int | None = None) -> None:
        """Add 1 to ``AT_ONCE`` columns, from columns of the kernel; a pivot's rest is at least ``least``.

        Fewer if ``most`` says so. No column if only rounding is left of the samples that come next.
        """
        k, shard = self.rank, self._shard
        if k + AT_ONCE > self._columns.shape[1]:
            self._columns = np.concatenate([self._columns, np.empty_like(self._columns)], axis=1)
            self._columns = np.asfortranarray(self._columns)
        F, ids = self.factor, shard.team.top(self._ids, self.rest, AT_ONCE if most is None else most)
        here = shard.mine(ids)[1]
        left = columns(ids) - F @ shard.take(ids, F[here]).T
        pivots, triangle = _pivots(shard.take(ids, left[here]), max(least, _WORTH * self.left))
        if not len(pivots):
            self.rest[here] = 0.0
            self.left = self._largest_rest()
            return
        new = solve_triangular(triangle, left[:, pivots].T, lower=True, check_finite=False).T
        self.rank = k + len(pivots)
        self._columns[:, k : self.rank] = new
        self.rest = np.maximum(self.rest - (new**2).sum(axis=1), 0.0)
        self.left = self._largest_rest()

    def rank_that_leaves(self, rest: float) -> float:
        """About how many columns leave at most ``rest``: its logarithm is taken to fall like √rank."""
        if self.left <= rest or not self.rank:
            return float(max(self.rank, 1))
        fallen = np.log(self.start / self.left)
        return float(self.rank * (np.log(self.start / rest) / fallen) ** 2) if fallen > 0 else np.inf

    def _largest_rest(self) -> float:
        return self._shard.team.max(float(self.rest.max(initial=0.0)))


def _pivots(A: FloatArray, least: float) -> tuple[IntArray, FloatArray]:
    """Pivots of a small matrix, the largest rest first, while it is at least ``least``; their own factor."""
    pivots, factor = np.empty(len(A), dtype=np.int64), np.empty(A.shape)
    pivots = pivots[: _core.find_pivots(A.copy(), least, pivots, factor)]
    return pivots, factor[pivots, : len(pivots)]
