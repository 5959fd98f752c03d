"""Costs near the ends of float64, kernels that are not semidefinite, and the smallest working sets."""

import numpy as np
import pytest
from helpers import audit, unfinished
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


@pytest.mark.parametrize("engine", ["cpu", "numpy"])
@pytest.mark.parametrize("share", [1e-8, 1e-12, 1e-300])
def test_a_class_that_costs_next_to_nothing_leaves_the_bias_a_number(engine, share):
    """No sample can shrink then, by the tolerance of its own cost, and the bias was infinite."""
    X = np.array([[0.0], [1.0]])
    model = KernelSVC("c-svc", gamma=1.0, class_weight={0: share, 1: 1.0}, engine=engine).fit(X, [0, 1])
    assert model.status_.converged
    audit(model, kernel_matrix("rbf", X, gamma=1.0), np.array([0, 1]), np.array([share, 1.0]), tol=1e-3)


@pytest.mark.parametrize("solver", ["auto", "svm-light"])
def test_costs_that_are_raised_keep_the_class_sums_at_zero(solver):
    """Samples that reached their true cost stayed there while the others grew, and the sum was lost."""
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(90, 4)), (rng.random(90) < 0.35).astype(int)
    model = KernelSVC("c-svc", C=3e6, kernel="linear", solver=solver, time_limit=20).fit(Z, y)
    assert abs(model.dual_coef_.sum()) <= 1e-9 * 3e6 * 90
    assert np.abs(model.dual_coef_).max() == 3e6  # some samples did reach it


@pytest.mark.parametrize("solver", ["auto", "vpdt"])
def test_costs_are_raised_as_often_as_it_takes(solver):
    """Fifty times ten was not enough for C = 1e100, and the run ended without a proof."""
    model = KernelSVC("c-svc", C=1e100, gamma=1.0, solver=solver, working_set_size=2)
    with unfinished():
        model.fit(np.ones((2, 1)), [0, 1])
    np.testing.assert_array_equal(model.dual_coef_, [[-1e100], [1e100]])
    assert model.status_.converged


@pytest.mark.parametrize("solver", ["auto", "dasmc"])
def test_a_large_optimum_is_no_indefinite_kernel(solver):
    """K = 1 and mixed labels: the dual is about -C n, far below what capped costs allow."""
    X, y = blobs(20, 2)
    model = KernelSVC("msvm2", C=1e100, kernel="poly", degree=0, bias="none", solver=solver, time_limit=0.5)
    with unfinished():
        model.fit(X, y)
    assert model.dual_objective_ < 0
    assert np.isfinite(model.primal_objective_)
