"""Weighted quantiles of all classes at once, and the one mass at which they balance.

Minimising a sum of hinges C_i [b_r - t_ir]_+ over b_r, and filling class r with a given mass at the least
cost, are dual to each other. Both sort the levels t_ir and add up their weights.
"""

from __future__ import annotations

import numpy as np

from ..system.team import SOLO, Team
from ..system.typing import FloatArray
from .selection import first_reached

_ROUNDING = 1e-12  # sums of weights that differ by less than this share of the whole mass count as equal
_EXACT = 0.01  # of that: how exactly a team finds the mass at which the classes balance
_WAYS = 16  # parts of the interval in one step to it


class Levels:
    """For every class r its levels t_ir in ascending order, with weights w_ir ≥ 0 and the mass up to each.

    A mass M fills class r from its smallest level up. The level reached is the weighted quantile of M. It is
    one number, or an interval if M is exactly the mass of the first levels (unbounded if M is zero or all).
    """

    def __init__(self, t: FloatArray, weight: FloatArray) -> None:
        levels = np.ascontiguousarray(t.T)
        self._order = np.argsort(levels, axis=1)
        self._levels = np.take_along_axis(levels, self._order, axis=1)
        self._weight = np.take_along_axis(np.ascontiguousarray(weight.T), self._order, axis=1)
        self.mass = np.cumsum(self._weight, axis=1)  # (m, n)
        self.total = self.mass[:, -1] if len(t) else np.zeros(t.shape[1])
        self._close = _ROUNDING * float(self.total.max())

    def interval(self, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest level at which class r holds ``mass[r]``."""
        m, n = self._levels.shape
        low, high = np.full(m, -np.inf), np.full(m, np.inf)
        for r in range(m):
            first = np.searchsorted(self.mass[r], mass[r] - self._close)
            if mass[r] > self._close:
                low[r] = self._levels[r, min(first, n - 1)]
            after = np.searchsorted(self.mass[r], mass[r] + self._close, side="right")
            if after < n:
                high[r] = self._levels[r, after]
        return low, high

    def fill(self, mass: FloatArray) -> FloatArray:
        """(n, m) amounts of at most w_ir that sum to ``mass[r]``, at the smallest levels."""
        before = np.zeros_like(self.mass)
        before[:, 1:] = self.mass[:, :-1]
        amounts = np.empty_like(self.mass)
        filled = np.clip(mass[:, None] - before, 0.0, self._weight)
        np.put_along_axis(amounts, self._order, filled, axis=1)
        return np.asarray(amounts.T)

    def balance(self, offset: FloatArray) -> float:
        """The mass θ at which the levels of the classes sum to zero, class r holding θ - offset_r.

        Σ_r level_r(θ - offset_r) never falls with θ, and jumps only if some θ - offset_r is the mass of the
        first levels. Bisection over those values finds the θ at which it passes zero.
        """
        least, most = offset.max(), (self.total + offset).min()
        theta = (self.mass + offset[:, None]).ravel()
        theta = np.unique(np.append(theta[(theta > least) & (theta < most)], [least, most]))
        first, last = 0, len(theta) - 1
        while first < last:
            middle = (first + last) // 2
            if self.interval(theta[middle] - offset)[1].sum() >= 0:
                last = middle
            else:
                first = middle + 1
        return float(theta[first])


class TeamLevels(Levels):
    """The levels of all samples of a team; every process has those of the samples that it holds."""

    def __init__(self, t: FloatArray, weight: FloatArray, team: Team) -> None:
        super().__init__(t, weight)
        self._team, self.total = team, team.sum(self.total)
        self._close = _ROUNDING * float(self.total.max())
        self._before = np.concatenate([np.zeros((t.shape[1], 1)), self.mass], axis=1)

    def interval(self, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        least = np.minimum(mass, self.total) - self._close
        low, high = self._reached(np.stack([least, self._beyond(mass)], axis=1)).T
        return np.where(mass > self._close, low, -np.inf), high

    def _beyond(self, mass: FloatArray) -> FloatArray:
        """The least mass that is more than ``mass``."""
        return np.asarray(np.nextafter(mass + self._close, np.inf))

    def _reached(
        self, target: FloatArray, low: float | FloatArray = -np.inf, high: float | FloatArray = np.inf
    ) -> FloatArray:
        """The smallest levels at which class r holds ``target[r]`` (m, k), known to be in (low, high]."""

        def mass(t: FloatArray) -> FloatArray:
            rows = zip(self._levels, self._before, t.reshape(len(self._levels), -1), strict=True)
            held = [before[np.searchsorted(levels, at, side="right")] for levels, before, at in rows]
            return np.stack(held).reshape(t.shape)

        known = (np.broadcast_to(end, target.shape).ravel() for end in (low, high))
        return first_reached(mass, target.ravel(), self._team, *known).reshape(target.shape)

    def balance(self, offset: FloatArray) -> float:
        """The same by bisection over all masses: the processes do not know each other's levels."""
        least, most = float(offset.max()), float((self.total + offset).min())
        low = self._reached(self._beyond(least - offset)[:, None])
        if low.sum() >= 0:
            return least
        bottom, top, high = least, most, np.full_like(low, np.inf)
        while top - bottom > _EXACT * self._close:
            theta = np.linspace(bottom, top, _WAYS + 1)
            inner = self._reached(
                self._beyond(theta[1:-1] - offset[:, None]), np.nextafter(low, -np.inf), high
            )
            first = np.count_nonzero(inner.sum(axis=0) < 0)
            bottom, top = float(theta[first]), float(theta[first + 1])
            levels = np.concatenate([low, inner, high], axis=1)
            low, high = levels[:, first : first + 1], levels[:, first + 1 : first + 2]
        return min(top + self._close, most)


def levels_of(t: FloatArray, weight: FloatArray, team: Team) -> Levels:
    """The levels of all samples of the team."""
    return Levels(t, weight) if team.size == 1 else TeamLevels(t, weight, team)


def hinge_bias(S: FloatArray, Y: FloatArray, C: FloatArray, team: Team = SOLO) -> FloatArray:
    """The b of least Σ_i C_i [1 - Y_ir (S_ir + b_r)]_+ for every class r, with targets Y_ir = ±1.

    The kinks are at Y_ir - S_ir, and the slope is the mass of the kinks below b_r minus the mass of the
    targets 1. So b_r is a weighted quantile; the middle of it if it is an interval.
    """
    mass = team.sum(C @ (Y > 0))
    low, high = levels_of(Y - S, np.broadcast_to(C[:, None], S.shape), team).interval(mass)
    low, high = np.where(np.isfinite(low), low, high), np.where(np.isfinite(high), high, low)
    return np.asarray(0.5 * (low + high))


def inside(low: FloatArray, high: FloatArray) -> FloatArray:
    """The shortest vector of sum zero between two bounds whose sums have zero between them.

    It is clip(λ, low, high) with λ a root of its sum, which is piecewise linear between the bounds.
    """
    bounds = np.concatenate([low, high])
    bounds = bounds[np.isfinite(bounds)]
    far = 1.0 + float(np.abs(bounds).sum())  # beyond this λ the sum has the sign of λ
    points = np.sort(np.append(bounds, [-far, far]))
    sums = np.clip(points[:, None], low, high).sum(axis=1)
    value = np.clip(np.interp(0.0, sums, points), low, high)
    return np.asarray(value - value.mean())
