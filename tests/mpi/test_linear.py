"""LinearSVC under mpiexec: every rank has the whole model, and it is the optimum of all rows."""

import numpy as np
import pytest
from launch import on_ranks

from multimargin import LinearSVC


def task():
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=300)
    return (rng.normal(size=(5, 20))[y] + 1.5 * rng.normal(size=(300, 20))).astype(np.float32), y


def fit(cuts):
    """On each rank: the model of a fit of its own rows; without ``cuts`` all ranks give the same rows."""
    from mpi4py import MPI

    from multimargin.engines import Mpi

    X, y = task()
    model = LinearSVC(
        engine=Mpi(data="auto" if cuts is None else "shards"), gap_tol=1e-3, tol=1e-6, n_threads=1
    )
    if cuts is not None:
        rank = MPI.COMM_WORLD.Get_rank()
        X, y = X[cuts[rank] : cuts[rank + 1]], y[cuts[rank] : cuts[rank + 1]]
    model.fit(X, y)
    return model.coef_, model.primal_objective_, model.duality_gap_, model.support_, model.trace_.info


@pytest.mark.parametrize("cuts", [None, (0, 210, 300), (0, 300, 300)], ids=["same", "ragged", "empty"])
def test_two_ranks_have_the_model_of_one_process(cuts):
    X, y = task()
    one = LinearSVC(gap_tol=1e-3, tol=1e-6).fit(X, y)
    (coef, primal, gap, support, info), (other, *_, others, _) = on_ranks(2, fit, cuts)
    np.testing.assert_array_equal(coef, other)
    assert not set(support) & set(others)
    assert gap <= 1e-3 * primal
    assert abs(primal - one.primal_objective_) <= 1e-3 * primal
    assert info["bytes_sent"] > 0 and info["rounds"] > 0
