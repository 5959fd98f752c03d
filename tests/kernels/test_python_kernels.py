"""Callables and precomputed matrices: few calls, no value twice, any kind of sample, symmetry, no copies."""

import tracemalloc

import numpy as np
import pytest
from helpers import audit
from oracle import full_alpha, kernel_matrix
from scipy import sparse
from sklearn.svm import SVC

from multimargin import KernelSVC
from multimargin.kernels import CallableKernel


def blobs(n, d=4):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(3, d))[y], y


class Counted:
    """An RBF kernel that counts its calls and values."""

    def __init__(self):
        self.calls = self.values = 0

    def __call__(self, A, B):
        self.calls += 1
        self.values += len(A) * len(B)
        return kernel_matrix("rbf", A, B, gamma=0.1)


@pytest.mark.parametrize("machine", ["crammer-singer", "one-vs-rest", "msvm2"])
def test_a_small_matrix_is_asked_for_once(machine):
    X, y = blobs(300)
    kernel = Counted()
    model = KernelSVC(machine, kernel=kernel).fit(X, y)
    assert (kernel.calls, kernel.values) == (1, 300**2)
    audit(model, kernel_matrix("rbf", X, gamma=0.1, offset=1.0), y, 1.0, tol=1e-3)


def test_the_numpy_engine_asks_once_too():
    X, y = blobs(60)
    kernel = Counted()
    KernelSVC(kernel=kernel, engine="numpy").fit(X, y)
    assert (kernel.calls, kernel.values) == (1, 60**2)


def test_rows_of_a_larger_matrix_serve_the_proof():
    X, y = blobs(2100, 2)
    kernel = Counted()
    KernelSVC(kernel=kernel).fit(X, y)
    assert kernel.values < 2100**2
    assert kernel.calls < 300


def test_the_diagonal_takes_few_calls():
    X, _ = blobs(100)
    kernel = Counted()
    np.testing.assert_allclose(CallableKernel(kernel).diagonal(X), 1.0)
    assert kernel.calls == 7
    assert kernel.values <= 16 * 100


# -- any kind of sample -------------------------------------------------------------------------------

WORDS = [
    "apple",
    "apples",
    "ape",
    "grape",
    "zoo",
    "zebra",
    "zebras",
    "zero",
    "rat",
    "rats",
    "rate",
    "grate",
] * 3
KINDS = np.repeat([["fruit"] * 4, ["z"] * 4, ["r"] * 4], 1).tolist() * 3


def letters(A, B):
    """Common letters of two words, over the root of their numbers."""
    sets = [[set(str(word)) for word in side] for side in (A, B)]
    return np.array([[len(a & b) / np.sqrt(len(a) * len(b)) for b in sets[1]] for a in sets[0]])


class Word:
    """An object that NumPy could take apart."""

    def __init__(self, text):
        self.text = text

    def __len__(self):
        return len(self.text)

    def __getitem__(self, i):
        return self.text[i]

    def __str__(self):
        return self.text


FORMS = {
    "list of strings": WORDS,
    "array of strings": np.array(WORDS),
    "array of objects": np.array(WORDS, dtype=object),
    "list of objects": [Word(word) for word in WORDS],
    "lists of several lengths": [list(word) for word in WORDS],
}


@pytest.mark.parametrize(
    ("form", "engine"), [*((form, "cpu") for form in FORMS), ("list of objects", "numpy")]
)
def test_strings_and_objects_reach_a_callable(form, engine):
    X = FORMS[form]
    model = KernelSVC(kernel=lambda A, B: letters(*map(spelled, (A, B))), C=10.0, engine=engine).fit(X, KINDS)
    peer = SVC(kernel=letters, C=10.0).fit(WORDS, KINDS)
    assert list(model.predict(X)) == list(peer.predict(WORDS))
    assert model.predict(X[:1])[0] == KINDS[0]
    assert spelled(model.support_vectors_) == [WORDS[i] for i in model.support_]


