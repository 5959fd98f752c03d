"""Fits that keep no kernel rows: fused scores, blocks of single classes, rows of G as far as they matter."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import audit
from oracle import certify, kernel_matrix, one_hot

from multimargin import KernelSVC, _core
from multimargin.engines.base import EngineOptions, Task
from multimargin.engines.cpu import pair_watch
from multimargin.engines.cpu.blocks import Blocks, SampleBlock
from multimargin.engines.cpu.engine import CpuEngine
from multimargin.engines.cpu.layouts import Layout
from multimargin.engines.cpu.watch import Watch
from multimargin.inner.block import Aim
from multimargin.kernels import RBF, Laplacian, Polynomial
from multimargin.methods import find_method
from multimargin.problems import PROBLEMS
from multimargin.system.fixed_point import FIXED_POINT

N, M = 2300, 5  # more samples than a small kernel matrix has


def grid_data(n=N, m=M, d=6, seed=0):
    """Small integers in overlapping clusters: their kernel values are cheap."""
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n)
    return np.rint(8 + 3 * rng.normal(size=(m, d))[y] + 2 * rng.normal(size=(n, d))).clip(0, 15), y


DATA = {
    "integers": (grid_data(300)[0], RBF(0.05), 2e-6),
    "few floats": (np.random.default_rng(1).normal(size=(300, 7)), RBF(0.2), 2e-6),
    "many floats": (np.random.default_rng(2).normal(size=(300, 50)), RBF(0.02), 1e-5),
    "laplacian": (np.random.default_rng(3).normal(size=(300, 7)), Laplacian(0.2), 2e-6),
    "poly": (np.random.default_rng(4).normal(size=(300, 7)), Polynomial(gamma=0.1, degree=2), 1e-4),
    "sparse": (sp.random_array((300, 90), density=0.05, rng=5, format="csr"), RBF(0.5), 2e-6),
    "binary": (np.random.default_rng(6).integers(0, 2, (300, 40)).astype(float), RBF(0.1), 2e-6),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("simd", ["portable", "best"])
@pytest.mark.parametrize("steady", [False, True])
def test_fused_gradient(name, simd, steady):
    X, kernel, tolerance = DATA[name]
    rng, m = np.random.default_rng(0), 4
    support, here = np.sort(rng.permutation(300)[:150]), rng.permutation(300)[:170]
    coef = np.where(rng.random((150, m)) < 0.4, rng.normal(size=(150, m)), 0.0)
    base, results = rng.normal(size=(300, m)), []
    _core.set_integer_simd(simd)
    try:
        layout = Layout.plan(kernel, X, "auto")
        samples, spec = layout.samples(X), layout.spec(0.0)
        for threads in (1, 2, 3):
            G = np.full((300, m), np.nan)
            sv, x = samples.take(support), samples.take(here)
            _core.kernel_gradient(spec, sv, coef, x, here, base, G, steady, threads)
            results.append(G)
    finally:
        _core.set_integer_simd("best")
    K = kernel.between(X[here], X[support])
    exact = base[here] + K @ coef
    assert np.abs(results[0][here] - exact).max() <= tolerance * np.abs(K).max() * np.abs(coef).sum()
    assert np.isnan(np.delete(results[0], here, axis=0)).all()  # no other row is touched
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("steady", [False, True])
def test_gradient_of_pairs(name, steady):
    X, kernel, tolerance = DATA[name]
    rng, m, results = np.random.default_rng(0), 4, []
    start = rng.normal(size=(300, m))
    alpha = start + np.where(rng.random((300, m)) < 0.3, rng.normal(size=(300, m)), 0.0)
    alpha[:, 2] = start[:, 2]  # a class that has not moved
    due, base = rng.random((300, m)) < 0.4, rng.normal(size=(300, m))
    due[:, 3] = False
    layout = Layout.plan(kernel, X, "auto")
    samples, spec = layout.samples(X), layout.spec(0.0)
    for threads in (1, 3):
        G = np.full((300, m), np.nan)
        for rows in ((0, 120), (120, 300)):
            _core.pair_gradient(spec, samples, alpha, start, due, *rows, base, G, steady, threads)
        results.append(G)
    K = kernel.between(X, X)
    exact = base + K @ (alpha - start)
    scale = np.abs(K).max() * np.abs(alpha - start).sum()
    np.testing.assert_allclose(results[0][due], exact[due], rtol=0, atol=tolerance * scale)
    assert np.isnan(results[0][~due]).all()
    np.testing.assert_array_equal(results[1], results[0])


def test_table_of_pairs():
    """Pairs are due by weight, by slack, or by what others have changed since; others are left alone."""
    slack = np.array([[0.5, 0.05], [0.5, 2.0], [3.0, 3.0], [0.01, 0.3]])
    alpha, start = np.zeros((4, 2)), np.zeros((4, 2))
    alpha[2, 1] = 1.0
    due, due_at = np.zeros((4, 2), bool), slack + 1.0  # all were computed at a drift of 1
    has_due, has_moved = np.zeros(4, bool), np.zeros(4, bool)
    table = _core.PairTable(slack, due_at, due, has_due, has_moved)
    found = table.find_due(alpha, start, np.array([True, True, True, False]), 1.6, 0.1)
    np.testing.assert_array_equal(due, [[True, True], [True, False], [False, True], [False, False]])
    np.testing.assert_array_equal(has_due, due.any(axis=1))
    np.testing.assert_array_equal(has_moved, [False, False, True, False])
    assert found == (1, 3, 2.0)  # one sample has moved, of a class with two due pairs
    assert table.find_due(alpha, start, None, 9.0, 9.0) == found
    y, G = np.zeros(4, np.int32), np.array([[0.7, -0.1], [0.9, 0.0], [0.0, 0.2], [0.0, 0.0]])
    drift = table.measure(G, y, np.array([False, False, True, False]), 1.6, 0.0)
    assert drift == pytest.approx(2.0)  # 0.4 more, by the second sample; the third was solved for
    np.testing.assert_allclose(slack, [[0.7, 0.1], [0.9, 2.0], [3.0, -0.2], [0.01, 0.3]])
    np.testing.assert_allclose(due_at[due], slack[due] + drift)
    np.testing.assert_allclose(due_at[~due], slack[~due] + 1.0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint16"])
@pytest.mark.parametrize("width", [0.0, np.inf])
def test_descent_by_computed_classes(dtype, width):
    """One-vs-rest: the optimum of the oracle, with the kernel of each class computed when its turn comes."""
    X, y = grid_data(240)
    y, C, eps = y.astype(np.int32), np.full(240, 2.0), 1e-3
    layout = Layout.plan(RBF(0.02), X, "auto")
    kernel = _core.WorkingSetKernel(layout.spec(0.0), layout.samples(X), 1)
    K, results = kernel_matrix("rbf", X, gamma=0.02), []
    for threads in (1, 3):
        alpha = np.zeros((240, M))
        for _ in range(60):
            G = K @ alpha - (2.0 * one_hot(y, M) - 1.0)
            found = certify(K, y, alpha, C, "one-vs-rest")
            if found.psi.max() <= 2 * eps:
                break
            options = _core.DescentOptions(
                eps=eps, max_sweeps=5000, relax=1.2, width=width, n_threads=threads
            )
            _core.class_descent_from_samples(kernel, np.ones(240), G, alpha, y, C, options, dtype)
        assert found.psi.max() <= 2 * eps
        results.append(alpha)
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins", "one-vs-rest"])
def test_slack_is_the_distance_to_a_violation(machine):
    """A sample without weight violates as soon as G moves against it by more than its slack."""
    rng = np.random.default_rng(0)
    G, y = rng.normal(size=(200, M)), rng.integers(M, size=200).astype(np.int32)
    G[:100][np.arange(100), y[:100]] += 3.0
    slack, ids = np.full(200, np.nan), np.arange(0, 200, 3)
    _core.slack(machine, G, y, ids, slack, 1)
    assert np.isnan(np.delete(slack, ids)).all()
    target = PROBLEMS[machine](M).target(y)
    against = np.where(one_hot(y, M) > 0, 1.0, -1.0)
    for i in ids:
        psi = []
        for change in (slack[i] - 1e-9, slack[i] + 1e-9):
            shift = change * against[i] if machine == "one-vs-rest" else change * one_hot(y[i : i + 1], M)[0]
            scores = (G[i] - shift + target[i])[None]  # alpha = 0 with these scores
            zero = np.zeros((1, M))
            psi.append(measured(machine, scores - target[i], zero, y[i : i + 1]))
        assert psi[0] <= 1e-12 < psi[1]


def measured(machine, G, alpha, y):
    psi, gain = np.empty(len(y)), np.empty(len(y))
    _core.measure(machine, G, alpha, y, np.ones(len(y)), None, psi, gain, 1)
    return psi[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, FIXED_POINT])
@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins"])
@pytest.mark.parametrize("width", [0.3, np.inf])
def test_descent_without_a_kernel_block(machine, dtype, width):
    """The values between the samples of each class, or of all, lead to the optimum of the oracle's block."""
    X, y = grid_data(240)
    y, C, eps = y.astype(np.int32), np.full(240, 2.0), 1e-3
    layout = Layout.plan(RBF(0.02), X, "auto")
    samples = layout.samples(X)
    kernel = _core.WorkingSetKernel(layout.spec(0.0), samples, 2)
    K = kernel_matrix("rbf", X, gamma=0.02)
    alpha, room = np.zeros((240, M)), np.empty(240**2, dtype=dtype)
    for _ in range(60):
        G = K @ alpha - one_hot(y, M)
        found = certify(K, y, alpha, C, machine)
        if found.psi.max() <= 2 * eps:
            return
        options = _core.DescentOptions(eps=eps, max_sweeps=5000, seed=1, relax=1.2, width=width)
        _core.descent_from_samples(machine, kernel, np.ones(240), G, alpha, y, C, options, room)
    raise AssertionError(f"violation {found.psi.max()}")


