"""Two ranks of mpiexec on one GPU."""

import numpy as np
import pytest
from gpu import why_no_gpu
from launch import need_mpi, on_ranks

from multimargin import KernelSVC, KernelSVCCV

pytestmark = pytest.mark.skipif(why_no_gpu() is not None, reason=str(why_no_gpu()))


def test_two_ranks_on_one_card():
    need_mpi()
    from cards import fits, problem

    first, second = on_ranks(2, fits)
    np.testing.assert_array_equal(first[0], second[0])
    assert first[1:] == second[1:]
    X, y = problem()
    one = KernelSVC(engine="cuda").fit(X, y)
    np.testing.assert_allclose(first[0], one.dual_coef_, atol=1e-6)
    assert first[1] == pytest.approx(one.duality_gap_, rel=1e-3)
    search = KernelSVCCV(Cs=[0.5, 5.0], gammas=[0.05, 0.2], engine="cuda").fit(X, y)
    assert first[3] == search.best_params_
