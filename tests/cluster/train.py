"""One rank of a fit across hosts: ``python train.py ROWS SECONDS TIMEOUT``.

Every rank holds its own rows of the digits, repeated with noise. Rank 0 prints what came out, as one line of
JSON. With SECONDS > 0 it fits again and again for that long, so that there is time to cut a link.
"""

import json
import os
import socket
import sys
import time

import numpy as np
from sklearn.datasets import load_digits

from multimargin import KernelSVC
from multimargin.engines import Mpi


def digits(rows):
    X, y = load_digits(return_X_y=True)
    places = np.arange(rows) % len(X)
    return X[places] + np.random.default_rng(0).normal(0, 0.5, (rows, X.shape[1])), y[places]


def train(engine, X, y):
    return KernelSVC(C=4.0, gamma=0.002, tol=1e-3, n_threads=1, engine=engine).fit(X, y)


def main(rows, seconds, timeout):
    from mpi4py import MPI

    X, y = digits(rows)
    world = MPI.COMM_WORLD
    mine = slice(world.rank * rows // world.size, (world.rank + 1) * rows // world.size)
    engine = Mpi(data="shards", timeout=timeout)
    os.write(1, f"rank{world.rank} host {socket.gethostname()} pid {os.getpid()}\n".encode())
    limit = time.monotonic() + seconds
    while True:
        model = train(engine, X[mine], y[mine])
        if not world.bcast(time.monotonic() < limit):
            break
    if world.rank == 0:
        result = {"dual": model.dual_objective_, "gap": model.duality_gap_, "score": model.score(X, y)}
        print("RESULT", json.dumps(result | {"trace": repr(model.trace_.info)}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