def test_descent_without_a_kernel_block_checks_its_arguments():
    X, y = grid_data(20)
    layout = Layout.plan(RBF(0.02), X, "auto")
    samples = layout.samples(X)
    kernel = _core.WorkingSetKernel(layout.spec(0.0), samples, 1)
    options = _core.DescentOptions(eps=1e-3, max_sweeps=5, seed=1, relax=1.0, width=1.0)
    arrays = np.ones(20), np.zeros((20, M)), np.zeros((20, M)), y.astype(np.int32), np.ones(20)
    with pytest.raises(ValueError, match="room"):
        _core.descent_from_samples("crammer-singer", kernel, *arrays, options, np.empty(399))
    with pytest.raises(ValueError, match="crammer-singer and weston-watkins"):
        _core.descent_from_samples("lee-lin-wahba", kernel, *arrays, options, np.empty(400))


@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins", "one-vs-rest"])
@pytest.mark.parametrize(
    ("C", "gamma", "m"), [(1.0, 0.05, M), (50.0, 0.01, M), (1000.0, 0.05, M), (1.0, 0.05, 14)]
)
def test_fits_without_kernel_rows(machine, C, gamma, m):
    """With few classes, small working sets have a block of kernel values; with many, values by class."""
    X, y = grid_data(m=m)
    models = [KernelSVC(machine, C=C, gamma=gamma, n_threads=threads).fit(X, y) for threads in (1, 2)]
    assert models[0].trace_.info["cache_rows"] == 0
    audit(models[0], kernel_matrix("rbf", X, gamma=gamma), y, C, tol=1e-3)
    np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)


