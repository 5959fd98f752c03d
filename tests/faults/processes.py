"""Fit in forked, spawned and forkserver processes, in threads, in threads of threads, and while others fit.

    python tests/faults/processes.py                # every case
    python tests/faults/processes.py spawn "forks while others fit" --forks 20

Every fit must end in TIME and give the bits that the same fit gives alone.
"""

import argparse
import hashlib
import multiprocessing
import os
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from multimargin import KernelSVC, LinearSVC

TIME = 60.0  # seconds of a fit on a busy machine
X, Y = load_digits(return_X_y=True)
X, Y = X[:300] / 16.0, Y[:300]


def fit(threads=2):
    """The bits of two fits."""
    digest = hashlib.sha256()
    for model in (KernelSVC(C=4.0, gamma=0.05, n_threads=threads), LinearSVC(n_threads=threads)):
        model.fit(X, Y)
        digest.update(model.decision_function(X).tobytes())
    return digest.hexdigest()


def child(answers, threads):
    warnings.simplefilter("ignore")
    answers.put(fit(threads))


def in_process(method, threads=2):
    """The bits of a fit in another process."""
    context = multiprocessing.get_context(method)
    answers = context.SimpleQueue()
    process = context.Process(target=child, args=(answers, threads))
    process.start()
    process.join(TIME)
    if process.is_alive():
        process.kill()
        raise AssertionError(f"a process by {method} hangs")
    assert process.exitcode == 0, f"a process by {method} ended with {process.exitcode}"
    return answers.get()


def by(method):
    """Before and after the parent has had threads of its own."""
    fit()
    yield from (in_process(method) for _ in range(2))


def forks_while_others_fit(count):
    """Forks at moments at which other Python threads are in the middle of fits."""
    ended = threading.Event()

    def others():
        while not ended.is_set():
            fit()

    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(others) for _ in range(2)]
        try:
            for number in range(count):
                time.sleep(0.001 * (number % 17))
                yield in_process("fork")
        finally:
            ended.set()
        for job in jobs:
            job.result()


def in_threads():
    with ThreadPoolExecutor(4) as pool:
        yield from pool.map(lambda _: fit(), range(8))


def within_threads_of_threads():
    with ThreadPoolExecutor(2) as outer, ThreadPoolExecutor(4) as inner:
        yield from outer.map(lambda _: inner.submit(fit).result(TIME), range(6))


def within_a_kernel():
    """A kernel that fits a machine itself, called in the middle of a fit."""
    found = []

    def kernel(A, B):
        found.append(fit())
        return A @ B.T

    KernelSVC(kernel=kernel, n_threads=2).fit(X[:60], Y[:60])
    yield from found


def within_openmp_levels():
    """Fits in a process that allows parallel regions within parallel regions."""
    before = os.environ.get("OMP_MAX_ACTIVE_LEVELS")
    os.environ["OMP_MAX_ACTIVE_LEVELS"] = "4"
    try:
        yield in_process("spawn", threads=2)
    finally:
        os.environ.pop("OMP_MAX_ACTIVE_LEVELS")
        if before is not None:
            os.environ["OMP_MAX_ACTIVE_LEVELS"] = before


def within_joblib():
    """A grid of scikit-learn over processes and over threads."""
    scores = []
    for backend in (None, "loky", "threading"):
        import joblib

        grid = GridSearchCV(
            KernelSVC(n_threads=2), {"C": [0.1, 4.0]}, cv=3, n_jobs=None if backend is None else 2
        )
        with joblib.parallel_config(backend=backend or "sequential"):
            scores.append(grid.fit(X, Y).cv_results_["mean_test_score"])
    assert all((score == scores[0]).all() for score in scores), "another score"
    yield fit()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--forks", type=int, default=100, help="while other threads fit")
    parser.add_argument("cases", nargs="*", help="which cases; all by default")
    args = parser.parse_args()
    cases = {method: lambda method=method: by(method) for method in multiprocessing.get_all_start_methods()}
    cases |= {
        "forks while others fit": lambda: forks_while_others_fit(args.forks),
        "threads": in_threads,
        "threads of threads": within_threads_of_threads,
        "a fit within a kernel": within_a_kernel,
        "levels of OpenMP": within_openmp_levels,
        "joblib": within_joblib,
    }
    warnings.simplefilter("ignore")
    usual = fit()
    for name in args.cases or cases:
        found = list(cases[name]())
        assert found and set(found) == {usual}, f"{name}: other bits"
        print(f"{name:<24} {len(found):4d} fits, each with the usual bits", flush=True)
    assert fit() == usual


if __name__ == "__main__":
    main()
