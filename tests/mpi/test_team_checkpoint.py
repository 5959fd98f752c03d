"""A fit goes on with its checkpoint on another number of ranks, or in one process, and back."""

import os
import re
import signal
import threading

import checkpointed
import numpy as np
import pytest
from checkpointed import GAMMA, TOL, C, facts, fit, samples
from helpers import audit
from launch import on_ranks, start
from oracle import kernel_matrix
from scipy import sparse
from shards import splits_of
from thread_team import run_ranks

from multimargin import KernelSVC
from multimargin.engines import Mpi
from multimargin.run import checkpoint as module
from multimargin.run.checkpoint_file import read

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X, Y = samples()
STEPS = {"solver": "dasmc", "working_set_size": 8}
MACHINES = [
    ("crammer-singer", "none"),
    ("crammer-singer", "free"),
    ("weston-watkins", "regularized"),
    ("lee-lin-wahba", "none"),
    ("msvm2", "free"),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


def alone(path, **params):
    common = {"C": C, "gamma": GAMMA, "tol": TOL, "checkpoint": str(path)}
    return KernelSVC(**common | params).fit(X, Y)


def kernel(bias="none"):
    return kernel_matrix("rbf", X, gamma=GAMMA, offset=float(bias == "regularized"))


# -- ranks as threads ------------------------------------------------------------------------------------
@pytest.mark.parametrize(("machine", "bias"), MACHINES)
def test_a_fit_goes_on_with_any_number_of_ranks(machine, bias, path):
    params = {"machine": machine, "bias": bias, **STEPS}
    for turn, ranks in enumerate([3, 2, 1, 4]):
        models = run_ranks(ranks, lambda team: fit(path, team, max_iter=2, **params))
        state = read(path)
        for model in models:
            assert model.n_iter_ == 2 * (turn + 1)
            np.testing.assert_array_equal(state.rows, model.support_)
            np.testing.assert_array_equal(state.coef, model.dual_coef_)
    assert alone(path, max_iter=2, **params).n_iter_ == 10  # without a team
    end = run_ranks(2, lambda team: fit(path, team, machine=machine, bias=bias))[0]
    assert end.status_.converged
    audit(end, kernel(bias), Y, C, TOL)


def test_the_binary_machine_goes_on_with_any_number_of_ranks(path):
    labels = Y % 2
    params = {"gamma": GAMMA, "C": C, "checkpoint": str(path), "n_threads": 1, "solver": "svm-light"}
    for turn, ranks in enumerate([3, 1, 2]):

        def part(team):
            engine = Mpi(data="same", comm=team)
            return KernelSVC("c-svc", engine=engine, max_iter=2, **params).fit(X, labels)

        assert run_ranks(ranks, part)[0].n_iter_ == 2 * (turn + 1)
    end = KernelSVC("c-svc", **params).fit(X, labels)
    assert end.status_.converged
    audit(end, kernel(), labels, C, TOL)


WEIGHT = np.where(np.arange(len(Y)) % 4 == 2, 0.0, 1.0 + np.arange(len(Y)) % 3)


@splits_of(len(Y))
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_shards_of_any_kind_are_the_same_problem(form, bounds, path):
    """With gamma, class weights and a bias that are computed from the data of all ranks."""
    params = {"kernel": "poly", "gamma": "scale", "class_weight": "balanced", "bias": "auto"}
    params |= {"max_iter": 2, "checkpoint": str(path), **STEPS}
    KernelSVC(**params).fit(X, Y, WEIGHT)

    def part(team):
        mine = slice(bounds[team.rank], bounds[team.rank + 1])
        model = KernelSVC(engine=Mpi(data="shards", comm=team), n_threads=1, **params)
        return model.fit(form(X)[mine], Y[mine], WEIGHT[mine])

    for model in run_ranks(len(bounds) - 1, part):
        assert model.n_iter_ == 4
        np.testing.assert_array_equal(read(path).rows, model.support_)
    assert (WEIGHT[read(path).rows] > 0).all()
    assert KernelSVC(**params).fit(X, Y, WEIGHT).n_iter_ == 6


def test_only_the_first_rank_reads_and_writes(path, monkeypatch):
    names = set()

    def noted(function):
        def wrapper(*args):
            names.add((function.__name__, threading.current_thread().name))
            return function(*args)

        return wrapper

    for function in (module.read, module.write, module.prepare):
        monkeypatch.setattr(module, function.__name__, noted(function))
    for _ in range(2):
        run_ranks(3, lambda team: fit(path, team, seconds=0.0, max_iter=2, **STEPS))
    assert names == {(name, "rank 0") for name in ("read", "write", "prepare")}


def test_the_clock_of_the_first_rank_decides(path, monkeypatch):
    """Ranks that disagree about the time would otherwise wait for each other."""
    monkeypatch.setattr(module.Checkpoint, "is_due", property(lambda self: self._team.rank != 1))
    models = run_ranks(3, lambda team: fit(path, team, max_iter=4, **STEPS))
    assert [model.trace_.info["checkpoint"]["writes"] for model in models] == [5, 0, 0]  # and the end
    monkeypatch.setattr(module.Checkpoint, "is_due", property(lambda self: self._team.rank == 1))
    models = run_ranks(3, lambda team: fit(path, team, max_iter=4, **STEPS))
    assert models[0].trace_.info["checkpoint"]["writes"] == 1


@pytest.mark.parametrize(
    ("spoil", "error", "reason"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), ValueError, "damaged or incomplete"),
        (lambda path: path.write_bytes(b"else"), ValueError, "not a checkpoint"),
        (lambda path: (path.unlink(), path.mkdir()), OSError, "must be a file"),
    ],
)
def test_what_cannot_be_used_is_an_error_of_every_rank(spoil, error, reason, path):
    alone(path, max_iter=2, **STEPS)
    spoil(path)

    def part(team):
        with pytest.raises(error, match=reason):
            fit(path, team)
        return True

    assert run_ranks(3, part) == [True] * 3


