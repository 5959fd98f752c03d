"""One engine for many fits: samples that are left out, starts from earlier points, kernel rows that stay."""

import numpy as np
import pytest
from leap_problems import MACHINES as LEAPING
from leap_problems import wide
from oracle import certify, kernel_matrix
from test_proof import ANEW, KEPT, M, N, exact_gradient, integers

from multimargin import KernelSVC
from multimargin.engines import ReferenceEngine
from multimargin.engines.base import EngineOptions, Task
from multimargin.engines.cpu import LastingEngine, Reached
from multimargin.engines.cpu.proximal_newton import ProximalModel, Solved
from multimargin.kernels import RBF
from multimargin.methods.table import METHODS, find_method
from multimargin.problems import PROBLEMS
from multimargin.run.monitor import Monitor

MACHINES = sorted(PROBLEMS)
GAMMA, C, TOL = 2e-4, 2.0, 1e-3
SMALL = 300


class Fits:
    """Fits of one engine, one after another."""

    def __init__(
        self, machine="crammer-singer", n=N, d=KEPT, cost=C, gamma=GAMMA, solver="auto", data=None, **options
    ):
        X, y = integers(d=d) if data is None else data
        balanced = PROBLEMS[machine].balanced
        self.X, self.y = X[:n], np.minimum(y[:n], 1) if balanced else y[:n]
        self.machine, self.kernel = machine, RBF(gamma)
        self.problem, self.free = PROBLEMS[machine](2 if balanced else int(y.max()) + 1), balanced
        self.method = find_method(solver, "auto", machine)
        parts = {
            "inner": self.method.inner,
            "lazy_blocks": self.method.lazy_blocks,
            "working_set": self.method.largest_set,
            "leap": self.method.leap,
            "block_share": 0.3,
            "free_bias": balanced,
        }
        self.engine = LastingEngine(self.task(cost), EngineOptions(**(parts | options)))

    def task(self, cost, left_out=None, start=None):
        some = None if start is None else np.flatnonzero(start.any(axis=1))
        rows = None if start is None else (some, start[some])
        costs = np.full(len(self.y), cost)
        return Task(self.problem, self.kernel, self.X, self.y, costs, start=rows, left_out=left_out)

    def run(self):
        rng = np.random.default_rng(0)
        return self.method.run(self.engine, Monitor(), tol=TOL, rng=rng, free_bias=self.free)

    def fold(self, full, out, cost=C):
        start = full.alpha.copy()
        start[out] = 0.0
        if self.problem.balanced:
            start[:] = 0.0  # its sums must stay zero
        self.engine.another(self.task(cost, out, start), full)
        return self.run()


def every_fifth(n, k=0):
    out = np.zeros(n, dtype=bool)
    out[k::5] = True
    return out


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("n", "d"), [(SMALL, KEPT), (N, KEPT), (N, ANEW)])
def test_a_fold_is_the_problem_without_the_samples_left_out(machine, n, d):
    fits = Fits(machine, n, d)
    fits.run()
    full = fits.engine.reached()
    K = kernel_matrix("rbf", fits.X, gamma=GAMMA)
    for k in range(2):
        out = every_fifth(n, k)
        solution = fits.fold(full, out)
        assert solution.status.converged
        assert not out[solution.support].any()
        inside = ~out
        bias = solution.bias if fits.free else None
        alpha, y = solution.alpha[inside], fits.y[inside]
        found = certify(K[np.ix_(inside, inside)], y, alpha, np.full(inside.sum(), C), machine, bias)
        assert found.psi.max() <= TOL * found.kappa * (1 + 1e-6)
        np.testing.assert_allclose(solution.primal, found.primal, rtol=1e-6)
        np.testing.assert_allclose(solution.dual, found.dual, rtol=1e-6)
        np.testing.assert_allclose(solution.gap, found.gap, rtol=1e-5, atol=1e-9 * found.primal)
        scores = K[out] @ solution.alpha + solution.bias
        np.testing.assert_allclose(fits.engine.scores(np.flatnonzero(out)), scores, atol=1e-3)


