"""Kernel values: the plain definitions and the native ones, against the oracle's own formulas."""

import numpy as np
import pytest
from oracle import dense, kernel_matrix
from scipy import sparse
from sklearn.svm import SVC

from multimargin import KernelSVC, kernels

OBJECTS = {
    "linear": (kernels.Linear(), {}),
    "rbf": (kernels.RBF(0.3), {"gamma": 0.3}),
    "poly": (kernels.Polynomial(gamma=0.3, degree=3, coef0=0.5), {"gamma": 0.3, "degree": 3, "coef0": 0.5}),
    "poly-0": (kernels.Polynomial(gamma=0.3, degree=0, coef0=0.5), {"gamma": 0.3, "degree": 0, "coef0": 0.5}),
    "poly-normalised": (
        kernels.Polynomial(gamma=0.3, degree=2, coef0=1.0, normalize=True),
        {"gamma": 0.3, "degree": 2, "coef0": 1.0, "normalize": True},
    ),
    "sigmoid": (kernels.Sigmoid(gamma=0.1, coef0=-0.2), {"gamma": 0.1, "coef0": -0.2}),
    "laplacian": (kernels.Laplacian(0.3), {"gamma": 0.3}),
}


def variants(X):
    """The same rows in every form the package takes."""
    thin = X * (np.random.default_rng(0).random(X.shape) < 0.4)
    thin[3] = 0.0
    wide = sparse.csr_array(thin)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    return {
        "dense float64": X,
        "dense float32": X.astype(np.float32),
        "sparse float64": sparse.csr_array(thin),
        "sparse float32": sparse.csr_array(thin.astype(np.float32)),
        "sparse 64-bit": wide,
    }


LAYOUTS = [
    ("dense float64", "product"),
    ("dense float64", "direct"),
    ("dense float32", "product"),
    ("dense float32", "direct"),
    ("sparse float64", "rows"),
    ("sparse float32", "rows"),
    ("sparse 64-bit", "rows"),
]
FORMS = ("dense float64", "dense float32", "sparse float64", "sparse float32", "sparse 64-bit")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", list(OBJECTS))
def test_plain_definitions(name, form, wine):
    A = variants(wine[0])[form]
    kernel, options = OBJECTS[name]
    K = kernel_matrix(name.split("-")[0], A, **options)
    scale = np.abs(K).max()
    np.testing.assert_allclose(kernel.between(A[:20], A), K[:20], atol=1e-9 * scale)
    np.testing.assert_allclose(kernel.diagonal(A), np.diag(K), atol=1e-12 * scale)
    rows = np.array([5, 3, 40])
    np.testing.assert_allclose(kernel.block(A, rows), K[rows], atol=1e-9 * scale)
    np.testing.assert_allclose(kernel.block(A, rows, rows), K[np.ix_(rows, rows)], atol=1e-9 * scale)


def test_normalised_polynomial_of_a_zero_row():
    kernel = kernels.Polynomial(gamma=1.0, degree=2, coef0=0.0, normalize=True)
    A = np.array([[0.0, 0.0], [1.0, 2.0]])
    np.testing.assert_allclose(kernel.between(A, A), [[0, 0], [0, 1]], atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(A), [0, 1], atol=1e-12)


def test_precomputed_and_callable(wine):
    X = wine[0]
    K = kernel_matrix("rbf", X, gamma=0.1)
    rows = np.array([7, 1])
    given = kernels.Precomputed()
    np.testing.assert_array_equal(given.block(K, rows), K[rows])
    np.testing.assert_array_equal(given.diagonal(K), np.diag(K))
    computed = kernels.CallableKernel(lambda A, B: kernel_matrix("rbf", A, B, gamma=0.1))
    np.testing.assert_allclose(computed.block(X, rows), K[rows])
    np.testing.assert_allclose(computed.diagonal(X), np.diag(K))


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_gamma_words_mean_what_they_mean_in_scikit_learn(gamma, form, digits):
    X, y = digits
    given = sparse.csr_array(X) if form == "sparse" else X
    peer = SVC(gamma=gamma).fit(given, y)._gamma
    assert kernels.RBF(gamma).resolve(given).gamma == pytest.approx(peer, rel=1e-12)
    ours, explicit = (KernelSVC(gamma=g, tol=1e-6).fit(given, y) for g in (gamma, peer))
    assert ours.dual_objective_ == pytest.approx(explicit.dual_objective_, rel=1e-6)


