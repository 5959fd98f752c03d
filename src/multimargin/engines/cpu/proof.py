"""A proof: the rows of G that matter, computed from alpha in float64.

A sample without weight matters to a certificate only if it violates its conditions. Between proofs its row
of G is the sum of the steps, with rounded kernel values and sums in single precision:

    |error of G_ir| ≤ (ε + u (N + 2)) L_r,    L_r = Σ over all steps |δ_jr|

ε bounds the error of a kernel value that the loop uses. N products at most are summed in single precision, of
unit roundoff u; the other two roundings are those of a coefficient and of a product. Conditions compare two
classes. So if the slack of a sample is above twice this bound, the sample does not violate at the exact G
either. Its violation, its loss and its part of the gap are then exactly zero, and no more needs to be known
of it. All other rows are computed in float64.

A second proof adds only the steps since the first one to the rows that were exact there, again in float64.

If nothing couples the classes of a machine, all this holds for every class by itself, with its own L_r and
without the factor 2, because a condition has one class. Then single entries of G are computed, each from the
support vectors of its class, unless whole rows take less time.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ... import _core
from ...problems.box import BoxProblem
from ...run.profile import Profile
from ...system.fixed_point import FIXED_POINT
from ...system.typing import FloatArray, IntArray
from .kernel_values import KernelValues, NativeValues, between_0_and_1
from .pair_watch import PairWatch
from .row_store import RowStore, chunks
from .state import State, rows_not_zero
from .watch import Watch

_UNIT = 2.0**-24  # u
# ε: the roundings of the argument of exp (x e^-x is below 0.37), of exp and of the result are 5 u at most.
# What the rounding of distances adds is known to the layout.
_VALUE_ERROR = 16 * _UNIT
_FIXED_POINT_ERROR = 0.5 / 65535
_SMALL_CALLS = 3  # times as long takes a value of one class, in small calls, as one of all classes together
_AT_ONCE = 4096  # samples of other processes: messages do not grow with n


class Known(NamedTuple):
    """What the last proof has found."""

    rows: IntArray  # of the samples held here
    scores: FloatArray  # of these rows
    support: IntArray  # of all processes
    coef: FloatArray  # of the support vectors


class KnownPairs(NamedTuple):
    """The same if the last proof computed single entries of the scores."""

    matters: np.ndarray  # which, as a mask
    scores: FloatArray
    alpha: FloatArray


class Proof:
    """Knows how wrong G can be, and makes exact what that leaves undecided."""

    def __init__(
        self, state: State, rows: RowStore, watch: Watch | PairWatch | None, profile: Profile
    ) -> None:
        self.state, self.rows, self.watch, self.profile = state, rows, watch, profile
        self._per_length = value_error(rows.values) + _UNIT * (_core.SUMMED_ROWS + 2)
        self._length = np.zeros(state.m)  # L
        self._known: Known | None = None
        self._known_pairs: KnownPairs | None = None

    def add(self, delta: FloatArray) -> None:
        """G has been changed by the steps ``delta``, one row per sample."""
        self._length += np.abs(delta).sum(axis=0)

    def lose(self) -> None:
        """G is no longer the sum of known steps."""
        self._length[:] = math.inf

    def go_on(self, length: FloatArray, known: Known | None) -> None:
        """Go on from what another proof knew of the point at which the fit starts."""
        self._length, self._known = length.copy(), known

    def knows(self) -> tuple[FloatArray, Known | None]:
        """What ``go_on`` needs: L, those steps included whose rows of G are not kept, and the last proof."""
        return self._length + (0.0 if self.watch is None else self.watch.length()), self._known

    def sum_anew(self) -> None:
        """G is the sum of K α over the support vectors, with kernel values that the loop uses."""
        self._length = np.abs(self.state.alpha).sum(axis=0)

    def saw_all(self) -> None:
        """All rows of G are exact."""
        self._length[:] = 0.0
        self._known = None

    def error(self) -> float:
        """A bound of the error of every entry of G that is up to date."""
        return self._per_length * float(self.knows()[0].max(initial=0.0))

    @property
    def can_bound(self) -> bool:
        """Whether a bound of the error of G, where there is one, says which samples have no loss."""
        return self.state.problem.idle_without_loss and math.isfinite(self._per_length)

    @property
    def _is_bounded(self) -> bool:
        """Whether there is such a bound now."""
        stale = self.watch is not None and self.watch.is_stale
        return self.can_bound and math.isfinite(self.error()) and not stale

    def undecided_pairs(self) -> np.ndarray | None:
        """Which entries of G must be computed, as a mask; None if whole rows are less work."""
        state, problem = self.state, self.state.problem
        if problem.coupled or not state.shard.alone or not self._is_bounded:
            return None
        assert isinstance(problem, BoxProblem)
        has_weight = state.alpha != 0
        error = self._per_length * self.knows()[0]
        matters = ~(problem.gamma(state.G, state.y) > error) | has_weight
        if state.task.left_out is not None:
            matters[state.task.left_out] = False
        rows, own = np.count_nonzero(matters.any(axis=1)), np.count_nonzero(has_weight, axis=0)
        pairs = float(_values(own, np.count_nonzero(matters, axis=0)).sum())
        return matters if _SMALL_CALLS * pairs < _values(state.n_support, rows) else None

    def scores_of_pairs(self, matters: np.ndarray) -> FloatArray:
        """The scores K α of all samples, exact at the entries ``matters``."""
        alpha, S, known = self.state.alpha, self.state.scores(slice(None)), self._known_pairs
        for r in range(self.state.m):
            here, ids, coef = np.flatnonzero(matters[:, r]), np.flatnonzero(alpha[:, r]), alpha[:, r]
            if known is not None:
                step = coef - known.alpha[:, r]
                moved, old = np.flatnonzero(step), known.matters[here, r]
                if 2 * len(moved) <= len(ids):
                    at, here = here[old], here[~old]
                    S[at, r] = known.scores[at, r] + self._class_sums(moved, step, at)
            S[here, r] = self._class_sums(ids, coef, here)
        self._known_pairs = KnownPairs(matters, S.copy(), alpha.copy())
        return S

    def _class_sums(self, ids: IntArray, coef: FloatArray, here: IntArray) -> FloatArray:
        """Σ_j K(x_i, x_j) coef_j over the samples ``ids``, for the samples i of ``here``."""
        return self.rows.scores(ids, coef[ids, None], here)[:, 0]

    def undecided(self) -> IntArray | None:
        """The samples held here whose rows must be computed, by their numbers; None if all of them."""
        state, error = self.state, self.error()
        if not self._is_bounded:
            return None
        slack = np.empty(state.shard.count)
        state.slack(np.arange(len(slack)), slack)
        entries = 2.0 if state.problem.coupled else 1.0  # that a condition compares
        matters = ~(slack > entries * error) | state.is_support_here
        if state.task.left_out is not None:
            matters &= ~state.task.left_out
        return np.flatnonzero(matters)

    def scores(self, here: IntArray | None) -> FloatArray:
        """The scores of the samples ``here``, in float64; of all samples held here if None."""
        support, coef = self._support()
        some = here is not None and self._known is not None
        S = None
        if self.state.team.max(float(not some)) == 0.0:
            assert here is not None and self._known is not None
            S = self._from_known(here, self._known, support, coef)
        if S is None:
            S = self._sums(support, coef, here)
        if here is not None:
            self._known = Known(here, S.copy(), support, coef)
        return S

    def _support(self) -> tuple[IntArray, FloatArray]:
        """The support vectors of all processes and their coefficients."""
        state, support = self.state, self.state.support
        if state.shard.alone:
            return support, state.alpha[support]
        parts = [state.coefficients(part) for part in chunks(support, _AT_ONCE)]
        return support, np.concatenate([np.empty((0, state.m)), *parts])

    def _from_known(
        self, here: IntArray, known: Known, support: IntArray, coef: FloatArray
    ) -> FloatArray | None:
        """The same by what has moved since the last proof; None if that is no less work."""
        moved = np.union1d(known.support, support)
        delta = np.zeros((len(moved), self.state.m))
        delta[np.searchsorted(moved, support)] = coef
        delta[np.searchsorted(moved, known.support)] -= known.coef
        changed = rows_not_zero(delta)
        moved, delta = moved[changed], delta[changed]
        if 2 * len(moved) > len(support):
            return None
        at = np.searchsorted(known.rows, here)
        old = np.isin(here, known.rows)
        S = np.empty((len(here), self.state.m))
        S[old] = known.scores[at[old]] + self._sums(moved, delta, here[old])
        S[~old] = self._sums(support, coef, here[~old])
        return S

    def _sums(self, ids: IntArray, coef: FloatArray, here: IntArray | None) -> FloatArray:
        """Σ_j K(x_i, x_j) coef_j over the samples ``ids`` of all processes, for the samples i of ``here``."""
        guests = self.state.guests
        if guests is None:
            return self.rows.scores(ids, coef, here)
        S = np.zeros((self.state.shard.count if here is None else len(here), self.state.m))
        for part in chunks(np.arange(len(ids)), _AT_ONCE):
            with self.profile.phase("messages"):
                guests.welcome(ids[part])
            S += self.rows.scores(ids[part], coef[part], here)
        return S


def _values(support: Any, count: Any) -> Any:
    """Kernel values for scores of ``count`` samples, ``support`` among them: half of theirs serve."""
    return support * (count - 0.5 * support)


def value_error(values: KernelValues) -> float:
    """A bound of the error of a kernel value in the rows that the loop uses; infinite if none is known."""
    bounded = between_0_and_1(values.task)
    single = values.dtype == np.float32  # else all rows are as cheap
    if not (bounded and single and isinstance(values, NativeValues)):
        return math.inf
    stored = _FIXED_POINT_ERROR if values.row_dtype == FIXED_POINT else 0.0
    return _VALUE_ERROR + _UNIT * values.rounding + stored
