"""Small random problems of the linear machine, with feasible points."""

from dataclasses import replace

import numpy as np
from oracle import random_point
from scipy import sparse

from multimargin.linear.descent import LinearFit, LinearOptions, TrainingSet
from multimargin.linear.tuning import Tuning

N, D, M = 40, 11, 5
ANY_SIZE_IN_PARALLEL = Tuning(parallel_work=0, parallel_row=0, thread_classes=1)  # small problems too


MACHINES = ("crammer-singer", "weston-watkins", "one-vs-rest", "squared-one-vs-rest")


def random_task(seed=0, *, form="dense", dtype=np.float64, constant=0.0, m=M, n=N, machine="crammer-singer"):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.5)).astype(dtype)
    y = rng.integers(m, size=n).astype(np.int32)
    if form != "dense":
        X = sparse.csr_array(X)
        width = np.int64 if form == "csr64" else np.int32
        X.indices, X.indptr = X.indices.astype(width), X.indptr.astype(width)
    return TrainingSet(X, y, rng.uniform(0.5, 2.0, n), m, constant, machine=machine)


def random_alpha(task, seed=1):
    """A feasible point: some rows zero; of bounded machines some with all of their cost in use."""
    rng = np.random.default_rng(seed)
    n = len(task.y)
    if task.machine != "crammer-singer":
        alpha = random_point(task.machine, task.y, task.m, task.C, rng)
        return alpha * rng.choice([0.0, 1.0], n, p=[0.2, 0.8])[:, None]
    z = rng.dirichlet(np.full(task.m, 0.3), size=n) * (rng.random((n, task.m)) < 0.6)
    z[np.arange(n), task.y] = 0.0
    z *= (task.C / np.maximum(z.sum(axis=1), 1e-300) * rng.choice([0.0, 0.4, 1.0], n))[:, None]
    alpha = -z
    alpha[np.arange(n), task.y] = z.sum(axis=1)
    return alpha


def features(task):
    X = task.X.toarray() if sparse.issparse(task.X) else task.X
    X = X.astype(np.float64)
    return np.hstack([X, np.full((len(X), 1), task.constant)]) if task.constant else X


def started(task, alpha, options=None):
    return LinearFit(
        replace(task, alpha=sparse.csr_array(alpha)),
        options or LinearOptions(dtype="float64"),
    )


def csr_parts(alpha):
    rows = sparse.csr_array(alpha)
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
