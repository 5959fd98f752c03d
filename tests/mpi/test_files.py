"""Files under mpiexec: each rank reads its part, and the fit is that of one process to the whole file."""

import numpy as np
import pytest
from file_fits import fitted, refused
from launch import need_mpi, on_ranks
from sklearn.datasets import load_digits

from multimargin import KernelSVC
from multimargin.datasets import load, save


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    need_mpi()
    folder = tmp_path_factory.mktemp("files")
    X, y = load_digits(return_X_y=True)
    X, y = X[:150].astype(np.uint8), y[:150] % 4
    X[100:, 60:] = 0  # the last part does not show how many features there are
    names = [str(folder / name) for name in ("a.svm", "a.csv.gz", "a.parquet", "X.npy")]
    for name in names[:3]:
        save(name, X, y)
    np.save(names[3], X)
    np.save(folder / "y.npy", y)
    return names, str(folder / "y.npy"), X, y


@pytest.mark.parametrize("P", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_each_rank_reads_its_part_and_the_fit_is_that_of_one_process(files, P):
    names, labels, X, y = files
    ranks = on_ranks(P, fitted, names, labels)
    model = KernelSVC(C=2.0, gamma=2.0**-10, tol=1e-5).fit(X, y)
    for name in names:
        parts = [found[name] for found in ranks]
        whole = load(name).X.shape[1]  # LIBSVM text has no features behind the last entry
        np.testing.assert_array_equal(np.concatenate([part[0] for part in parts]), X[:, :whole])
        np.testing.assert_array_equal(np.concatenate([part[1] for part in parts]), y)
        assert all(0 < len(part[0]) < len(X) for part in parts)
        for _, _, dtype, classes, dual, width, stored in parts:
            assert (dtype, stored, classes, width) == ("uint8", "uint8", [0, 1, 2, 3], whole)
            assert dual == pytest.approx(model.dual_objective_, rel=1e-4)


def test_a_fault_on_one_rank_is_told_to_all(tmp_path):
    need_mpi()
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n" * 50 + "1 1:x\n")
    told = on_ranks(2, refused, str(path))
    assert told[0] == told[1] and "line 51, column 5: a number expected after the colon, got 'x'" in told[0]
