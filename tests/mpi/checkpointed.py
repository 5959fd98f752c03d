"""Fits with a checkpoint, as one rank makes them: ``python checkpointed.py PATH`` fits until it is killed."""

import os
import sys

import numpy as np

from multimargin import KernelSVC
from multimargin.engines import Mpi

GAMMA, C, TOL = 0.2, 3.0, 1e-3


def samples(n=120):
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 5)) + 1.2 * np.eye(3, 5)[y], y


def fit(path, team=None, seconds=60.0, **params):
    """The model of a fit on all ranks; without a team, on those of MPI."""
    X, y = samples()
    model = KernelSVC(
        **{"C": C, "gamma": GAMMA, "tol": TOL, "n_threads": 1, "checkpoint": (str(path), seconds)} | params,
        engine=Mpi(data="same", comm=team),
    )
    return model.fit(X, y)


def facts(path, params):
    """What a rank says of its fit."""
    model = fit(path, **params)
    return {
        "support": model.support_,
        "coef": model.dual_coef_,
        "status": model.status_.name,
        "n_iter": model.n_iter_,
        "info": model.trace_.info["checkpoint"],
        "dual": model.dual_objective_,
    }


def say(row):
    if row.iteration % 10 == 0:
        os.write(1, f"pid {os.getpid()} iteration {row.iteration}\n".encode())


if __name__ == "__main__":
    fit(sys.argv[1], seconds=0.0, solver="mcsvm", tol=1e-12, callback=say)
