"""Best biases and vertices with class sums, against linear programs and generic minimisers."""

import itertools
import time

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from multimargin.problems import PROBLEMS, CrammerSinger, Problem, flows
from multimargin.problems.flows import cheapest_flow
from multimargin.problems.quantiles import Levels, inside

POLYHEDRAL = ("crammer-singer", "weston-watkins", "lee-lin-wahba", "one-vs-rest")
MACHINES = (*POLYHEDRAL, "msvm2")


def random_case(seed, n=14, m=3, ties=False):
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(n, m))
    y = rng.integers(m, size=n).astype(np.int32)
    y[:m] = np.arange(m)
    C = rng.uniform(0.2, 3.0, size=n)
    if ties:
        S, C = np.round(S * 2) / 2, np.ones(n)
    return S - S.mean(axis=1, keepdims=True), y, C


def hinges(machine, y, C, m):
    """The loss as Σ_k w_k max(0, its pieces): a list of (sample, weight, [(class +, class -, constant)])."""
    groups = []
    for i, own in enumerate(y):
        others = [r for r in range(m) if r != own]
        if machine == "crammer-singer":
            groups.append((i, C[i], [(r, own, 1.0) for r in others]))
        elif machine == "weston-watkins":
            groups += [(i, C[i], [(r, own, 1.0)]) for r in others]
        elif machine == "lee-lin-wahba":
            groups += [(i, C[i], [(r, None, 1.0 / (m - 1))]) for r in others]
        else:
            groups += [(i, C[i], [(r, None, 1.0)]) for r in others] + [(i, C[i], [(None, own, 1.0)])]
    return groups


def least_by_linear_program(machine, S, y, C):
    """min over b of the sum of losses: one slack a group, every piece a row."""
    m = S.shape[1]
    groups = hinges(machine, y, C, m)
    A, rhs = [], []
    for k, (i, _, pieces) in enumerate(groups):
        for plus, minus, const in pieces:
            row = np.zeros(m + len(groups))
            if plus is not None:
                row[plus] += 1.0
                const = const + S[i, plus]
            if minus is not None:
                row[minus] -= 1.0
                const = const - S[i, minus]
            row[m + k] = -1.0
            A.append(row)
            rhs.append(-const)
    cost = np.concatenate([np.zeros(m), [w for _, w, _ in groups]])
    sum_row = np.concatenate([np.ones(m), np.zeros(len(groups))])[None]
    equal = (None, None) if machine == "one-vs-rest" else (sum_row, [0.0])
    bounds = [(None, None)] * m + [(0, None)] * len(groups)
    return linprog(cost, np.array(A), rhs, *equal, bounds=bounds, method="highs").fun


def squared_loss(h, C):
    """C min { |ξ|² + (Σ ξ)² : ξ ≥ h } by trying every set of active bounds."""
    best = np.inf
    for active in itertools.product([False, True], repeat=len(h)):
        active = np.array(active)
        total = h[active].sum() / (1.0 + (~active).sum())  # Σ ξ, where free slacks are -Σ ξ each
        xi = np.where(active, h, -total)
        if (xi >= h - 1e-12).all():
            best = min(best, xi @ xi + xi.sum() ** 2)
    return C * best


@pytest.mark.parametrize("machine", POLYHEDRAL)
@pytest.mark.parametrize("m", [2, 3, 5])
@pytest.mark.parametrize("ties", [False, True])
def test_least_primal_of_polyhedral_losses(machine, m, ties):
    for seed in range(8):
        S, y, C = random_case(seed, m=m, ties=ties)
        problem = PROBLEMS[machine](m)
        b = problem.best_bias(S, y, C)
        found, least = problem.loss(S + b, y, C).sum(), least_by_linear_program(machine, S, y, C)
        assert found == pytest.approx(least, rel=1e-9, abs=1e-9)
        if machine != "one-vs-rest":
            assert abs(b.sum()) <= 1e-12 * (1 + np.abs(b).max())


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("ties", [False, True])
def test_least_primal_of_squared_slacks(m, ties):
    for seed in range(4):
        S, y, C = random_case(seed, n=10, m=m, ties=ties)
        problem = PROBLEMS["msvm2"](m)

        def total(free, S=S, y=y, C=C, m=m):
            b = np.append(free, -free.sum())
            h = [np.delete(S[i] + b, y[i]) + 1.0 / (m - 1) for i in range(len(y))]
            return sum(squared_loss(h[i], C[i]) for i in range(len(y)))

        b = problem.best_bias(S, y, C)
        assert problem.loss(S + b, y, C).sum() == pytest.approx(total(b[:-1]), rel=1e-10)
        least = minimize(total, b[:-1] + 0.3, method="BFGS", options={"gtol": 1e-9}).fun
        assert total(b[:-1]) <= least * (1 + 1e-10)
        assert abs(b.sum()) <= 1e-12


