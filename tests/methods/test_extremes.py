"""Costs near the ends of float64, kernels that are not semidefinite, and the smallest working sets."""

import numpy as np
import pytest
from helpers import audit
from oracle import kernel_matrix

from multimargin import Decomposition, KernelSVC
from multimargin.engines.base import Certificate
from multimargin.inner import FrankWolfe
from multimargin.methods.decomposition import Run
from multimargin.working_set import Gain


def blobs(n, m, d=4):
    rng, y = np.random.default_rng(0), np.arange(n) % m
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(m, d))[y], y


@pytest.mark.parametrize("C", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("engine", ["cpu", "numpy"])
def test_msvm2_certifies_costs_near_the_ends_of_float64(C, engine):
    X, y = blobs(24, 3)
    model = KernelSVC("msvm2", C=C, gamma=0.25, engine=engine).fit(X, y)
    assert model.status_.converged
    certificate = model.primal_objective_, model.dual_objective_, model.duality_gap_
    assert np.isfinite(certificate).all()
    assert model.primal_objective_ > 0 > model.dual_objective_
    np.testing.assert_allclose(sum(certificate[:2]), model.duality_gap_, atol=1e-9 * certificate[0])
    if C < 1:  # the scores vanish, and the dual is proportional to C
        reference = KernelSVC("msvm2", C=1e-10, gamma=0.25).fit(X, y)
        np.testing.assert_allclose(model.dual_objective_ / C, reference.dual_objective_ / 1e-10, rtol=1e-6)


def test_a_negative_primal_is_no_small_gap():
    """With an indefinite kernel the primal may be negative."""
    method = Decomposition(Gain(q=10), FrankWolfe(), stop="gap")
    run = Run(method, engine=None, monitor=None, tol=1e-3, rng=None, keep=False, checkpoint=None)
    assert run.left(Certificate(1.0, 1.0, primal=-2.0, dual=5.0, gap=3.0)) == np.inf
    assert run.left(Certificate(1.0, 1.0, primal=0.0, dual=3.0, gap=3.0)) == np.inf
    assert run.left(Certificate(0.0, 0.0, primal=0.0, dual=0.0, gap=0.0)) == 0


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("solver", ["auto", "svm-light"])
def test_working_sets_of_two_samples_solve_the_binary_machine(size, solver):
    X, y = blobs(120, 2)
    model = KernelSVC("c-svc", gamma=0.25, working_set_size=size, solver=solver).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.25), y, 1.0, tol=1.001e-3)


def test_a_working_set_of_one_sample_is_refused_if_samples_move_in_pairs():
    X, y = blobs(20, 2)
    with pytest.raises(ValueError, match="working_set_size must be at least 2, got 1"):
        KernelSVC("c-svc", working_set_size=1).fit(X, y)
