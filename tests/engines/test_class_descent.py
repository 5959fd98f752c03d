"""One-vs-rest class by class: the optimum of every class, from kept or whole rows; samples without a row."""

import numpy as np
import pytest
from helpers import audit
from oracle import assert_feasible, certify, kernel_matrix, one_hot

from multimargin import KernelSVC, _core
from multimargin.engines.cpu import blocks as cpu
from multimargin.system.fixed_point import FIXED_POINT, decoded, encoded

M, N = 8, 240
DTYPES = [np.float32, np.float64, FIXED_POINT]


class Case:
    """Overlapping clusters, and a row store in an order of its own."""

    def __init__(self, dtype=np.float64, seed=0, most_values=10**6):
        rng = np.random.default_rng(seed)
        self.y = rng.integers(M, size=N).astype(np.int32)
        X = rng.normal(size=(M, 5))[self.y] + 0.6 * rng.normal(size=(N, 5))
        self.K = kernel_matrix("rbf", X, gamma=0.3)
        self.C = 3.0 * rng.uniform(0.3, 3.0, N)
        self.slots = rng.permutation(N)
        self.store = np.empty((N, N), dtype=dtype)
        self.store[self.slots] = encoded(self.K, self.store.dtype)
        if dtype == FIXED_POINT:  # the problem is that of the stored values, which are symmetric
            self.K = decoded(self.store[self.slots])
        self.target = 2.0 * one_hot(self.y, M) - 1.0
        self.alpha = np.zeros((N, M))
        self.kept = _core.KeptClasses(M, most_values)

    def gradient(self):
        return self.K @ self.alpha - self.target

    def descend(self, ids, eps=1e-5, width=np.inf, slots=None, faces=False, n_threads=1):
        """Solve the samples ``ids``; returns the gradient that the descent says it has reached."""
        slots = self.slots[ids] if slots is None else slots
        G, alpha = self.gradient()[ids], self.alpha[ids].copy()
        state = np.ones(len(ids)), G, alpha, self.y[ids], self.C[ids]
        options = _core.DescentOptions(
            eps=eps, max_sweeps=5000, relax=1.2, width=width, faces=faces, n_threads=n_threads
        )
        found = _core.class_descent(self.kept, self.store, slots, ids, *state, options)
        self.alpha[ids] = alpha
        return G, found

    def judge(self):
        return certify(self.K, self.y, self.alpha, self.C, "one-vs-rest")


@pytest.mark.parametrize("faces", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_complete_block_is_solved_and_has_the_gradient_of_all(dtype, faces):
    case = Case(dtype)
    G, (_, updates, violation, work) = case.descend(np.arange(N), eps=1e-5, faces=faces)
    found = case.judge()
    assert_feasible(case.alpha, case.y, case.C, machine="one-vs-rest")
    np.testing.assert_allclose(G, case.gradient(), atol=2e-5)
    assert updates > 0 and work > 0 and violation <= 1e-5
    assert found.psi.max() <= 5e-5
    assert found.gap <= 1e-4 * found.primal


@pytest.mark.parametrize("width", [0.0, 0.1, np.inf])
@pytest.mark.parametrize("most_values", [0, 3000, 10**6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rounds_over_changing_samples_reach_the_optimum(dtype, most_values, width):
    """Members of the classes come and go; their kept rows are extended and moved together."""
    case, rng = Case(dtype, seed=1, most_values=most_values), np.random.default_rng(2)
    for _ in range(400):
        psi = case.judge().psi
        if psi.max() <= 1e-3:
            break
        some = rng.permutation(N)[: rng.integers(40, 200)]
        case.descend(np.union1d(some, np.argsort(psi)[-20:])[::-1].copy(), eps=1e-4, width=width)
    assert_feasible(case.alpha, case.y, case.C, machine="one-vs-rest")
    assert psi.max() <= 1e-3


def test_gradient_of_listed_pairs_is_that_of_the_new_point():
    case = Case()
    ids = np.arange(0, N, 2)
    G, _ = case.descend(ids, eps=1e-6)
    np.testing.assert_allclose(G, case.gradient()[ids], atol=1e-10)


def test_samples_without_a_row_stay():
    case = Case()
    slots = case.slots.copy()
    slots[::3] = -1
    G, (_, _, violation, _) = case.descend(np.arange(N), eps=1e-6, slots=slots)
    assert not case.alpha[::3].any() and case.alpha[1::3].any()
    np.testing.assert_allclose(G, case.gradient(), atol=1e-10)
    psi = case.judge().psi
    assert np.delete(psi, np.arange(0, N, 3)).max() <= 2e-6 < psi.max()
    assert violation <= 1e-6


def test_threads_change_nothing():
    points = []
    for n_threads in (1, 3):
        case = Case(np.float32)
        for part in (np.arange(150), np.arange(60, N)):
            case.descend(part, eps=1e-3, width=0.2, n_threads=n_threads)
        points.append(case.alpha)
    np.testing.assert_array_equal(*points)


def test_broken_gradients_do_not_look_optimal():
    case = Case()
    case.store[:] = np.nan
    assert np.isnan(case.descend(np.arange(N))[1][2])


def test_wrong_arrays_are_refused():
    case, ids = Case(), np.arange(10)
    with pytest.raises(ValueError, match="slots must be -1 or rows"):
        case.descend(ids, slots=np.full(10, N))
    with pytest.raises(ValueError, match="each once"):
        case.descend(np.zeros(10, dtype=np.int64))
    case.descend(ids)
    case.store = case.store.astype(np.float32)
    with pytest.raises(ValueError, match="dtype that they had"):
        case.descend(ids)
    case.kept = _core.KeptClasses(M + 1, 100)
    with pytest.raises(ValueError, match="as many classes"):
        case.descend(ids)


@pytest.mark.slow
@pytest.mark.parametrize("dense", [0.0, 1.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fits_with_whole_rows_and_with_parts_find_the_same(monkeypatch, dtype, dense):
    """Rounds of growing sets, where classes have all samples from the second on, or never."""
    monkeypatch.setattr(cpu, "_DENSE", dense)
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=2500)
    X = rng.normal(size=(5, 4))[y] + 0.8 * rng.normal(size=(2500, 4))
    model = KernelSVC("one-vs-rest", C=2.0, gamma=0.5, dtype=dtype, n_threads=2).fit(X, y)
    assert model.n_iter_ > 2
    audit(model, kernel_matrix("rbf", X, gamma=0.5), y, 2.0, tol=1e-3)


def test_rows_that_do_not_fit_the_cache_leave_the_answer_alone():
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=2500)
    X = rng.normal(size=(5, 4))[y] + 0.8 * rng.normal(size=(2500, 4))
    model = KernelSVC("one-vs-rest", C=2.0, gamma=0.5, cache_size=8).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.5), y, 2.0, tol=1e-3)
