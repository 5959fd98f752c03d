"""The nearest point of a box cut by a hyperplane: low_i ≤ z_i ≤ high_i, Σ_i z_i = total.

The nearest point to w is z_i(λ) = clip(w_i + λ, low_i, high_i) for the right λ. Σ_i z_i(λ) never falls, and
is linear between the 2q breakpoints low_i - w_i and high_i - w_i. So λ lies between the last breakpoint with
a sum below the total and the next one. This definition bisects the sorted breakpoints. Engines have faster
searches of their own, which must find the same point.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from ..system.typing import FloatArray

_ROUNDING = 1e-12  # times Σ_i max(|low_i|, |high_i|): by how much total may be outside of the attainable sums
_EXACT = 1e-15  # a sum counts as met if it is missed by less than this share
_NOISE = 1e-15  # times |w_i| + |λ|: the rounding of their sum
_MOST_NOISE = 1e-14  # times high_i - low_i: the largest rounding that is taken off
_MOST_ROOTS = 5


def project_balanced(w: FloatArray, low: FloatArray, high: FloatArray, total: float) -> FloatArray:
    """The nearest point to ``w`` with ``low`` ≤ z ≤ ``high`` and Σ_i z_i = ``total``; bounds are met exactly.

    Parameters
    ----------
    w, low, high : array of shape (q,)
        The point, and the bounds of each entry.
    total : float
        The sum that the entries must have.

    Examples
    --------
    >>> import numpy as np
    >>> from multimargin.problems.projections import project_balanced
    >>> low, high = np.array([0.0, 0.0, -1.0]), np.array([1.0, 1.0, 0.0])
    >>> project_balanced(np.array([3.0, 0.5, -1.0]), low, high, total=0.5)
    array([ 1. ,  0.5, -1. ])
    """
    if not (low <= high).all() or not np.isfinite(high - low).all():
        raise ValueError("low and high must be finite, and low at most high.")
    if not np.isfinite(w).all():
        raise ValueError("w must be finite.")
    scale = float(np.maximum(np.abs(low), np.abs(high)).sum())
    least, most = float(low.sum()), float(high.sum())
    if not least - _ROUNDING * scale <= total <= most + _ROUNDING * scale:
        raise ValueError(f"total must be between {least} and {most}, the sums of the bounds, got {total}.")
    x = w
    for _ in range(_MOST_ROOTS):  # rounding spoils the first root if w is much larger than the box
        x = x + _root(x, low, high, total)
        z = np.clip(x, low, high)
        if abs(total - float(z.sum())) <= _EXACT * (np.abs(z).sum() + abs(total)):
            break
    # An entry that differs from a bound only by rounding is put on it.
    noise = np.minimum(_NOISE * (np.abs(w) + np.abs(x - w)), _MOST_NOISE * (high - low))
    return np.where(x - low <= noise, low, np.where(high - x <= noise, high, x))


def _root(w: FloatArray, low: FloatArray, high: FloatArray, total: float) -> float:
    """λ: the sum at the breakpoint below it grows by one per unit of λ and free entry."""
    points = np.sort(np.concatenate([low - w, high - w]))

    def sum_at(shift: float) -> float:
        return float(np.clip(w + shift, low, high).sum())

    after = bisect_left(points, total, key=sum_at)
    if after == 0 or after == len(points):
        return float(points[0] if after == 0 else points[-1])
    lower, upper = float(points[after - 1]), float(points[after])
    free = max(int(np.count_nonzero((low - w <= lower) & (high - w >= upper))), 1)
    return min(lower + (total - sum_at(lower)) / free, upper)
