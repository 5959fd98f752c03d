"""Large costs: a violation of tol says little of the gap, so a few more rounds are made for it."""

import numpy as np
import pytest
from helpers import audit
from oracle import MACHINES, kernel_matrix

from multimargin import KernelSVC
from multimargin.solution import Status


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_a_converged_fit_of_large_costs_has_a_small_gap(machine):
    m = 2 if machine == "c-svc" else 3
    rng, y = np.random.default_rng(0), np.arange(120) % m
    X = rng.normal(size=(120, 4)) + 1.5 * rng.normal(size=(m, 4))[y]
    model = KernelSVC(machine, C=1e4, gamma=0.25).fit(X, y)
    assert model.status_.converged
    found = audit(model, kernel_matrix("rbf", X, gamma=0.25), y, 1e4, tol=1e-3)
    assert found.gap <= 0.05 * found.primal
    assert len(model.trace_) <= 20


@pytest.mark.parametrize(("C", "status"), [(1.0, Status.CONVERGED), (1e12, Status.LARGE_GAP)])
def test_the_status_says_if_the_gap_is_large(C, status, capfd):
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    X[y == 1, 0] += 8.0
    model = KernelSVC(kernel="linear", C=C, verbose=2).fit(X, y)
    assert model.status_ is status and model.status_.converged
    assert model.duality_gap_ > 0.05 * model.primal_objective_ or status is Status.CONVERGED
    share = model.duality_gap_ / model.primal_objective_
    assert f"{share:.2g} of the primal objective" in capfd.readouterr().err
