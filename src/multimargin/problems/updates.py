"""The exact one-sample problem of the Crammer-Singer dual, solved in six ways.

Given a sample with coefficients ``alpha``, gradient ``G``, label ``y``, cost ``C`` and K_ii > 0, minimise

    ½ K_ii ‖a - alpha‖² + ⟨G, a - alpha⟩    over    a ≤ C e_y,  Σ_r a_r = 0.

With D = C e_y - alpha + G/K_ii the answer is a = C e_y - [D - θ]₊ with Σ_r [D_r - θ]₊ = C (Crammer &
Singer, Section 6). "sort", "pivot", "bisection" and "fixed-point" are four ways to find θ. "smo" moves mass
between pairs of classes until no pair gains. "frank-wolfe" takes one step towards the best vertex. Every
update returns the new row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..system.typing import FloatArray
from .base import ON_BOUND

_ROUNDING = 1e-14  # times C: less mass than this is rounding
_MAX_STEPS = 1000  # of the iterative searches; each then divides exactly over the classes that it found

Theta = Callable[[FloatArray, float, np.random.Generator], float]
Update = Callable[[FloatArray, FloatArray, int, float, float, np.random.Generator], FloatArray]


def thresholds(D: FloatArray, C: FloatArray) -> FloatArray:
    """θ of every row by sorting it: θ = π(ρ), π(k) = (Σ_{l≤k} μ_l - C)/k, ρ the last k with μ_k > π(k)."""
    mu = -np.sort(-D, axis=1)
    pi = (np.cumsum(mu, axis=1) - C[:, None]) / np.arange(1, D.shape[1] + 1)
    last = np.count_nonzero(mu > pi, axis=1) - 1
    return np.asarray(pi[np.arange(len(D)), last])


def theta_sort(D: FloatArray, C: float, rng: np.random.Generator) -> float:
    """Sort (``thresholds``)."""
    return float(thresholds(D[None], np.array([C]))[0])


def theta_pivot(D: FloatArray, C: float, rng: np.random.Generator) -> float:
    """Randomised pivot (Duchi et al. 2008): split the candidates at a random one, O(m) expected."""
    candidates, total, count = D, 0.0, 0
    while len(candidates):
        pivot = candidates[rng.integers(len(candidates))]
        above = candidates >= pivot
        greater = candidates[above]
        if total + greater.sum() - (count + len(greater)) * pivot < C:
            total, count = total + greater.sum(), count + len(greater)
            candidates = candidates[~above]
        else:
            candidates = np.delete(greater, np.flatnonzero(greater == pivot)[0])
    return float((total - C) / count)


def theta_bisection(D: FloatArray, C: float, rng: np.random.Generator) -> float:
    """Bisection on Σ_r [D_r - θ]₊ = C (Blondel, Fujino & Ueda, with a bracket valid for any sign)."""
    low, high = max(D.max() - C, (D.sum() - C) / len(D)), D.max()
    for _ in range(_MAX_STEPS):
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        if np.maximum(D - middle, 0).sum() > C:
            low = middle
        else:
            high = middle
    return _divide_over_active(D, C, low)


def theta_fixed_point(D: FloatArray, C: float, rng: np.random.Generator) -> float:
    """Fixed point (Crammer & Singer (39)): θ ← (1/m) Σ_r max(θ, D_r) - C/m, monotone from below."""
    m = len(D)
    theta = (D.sum() - C) / m
    for _ in range(_MAX_STEPS):
        new = (np.maximum(theta, D).sum() - C) / m
        if new <= theta:
            break
        theta = new
    return _divide_over_active(D, C, theta)


def _divide_over_active(D: FloatArray, C: float, theta: float) -> float:
    """The exact θ from an approximation below it: Newton on the convex piecewise linear equation."""
    for _ in range(len(D)):
        active = D[D > theta]
        new = float((active.sum() - C) / len(active))
        if new <= theta:
            break
        theta = new
    return theta


def _by_threshold(find: Theta) -> Update:
    def update(
        alpha: FloatArray, G: FloatArray, y: int, C: float, kii: float, rng: np.random.Generator
    ) -> FloatArray:
        if kii <= 0:
            return _best_vertex(alpha, G, y, C)
        D = G / kii - alpha
        D[y] += C
        D -= D.max()  # avoids cancellation; θ moves by the same shift
        return _from_simplex(np.maximum(D - find(D, C, rng), 0.0), y)

    return update


def update_smo(
    alpha: FloatArray, G: FloatArray, y: int, C: float, kii: float, rng: np.random.Generator
) -> FloatArray:
    """Pairs: λ = min((G_p - G_q)/(2 K_ii), z_q) moves from q = argmin_{z_q > 0} G to p = argmax G."""
    if kii <= 0:
        return _best_vertex(alpha, G, y, C)
    z, G = _simplex(alpha, y, C), G.copy()
    z[z <= _ROUNDING * C] = 0.0
    for _ in range(_MAX_STEPS):
        p = int(np.argmax(G))
        q = int(np.argmin(np.where(z > 0, G, np.inf)))
        step = min((G[p] - G[q]) / (2 * kii), z[q])
        if step <= _ROUNDING * C:
            break
        z[p] += step
        z[q] = 0.0 if step == z[q] else z[q] - step
        G[p] -= kii * step
        G[q] += kii * step
    return _from_simplex(z, y)


def update_frank_wolfe(
    alpha: FloatArray, G: FloatArray, y: int, C: float, kii: float, rng: np.random.Generator
) -> FloatArray:
    """One step: u = C(e_y - e_p), t = min(1, g/(K_ii ‖u - alpha‖²)) (MSVMpack, Section 3)."""
    vertex = _best_vertex(alpha, G, y, C)
    if kii <= 0:
        return vertex
    direction = vertex - alpha
    length = float(direction @ direction)
    if length == 0:
        return alpha.copy()
    t = min(1.0, -float(G @ direction) / (kii * length))
    return _from_simplex(_simplex(alpha + max(t, 0.0) * direction, y, C), y)


def _best_vertex(alpha: FloatArray, G: FloatArray, y: int, C: float) -> FloatArray:
    """The a of least ⟨G, a⟩: C(e_y - e_p) with p = argmax G; the old row if it is optimal already."""
    z = _simplex(alpha, y, C)
    if G[z > ON_BOUND * C].min() == G.max():
        return alpha.copy()
    vertex = np.zeros_like(alpha)
    vertex[int(np.argmax(G))] = C
    return _from_simplex(vertex, y)


def _simplex(alpha: FloatArray, y: int, C: float) -> FloatArray:
    z = -alpha
    z[y] += C
    return np.maximum(z, 0.0)


def _from_simplex(z: FloatArray, y: int) -> FloatArray:
    alpha = -z
    alpha[y] = 0.0
    alpha[y] = -alpha.sum()
    return np.asarray(alpha + 0.0)


UPDATES: dict[str, Update] = {
    "sort": _by_threshold(theta_sort),
    "pivot": _by_threshold(theta_pivot),
    "bisection": _by_threshold(theta_bisection),
    "fixed-point": _by_threshold(theta_fixed_point),
    "smo": update_smo,
    "frank-wolfe": update_frank_wolfe,
}
