"""The data type decides the kernel: integer and binary forms, how they are found, and whole fits on them."""

import numpy as np
import pytest
from oracle import kernel_matrix
from scipy import sparse
from sklearn.datasets import load_digits, load_iris

from multimargin import KernelSVC, _core, kernels
from multimargin.engines.cpu import layouts, scores
from multimargin.engines.cpu.grids import Grid
from multimargin.engines.cpu.layouts import Layout
from multimargin.system.data import canonical

SIMD = ("portable", "avx2", "vnni")
KERNELS = {
    "linear": {},
    "rbf": {"gamma": 1e-5},
    "poly": {"gamma": 1e-4, "degree": 3, "coef0": 0.5},
    "sigmoid": {"gamma": 1e-6, "coef0": -0.2},
    "laplacian": {"gamma": 0.1},
}
DTYPES = (np.uint8, np.int8, np.int16)


@pytest.fixture(params=SIMD)
def simd(request):
    """Each instruction set this machine has, lesser ones too."""
    try:
        _core.set_integer_simd(request.param)
    except ValueError as error:
        pytest.skip(str(error))
    yield request.param
    _core.set_integer_simd("best")


def random_integers(dtype, n, d, filled=1.0, seed=0, limit=None):
    rng = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    low, high = max(info.min, -32767), info.max
    if limit is not None:
        low, high = max(low, -limit), min(high, limit)
    values = rng.integers(low, high, size=(n, d), endpoint=True)
    return np.where(rng.random((n, d)) < filled, values, 0).astype(dtype)


def spec(name, options, offset=0.0):
    defaults = {"gamma": 1.0, "coef0": 0.0, "degree": 1} | options
    return _core.KernelSpec(name, defaults["gamma"], defaults["coef0"], defaults["degree"], offset)


def block(samples, kernel, rows, columns=None, dtype=np.float64, begin=0, end=None):
    end = (columns or samples).n if end is None else end
    out = np.full((len(rows), end - begin), np.nan, dtype=dtype)
    at = np.arange(len(rows))
    _core.kernel_block(kernel, samples, rows, columns or samples, begin, end, out, at, 1)
    return out


def exact_products(A, B):
    return A.astype(np.int64) @ B.T.astype(np.int64)


# -- products ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("filled", [0.1, 1.0])
@pytest.mark.parametrize("d", [1, 2, 3, 5, 64, 231])
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_are_exact(simd, dtype, d, filled):
    X = random_integers(dtype, 150, d, filled)
    samples = _core.integers(X, 1.0)
    rows = np.array([149, 0, 63, 64, 65, 7, 9])
    expected = exact_products(X[rows], X)
    np.testing.assert_array_equal(block(samples, spec("linear", {}), rows), expected)
    np.testing.assert_array_equal(block(samples, spec("linear", {}), rows[:1]), expected[:1])
    part = block(samples, spec("linear", {}), rows, begin=70, end=131)
    np.testing.assert_array_equal(part, expected[:, 70:131])


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_sample(simd, dtype):
    X = random_integers(dtype, 1, 17)
    assert block(_core.integers(X, 1.0), spec("linear", {}), np.array([0])) == exact_products(X, X)


@pytest.mark.parametrize(
    ("dtype", "value"), [(np.uint8, 255), (np.int8, -128), (np.int16, 32767), (np.int16, -32767)]
)
@pytest.mark.parametrize("d", [1, 2, 7, 9000])
def test_largest_values_do_not_overflow(simd, dtype, value, d):
    X = np.full((5, d), value, dtype=dtype)
    X[4] = -X[4] if dtype == np.int16 else 1
    samples = _core.integers(X, 1.0)
    np.testing.assert_array_equal(block(samples, spec("linear", {}), np.arange(5)), exact_products(X, X))
    distances = -np.log(block(samples, spec("rbf", {"gamma": 1e-13}), np.arange(4))) / 1e-13
    apart = d * (int(X[0, 0]) - int(X[4, 0])) ** 2
    np.testing.assert_allclose(distances[:, 4], apart, rtol=1e-2, atol=2e-3 * max(1, apart))
    assert (distances[:, :4] == 0).all()