def spelled(A):
    return ["".join(str(letter) for letter in a) for a in A]


def test_indices_of_one_dimension_reach_a_callable():
    X, y = blobs(60)
    K = kernel_matrix("rbf", X, gamma=0.1)
    model = KernelSVC(kernel=lambda A, B: K[np.ix_(A.astype(int), B.astype(int))]).fit(np.arange(60), y)
    audit(model, K + 1.0, y, 1.0, tol=1e-3)
    assert model.score(np.arange(60), y) == KernelSVC(kernel="precomputed").fit(K, y).score(K, y)


def test_labels_are_checked_without_a_table():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelSVC(kernel=letters).fit(WORDS, KINDS[:-1])
    with pytest.raises(ValueError, match="NaN"):
        KernelSVC(kernel=letters).fit(WORDS, [np.nan] * len(WORDS))


# -- symmetry -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_an_asymmetric_matrix_is_refused(stored):
    X, y = blobs(1100)
    K = kernel_matrix("rbf", X, gamma=0.1)
    K[3, 1050] += 0.5
    with pytest.raises(ValueError, match=r"precomputed kernel is not symmetric.* differ by up to 0.5"):
        KernelSVC(kernel="precomputed").fit(stored(K), y)


def test_rounding_is_no_asymmetry():
    X, y = blobs(200)
    K = kernel_matrix("rbf", X, gamma=0.1).astype(np.float32)
    noise = 1 + 1e-6 * np.random.default_rng(0).normal(size=K.shape).astype(np.float32)
    assert KernelSVC(kernel="precomputed").fit(K * noise, y).status_.converged


@pytest.mark.parametrize("n", [60, 2100])
@pytest.mark.parametrize("engine", ["cpu", "numpy"])
def test_an_asymmetric_callable_is_refused(engine, n):
    X, y = blobs(n)
    with pytest.raises(ValueError, match="kernel callable is not symmetric"):
        KernelSVC(kernel=lambda A, B: A @ B.T + A[:, :1], engine=engine).fit(X, y)


# -- a matrix stays as it is --------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("mapped", [False, True])
def test_a_precomputed_matrix_is_not_copied(order, mapped, tmp_path):
    X, y = blobs(2500)
    K = np.asarray(X @ X.T + np.eye(2500), order=order)
    if mapped:
        stored = np.memmap(tmp_path / "K", dtype=K.dtype, mode="w+", shape=K.shape, order=order)
        stored[:] = K
        K = stored
    model = KernelSVC(kernel="precomputed", cache_size=1, max_iter=1, bias="none")
    with pytest.warns(UserWarning, match="max_iter"):
        tracemalloc.start()
        model.fit(K, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < K.nbytes  # with the room for blocks, whatever cache_size is


@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_a_precomputed_matrix_larger_than_the_cache(bias):
    X, y = blobs(600)
    K = kernel_matrix("rbf", X, gamma=0.1)
    model = KernelSVC(kernel="precomputed", cache_size=0.1, bias=bias).fit(K, y)
    audit(model, K + (bias == "regularized"), y, 1.0, tol=1e-3)
    assert np.abs(model.decision_function(K) - (K @ full_alpha(model, 600) + model.intercept_)).max() < 1e-9


@pytest.mark.parametrize(
    "change",
    [
        lambda K: K + 1j,
        lambda K: K.astype(str),
        lambda K: K.astype(str).astype(object) + "?",
        lambda K: np.full(K.shape, {}),
    ],
)
def test_values_that_are_no_real_numbers_are_refused(change):
    """The imaginary part was dropped with a warning, and text was read as numbers."""
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6) % 2
    with pytest.raises(
        ValueError, match=r"kernel callable returned values that are no real numbers, of type"
    ):
        KernelSVC(kernel=lambda A, B: change(A @ B.T)).fit(X, y)