def test_another_problem_is_refused_by_every_rank(path):
    alone(path, max_iter=2, **STEPS)

    def part(team):
        with pytest.raises(ValueError, match="the costs") as caught:
            fit(path, team, C=2 * C)
        return str(caught.value)

    assert len(set(run_ranks(3, part))) == 1


def test_the_setting_of_the_first_rank_counts(path):
    def part(team):
        own = (path, 0.0) if team.rank == 0 else None
        return fit(path, team, max_iter=2, **STEPS | {"checkpoint": own})

    for turn in (1, 2):
        assert [model.n_iter_ for model in run_ranks(3, part)] == [2 * turn] * 3


# -- ranks of MPI ----------------------------------------------------------------------------------------
def kill(job, which):
    """Kill one of the ranks that have spoken; the job ends then."""
    ranks = sorted({int(pid) for pid in re.findall(r"pid (\d+)", job.text())})
    os.kill(ranks[which % len(ranks)], signal.SIGKILL)
    assert job.finish(30).code not in (0, None)


def test_a_killed_rank_loses_nothing_and_others_go_on(path):
    """Written by three ranks, gone on with by one process, by two ranks, and by one process again."""
    job = start(3, checkpointed.__file__, path)
    job.until("iteration 10")
    kill(job, -1)
    before = read(path).facts["iterations"]
    assert before >= 9
    assert alone(path, max_iter=2, **STEPS).n_iter_ == before + 2
    two = on_ranks(2, facts, path, {})
    assert [said["info"]["resumed"]["iterations"] for said in two] == [before + 2] * 2
    assert [said["info"]["writes"] for said in two] == [1, 0]
    assert two[0]["status"] == "CONVERGED"
    np.testing.assert_array_equal(two[0]["coef"], two[1]["coef"])
    np.testing.assert_array_equal(two[0]["coef"], read(path).coef)
    assert os.listdir(path.parent) == [path.name]
    end = alone(path)
    assert end.status_.converged
    assert end.dual_objective_ == pytest.approx(two[0]["dual"], rel=1e-3)
    audit(end, kernel(), Y, C, TOL)


@pytest.mark.slow
def test_a_free_bias_goes_on_with_any_number_of_ranks_of_mpi(path):
    params = {"bias": "free", **STEPS}
    for turn, ranks in enumerate([3, 1, 2]):
        said = on_ranks(ranks, facts, path, {"max_iter": 2, **params})
        assert [one["n_iter"] for one in said] == [2 * (turn + 1)] * ranks
        np.testing.assert_array_equal(read(path).coef, said[-1]["coef"])
    end = alone(path, **params)
    assert end.status_.converged
    audit(end, kernel(), Y, C, TOL)


@pytest.mark.slow
@pytest.mark.parametrize("which", range(3))
def test_kills_of_any_rank_at_any_moment_tear_nothing(which, path):
    done = 0
    for ranks in (2, 3, 1):
        job = start(ranks, checkpointed.__file__, path)
        job.until(f"iteration {10 * (done // 10 + 2 + which)}\n")
        kill(job, which)
        assert read(path).facts["iterations"] > done
        done = read(path).facts["iterations"]
    assert alone(path).status_.converged
