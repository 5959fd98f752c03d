"""The interior point finisher: on blocks that coordinate descent has left half solved, against the oracle."""

import os
import signal
import warnings
from dataclasses import replace

import numpy as np
import pytest
from oracle import assert_feasible, certify, full_alpha, kernel_matrix, one_hot, solve_crammer_singer

from multimargin import KernelSVC
from multimargin.inner import Block, CoordinateDescent, InteriorPoint, undecided_interior_point
from multimargin.methods import METHODS
from multimargin.problems import CrammerSinger
from multimargin.system.threads import blas_threads

MACHINE, EPS = CrammerSinger(4), 1e-4


@pytest.fixture(autouse=True)
def one_blas_thread():
    """As in a fit: if cores are shared, threads that wait for each other make many small products slow."""
    with blas_threads(1):
        yield


def half_solved(seed=0, n=40, m=4, C=1.0, dtype=np.float64, sweeps=5, duplicates=False, **kernel):
    """A block of costs C times 0.3 to 3, after a few sweeps; its gradient is that of the kernel as stored."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5 if kernel.get("name") != "linear" else 2))
    if duplicates:
        X[n // 2 :] = X[: n - n // 2]
    K = kernel_matrix(kernel.pop("name", "rbf"), X, **({"gamma": 0.4} | kernel)).astype(dtype)
    y = np.resize(np.arange(m), n).astype(np.int32)
    rng.shuffle(y)
    costs = C * rng.uniform(0.3, 3.0, n)
    block = Block(np.arange(n), K, np.diag(K).astype(np.float64), np.zeros((n, m)), -one_hot(y, m), y, costs)
    CoordinateDescent(max_sweeps=sweeps).solve(MACHINE, block, 1e-9, rng)
    block.G[:] = gradient(block)
    return block


def gradient(block):
    return block.K.astype(np.float64) @ block.alpha - one_hot(block.y, block.alpha.shape[1])


def judge(block):
    return certify(block.K.astype(np.float64), block.y, block.alpha, block.C)


def finish(block, eps=EPS, **options):
    return InteriorPoint(**options).solve(MACHINE, block, eps, np.random.default_rng(0))


def untouched(block, **options):
    """Whether ``finish`` says that it did nothing, and did nothing."""
    alpha, G = block.alpha.copy(), block.G.copy()
    return finish(block, **options) == 0 and np.array_equal(alpha, block.alpha) and np.array_equal(G, block.G)


BLOCKS = {
    "plain": {},
    "two classes": {"m": 2},
    "many classes": {"m": 15, "n": 60},
    "tiny C": {"C": 1e-3},
    "large C": {"C": 1e3},
    "huge C": {"C": 1e5},
    "nearly singular": {"C": 1e3, "gamma": 1e-3},
    "more nearly singular": {"C": 1e5, "gamma": 1e-5},
    "low rank": {"C": 1e3, "name": "linear"},
    "duplicates": {"C": 100.0, "duplicates": True},
    "from zero": {"sweeps": 0},
}


INDEFINITE = ("more nearly singular", "low rank")  # when K is rounded to float32, and C makes it matter


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", BLOCKS)
def test_reaches_the_optimum(kind, dtype):
    """Feasible, the gradient belongs to the point, eps is met, and the value is the QP solver's or better."""
    eps = 1e-2 if dtype == np.float32 and kind in INDEFINITE else EPS
    for seed in (0, 1):
        block = half_solved(seed, dtype=dtype, **BLOCKS[kind])
        before, rows = judge(block), InteriorPoint().undecided(block)[0]
        assert 0 < finish(block) <= 60
        assert_feasible(block.alpha, block.y, block.C, atol=1e-12)
        np.testing.assert_allclose(block.G, gradient(block), atol=1e-13 * (1 + block.C.sum()))
        after = judge(block)
        assert after.dual < before.dual
        assert after.psi[rows].max() <= eps
        if dtype == np.float64 and after.psi.max() <= EPS:  # rows that were decided may violate now
            best = certify(block.K, block.y, solve_crammer_singer(block.K, block.y, block.C), block.C)
            assert after.dual <= best.dual + EPS * block.C.sum()
            assert after.gap <= EPS * block.C.sum()


def test_nothing_undecided():
    """Far apart samples of huge margin: each is decided, so there is no pair to move."""
    n, m = 6, 3
    y = np.arange(n, dtype=np.int32) % m
    K, C = 10.0 * np.eye(n), np.full(n, 1e-3)
    alpha = C[:, None] * (one_hot(y, m) - one_hot((y + 1) % m, m))  # bounded, all weight on one class
    block = Block(np.arange(n), K, np.diag(K).copy(), alpha, K @ alpha - one_hot(y, m), y, C)
    block.G[np.arange(n), (y + 1) % m] += 1.0  # from samples outside: the class stays the best by far
    assert len(InteriorPoint().undecided(block)[0]) == 0
    assert untouched(block)


