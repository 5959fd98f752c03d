"""The linear program that Crammer-Singer and Weston-Watkins share, with given class sums.

    min ⟨G, α⟩   subject to   α_i = Σ_{r≠y_i} β_ir (e_{y_i} - e_r),   0 ≤ β_ir ≤ C_i,   Σ_i α_i = sums,

for Crammer-Singer also Σ_r β_ir ≤ C_i. It is a cheapest flow between m nodes: sample i offers arcs from its
class to the others, of capacity C_i and cost γ_ir = G_{i,y_i} - G_ir. Its solution is a vertex for the method
of Frank & Wolfe. Its multipliers are the bias of least primal, since its dual is min_b Σ_i L_i(S_i + b).

If the bias is known to change by at most ``radius`` from the one in G, few arcs are undecided: an arc whose
cost is farther from zero stays empty or full (for Crammer-Singer, a class farther below the row's maximum
gets nothing). In exchange, the flow may miss class sums at a cost of ``radius`` per unit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from ..system.typing import FloatArray, IntArray, LabelArray
from .base import Problem

MOST_ARCS = 5_000  # in one linear program of the best bias
_MOST_STEPS = 100  # linear programs for one bias
_MOST_TIES = 200_000  # arcs of one program if that many cannot be told apart
_MOST_PIVOTS = 100_000  # of one program: no longer than seconds, so that Ctrl-C is heard between two
_METHODS = ("highs", "highs-ipm")  # in turn, until one succeeds
_FREE_OF_CHARGE = 1e-12  # class sums count as met if they are missed by less than this share of all costs


class Flow(NamedTuple):
    """A solution of the linear program."""

    alpha: FloatArray  # (n, m)
    bias: FloatArray  # (m,), the multipliers of the class sums, with sum 0
    exact: bool  # whether the class sums are met, so that the radius did not matter


class _Arcs(NamedTuple):
    """The arcs left to the linear program, and the coefficients of those that are decided."""

    i: IntArray
    r: IntArray
    decided: FloatArray  # (n, m)
    radius: float


def cheapest_flow(
    G: FloatArray, y: LabelArray, C: FloatArray, sums: FloatArray, *, joint: bool, most: int | None = None
) -> Flow | None:
    """Solve the linear program by HiGHS; None if it finds no solution within its limits.

    ``joint`` says that the classes of a sample share its capacity C_i (Crammer-Singer). About ``most`` arcs
    may be undecided; None means all, and then the solution is exact.
    """
    n, m = G.shape
    unit = float(C.max())  # HiGHS's tolerances are absolute
    C, sums = C / unit, sums / unit
    arcs = (_shared_arcs if joint else _single_arcs)(G, y, C, most)
    own = y[arcs.i]
    count, soft = len(arcs.i), math.isfinite(arcs.radius)
    # The rows of alpha sum to zero, so the last class sum follows from the others: drop it, with b_m = 0.
    flow = sp.csr_array(
        (
            np.concatenate([np.ones(count), -np.ones(count)]),
            (np.concatenate([own, arcs.r]), np.tile(np.arange(count), 2)),
        ),
        shape=(m, count),
    )[: m - 1]
    cost, upper = G[arcs.i, own] - G[arcs.i, arcs.r], C[arcs.i]
    if soft:
        miss = sp.csr_array(sp.eye(m - 1))
        flow = sp.hstack([flow, miss, -miss], format="csr")
        cost = np.append(cost, np.full(2 * (m - 1), arcs.radius))
        upper = np.append(upper, np.full(2 * (m - 1), np.inf))
    capacity, room = _capacities(arcs, C, flow.shape[1]) if joint else (None, None)
    for method in _METHODS if count <= _MOST_TIES else ():
        answer = linprog(
            cost,
            A_ub=capacity,
            b_ub=room,
            A_eq=flow,
            b_eq=(sums - arcs.decided.sum(axis=0))[: m - 1],
            bounds=np.column_stack([np.zeros(len(cost)), upper]),
            method=method,
            options={"maxiter": _MOST_PIVOTS},
        )
        if answer.status == 0:
            break
    else:
        return None
    beta = np.zeros((n, m))
    beta[arcs.i, arcs.r] = np.clip(answer.x[:count], 0.0, C[arcs.i])
    alpha = arcs.decided - beta
    alpha[np.arange(n), y] += beta.sum(axis=1)
    bias = np.append(-answer.eqlin.marginals, 0.0)
    missed = float(answer.x[count:].sum())
    return Flow(unit * alpha, bias - bias.mean(), missed <= _FREE_OF_CHARGE * float(C.sum()))


def least_loss_bias(
    problem: Problem,
    S: FloatArray,
    y: LabelArray,
    C: FloatArray,
    start: FloatArray | None,
    *,
    joint: bool,
) -> FloatArray:
    """``Problem.best_bias`` by linear programs of ``MOST_ARCS`` arcs, each from the bias of the one before.

    A program is exact if the bias moves by less than its radius. All of them descend: after ``_MOST_STEPS``
    the bias is still a valid one, only not the best, as it is if a program is not solved. If the first is not
    exact, the bias of a random quarter of the samples, found in the same way, is likely to be nearer.
    """
    none = np.zeros(S.shape[1])
    G, b = S - problem.target(y), none if start is None else start - start.mean()
    for step in range(_MOST_STEPS):
        found = cheapest_flow(G + b, y, C, none, joint=joint, most=MOST_ARCS)
        if found is None:
            break
        b = b + found.bias
        if found.exact:
            break
        if step == 0 and len(y) >= 4:
            some = np.random.default_rng(0).choice(len(y), len(y) // 4, replace=False)
            guess = least_loss_bias(problem, S[some], y[some], C[some], b, joint=joint)
            b = min(b, guess, key=lambda bias: float(problem.loss(S + bias, y, C).sum()))
    return np.asarray(b)


def _single_arcs(G: FloatArray, y: LabelArray, C: FloatArray, most: int | None) -> _Arcs:
    """Weston-Watkins: every arc by itself; beyond the radius it is full if its cost is negative."""
    rows = np.arange(len(y))
    gamma = G[rows, y][:, None] - G
    gamma[rows, y] = np.inf
    distance = np.abs(gamma)
    radius = _radius(distance, most)
    i, r = np.nonzero(np.isfinite(gamma) & (distance < 2 * radius))
    beta = np.where((distance >= 2 * radius) & (gamma < 0), C[:, None], 0.0)
    decided = -beta
    decided[rows, y] += beta.sum(axis=1)
    return _Arcs(i, r, decided, radius)


def _shared_arcs(G: FloatArray, y: LabelArray, C: FloatArray, most: int | None) -> _Arcs:
    """Crammer-Singer: only classes within the radius of the row's maximum; a single one takes all of C_i."""
    rows = np.arange(len(y))
    top = G.argmax(axis=1)
    below = G[rows, top][:, None] - G
    rivals = below.copy()
    rivals[rows, top] = np.inf
    radius = _radius(rivals, most)
    near = below < 2 * radius if math.isfinite(radius) else np.ones(G.shape, dtype=bool)
    alone = np.count_nonzero(near, axis=1) <= 1  # with radius 0 not even the maximum is near
    decided = np.zeros_like(G)
    decided[rows[alone], y[alone]] += C[alone]
    decided[rows[alone], top[alone]] -= C[alone]
    near[alone] = False
    near[rows, y] = False
    i, r = np.nonzero(near)
    return _Arcs(i, r, decided, radius)


def _radius(distance: FloatArray, most: int | None) -> float:
    """Half the distance below which there are about ``most`` arcs; infinite if there are no more."""
    finite = distance[np.isfinite(distance)]
    if most is None or finite.size <= most:
        return math.inf
    reach = np.partition(finite, most)[most]
    if reach == 0:  # more than ``most`` exact ties: all of them are undecided
        reach = finite[finite > 0].min(initial=np.inf)
    return float(reach) / 2


def _capacities(arcs: _Arcs, C: FloatArray, columns: int) -> tuple[sp.csr_array, FloatArray]:
    """Σ_r β_ir ≤ C_i for the samples with several arcs, as a matrix and its right-hand side."""
    samples, row, arcs_of = np.unique(arcs.i, return_inverse=True, return_counts=True)
    shared = np.flatnonzero(arcs_of > 1)
    place = np.full(len(samples), -1)
    place[shared] = np.arange(len(shared))
    entries = np.flatnonzero(place[row] >= 0)
    matrix = sp.csr_array(
        (np.ones(len(entries)), (place[row[entries]], entries)), shape=(len(shared), columns)
    )
    return matrix, C[samples[shared]]
