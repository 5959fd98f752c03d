"""Small integers as columns of products, against NumPy's: every type, instruction set and remainder."""

import numpy as np
import pytest

from multimargin import _core

NAMES = ("portable", "avx2", "vnni")
SETS = NAMES[: NAMES.index(_core.integer_simd()) + 1]  # those that this machine has
LINEAR = _core.KernelSpec("linear", 0.0, 0.0, 0, 0.0)


@pytest.fixture(params=SETS)
def instructions(request):
    _core.set_integer_simd(request.param)
    yield
    _core.set_integer_simd("best")


def integers(dtype, n, d):
    low, high = max(np.iinfo(dtype).min, -32767), np.iinfo(dtype).max
    X = np.random.default_rng(n + d).integers(low, high, (n, d), dtype=dtype, endpoint=True)
    X[0], X[-1] = high, low
    X[n // 2] = 0
    return X


def products(rows, columns):
    K, every = np.empty((rows.n, columns.n)), np.arange(rows.n)
    _core.kernel_block(LINEAR, rows, every, columns, 0, columns.n, K, every, 1)
    return K


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 63, 64, 67, 129, 130, 131])
@pytest.mark.parametrize("n", [1, 3, 63, 64, 65, 130])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16])
def test_products_are_those_of_the_integers(dtype, n, d, instructions):
    X, Y = integers(dtype, n, d), integers(dtype, 7, d)
    expected = Y.astype(np.int64) @ X.T.astype(np.int64)
    columns, rows = _core.integers(X, 1.0), _core.integers(Y, 1.0)
    np.testing.assert_array_equal(products(rows, columns), expected)
    np.testing.assert_array_equal(products(columns, rows), expected.T)


@pytest.mark.parametrize("used", [False, True])
def test_taken_samples_have_columns_and_norms_of_their_own(used, instructions):
    """Whether or not the samples that they are taken from were columns before."""
    X, ids = integers(np.uint8, 100, 37), np.array([99, 3, 50, 0, 3])
    samples = _core.integers(X, 1.0)
    if used:
        products(samples, samples)
    whole = X.astype(np.int64)
    taken = samples.take(ids)
    np.testing.assert_array_equal(products(samples, taken), whole @ whole[ids].T)
    K, every = np.empty((100, len(ids))), np.arange(100)
    rbf = _core.KernelSpec("rbf", 1e-6, 0.0, 0, 0.0)
    _core.kernel_block(rbf, samples, every, taken, 0, len(ids), K, every, 1)
    squares = np.square(whole[:, None] - whole[ids]).sum(axis=2)
    np.testing.assert_allclose(K, np.exp(-1e-6 * squares), rtol=1e-14)


def test_threads_that_use_the_columns_first_see_all_of_them():
    X = integers(np.uint8, 1500, 300)
    expected = X.astype(np.int64) @ X.T.astype(np.int64)
    for _ in range(5):
        samples, K, every = _core.integers(X, 1.0), np.empty((1500, 1500)), np.arange(1500)
        _core.kernel_block(LINEAR, samples, every, samples, 0, 1500, K, every, 4)
        np.testing.assert_array_equal(K, expected)
