"""Fits that do not end by themselves. Every rank prints a line for each of them: what happened."""

import os
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from multimargin import KernelSVC
from multimargin.engines import Mpi


def data(rank, size, n=2000):
    """Labels by chance: nearly every sample becomes a support vector."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 20)), rng.integers(0, 10, n)
    mine = slice(rank * n // size, (rank + 1) * n // size)
    return X[mine], y[mine]


def say(rank, *words):
    os.write(1, (" ".join(map(str, (f"rank{rank}", *words))) + "\n").encode())


def endless(**options):
    """A fit that takes minutes."""
    options = {"C": 1e4, "gamma": 0.05, "tol": 1e-9, "n_threads": 1, "solver": "dasmc"} | options
    return KernelSVC(engine=Mpi(data="shards"), **options)


def result(model):
    return f"{model.status_.name} {model.dual_objective_.hex()} {model.n_iter_}"


def main(world):
    rank = world.rank
    X, y = data(rank, world.size)
    say(rank, "limit", result(endless(time_limit=0.5).fit(X, y)))
    bad = X.copy()
    if rank == 1:
        bad[3, 4] = np.nan
    for what, fit in (
        ("nan", lambda: endless(time_limit=20.0).fit(bad, y)),
        ("parameter", lambda: endless(C=-1.0).fit(X, y)),
    ):
        try:
            fit()
        except ValueError as error:
            say(rank, what, repr(str(error)))
    say(rank, "keep", os.getpid())
    say(rank, "kept", result(endless(on_interrupt="keep", time_limit=60.0).fit(X, y)))
    say(rank, "raise", os.getpid())
    try:
        endless(time_limit=60.0).fit(X, y)
    except KeyboardInterrupt:
        say(rank, "raised")
    say(rank, "again", result(endless(C=1.0, tol=1e-2).fit(X[:100], y[:100])))

    def fail(row):
        raise RuntimeError("the callback does not like it")

    endless(callback=fail, time_limit=20.0).fit(X, y)


if __name__ == "__main__":
    from mpi4py import MPI

    warnings.simplefilter("ignore", ConvergenceWarning)
    main(MPI.COMM_WORLD)
