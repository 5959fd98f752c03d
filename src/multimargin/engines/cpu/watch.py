"""The gradient of a fit that keeps no kernel rows: computed from scratch, for samples that can matter.

A sample without weight has a slack: how much the differences of its row of G must change before it violates.
Its row is computed again only if the slack is below the change that is to be expected since it was computed
last, or below the largest violation. The expected change is an estimate: the largest that almost all computed
rows showed, summed over the rounds. So before the loop may end, all rows are computed (``complete``), and the
proof does not use them at all.
"""

from __future__ import annotations

import numpy as np

from ... import _core
from ...run.profile import Profile
from ...system.typing import IntArray
from .kernel_values import NativeValues
from .row_store import RowStore
from .state import State

_ALMOST_ALL = 0.999  # of the computed rows
_FALL = 0.1  # the rows of W are computed again when the largest violation has fallen to this share
_FAR = 0.3  # and as long as it is above this, in margin units


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
        """Whether some rows of G are not up to date."""
        return self._some_stale

    def see_all(self) -> None:
        """All rows of G have just been computed."""
        self._drift, self._at_last_look = 0.0, np.inf
        self._seen[:] = 0.0
        self._stale[:] = False
        self._some_stale = False
        self._measure(np.arange(self.state.n))

    def doubt_all(self) -> None:
        """No row of G can be relied on."""
        self._slack[:] = -np.inf
        self._stale[:] = True
        self._some_stale = True

    def shifted(self, most: float) -> None:
        """Differences of entries of G have changed by up to ``most``."""
        self._drift += most

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

    def complete(self) -> bool:
        """Compute the rows that are not up to date; whether there were any."""
        if not self._some_stale:
            return False
        ids = np.flatnonzero(self._stale)
        self._compute(ids)
        self._seen[ids] = self._drift
        self._stale[ids] = False
        self._some_stale = False
        return True

    def _due(self, W: IntArray, worst: float) -> tuple[IntArray, np.ndarray]:
        """The samples whose rows are to be computed, and who is in ``W``, as a mask.

        The solver leaves rows of W up to date for the classes that took part. The other classes are far
        below these as long as the largest violation does not fall much. Support vectors outside of W have no
        slack.
        """
        is_support = self.state.is_support
        due = (self._slack < self._drift - self._seen) | (self._slack <= worst) | is_support
        look = worst > _FAR * self.state.problem.kappa or worst < _FALL * self._at_last_look
        if look:
            self._at_last_look = worst
        due[W] = True if look else ~is_support[W]
        in_W = np.zeros(self.state.n, dtype=bool)
        in_W[W] = True
        return np.flatnonzero(due), in_W

    def _compute(self, ids: IntArray) -> None:
        """Rows of G from scratch."""
        state = self.state
        base = state.bias - state.problem.target(np.arange(state.m, dtype=state.y.dtype))
        with self.profile.phase("gradient"):
            support = state.support
            self.values.gradient(support, state.alpha[support], ids, base, state.y, state.G)
        self.rows.computed += len(support) * len(ids) / state.n
        self._measure(ids)

    def _measure(self, ids: IntArray) -> None:
        _core.slack(self.state.problem.name, self.state.G, self.state.y, ids, self._slack)
