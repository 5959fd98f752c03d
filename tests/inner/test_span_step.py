"""Steps over what sweeps did: the oracle's optimum, feasible at any moment, far fewer updates."""

import numpy as np
import pytest
from creeping_block import MACHINES, Case, M
from oracle import assert_feasible, certify, kernel_matrix, solve

from multimargin import Decomposition, KernelSVC
from multimargin.inner import CoordinateDescent
from multimargin.problems import PROBLEMS
from multimargin.working_set import Growing


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("machine", MACHINES)
def test_same_optimum_with_far_fewer_updates(machine, dtype):
    plain, case = Case(machine, dtype), Case(machine, dtype)
    _, many, _ = plain.descend(spans=False)
    _, few, violation = case.descend(spans=True)
    assert violation <= 1e-4
    assert few < 0.6 * many
    assert case.check() == pytest.approx(plain.check(), rel=1e-6)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_optimum_is_the_oracles(machine):
    case = Case(machine)
    case.descend(spans=True, eps=1e-7)
    best = solve(case.K, case.y, case.C, machine)[0]
    assert case.check() == pytest.approx(certify(case.K, case.y, best, case.C, machine).dual, rel=1e-8)


@pytest.mark.parametrize("sweeps", [1, 3, 10, 30])
@pytest.mark.parametrize("machine", MACHINES)
def test_cut_short_it_is_feasible_and_lower(machine, sweeps):
    case = Case(machine)
    duals = []
    for _ in range(6):
        case.descend(spans=True, sweeps=sweeps)
        duals.append(case.check())
    assert np.diff(duals).max() <= 1e-9 * abs(duals[-1])


@pytest.mark.parametrize("width", [0.0, 1e-3])
@pytest.mark.parametrize("machine", MACHINES)
def test_pairs_that_are_not_listed_stay(machine, width):
    case = Case(machine)
    case.descend(spans=False, sweeps=20)
    before, alpha, G = case.check(), case.alpha.copy(), case.G.copy()
    listed = PROBLEMS[machine](M).listed(alpha, G, case.y, width)
    assert 0.2 < listed.mean() < 0.9
    case.descend(spans=True, eps=1e-6, sweeps=200, width=width)
    assert certify(case.K, case.y, case.alpha, case.C, machine).dual < before
    assert_feasible(case.alpha, case.y, case.C, machine=machine)
    np.testing.assert_array_equal(case.alpha[~listed], alpha[~listed])
    np.testing.assert_array_equal(case.G[~listed], G[~listed])


@pytest.mark.parametrize("machine", MACHINES)
def test_rounding_errors_do_not_grow(machine):
    """Near the optimum of a nearly singular kernel, sweeps move by little more than rounding errors."""
    case = Case(machine, gamma=1e-3)
    for _ in range(20):
        case.descend(spans=True, eps=1e-9, sweeps=500)
        case.check()


@pytest.mark.parametrize("machine", MACHINES)
def test_a_fit_with_them_is_certified(machine):
    rng = np.random.default_rng(3)
    y = rng.integers(M, size=300)
    X = rng.normal(size=(M, 5))[y] + rng.normal(size=(300, 5))
    solver = Decomposition(Growing(), CoordinateDescent(spans=True))
    model = KernelSVC(machine, C=30.0, gamma=0.05, bias="none", solver=solver, tol=1e-4).fit(X, y)
    K, alpha = kernel_matrix("rbf", X, gamma=0.05), np.zeros((300, M))
    alpha[model.support_] = model.dual_coef_
    assert certify(K, y, alpha, np.full(300, 30.0), machine).psi.max() <= 1.01e-4
