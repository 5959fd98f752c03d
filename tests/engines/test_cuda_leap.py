"""Leaps of engine="cuda": on the host with a stand-in for the device, on a GPU against the oracle."""

import math
import time
from types import SimpleNamespace

import numpy as np
import pytest
from gpu import HostArray, why_no_gpu
from leap_problems import MACHINES, feasible, small, wide
from oracle import certify, codes, full_alpha, kernel_matrix

from multimargin import KernelSVC, KernelSVCCV
from multimargin.engines.cpu.leap import Leap
from multimargin.engines.cpu.proximal_newton import ProximalModel, Solved
from multimargin.engines.cuda import leap as module
from multimargin.engines.cuda.descent import Descent
from multimargin.engines.cuda.leap import DeviceLeap
from multimargin.problems.base import DualRows

NO_GPU = why_no_gpu()
on_gpu = pytest.mark.skipif(NO_GPU is not None, reason=str(NO_GPU))
AGES = 10**12  # iterations that pay for any leap


class Device:
    """What a leap asks of the device's state, and of the kernel values there; it counts exact gradients."""

    def __init__(self, machine, left_out=None):
        self.problem, self.K, self.y, self.C = small(machine)
        self.n, self.m = len(self.y), self.problem.m
        self.part = None if left_out is None else np.flatnonzero(np.arange(self.n) % left_out)
        self.bias, self.values, self.placed = np.zeros(self.m), self, 0
        start = 0.1 * feasible(self.problem, self.y, self.C)
        if self.part is not None:
            start = self.whole(start[self.part])
        self.place(start)

    def place(self, alpha):
        self.placed += 1
        self.alpha, S = alpha.copy(), self.K @ alpha
        self.G = self.problem.gradient(S, alpha, self.y, self.C)
        self.dual = 0.5 * float(np.vdot(S, alpha)) - float(np.vdot(self.problem.target(self.y), alpha))

    def whole(self, alpha):
        if self.part is None:
            return alpha
        every = np.zeros((self.n, self.m))
        every[self.part] = alpha
        return every

    def taking_part(self):
        ids = slice(None) if self.part is None else self.part
        return DualRows(self.alpha[ids].copy(), self.G[ids].copy(), self.y[ids], self.C[ids])

    def scores(self, ids, coef):
        return (self.K[:, ids] @ coef).T.view(HostArray)


@pytest.fixture
def host(monkeypatch):
    """NumPy in the place of CuPy."""
    monkeypatch.setattr(module, "cupy", lambda: np)


def leap_of(device, asked=True):
    return DeviceLeap(device, device.K.diagonal(), asked)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("left_out", [None, 7])
def test_leap_moves_the_device_to_the_optimum(host, machine, left_out):
    device = Device(machine, left_out)
    assert leap_of(device).take(1e-3, AGES, True, lambda: False)
    psi = device.problem.measure(device.taking_part())[0]
    assert psi.max() <= 1e-3 * device.problem.kappa
    if left_out is not None:
        assert not device.alpha[::left_out].any()


def test_leap_that_fails_leaves_the_device_where_it_was(host, monkeypatch):
    """Models that lead uphill: the point comes back, with its own gradient and dual."""
    device = Device("crammer-singer")
    alpha, G, dual, placed = device.alpha.copy(), device.G.copy(), device.dual, device.placed
    worse = np.zeros(alpha.shape)
    worse[np.arange(device.n), (device.y + 1) % 4], worse[np.arange(device.n), device.y] = -0.5, 0.5
    monkeypatch.setattr(ProximalModel, "minimise", lambda self, *_: Solved(-worse, np.zeros((1, 4)), 1))
    monkeypatch.setattr(Leap, "_grow", lambda *_: False)
    assert not leap_of(device).take(1e-3, AGES, True, lambda: False)
    assert device.placed > placed
    np.testing.assert_array_equal(device.alpha, alpha)
    np.testing.assert_allclose(device.G, G, atol=1e-12)
    assert device.dual == pytest.approx(dual, rel=1e-12)


def test_interrupted_leap_leaves_the_device_at_a_point_with_its_gradient(host):
    """Ctrl-C while the device moves: it goes back, and G and the dual belong to alpha again."""
    device = Device("crammer-singer")
    alpha, place = device.alpha.copy(), device.place

    def broken(other):
        device.place = place
        device.alpha = other.copy()  # and no more than that
        raise KeyboardInterrupt

    device.place = broken
    with pytest.raises(KeyboardInterrupt):
        leap_of(device).take(1e-3, AGES, True, lambda: False)
    np.testing.assert_array_equal(device.alpha, alpha)
    expected = device.problem.gradient(device.K @ alpha, alpha, device.y, device.C)
    np.testing.assert_allclose(device.G, expected, atol=1e-12)


def test_descents_wait_until_a_leap_may_pay(host):
    device = Device("crammer-singer")
    leap = leap_of(device)
    left = leap.iterations_left(0)
    assert 0 < left < math.inf
    assert not leap.take(1e-3, int(left) - 1, True, lambda: False)
    assert leap.iterations_left(100) == left - 100


def test_no_leap_unless_asked(host):
    device = Device("crammer-singer")
    placed = device.placed
    leap = leap_of(device, asked=False)
    assert leap.iterations_left(AGES) == math.inf
    assert not leap.take(1e-3, AGES, True, lambda: False)
    assert device.placed == placed


@pytest.mark.parametrize("wait", [0.0, 0.002])
def test_how_long_a_slice_takes_does_not_change_where_a_descent_pauses(wait):
    made = []

    class Slices(Descent):
        def __init__(self):
            self.binary = False

        def _samples(self, *_):
            def go(most):
                time.sleep(wait)
                made.append(most)
                return most, 1.0

            return go, 1

    descent = Slices()
    descent.run(SimpleNamespace(q=100), None, 0.0, 1e-3, lambda: False, 1000.7)
    assert sum(made) == descent.iterations == 1000
    assert descent.crept


# -- on a GPU -------------------------------------------------------------------------------------------
def truth_of(model, X, y, C, gamma):
    return certify(
        kernel_matrix("rbf", X, gamma=gamma),
        codes(model, y),
        full_alpha(model, len(y)),
        np.full(len(y), C),
        model.machine,
        None,
    )


@on_gpu
@pytest.mark.parametrize("machine", MACHINES)
def test_hard_corner_on_the_device(machine):
    """Large costs and a wide Gaussian, where descent alone does not end within minutes."""
    X, y = wide(2000, 6, 4)
    C, gamma = 1e4, 0.01
    model = KernelSVC(machine, C, gamma=gamma, engine="cuda", time_limit=60).fit(X, y)
    assert model.status_.converged
    truth = truth_of(model, X, y, C, gamma)
    assert truth.psi.max() / truth.kappa <= 1e-3 * (1 + 1e-9)
    assert model.trace_.info["profile"]["leap"] > 0


@on_gpu
def test_searches_leap_too():
    X, y = wide(600, 4, 4)
    search = KernelSVCCV(Cs=[1e4], gammas=[0.01], cv=3, engine="cuda", tol=1e-3).fit(X, y)
    truth = truth_of(search.best_estimator_, X, y, 1e4, 0.01)
    assert truth.psi.max() / truth.kappa <= 1e-3 * (1 + 1e-9)
