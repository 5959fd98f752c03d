"""The linear machine's passes against Algorithm 1 in plain NumPy, and the state of a fit."""

from dataclasses import replace

import numpy as np
import pytest
from linear_cases import D, M, N, features, random_alpha, random_task, started
from oracle import certify, one_hot, project_simplex
from scipy import sparse

from multimargin.linear.descent import LinearFit, LinearOptions, TrainingSet
from multimargin.linear.schedule import Goal
from multimargin.linear.tuning import Tuning
from multimargin.problems import CrammerSinger
from multimargin.system.data import without_duplicates


def plain_pass(task, alpha, order):
    """Algorithm 1 in NumPy: exact updates one sample after the other; (alpha, largest ψ seen, its sum)."""
    Z, alpha, E = features(task), alpha.copy(), one_hot(task.y, task.m)
    W, seen = Z.T @ alpha, []
    for i in order:
        G = Z[i] @ W - E[i]
        z, k = task.C[i] * E[i] - alpha[i], Z[i] @ Z[i]
        seen.append(G.max() - G[z > 1e-8 * task.C[i]].min())
        if k == 0:
            new = task.C[i] * (E[i] - np.eye(task.m)[G.argmax()])
        else:
            new = task.C[i] * E[i] - np.asarray(project_simplex(z + G / k, task.C[i]), dtype=float)
        W += np.outer(Z[i], new - alpha[i])
        alpha[i] = new
    return alpha, max(seen), sum(seen)


@pytest.mark.parametrize("update", ["sort", "pivot", "bisection", "fixed-point", "smo"])
@pytest.mark.parametrize("constant", [0.0, 1.0])
@pytest.mark.parametrize("form", ["dense", "csr32"])
def test_a_pass_is_algorithm_1(form, constant, update):
    task = random_task(form=form, constant=constant)
    alpha = random_alpha(task)
    fit = started(task, alpha, LinearOptions(subproblem=update, dtype="float64", shuffle=False))
    before = fit.dual
    for _ in range(3):
        alpha, largest, total = plain_pass(task, alpha, range(N))
        found = fit.run_pass(over_all=True)
        assert found.visits == N
        assert found.violation == pytest.approx(largest, abs=1e-7)
        assert found.total == pytest.approx(total, abs=1e-6)
    np.testing.assert_allclose(fit.alpha().toarray(), alpha, atol=1e-7)
    np.testing.assert_allclose(fit.weights[:, :M], features(task).T @ alpha, atol=1e-7)
    Z = features(task)
    dual = certify(Z @ Z.T, task.y, alpha, task.C).dual
    assert fit.dual == pytest.approx(dual, abs=1e-6)
    assert fit.dual < before
    assert fit.visits == 3 * N and fit.passes == 3


def test_no_pass_lets_the_dual_rise():
    """Exact and relaxed, over all samples and over active ones, in random order."""
    task = random_task(2)
    fit = LinearFit(task, LinearOptions(dtype="float64"))
    for k in range(40):
        found = fit.run_pass(over_all=k % 4 == 0, threshold=1e-4, relax=1.0 + 0.1 * (k % 5), margin=0.5)
        assert found.change <= 1e-12
        tracked = fit.dual
        fit.prove()
        assert tracked == pytest.approx(fit.dual, abs=1e-9)


def test_a_threshold_leaves_small_violations_alone():
    task = random_task(3)
    fit = LinearFit(task, LinearOptions(dtype="float64"))
    found = fit.run_pass(over_all=True, threshold=2.0)  # at zero every violation is 1
    assert (found.visits, found.updates, found.violation, found.total) == (N, 0, 1.0, float(N))
    assert fit.dual == 0.0 and not fit.weights.any()
    found = fit.run_pass(over_all=False, threshold=2.0)
    assert found.visits == 0  # all of them wait
    assert fit.run_pass(over_all=True, threshold=0.0).updates > 0