def test_gamma_must_be_resolved_first(wine):
    with pytest.raises(ValueError, match="resolve"):
        kernels.RBF("scale").between(wine[0], wine[0])


def test_kernel_objects_are_values():
    assert kernels.RBF(0.5) == kernels.RBF(0.5)
    assert kernels.RBF(0.5) != kernels.Laplacian(0.5)
    assert hash(kernels.RBF(0.5)) == hash(kernels.RBF(0.5))
    with pytest.raises(AttributeError):
        kernels.RBF(0.5).gamma = 1.0


# The native side, through the functions the cpu engine calls.


def native_samples(core, A, layout, name):
    if sparse.issparse(A):
        samples = core.sparse(A.data, A.indices, A.indptr.astype(A.indices.dtype), *A.shape)
    elif layout == "direct":
        samples = core.dense_direct(np.ascontiguousarray(A.T))
    else:
        samples = core.dense_product(np.ascontiguousarray(A))
    if OBJECTS[name][1].get("normalize"):
        samples.set_scale(OBJECTS[name][0].scale(A))
    return samples


def native_spec(core, name, options, offset):
    return core.KernelSpec(
        name.split("-")[0],
        options.get("gamma", 1.0),
        options.get("coef0", 0.0),
        options.get("degree", 1),
        offset,
    )


@pytest.fixture(scope="module")
def core():
    import multimargin.engines.cpu  # noqa: F401  (hands SciPy's BLAS to the native module)
    from multimargin import _core

    return _core