@pytest.mark.parametrize("machine", MACHINES)
def test_a_start_changes_the_way_not_the_end(machine):
    S, y, C = random_case(3, n=40, m=4)
    problem = PROBLEMS[machine](4)
    values = [
        problem.loss(S + problem.best_bias(S, y, C, start), y, C).sum()
        for start in (None, np.array([3.0, -1.0, 0.5, 9.0]))
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-10)


@pytest.mark.parametrize("machine", MACHINES)
def test_one_class_alone(machine):
    """All samples of one class: a bias exists that leaves no loss."""
    problem, y = PROBLEMS[machine](3), np.full(5, 1, dtype=np.int32)
    S = np.random.default_rng(0).normal(size=(5, 3))
    S -= S.mean(axis=1, keepdims=True)
    b = problem.best_bias(S, y, np.ones(5))
    assert np.isfinite(b).all()
    assert problem.loss(S + b, y, np.ones(5)).sum() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("machine", MACHINES)
def test_scores_of_zero(machine):
    """No model yet: all scores tie."""
    problem, y = PROBLEMS[machine](3), np.repeat(np.arange(3, dtype=np.int32), 4)
    b = problem.best_bias(np.zeros((12, 3)), y, np.ones(12))
    bound = problem.loss(np.zeros((12, 3)), y, np.ones(12)).sum()
    assert problem.loss(np.zeros((12, 3)) + b, y, np.ones(12)).sum() <= bound + 1e-12


@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins"])
@pytest.mark.parametrize("ties", [False, True])
def test_few_arcs_at_a_time_give_the_same_minimum(machine, ties, monkeypatch):
    for seed in range(5):
        S, y, C = random_case(seed, n=60, m=4, ties=ties)
        S[:, 2] += 2.0
        problem = PROBLEMS[machine](4)
        whole = problem.loss(S + problem.best_bias(S, y, C), y, C).sum()
        monkeypatch.setattr(flows, "MOST_ARCS", 25)
        part = problem.loss(S + problem.best_bias(S, y, C), y, C).sum()
        monkeypatch.undo()
        assert part == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("joint", [True, False])
def test_a_flow_within_a_radius_never_raises_the_primal(joint):
    S, y, C = random_case(1, n=80, m=5)
    problem = PROBLEMS["crammer-singer" if joint else "weston-watkins"](5)
    b, before = np.zeros(5), np.inf
    for _ in range(200):
        found = cheapest_flow(S - problem.target(y) + b, y, C, np.zeros(5), joint=joint, most=15)
        b = b + found.bias
        now = problem.loss(S + b, y, C).sum()
        assert now <= before * (1 + 1e-12)
        before = now
        if found.exact:
            break
    assert found.exact


@pytest.mark.parametrize("machine", MACHINES)
def test_large_problems_take_less_than_seconds(machine):
    n, m = 20_000, 10
    S, y, C = random_case(0, n=n, m=m)
    problem = PROBLEMS[machine](m)
    problem.best_bias(S[:100], y[:100], C[:100])
    start = time.perf_counter()
    b = problem.best_bias(S, y, C)
    assert time.perf_counter() - start < 20.0
    nearby = np.random.default_rng(0).normal(size=(5, m)) * 1e-3
    nearby -= nearby.mean(axis=1, keepdims=True)
    least = problem.loss(S + b, y, C).sum()
    assert all(problem.loss(S + b + d, y, C).sum() >= least * (1 - 1e-9) for d in nearby)


def test_every_machine_has_a_best_bias():
    class Other(CrammerSinger):
        best_bias = Problem.best_bias

    with pytest.raises(TypeError, match="best_bias"):
        Other(3)


def feasible_point(machine, seed, n=6, m=3, moves=3):
    """A random feasible point of a machine, and the gradient there for a Gaussian kernel."""
    rng = np.random.default_rng(seed)
    problem = PROBLEMS[machine](m)
    y = rng.integers(m, size=n).astype(np.int32)
    C = rng.uniform(0.5, 2.0, size=n)
    X = rng.normal(size=(n, 2))
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    alpha = np.zeros((n, m))
    for _ in range(moves):
        alpha = problem.project(alpha + rng.normal(size=(n, m)), y, C)
    return problem, alpha, problem.gradient(K @ alpha, alpha, y, C), y, C


