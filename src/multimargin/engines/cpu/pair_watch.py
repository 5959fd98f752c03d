"""The gradient of a fit that keeps no kernel rows, if nothing couples the classes: by pairs (sample, class).

As ``watch.py``, for single entries of G instead of rows. A class has its own support vectors and its own
samples near the margin, so most kernel values between a support vector and a sample serve no class. An
entry is computed from the support vectors of its class, if its coefficient is not zero, or if its slack is
below the largest violation or below the change that is to be expected since it was computed last. Whole
rows are computed if they take less time.

While the working set is small, most samples violate, and any of them serve as newcomers. So only a random
part of the samples takes part then, ``_POOL`` times as many as the working set has, and at least twice as
many as in the round before. The others wait with a gradient at which they do not violate, until their turn
comes, or all entries are computed (``complete``).
"""

from __future__ import annotations

import numpy as np

from ... import _core
from ...problems.box import BoxProblem
from ...run.profile import Profile
from ...system.typing import FloatArray, IntArray
from .kernel_values import LARGE_COST, NativeValues
from .row_store import RowStore
from .state import State

_REST = 0.01  # of the computed entries, which may have changed more than is expected of others
_POOL = 4  # samples that take part, times those of the working set
_SMALL_CALLS = 1.5  # times as long takes a kernel value that serves one class


class PairWatch:
    """Which entries of G are up to date, and which others must be looked at again."""

    def __init__(self, state: State, rows: RowStore, profile: Profile) -> None:
        assert isinstance(rows.values, NativeValues)
        assert isinstance(state.problem, BoxProblem)
        self.state, self.rows, self.values, self.profile = state, rows, rows.values, profile
        self.problem = state.problem
        self._turn = np.argsort(np.random.default_rng(0).random(state.n))  # when a sample's turn comes
        self.see_all()

    @property
    def is_stale(self) -> bool:
        """Whether some entries of G of samples that take part are not up to date."""
        return self._some_stale and not bool(self._due[self.state.part()].all())

    def length(self) -> FloatArray:
        """Σ_j |α_jr - α₀_jr| since the last exact G, for every class r."""
        return np.asarray(np.abs(self.state.alpha - self._exact[0]).sum(axis=0))

    def see_all(self) -> None:
        """All of G has just been computed, as exactly as can be: later entries are relative to it."""
        state = self.state
        self._exact = state.alpha.copy(), state.G.copy()
        self._drift = 0.0
        slack = self.problem.gamma(state.G, state.y)  # of an entry, when it was computed last
        due_at = slack.copy()  # the drift at which it must be computed again
        self._due = np.ones(slack.shape, dtype=bool)  # whether it is up to date
        self._has_due, self._has_moved = np.ones(state.n, dtype=bool), np.zeros(state.n, dtype=bool)
        self._arrays = slack, due_at
        self._table = _core.PairTable(slack, due_at, self._due, self._has_due, self._has_moved)
        self._some_stale = False
        self._pool = state.n if state.n_support else 0

    def doubt_all(self) -> None:
        """No entry of G can be relied on."""
        for values in self._arrays:
            values[:] = -np.inf
        self._due[:] = False
        self._some_stale = True
        self._pool = self.state.n

    def shifted(self, change: FloatArray) -> None:
        """``change`` was added to all rows of G."""
        self._exact[1][:] += change
        self._drift += float(np.abs(change).max())

    def after_step(self, W: IntArray, worst: float) -> None:
        """Compute the entries that can matter after the samples ``W`` have moved.

        ``worst`` is the largest violation before.
        """
        self._widen_pool(W)
        point, takes_part = (self.state.alpha, self._exact[0]), self._turn < self._pool
        if self.state.task.left_out is not None:
            takes_part &= ~self.state.task.left_out
        self._compute(W, *self._table.find_due(*point, takes_part, self._drift, worst))
        self._some_stale = not self._due.all()

    def complete(self, all_samples: bool = True) -> bool:
        """Compute the entries that are not up to date, perhaps only of samples that take part.

        Returns whether there were any.
        """
        if not self._some_stale:
            return False
        self._pool = self.state.n
        stale = ~self._due
        waits = np.zeros_like(stale)
        left_out = self.state.task.left_out
        if not all_samples and left_out is not None:
            waits[left_out] = stale[left_out]
        self._due[:] = stale & ~waits
        moved, rows, values = self._table.find_due(self.state.alpha, self._exact[0], None, 0.0, 0.0)
        if rows:
            self._compute(np.empty(0, dtype=np.int64), moved, rows, values)
        self._due[:] = ~waits
        self._some_stale = bool(waits.any())
        return rows > 0

    def _widen_pool(self, W: IntArray) -> None:
        """Let more samples take part; the first time, the others get a gradient without violation."""
        state, n = self.state, self.state.n
        if self._pool >= n:
            return
        if self._pool == 0:
            waits = np.ones(n, dtype=bool)
            waits[W] = False
            self._turn[W] = -1
            state.G[waits] = state.problem.target(state.y[waits])
        self._pool = min(n, max(_POOL * len(W), 2 * self._pool))

    def _compute(self, W: IntArray, moved: int, rows: int, values: float) -> None:
        """Due entries of G = G₀ + K (α - α₀), from the last exact G₀; ``W`` have just been solved for.

        ``moved`` samples have moved since then, ``rows`` rows have due entries. If each class computes its
        own kernel values, it takes ``values`` of them.
        """
        state, (alpha, G) = self.state, self._exact
        with self.profile.phase("gradient"):
            steady = state.costs.largest > LARGE_COST
            if _SMALL_CALLS * values < float(moved) * rows:
                self.values.gradient_of_pairs(state.alpha, alpha, self._due, values, G, state.G, steady)
            else:
                values = float(moved) * rows
                here, ids = np.flatnonzero(self._has_due), np.flatnonzero(self._has_moved)
                self._due[here] = True
                self.values.gradient(ids, state.alpha[ids] - alpha[ids], here, G, state.G, steady)
            self.rows.computed += values / state.n
            solved = np.zeros(state.n, dtype=bool)
            solved[W] = True
            self._drift = self._table.measure(state.G, state.y, solved, self._drift, _REST)
