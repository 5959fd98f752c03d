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

from ..system.team import SOLO, Team
from ..system.typing import FloatArray, IntArray, LabelArray
from .base import Problem
from .selection import smallest

MOST_ARCS = 5_000  # in one linear program of the best bias
_MOST_STEPS = 100  # linear programs for one bias
_MOST_TIES = 200_000  # arcs of one program if that many cannot be told apart
_TIED = 1e-6  # of the margin: costs that differ by less are ties, since HiGHS has a tolerance of 1e-7
_MOST_PIVOTS = 100_000  # of one program: no longer than seconds, so that Ctrl-C is heard between two
_METHODS = ("highs", "highs-ipm")  # in turn, until one succeeds
_FREE_OF_CHARGE = 1e-12  # class sums count as met if they are missed by less than this share of all costs


class Flow(NamedTuple):
    """A solution of the linear program."""

    alpha: FloatArray  # (n, m)
    bias: FloatArray  # (m,), the multipliers of the class sums, with sum 0
    exact: bool  # whether the class sums are met, so that the radius did not matter


class _Arcs(NamedTuple):
    """The arcs of this process's samples that are left to the linear program, and what is decided."""

    i: IntArray  # ascending
    r: IntArray
    decided: FloatArray  # (n, m), the coefficients of all other arcs
    radius: float


class _Program(NamedTuple):
    """The linear program of all processes; one entry per arc."""

    own: IntArray
    r: IntArray
    cost: FloatArray
    upper: FloatArray
    sample: IntArray  # 0, 1, 2, ...: whose arc it is
    sums: FloatArray  # (m,), what the arcs must add to the classes
    radius: float


class _Answer(NamedTuple):
    """The solution of a linear program."""

    flow: FloatArray  # of each arc
    bias: FloatArray
    missed: float  # sum of what the class sums miss


def cheapest_flow(
    G: FloatArray, y: LabelArray, C: FloatArray, sums: FloatArray, *, joint: bool, most: int | None = None
) -> Flow | None:
    """Solve the linear program by HiGHS; None if it finds no solution within its limits.

    ``joint`` says that the classes of a sample share its capacity C_i (Crammer-Singer). About ``most`` arcs
    may be undecided; None means all, and then the solution is exact.
    """
    unit = float(C.max())  # HiGHS's tolerances are absolute
    C = C / unit
    arcs = (_shared_arcs if joint else _single_arcs)(G, y, C, most, SOLO)
    answer = _solved(_program(arcs, G, y, C, sums / unit, SOLO), joint)
    if answer is None:
        return None
    beta = np.zeros(G.shape)
    beta[arcs.i, arcs.r] = np.clip(answer.flow, 0.0, C[arcs.i])
    alpha = arcs.decided - beta
    alpha[np.arange(len(y)), y] += beta.sum(axis=1)
    return Flow(unit * alpha, answer.bias, answer.missed <= _FREE_OF_CHARGE * float(C.sum()))


def _step(
    G: FloatArray, y: LabelArray, C: FloatArray, *, joint: bool, team: Team
) -> tuple[FloatArray, bool] | None:
    """The bias, and whether it is exact, of the cheapest flow of a team with class sums zero.

    All processes join their undecided arcs, and the first one solves the program: the last bits of a solution
    may depend on the machine.
    """
    C = C / team.max(float(C.max(initial=0.0)))
    arcs = (_shared_arcs if joint else _single_arcs)(G, y, C, MOST_ARCS, team)
    if team.sum(len(arcs.i)) > _MOST_TIES:
        return None
    program = _program(arcs, G, y, C, np.zeros(G.shape[1]), team)
    total = float(team.sum(C.sum()))
    found = None
    if team.rank == 0 and (answer := _solved(program, joint)) is not None:
        found = answer.bias, answer.missed <= _FREE_OF_CHARGE * total
    return team.agree(found)


def _program(
    arcs: _Arcs, G: FloatArray, y: LabelArray, C: FloatArray, sums: FloatArray, team: Team
) -> _Program:
    """The linear program of all processes' arcs."""
    own = y[arcs.i]
    left = sums - team.sum(arcs.decided.sum(axis=0))
    cost, upper = G[arcs.i, own] - G[arcs.i, arcs.r], C[arcs.i]
    new = np.diff(arcs.i, prepend=-1) > 0  # the first arc of a sample
    joined = team.join(np.column_stack([own, arcs.r, new, cost, upper]))
    own, r, new = joined[:, :3].astype(np.int64).T
    return _Program(own, r, joined[:, 3], joined[:, 4], np.cumsum(new) - 1, left, arcs.radius)


