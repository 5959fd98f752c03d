"""The gradient of a fit that keeps no kernel rows: computed from scratch, for samples that can matter.

A sample without weight has a slack: how much the differences of its row of G must change before it violates.
Its row is computed again only if the slack is below the change that is to be expected since it was computed
last, or below the largest violation. The expected change is an estimate: the largest that almost all computed
rows showed, summed over the rounds. So before the loop may end, all rows are computed (``complete``), and the
proof does not use them at all. Samples that are left out matter to no step: their rows wait for the end.
Rows are computed relative to the last exact G, that of a proof or of the start: so rounding does not hide
what a proof has found.
"""

from __future__ import annotations

import numpy as np

from ...run.profile import Profile
from ...system.typing import FloatArray, IntArray
from .kernel_values import LARGE_COST, NativeValues
from .row_store import RowStore
from .state import State, rows_not_zero

_ALMOST_ALL = 0.999  # of the computed rows
# The rows of W are computed again while the largest violation is above _FAR (in margin units), when it has
# fallen to the share _FALL since they were, and when a round leaves more than the share _STUCK of it.
_FAR, _FALL, _STUCK = 0.3, 0.1, 0.5


class Watch:
    """Which rows of G are up to date, and which others must be looked at again."""

    def __init__(self, state: State, rows: RowStore, profile: Profile) -> None:
        assert isinstance(rows.values, NativeValues)
        self.state, self.rows, self.values, self.profile = state, rows, rows.values, profile
        n = state.n
        self._stale = np.zeros(n, dtype=bool)
        self._slack = np.zeros(n)  # of samples without weight, when their rows were computed last
        self._seen = np.zeros(n)  # the drift at that time
        self.see_all()

    @property
    def is_stale(self) -> bool:
        """Whether the rows of G of some samples that take part are not up to date."""
        return self._some_stale and bool(self._stale[self.state.part()].any())

    def length(self) -> FloatArray:
        """Σ_j |α_jr - α₀_jr| since the last exact G, for every class r."""
        return np.asarray(np.abs(self.state.alpha - self._exact[0]).sum(axis=0))

    def see_all(self) -> None:
        """All rows of G have just been computed, as exactly as can be: later ones are relative to them."""
        self._exact = self.state.alpha.copy(), self.state.G.copy()
        self._had_weight = self.state.is_support.copy()
        self._drift, self._at_last_look, self._last_worst = 0.0, np.inf, np.inf
        self._seen[:] = 0.0
        self._stale[:] = False
        self._some_stale = False
        self._measure(np.arange(self.state.n))

    def doubt_all(self) -> None:
        """No row of G can be relied on."""
        self._slack[:] = -np.inf
        self._stale[:] = True
        self._some_stale = True

    def shifted(self, change: FloatArray) -> None:
        """``change`` was added to all rows of G."""
        self._exact[1][:] += change
        self._drift += float(np.ptp(change))

    def after_step(self, W: IntArray, worst: float) -> None:
        """Compute the rows that can matter after the samples ``W`` have moved; ``worst`` violated before."""
        ids, in_W = self._due(W, worst)
        before = self._slack[ids]
        self._compute(ids)
        change = np.abs(self._slack[ids] - before)[~in_W[ids] & np.isfinite(before)]
        if len(change):
            at = int(_ALMOST_ALL * (len(change) - 1))
            self._drift += float(np.partition(change, at)[at])
        self._seen[ids] = self._drift
        self._stale[:] = True
        self._stale[ids] = False
        self._some_stale = len(ids) < self.state.n

    def complete(self, all_samples: bool = True) -> bool:
        """Compute the rows that are not up to date, perhaps only of samples that take part.

        Returns whether there were any.
        """
        if not self._some_stale:
            return False
        left_out = self.state.task.left_out
        ids = np.flatnonzero(self._stale if all_samples or left_out is None else self._stale & ~left_out)
        if not len(ids):
            return False
        self._compute(ids)
        self._seen[ids] = self._drift
        self._stale[ids] = False
        self._some_stale = bool(self._stale.any())
        return True

    def _due(self, W: IntArray, worst: float) -> tuple[IntArray, np.ndarray]:
        """The samples whose rows are to be computed, and who is in ``W``, as a mask.

        The solver leaves rows of W up to date for the classes that took part. The others are looked at again
        from time to time, and if the rounds gain little. Support vectors outside of W have no slack.
        """
        is_support = self.state.is_support
        due = (self._slack < self._drift - self._seen) | (self._slack <= worst) | is_support
        far, fell = worst > _FAR * self.state.problem.kappa, worst < _FALL * self._at_last_look
        look = far or fell or worst > _STUCK * self._last_worst
        self._last_worst = worst
        if look:
            self._at_last_look = worst
        due[W] = True if look else ~is_support[W]
        if self.state.task.left_out is not None:
            due &= ~self.state.task.left_out
        in_W = np.zeros(self.state.n, dtype=bool)
        in_W[W] = True
        return np.flatnonzero(due), in_W

    def _compute(self, ids: IntArray) -> None:
        """Rows of G = G₀ + K (α - α₀), from the last exact G₀."""
        state, (alpha, G) = self.state, self._exact
        with self.profile.phase("gradient"):
            moved = np.flatnonzero(self._had_weight | state.is_support)  # no other sample can have
            delta = state.alpha[moved] - alpha[moved]
            changed = rows_not_zero(delta)
            moved, delta = moved[changed], delta[changed]
            steady = state.costs.largest > LARGE_COST
            self.values.gradient(moved, delta, ids, G, state.G, steady)
        self.rows.computed += len(moved) * len(ids) / state.n
        self._measure(ids)

    def _measure(self, ids: IntArray) -> None:
        self.state.slack(ids, self._slack)
