"""The linear machine's native problem: its sums against plain NumPy, and what it refuses."""

import gc

import numpy as np
import pytest
from linear_cases import MACHINES, D, M, N, csr_parts, features, random_alpha, random_task
from oracle import certify
from scipy import sparse

from multimargin import _core
from multimargin.problems import LINEAR_PROBLEMS

CS = "crammer-singer"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("constant", [0.0, 2.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "csr32", "csr64"])
@pytest.mark.parametrize("machine", MACHINES)
def test_measure_and_rebuild(machine, form, dtype, constant, threads):
    task = random_task(form=form, dtype=dtype, constant=constant, machine=machine)
    alpha = random_alpha(task)
    problem = task.native(threads, threads)
    problem.set_dual(*csr_parts(alpha))
    assert problem.support() == np.count_nonzero(np.abs(alpha).max(axis=1))
    weights = np.full(task.layout().shape, 7.0)
    problem.rebuild(weights)
    Z = features(task)
    np.testing.assert_allclose(weights[:, :M], Z.T @ alpha, atol=1e-12)
    np.testing.assert_array_equal(weights[:, M:], 0.0)
    found = certify(Z @ Z.T, task.y, alpha, task.C, machine)
    half = 0.5 * (weights**2).sum()
    assert half + problem.conjugate() == pytest.approx(found.dual, rel=1e-12)
    assert _core.squared_norm(weights, threads) == pytest.approx(2 * half, rel=1e-12)
    single = np.full(task.layout().shape, 7.0, dtype=np.float32)
    problem.rebuild(single)
    np.testing.assert_allclose(single, weights, atol=1e-5)
    for values, accuracy in ((weights, 1e-10), (weights.astype(np.float32), 1e-4)):
        violation, gain, gap, loss = problem.measure(values)
        assert violation == pytest.approx(found.psi.max(), rel=accuracy, abs=accuracy)
        assert gain == pytest.approx((found.gain / task.C).max(), rel=accuracy, abs=accuracy)
        assert gap == pytest.approx(found.gap, rel=accuracy, abs=accuracy)
        assert half + loss == pytest.approx(found.primal, rel=accuracy)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("machine", MACHINES)
def test_the_dual_comes_back_as_it_was_set(machine, threads):
    task = random_task(machine=machine)
    problem = task.native(threads, threads)
    for seed in range(4):  # rows grow and shrink, and take each other's places
        alpha = random_alpha(task, seed)
        problem.set_dual(*csr_parts(alpha))
        indptr, classes, values = problem.dual()
        assert (indptr.dtype, classes.dtype, values.dtype) == (np.int64, np.int32, np.float64)
        back = sparse.csr_array((values, classes, indptr), shape=(N, M)).toarray()
        np.testing.assert_allclose(back, alpha, atol=1e-15)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_dual_can_be_set_from_an_array(machine):
    task = random_task(machine=machine)
    problem, alpha = task.native(1), random_alpha(task)
    problem.set_dense_dual(alpha)
    indptr, classes, values = problem.dual()
    back = sparse.csr_array((values, classes, indptr), shape=(N, M)).toarray()
    np.testing.assert_allclose(back, alpha, atol=1e-15)
    for bad, match in ((-alpha, "not be negative"), (np.full_like(alpha, np.nan), "not be negative")):
        with pytest.raises(ValueError, match=match):
            problem.set_dense_dual(bad)
    with pytest.raises(ValueError, match="samples, classes"):
        problem.set_dense_dual(alpha[1:].copy())


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("constant", [0.0, 2.5])
@pytest.mark.parametrize("m", [2, 5, 19])
@pytest.mark.parametrize("form", ["dense", "csr32", "csr64"])
@pytest.mark.parametrize("machine", MACHINES)
def test_a_proximal_point(machine, form, m, constant, threads):
    """The projection of centre - t G, where G is the gradient at the centre with other weights."""
    task = random_task(form=form, constant=constant, machine=machine, m=m, n=1100)
    rng, centre, Z = np.random.default_rng(3), random_alpha(task), features(task)
    W = np.zeros(task.layout().shape)
    W[:, :m] = rng.normal(size=(Z.shape[1], m))
    t, ridge = rng.uniform(0.1, 2.0, len(Z)), task.problem.ridge(task.C)
    G = Z @ W[:, :m] - task.problem.target(task.y) + (0.0 if ridge is None else ridge[:, None] * centre)
    expected = task.problem.project(centre - t[:, None] * G, task.y, task.C)
    alpha, product = np.full((len(Z), m), 7.0), np.full(W.shape, 7.0)
    task.native(threads).proximal_point(W, centre, t, alpha, product)
    np.testing.assert_allclose(alpha, expected, atol=1e-12)
    np.testing.assert_allclose(product[:, :m], Z.T @ expected, atol=1e-9)
    np.testing.assert_array_equal(product[:, m:], 0.0)
    assert (np.count_nonzero(expected, axis=1) > 0).any()


