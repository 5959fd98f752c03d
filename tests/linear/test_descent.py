"""The linear machine's passes and its driver, against Algorithm 1 in plain NumPy."""

import math
from dataclasses import replace

import numpy as np
import pytest
from linear_cases import D, M, N, features, random_alpha, random_task, started
from oracle import certify, one_hot, project_simplex
from scipy import sparse
from sklearn.datasets import load_digits

from multimargin import _core
from multimargin.estimators.linear_svc import scaled_into
from multimargin.linear.descent import LinearFit, LinearOptions, TrainingSet
from multimargin.linear.schedule import Goal, solve_linear
from multimargin.linear.tuning import Tuning
from multimargin.linear.weights import WeightLayout
from multimargin.run.monitor import Monitor
from multimargin.solution import Status
from multimargin.system.data import without_duplicates


# -- passes ----------------------------------------------------------------------------------------
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
    descent = started(task, alpha, LinearOptions(subproblem=update, dtype="float64", shuffle=False))
    before = descent.dual
    for _ in range(3):
        alpha, largest, total = plain_pass(task, alpha, range(N))
        found = descent.run_pass(over_all=True)
        assert found.visits == N
        assert found.violation == pytest.approx(largest, abs=1e-7)
        assert found.total == pytest.approx(total, abs=1e-6)
    np.testing.assert_allclose(descent.alpha().toarray(), alpha, atol=1e-7)
    np.testing.assert_allclose(descent.weights[:, :M], features(task).T @ alpha, atol=1e-7)
    Z = features(task)
    dual = certify(Z @ Z.T, task.y, alpha, task.C).dual
    assert descent.dual == pytest.approx(dual, abs=1e-6)
    assert descent.dual < before
    assert descent.visits == 3 * N and descent.passes == 3


def test_no_pass_lets_the_dual_rise():
    """Exact and relaxed, over all samples and over active ones, in random order."""
    task = random_task(2)
    descent = LinearFit(task, LinearOptions(dtype="float64"))
    for k in range(40):
        found = descent.run_pass(over_all=k % 4 == 0, threshold=1e-4, relax=1.0 + 0.1 * (k % 5), margin=0.5)
        assert found.change <= 1e-12
        tracked = descent.dual
        descent.prove()
        assert tracked == pytest.approx(descent.dual, abs=1e-9)


def test_a_threshold_leaves_small_violations_alone():
    task = random_task(3)
    descent = LinearFit(task, LinearOptions(dtype="float64"))
    found = descent.run_pass(over_all=True, threshold=2.0)  # at zero every violation is 1
    assert (found.visits, found.updates, found.violation, found.total) == (N, 0, 1.0, float(N))
    assert descent.dual == 0.0 and not descent.weights.any()
    found = descent.run_pass(over_all=False, threshold=2.0)
    assert found.visits == 0  # all of them wait
    assert descent.run_pass(over_all=True, threshold=0.0).updates > 0


def test_active_samples_are_a_part_and_a_pass_over_all_sees_the_rest():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(M), 8).astype(np.int32)
    X = 3.0 * np.eye(D)[y] + 0.01 * rng.normal(size=(N, D))
    X[::8] = X[::8][::-1]  # one of each class is where another class is
    task = TrainingSet(X, y, np.full(N, 0.1), M)
    descent = LinearFit(task, LinearOptions(dtype="float64"))
    for _ in range(20):
        found = descent.run_pass(over_all=True, margin=0.1)
    assert 0 < found.active < N
    assert descent.run_pass(over_all=False).visits <= found.active
    assert descent.run_pass(over_all=True).visits == N


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads_visit_every_sample_once(threads):
    task = random_task(4, form="csr32")
    descent = LinearFit(task, LinearOptions(dtype="float64", n_threads=threads, parts=threads))
    found = descent.run_pass(over_all=True, threshold=10.0)
    assert found.visits == N
    assert found.total == pytest.approx(N)
    descent.run_pass(over_all=True)
    rebuilt = np.zeros_like(descent.weights)  # every step reached the weights of the first thread
    descent.problem.rebuild(rebuilt)
    np.testing.assert_allclose(descent.weights, rebuilt, atol=1e-12)


