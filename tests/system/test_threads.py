"""Threads: the same model for any number of them, the same bits for the same number, safe after a fork."""

import multiprocessing
import os
import queue
import threading
import warnings

import numpy as np
import pytest
import threadpoolctl
from helpers import METHODS, SOLVERS, audit
from oracle import kernel_matrix
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from multimargin import KernelSVC, _core
from multimargin.system import threads
from multimargin.system.threads import blas_threads


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
    """The bitwise test above would be empty if nothing were random, as in small problems solved at once."""
    X, y = rows
    chunks = {"machine": "weston-watkins", "solver": "msvmpack", "tol": 0.05}
    one, two = (KernelSVC(C=4.0, gamma=0.05, random_state=seed, **chunks).fit(X, y) for seed in (0, 1))
    assert not np.array_equal(one.decision_function(X), two.decision_function(X))


def test_global_random_state_is_left_alone(rows):
    X, y = rows
    np.random.seed(5)  # noqa: NPY002  (the legacy generator is what must not move)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    fit(X[:100], y[:100])
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def child(answers, X, y):
    team = _core.end_threads()  # none yet: the parent ended its own before the fork
    model = fit(X, y, n_threads=2)
    answers.put((team, model.decision_function(X[:50]), model.trace_.info["n_threads"], native_threads()))


def native_threads():
    """Threads of this process, as Linux counts them."""
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0


def answer_of(target, *arguments):
    """What a forked child puts into its queue; it must do so in 60 s."""
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    process = context.Process(target=target, args=(answers, *arguments))
    process.start()
    try:
        return answers.get(timeout=60)
    except queue.Empty:
        pytest.fail("the forked child did not finish in 60 s")
    finally:
        process.kill()
        process.join()


forks = pytest.mark.skipif(
    not hasattr(os, "fork") or os.environ.get("MULTIMARGIN_SANITIZED") == "thread",
    reason="no fork here, or none after which TSan follows threads",
)
quiet_forks = pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")


@forks
@quiet_forks
def test_a_forked_child_runs_on_as_many_threads_as_its_parent(rows):
    """It neither hangs nor falls back to one thread in silence, and its model is the parent's to the bit."""
    X, y = rows
    expected = fit(X, y, n_threads=2).decision_function(X[:50])  # starts the parent's threads
    ended, got, said, running = answer_of(child, X, y)
    np.testing.assert_array_equal(got, expected)
    assert ended and said == 2
    assert running == 0 or running >= 2
    np.testing.assert_array_equal(
        fit(X, y, n_threads=2).decision_function(X[:50]), expected
    )  # the parent too


def stuck_child(answers, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asked = fit(X, y, n_threads=2).trace_.info["n_threads"]
        explicit = [str(warning.message) for warning in caught]
        caught.clear()
        default = fit(X, y).trace_.info["n_threads"]
    answers.put((asked, explicit, default, len(caught)))


@forks
@quiet_forks
def test_a_child_that_must_do_with_one_thread_says_so(monkeypatch, rows):
    """An OpenMP that cannot end its threads leaves the child one; who asked for more is told why."""
    monkeypatch.setattr(_core, "end_threads", lambda: False)
    asked, explicit, default, silent = answer_of(stuck_child, rows[0][:60], rows[1][:60])
    assert (asked, default, silent) == (1, 1, 0)
    assert len(explicit) == 1 and "n_threads=2 runs on one thread" in explicit[0] and "'spawn'" in explicit[0]


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


def blas_counts():
    pools = threadpoolctl.threadpool_info()
    return {pool["filepath"]: pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}


def test_blas_keeps_its_threads(rows):
    """A fit limits BLAS while it runs and puts things back."""
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = blas_counts()
        assert set(before.values()) == {2}
        fit(rows[0][:100], rows[1][:100], n_threads=1)
        assert blas_counts() == before


def test_blas_threads_come_back_whatever_python_threads_did():
    """Two threads whose limits overlap: the second saw the first one's limit, and must not restore that."""
    second_in, first_out = threading.Event(), threading.Event()
    seen = []

    def second():
        with blas_threads(2):
            seen.append(set(blas_counts().values()))  # the smaller of the two limits
            second_in.set()
            assert first_out.wait(10)
            seen.append(set(blas_counts().values()))

    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        before = blas_counts()
        other = threading.Thread(target=second)
        with blas_threads(1):
            other.start()
            assert second_in.wait(10)
        first_out.set()
        other.join()
        assert blas_counts() == before
    assert seen == [{1}, {2}]


def test_inner_blas_limits_hold_inside_outer_ones():
    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        before = blas_counts()
        with blas_threads(1):
            with blas_threads(2):
                assert set(blas_counts().values()) == {2}
            assert set(blas_counts().values()) == {1}
            with pytest.raises(RuntimeError), blas_threads(2):
                raise RuntimeError
        assert blas_counts() == before


class InterruptedBlas:
    """A library with four threads. Somebody presses Ctrl-C when it has been asked ``left`` things more."""

    left = 0

    def __init__(self):
        self.count = 4

    def get_num_threads(self):
        self.look()
        return self.count

    def set_num_threads(self, n):
        self.look()
        self.count = n
        self.look()

    def look(self):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_ctrl_c_at_any_moment_of_a_limit_gives_blas_its_threads_back(monkeypatch):
    """Before, a limit that was interrupted as it began or ended held until the process ended."""
    blas, limits = InterruptedBlas(), threads._BlasLimits()
    limits.shared, limits.per_thread = [blas], []
    monkeypatch.setattr(threads, "_blas_limits", limits)
    for moment in range(1, 100):
        blas.left = moment
        try:
            with blas_threads(2), blas_threads(1):
                pass
        except KeyboardInterrupt:
            pass
        else:
            break
        assert blas.count == 4, f"moment {moment}"
        with blas_threads(3):
            assert blas.count == 3, f"moment {moment}"
        assert blas.count == 4, f"moment {moment}"
    assert 8 < moment < 99