def test_bad_proximal_points():
    task = random_task()
    W, alpha, t = np.zeros(task.layout().shape), random_alpha(task), np.ones(N)
    for change, match in (
        ({"W": W[1:].copy()}, "weights"),
        ({"t": t[1:]}, "t must"),
        ({"centre": alpha[1:].copy()}, "centre"),
    ):
        use = {"W": W, "centre": alpha, "t": t} | change
        with pytest.raises(ValueError, match=match):
            task.native(1).proximal_point(use["W"], use["centre"], use["t"], alpha.copy(), W.copy())


def test_arrays_are_kept_alive():
    task = random_task(form="csr32")
    expected = task.native(1)
    expected.set_dual(*csr_parts(random_alpha(task)))
    weights = np.zeros(task.layout().shape)
    expected.rebuild(weights)

    def temporary():
        X, y, C = task.X.copy(), task.y.copy(), task.C.copy()
        problem = _core.LinearProblem(CS, X.data, X.indices, X.indptr, D, y, C, M, 0.0, 1)
        problem.set_dual(*csr_parts(random_alpha(task)))
        return problem, _core.PassRunner(problem, np.zeros(task.layout().shape), "sort", 0.0, 0, False)

    problem, _descent = temporary()
    gc.collect()
    noise = [np.random.default_rng(k).normal(size=N * D) for k in range(50)]  # takes freed memory
    again = np.zeros(task.layout().shape)
    problem.rebuild(again)
    np.testing.assert_array_equal(again, weights)
    assert len(noise) == 50


def build(machine=CS, X=None, y=None, C=None, m=M, constant=0.0, n_threads=1):
    task = random_task()
    return _core.LinearProblem(
        machine,
        task.X if X is None else X,
        task.y if y is None else y,
        task.C if C is None else C,
        m,
        constant,
        n_threads,
    )


LABELS = random_task().y
COSTS = random_task().C


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"machine": "lee-lin-wahba"}, ValueError, "machine 'lee-lin-wahba'.*crammer-singer.*one-vs-rest"),
        ({"n_threads": 0}, ValueError, "n_threads must be at least 1"),
        ({"m": 1}, ValueError, "m must be at least 2"),
        ({"m": 3}, ValueError, r"labels must be in 0\.\.m-1"),
        ({"y": LABELS - 1}, ValueError, r"labels must be in 0\.\.m-1"),
        ({"y": LABELS[1:]}, ValueError, "one value per row"),
        ({"C": COSTS[1:]}, ValueError, "one value per row"),
        ({"C": 0 * COSTS}, ValueError, "positive and finite"),
        ({"C": -COSTS}, ValueError, "positive and finite"),
        ({"C": COSTS * np.inf}, ValueError, "positive and finite"),
        ({"C": COSTS * np.nan}, ValueError, "positive and finite"),
        ({"X": np.zeros((N, D), dtype=np.int64)}, TypeError, "float32 or float64"),
        ({"X": np.zeros((D, N)).T}, TypeError, "incompatible"),
        ({"X": np.full((N, D), 1e200)}, ValueError, "scale the features"),
        ({"y": LABELS.astype(np.int64)}, TypeError, "incompatible"),
        ({"C": COSTS.astype(np.float32)}, TypeError, "incompatible"),
    ],
)
def test_bad_problems(change, error, match):
    with pytest.raises(error, match=match):
        build(**change)


@pytest.mark.parametrize(
    ("data", "indices", "indptr", "match"),
    [
        ([1.0, 2.0], [0, 1, 2], [0, 1, 2], "same length"),
        ([1.0, 2.0], [0, 3], [0, 1, 2], r"0\.\.d-1"),
        ([1.0, 2.0], [0, -1], [0, 1, 2], r"0\.\.d-1"),
        ([1.0, 2.0], [0, 1], [0, 2, 1], "must not decrease"),
        ([1.0, 2.0], [0, 1], [0, 1, 3], "within data"),
        ([1.0, 2.0], [0, 1], [-1, 1, 2], "within data"),
    ],
)
@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_bad_sparse_rows(data, indices, indptr, match, width):
    parts = np.array(data), np.array(indices, dtype=width), np.array(indptr, dtype=width)
    with pytest.raises(ValueError, match=match):
        _core.LinearProblem(CS, *parts, 3, np.array([0, 1], dtype=np.int32), np.ones(2), 2, 0.0, 1)