def test_small_working_sets_have_a_block(monkeypatch):
    """It is kept from round to round, and its memory is given back when the working set has outgrown it."""
    made = []
    growing = Blocks.growing
    monkeypatch.setattr(
        Blocks, "growing", lambda self, W: made.append((self, growing(self, W))) or made[-1][1]
    )
    monkeypatch.setattr("multimargin.inner.coordinate_descent.WHOLE_SAMPLES", 600)
    X, y = grid_data()
    model = KernelSVC(C=1.0, gamma=0.05).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.05), y, 1.0, tol=1e-3)
    small = [not isinstance(block, SampleBlock) for _, block in made]
    assert small[0]
    assert not small[-1]
    assert made[-1][0]._kept is None


def test_a_wrong_estimate_costs_rounds_but_no_violation(monkeypatch):
    """If no row outside of the working set is ever expected to matter, the rows before the proof show it."""
    completed = []

    def only_newcomers(self, W, worst):
        in_W = np.zeros(self.state.n, dtype=bool)
        in_W[W] = True
        return np.sort(W), in_W

    complete = Watch.complete
    monkeypatch.setattr(Watch, "_due", only_newcomers)
    monkeypatch.setattr(
        Watch, "complete", lambda self, **some: completed.append(complete(self, **some)) or completed[-1]
    )
    X, y = grid_data()
    model = KernelSVC(C=2.0, gamma=0.05).fit(X, y)
    assert sum(completed) > 1
    audit(model, kernel_matrix("rbf", X, gamma=0.05), y, 2.0, tol=1e-3)


