"""What ranks under mpiexec do in ``test_fit.py``."""

import pickle
import re
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from mpi4py import MPI
from sklearn.datasets import load_digits

from multimargin import KernelSVC
from multimargin.engines import Mpi

DIGITS = load_digits()
X, Y = DIGITS.data[:160] / 16, DIGITS.target[:160] % 4
WEIGHT = np.where(np.arange(160) % 9 == 0, 0.0, 1.5)


def svc(**parameters):
    return KernelSVC(**{"C": 2.0, "gamma": 2.0**-4, "tol": 1e-5, "n_threads": 1} | parameters)


def shard():
    """Two thirds of the rows on the first rank, none on the second, the rest on the last."""
    rank, size = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
    ends = [0, 107, *[107] * (size - 2), 160] if size > 2 else [0, 107, 160]
    return slice(ends[rank], ends[rank + 1])


def message_of(model, *data):
    try:
        model.fit(*data)
    except ValueError as error:
        return str(error)
    return None


def bytes_read(file):
    """Bytes of a file that this process has read through memory maps; None if the system does not say."""
    if not Path("/proc/self/smaps").exists():
        return None
    parts = Path("/proc/self/smaps").read_text().split(str(file))[1:]
    return sum(1024 * int(re.search(r"Rss: *(\d+) kB", part).group(1)) for part in parts)


def read_of(file):
    """The same after a fit to all rows of the file."""
    mapped = np.load(file, mmap_mode="r")
    svc(engine="mpi", gamma="scale", tol=1e-2).fit(mapped, np.arange(len(mapped)) % 2)
    return bytes_read(file)


def results(folder):
    """Decision values of the models of several fits in a row, and other facts."""
    comm, mine = MPI.COMM_WORLD, shard()
    mapped = np.load(Path(folder) / "X.npy", mmap_mode="r")
    text = np.where(Y == 0, "zero", "some other label")
    models = {
        "same": svc(engine="mpi").fit(X, Y),
        "shards": svc(engine="mpi").fit(X[mine], Y[mine]),
        "memory map": svc(engine="mpi").fit(mapped, Y),
        "sparse": svc(engine="mpi").fit(sp.csr_array(X[mine]), Y[mine]),
        "weights": svc(engine="mpi", class_weight="balanced").fit(X[mine], Y[mine], WEIGHT[mine]),
        "text": svc(engine="mpi").fit(X[mine], text[mine]),
        "pdasmc": svc(solver="pdasmc").fit(X, Y),
        "own communicator": svc(engine=Mpi(comm=comm.Dup())).fit(X, Y),
    }
    found = {name: (model.decision_function(X), model.support_) for name, model in models.items()}
    failed = message_of(svc(engine="mpi"), X[mine], np.full(160, 3)[mine])  # and the next fit works
    root = svc(engine=Mpi(model="root"), warm_start=True).fit(X, Y)
    cold = root.n_iter_
    root.fit(X, Y)
    if comm.Get_rank() == 0:
        Path(folder, "model").write_bytes(pickle.dumps(root))
    part = slice(comm.Get_rank() * 40, comm.Get_rank() * 40 + 40)
    return {
        "found": found,
        "failed": failed,
        "warm": (cold, root.n_iter_),
        "predicted": models["same"].predict(X[part]),
        "facts": models["same"].trace_.info,
        "has model": hasattr(root, "dual_coef_"),
        "read": read_of(Path(folder) / "wide.npy"),
    }
