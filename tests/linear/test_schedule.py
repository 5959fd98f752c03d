"""The linear machine's driver: runs are proved, limits are kept, estimates of the gap correct themselves."""

import numpy as np
import pytest
from linear_cases import N, features, random_task, started
from oracle import certify
from sklearn.datasets import load_digits

from multimargin.linear.descent import LinearFit, LinearOptions, TrainingSet
from multimargin.linear.schedule import Goal, solve_linear
from multimargin.linear.tuning import Tuning
from multimargin.run.monitor import Monitor
from multimargin.solution import Status


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


def test_threads_that_undo_each_other_are_stopped_for_good():
    """All rows alike: every thread takes the whole step, and together they go twice too far."""
    y = (np.arange(64) % 2).astype(np.int32)
    task = TrainingSet(np.ones((64, 1)) * np.where(y, -1.0, 1.0)[:, None], 8 * y, np.full(64, 1.0), 16)
    fit = LinearFit(task, LinearOptions(tol=1e-3, n_threads=8, parts=8))
    assert fit.together
    solution = solve_linear(fit, Monitor())
    assert solution.status is Status.CONVERGED
    assert not fit.together
    assert fit.promote() and not fit.together


def test_without_threads_parts_need_no_more_visits():
    """One part after the other needed several times the visits of one part."""
    X, y = load_digits(return_X_y=True)

    def visits(parts):
        task = TrainingSet(X / 16, y.astype(np.int32), np.full(len(y), 1.0), 10)
        fit = LinearFit(task, LinearOptions(tol=1e-3, gap_tol=1e-3, n_threads=parts, parts=parts))
        fit.together = False
        fit.native.part()
        assert solve_linear(fit, Monitor()).status is Status.WITHIN_GAP
        return fit.visits

    assert visits(4) < 1.5 * visits(1)


def test_the_last_passes_settle():
    """Long steps add to the gap, which is what the last passes are to close."""
    X, y = load_digits(return_X_y=True)
    task, relaxed = TrainingSet(X / 16, y.astype(np.int32), np.ones(len(y)), 10), []
    fit = LinearFit(task, LinearOptions(tol=1e-9, gap_tol=1e-4, tuning=Tuning(newton_after=1000)))
    native = fit.native

    class Spy:
        def begin(self, over_all, threshold, relax, margin, shuffle):
            relaxed.append(relax)
            native.begin(over_all, threshold, relax, margin, shuffle)

        def go_on(self):
            return native.go_on()

    fit.native = Spy()
    assert solve_linear(fit, Monitor()).status is Status.WITHIN_GAP
    assert relaxed[0] == 1.0 and max(relaxed) > 1.2 and relaxed[-1] < 1.0


def test_one_noisy_pass_does_not_put_the_proof_off():
    fit = LinearFit(random_task(9, n=256), LinearOptions(tol=1e-9, gap_tol=1e-2))
    found = fit.run_pass(over_all=True)
    goal = Goal(fit)
    before = goal._left
    goal.measure(found._replace(gap=1e-3 * found.gap))  # as if far more were left than was seen
    assert before < goal._left < 1.2 * before


def test_samples_that_say_nothing_do_not_stand_for_all():
    fit = LinearFit(random_task(9, n=256), LinearOptions(tol=1e-9, gap_tol=1e-2))
    found = fit.run_pass(over_all=True)
    goal = Goal(fit)
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
    fit = started(task, best.alpha, LinearOptions(tol=1e-3, dtype=dtype, n_threads=threads, parts=threads))
    assert fit.dual == pytest.approx(best.dual, rel=1e-9)
    again = solve_linear(fit, Monitor())
    assert again.trace[0].working_set == 40 and again.passes <= 4  # float32 weights spoil it a little
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


def test_a_limit_returns_the_best_measured_primal(monkeypatch):
    """Passes alone on dense data of unequal scale: the primal goes up and down."""
    rng = np.random.default_rng(0)
    y = (np.arange(600) % 4).astype(np.int32)
    X = (rng.normal(size=(600, 30)) + 0.3 * rng.normal(size=(4, 30))[y]) * np.geomspace(0.3, 20.0, 30)
    task = TrainingSet(X, y, np.ones(600), 4)
    tuning = Tuning(measure_every=1)
    fit = LinearFit(task, LinearOptions(subproblem="sort", max_iter=120, tol=1e-6, tuning=tuning))
    measured, plain = [], Goal.measure

    def measure(self, found):
        gap = plain(self, found)
        measured.append(gap - fit.dual)
        return gap

    monkeypatch.setattr(Goal, "measure", measure)
    solution = solve_linear(fit, Monitor())
    assert solution.status is Status.MAX_ITER and len(measured) > 1
    assert solution.primal <= min(measured) * (1 + 1e-4)
    K = X @ X.T
    found = certify(K, y, solution.alpha.toarray(), task.C)
    assert found.primal == pytest.approx(solution.primal, rel=1e-9)
