"""Properties of a machine's row formulas: losses and measures against the oracle's, sets, updates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine_cases import Samples, every_machine, samples
from oracle import MACHINES, assert_feasible, certify

from multimargin.problems import PROBLEMS
from multimargin.problems.base import DualRows

EXACT, ALL = "sort", ("sort", "frank-wolfe")
MOST = 1000.0  # of C_i: how far M-SVM²'s linear problem looks


def test_the_machines_are_those_of_the_oracle():
    assert set(PROBLEMS) == set(MACHINES)


@every_machine
@given(data=st.data())
def test_measures(machine, data):
    """Violation and gap of each row, the losses and both objectives, against the oracle's.

    The oracle wants a kernel; any that maps alpha to these scores will do for row-local formulas.
    """
    s = data.draw(samples(machine))

    class Kernel:
        def __matmul__(self, alpha):
            return s.S

    found = certify(Kernel(), s.y, s.alpha, s.C, machine)
    psi, gain = s.problem.measure(DualRows(s.alpha, s.G, s.y, s.C))
    unit = 1 + np.abs(s.S).max(axis=1)
    np.testing.assert_allclose(psi / unit, found.psi / unit, atol=1e-12)
    # M-SVM²'s gap is a difference of squares of the scores.
    np.testing.assert_allclose(gain / (s.C * unit**2), found.gain / (s.C * unit**2), atol=1e-11)
    assert (gain >= -1e-14 * s.C * unit).all()
    primal = s.problem.primal(s.alpha, s.S, np.zeros(s.m), s.y, s.C)
    dual = s.problem.dual(s.alpha, s.S, s.y, s.C)
    assert primal == pytest.approx(found.primal, rel=1e-11)
    assert dual == pytest.approx(found.dual, rel=1e-11, abs=1e-11 * (s.C * unit).sum())
    assert s.problem.kappa == found.kappa
    np.testing.assert_allclose(s.problem.gap_scale * s.C, found.scale)
    np.testing.assert_allclose(s.problem.scores(s.G, s.alpha, s.y, s.C), s.S, atol=1e-12 * unit.max())


@every_machine
@given(data=st.data())
def test_projection(machine, data):
    """Feasible, nearest (⟨w - p, u - p⟩ ≤ 0 for feasible u), idempotent; no two points are moved apart."""
    s = data.draw(samples(machine))
    project = lambda w: s.problem.project(w.copy(), s.y, s.C)  # noqa: E731
    w, other = (s.point() + s.C[:, None] * s.values(ties=False) for _ in range(2))
    p = project(w)
    size = s.C + np.abs(w).max(axis=1)
    assert_feasible(p, s.y, s.C + 1e-3 * size, atol=1e-9, machine=machine)
    for _ in range(20):
        assert (((w - p) * (s.point(most=10.0) - p)).sum(axis=1) <= 1e-10 * size**2).all()
    np.testing.assert_allclose(project(p) / size[:, None], p / size[:, None], atol=1e-12)
    np.testing.assert_allclose(project(s.alpha), s.alpha, atol=1e-12 * s.C.max())
    apart = np.linalg.norm(p - project(other), axis=1)
    assert (apart <= np.linalg.norm(w - other, axis=1) + 1e-12 * size).all()


@every_machine
@given(data=st.data())
def test_vertex_is_the_best_linear_point(machine, data):
    s = data.draw(samples(machine))
    u = s.problem.vertex(s.G, s.y, s.C)
    assert_feasible(u, s.y, s.C, machine=machine)
    value, rounding = (s.G * u).sum(axis=1), 1e-13 * (1 + np.abs(s.S).max(axis=1)) * s.C * MOST
    for _ in range(20):
        assert (value <= (s.G * s.point(most=MOST)).sum(axis=1) + rounding).all()


@every_machine
@given(data=st.data())
def test_one_sample_updates(machine, data):
    """The exact one is the minimum of ½k|a - α|² + ⟨G, a - α⟩ over the set; any leaves it no larger."""
    s = data.draw(samples(machine))
    k = 10.0 ** s.rng.uniform(-3, 3, s.n)
    for name in ALL:
        new = s.update(name, k)
        size = s.C + np.abs(new).max(axis=1) + np.abs(s.G).max(axis=1) / k
        assert_feasible(new, s.y, s.C + 1e-3 * size, machine=machine)
        step = new - s.alpha
        unit = k * size**2 + np.abs(s.G).max(axis=1) * size
        assert (0.5 * k * (step**2).sum(axis=1) + (s.G * step).sum(axis=1) <= 1e-11 * unit).all()
        if name == EXACT:
            slope = s.G + k[:, None] * step
            for _ in range(20):
                assert ((slope * (s.point(most=10.0) - new)).sum(axis=1) >= -1e-10 * unit).all()


@every_machine
def test_without_curvature_the_update_is_the_vertex(machine):
    s = Samples(machine, seed=1, m=5)
    vertex = s.problem.vertex(s.G, s.y, s.C)
    np.testing.assert_allclose(s.update(EXACT, np.zeros(s.n)), vertex, atol=1e-12 * s.C.max())


@every_machine
@given(data=st.data())
def test_label_distributions(machine, data):
    s = data.draw(samples(machine))
    eta = s.problem.label_distribution(s.alpha, s.y, s.C)
    assert (eta >= 0).all()
    np.testing.assert_allclose(eta.sum(axis=1), 1.0)
    nothing = s.problem.label_distribution(np.zeros_like(s.alpha), s.y, s.C)
    np.testing.assert_array_equal(nothing, np.eye(s.m)[s.y])
    moved = np.abs(s.alpha).max(axis=1) > 1e-6 * s.C
    assert (eta[moved, s.y[moved]] < 1).all()


@every_machine
@given(data=st.data())
def test_groups(machine, data):
    """0: some dual variable (Crammer-Singer: their sum) is off its bounds; 1: all are zero; 2: the others."""
    s = data.draw(samples(machine))
    s.alpha[0] = 0.0
    margin, cost, _ = MACHINES[machine]
    beta = margin.lower(s.alpha, s.y)
    load = cost.load(beta) / s.C[:, None] if machine != "msvm2" else np.where(beta > 0, 0.5, 0.0)
    inside = ((load > 1e-7) & (load < 1 - 1e-7)).any(axis=1)
    expected = np.where(inside, 0, np.where(beta.any(axis=1), 2, 1))
    np.testing.assert_array_equal(s.problem.group(s.alpha, s.y, s.C), expected)