def test_the_least_int16_is_refused_natively_and_left_to_floats():
    X = np.full((3, 2), -32768, dtype=np.int16)
    with pytest.raises(ValueError, match="-32767"):
        _core.integers(X, 1.0)
    assert Grid.find(X) is None
    assert Layout.plan(kernels.RBF(1e-9), X, "auto").form == "direct"


@pytest.mark.parametrize("out_dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [name for name in KERNELS if name != "laplacian"])
@pytest.mark.parametrize(
    ("dtype", "limit"), [(np.uint8, 40), (np.int8, 40), (np.int16, 300), (np.int16, 30000)]
)
def test_integer_kernels(simd, name, dtype, limit, out_dtype):
    X = random_integers(dtype, 90, 21, 0.5, limit=limit)
    scale = 20 / limit
    samples = _core.integers(X, scale)
    rows = np.arange(0, 90, 7)
    K = kernel_matrix(name, X * scale, offset=1.0, **KERNELS[name])
    values = block(samples, spec(name, KERNELS[name], offset=1.0), rows, dtype=out_dtype)
    tolerance = (1e-6 if out_dtype == np.float32 else 1e-13) * np.abs(K).max()
    np.testing.assert_allclose(values, K[rows], atol=tolerance, rtol=0)


@pytest.mark.parametrize("form", ["uint8", "int16", "wide", "binary"])
def test_scores_are_float64(simd, form):
    dtype, limit = {"uint8": (np.uint8, 255), "int16": (np.int16, 500)}.get(form, (np.int16, 30000))
    X = random_integers(dtype, 700, 33, 0.3, limit=limit)
    samples = _core.integers(X, 1 / limit)
    if form == "binary":
        X = (X != 0).astype(np.uint8)
        samples, limit = _core.binary(X, 1.0), 1
    ids = np.arange(0, 700, 3)
    coef = np.random.default_rng(1).normal(size=(len(ids), 4))
    coef[coef < 0] = 0.0
    K = kernel_matrix("rbf", X / limit, X[ids] / limit, gamma=0.3)
    for threads in (1, 3):
        scores = np.full((690, 4), np.nan)
        kernel = spec("rbf", {"gamma": 0.3})
        _core.kernel_scores(kernel, samples.take(ids), coef, samples, 5, 695, scores, threads)
        np.testing.assert_allclose(scores, K[5:695] @ coef, atol=1e-12 * np.abs(coef).sum())


@pytest.mark.parametrize("gamma", [1e-4, 0.02, 0.3])
def test_rbf_of_small_integers_has_all_its_digits(simd, gamma):
    """Small distances may come from a table: all of them are right, and tiny values are 0."""
    X = random_integers(np.int8, 400, 16, limit=12)
    X[0], X[1] = 12, -12  # the largest distance
    values = block(_core.integers(X, 1.0), spec("rbf", {"gamma": gamma}), np.arange(400), dtype=np.float32)
    K = kernel_matrix("rbf", X.astype(np.float64), gamma=gamma)
    tiny = K < 2.0**-125
    np.testing.assert_allclose(values[~tiny], K[~tiny], rtol=2e-5)
    assert (values[tiny] <= 2.0**-125).all()
    assert gamma != 0.3 or tiny.any()


@pytest.mark.parametrize("n", [1, 127, 128, 129, 700])
@pytest.mark.parametrize("form", ["uint8", "int16", "binary", "float64"])
def test_scores_among_the_samples_themselves(n, form):
    X = random_integers(np.uint8, n, 33, 0.3, limit=1 if form == "binary" else 20)
    samples = {
        "uint8": lambda: _core.integers(X, 0.1),
        "int16": lambda: _core.integers(X.astype(np.int16), 0.1),
        "binary": lambda: _core.binary(X, 0.1),
        "float64": lambda: _core.dense_product(X * 0.1),
    }[form]()
    coef = np.random.default_rng(1).normal(size=(n, 4))
    coef[coef < 0.3] = 0.0
    kernel = spec("rbf", {"gamma": 0.3}, offset=0.5)
    expected = kernel_matrix("rbf", X * 0.1, gamma=0.3, offset=0.5) @ coef
    middle = 3 * _core.SQUARE_TILE if n > 3 * _core.SQUARE_TILE else n
    for threads in (1, 2, 5):
        found = []
        for ends in ([n], sorted({middle, n}), sorted({middle, n})):
            scores, begin = np.zeros((n, 4)), 0
            for end in ends:
                _core.square_scores(kernel, samples, coef, begin, end, scores, threads)
                begin = end
            np.testing.assert_allclose(scores, expected, atol=1e-12 * np.abs(coef).sum())
            found.append(scores)
        np.testing.assert_array_equal(found[1], found[2])


def test_scores_among_samples_are_checked():
    samples, kernel = _core.integers(random_integers(np.uint8, 300, 5), 0.1), spec("rbf", {})
    coef, out = np.ones((300, 2)), np.zeros((300, 2))
    with pytest.raises(ValueError, match="whole tiles"):
        _core.square_scores(kernel, samples, coef, 5, 300, out, 1)
    with pytest.raises(ValueError, match="rows of x"):
        _core.square_scores(kernel, samples, coef, 0, 301, out, 1)
    with pytest.raises(ValueError, match="one row for each x"):
        _core.square_scores(kernel, samples, coef[:9], 0, 300, out, 1)


def test_samples_of_different_forms_do_not_pair():
    X = random_integers(np.uint8, 10, 8, limit=1)
    sets = [_core.integers(X, 1.0), _core.integers(X, 0.5), _core.integers(X.astype(np.int16), 1.0)]
    sets += [_core.binary(X, 1.0), _core.binary(X, 2.0), _core.dense_product(X.astype(np.float64))]
    for i, a in enumerate(sets):
        for j, b in enumerate(sets):
            if i != j:
                with pytest.raises(TypeError, match="same kind"):
                    block(a, spec("linear", {}), np.array([0]), b)


def test_the_instruction_set_is_checked():
    with pytest.raises(ValueError, match="portable"):
        _core.set_integer_simd("mmx")
    assert _core.integer_simd() in SIMD


# -- binary ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", ["dense", "csr"])
@pytest.mark.parametrize("out_dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", list(KERNELS))
def test_binary_kernels(name, out_dtype, stored):
    options = KERNELS[name] | ({"gamma": 0.05} if "gamma" in KERNELS[name] else {})
    X = (np.random.default_rng(0).random((300, 29)) < 0.3).astype(np.uint8)
    X[5] = 0
    rows = np.array([5, 0, 299, 127, 128])
    if stored == "csr":
        wide = sparse.csr_array(X)
        samples = _core.binary(wide.indices, wide.indptr.astype(wide.indices.dtype), *X.shape, 0.5)
    else:
        samples = _core.binary(X, 0.5)
    K = kernel_matrix(name, X * 0.5, **options)
    values = block(samples, spec(name, options), rows, dtype=out_dtype, begin=3, end=290)
    tolerance = (1e-6 if out_dtype == np.float32 else 1e-13) * np.abs(K).max()
    np.testing.assert_allclose(values, K[rows, 3:290], atol=tolerance, rtol=0)


def test_binary_rows_of_many_features():
    """More common features than a byte counts."""
    X = np.ones((3, 1000), dtype=np.uint8)
    X[1, ::2] = 0
    values = block(_core.binary(X, 1.0), spec("linear", {}), np.arange(3))
    np.testing.assert_array_equal(values, exact_products(X, X))


# -- recognition -------------------------------------------------------------------------------------

PIXELS = random_integers(np.uint8, 60, 20, 0.4)
WIDE = random_integers(np.int16, 60, 20, limit=10000)
POSITIVE = {
    "uint8": (PIXELS, 1.0, np.uint8),
    "int8": (PIXELS.astype(np.int8), 1.0, np.int8),
    "int16": (WIDE, 1.0, np.int16),
    "whole float64": (PIXELS.astype(np.float64), 1.0, np.uint8),
    "pixels / 255": (PIXELS / 255, 1 / 255, np.uint8),
    "float32 pixels / 255": ((PIXELS / 255).astype(np.float32), 1 / 255, np.uint8),
    "float32 quotient": (PIXELS.astype(np.float32) / np.float32(255), 1 / 255, np.uint8),
    "times 1e-4": (WIDE * 1e-4, 1e-4, np.int16),
    "over 1e4": (WIDE / 1e4, 1e-4, np.int16),
    "float32 times 1e-3": ((WIDE * 1e-3).astype(np.float32), 1e-3, np.int16),
    "signed bytes": (np.clip(WIDE, -100, 100) / 8, 1 / 8, np.int8),
    "zeros": (np.zeros((4, 3)), 1.0, np.uint8),
    "one value": (np.full((4, 3), 0.3), 0.3, np.uint8),
    "sparse": (sparse.csr_array(PIXELS / 255), 1 / 255, np.uint8),
}


@pytest.mark.parametrize("case", list(POSITIVE))
def test_grids_are_found(case):
    X, scale, dtype = POSITIVE[case]
    grid = Grid.find(X)
    assert grid is not None
    assert grid.scale == pytest.approx(scale, rel=1e-7 if X.dtype == np.float32 else 1e-15)
    assert grid.dtype == dtype
    assert grid.holds(X)
    dense = X.toarray() if sparse.issparse(X) else X
    whole = grid.integers(X)
    whole = whole.toarray() if sparse.issparse(whole) else whole
    np.testing.assert_allclose(
        whole * grid.scale, dense, rtol=4 * np.finfo(np.result_type(dense, np.float32)).eps
    )


NEGATIVE = {
    "normal": np.random.default_rng(0).normal(size=(50, 8)),
    "float32 normal": np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32),
    "too large": WIDE.astype(np.float64) * 7 + 1,
    "two scales": np.where(np.arange(20) % 2, PIXELS / 255, PIXELS / 49),
    "ranges to [-1, 1]": 2 * PIXELS / np.maximum(1, PIXELS.max(axis=0) - np.arange(20)) - 1,
    "tiny": np.array([[1e-300, 3e-300]]),
    "huge": np.array([[1e300, 3e299]]),
    "nearly": PIXELS + 1e-9,
}


