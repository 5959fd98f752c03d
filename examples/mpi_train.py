"""Train one machine with all processes that mpiexec has started; each predicts its own part of the test data.

    pip install "multimargin[mpi]"
    mpiexec -n 4 python -m mpi4py examples/mpi_train.py
    python examples/mpi_train.py                             # the same in one process

Every process loads the same arrays here, so each takes its slice of the rows. A process may as well load its
own rows only, for example a file of its own: fit notices that the arrays differ, and takes them as shards.
"""

import pickle
import tempfile
from pathlib import Path

from mpi4py import MPI
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from multimargin import KernelSVC


def main():
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    model = KernelSVC(C=10, gamma=0.001, engine="mpi").fit(X, y)

    # The model is complete on every rank. Prediction needs no messages: each rank may predict what it likes.
    ranks = MPI.COMM_WORLD
    mine = slice(ranks.rank, None, ranks.size)
    right = ranks.allreduce(int((model.predict(X_test[mine]) == y_test[mine]).sum()))

    if ranks.rank == 0:
        file = Path(tempfile.gettempdir()) / "digits.pkl"
        file.write_bytes(pickle.dumps(model))  # it can be loaded without MPI
        print(f"{ranks.size} ranks: {model.status_} Duality gap {model.duality_gap_:.2g}.")
        print(f"{right} of {len(y_test)} digits are right. The model is in {file}.")


if __name__ == "__main__":
    main()