@pytest.mark.parametrize("d", [KEPT, ANEW])
def test_scores_of_samples_left_out_are_those_of_a_model_without_them(d):
    fits = Fits(d=d)
    fits.run()
    out = every_fifth(N)
    fits.fold(fits.engine.reached(), out)
    alone = KernelSVC(C=C, gamma=GAMMA).fit(fits.X[~out], fits.y[~out])
    scores = fits.engine.scores(np.flatnonzero(out))
    np.testing.assert_allclose(scores, alone.decision_function(fits.X[out]), atol=0.02)
    assert (scores.argmax(axis=1) == alone.predict(fits.X[out])).mean() > 0.995


def test_a_start_is_reached_by_the_rows_of_samples_that_differ():
    fits = Fits(cache_bytes=60 << 20)
    fits.run()
    full, before = fits.engine.reached(), fits.engine.rows.computed
    assert fits.engine.rows.cache.evictions == 0
    out = every_fifth(N)
    start = full.alpha.copy()
    start[out] = 0.0
    looked = fits.engine.rows.cache.hits
    fits.engine.another(fits.task(C, out, start), full)
    assert fits.engine.rows.computed == before  # they were all there
    assert fits.engine.rows.cache.hits - looked == np.count_nonzero(full.alpha[out].any(axis=1))


def test_costs_in_proportion_need_no_kernel_row():
    fits = Fits(cost=4 * C)
    fits.engine.another(fits.task(C))
    fits.run()
    first, before = fits.engine.reached(), fits.engine.counts()
    scaled = first.scaled(4.0)
    fits.engine.another(fits.task(4 * C, start=scaled.alpha), scaled)
    assert fits.engine.counts()[:2] == before[:2]
    error = np.abs(fits.engine.state.G - exact_gradient(fits.engine)).max()
    assert error <= fits.engine.steps.proof.error()
    assert fits.run().status.converged


@pytest.mark.parametrize("d", [KEPT, ANEW])
@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins"])
def test_error_of_the_gradient_stays_within_the_bound_over_many_fits(machine, d):
    fits = Fits(machine, d=d)
    fits.run()
    full = fits.engine.reached()
    for k in range(3):
        fits.fold(full, every_fifth(N, k))
        full = fits.engine.reached()
    error = np.abs(fits.engine.state.G - exact_gradient(fits.engine))[~fits.engine.state.is_support].max()
    assert 0 < error <= fits.engine.steps.proof.error()


@pytest.mark.parametrize("d", [KEPT, ANEW])
def test_an_exact_point_needs_no_second_proof(d, monkeypatch):
    """The same α with larger costs: its gradient was computed in float64 already."""
    fits = Fits(d=d)
    fits.run()
    fits.engine.steps.refresh()
    full = fits.engine.reached()
    assert full.is_exact
    fits.engine.another(fits.task(2 * C, start=full.alpha), full)
    np.testing.assert_allclose(fits.engine.state.G, exact_gradient(fits.engine), atol=1e-9)
    monkeypatch.setattr("multimargin.engines.cpu.proof.Proof.scores", None)
    found = fits.engine.prove()
    assert found.dual == pytest.approx(fits.engine.dual)
    monkeypatch.undo()
    fits.engine.another(fits.task(C, every_fifth(N), np.zeros(full.alpha.shape)), full)
    assert not fits.engine.state.is_exact or not fits.engine.state.alpha.any()
    moved = full.alpha.copy()
    moved[np.flatnonzero(moved.any(axis=1))[0]] *= 0.5
    fits.engine.another(fits.task(C, start=moved), full)
    assert not fits.engine.state.is_exact


def test_the_block_stays_without_those_that_are_left_out():
    fits = Fits()
    fits.run()
    full, kept = fits.engine.reached(), fits.engine.blocks._kept
    members = set(kept.members)
    fits.engine.another(fits.task(C, start=full.alpha), full)
    assert fits.engine.blocks._kept is kept
    assert set(kept.members) == members
    out = every_fifth(N)
    fits.fold(full, out)
    assert fits.engine.blocks._kept is kept
    assert not out[kept.members].any()
    some = kept.members[:200]
    K = kernel_matrix("rbf", fits.X[some].astype(float), fits.X[kept.members].astype(float), gamma=GAMMA)
    np.testing.assert_allclose(kept.kernel[:200] / 65535.0, K, atol=2e-5)


