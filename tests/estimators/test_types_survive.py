"""Bytes and short integers reach the solver in their type, from the file to the model."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from multimargin import KernelSVC
from multimargin.datasets import load, save
from multimargin.estimators.samples import training_data
from multimargin.kernels import RBF


@pytest.fixture(scope="module")
def images():
    """1,500 rows of 800 bytes, most of them 0, in 3 classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1500)
    X = (rng.random((1500, 800)) < 0.2) * rng.integers(1, 80, (1500, 800))
    X[np.arange(1500), y * 9] = 200
    return X.astype(np.uint8), y


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".svm", ".csv"])
def test_the_type_of_a_file_is_the_type_of_the_model(tmp_path, images, dtype, suffix):
    X, y = images[0][:200, :60].astype(np.int64), images[1][:200]
    if dtype != "uint8":
        X = X // 2 - (X == 0) if dtype == "int8" else X * 100
    X = X.astype(dtype)
    path = tmp_path / f"X{suffix}"
    save(path, X, None if suffix == ".npy" else y)
    found = load(path)
    model = KernelSVC(C=10).fit(found.X, y)
    assert found.X.dtype == model._support.dtype == dtype
    assert dtype in model.trace_.info["kernel_form"] or "binary" in model.trace_.info["kernel_form"]
    assert pickle.loads(pickle.dumps(model))._support.dtype == dtype


def test_zeros_and_ones_of_sparse_text_are_a_binary_kernel(tmp_path):
    rng = np.random.default_rng(0)
    X = sp.csr_array((rng.random((200, 400)) < 0.05).astype(np.uint8))
    y = rng.integers(0, 3, 200)
    save(tmp_path / "a.svm", X, y)
    found = load(tmp_path / "a.svm", n_features=400)
    model = KernelSVC(C=10).fit(found.X, found.y)
    assert sp.issparse(found.X) and found.X.dtype == model._support.dtype == np.uint8
    assert model.trace_.info["kernel_form"] == "binary"


def test_a_map_of_bytes_is_not_copied(tmp_path, images):
    X, y = images
    np.save(tmp_path / "X.npy", X)
    mapped = load(tmp_path / "X.npy").X
    checked, _ = training_data(KernelSVC(), RBF(), mapped, y)
    assert isinstance(mapped, np.memmap) and np.shares_memory(checked, mapped)


def test_a_fit_to_bytes_needs_no_copy_of_them_in_float64(images):
    """Beside the cache a fit may take a few megabytes for parts of the data, not 8 bytes per value."""
    X, y = np.tile(images[0], (8, 1)), np.tile(images[1], 8)
    cache = 4.0
    tracemalloc.start()
    try:
        with pytest.warns(ConvergenceWarning):
            KernelSVC(cache_size=cache, n_threads=1, max_iter=1).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < cache * 1e6 + X.nbytes < 8 * X.nbytes / 3
