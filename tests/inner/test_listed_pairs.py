"""Coordinate descent over pairs (sample, class) near the margin: same optimum, feasible, honest about G."""

import numpy as np
import pytest
from oracle import assert_feasible, certify, kernel_matrix, one_hot

from multimargin import _core
from multimargin.engines.base import EngineOptions, Task
from multimargin.engines.cpu import solvers as native
from multimargin.engines.cpu.engine import CpuEngine
from multimargin.inner import Block, CoordinateDescent, Finisher
from multimargin.kernels import make_kernel
from multimargin.problems import CrammerSinger
from multimargin.system.fixed_point import decoded, encoded

M = 20
MACHINE = CrammerSinger(M)
DTYPES = [np.float32, np.float64, np.uint16]  # the last are fixed-point numbers


def clusters(n=240, m=M, seed=0):
    """Overlapping clusters: a sample has two or three classes to choose from, of many."""
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n).astype(np.int32)
    return rng.normal(size=(m, 6))[y] + 0.5 * rng.normal(size=(n, 6)), y


class Case:
    """A block that is solved to a violation of 0.2: the classes near the margin are few."""

    def __init__(self, dtype=np.float64, seed=0, n=240):
        X, self.y = clusters(n, seed=seed)
        self.K = encoded(kernel_matrix("rbf", X, gamma=0.2), np.dtype(dtype))
        self.C = 4.0 * np.random.default_rng(seed).uniform(0.3, 3.0, len(self.y))
        self.alpha, self.G = np.zeros((len(self.y), M)), -one_hot(self.y, M)
        self.descend(np.inf, eps=0.2)
        self.refresh()

    def refresh(self):
        self.G = self.gradient()

    def gradient(self):
        return decoded(self.K) @ self.alpha - one_hot(self.y, M)

    def judge(self):
        return certify(decoded(self.K), self.y, self.alpha, self.C)

    def descend(self, width, eps=1e-6, room=None, relax=1.0, sweeps=5000):
        room = np.empty(len(self.y) ** 2, dtype=self.K.dtype) if room is None else room
        b = self.block()
        K, diagonal, alpha, G, y, C = b.K, b.diagonal, b.alpha, b.G, b.y, b.C
        options = _core.DescentOptions(eps=eps, max_sweeps=sweeps, seed=1, relax=relax, width=width)
        return _core.coordinate_descent("crammer-singer", K, diagonal, G, alpha, y, C, options, room)

    def rounds(self, reach, eps=1e-6, **options):
        """Descents with a fresh list each, as the outer loop makes them."""
        for _ in range(100):
            worst = self.judge().psi.max()
            if worst <= eps:
                return self
            self.descend(reach * worst, eps, **options)
            self.refresh()
        raise AssertionError(f"violation {worst} after 100 rounds")

    def block(self):
        diagonal = decoded(np.diag(self.K))
        return Block(np.arange(len(self.y)), self.K, diagonal, self.alpha, self.G, self.y, self.C)

    def listed(self, width):
        return CoordinateDescent(reach=1.0).pairs(MACHINE, self.block(), width)


@pytest.fixture(scope="module")
def optimum():
    return {dtype: Case(dtype).rounds(np.inf).judge().dual for dtype in DTYPES}