@pytest.mark.parametrize("case", list(NEGATIVE))
def test_other_data_is_left_alone(case):
    assert Grid.find(NEGATIVE[case]) is None


def test_one_value_off_the_grid_is_noticed():
    X = np.zeros((5000, 11))
    X[:] = np.arange(11) / 4
    assert Grid.find(X).scale == 0.25
    X[3017, 5] += 1e-6
    assert Grid.find(X) is None


def test_explicit_zeros_of_sparse_data_count_as_zeros():
    X = sparse.csr_array((np.array([0.0, 0.5, 0.5]), np.array([0, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    grid = Grid.find(X)
    assert grid.binary
    assert grid.integers(X).nnz == 2
    layout = Layout.plan(kernels.Linear(), X, "auto")
    assert layout.describe() == "binary"
    K = block(layout.samples(X), layout.spec(0.0), np.arange(2))
    np.testing.assert_array_equal(K, [[0.25, 0.0], [0.0, 0.25]])


FORMS = {
    "uint8 product": PIXELS,
    "int8 product": PIXELS.astype(np.int8),
    "int16 product": WIDE * 1e-4,
    "binary": PIXELS > 100,
    "float64 product": np.random.default_rng(0).normal(size=(60, 40)),
    "float64 direct": np.random.default_rng(0).normal(size=(60, 4)),
    "sparse float64": sparse.random_array((60, 40), density=0.1, rng=0).tocsr(),
    "sparse float32": sparse.random_array((60, 40), density=0.1, rng=0, dtype=np.float32).tocsr(),
}


@pytest.mark.parametrize("form", list(FORMS))
def test_the_trace_says_what_was_used(form):
    y = np.arange(60) % 3
    model = KernelSVC(gamma="auto").fit(FORMS[form], y)
    assert model.trace_.info["kernel_form"] == form


def test_sparse_integers_become_dense_only_where_that_saves_memory():
    thin = sparse.csr_array(np.where(np.arange(60 * 20).reshape(60, 20) % 11, 0, PIXELS + 1))
    assert Layout.plan(kernels.RBF(1.0), canonical(thin), "auto").form == "sparse"
    assert Layout.plan(kernels.RBF(1.0), sparse.csr_array(PIXELS), "auto").form == "integer"


@pytest.mark.parametrize("stored", [bool, np.float64])
def test_sparse_data_do_not_grow_to_many_times_their_size(stored, monkeypatch):
    """0/1 data of 2% take 50 bytes per entry with a byte for every feature: at most three times the data."""
    rng = np.random.default_rng(0)
    few, many = (sparse.csr_array((rng.random((400, 500)) < share).astype(stored)) for share in (0.022, 0.2))
    assert Layout.plan(kernels.RBF(1.0), canonical(few), "auto").form == "binary"
    monkeypatch.setattr(layouts, "_SMALL_BYTES", 0)
    assert Layout.plan(kernels.RBF(1.0), canonical(few), "auto").form == "sparse"
    assert Layout.plan(kernels.RBF(1.0), canonical(many), "auto").form == "binary"


# -- whole fits --------------------------------------------------------------------------------------

DIGITS = load_digits()
X16, Y16 = DIGITS.data[:600].astype(np.uint8), DIGITS.target[:600]
STORED = {
    "uint8": X16,
    "int8": X16.astype(np.int8),
    "int16": X16.astype(np.int16),
    "uint16": X16.astype(np.uint16),
    "int64": X16.astype(np.int64),
    "float32": X16.astype(np.float32),
    "csr int8": sparse.csr_array(X16.astype(np.int8)),
    "csr int64": sparse.csr_array(X16.astype(np.int64)),
}


@pytest.fixture(scope="module")
def reference():
    """The plain engine on float64, with all rows or only the first, made when asked for."""
    made = {}

    def fitted(n):
        if n not in made:
            model = KernelSVC(C=2.0, gamma=1e-3, engine="numpy", tol=1e-6)
            made[n] = model.fit(X16[:n].astype(np.float64), Y16[:n])
        return made[n]

    return fitted


@pytest.mark.slow
@pytest.mark.parametrize("stored", list(STORED))
@pytest.mark.parametrize("engine", ["cpu", "numpy"])
def test_every_type_fits_the_same_machine(engine, stored, reference):
    n = 300 if engine == "cpu" else 120
    X, plain = STORED[stored][:n], reference(n)
    model = KernelSVC(C=2.0, gamma=1e-3, engine=engine, tol=1e-6).fit(X, Y16[:n])
    assert model.dual_objective_ == pytest.approx(plain.dual_objective_, rel=1e-6)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X16[:n].astype(np.float64)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtype_is_that_of_the_rows(dtype):
    model = KernelSVC(gamma=1e-3, dtype=dtype).fit(X16, Y16)
    assert model.trace_.info["row_dtype"] == dtype
    assert model.trace_.info["kernel_form"] == "uint8 product"


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid", "laplacian", "rbf"])
@pytest.mark.parametrize("stored", ["uint8", "bool", "csr bool"])
def test_kernels_on_integers(kernel, stored):
    X = X16 if stored == "uint8" else X16 > 7
    options = {"kernel": kernel, "bias": "none", "gamma": 1e-3, "degree": 2, "C": 0.1, "tol": 1e-5}
    given = sparse.csr_array(X) if stored == "csr bool" else X
    ours, plain = KernelSVC(**options).fit(given, Y16), KernelSVC(**options).fit(X.astype(np.float64), Y16)
    assert ours.dual_objective_ == pytest.approx(plain.dual_objective_, rel=1e-5)
    K = kernel_matrix(
        kernel, X16[:20] if stored == "uint8" else X[:20], X[ours.support_], gamma=1e-3, degree=2
    )
    scores = K @ ours.dual_coef_
    np.testing.assert_allclose(ours.decision_function(given[:20]), scores, atol=1e-9 * np.abs(scores).max())


def test_normalised_polynomial_on_integers():
    kernel = kernels.Polynomial(gamma=1e-2, degree=3, coef0=1.0, normalize=True)
    ours, plain = (KernelSVC(kernel=kernel, tol=1e-6).fit(X, Y16) for X in (X16, X16.astype(np.float64)))
    assert ours.dual_objective_ == pytest.approx(plain.dual_objective_, rel=1e-6)


NEW = {
    "fractions": X16[:50] + 0.25,
    "larger": X16[:50].astype(np.int64) * 40,
    "negative": -X16[:50].astype(np.int16),
    "beyond 16 bits": X16[:50].astype(np.int64) * 4000,
    "bool": X16[:50] > 3,
    "float32": X16[:50].astype(np.float32),
    "sparse fractions": sparse.csr_array(X16[:50] * 0.3),
}


@pytest.mark.parametrize("trained_on", ["uint8", "float64 / 16", "bool"])
@pytest.mark.parametrize("new", list(NEW))
def test_new_data_of_another_type(new, trained_on):
    train = {"uint8": X16, "float64 / 16": X16 / 16, "bool": X16 > 5}[trained_on]
    model = KernelSVC(gamma=1e-4, C=2.0).fit(train, Y16)
    scores = model.decision_function(NEW[new])
    K = kernel_matrix("rbf", NEW[new], train[model.support_].astype(np.float64), gamma=1e-4)
    np.testing.assert_allclose(scores, K @ model.dual_coef_, atol=1e-10 * np.abs(model.dual_coef_).sum())


def test_callables_see_numbers_they_can_compute_with():
    model = KernelSVC(kernel=lambda A, B: A @ B.T, C=1e-3, bias="none").fit(X16, Y16)
    plain = KernelSVC(kernel="linear", C=1e-3, bias="none").fit(X16, Y16)
    assert model.dual_objective_ == pytest.approx(plain.dual_objective_, rel=1e-3)


def test_gamma_scale_of_integers_is_that_of_their_values():
    expected = 1 / (64 * X16.astype(np.float64).var())
    for X in (X16, sparse.csr_array(X16), X16.astype(np.int16)):
        assert kernels.RBF("scale").resolve(X).gamma == pytest.approx(expected, rel=1e-12)


def test_integers_stay_as_they_are():
    model = KernelSVC(gamma=1e-3).fit(X16, Y16)
    assert model._support.dtype == np.uint8
    assert canonical(X16) is X16
    flags = X16 > 3
    assert np.shares_memory(canonical(flags), flags)
    assert canonical(np.array([[70000]])).dtype == np.float64
    assert canonical(np.array([[40000]], dtype=np.uint16)).dtype == np.float64
    assert canonical(np.array([[-300]])).dtype == np.int16


@pytest.mark.slow
def test_decimals_are_fitted_exactly():
    """Iris is in tenths: its rounded values are a grid, and the certificate is of the same problem."""
    X, y = load_iris(return_X_y=True)
    model = KernelSVC(C=10.0, tol=1e-6).fit(X, y)
    assert model.trace_.info["kernel_form"] == "uint8 product"
    plain = KernelSVC(C=10.0, tol=1e-6, engine="numpy").fit(X, y)
    assert model.dual_objective_ == pytest.approx(plain.dual_objective_, rel=1e-7)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_sparse_rows_become_dense_for_a_dense_model(kernel, monkeypatch):
    """A few at a time; the scores are those of dense rows to the last bit."""
    iris = load_iris()
    model = KernelSVC(kernel=kernel, gamma=0.3, C=10.0).fit(iris.data, iris.target)
    expected = model.decision_function(iris.data)
    monkeypatch.setattr(scores, "_DENSE_VALUES", 40)
    np.testing.assert_array_equal(model.decision_function(sparse.csr_matrix(iris.data)), expected)