def test_a_ridge_that_depends_on_the_costs_is_in_no_later_block():
    fits = Fits("msvm2")
    fits.run()
    full, kept = fits.engine.reached(), fits.engine.blocks._kept
    fits.engine.another(fits.task(2 * C, start=full.alpha), full)
    assert kept is None or fits.engine.blocks._kept is not kept


def test_reached_from_zero_if_that_is_shorter():
    fits = Fits()
    fits.run()
    full = fits.engine.reached()
    fits.engine.another(fits.task(C), full)  # alpha = 0: no row at all
    assert fits.engine.dual == 0.0
    target = fits.problem.target(fits.y)
    np.testing.assert_array_equal(fits.engine.state.G, -target)


def test_memory_stays_within_the_budget():
    fits = Fits(cache_bytes=20 << 20)
    fits.run()
    full, rows = fits.engine.reached(), fits.engine.rows
    fits.fold(full, every_fifth(N))
    assert fits.engine.rows is rows
    assert rows.kept.nbytes <= 20 << 20


@pytest.mark.parametrize("solver", sorted(set(METHODS) - {"vpdt", "svm-light", "pdasmc"}))
def test_no_rule_chooses_a_sample_that_is_left_out(solver):
    fits = Fits(n=120, solver=solver)
    out = every_fifth(120)
    fits.engine.another(fits.task(C, out))
    solution = fits.run()
    assert solution.status.converged
    assert len(solution.support)
    assert not out[solution.support].any()


@pytest.mark.parametrize("solver", ["vpdt", "svm-light"])
def test_no_pair_has_a_sample_that_is_left_out(solver):
    fits = Fits("c-svc", n=120, solver=solver)
    out = every_fifth(120)
    fits.engine.another(fits.task(C, out))
    fits.engine.centre()
    for second_order in (False, True):
        up, down = fits.engine.pairs(20, second_order)
        assert len(up)
        assert not out[up].any()
        assert not out[down].any()
    assert fits.run().status.converged


@pytest.mark.parametrize("machine", LEAPING)
def test_a_leap_leaves_them_where_they_are(machine):
    X, y = wide()
    fits = Fits(machine, data=(X, y), gamma=0.05, cost=10.0)
    out = every_fifth(len(y))
    fits.engine.another(fits.task(10.0, out))
    fits.engine.solvers.work = 10**15  # pays for any leap
    assert fits.engine.leap(TOL)
    assert not fits.engine.state.alpha[out].any()
    assert fits.engine.prove().violation <= TOL
    np.testing.assert_allclose(fits.engine.state.G, exact_gradient(fits.engine), atol=1e-9)


def test_a_model_of_a_leap_that_fails_changes_nothing(monkeypatch):
    X, y = wide()
    fits = Fits(data=(X, y), gamma=0.05, cost=10.0)
    fits.engine.another(fits.task(10.0, every_fifth(len(y))))
    G, dual = fits.engine.state.G.copy(), fits.engine.dual

    part = fits.engine.everyone()
    uphill = -1e-3 * (np.eye(6)[fits.y[part]] - 1 / 6)
    monkeypatch.setattr(ProximalModel, "minimise", lambda self, at, eps, U, *_: Solved(uphill, U, 3))
    fits.engine.solvers.work = 10**15
    assert not fits.engine.leap(TOL)
    assert fits.engine.dual == dual
    np.testing.assert_array_equal(fits.engine.state.G, G)
    assert not fits.engine.state.alpha.any()


def test_refusals():
    fits = Fits(n=60)
    out = every_fifth(60)
    start = np.zeros((60, M))
    start[0, 0] = 1.0
    with pytest.raises(ValueError, match="left out has no weight"):
        fits.engine.another(fits.task(C, out, start))
    other = fits.task(C)
    other.kernel = RBF(1.0)
    with pytest.raises(ValueError, match="same machine, samples, kernel and offset"):
        fits.engine.another(other)
    with pytest.raises(ValueError, match="cannot leave samples out"):
        ReferenceEngine(fits.task(C, out), EngineOptions())
    assert Reached.nothing(3, 2).alpha.shape == (3, 2)