@pytest.mark.parametrize("limit", [{"most": 3}, {"most_work": 10.0}])
def test_leaves_a_block_alone_that_is_too_large(limit):
    assert untouched(half_solved(), **limit)


def test_is_asked_for_nearly_solved_blocks_only():
    block = half_solved()
    assert InteriorPoint().fits(block, 1e-3)
    assert not InteriorPoint().fits(block, 0.5)
    assert not InteriorPoint(most=3).fits(block, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("max_iter", [1, 2, 4])
def test_cut_short_it_is_no_worse(max_iter):
    """The first steps start from a point moved to the inside: such a result may be worse than the start."""
    for seed in range(5):
        block = half_solved(seed, C=30.0, sweeps=60)
        before = judge(block).dual
        finish(block, max_iter=max_iter)
        assert judge(block).dual <= before
        assert_feasible(block.alpha, block.y, block.C, atol=1e-12)
        np.testing.assert_allclose(block.G, gradient(block), atol=1e-10)


def test_without_a_factor_it_is_no_worse(monkeypatch):
    monkeypatch.setattr(undecided_interior_point._Undecided, "_factor", lambda self, D: False)
    assert untouched(half_solved(sweeps=60))


def test_nan_is_never_taken_over():
    block = half_solved()
    block.K[3, 5] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert untouched(block)


def test_sample_without_influence():
    """K_ii = 0: the sample's problem is linear, all its weight goes to the best class."""
    block = half_solved()
    block.K[7], block.K[:, 7], block.diagonal[7] = 0.0, 0.0, 0.0
    block.G[:] = gradient(block)
    assert finish(block) > 0
    assert np.isfinite(block.alpha).all()
    assert_feasible(block.alpha, block.y, block.C, atol=1e-12)
    assert judge(block).psi.max() <= EPS


def test_untouched_rows_keep_their_coefficients():
    block = half_solved(n=60, C=0.05, sweeps=200)
    rows, alpha = InteriorPoint().undecided(block)[0], block.alpha.copy()
    finish(block)
    rest = np.setdiff1d(np.arange(60), rows)
    np.testing.assert_array_equal(block.alpha[rest], alpha[rest])


# Whole fits.


def hard(n, classes=5, seed=0):
    """Overlapping classes in few features: with small gamma and large C a nearly singular kernel."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    return 2.0 * rng.normal(size=(classes, 4))[y] + rng.normal(size=(n, 4)), y


@pytest.mark.parametrize(
    ("n", "gamma", "C"), [(300, 1e-2, 1000.0), (300, 1e-4, 1000.0), (2500, 1e-2, 1000.0)]
)
def test_nearly_singular_fits_are_certified(n, gamma, C):
    """Small: one block of float64 rows. Large: several rounds of a growing set, float32 rows."""
    X, y = hard(n)
    model = KernelSVC(C=C, gamma=gamma, n_threads=1).fit(X, y)
    assert model.status_.converged
    assert model.trace_.info["row_dtype"] == ("float32" if n > 2048 else "float64")
    alpha = full_alpha(model, n)
    assert_feasible(alpha, y, C)
    K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    found = certify(K, y, alpha, C)
    assert found.psi.max() <= 1e-3 * (1 + 1e-6)
    assert model.duality_gap_ == pytest.approx(found.gap, rel=1e-6, abs=1e-7 * found.primal)


@pytest.mark.skipif(os.name != "posix", reason="SIGINT needs a POSIX system")
def test_interrupted_inside_it_keeps_a_feasible_model(monkeypatch):
    """Ctrl-C in the third step of the interior point method."""
    factor, steps = undecided_interior_point._Undecided._factor, []

    def interrupting(self, D):
        steps.append(1)
        if len(steps) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return factor(self, D)

    monkeypatch.setattr(undecided_interior_point._Undecided, "_factor", interrupting)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    X, y = hard(600)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Without leaps, partners and steps over faces and spans, which would solve this without it.
            inner = replace(METHODS["auto"].inner, faces=False, spans=False, partners=False)
            solver = replace(METHODS["auto"], inner=inner, leap=False)
            model = KernelSVC(C=1000.0, gamma=1e-3, tol=1e-5, solver=solver, on_interrupt="keep").fit(X, y)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert len(steps) == 3
    assert model.status_.name == "INTERRUPTED"
    assert_feasible(full_alpha(model, len(y)), y, 1000.0)
