"""Descent by pairs: the optimum of a block with bounds and a fixed sum, its rows given or asked for."""

import os
import signal

import numpy as np
import pytest
from oracle import kernel_matrix

from multimargin import Decomposition, KernelSVC, _core
from multimargin.engines.cpu.layouts import Layout
from multimargin.inner import Block
from multimargin.inner.pair_descent import PairDescent
from multimargin.kernels import RBF
from multimargin.problems import CrammerSinger, CSvc
from multimargin.working_set import Growing, MaxViolator, SvmLight

EPS = 1e-6


class Case:
    """Two overlapping clouds with unequal costs; the block starts at zero or inside the box."""

    def __init__(self, n=120, dtype=np.float64, C=2.0, seed=0, started=False):
        rng = np.random.default_rng(seed)
        self.y = rng.integers(2, size=n).astype(np.int32)
        self.X = rng.normal(size=(n, 3)) + self.y[:, None]
        self.K = kernel_matrix("rbf", self.X, gamma=0.3).astype(dtype)
        self.C = C * rng.uniform(0.3, 3.0, n)
        self.low, self.high = CSvc(2).bounds(self.y, self.C)
        self.alpha = np.zeros((n, 1))
        if started:
            self.alpha[:, 0] = 0.5 * (self.low + self.high)
        self.sum = self.alpha.sum()
        self.Y = np.where(self.y == 1, 1.0, -1.0)[:, None]
        self.G = self.exact_gradient()
        self.diagonal = np.ones(n)

    def exact_gradient(self):
        return self.K.astype(np.float64) @ self.alpha - self.Y

    def native(self, eps=EPS, max_iter=10**6, **more):
        K = more.pop("K", self.K)
        return _core.pair_descent(
            K, self.diagonal, self.G, self.alpha, self.low, self.high, eps, max_iter, **more
        )

    def specified(self, eps=EPS, max_iter=10**6):
        block = Block(np.arange(len(self.y)), self.K, self.diagonal, self.alpha, self.G, self.y, self.C)
        return PairDescent(max_iter).solve(CSvc(2), block, eps, np.random.default_rng(0))

    def violation(self):
        alpha, G = self.alpha[:, 0], self.exact_gradient()[:, 0]
        return 0.5 * (G[alpha > self.low].max() - G[alpha < self.high].min())

    def dual(self):
        alpha = self.alpha[:, 0]
        return 0.5 * alpha @ self.K.astype(np.float64) @ alpha - self.Y[:, 0] @ alpha

    def check(self, eps=EPS, atol=1e-9):
        assert (self.low <= self.alpha[:, 0]).all() and (self.alpha[:, 0] <= self.high).all()
        assert self.alpha.sum() == pytest.approx(self.sum, abs=1e-11 * self.C.sum())
        np.testing.assert_allclose(self.G, self.exact_gradient(), atol=atol)
        assert self.violation() <= eps + 1e-6 * (self.K.dtype == np.float32)


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_native_and_specified_find_the_optimum(dtype, started):
    native, specified = Case(dtype=dtype, started=started), Case(dtype=dtype, started=started)
    steps, violation, work = native.native()
    assert specified.specified() > 0
    native.check()
    specified.check()
    assert violation <= EPS
    assert work > steps > 0
    assert native.dual() == pytest.approx(specified.dual(), rel=1e-9)


def test_same_steps_as_specified():
    native, specified = Case(), Case()
    for _ in range(20):
        assert native.native(max_iter=3)[0] == specified.specified(max_iter=3) == 3
        np.testing.assert_allclose(native.alpha, specified.alpha, atol=1e-12)


def test_coefficients_meet_their_bounds_exactly():
    case = Case(C=0.05)
    case.native()
    alpha = case.alpha[:, 0]
    assert ((alpha == case.low) | (alpha == case.high)).sum() > 100
    near = np.abs(alpha[:, None] - np.stack([case.low, case.high], axis=1)).min(axis=1)
    assert not ((near > 0) & (near < 1e-9 * case.C)).any()


@pytest.mark.parametrize("n", [2, 3, 31, 32, 33, 255, 257, 600])
def test_any_size(n):
    case = Case(n=n, seed=3)
    case.native()
    case.check()


def test_rows_in_a_corner_of_a_larger_array():
    case, plain = Case(dtype=np.float32), Case(dtype=np.float32)
    wide = np.full((200, 200), np.nan, dtype=np.float32)
    wide[:120, :120] = case.K
    case.native(K=wide[:120, :120])
    plain.native()
    np.testing.assert_array_equal(case.alpha, plain.alpha)