def test_more_threads_than_samples():
    task = random_task(4, n=3)
    descent = LinearFit(task, LinearOptions(dtype="float64", n_threads=8, parts=8))
    assert descent.run_pass(over_all=True).visits == 3


def test_the_seed_makes_the_order():
    def alpha(seed, shuffle=True):
        descent = LinearFit(random_task(), LinearOptions(dtype="float64", seed=seed, shuffle=shuffle))
        descent.run_pass(over_all=True)
        return descent.alpha().toarray()

    np.testing.assert_array_equal(alpha(1), alpha(1))
    assert np.abs(alpha(1) - alpha(2)).max() > 1e-3
    np.testing.assert_array_equal(alpha(1, shuffle=False), alpha(2, shuffle=False))


# -- the driver ------------------------------------------------------------------------------------
@pytest.mark.parametrize("shrinking", [True, False])
def test_a_run_is_proved(shrinking):
    task = random_task(5, constant=1.0)
    solution = solve_linear(LinearFit(task, LinearOptions(tol=1e-6, shrinking=shrinking)), Monitor())
    Z = features(task)
    found = certify(Z @ Z.T, task.y, solution.alpha.toarray(), task.C)
    assert solution.status is Status.CONVERGED
    assert found.psi.max() <= 1e-6 * (1 + 1e-6)
    assert solution.violation == pytest.approx(found.psi.max(), abs=1e-9)
    assert solution.primal == pytest.approx(found.primal, rel=1e-10)
    assert solution.dual == pytest.approx(found.dual, rel=1e-10)
    assert solution.gap == pytest.approx(found.gap, abs=1e-9)
    if not shrinking:
        assert (solution.trace["working_set"] == N).all()
    else:
        assert (solution.trace["working_set"] < N).any()


def test_single_precision_goes_on_in_double():
    task = random_task(6)
    descent = LinearFit(task, LinearOptions(tol=2e-5))
    assert descent.weights.dtype == np.float32
    descent.run_pass(over_all=True)
    descent.prove()
    assert descent.promote() and descent.weights.dtype == np.float64
    rebuilt = np.zeros_like(descent.weights)
    descent.problem.rebuild(rebuilt)
    np.testing.assert_array_equal(descent.weights, rebuilt)
    assert not descent.promote()
    fixed = LinearFit(task, LinearOptions(tol=2e-5, dtype="float32"))
    fixed.prove()
    assert not fixed.promote()
    assert LinearFit(task, LinearOptions(tol=1e-6)).weights.dtype == np.float64


