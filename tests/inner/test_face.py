"""Conjugate gradients over the pairs off their bounds: the oracle's optimum, feasible, far fewer updates."""

import numpy as np
import pytest
from oracle import assert_feasible, certify, kernel_matrix, one_hot, solve_crammer_singer

from multimargin import Decomposition, KernelSVC, _core
from multimargin.inner import CoordinateDescent
from multimargin.problems import CrammerSinger
from multimargin.working_set import Growing

M = 4


class Case:
    """Overlapping clusters under a kernel so smooth that it is nearly singular, and a large cost."""

    def __init__(self, dtype=np.float64, n=80):
        rng = np.random.default_rng(0)
        self.y = rng.integers(M, size=n).astype(np.int32)
        X = rng.normal(size=(M, 3))[self.y] + 0.7 * rng.normal(size=(n, 3))
        self.K = kernel_matrix("rbf", X, gamma=0.03).astype(dtype)
        self.C = 20.0 * rng.uniform(0.3, 3.0, n)
        self.alpha, self.G = np.zeros((n, M)), -one_hot(self.y, M)

    def descend(self, faces, eps=1e-4, sweeps=100_000, staged=True, width=np.inf):
        diagonal = np.diag(self.K).astype(np.float64)
        found = _core.coordinate_descent(
            "crammer-singer",
            self.K,
            diagonal,
            self.G,
            self.alpha,
            self.y,
            self.C,
            _core.DescentOptions(eps=eps, max_sweeps=sweeps, seed=1, staged=staged, width=width, faces=faces),
            room=np.empty(2 * self.K.size, dtype=self.K.dtype),
        )
        return found[:3]  # sweeps, updates, violation

    def judge(self):
        return certify(self.K.astype(np.float64), self.y, self.alpha, self.C)

    def gradient(self):
        return self.K.astype(np.float64) @ self.alpha - one_hot(self.y, M)

    def check_gradient(self):
        np.testing.assert_allclose(self.G, self.gradient(), atol=1e-9)


@pytest.mark.parametrize("staged", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_optimum_with_far_fewer_updates(dtype, staged):
    plain, faces = Case(dtype), Case(dtype)
    _, many, _ = plain.descend(False, staged=staged)
    _, few, violation = faces.descend(True, staged=staged)
    assert violation <= 1e-4
    assert few < 0.5 * many
    assert_feasible(faces.alpha, faces.y, faces.C)
    faces.check_gradient()
    assert faces.judge().dual == pytest.approx(plain.judge().dual, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_optimum_is_the_oracles(dtype):
    case = Case(dtype)
    case.descend(True, eps=1e-7)
    K = case.K.astype(np.float64)
    best = solve_crammer_singer(K, case.y, case.C)
    assert case.judge().dual == pytest.approx(certify(K, case.y, best, case.C).dual, rel=1e-8)
    np.testing.assert_allclose(K @ case.alpha, K @ best, atol=1e-3)


@pytest.mark.parametrize("sweeps", [1, 3, 10, 30])
def test_cut_short_it_is_feasible_and_lower(sweeps):
    case = Case()
    duals = []
    for _ in range(5):
        case.descend(True, sweeps=sweeps)
        assert_feasible(case.alpha, case.y, case.C)
        case.check_gradient()
        duals.append(case.judge().dual)
    assert np.diff(duals).max() <= 1e-9 * abs(duals[-1])


@pytest.mark.parametrize("width", [0.0, 1e-3])
@pytest.mark.parametrize("sweeps", [1, 5, 50])
def test_pairs_that_are_not_listed_stay(sweeps, width):
    """From a point with few listed pairs: the dual falls, the others keep their weight and gradient."""
    case = Case()
    case.descend(False, sweeps=20)
    before, alpha, G = case.judge().dual, case.alpha.copy(), case.G.copy()
    listed = CrammerSinger(M).listed(alpha, G, case.y, width)
    assert 0.2 < listed.mean() < 0.9
    case.descend(True, eps=1e-6, sweeps=sweeps, width=width)
    assert case.judge().dual < before
    np.testing.assert_array_equal(case.alpha[~listed], alpha[~listed])
    np.testing.assert_array_equal(case.G[~listed], G[~listed])
    assert_feasible(case.alpha, case.y, case.C)
    takes_part = listed & (listed.sum(axis=1) > 1)[:, None]
    np.testing.assert_allclose(case.G[takes_part], case.gradient()[takes_part], atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["cpu", "numpy"])
def test_a_solver_with_faces_is_certified(engine):
    case = Case()
    solver = Decomposition(Growing(), CoordinateDescent(faces=True))
    model = KernelSVC(C=20, kernel="precomputed", solver=solver, engine=engine).fit(case.K, case.y)
    assert model.status_.converged


def test_samples_that_do_not_touch_the_model():
    """A zero diagonal has no step of its own, and must not break those of others."""
    case = Case()
    case.K[:5], case.K[:, :5] = 0.0, 0.0
    case.descend(True)
    assert_feasible(case.alpha, case.y, case.C)
    case.check_gradient()
    assert case.judge().psi.max() <= 2e-4
