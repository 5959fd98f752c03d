"""Steps of two samples: the oracle's optimum, feasible at any moment, far fewer updates."""

import numpy as np
import pytest
from creeping_block import MACHINES, Case, M
from oracle import assert_feasible, certify, kernel_matrix, solve

from multimargin import Decomposition, KernelSVC
from multimargin.inner import CoordinateDescent
from multimargin.problems import PROBLEMS
from multimargin.working_set import Growing


@pytest.mark.parametrize(("dtype", "share"), [(np.float64, 0.2), (np.float32, 0.4)])
@pytest.mark.parametrize("machine", MACHINES)
def test_same_optimum_with_far_fewer_updates(machine, dtype, share):
    plain, case = Case(machine, dtype), Case(machine, dtype)
    _, many, _ = plain.descend()
    _, few, violation = case.descend(partners=True)
    assert violation <= 1e-4
    assert few < share * many
    assert case.check() == pytest.approx(plain.check(), rel=1e-6)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_optimum_is_the_oracles(machine):
    case = Case(machine, n=40)
    case.descend(partners=True, eps=1e-7)
    best = solve(case.K, case.y, case.C, machine)[0]
    assert case.check() == pytest.approx(certify(case.K, case.y, best, case.C, machine).dual, rel=1e-8)


@pytest.mark.parametrize("sweeps", [1, 3, 10, 30])
@pytest.mark.parametrize("machine", MACHINES)
def test_cut_short_it_is_feasible_and_lower(machine, sweeps):
    case = Case(machine)
    duals = []
    for _ in range(6):
        case.descend(partners=True, sweeps=sweeps)
        duals.append(case.check())
    assert np.diff(duals).max() <= 1e-9 * abs(duals[-1])


@pytest.mark.parametrize("width", [0.0, 1e-3])
@pytest.mark.parametrize("machine", MACHINES)
def test_pairs_that_are_not_listed_stay(machine, width):
    case = Case(machine)
    case.descend(sweeps=20)
    before, alpha, G = case.check(), case.alpha.copy(), case.G.copy()
    listed = PROBLEMS[machine](M).listed(alpha, G, case.y, width)
    case.descend(partners=True, eps=1e-6, sweeps=200, width=width)
    assert certify(case.K, case.y, case.alpha, case.C, machine).dual < before
    assert_feasible(case.alpha, case.y, case.C, machine=machine)
    np.testing.assert_array_equal(case.alpha[~listed], alpha[~listed])
    np.testing.assert_array_equal(case.G[~listed], G[~listed])


@pytest.mark.parametrize("machine", MACHINES)
def test_far_fewer_updates_of_listed_pairs_too(machine):
    """Candidates are listed by two classes then; of them all a sample finds those that have both."""
    plain, case = Case(machine, np.float32), Case(machine, np.float32)
    for block in (plain, case):
        block.descend(sweeps=20)
    _, many, _ = plain.descend(width=1e-2)
    _, few, violation = case.descend(partners=True, width=1e-2)
    assert violation <= 1e-4
    assert few < 0.4 * many


@pytest.mark.parametrize("machine", MACHINES)
def test_copies_of_a_sample_are_partners_without_curvature(machine):
    case = Case(machine, n=60)
    twins = Case(machine, n=60)
    twins.K, twins.y, twins.C = np.tile(case.K, (2, 2)), np.tile(case.y, 2), np.tile(0.5 * case.C, 2)
    twins.alpha, twins.G = np.zeros((120, M)), np.tile(case.G, (2, 1))
    for block in (case, twins):
        assert block.descend(partners=True, eps=1e-6)[2] <= 1e-6
    assert twins.check() == pytest.approx(case.check(), rel=1e-7)


@pytest.mark.parametrize("machine", MACHINES)
def test_together_with_other_steps(machine):
    case, plain = Case(machine, gamma=1e-2), Case(machine, gamma=1e-2)
    case.descend(partners=True, spans=True, faces=True, relax=1.2, eps=1e-5)
    plain.descend(faces=True, eps=1e-5)
    assert case.check() == pytest.approx(plain.check(), rel=1e-6)


@pytest.mark.parametrize("n_classes", [2, M])
@pytest.mark.parametrize("machine", MACHINES)
def test_a_fit_with_them_is_certified_and_repeatable(machine, n_classes):
    rng = np.random.default_rng(3)
    y = rng.integers(n_classes, size=300)
    X = rng.normal(size=(n_classes, 5))[y] + rng.normal(size=(300, 5))
    solver = Decomposition(Growing(), CoordinateDescent(partners=True))
    first, model = (
        KernelSVC(machine, C=30.0, gamma=0.05, bias="none", solver=solver, tol=1e-4).fit(X, y)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.dual_coef_, model.dual_coef_)
    K, alpha = kernel_matrix("rbf", X, gamma=0.05), np.zeros((300, n_classes))
    alpha[model.support_] = model.dual_coef_
    assert certify(K, y, alpha, np.full(300, 30.0), machine).psi.max() <= 1.01e-4