def by_linear_program(machine, G, y, C, sums):
    """min ⟨G, u⟩ over feasible rows (and class sums), written out in β, or z for Crammer-Singer."""
    q, m = G.shape
    columns, upper, owner = [], [], []  # each variable's (q, m) effect on u
    constant = np.zeros((q, m))
    for i in range(q):
        if machine == "crammer-singer":
            constant[i, y[i]] = C[i]
        for r in range(m):
            effect = np.zeros((q, m))
            if machine == "crammer-singer":
                effect[i, r] = -1.0
            elif machine == "one-vs-rest":
                effect[i, r] = 1.0 if r == y[i] else -1.0
            elif r == y[i]:
                continue
            elif machine == "weston-watkins":
                effect[i, y[i]], effect[i, r] = 1.0, -1.0
            else:
                effect[i] = 1.0 / m
                effect[i, r] -= 1.0
            columns.append(effect)
            owner.append(i)
            upper.append(1000.0 * C[i] if machine == "msvm2" else C[i])
    A = np.array([effect.sum(axis=0) for effect in columns]).T
    rhs = sums - constant.sum(axis=0)
    if machine != "one-vs-rest":
        A, rhs = A[:-1], rhs[:-1]
    if machine == "crammer-singer":
        A = np.vstack([A, [[float(o == i) for o in owner] for i in range(q)]])
        rhs = np.concatenate([rhs, C])
    cost = np.array([np.vdot(G, effect) for effect in columns])
    answer = linprog(cost, A_eq=A, b_eq=rhs, bounds=[(0, u) for u in upper], method="highs-ipm")
    return answer.fun + np.vdot(G, constant)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("q", "m"), [(1, 3), (4, 2), (6, 3), (12, 5)])
def test_the_vertex_with_class_sums_is_the_linear_programs(machine, q, m):
    for seed in range(6):
        problem, alpha, G, y, C = feasible_point(machine, seed, q, m)
        sums = alpha.sum(axis=0)
        u = problem.balanced_vertex(G, y, C, sums)
        size = 1000.0 if machine == "msvm2" else 1.0
        np.testing.assert_allclose(u.sum(axis=0), sums, atol=1e-12 * size)
        np.testing.assert_allclose(problem.project(u, y, C), u, atol=1e-12 * size)
        least = by_linear_program(machine, G, y, C, sums)
        assert np.vdot(G, u) == pytest.approx(least, abs=1e-7 * size)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_vertex_does_not_see_a_bias(machine):
    problem, alpha, G, y, C = feasible_point(machine, 5)
    sums, b = alpha.sum(axis=0), np.array([0.7, -0.3, -0.4])
    values = [np.vdot(G, problem.balanced_vertex(G + shift, y, C, sums)) for shift in (0.0, b)]
    assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_levels_fill_the_smallest_first():
    t = np.array([[3.0, 0.0], [1.0, 0.0], [2.0, 5.0]])
    levels = Levels(t, np.array([[1.0, 2.0], [1.0, 0.0], [2.0, 1.0]]))
    assert levels.fill(np.array([1.5, 3.0])).tolist() == [[0.0, 2.0], [1.0, 0.0], [0.5, 1.0]]
    low, high = levels.interval(np.array([1.0, 0.0]))
    assert low.tolist() == [1.0, -np.inf]
    assert high.tolist() == [2.0, 0.0]
    low, high = levels.interval(np.array([4.0, 1.0]))
    assert low.tolist() == [3.0, 0.0]
    assert high.tolist() == [np.inf, 0.0]


def test_balance_brings_the_levels_to_zero():
    rng = np.random.default_rng(2)
    for _ in range(50):
        levels = Levels(rng.normal(size=(6, 3)), rng.uniform(0.5, 2.0, size=(6, 3)))
        offset = rng.uniform(-1.0, 1.0, size=3)
        low, high = levels.interval(levels.balance(offset) - offset)
        assert low.sum() <= 0 <= high.sum()
        middle = inside(low, high)
        assert abs(middle.sum()) <= 1e-12
        assert (middle >= low - 1e-12).all()
        assert (middle <= high + 1e-12).all()