@pytest.mark.parametrize("relax", [0.7, 1.0, 1.3, 1.9])
@pytest.mark.parametrize("reach", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rounds_end_at_the_optimum_of_all_pairs(dtype, reach, relax, optimum):
    case = Case(dtype).rounds(reach, relax=relax)
    assert_feasible(case.alpha, case.y, case.C, atol=1e-12)
    assert case.judge().dual == pytest.approx(optimum[dtype], rel=1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sweeps", [1, 4, 1000])
def test_only_listed_pairs_move_and_have_their_gradient(dtype, sweeps):
    case = Case(dtype)
    start, G, width = case.alpha.copy(), case.G.copy(), 0.02
    listed = case.listed(width)
    assert 0.05 < listed.mean() < 0.3
    before = case.judge().dual
    case.descend(width, sweeps=sweeps)
    assert_feasible(case.alpha, case.y, case.C, atol=1e-12)
    np.testing.assert_array_equal(case.alpha[~listed], start[~listed])
    np.testing.assert_array_equal(case.G[~listed], G[~listed])
    # A sample whose own class alone is listed cannot move, and is left out wholly.
    takes_part = listed & (listed.sum(axis=1) > 1)[:, None]
    np.testing.assert_allclose(case.G[takes_part], case.gradient()[takes_part], atol=1e-11)
    assert case.judge().dual < before


@pytest.mark.slow
@pytest.mark.parametrize("reach", [0.0, 0.1, 0.3])
def test_reaches_what_the_specification_reaches(reach):
    """One descent over the same list, native and plain: the same optimum of the listed pairs."""
    native, plain = Case(n=100), Case(n=100)
    worst = native.judge().psi.max()
    in_class = native.listed(reach * worst).sum(axis=0)
    assert np.square(in_class).sum() < 100**2  # else the native solver would list all pairs
    native.descend(reach * worst, eps=1e-6)
    solver = CoordinateDescent(reach=reach, max_sweeps=2000)
    solver.solve(MACHINE, plain.block(), 1e-6, np.random.default_rng(0))
    assert native.judge().dual == pytest.approx(plain.judge().dual, rel=1e-9)
    np.testing.assert_allclose(native.gradient(), plain.gradient(), atol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_without_room_all_pairs_take_part(dtype):
    """The work space is too small, or there is none: the same as an infinite width, to the last bit."""
    everyone, small = Case(dtype), Case(dtype)
    everyone.descend(np.inf)
    small.descend(0.02, room=np.empty(10, dtype=dtype))
    np.testing.assert_array_equal(everyone.alpha, small.alpha)
    np.testing.assert_allclose(small.G, small.gradient(), atol=1e-11)


def test_the_kernel_may_be_the_corner_of_a_larger_array():
    plain, corner = Case(), Case()
    n = len(plain.y)
    large = np.full((n + 7, n + 7), np.nan)
    large[:n, :n] = corner.K
    corner.K = large[:n, :n]
    for case in (plain, corner):
        case.descend(0.02)
    np.testing.assert_array_equal(plain.alpha, corner.alpha)


def test_more_classes_than_16_bits_hold():
    m = 70_000
    y = np.array([0, m - 1], dtype=np.int32)
    alpha, G = np.zeros((2, m)), np.zeros((2, m))
    G[[0, 1], y] = -1.0
    options = _core.DescentOptions(eps=1e-6, max_sweeps=10)
    _core.coordinate_descent("crammer-singer", np.eye(2), np.ones(2), G, alpha, y, np.ones(2), options)
    np.testing.assert_allclose(alpha.sum(axis=1), 0.0, atol=1e-9)
    assert (alpha[[0, 1], y] > 0.5).all()


@pytest.mark.parametrize("relax", [-1.0, 0.0, 2.0, np.nan])
def test_relaxation_outside_of_0_to_2_is_refused(relax):
    with pytest.raises(ValueError, match="relax"):
        CoordinateDescent(relax=relax)
    with pytest.raises(ValueError, match="relax"):
        Case().descend(1.0, relax=relax)


@pytest.mark.parametrize("reach", [-0.1, np.nan])
def test_negative_reach_is_refused(reach):
    with pytest.raises(ValueError, match="reach"):
        CoordinateDescent(reach=reach)
    with pytest.raises(ValueError, match="width"):
        Case().descend(reach)


def test_room_of_another_precision_is_refused():
    with pytest.raises(ValueError, match="room"):
        Case(np.float64).descend(1.0, room=np.empty(100, dtype=np.float32))


class Idle(Finisher):
    """Fits every block, and does nothing."""

    name, handles, measure = "idle", frozenset({"simplex"}), "psi"

    def within(self, work, memory):
        return self

    def fits(self, block, eps):
        return True

    def solve(self, problem, block, eps, rng):
        return 0


def test_a_second_descent_starts_from_the_true_gradient(monkeypatch):
    """Pairs that the first one did not list have an old gradient; the second must not list them by it."""
    X, y = clusters(600, 30)
    kernel = make_kernel("rbf", degree=3, gamma=0.2, coef0=0.0).resolve(X, None)
    task = Task(CrammerSinger(30), kernel, X, y, np.full(600, 5.0))
    engine = CpuEngine(task, EngineOptions(block_share=0.3))
    block, solvers = engine.blocks.growing(np.arange(600)), engine.solvers
    solvers.solve(CoordinateDescent(max_sweeps=4000), block, 0.3)
    K = kernel_matrix("rbf", X, gamma=0.2)
    errors, sweeps = [], solvers._sweeps

    def watched(*arguments):
        errors.append(np.abs(K @ block.alpha - one_hot(y, 30) - block.G).max())
        return sweeps(*arguments)

    monkeypatch.setattr(solvers, "_sweeps", watched)
    monkeypatch.setattr(native, "_VISITS", 1200)  # two sweeps, then the question whether to finish
    solvers.solve(CoordinateDescent(reach=0.1, max_sweeps=2, finish=Idle()), block, 1e-3)
    assert len(errors) == 2
    assert max(errors) < 1e-10
