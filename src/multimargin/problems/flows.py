"""The linear program that Crammer-Singer and Weston-Watkins share, with given class sums.

    min ⟨G, α⟩   subject to   α_i = Σ_{r≠y_i} β_ir (e_{y_i} - e_r),   0 ≤ β_ir ≤ C_i,   Σ_i α_i = sums,

for Crammer-Singer also Σ_r β_ir ≤ C_i. It is a cheapest flow between m nodes: sample i offers arcs from its
class to the others, of capacity C_i and cost γ_ir = G_{i,y_i} - G_ir. Its solution is a vertex for the method
of Frank & Wolfe; its multipliers are the bias of the least primal, since its dual is min_b Σ_i L_i(S_i + b).

Few arcs are undecided if the bias is known to be within ``radius`` of where G was taken: an arc whose cost
is farther from zero stays empty or full (for Crammer-Singer, a class farther below the row's maximum gets
nothing). A bias within a box is, in the flow, leave to miss the class sums at ``radius`` a unit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from ..system.typing import FloatArray, IntArray, LabelArray

_FREE_OF_CHARGE = 1e-12  # of all costs together: class sums missed by less are met


class Flow(NamedTuple):
    """A solution of the linear program."""

    alpha: FloatArray  # (n, m)
    bias: FloatArray  # (m,), the multipliers of the class sums, with sum 0
    exact: bool  # whether the class sums are met, that is, whether the radius did not matter


class _Arcs(NamedTuple):
    """The arcs left to the linear program, and the coefficients of those that are decided."""

    i: IntArray
    r: IntArray
    decided: FloatArray  # (n, m)
    radius: float


def cheapest_flow(
    G: FloatArray, y: LabelArray, C: FloatArray, sums: FloatArray, *, joint: bool, most: int | None = None
) -> Flow:
    """Solve the linear program by HiGHS.

    ``joint``: the classes of a sample share its capacity C_i (Crammer-Singer). ``most``: about how many arcs
    may be undecided; None is all, and the solution then is exact.
    """
    n, m = G.shape
    unit = float(C.max())  # HiGHS's tolerances are absolute
    C, sums = C / unit, sums / unit
    arcs = (_shared_arcs if joint else _single_arcs)(G, y, C, most)
    own = y[arcs.i]
    count, soft = len(arcs.i), math.isfinite(arcs.radius)
    # The rows of alpha sum to zero, so one class sum follows from the others: the last is dropped, b_m = 0.
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
    answer = linprog(
        cost,
        A_ub=capacity,
        b_ub=room,
        A_eq=flow,
        b_eq=(sums - arcs.decided.sum(axis=0))[: m - 1],
        bounds=np.column_stack([np.zeros(len(cost)), upper]),
        method="highs",
    )
    if answer.status != 0:
        raise RuntimeError(f"The linear program of the class sums was not solved: {answer.message}")
    beta = np.zeros((n, m))
    beta[arcs.i, arcs.r] = np.clip(answer.x[:count], 0.0, C[arcs.i])
    alpha = arcs.decided - beta
    alpha[np.arange(n), y] += beta.sum(axis=1)
    bias = np.append(-answer.eqlin.marginals, 0.0)
    missed = float(answer.x[count:].sum())
    return Flow(unit * alpha, bias - bias.mean(), missed <= _FREE_OF_CHARGE * float(C.sum()))


def _single_arcs(G: FloatArray, y: LabelArray, C: FloatArray, most: int | None) -> _Arcs:
    """Weston-Watkins: every arc by itself; beyond the radius it is full where its cost is negative."""
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
    """Crammer-Singer: only classes within the radius of the row's maximum; a lone one takes all of C_i."""
    rows = np.arange(len(y))
    top = G.argmax(axis=1)
    below = G[rows, top][:, None] - G
    rivals = below.copy()
    rivals[rows, top] = np.inf
    radius = _radius(rivals, most)
    near = below < 2 * radius if math.isfinite(radius) else np.ones(G.shape, dtype=bool)
    alone = np.count_nonzero(near, axis=1) <= 1  # with radius 0 nothing is near, not even the maximum
    decided = np.zeros_like(G)
    decided[rows[alone], y[alone]] += C[alone]
    decided[rows[alone], top[alone]] -= C[alone]
    near[alone] = False
    near[rows, y] = False
    i, r = np.nonzero(near)
    return _Arcs(i, r, decided, radius)


def _radius(distance: FloatArray, most: int | None) -> float:
    """Half the distance below which there are about ``most`` arcs; infinite if that is all of them."""
    finite = distance[np.isfinite(distance)]
    if most is None or finite.size <= most:
        return math.inf
    reach = np.partition(finite, most)[most]
    if reach == 0:  # so many exact ties that they must all go in
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