def test_rows_that_are_not_due_cannot_violate():
    """After each round, the samples whose rows were not computed are as good as the estimate says."""
    X, y = grid_data()
    method = find_method("auto", "auto", "crammer-singer")
    task = Task(PROBLEMS["crammer-singer"](M), RBF(0.05), X, y.astype(np.int32), np.full(N, 2.0))
    options = EngineOptions(inner=method.inner, lazy_blocks=True, block_share=0.3)
    engine, K, stale = CpuEngine(task, options), kernel_matrix("rbf", X, gamma=0.05), 0
    rule = method.working_set.choose(engine, "psi", 1e-3, np.random.default_rng(0))
    for choice in rule:
        engine.improve(choice.W, method.inner, Aim(7e-4, 0.1), keep=True)
        watch, exact = engine.steps.watch, K @ engine.state.alpha - one_hot(y, M)
        fresh = ~watch._stale
        np.testing.assert_allclose(engine.state.G[fresh], exact[fresh], atol=2e-4)
        stale += int(watch._stale.sum())
    assert stale > 0
    assert not engine.steps.watch.is_stale
    np.testing.assert_allclose(engine.state.G, K @ engine.state.alpha - one_hot(y, M), atol=2e-4)


@pytest.mark.parametrize(("rest", "pool"), [(0.01, 4), (0.9999, 1), (0.9999, 10**6)])
def test_entries_of_pairs_that_are_not_due(rest, pool, monkeypatch):
    """One-vs-rest: entries up to date are right, and all are in the end, however wrong the estimates are."""
    monkeypatch.setattr(pair_watch, "_REST", rest)
    monkeypatch.setattr(pair_watch, "_POOL", pool)
    X, y = grid_data(m=12)
    m, target = 12, 2.0 * one_hot(y, 12) - 1.0
    method = find_method("auto", "auto", "one-vs-rest")
    task = Task(PROBLEMS["one-vs-rest"](m), RBF(0.05), X, y.astype(np.int32), np.full(N, 2.0))
    options = EngineOptions(inner=method.inner, lazy_blocks=True, block_share=0.3)
    engine, K, stale = CpuEngine(task, options), kernel_matrix("rbf", X, gamma=0.05), 0
    for choice in method.working_set.choose(engine, "psi", 1e-3, np.random.default_rng(0)):
        engine.improve(choice.W, method.inner, Aim(7e-4, 0.1), keep=True)
        fresh = engine.steps.watch._due
        exact = K @ engine.state.alpha - target
        np.testing.assert_allclose(engine.state.G[fresh], exact[fresh], atol=2e-4)
        stale += int((~fresh).sum())
    assert stale > 0
    assert not engine.steps.watch.is_stale
    np.testing.assert_allclose(engine.state.G, K @ engine.state.alpha - target, atol=2e-4)


@pytest.mark.parametrize(
    ("machine", "parameters", "anew"),
    [
        ("crammer-singer", {}, True),
        ("weston-watkins", {}, True),
        ("crammer-singer", {"bias": "free"}, False),
        ("crammer-singer", {"solver": "dasmc"}, False),
        ("one-vs-rest", {}, True),
        ("one-vs-rest", {"bias": "free"}, False),
        ("lee-lin-wahba", {"max_iter": 3}, False),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_which_fits_keep_rows(machine, parameters, anew):
    X, y = grid_data()
    model = KernelSVC(machine, gamma=0.05, **parameters).fit(X, y)
    assert (model.trace_.info["cache_rows"] == 0) is anew


def test_values_of_many_features_are_kept():
    X, y = grid_data(d=6)
    wide = np.hstack([X] * 40)
    assert KernelSVC(gamma=0.001).fit(wide, y).trace_.info["cache_rows"] > 0