def test_a_part_of_a_longer_csr():
    """indptr need not begin at 0 nor end at the length of the data."""
    data, indices = np.arange(1.0, 7.0), np.array([9, 0, 1, 2, 0, 9], dtype=np.int32)
    indptr = np.array([1, 3, 5], dtype=np.int32)
    problem = _core.LinearProblem(
        CS,
        data,
        np.where(indices == 9, 0, indices),
        indptr,
        3,
        np.array([0, 1], dtype=np.int32),
        np.ones(2),
        2,
        0.0,
        1,
    )
    problem.set_dual(
        np.array([0, 2, 4]), np.array([0, 1, 1, 0], dtype=np.int32), np.array([1.0, -1.0, 0.5, -0.5])
    )
    weights = np.zeros((3, 8))
    problem.rebuild(weights)
    X, alpha = np.array([[2.0, 3.0, 0.0], [5.0, 0.0, 4.0]]), np.array([[1.0, -1.0], [-0.5, 0.5]])
    np.testing.assert_array_equal(weights[:, :2], X.T @ alpha)


@pytest.mark.parametrize(
    ("indptr", "classes", "values", "match"),
    [
        ([0, 1], [1], [-0.5], "one row per sample"),
        ([0, 1, 1], [1, 1], [-0.5, -0.5], "one row per sample"),
        ([0, 1, 1], [1], [-0.5, 0.0], "one row per sample"),
        ([0, 99, 1], [1], [-0.5], "must not decrease"),
        ([0, -5, 1], [1], [-0.5], "must not decrease"),
        ([0, 1, 1], [0], [-0.5], "not be negative at the label"),
        ([0, 1, 1], [2], [-0.5], r"0\.\.m-1"),
        ([0, 1, 1], [-1], [-0.5], r"0\.\.m-1"),
        ([0, 1, 1], [1], [0.5], "not positive"),
        ([0, 1, 1], [1], [np.nan], "not positive"),
    ],
)
@pytest.mark.parametrize("machine", MACHINES)
def test_bad_duals(machine, indptr, classes, values, match):
    problem = _core.LinearProblem(machine, np.eye(2), np.array([0, 1], dtype=np.int32), np.ones(2), 2, 0.0, 1)
    with pytest.raises(ValueError, match=match):
        problem.set_dual(np.array(indptr), np.array(classes, dtype=np.int32), np.array(values))


@pytest.mark.parametrize(
    ("machine", "values", "feasible"),
    [
        ("crammer-singer", [1.0, -1.0, 0.0], True),
        ("crammer-singer", [1.5, -1.5, 0.0], False),
        ("crammer-singer", [1.0, -0.7, -0.7], False),
        ("crammer-singer", [0.5, -1.0, 0.0], False),
        ("weston-watkins", [2.0, -1.0, -1.0], True),
        ("weston-watkins", [1.5, -1.5, 0.0], False),
        ("weston-watkins", [1.0, -1.0, -1.0], False),
        ("one-vs-rest", [0.0, -1.0, -0.5], True),
        ("one-vs-rest", [1.5, 0.0, 0.0], False),
        ("one-vs-rest", [0.0, -1.5, 0.0], False),
        ("squared-one-vs-rest", [7.0, -9.0, 0.0], True),
    ],
)
def test_rows_of_the_dual_must_be_feasible(machine, values, feasible):
    problem = _core.LinearProblem(machine, np.eye(1), np.zeros(1, dtype=np.int32), np.ones(1), 3, 0.0, 1)
    parts = csr_parts(np.array([values]))
    if feasible:
        problem.set_dual(*parts)
        np.testing.assert_array_equal(problem.dual()[2], np.array(values)[np.array(values) != 0])
    else:
        with pytest.raises(ValueError, match="must be feasible for its cost"):
            problem.set_dual(*parts)


