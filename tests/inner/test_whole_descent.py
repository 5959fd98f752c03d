"""Descents of small blocks as a whole: the oracle's optimum, feasible at any moment, exact over faces."""

import numpy as np
import pytest
from creeping_block import MACHINES, Case
from oracle import certify, solve

from multimargin.system.fixed_point import FIXED_POINT

STORED = (np.float32, FIXED_POINT)  # kernel values of blocks of larger problems


@pytest.mark.parametrize("faces", [False, True])
@pytest.mark.parametrize("machine", MACHINES)
def test_the_optimum_is_the_oracles(machine, faces):
    case = Case(machine, n=45)  # not a multiple of eight
    assert case.descend(whole=True, faces=faces, eps=1e-7)[2] <= 1e-7
    best = solve(case.K, case.y, case.C, machine)[0]
    assert case.check() == pytest.approx(certify(case.K, case.y, best, case.C, machine).dual, rel=1e-8)


@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("machine", MACHINES)
def test_rounded_kernel_values_have_the_oracles_optimum_too(machine, dtype):
    case = Case(machine, dtype, n=45)
    assert case.descend(whole=True, faces=True, eps=1e-6)[2] <= 1e-6
    best = solve(case.values, case.y, case.C, machine)[0]
    expected = certify(case.values, case.y, best, case.C, machine).dual
    assert case.check() == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("machine", MACHINES)
def test_rounded_kernel_values_of_a_wide_kernel_end(machine, dtype):
    """Curvatures are of the size of rounding errors, or even negative."""
    case = Case(machine, dtype, gamma=1e-4)
    case.descend(whole=True, faces=True, eps=1e-3, sweeps=2_000)
    assert case.check() < 0.0


@pytest.mark.parametrize("machine", MACHINES)
def test_same_optimum_with_far_fewer_updates_than_sweeps(machine):
    sweeps, case = Case(machine), Case(machine)
    many, few = sweeps.descend()[1], case.descend(whole=True, faces=True)[1]
    assert few < 0.2 * many
    assert case.check() == pytest.approx(sweeps.check(), rel=1e-6)


@pytest.mark.parametrize("machine", MACHINES)
def test_steps_over_the_face_save_most_updates_of_a_wide_kernel(machine):
    alone, case = Case(machine, gamma=1e-3), Case(machine, gamma=1e-3)
    alone.C *= 100.0
    case.C *= 100.0
    many, few = alone.descend(whole=True)[1], case.descend(whole=True, faces=True)[1]
    assert few < 0.5 * many
    assert case.check() == pytest.approx(alone.check(), rel=1e-5)


@pytest.mark.parametrize("machine", MACHINES)
def test_with_faces_it_reaches_what_rounding_allows(machine):
    case = Case(machine, gamma=1e-2)
    assert case.descend(whole=True, faces=True, eps=1e-11)[2] <= 1e-11
    case.check()


@pytest.mark.parametrize("machine", MACHINES)
def test_cut_short_it_is_feasible_and_lower(machine):
    case, duals = Case(machine, gamma=1e-2), []
    for _ in range(12):
        case.descend(whole=True, faces=True, most_work=60_000)
        duals.append(case.check())
    assert np.diff(duals).max() <= 1e-9 * abs(duals[-1])
    assert duals[-1] < duals[0]


def creeping(machine, dtype=np.float64, n=300, by=100.0):
    """A case that descent with steps over the face takes tens of thousands of updates for."""
    case = Case(machine, dtype, n=n, gamma=1e-2)
    case.C *= by
    return case


@pytest.mark.parametrize("machine", MACHINES)
def test_proximal_steps_end_what_creeps(machine):
    """Rounded kernel values have none: their descent shows what would be left without."""
    alone, case = creeping(machine, np.float32), creeping(machine)
    many, few = alone.descend(whole=True, faces=True)[1], case.descend(whole=True, faces=True)[1]
    assert few < 0.5 * many
    assert_certified(case, 1e-4)
    assert case.check() == pytest.approx(alone.check(), rel=1e-4)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("by", [1e3, 1e5])
def test_proximal_steps_of_huge_costs_are_exact(machine, by):
    case = creeping(machine, n=200, by=by)
    assert case.descend(whole=True, faces=True)[2] <= 1e-4
    assert_certified(case, 1e-4)


def assert_certified(case, eps):
    """The violation, the gap and feasibility, recomputed from the kernel and alpha."""
    found = certify(case.K, case.y, case.alpha, case.C, case.machine)
    assert found.psi.max() <= 1.001 * eps
    assert 0.0 <= found.gap <= case.G.shape[1] * eps * case.C.sum()


@pytest.mark.parametrize("machine", MACHINES)
def test_proximal_steps_go_on_from_any_cut(machine):
    """Cut short again and again, the block has a feasible point and its gradient; the last call ends it."""
    case, duals = creeping(machine), []
    for _ in range(6):
        case.descend(whole=True, faces=True, most_work=4_000_000)
        duals.append(case.check())
    assert np.diff(duals).max() <= 1e-9 * abs(duals[-1])
    assert case.descend(whole=True, faces=True)[2] <= 1e-4
    assert case.check() <= duals[-1]


@pytest.mark.parametrize("machine", MACHINES)
def test_a_time_that_is_over_ends_proximal_steps(machine):
    case = creeping(machine)
    assert case.descend(whole=True, faces=True, seconds=0.0)[2] > 1e-4
    case.check()


@pytest.mark.parametrize("machine", MACHINES)
def test_a_kernel_with_negative_eigenvalues_ends(machine):
    """No model of it has a minimum; what was reached is feasible and lower."""
    case = creeping(machine)
    rng = np.random.default_rng(2)
    noise = 0.05 * rng.normal(size=case.K.shape)
    case.K += noise + noise.T
    np.fill_diagonal(case.K, 1.0)
    assert np.linalg.eigvalsh(case.K)[0] < -0.5
    case.descend(whole=True, faces=True, sweeps=300)
    assert case.check() < 0.0


@pytest.mark.parametrize("machine", MACHINES)
def test_copies_of_a_sample_have_a_singular_face(machine):
    case, twins = Case(machine, n=60), Case(machine, n=60)
    twins.K, twins.y, twins.C = np.tile(case.K, (2, 2)), np.tile(case.y, 2), np.tile(0.5 * case.C, 2)
    twins.alpha, twins.G = np.zeros((120, case.G.shape[1])), np.tile(case.G, (2, 1))
    for block in (case, twins):
        assert block.descend(whole=True, faces=True, eps=1e-6)[2] <= 1e-6
    assert twins.check() == pytest.approx(case.check(), rel=1e-7)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_gradient_that_is_not_a_number_does_not_look_solved(machine):
    case = Case(machine)
    case.G[7, 1] = np.nan
    assert not case.descend(whole=True)[2] <= 1e-4
