"""Proofs that compute only what is undecided: the bound of errors, and what errors beyond it would do."""

import numpy as np
import pytest
from helpers import audit
from oracle import kernel_matrix
from scipy import sparse

from multimargin import KernelSVC
from multimargin.engines.base import EngineOptions, Task
from multimargin.engines.cpu import kernel_values
from multimargin.engines.cpu.engine import CpuEngine
from multimargin.engines.cpu.proof import value_error
from multimargin.inner.block import Aim
from multimargin.kernels import RBF, Laplacian
from multimargin.methods.table import find_method
from multimargin.problems import PROBLEMS

N, M = 2300, 4  # more than are kept as a whole matrix
KERNELS = {"rbf": RBF, "laplacian": Laplacian}
MACHINES = ["crammer-singer", "weston-watkins", "lee-lin-wahba", "one-vs-rest"]


KEPT, ANEW = 100, 24  # features with which kernel rows are kept, or computed anew


def integers(n=N, m=M, d=KEPT, seed=0):
    """Small integers: an exact layout, with kernel rows in less than float64."""
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n).astype(np.int32)
    X = np.clip(np.rint(rng.normal(size=(m, d))[y] * 9 + rng.normal(size=(n, d)) * 11 + 40), 0, 80)
    return X.astype(np.uint8), y


def with_outlier(X):
    """Floats off any grid, one of which is far away."""
    X = X.astype(float) ** 1.01
    X[0] *= 8.0
    return X


def engine_for(machine="crammer-singer", kernel="rbf", gamma=2e-4, C=2.0, form=np.asarray, d=KEPT, **options):
    X, y = integers(d=d)
    method = find_method("auto", "auto", machine)
    task = Task(PROBLEMS[machine](M), KERNELS[kernel](gamma), form(X), y, np.full(N, C))
    options = {"inner": method.inner, "lazy_blocks": method.lazy_blocks, "block_share": 0.3} | options
    return CpuEngine(task, EngineOptions(**options)), method


def advance(engine, method, rounds):
    """A few rounds of the growing set."""
    rng = np.random.default_rng(0)
    for _, choice in zip(range(rounds), method.working_set.choose(engine, "psi", 1e-3, rng), strict=False):
        engine.improve(choice.W, method.inner, Aim(1e-3, 0.1), keep=True)
    engine.select(1, above=np.inf)  # brings all rows of G up to date


def exact_gradient(engine):
    state, task = engine.state, engine.task
    K = kernel_matrix(task.kernel.native, np.asarray(task.X, dtype=float), gamma=task.kernel.gamma)
    return K @ state.alpha - task.problem.target(task.y)


@pytest.mark.parametrize("gamma", [1e-6, 1e-4, 2e-4])
@pytest.mark.parametrize("shift", [0.0, 1e3])
@pytest.mark.parametrize("d", [20, 40, 300])
def test_error_of_kernel_values_is_within_the_bound(d, shift, gamma):
    """Floats off any grid: differences of few features, products of many."""
    rng = np.random.default_rng(d)
    X = shift + rng.normal(size=(N, d)) * rng.choice([1.0, 9.0], size=(N, 1))
    task = Task(
        PROBLEMS["crammer-singer"](2), RBF(gamma), X, np.resize(np.arange(2, dtype=np.int32), N), np.ones(N)
    )
    values = CpuEngine(task, EngineOptions()).values
    assert values.form == ("float32 direct" if d < 40 else "float32 product")
    K, ids = np.empty((64, N), dtype=np.float32), np.arange(64)
    values.fill(ids, K, ids)
    error = np.abs(K - kernel_matrix("rbf", X, X[:64], gamma=gamma).T).max()
    assert error <= value_error(values) < 0.01
    assert value_error(values) < 3000 * max(error, 2.0**-24)  # it says something


@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins"])
@pytest.mark.parametrize("rounds", [2, 6])
@pytest.mark.parametrize("d", [KEPT, ANEW])
def test_error_of_the_gradient_is_within_the_bound(machine, rounds, d):
    engine, method = engine_for(machine, d=d)
    assert engine.rows.keeps_rows == (d == KEPT)
    advance(engine, method, rounds)
    error = np.abs(engine.state.G - exact_gradient(engine))[~engine.state.is_support].max()
    assert 0 < error <= engine.steps.proof.error()


@pytest.mark.parametrize("form", [np.asarray, with_outlier, sparse.csr_array])
@pytest.mark.parametrize("some", [False, True])
def test_scores_of_support_vectors_use_symmetry(form, some, monkeypatch):
    """The same scores as by all pairs, of all samples and of some, in every form of the data."""
    values = engine_for(form=form)[0].rows.values
    rng = np.random.default_rng(0)
    ids = np.sort(rng.choice(N, 900, replace=False))
    here = np.union1d(ids, np.arange(0, N, 7)) if some else None
    coef = rng.normal(size=(900, M))
    found = values.scores(ids, coef, here)
    monkeypatch.setattr(kernel_values, "_LEAST_SQUARE", N)
    np.testing.assert_allclose(found, values.scores(ids, coef, here), rtol=0, atol=1e-11)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("d", [KEPT, ANEW])