@pytest.mark.parametrize(
    ("shape", "dtype", "error"),
    [
        ((D, M), np.float64, ValueError),
        ((D + 1, 8), np.float64, ValueError),
        ((D, 12), np.float64, ValueError),
        ((3 * D // 2, 8), np.float64, ValueError),
        ((D, 8), np.int64, TypeError),
        ((D * 8,), np.float64, TypeError),
    ],
)
def test_bad_weights(shape, dtype, error):
    problem = build()
    weights = np.zeros(shape, dtype=dtype)
    for use in (
        problem.measure,
        problem.rebuild,
        lambda w: _core.PassRunner(problem, w, "sort", 0.0, 0, False),
    ):
        with pytest.raises(error, match=r"weights|incompatible"):
            use(weights)


def test_weights_that_may_not_be_written():
    weights = np.zeros((D, 8))
    weights.flags.writeable = False
    with pytest.raises(TypeError):
        _core.PassRunner(build(), weights, "sort", 0.0, 0, False)
    with pytest.raises(TypeError):
        build().rebuild(weights)


def test_bad_updates():
    weights = np.zeros((D, 8))
    for machine, update in (("weston-watkins", "pivot"), ("squared-one-vs-rest", "frank-wolfe")):
        with pytest.raises(ValueError, match=update):
            _core.PassRunner(build(machine), weights, update, 0.0, 0, False)
    with pytest.raises(ValueError, match="newton"):
        _core.PassRunner(build(), weights, "newton", 0.0, 0, False)
    with pytest.raises(ValueError, match="tau"):
        _core.PassRunner(build(), weights, "bisection", -1.0, 0, False)
    with pytest.raises(TypeError, match="float32 or float64"):
        _core.PassRunner(build(), weights.astype(np.float16), "sort", 0.0, 0, False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [2, 8, 10, 20, 26, 40, 60, 105, 120, 128, 150])
@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("d", [37, 1500])
def test_scores_and_steps_of_every_width(d, share, m, dtype):
    """Rows that are listed, picked and used whole; vectors of classes with and without a half one.

    The weights of 37 features and few classes stay in the first-level cache, those of 1,500 do not.
    """
    rng = np.random.default_rng(m)
    X = rng.normal(size=(30, d)) * (rng.random((30, d)) < share) * np.sqrt(37 / d)
    y = rng.integers(m, size=30).astype(np.int32)
    C = rng.uniform(0.5, 2.0, 30)
    problem = _core.LinearProblem(CS, X, y, C, m, 0.5, 1)
    weights = np.zeros((d + 1, -(-m // 8) * 8), dtype=dtype)
    weights[:, :m] = rng.normal(size=(d + 1, m))
    G = np.hstack([X, np.full((30, 1), 0.5)]) @ weights[:, :m].astype(np.float64)
    G[np.arange(30), y] -= 1.0
    loss = C * (G.max(axis=1) - G[np.arange(30), y])
    eps = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(problem.measure(weights)[3], loss.sum(), rtol=eps)
    np.testing.assert_allclose(problem.measure(weights, 7)[3], loss[::7].sum(), rtol=eps)
    weights[:] = 0.0
    descent = _core.PassRunner(problem, weights, "sort", 0.0, 0, False)
    for _ in range(3):
        descent.begin(True, 0.0, 1.0, np.inf, True)
        descent.go_on()
    rebuilt = np.zeros_like(weights, dtype=np.float64)
    problem.rebuild(rebuilt)
    np.testing.assert_allclose(weights, rebuilt, rtol=eps, atol=eps)
    assert not weights[:, m:].any()


@pytest.mark.parametrize("update", ["sort", "pivot", "bisection"])
@pytest.mark.parametrize("scale", [1e-160, 1e-3, 1.0, 1e5])
@pytest.mark.parametrize("m", [2, 3, 4, 5, 9])
def test_a_step_is_a_projection(m, scale, update):
    """Every sample has a feature of its own, so that steps do not see each other.

    The rows begin with one to m classes of weight, and list two to m classes.
    """
    rng, n, relax = np.random.default_rng(m), 400, 1.3
    x, C = rng.uniform(0.5, 2.0, n) * scale, rng.uniform(0.5, 2.0, n)
    y = rng.integers(m, size=n).astype(np.int32)
    z = rng.exponential(size=(n, m)) * (rng.random((n, m)) < rng.random((n, 1)))
    z[np.arange(n), rng.integers(m, size=n)] += 0.1
    alpha = C[:, None] * (np.eye(m)[y] - z / z.sum(axis=1, keepdims=True))
    alpha[np.arange(n), y] -= alpha.sum(axis=1)
    problem = _core.LinearProblem(CS, np.diag(x), y, C, m, 0.0, 1)
    problem.set_dual(*csr_parts(alpha))
    weights = np.zeros((n, -(-m // 8) * 8))
    weights[:, :m] = rng.normal(size=(n, m)) * max(scale, 1e-3)
    before, G = weights.copy(), x[:, None] * weights[:, :m] - np.eye(m)[y]
    descent = _core.PassRunner(problem, weights, update, 0.0, 0, False)
    descent.begin(True, 0.0, relax, np.inf, True)
    descent.go_on()
    indptr, classes, values = problem.dual()
    found = sparse.csr_array((values, classes, indptr), shape=(n, m)).toarray()
    step = np.minimum(relax / np.maximum(x**2, 1e-300), 1e300)[:, None]
    top = G.max(axis=1, keepdims=True)
    expected = LINEAR_PROBLEMS[CS](m).project(alpha - np.maximum(step * (G - top), -1e150), y, C)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    np.testing.assert_allclose(
        weights[:, :m], before[:, :m] + x[:, None] * (found - alpha), atol=1e-10 * max(scale, 1e-3)
    )
    assert (np.abs(found - alpha).max(axis=1) > 1e-3).sum() > n / 4


def test_bad_measure_steps():
    with pytest.raises(ValueError, match="step"):
        build().measure(np.zeros((D, 8)), 0)
