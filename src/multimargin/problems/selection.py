"""Weighted quantiles of values that the processes of a team hold, found without collecting the values.

A quantile is the smallest number at which a mass that never falls reaches a target. It is searched among all
float64 numbers, in their order, by a bisection with ``_WAYS`` parts: about 16 messages, whose size does not
depend on how many values there are. The answer is exact, since the mass only grows at the values themselves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..system.team import Team
from ..system.typing import FloatArray, IntArray

_WAYS = 16  # parts of the interval in one step
_LEAST = np.iinfo(np.int64).min

Mass = Callable[[FloatArray], FloatArray]  # numbers (q, k) -> mass up to them of what this process holds


def first_reached(
    mass: Mass, target: FloatArray, team: Team, low: FloatArray, high: FloatArray
) -> FloatArray:
    """For each of q questions, the smallest number at which the team's mass is at least ``target``.

    It is known to be above ``low`` and at most ``high``.
    """
    at, end = _ordinal(low), _ordinal(high)
    turns = np.arange(1, _WAYS, dtype=np.uint64)
    while True:
        width = end.view(np.uint64) - at.view(np.uint64)  # exact, also if it is more than an int64 can hold
        if (width <= 1).all():
            return _number(end)
        parts = (width // _WAYS)[:, None] * turns + (width % _WAYS)[:, None] * turns // _WAYS
        inner = at[:, None] + parts.view(np.int64)
        enough = team.sum(mass(_number(inner))) >= target[:, None]
        first = np.count_nonzero(~enough, axis=1)  # parts that are too low
        bounds = np.concatenate([at[:, None], inner, end[:, None]], axis=1)
        every = np.arange(len(target))
        at, end = bounds[every, first], bounds[every, first + 1]


def smallest(values: FloatArray, k: int, team: Team) -> float:
    """The value with ``k`` smaller ones, of all that the team has; it must have more than ``k``."""
    if team.size == 1:
        return float(np.partition(values, k)[k])
    near = np.sort(np.partition(values, k)[: k + 1] if k < len(values) else values)

    def count(t: FloatArray) -> FloatArray:
        return np.asarray(np.searchsorted(near, t, side="right"), dtype=np.float64)

    low, high = np.array([-np.inf]), np.array([np.inf])
    return float(first_reached(count, np.array([k + 1.0]), team, low, high)[0])


def _ordinal(x: FloatArray) -> IntArray:
    """Whole numbers in the order of the floats ``x``, without gaps; both zeros are 0."""
    bits = np.ascontiguousarray(x, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, _LEAST - bits, bits)


def _number(ordinal: IntArray) -> FloatArray:
    """The inverse of ``_ordinal``."""
    return np.where(ordinal < 0, _LEAST - ordinal, ordinal).view(np.float64)
