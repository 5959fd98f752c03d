"""Problems for tests of the leap: overlapping classes, and kernels that are nearly of low rank."""

import numpy as np
from oracle import kernel_matrix

from multimargin.engines.cpu.pivoted_cholesky import PivotedCholesky
from multimargin.problems import PROBLEMS
from multimargin.system.shard import Shard

MACHINES = ("crammer-singer", "weston-watkins", "one-vs-rest")


def wide(n=300, m=6, d=4, seed=0):
    """Samples of overlapping classes: with a small gamma almost all of them are support vectors."""
    rng = np.random.default_rng(seed)
    y = np.resize(np.arange(m), n).astype(np.int32)
    return rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(m, d))[y], y


def factored(K, rank, rows=None, shard=None):
    """The pivoted Cholesky factor of K, or the part of it that a rank with these rows has."""
    rows = slice(0, len(K)) if rows is None else rows
    shard = Shard(rows.stop - rows.start) if shard is None else shard
    factor = PivotedCholesky(K.diagonal()[rows].copy(), shard)
    while factor.rank < rank and not factor.done:
        factor.grow(lambda ids: K[rows][:, ids])
    return factor


def small(machine, n=90, m=4, seed=0):
    """A problem, K, y and costs that differ from sample to sample."""
    X, y = wide(n, m, seed=seed)
    C = 10.0 * np.random.default_rng(seed).uniform(0.5, 1.5, n)
    return PROBLEMS[machine](m), kernel_matrix("rbf", X, gamma=0.05), np.sort(y), C


def feasible(problem, y, C, seed=1):
    """A feasible point with entries on and off their bounds."""
    w = np.random.default_rng(seed).normal(size=(len(y), problem.m)) * C[:, None]
    return problem.project(w, y, C)
