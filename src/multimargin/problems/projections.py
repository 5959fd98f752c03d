"""The feasible set of a block whose samples are coupled by their sum: a box cut by a hyperplane.

    low_i ≤ z_i ≤ high_i,    Σ_i z_i = total

The nearest point to w in it is z_i(λ) = clip(w_i + λ, low_i, high_i) for the right λ: Σ_i z_i(λ) never falls,
and is linear between the 2q breakpoints low_i - w_i and high_i - w_i. Two ways to find λ:

"pardalos-kovoor"   halve the breakpoints left, at their median, and forget every sample whose part of the sum
                    has become constant or linear between those left: O(q) in all.
"dai-fletcher"      secants inside of a bracket, safeguarded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..system.typing import FloatArray

if TYPE_CHECKING:
    from ..inner.block import Block
    from .base import Problem

_ROUNDING = 1e-12  # of Σ_i max(|low_i|, |high_i|): by how much total may miss the sums that there are
_EXACT = 1e-15  # the same, for a sum that counts as met
_NOISE = 1e-15  # of w_i and λ: the rounding of their sum
_MOST_NOISE = 1e-14  # the same, of high_i - low_i at most
_MOST_SECANTS = 200
_MOST_REPAIRS = 4


def project_balanced(
    w: FloatArray, low: FloatArray, high: FloatArray, total: float, method: str = "pardalos-kovoor"
) -> FloatArray:
    """The nearest point to ``w`` with ``low`` ≤ z ≤ ``high`` and Σ_i z_i = ``total``; bounds are met exactly.

    Parameters
    ----------
    w, low, high : array of shape (q,)
        The point, and the bounds of each entry.
    total : float
        The sum that the entries must have.
    method : {"pardalos-kovoor", "dai-fletcher"}
        How λ is found; see the module's head.

    Examples
    --------
    >>> import numpy as np
    >>> from multimargin.problems.projections import project_balanced
    >>> low, high = np.array([0.0, 0.0, -1.0]), np.array([1.0, 1.0, 0.0])
    >>> project_balanced(np.array([3.0, 0.5, -1.0]), low, high, total=0.5)
    array([ 1. ,  0.5, -1. ])
    """
    check_projection(method)
    if not (low <= high).all() or not np.isfinite(high - low).all():
        raise ValueError("low and high must be finite, and low at most high.")
    if not np.isfinite(w).all():
        raise ValueError("w must be finite.")
    scale = float(np.maximum(np.abs(low), np.abs(high)).sum())
    least, most = float(low.sum()), float(high.sum())
    if not least - _ROUNDING * scale <= total <= most + _ROUNDING * scale:
        raise ValueError(f"total must be between {least} and {most}, the sums of the bounds, got {total}.")
    x = w + ROOTS[method](w, low, high, total)
    for repair in range(_MOST_REPAIRS):
        z = np.clip(x, low, high)
        missing, free = total - float(z.sum()), int(((low < x) & (x < high)).sum())
        if abs(missing) <= _EXACT * (np.abs(z).sum() + abs(total)):
            break
        # The root of a w much larger than the box is rounded too much. x is as large as the box.
        x = x + (missing / free if free and not repair else ROOTS[method](x, low, high, total))
    # What only rounding keeps off a bound is there.
    noise = np.minimum(_NOISE * (np.abs(w) + np.abs(x - w)), _MOST_NOISE * (high - low))
    return np.where(x - low <= noise, low, np.where(high - x <= noise, high, x))


def _root_at_median(w: FloatArray, low: FloatArray, high: FloatArray, total: float) -> float:
    """λ by Pardalos & Kovoor's way."""
    lower, upper = -np.inf, np.inf  # the bracket of λ
    constant, linear, count = 0.0, 0.0, 0  # of the samples forgotten: Σ z_i(λ) = constant + linear + count λ
    points = np.concatenate([low - w, high - w])
    while len(points):
        trial = float(np.partition(points, len(points) // 2)[len(points) // 2])
        excess = constant + linear + count * trial + np.clip(w + trial, low, high).sum() - total
        if excess == 0:
            return trial
        lower, upper = (lower, trial) if excess > 0 else (trial, upper)
        at_low, at_high = low - w >= upper, high - w <= lower
        inside = (low - w <= lower) & (high - w >= upper) & ~at_low & ~at_high
        constant += low[at_low].sum() + high[at_high & ~at_low].sum()
        linear, count = linear + w[inside].sum(), count + int(inside.sum())
        left = ~(at_low | at_high | inside)
        w, low, high = w[left], low[left], high[left]
        points = points[(points > lower) & (points < upper)]
    if count:
        return float(np.clip((total - constant - linear) / count, lower, upper))
    return float(lower if np.isfinite(lower) else upper)


def _root_by_secants(w: FloatArray, low: FloatArray, high: FloatArray, total: float) -> float:
    """λ by Dai & Fletcher's way: steps that grow until the sum is passed, then secants."""
    first, last = float((low - w).min()), float((high - w).max())
    close = _EXACT * float(np.maximum(np.abs(low), np.abs(high)).sum())

    def excess(trial: float) -> float:
        return float(np.clip(w + trial, low, high).sum()) - total

    trial = min(max(0.0, first), last)
    r = r_before = excess(trial)
    before, step = trial, abs(r) / len(w)  # the sum grows by at most q a unit of λ: no root is nearer
    while r * r_before > 0:
        if abs(r) <= close or trial == (last if r < 0 else first):
            return trial
        before, r_before = trial, r
        trial = min(trial + step, last) if r < 0 else max(trial - step, first)
        r = excess(trial)
        step += step / max(r_before / r - 1.0, 0.1) if r * r_before > 0 else 0.0
    if abs(r) <= close:
        return trial
    lower, upper, below, above = (before, trial, r_before, r) if r > 0 else (trial, before, r, r_before)
    return _secants(excess, close, lower, upper, below, above)


def _secants(
    excess: Callable[[float], float], close: float, lower: float, upper: float, below: float, above: float
) -> float:
    """Dai & Fletcher's secant phase, between two λ with a sum too small and one too large.

    A secant through both ends, unless it would leave the farther end where it is: then one through the last
    two points on this side, but no nearer to the other end than a quarter of the way from there.
    """
    ratio = 1.0 - below / above  # (upper - lower) / (upper - trial)
    trial = upper - (upper - lower) / ratio
    for _ in range(_MOST_SECANTS):
        if not lower < trial < upper:
            break
        r = excess(trial)
        if abs(r) <= close:
            break
        plain = ratio <= 2 if r > 0 else ratio >= 2
        if r > 0:
            step = (upper - trial) / max(above / r - 1.0, 0.1)
            following = max(trial - step, 0.75 * lower + 0.25 * trial)
            upper, above = trial, r
        else:
            step = (trial - lower) / max(below / r - 1.0, 0.1)
            following = min(trial + step, 0.75 * upper + 0.25 * trial)
            lower, below = trial, r
        if plain:
            ratio = 1.0 - below / above
            trial = upper - (upper - lower) / ratio
        elif lower < following < upper:
            ratio, trial = (upper - lower) / (upper - following), following
        else:
            break
    return trial


ROOTS: dict[str, Callable[[FloatArray, FloatArray, FloatArray, float], float]] = {
    "pardalos-kovoor": _root_at_median,
    "dai-fletcher": _root_by_secants,
}


def check_projection(method: str) -> None:
    """Raise ``ValueError`` where there is no such way to project."""
    if method not in ROOTS:
        raise ValueError(f"Unknown projection {method!r}; use one of {', '.join(map(repr, ROOTS))}.")


class BalancedBox:
    """The feasible set of a block with the sum that its samples have at the start."""

    def __init__(self, problem: Problem, block: Block, method: str) -> None:
        self.problem = problem
        self.low, self.high = problem.bounds(block.y, block.C)
        self.total, self.method = float(block.alpha.sum()), method

    def project(self, block: Block, w: FloatArray) -> FloatArray:
        """The nearest point of the set to ``w`` (q, 1)."""
        return project_balanced(w[:, 0], self.low, self.high, self.total, self.method)[:, None]

    def towards(self, block: Block, target: FloatArray, step: float) -> FloatArray:
        """The point at this part, up to 1, of the way to ``target``."""
        z = target if step == 1 else block.alpha + step * (target - block.alpha)
        return np.clip(z, self.low[:, None], self.high[:, None])

    def closeness(self, block: Block) -> float:
        """The violation at the best bias; G is shifted by this bias.

        It is 0 where all samples are at the same end: then nothing can move.
        """
        shift = self.problem.centre(block.rows())
        if not np.isfinite(shift):
            return 0.0
        block.G[:] += shift
        return float(self.problem.measure(block.rows())[0].max())