def test_threads_that_undo_each_other_are_stopped_for_good():
    """All rows alike: every thread takes the whole step, and together they go twice too far."""
    y = (np.arange(64) % 2).astype(np.int32)
    task = TrainingSet(np.ones((64, 1)) * np.where(y, -1.0, 1.0)[:, None], 8 * y, np.full(64, 1.0), 16)
    descent = LinearFit(task, LinearOptions(tol=1e-3, n_threads=8, parts=8))
    assert descent.together
    solution = solve_linear(descent, Monitor())
    assert solution.status is Status.CONVERGED
    assert not descent.together
    assert descent.promote() and not descent.together


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m", [9, 16, 40])
@pytest.mark.parametrize("parts", [2, 3, 5])
def test_threads_share_the_classes(parts, m, dtype):
    """The weights in blocks are those of the dual, whoever made which step; so is what a measurement says."""
    rng = np.random.default_rng(m)
    y = np.concatenate([np.arange(m), rng.integers(m, size=111 - m)]).astype(np.int32)
    task = TrainingSet(rng.normal(size=(111, 6)), y, rng.uniform(0.1, 2.0, 111), m, 0.5)
    descent = LinearFit(task, LinearOptions(dtype=dtype, n_threads=parts, parts=parts))
    assert descent.together and descent.layout.blocks == task.layout(parts).blocks > 1
    for over_all in (True, False, True):
        found = descent.run_pass(over_all=over_all, relax=1.2)
    Z, alpha = features(task), descent.alpha().toarray()
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(descent.weights_by_class()[:, :m], Z.T @ alpha, atol=tolerance)
    expected = certify(Z @ Z.T, task.y, alpha, task.C)
    assert Goal(descent).measure(found) == pytest.approx(expected.gap, rel=1e-4)
    violation, primal, gap = descent.prove()
    assert violation == pytest.approx(expected.psi.max(), rel=1e-9)
    assert (primal, gap) == pytest.approx((expected.primal, expected.gap), rel=1e-9)
    descent.take_over_proof()  # back from one block to several
    np.testing.assert_allclose(descent.weights_by_class()[:, :m], Z.T @ alpha, atol=tolerance)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_many_values_are_converted_in_the_visit(form):
    """More than 2^23 float64 values are not converted once and for all."""
    n, d = 2100, 4000
    X = np.random.default_rng(0).normal(size=(n, d))
    if form == "sparse":
        X = sparse.csr_array((X.ravel(), np.tile(np.arange(d), n), d * np.arange(n + 1)), shape=(n, d))
    task = TrainingSet(X, (np.arange(n) % 3).astype(np.int32), np.full(n, 1e-3), 3)
    descent = LinearFit(task, LinearOptions(dtype="float32"))
    assert descent.run_pass(over_all=True).updates > 0
    expected = np.asarray(X.T @ descent.alpha().toarray())
    np.testing.assert_allclose(descent.weights[:, :3], expected, atol=1e-5 * np.abs(expected).max())


def test_threads_go_on_in_double():
    rng = np.random.default_rng(0)
    task = TrainingSet(rng.normal(size=(90, 5)), (np.arange(90) % 18).astype(np.int32), np.ones(90), 18)
    descent = LinearFit(task, LinearOptions(tol=1e-3, n_threads=2, parts=2))
    descent.run_pass(over_all=True)
    descent.prove()
    assert descent.promote() and descent.together and descent.weights.dtype == np.float64
    descent.run_pass(over_all=True)
    Z = features(task)
    np.testing.assert_allclose(
        descent.weights_by_class()[:, :18], Z.T @ descent.alpha().toarray(), atol=1e-12
    )


def test_without_threads_parts_need_no_more_visits():
    """One part after the other needed several times the visits of one part."""
    X, y = load_digits(return_X_y=True)

    def visits(parts):
        task = TrainingSet(X / 16, y.astype(np.int32), np.full(len(y), 1.0), 10)
        descent = LinearFit(task, LinearOptions(tol=1e-3, gap_tol=1e-3, n_threads=parts, parts=parts))
        descent.together = False
        descent.native.part()
        assert solve_linear(descent, Monitor()).status is Status.WITHIN_GAP
        return descent.visits

    assert visits(4) < 1.5 * visits(1)


def test_the_last_passes_settle():
    """Long steps add to the gap, which is what the last passes are to close."""
    X, y = load_digits(return_X_y=True)
    task, relaxed = TrainingSet(X / 16, y.astype(np.int32), np.ones(len(y)), 10), []
    descent = LinearFit(task, LinearOptions(tol=1e-9, gap_tol=1e-4))
    native = descent.native

    class Spy:
        def run(self, all, threshold, relax, margin, shuffle):
            relaxed.append(relax)
            return native.run(all, threshold, relax, margin, shuffle)

    descent.native = Spy()
    assert solve_linear(descent, Monitor()).status is Status.WITHIN_GAP
    assert relaxed[0] == 1.0 and max(relaxed) > 1.2 and relaxed[-1] < 1.0


def test_one_noisy_pass_does_not_put_the_proof_off():
    descent = LinearFit(random_task(9, n=256), LinearOptions(tol=1e-9, gap_tol=1e-2))
    found = descent.run_pass(over_all=True)
    goal = Goal(descent)
    before = goal._left
    goal.measure(found._replace(gap=1e-3 * found.gap))  # as if far more were left than was seen
    assert before < goal._left < 1.2 * before