def test_decided_samples_have_no_violation_and_no_loss(machine, d):
    engine, method = engine_for(machine, d=d)
    advance(engine, method, 6)
    here = engine.steps.proof.undecided()
    if here is None:  # one-vs-rest may leave a gradient of unknown error behind
        assert machine == "one-vs-rest"
        return
    decided = np.setdiff1d(np.arange(N), here)
    assert not engine.state.alpha[decided].any()
    if machine != "lee-lin-wahba":  # most of its samples have weight
        assert len(decided) > N / 20
    G, task = exact_gradient(engine), engine.task
    S = task.problem.scores(G[decided], engine.state.alpha[decided], task.y[decided], task.C[decided])
    loss = task.problem.loss(S, task.y[decided], task.C[decided])
    np.testing.assert_array_equal(loss, 0.0)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("d", [KEPT, ANEW])
def test_certificate_is_that_of_all_rows(machine, d):
    """Computing only the undecided rows changes no digit that matters."""
    engine, method = engine_for(machine, d=d)
    advance(engine, method, 6)
    found = engine.prove()
    engine.place(engine.state.alpha.copy())  # all rows
    every = engine.certificate()
    np.testing.assert_allclose(found, every, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("d", [KEPT, ANEW])
def test_differences_in_float32_leave_rows_decided(d):
    """Floats off any grid: the loop uses differences in float32, the proof float64, and only some rows.

    A sample far from the others makes products in float32 too inexact.
    """
    engine, method = engine_for(form=with_outlier, d=d)
    assert engine.values.form == "float32 direct"
    advance(engine, method, 6)
    error = np.abs(engine.state.G - exact_gradient(engine))[~engine.state.is_support].max(initial=0.0)
    assert error <= engine.steps.proof.error()
    here = engine.steps.proof.undecided()
    assert here is not None and len(here) < N
    found = engine.prove()
    engine.place(engine.state.alpha.copy())  # all rows
    np.testing.assert_allclose(found, engine.certificate(), rtol=1e-12, atol=1e-9)


def test_second_proof_adds_what_has_moved():
    engine, method = engine_for()
    advance(engine, method, 8)
    engine.prove()
    known = engine.steps.proof._known
    moved = engine.support()[:5]
    engine.improve(moved, method.inner, Aim(0.0, 0.0))
    computed = []
    scores = engine.rows.values.scores
    engine.rows.values.scores = lambda ids, coef, here=None: (
        computed.append(len(ids)) or scores(ids, coef, here)
    )
    found = engine.prove()
    assert max(n for n in computed if n) <= len(known.support)
    assert min(computed) <= 5
    engine.place(engine.state.alpha.copy())
    np.testing.assert_allclose(found, engine.certificate(), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("at", ["undecided", "decided"])
def test_injected_error_is_found_or_said_to_be_possible(at):
    """G is wrong by more than the loop knows: rows that a proof computes are mended.

    A proof trusts the others. So whatever changes G in another way must say so (``lose``), and then all rows
    are summed anew, from kept kernel rows if there are some, whose error is bounded.
    """
    engine, method = engine_for()
    advance(engine, method, 8)
    proof = engine.steps.proof
    here = proof.undecided()
    samples = here if at == "undecided" else np.setdiff1d(np.arange(N), here)
    engine.state.G[samples[::7]] -= 5.0 * np.eye(M)[engine.task.y[samples[::7]]]
    if at == "decided":
        proof.lose()
        assert proof.undecided() is None
    found = engine.prove()
    error = 1e-9 if at == "undecided" else proof.error()
    assert 0 < error < 0.01
    np.testing.assert_allclose(engine.state.G[samples], exact_gradient(engine)[samples], rtol=0, atol=error)
    engine.place(engine.state.alpha.copy())  # all rows
    np.testing.assert_allclose(found, engine.certificate(), rtol=1e-12, atol=1e-9)


def test_interrupted_blocks_make_all_rows_undecided(monkeypatch):
    engine, method = engine_for()
    advance(engine, method, 4)

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine.solvers, "solve", interrupt)
    with pytest.raises(KeyboardInterrupt):
        engine.improve(engine.support(), method.inner, Aim(0.0, 0.0), keep=True)
    assert engine.steps.proof.undecided() is None


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize(
    "form", [np.asarray, sparse.csr_array, lambda X: X + 0.25, lambda X: X.astype(float) ** 1.01]
)
@pytest.mark.parametrize("gamma", [1e-6, 1e-3, 1e-2, 0.3])
@pytest.mark.parametrize("d", [KEPT, ANEW])
def test_kernel_values_are_within_their_bound(kernel, form, gamma, d):
    engine, _ = engine_for(kernel=kernel, form=form, gamma=gamma, d=d)
    bound = value_error(engine.values)
    if np.isinf(bound):  # no bound is known of products in float32
        assert not engine.values.exact
        return
    ids = np.arange(0, N, 37)
    if engine.rows.keeps_rows:
        slots = engine.rows.load(ids)
        rows = engine.rows.kept[slots].astype(float) / (65535 if engine.values.row_dtype == np.uint16 else 1)
    else:
        rows = engine.values.against(ids, np.arange(N)).astype(float)
    X = engine.task.X
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=float)
    assert np.abs(rows - kernel_matrix(kernel, X[ids], X, gamma=gamma)).max() <= bound


@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins", "one-vs-rest"])
@pytest.mark.parametrize("C", [1.0, 50.0])
def test_rows_of_fixed_point_numbers_reach_the_optimum(machine, C):
    X, y = integers()
    model = KernelSVC(machine, C=C, gamma=2e-4, random_state=0).fit(X, y)
    assert model.trace_.info["row_dtype"] == "uint16"
    assert model.status_.converged
    audit(model, kernel_matrix("rbf", X.astype(float), gamma=2e-4), y, C, tol=1e-3)