def test_active_samples_are_a_part_and_a_pass_over_all_sees_the_rest():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(M), 8).astype(np.int32)
    X = 3.0 * np.eye(D)[y] + 0.01 * rng.normal(size=(N, D))
    X[::8] = X[::8][::-1]  # one of each class is where another class is
    task = TrainingSet(X, y, np.full(N, 0.1), M)
    fit = LinearFit(task, LinearOptions(dtype="float64"))
    for _ in range(20):
        found = fit.run_pass(over_all=True, margin=0.1)
    assert 0 < found.active < N
    assert fit.run_pass(over_all=False).visits <= found.active
    assert fit.run_pass(over_all=True).visits == N


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads_visit_every_sample_once(threads):
    task = random_task(4, form="csr32")
    fit = LinearFit(task, LinearOptions(dtype="float64", n_threads=threads, parts=threads))
    found = fit.run_pass(over_all=True, threshold=10.0)
    assert found.visits == N
    assert found.total == pytest.approx(N)
    fit.run_pass(over_all=True)
    rebuilt = np.zeros_like(fit.weights)  # every step reached the weights of the first thread
    fit.problem.rebuild(rebuilt)
    np.testing.assert_allclose(fit.weights, rebuilt, atol=1e-12)


def test_more_threads_than_samples():
    task = random_task(4, n=3)
    fit = LinearFit(task, LinearOptions(dtype="float64", n_threads=8, parts=8))
    assert fit.run_pass(over_all=True).visits == 3


def test_the_seed_makes_the_order():
    def alpha(seed, shuffle=True):
        fit = LinearFit(random_task(), LinearOptions(dtype="float64", seed=seed, shuffle=shuffle))
        fit.run_pass(over_all=True)
        return fit.alpha().toarray()

    np.testing.assert_array_equal(alpha(1), alpha(1))
    assert np.abs(alpha(1) - alpha(2)).max() > 1e-3
    np.testing.assert_array_equal(alpha(1, shuffle=False), alpha(2, shuffle=False))


def test_single_precision_goes_on_in_double():
    task = random_task(6)
    fit = LinearFit(task, LinearOptions(tol=2e-5))
    assert fit.weights.dtype == np.float32
    fit.run_pass(over_all=True)
    fit.prove()
    assert fit.promote() and fit.weights.dtype == np.float64
    rebuilt = np.zeros_like(fit.weights)
    fit.problem.rebuild(rebuilt)
    np.testing.assert_array_equal(fit.weights, rebuilt)
    assert not fit.promote()
    fixed = LinearFit(task, LinearOptions(tol=2e-5, dtype="float32"))
    fixed.prove()
    assert not fixed.promote()
    assert LinearFit(task, LinearOptions(tol=1e-6)).weights.dtype == np.float64


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m", [9, 16, 40])
@pytest.mark.parametrize("parts", [2, 3, 5])
def test_threads_share_the_classes(parts, m, dtype):
    """The weights in blocks are those of the dual, whoever made which step; so is what a measurement says."""
    rng = np.random.default_rng(m)
    y = np.concatenate([np.arange(m), rng.integers(m, size=111 - m)]).astype(np.int32)
    task = TrainingSet(rng.normal(size=(111, 6)), y, rng.uniform(0.1, 2.0, 111), m, 0.5)
    fit = LinearFit(task, LinearOptions(dtype=dtype, n_threads=parts, parts=parts))
    assert fit.together and fit.layout.blocks == task.layout(parts).blocks > 1
    for over_all in (True, False, True):
        found = fit.run_pass(over_all=over_all, relax=1.2)
    Z, alpha = features(task), fit.alpha().toarray()
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(fit.weights_by_class()[:, :m], Z.T @ alpha, atol=tolerance)
    expected = certify(Z @ Z.T, task.y, alpha, task.C)
    assert Goal(fit).measure(found) == pytest.approx(expected.gap, rel=1e-4)
    violation, primal, gap = fit.prove()
    assert violation == pytest.approx(expected.psi.max(), rel=1e-9)
    assert (primal, gap) == pytest.approx((expected.primal, expected.gap), rel=1e-9)
    fit.take_over_proof()  # back from one block to several
    np.testing.assert_allclose(fit.weights_by_class()[:, :m], Z.T @ alpha, atol=tolerance)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_many_values_are_converted_in_the_visit(form):
    """More than 2^23 float64 values are not converted once and for all."""
    n, d = 2100, 4000
    X = np.random.default_rng(0).normal(size=(n, d))
    if form == "sparse":
        X = sparse.csr_array((X.ravel(), np.tile(np.arange(d), n), d * np.arange(n + 1)), shape=(n, d))
    task = TrainingSet(X, (np.arange(n) % 3).astype(np.int32), np.full(n, 1e-3), 3)
    fit = LinearFit(task, LinearOptions(dtype="float32"))
    assert fit.run_pass(over_all=True).updates > 0
    expected = np.asarray(X.T @ fit.alpha().toarray())
    np.testing.assert_allclose(fit.weights[:, :3], expected, atol=1e-5 * np.abs(expected).max())