def lazily(case, room, cached):
    """The same block, its rows computed or copied from a store when they are needed."""
    n = len(case.y)
    layout = Layout.plan(RBF(gamma=0.3), case.X, case.K.dtype.name)
    samples, W = layout.samples(case.X), np.arange(n)
    kernel = _core.WorkingSetKernel(layout.spec(0.0), samples, 1)
    slots = np.where(W % 3 == 0, W, -1) if cached else np.full(n, -1)
    store = {"store": case.K, "slots": slots, "columns": W} if cached else {}
    return case.native(K=np.full((room, n), np.nan, dtype=case.K.dtype), kernel=kernel, **store)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("room", [64, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_are_asked_for(dtype, room, cached):
    given, asked = Case(n=300, dtype=dtype), Case(n=300, dtype=dtype)
    given.native()
    lazily(asked, room, cached)
    asked.check(1e-5, atol=1e-5 if dtype == np.float32 else 1e-9)  # theirs are rounded otherwise
    assert asked.dual() == pytest.approx(given.dual(), rel=1e-6)


def test_limits():
    case = Case()
    assert case.native(max_iter=7)[0] == 7
    assert case.native(max_iter=0)[0] == 0
    few = case.native(most_work=5000)
    assert 0 < few[0] < 100
    np.testing.assert_allclose(case.G, case.exact_gradient(), atol=1e-9)


def test_identical_samples_do_not_loop():
    case = Case(n=40)
    case.K[:] = 1.0
    case.G = case.exact_gradient()
    steps, violation, _ = case.native(max_iter=10_000)
    assert steps < 10_000 and violation <= EPS


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zero_eps_ends(dtype):
    case = Case(dtype=dtype)
    steps, violation, _ = case.native(eps=0.0, max_iter=10**6)
    assert steps < 10**6 and violation < 1e-5


def test_one_class_cannot_move():
    case = Case()
    case.y[:] = 1
    case.low, case.high = CSvc(2).bounds(case.y, case.C)
    assert case.native()[0] == 0 == case.specified()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"alpha": np.full((120, 1), 1e3)}, "between low and high"),
        ({"G": np.zeros((120, 2))}, "one column"),
        ({"diagonal": np.ones(7)}, "one value per row"),
        ({"K": np.zeros((50, 120))}, "too few rows"),
    ],
)
def test_wrong_input(change, message):
    case = Case()
    vars(case).update(change)
    with pytest.raises(ValueError, match=message):
        case.native()


def test_parameters():
    with pytest.raises(ValueError, match="max_iter"):
        PairDescent(0)
    with pytest.raises(ValueError, match="smo cannot handle the simplex"):
        PairDescent().check(CrammerSinger(3))


def test_rules_that_choose_one_by_one_are_refused():
    with pytest.raises(ValueError, match=r"max-violator .* in pairs; use growing or svm-light"):
        Decomposition(MaxViolator(q=30), PairDescent()).check(CSvc(2))


@pytest.mark.parametrize("engine", ["numpy", "cpu"])
@pytest.mark.parametrize(
    "rule", [SvmLight(n_sp=30, n_c=16), Growing(start=20, whole=10, least=16, reach=0.7, even=True)]
)
def test_in_the_loop(rule, engine):
    case = Case(n=300, C=1.0)
    fits = [
        KernelSVC("c-svc", gamma=0.3, engine=engine, tol=1e-5, solver=solver).fit(
            case.X, case.y, sample_weight=case.C
        )
        for solver in (Decomposition(rule, PairDescent()), "auto")
    ]
    assert all(fit.status_.converged for fit in fits)
    assert fits[0].dual_objective_ == pytest.approx(fits[1].dual_objective_, rel=1e-7)


def test_small_caches_and_rooms_find_the_same():
    """Rows are kept only if that pays. Whatever is kept, the answer is the same."""
    case = Case(n=2500, C=1.0, seed=5)
    fits = [KernelSVC("c-svc", gamma=0.3, cache_size=size).fit(case.X, case.y) for size in (1, 500)]
    assert all(fit.status_.converged for fit in fits)
    assert fits[0].dual_objective_ == pytest.approx(fits[1].dual_objective_, rel=1e-5)


@pytest.mark.skipif(os.name != "posix", reason="interval timers need a POSIX system")
def test_an_interrupt_leaves_alpha_and_gradient_together():
    case = Case(n=800, C=1e7, seed=2)
    case.K[:] = kernel_matrix("rbf", case.X, gamma=1e-3)  # creeps for minutes
    case.G = case.exact_gradient()

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            case.native(eps=1e-12, max_iter=10**12)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    scale = np.abs(case.alpha).sum()
    assert scale > 0
    np.testing.assert_allclose(case.G, case.exact_gradient(), atol=1e-10 * scale)
    assert case.alpha.sum() == pytest.approx(0.0, abs=1e-12 * scale)


def test_infinite_kernel_values_end_the_descent():
    """Then no sample may have the largest gain that was found, and a search for it went beyond the arrays."""
    rows = [[1.6, -0.8, -0.7, -0.5], [-0.8, 4.5, 4.0, 0.5], [-np.inf, 4.0, 5.5, -0.2], [-0.5, 0.5, -0.2, 3.1]]
    G, alpha, ones = np.array([[-1.0], [0.7], [-1.6], [0.1]]), np.zeros((4, 1)), np.ones(4)
    limits = {"eps": 1e-3, "max_iter": 50, "most_work": 10**6, "seconds": 1.0}
    K = np.array(rows, dtype=np.float32)
    steps, _, _ = _core.pair_descent(K, ones, G, alpha, -ones, ones, **limits)
    assert steps < 50
    assert np.abs(alpha).max() <= 1.0
