"""The bias that minimises the primal at given scores: b = argmin_b Σ_i L_i(S_i + b).

At the optimum this is the multiplier of the constraints Σ_i α_i = 0; at any other point it gives the smallest
upper bound P(α, b) that these scores have, Didiot & Lauer's U. All biases have Σ_r b_r = 0 but those of
one-vs-rest, whose classes are problems of their own. With G = S - T, at b = 0:

    one-vs-rest,     b_r is a weighted quantile of -G_ir, of mass Σ_{y_i=r} C_i
    c-svc            (of its one column, of the second class)
    lee-lin-wahba    b_r are weighted quantiles of -G_ir over y_i ≠ r, all of the mass θ at which Σ_r b_r = 0
    msvm2            Newton's method: the sum of losses is once differentiable and piecewise quadratic
    crammer-singer,  the multipliers of a linear program (``flows.py``). Of more than ``_MOST_ARCS`` pairs
    weston-watkins   the nearest to their kinks take part, which is exact while b moves by less than they are
                     near; where it would move farther, the next program starts from there. Each is a descent:
                     if ``_MOST_STEPS`` did not suffice, the bound would be valid, only not the smallest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..system.typing import FloatArray, LabelArray
from .base import Problem
from .flows import cheapest_flow
from .msvm2 import MSVM2
from .quantiles import Levels, balance, inside

_MOST_ARCS = 5_000  # in one linear program
_MOST_STEPS = 100  # linear programs
_MOST_NEWTON = 100
_FLAT = 1e-13  # gradient of the sum of losses, relative to that of its terms, which counts as zero
_ARMIJO = 1e-4


def best_bias(
    problem: Problem, S: FloatArray, y: LabelArray, C: FloatArray, start: FloatArray | None = None
) -> FloatArray:
    """The bias (m,) that minimises ``problem.loss(S + b, y, C).sum()``; a good ``start`` saves time."""
    if problem.name not in _BIASES:
        raise ValueError(
            f"{problem.name} has no free bias; the machines that do are {', '.join(map(repr, _BIASES))}."
        )
    guess = np.zeros(S.shape[1]) if start is None else np.array(start, dtype=np.float64)
    return _BIASES[problem.name](problem, S, y, C, guess)


def _one_vs_rest(
    problem: Problem, S: FloatArray, y: LabelArray, C: FloatArray, start: FloatArray
) -> FloatArray:
    # Σ_i C_i [1 - Y_ir (S_ir + b)]_+ has its kinks at Y_ir - S_ir = -G_ir, and its slope is the mass of those
    # below b less the mass of the targets 1.
    levels = Levels(problem.target(y) - S, np.broadcast_to(C[:, None], S.shape))
    own: FloatArray = C @ (problem.target(y) > 0)
    low, high = levels.interval(own)
    low, high = np.where(np.isfinite(low), low, high), np.where(np.isfinite(high), high, low)
    middle: FloatArray = 0.5 * (low + high)
    return middle


def _lee_lin_wahba(
    problem: Problem, S: FloatArray, y: LabelArray, C: FloatArray, start: FloatArray
) -> FloatArray:
    # f_r(b_r) = Σ_{y_i≠r} C_i [S_ir + κ + b_r]_+ has slope θ at the weighted quantile of mass θ; at the
    # minimum under Σ_r b_r = 0 all slopes are the same.
    weight = np.repeat(C[:, None], S.shape[1], axis=1)
    weight[np.arange(len(y)), y] = 0.0
    levels = Levels(problem.target(y) - S, weight)
    none = np.zeros(S.shape[1])
    return inside(*levels.interval(balance(levels, none) - none))


def _msvm2(problem: MSVM2, S: FloatArray, y: LabelArray, C: FloatArray, start: FloatArray) -> FloatArray:
    # Semismooth Newton on Σ_r b_r = 0 with Armijo's rule: gradient Π Σ_i β̂_i, generalised Hessian
    # Σ_i 2 C_i (I_A + 1_A 1_Aᵀ / (m - |A|)), A the classes with β̂_ir > 0.
    m = S.shape[1]
    centre = np.eye(m) - 1.0 / m
    b = start - start.mean()
    slopes = problem.slopes(S + b, y, C)
    value = float(problem.loss_of(slopes, C).sum())
    for _ in range(_MOST_NEWTON):
        gradient = centre @ slopes.sum(axis=0)
        if np.abs(gradient).max() <= _FLAT * slopes.sum():
            break
        active = (slopes > 0).astype(np.float64)
        share = 2.0 * C / (m - active.sum(axis=1))
        H = np.diag(2.0 * C @ active) + (active * share[:, None]).T @ active
        step = -np.linalg.lstsq(centre @ H @ centre, gradient, rcond=1e-12)[0]
        length, descent = 1.0, float(gradient @ step)
        while length > 1e-10:
            trial = problem.slopes(S + (b + length * step), y, C)
            trial_value = float(problem.loss_of(trial, C).sum())
            if trial_value <= value + _ARMIJO * length * descent:
                break
            length *= 0.5
        else:  # no shorter step is lower: this is the minimum, to rounding
            break
        b, slopes, value = b + length * step, trial, trial_value
    return np.asarray(b - b.mean())


def _crammer_singer(
    problem: Problem, S: FloatArray, y: LabelArray, C: FloatArray, start: FloatArray
) -> FloatArray:
    return _follow(problem, S, y, C, start, joint=True)


def _weston_watkins(
    problem: Problem, S: FloatArray, y: LabelArray, C: FloatArray, start: FloatArray
) -> FloatArray:
    return _follow(problem, S, y, C, start, joint=False)


def _follow(
    problem: Problem, S: FloatArray, y: LabelArray, C: FloatArray, start: FloatArray, *, joint: bool
) -> FloatArray:
    """Linear programs, each from where the last one led, until one is exact.

    If the first is not, the bias of a random quarter of the samples, found the same way, is likely nearer.
    """
    G, b, none = S - problem.target(y), start - start.mean(), np.zeros(S.shape[1])
    for step in range(_MOST_STEPS):
        found = cheapest_flow(G + b, y, C, none, joint=joint, most=_MOST_ARCS)
        b = b + found.bias
        if found.exact:
            break
        if step == 0:
            some = np.random.default_rng(0).choice(len(y), len(y) // 4, replace=False)
            guess = _follow(problem, S[some], y[some], C[some], b, joint=joint)
            b = min(b, guess, key=lambda bias: float(problem.loss(S + bias, y, C).sum()))
    return np.asarray(b)


_BIASES: dict[str, Callable[..., FloatArray]] = {
    "crammer-singer": _crammer_singer,
    "weston-watkins": _weston_watkins,
    "lee-lin-wahba": _lee_lin_wahba,
    "msvm2": _msvm2,
    "one-vs-rest": _one_vs_rest,
    "c-svc": _one_vs_rest,
}