def test_threads_go_on_in_double():
    rng = np.random.default_rng(0)
    task = TrainingSet(rng.normal(size=(90, 5)), (np.arange(90) % 18).astype(np.int32), np.ones(90), 18)
    fit = LinearFit(task, LinearOptions(tol=1e-3, n_threads=2, parts=2))
    fit.run_pass(over_all=True)
    fit.prove()
    assert fit.promote() and fit.together and fit.weights.dtype == np.float64
    fit.run_pass(over_all=True)
    Z = features(task)
    np.testing.assert_allclose(fit.weights_by_class()[:, :18], Z.T @ fit.alpha().toarray(), atol=1e-12)


def test_a_scaled_start_is_feasible():
    task = random_task(9)
    alpha = random_alpha(task)
    y = task.y.copy()
    y[:10] = (y[:10] + 1) % M
    C = task.C * np.random.default_rng(0).choice([0.1, 1.0, 10.0], N)
    start = TrainingSet(
        task.X, y, C, M, alpha=CrammerSinger(M).shrink_sparse_into(sparse.csr_array(alpha), y, C)
    )
    found = LinearFit(start, LinearOptions(dtype="float64")).alpha().toarray()
    assert (found <= C[:, None] * one_hot(y, M) * (1 + 1e-12)).all()
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-12)
    new = np.where(np.arange(M) == y[:, None], 0.0, found)
    assert (-new.sum(axis=1) <= C * (1 + 1e-12)).all()
    same = (y == task.y) & (C >= task.C)
    off = np.where(np.arange(M) == y[:, None], 0.0, alpha)
    np.testing.assert_allclose(new[same], off[same], atol=1e-15)
    assert not new[y != task.y].any()  # their label has no weight to share out
    smaller = (y == task.y) & (C < task.C) & (np.abs(off).sum(axis=1) > C)
    assert smaller.any()
    np.testing.assert_allclose(-new[smaller].sum(axis=1), C[smaller], rtol=1e-12)


def test_without_duplicates_copies_only_what_has_some():
    plain = random_task(form="csr32").X
    assert without_duplicates(plain) is plain
    twice = sparse.csr_array((np.ones(3), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    merged = without_duplicates(twice)
    assert twice.nnz == 3 and merged.nnz == 2
    np.testing.assert_array_equal(merged.toarray(), [[0, 2], [1, 0]])


def test_threads_only_for_work_worth_while():
    small, tuning = random_task(), Tuning()
    assert small.threads_worth_while(8, tuning) == 1
    rng = np.random.default_rng(0)
    y, C = rng.integers(50, size=500).astype(np.int32), np.ones(500)
    long = TrainingSet(np.ones((500, 1000)), y, C, 50)
    assert [long.threads_worth_while(threads, tuning) for threads in (1, 2, 8)] == [
        1,
        2,
        2,
    ]  # 25 classes each
    assert replace(long, m=47).threads_worth_while(8, tuning) == 1
    assert replace(long, m=5000).threads_worth_while(64, tuning) == 8
    assert LinearFit(long, LinearOptions(n_threads=2)).layout.blocks == 2
    short = sparse.csr_array(sparse.eye_array(500))
    assert replace(long, X=short).threads_worth_while(8, tuning) == 1
