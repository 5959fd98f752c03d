"""Fixtures shared by all suites. The environment is set before anything imports SciPy or scikit-learn."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")
if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers share the cores: BLAS threads that spin in one of them would take the time of the others. A
    # fit sets the number for itself.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, settings
from scipy import sparse
from sklearn import datasets
from sklearn.preprocessing import StandardScaler

settings.register_profile(
    "multimargin",
    deadline=None,
    derandomize=True,
    max_examples=60,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
)
settings.load_profile("multimargin")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a background shell sets it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--torture", metavar="CASES", help="of tests/torture: all, a number, or 100-199")


REFERENCE = Path(__file__).parent / "reference" / "tiny_optima.json"


def stratified_rows(y, per_class, seed):
    """Row numbers with per_class members of every class, shuffled."""
    rng = np.random.default_rng(seed)
    picked = [rng.choice(np.flatnonzero(y == label), per_class, replace=False) for label in np.unique(y)]
    return rng.permutation(np.concatenate(picked))


def subset(bunch, per_class, seed=0):
    rows = stratified_rows(bunch.target, per_class, seed)
    X = StandardScaler().fit_transform(np.asarray(bunch.data, dtype=np.float64)[rows])
    return X, bunch.target[rows]


@pytest.fixture(scope="session")
def iris():
    """42 rows, 3 classes, 4 features: for the slow plain-Python engine."""
    return subset(datasets.load_iris(), 14)


@pytest.fixture(scope="session")
def wine():
    """120 rows, 3 classes, 13 features."""
    return subset(datasets.load_wine(), 40)


@pytest.fixture(scope="session")
def digits():
    """150 rows, 10 classes, 64 pixels in [0, 1], half of them zero."""
    bunch = datasets.load_digits()
    rows = stratified_rows(bunch.target, 15, 0)
    return bunch.data[rows] / 16.0, bunch.target[rows]


@pytest.fixture(scope="session")
def blobs():
    """90 overlapping rows, 4 classes, 3 features: many bounded support vectors."""
    return datasets.make_blobs(90, 3, centers=4, cluster_std=3.0, random_state=3)


@pytest.fixture(scope="session")
def text():
    """120 sparse rows of 10 classes (two threads' worth) in 300 features, counts as of words."""
    rng = np.random.default_rng(7)
    y = np.repeat(np.arange(10), 12)
    topics = rng.dirichlet(np.full(300, 0.05), size=10)
    common = rng.dirichlet(np.full(300, 0.3))
    X = np.array([rng.multinomial(25, 0.6 * topics[label] + 0.4 * common) for label in y], dtype=float)
    order = rng.permutation(len(y))
    return sparse.csr_array(X / np.linalg.norm(X, axis=1, keepdims=True))[order], y[order]


@pytest.fixture(scope="session")
def optima():
    """Tiny problems of every machine and bias with their optima; the file says how to read it."""
    return json.loads(REFERENCE.read_text())


@pytest.fixture
def report(tmp_path):
    """A benchmark's report that says PASS or MISS, for tests that have the benchmarks on their path."""
    from benchmarks.lib.report import Report

    return Report("test", argparse.Namespace(json=tmp_path / "test.json"), words=("PASS", "MISS"))