def _solved(program: _Program, joint: bool) -> _Answer | None:
    """Solve the linear program by HiGHS."""
    m, count = len(program.sums), len(program.r)
    cost, upper = program.cost, program.upper
    # The rows of alpha sum to zero, so the last class sum follows from the others: drop it, with b_m = 0.
    flow = sp.csr_array(
        (
            np.concatenate([np.ones(count), -np.ones(count)]),
            (np.concatenate([program.own, program.r]), np.tile(np.arange(count), 2)),
        ),
        shape=(m, count),
    )[: m - 1]
    if math.isfinite(program.radius):  # the flow may miss class sums
        miss = sp.csr_array(sp.eye(m - 1))
        flow = sp.hstack([flow, miss, -miss], format="csr")
        cost = np.append(cost, np.full(2 * (m - 1), program.radius))
        upper = np.append(upper, np.full(2 * (m - 1), np.inf))
    capacity, room = _capacities(program, flow.shape[1]) if joint else (None, None)
    for method in _METHODS if count <= _MOST_TIES else ():
        answer = linprog(
            cost,
            A_ub=capacity,
            b_ub=room,
            A_eq=flow,
            b_eq=program.sums[: m - 1],
            bounds=np.column_stack([np.zeros(len(cost)), upper]),
            method=method,
            options={"maxiter": _MOST_PIVOTS},
        )
        if answer.status == 0:
            bias = np.append(-answer.eqlin.marginals, 0.0)
            return _Answer(answer.x[:count], bias - bias.mean(), float(answer.x[count:].sum()))
    return None


def least_loss_bias(
    problem: Problem,
    S: FloatArray,
    y: LabelArray,
    C: FloatArray,
    start: FloatArray | None,
    *,
    joint: bool,
    team: Team = SOLO,
) -> FloatArray:
    """``Problem.best_bias`` by linear programs of ``MOST_ARCS`` arcs, each from the bias of the one before.

    A program is exact if the bias moves by less than its radius. All of them descend: after ``_MOST_STEPS``
    the bias is still a valid one, only not the best, as it is if a program is not solved. If the first is not
    exact, the bias of a random quarter of the samples, found in the same way, is likely to be nearer.
    """
    G, b = S - problem.target(y), np.zeros(S.shape[1]) if start is None else start - start.mean()
    for step in range(_MOST_STEPS):
        found = _step(G + b, y, C, joint=joint, team=team)
        if found is None:
            break
        change, exact = found
        b = b + change
        if exact:
            break
        if step == 0 and team.sum(len(y) // 4):
            some = np.random.default_rng(0).choice(len(y), len(y) // 4, replace=False)
            guess = least_loss_bias(problem, S[some], y[some], C[some], b, joint=joint, team=team)
            losses = [team.sum(problem.loss(S + bias, y, C).sum()) for bias in (b, guess)]
            b = guess if losses[1] < losses[0] else b
    return np.asarray(b)


def _single_arcs(G: FloatArray, y: LabelArray, C: FloatArray, most: int | None, team: Team) -> _Arcs:
    """Weston-Watkins: every arc by itself; beyond the radius it is full if its cost is negative."""
    rows = np.arange(len(y))
    gamma = G[rows, y][:, None] - G
    gamma[rows, y] = np.inf
    distance = np.abs(gamma)
    radius = _radius(distance, most, team)
    i, r = np.nonzero(np.isfinite(gamma) & (distance < 2 * radius))
    beta = np.where((distance >= 2 * radius) & (gamma < 0), C[:, None], 0.0)
    decided = -beta
    decided[rows, y] += beta.sum(axis=1)
    return _Arcs(i, r, decided, radius)


def _shared_arcs(G: FloatArray, y: LabelArray, C: FloatArray, most: int | None, team: Team) -> _Arcs:
    """Crammer-Singer: only classes within the radius of the row's maximum; a single one takes all of C_i."""
    rows = np.arange(len(y))
    top = G.argmax(axis=1)
    below = G[rows, top][:, None] - G
    rivals = below.copy()
    rivals[rows, top] = np.inf
    radius = _radius(rivals, most, team)
    near = below < 2 * radius if math.isfinite(radius) else np.ones(G.shape, dtype=bool)
    alone = np.count_nonzero(near, axis=1) <= 1  # with radius 0 not even the maximum is near
    decided = np.zeros_like(G)
    decided[rows[alone], y[alone]] += C[alone]
    decided[rows[alone], top[alone]] -= C[alone]
    near[alone] = False
    near[rows, y] = False
    i, r = np.nonzero(near)
    return _Arcs(i, r, decided, radius)


def _radius(distance: FloatArray, most: int | None, team: Team) -> float:
    """Half the distance below which the team has about ``most`` arcs; infinite if it has no more."""
    finite = distance[np.isfinite(distance)]
    if most is None or team.sum(finite.size) <= most:
        return math.inf
    reach = smallest(finite, most, team)
    if reach <= _TIED:  # more than ``most`` ties: all of them are undecided
        reach = -team.max(-float(finite[finite > _TIED].min(initial=np.inf)))
    return reach / 2


def _capacities(program: _Program, columns: int) -> tuple[sp.csr_array, FloatArray]:
    """Σ_r β_ir ≤ C_i for the samples with several arcs, as a matrix and its right-hand side."""
    arcs_of = np.bincount(program.sample)
    shared = np.flatnonzero(arcs_of > 1)
    place = np.full(len(arcs_of), -1)
    place[shared] = np.arange(len(shared))
    entries = np.flatnonzero(place[program.sample] >= 0)
    matrix = sp.csr_array(
        (np.ones(len(entries)), (place[program.sample[entries]], entries)), shape=(len(shared), columns)
    )
    first = np.flatnonzero(np.diff(program.sample, prepend=-1))  # arc of each sample
    return matrix, program.upper[first[shared]]
