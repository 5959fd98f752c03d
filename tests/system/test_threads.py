"""Threads: the same model for any number of them, the same bits for the same number, safe after a fork."""

import multiprocessing
import os
import queue

import numpy as np
import pytest
from helpers import METHODS, SOLVERS, audit
from oracle import kernel_matrix
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from multimargin import KernelSVC


@pytest.fixture(scope="module")
def rows():
    """400 digits: enough for several tiles and threads."""
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16.0, y[:400]


def as_many_as_it_can(method, rows):
    """Fewer rows for the methods that move one sample a step."""
    X, y = rows
    return (X[:70], y[:70]) if method in ("mcsvm", "ell-based") else (X, y)


def fit(X, y, **settings):
    return KernelSVC(C=4.0, gamma=0.05, random_state=0, **settings).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("method", METHODS)
def test_same_model_for_any_number_of_threads(method, form, rows):
    X, y = as_many_as_it_can(method, rows)
    given = sparse.csr_array(X) if form == "sparse" else X
    K = kernel_matrix("rbf", X, gamma=0.05)
    models = [fit(given, y, solver=SOLVERS[method], n_threads=threads) for threads in (1, 2, 3, None)]
    found = [audit(model, K, y, 4.0, 1e-3) for model in models]
    decisions = [model.decision_function(given) for model in models]
    for certificate, decision in zip(found[1:], decisions[1:], strict=True):
        assert certificate.dual == pytest.approx(found[0].dual, abs=found[0].gap + certificate.gap)
        np.testing.assert_allclose(decision, decisions[0], atol=0.05)
        assert np.mean(decision.argmax(axis=1) == decisions[0].argmax(axis=1)) > 0.995


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("method", METHODS)
def test_bitwise_repeatable(method, threads, rows):
    X, y = as_many_as_it_can(method, rows)
    first, second = (fit(X, y, solver=SOLVERS[method], n_threads=threads) for _ in range(2))
    np.testing.assert_array_equal(first.support_, second.support_)
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))
    assert first.n_iter_ == second.n_iter_
    assert first.duality_gap_ == second.duality_gap_


def test_seed_takes_part(rows):
    """The bitwise test above would be empty if nothing were random."""
    X, y = rows
    one, two = (KernelSVC(C=4.0, gamma=0.05, random_state=seed).fit(X, y) for seed in (0, 1))
    assert not np.array_equal(one.decision_function(X), two.decision_function(X))


def test_global_random_state_is_left_alone(rows):
    X, y = rows
    np.random.seed(5)  # noqa: NPY002  (the legacy generator is what must not move)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    fit(X[:100], y[:100])
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def child(answers, X, y):
    answers.put(fit(X, y, n_threads=2).decision_function(X[:50]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_fit_in_a_forked_child_does_not_hang(rows):
    X, y = rows
    expected = fit(X, y, n_threads=2).decision_function(X[:50])  # starts the parent's threads
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    process = context.Process(target=child, args=(answers, X, y))
    process.start()
    try:
        got = answers.get(timeout=60)
    except queue.Empty:
        pytest.fail("the forked child did not finish in 60 s")
    finally:
        process.kill()
        process.join()
    np.testing.assert_allclose(got, expected, atol=0.05)
    fit(X, y, n_threads=2)  # and the parent still works


def test_loky_workers(rows):
    X, y = rows
    parameters = {"C": [0.01, 4.0], "gamma": [0.05, 0.1]}
    alone, parallel = (
        GridSearchCV(KernelSVC(random_state=0, n_threads=1), parameters, cv=3, n_jobs=jobs).fit(
            X[:300], y[:300]
        )
        for jobs in (None, 2)
    )
    np.testing.assert_array_equal(
        alone.cv_results_["mean_test_score"], parallel.cv_results_["mean_test_score"]
    )
    assert parallel.best_score_ > 0.8


def test_fits_in_several_python_threads(rows):
    """The native code lets go of the GIL: fits must not see each other's state."""
    from concurrent.futures import ThreadPoolExecutor

    X, y = rows
    expected = fit(X[:300], y[:300], n_threads=1).decision_function(X)
    with ThreadPoolExecutor(4) as pool:
        jobs = [
            pool.submit(lambda: fit(X[:300], y[:300], n_threads=1).decision_function(X)) for _ in range(8)
        ]
        for job in jobs:
            np.testing.assert_array_equal(job.result(timeout=120), expected)


def test_blas_keeps_its_threads(rows):
    """A fit limits BLAS while it runs and puts things back."""
    import threadpoolctl

    def limits():
        pools = threadpoolctl.threadpool_info()
        return {pool["filepath"]: pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = limits()
        assert set(before.values()) == {2}
        fit(rows[0][:100], rows[1][:100], n_threads=1)
        assert limits() == before
