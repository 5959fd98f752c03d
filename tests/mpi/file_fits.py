"""What ranks under mpiexec do in ``test_files.py``."""

import numpy as np
import scipy.sparse as sp
from mpi4py import MPI

from multimargin import KernelSVC
from multimargin.datasets import load
from multimargin.engines import Mpi


def fitted(paths, label):
    """Facts of a fit to each file, of which every rank reads its part."""
    found = {}
    for path in paths:
        X, y = load(path, comm=MPI.COMM_WORLD, label=label if path.endswith(".npy") else None, n_threads=1)
        parameters = {"C": 2.0, "tol": 1e-5, "n_threads": 1, "engine": Mpi(data="shards")}
        model = KernelSVC(gamma=2.0**-10, **parameters).fit(X, y)
        dense = X.toarray() if sp.issparse(X) else np.asarray(X)
        found[path] = (dense, np.asarray(y), str(X.dtype), model.classes_.tolist(), model.dual_objective_)
        found[path] += (model.n_features_in_, str(model._support.dtype))
    return found


def refused(path):
    """The message of a file that is wrong on one rank."""
    try:
        load(path, comm=MPI.COMM_WORLD, n_threads=1)
    except ValueError as error:
        return str(error)
    return None