def test_samples_that_say_nothing_do_not_stand_for_all():
    descent = LinearFit(random_task(9, n=256), LinearOptions(tol=1e-9, gap_tol=1e-2))
    found = descent.run_pass(over_all=True)
    goal = Goal(descent)
    goal._left = 0.0  # no gap is expected after the pass
    goal._sampled_share = 0.0  # only the sampled ones were optimal in the last proof
    assert not goal.seems_met(found)


@pytest.mark.parametrize("gap_tol", [1e-2, 1e-5])
def test_a_gap_estimated_from_some_samples_is_proved(gap_tol):
    """The samples that stand for all here have hardly any gap: the first proofs fail, and correct that."""
    task = random_task(8, n=256)
    task.C[:: 256 // 8] *= 1e-3
    solution = solve_linear(
        LinearFit(task, LinearOptions(tol=1e-9, gap_tol=gap_tol, tuning=Tuning(sample=8))), Monitor()
    )
    Z = features(task)
    found = certify(Z @ Z.T, task.y, solution.alpha.toarray(), task.C)
    assert solution.status is Status.WITHIN_GAP
    assert found.gap <= gap_tol * found.primal


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_start_is_taken_over(dtype, threads):
    task = random_task(7, constant=1.0)
    best = solve_linear(LinearFit(task, LinearOptions(tol=1e-8)), Monitor())
    descent = started(
        task, best.alpha, LinearOptions(tol=1e-3, dtype=dtype, n_threads=threads, parts=threads)
    )
    assert descent.dual == pytest.approx(best.dual, rel=1e-9)
    again = solve_linear(descent, Monitor())
    assert again.passes == 1
    assert again.dual == pytest.approx(best.dual, rel=1e-6)


def test_limits_count_visited_samples():
    task = random_task(8)
    for limit in (0, 1, 4, 13):
        for shrinking in (True, False):
            options = LinearOptions(tol=1e-12, max_iter=limit, shrinking=shrinking)
            solution = solve_linear(LinearFit(task, options), Monitor())
            assert solution.status is Status.MAX_ITER
            assert solution.trace["working_set"].sum() <= limit * N
            assert solution.passes <= limit
            assert solution.passes == -(-int(solution.trace["working_set"].sum()) // N)
    assert solution.passes == 13


# -- small parts -----------------------------------------------------------------------------------
def test_a_scaled_start_is_feasible():
    task = random_task(9)
    alpha = random_alpha(task)
    y = task.y.copy()
    y[:10] = (y[:10] + 1) % M
    C = task.C * np.random.default_rng(0).choice([0.1, 1.0, 10.0], N)
    start = TrainingSet(task.X, y, C, M, alpha=scaled_into(sparse.csr_array(alpha), y, C))
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


def test_padded_shape():
    for m, width in ((2, 8), (8, 8), (9, 16), (5000, 5000), (5001, 5008)):
        assert WeightLayout(3, m).shape == (3, width)
    assert TrainingSet(np.zeros((1, 3)), np.zeros(1), np.ones(1), 2, 0.5).layout().shape == (4, 8)


def test_blocks_of_classes():
    assert WeightLayout(3, 105, 2).shape == (2 * 3, 56)
    assert WeightLayout(3, 20, 2).shape == (2 * 3, 16)
    assert WeightLayout(3, 40, 4).shape == (3 * 3, 16)  # four blocks of 16 would be one too many
    assert WeightLayout(3, 5, 8).shape == (3, 8)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [0, 1, 3, 5000, 70_001])
def test_squared_norm(rows, dtype, threads):
    weights = np.full((rows, 8), 0.5, dtype=dtype)
    assert math.isclose(_core.squared_norm(weights, threads), 2.0 * rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_new_weights_are_zeros_on_a_cache_line(dtype):
    layout = random_task(constant=1.0).layout()
    weights = layout.zeros(dtype)
    assert weights.shape == layout.shape and weights.dtype == dtype
    assert weights.flags.c_contiguous and weights.flags.writeable and not weights.any()
    assert weights.ctypes.data % 64 == 0