@pytest.mark.parametrize("out_dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("form", "layout"), LAYOUTS)
@pytest.mark.parametrize("name", list(OBJECTS))
def test_native_block(core, name, form, layout, out_dtype, wine):
    A = variants(wine[0])[form]
    options = OBJECTS[name][1]
    K = kernel_matrix(name.split("-")[0], A, offset=1.0, **options)
    samples, spec = native_samples(core, A, layout, name), native_spec(core, name, options, 1.0)
    rows, slots = np.array([11, 0, 64, 3]), np.array([2, 5, 0, 1])
    out = np.full((6, 100), -7.0, dtype=out_dtype)
    core.kernel_block(spec, samples, rows, samples, 13, 90, out, slots, 2)
    single = out_dtype == np.float32 or "float32" in form
    tolerance = (3e-5 if single else 1e-9) * np.abs(K).max()
    np.testing.assert_allclose(out[slots, :77], K[rows, 13:90], atol=tolerance)
    assert (out[[3, 4]] == -7).all()  # other slots are left alone
    assert (out[:, 77:] == -7).all()


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize(("form", "layout"), LAYOUTS)
@pytest.mark.parametrize("name", list(OBJECTS))
def test_native_block_of_all_samples(core, name, form, layout, n_threads, wine):
    """Half of the values are copies: more rows than a tile has, in a wider matrix."""
    A = variants(wine[0])[form]
    A = sparse.vstack([A] * 3, format="csr") if sparse.issparse(A) else np.concatenate([A] * 3)
    n, options = A.shape[0], OBJECTS[name][1]
    K = kernel_matrix(name.split("-")[0], A, offset=1.0, **options)
    samples, spec = native_samples(core, A, layout, name), native_spec(core, name, options, 1.0)
    out = np.full((n + 1, n + 5), -7.0)
    core.kernel_block(spec, samples, np.arange(n), samples, 0, n, out, np.arange(n), n_threads)
    tolerance = (3e-5 if "float32" in form else 1e-9) * np.abs(K).max()
    np.testing.assert_allclose(out[:n, :n], K, atol=tolerance)
    assert (out[n] == -7).all()
    assert (out[:, n:] == -7).all()


@pytest.mark.parametrize(("form", "layout"), LAYOUTS)
@pytest.mark.parametrize("name", list(OBJECTS))
def test_native_scores(core, name, form, layout, wine):
    A = variants(wine[0])[form]
    options = OBJECTS[name][1]
    K = kernel_matrix(name.split("-")[0], A, offset=1.0, **options)
    samples, spec = native_samples(core, A, layout, name), native_spec(core, name, options, 1.0)
    ids = np.arange(0, 120, 3)
    coef = np.random.default_rng(0).normal(size=(len(ids), 5))
    coef[coef < 0.2] = 0.0
    scores = np.full((100, 5), np.nan)
    core.kernel_scores(spec, samples.take(ids), coef, samples, 10, 110, scores, 2)
    expected = K[10:110][:, ids] @ coef
    tolerance = (1e-4 if "float32" in form else 1e-9) * np.abs(K).max()
    np.testing.assert_allclose(scores, expected, atol=tolerance)


def test_native_block_of_two_sample_sets(core, wine):
    A, B = np.ascontiguousarray(wine[0][:30]), np.ascontiguousarray(wine[0][30:])
    out = np.zeros((30, 90))
    spec = core.KernelSpec("rbf", 0.3, 0.0, 1, 0.0)
    core.kernel_block(
        spec,
        core.dense_product(A),
        np.arange(30),
        core.dense_product(B),
        0,
        90,
        out,
        np.arange(30),
        1,
    )
    np.testing.assert_allclose(out, kernel_matrix("rbf", A, B, gamma=0.3), atol=1e-9)
    with pytest.raises(TypeError):
        core.kernel_block(
            spec, core.dense_product(A), np.arange(30), core.dense_direct(np.ascontiguousarray(B.T)), 0, 90,
            out, np.arange(30), 1,
        )  # fmt: skip


def test_exp_over_its_whole_range(core):
    """The native exponential, from 1 down to 0: no NaN, nothing negative, no normal number flushed."""
    distances = np.concatenate([np.linspace(0, 87, 4001), [100.0, 200.0, 1e4, 1e8]])
    A = np.ascontiguousarray(np.sqrt(distances)[:, None])
    origin = np.zeros((1, 1))
    for dtype, tolerance in ((np.float32, 3e-5), (np.float64, 1e-12)):
        samples = core.dense_direct(np.ascontiguousarray(A.T.astype(dtype)))
        zero = core.dense_direct(origin.astype(dtype))
        out = np.full((1, len(A)), np.nan, dtype=dtype)
        spec = core.KernelSpec("rbf", 1.0, 0.0, 1, 0.0)
        core.kernel_block(spec, zero, np.array([0]), samples, 0, len(A), out, np.array([0]), 1)
        squares = dense(A.astype(dtype))[:, 0] ** 2
        np.testing.assert_allclose(out[0], np.exp(-squares), rtol=tolerance, atol=2e-38)
        assert (out >= 0).all()


def test_a_degree_that_native_code_cannot_hold_is_refused():
    with pytest.raises(ValueError, match="degree must be an integer >= 0, at most 2147483647"):
        kernels.Polynomial(degree=2**31)
    assert kernels.Polynomial(degree=2**31 - 1).degree == 2**31 - 1


def test_normalised_values_of_tiny_and_huge_samples():
    kernel = kernels.Polynomial(gamma=1.0, degree=2, coef0=0.0, normalize=True)
    X = np.array([[1e-76], [1e-77], [1e-78], [0.0], [1e76]])
    np.testing.assert_array_equal(kernel.diagonal(X), [1, 0, 0, 0, 1])  # the square of a square is not normal
    np.testing.assert_allclose(np.diag(kernel.between(X, X)), [1, 0, 0, 0, 1])
    assert np.isnan(kernel.diagonal(np.array([[1e100]]))).all()
