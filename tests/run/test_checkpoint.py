"""Fits with a checkpoint: they go on where another one stopped, and end at the same optimum."""

import errno
import itertools
import os
import pickle
import signal
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import audit, solver_for, unfinished
from oracle import kernel_matrix
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from multimargin import KernelSVC, Status
from multimargin.run import checkpoint as module
from multimargin.run.checkpoint_file import read

GAMMA, C, TOL = 0.2, 3.0, 1e-3
CASES = [
    (machine, bias)
    for machine in ("crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest")
    for bias in ("none", "regularized", "free")
] + [("c-svc", "auto")]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


@pytest.fixture
def rows(wine):
    return wine[0][::2], wine[1][::2]


def in_steps(machine):
    """A solver that needs many rounds, so that there is a way to stop on."""
    return {"solver": "svm-light" if machine == "c-svc" else "dasmc", "working_set_size": 8}


def problem(machine, rows, bias="none"):
    X, y = rows
    if machine == "c-svc":
        X, y = X[y < 2], y[y < 2]
    offset = 1.0 if bias == "regularized" else 0.0
    return X, y, kernel_matrix("rbf", X, gamma=GAMMA, offset=offset)


def make(machine="crammer-singer", **params):
    return KernelSVC(machine, **({"C": C, "gamma": GAMMA, "tol": TOL} | params))


def begun(rows, path, machine="crammer-singer", **params):
    """The model of a fit that was stopped after three rounds, and its checkpoint."""
    with unfinished():
        model = make(machine, max_iter=3, checkpoint=path, **(in_steps(machine) | params)).fit(*rows)
    assert not model.status_.converged
    return model, read(Path(path))


# -- to the same optimum ---------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", ["cpu", "numpy"])
@pytest.mark.parametrize(("machine", "bias"), CASES)
def test_a_fit_goes_on_and_reaches_the_optimum(machine, bias, engine, wine, path):
    step = 3 if engine == "numpy" else 1
    X, y, K = problem(machine, (wine[0][::step], wine[1][::step]), bias)
    params = {"bias": bias, "engine": engine}
    first, stopped = begun((X, y), path, machine, **params)
    np.testing.assert_array_equal(stopped.rows, first.support_)
    np.testing.assert_array_equal(stopped.coef, first.dual_coef_)
    solver = in_steps(machine) if engine == "cpu" else {"solver": solver_for("growing", machine)}
    second = make(machine, checkpoint=path, **solver, **params).fit(X, y)
    assert second.status_.converged
    audit(second, K, y, C, TOL)
    whole = make(machine, bias=bias).fit(X, y)
    np.testing.assert_allclose(second.dual_objective_, whole.dual_objective_, rtol=1e-2)
    assert second.n_iter_ == 3 + len(second.trace_)
    assert second.trace_[0].iteration == 4
    if bias in ("none", "regularized"):  # a free bias first needs the class sums
        assert second.trace_[0].dual <= first.dual_objective_ + 1e-9


@pytest.mark.parametrize("solver", ["mcsvm", "ell-based", "dasmc", "msvmpack", "auto"])
def test_another_solver_goes_on(solver, rows, path):
    begun(rows, path)
    tol = 0.02 if solver == "msvmpack" else TOL
    model = make(solver=solver, tol=tol, checkpoint=path).fit(*rows)
    assert model.status_.converged
    audit(model, problem("crammer-singer", rows)[2], rows[1], C, None if solver == "msvmpack" else TOL)


@pytest.mark.parametrize(
    ("first", "second"), [("svm-light", "vpdt"), ("vpdt", "auto"), ("auto", "svm-light")]
)
def test_another_binary_solver_goes_on(first, second, rows, path):
    X, y, K = problem("c-svc", rows)
    begun((X, y), path, "c-svc", solver=first)
    model = make("c-svc", solver=second, checkpoint=path).fit(X, y)
    audit(model, K, y, C, TOL)


@pytest.mark.parametrize(("first", "second"), [("dasmc", "msvmpack"), ("msvmpack", "dasmc")])
def test_free_biases_go_on_with_another_scheme(first, second, rows, path):
    """dasmc finds the bias by the proximal method, msvmpack keeps the class sums at zero."""
    begun(rows, path, bias="free", solver=first, tol=1e-4)
    tol = 0.05 if second == "msvmpack" else TOL
    model = make(bias="free", solver=second, tol=tol, checkpoint=path).fit(*rows)
    assert model.status_.converged
    audit(model, problem("crammer-singer", rows)[2], rows[1], C)


def test_engines_threads_and_precisions_take_turns(rows, path):
    turns = [
        {"engine": "numpy", "n_threads": 1},
        {"engine": "cpu", "n_threads": 2, "dtype": "float32"},
        {"engine": "numpy"},
        {"engine": "cpu", "dtype": "float64", "shrinking": False, "cache_size": 0.1},
    ]
    duals = []
    for turn, params in enumerate(turns):
        with unfinished():
            model = make(max_iter=2, checkpoint=path, **in_steps("crammer-singer"), **params).fit(*rows)
        assert model.n_iter_ == 2 * (turn + 1)
        duals.append(model.dual_objective_)
    assert duals == sorted(duals, reverse=True)
    assert len(set(duals)) == len(turns)


def test_very_large_costs_go_on(rows, path):
    """Such costs are capped while they are solved, and raised on the way."""
    params = {"C": 1e9, "tol": 1e-2}
    begun(rows, path, **params)
    model = make(checkpoint=path, **params).fit(*rows)
    assert model.status_.converged
    whole = make(**params).fit(*rows)
    np.testing.assert_allclose(model.dual_objective_, whole.dual_objective_, rtol=1e-3)


# -- limits ----------------------------------------------------------------------------------------------
def test_max_iter_counts_each_fit_and_n_iter_all(rows, path):
    params = {"checkpoint": path, "max_iter": 5, **in_steps("crammer-singer")}
    for turn in range(1, 100):
        with unfinished():
            model = make(**params).fit(*rows)
        assert model.n_iter_ == 5 * (turn - 1) + len(model.trace_)
        if model.status_.converged:
            break
        assert model.status_ is Status.MAX_ITER
        assert len(model.trace_) == 5
    assert turn > 2
    audit(model, problem("crammer-singer", rows)[2], rows[1], C, TOL)


def test_the_file_of_a_fit_that_converged_is_only_proved_again(wine, path):
    first = make(checkpoint=path, **in_steps("crammer-singer")).fit(*wine)
    second = make(checkpoint=path, solver=solver_for("growing", "crammer-singer")).fit(*wine)
    assert second.status_.converged
    assert len(second.trace_) == 0
    assert second.n_iter_ == first.n_iter_
    np.testing.assert_array_equal(second.support_, first.support_)
    np.testing.assert_array_equal(second.dual_coef_, first.dual_coef_)
    exact = make(checkpoint=path, tol=1e-6, solver=solver_for("growing", "crammer-singer")).fit(*wine)
    assert exact.violation_ <= 1e-6  # a smaller tolerance is no other problem


def press_ctrl_c(row):
    if row.iteration == 3:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({"time_limit": 1e-9}, "TIME_LIMIT"),
        ({"callback": lambda row: row.iteration == 3}, "CALLBACK"),
        ({"callback": press_ctrl_c, "on_interrupt": "keep"}, "INTERRUPTED"),
    ],
)
@pytest.mark.parametrize("bias", ["none", "free"])
def test_whatever_ends_a_fit_is_written(params, status, bias, rows, path):
    with unfinished():
        model = make(checkpoint=path, bias=bias, **in_steps("crammer-singer"), **params).fit(*rows)
    assert model.status_.name == status
    state = read(path)
    assert state.facts["iterations"] == model.n_iter_
    np.testing.assert_array_equal(state.rows, model.support_)
    np.testing.assert_array_equal(state.coef, model.dual_coef_)


def test_ctrl_c_that_raises_leaves_what_was_written_before(rows, path):
    with pytest.raises(KeyboardInterrupt):
        make(checkpoint=(path, 0), callback=press_ctrl_c, **in_steps("crammer-singer")).fit(*rows)
    assert read(path).facts["iterations"] == 2
    assert make(checkpoint=path).fit(*rows).status_.converged


# -- when it is written ----------------------------------------------------------------------------------
def written(monkeypatch):
    """The states that fits write from now on."""
    states, real = [], module.write

    def write(path, state):
        states.append(state)
        real(path, state)

    monkeypatch.setattr(module, "write", write)
    return states


def test_zero_seconds_write_after_every_round_and_at_the_end(rows, path, monkeypatch):
    states = written(monkeypatch)
    model = make(checkpoint=(path, 0), **in_steps("crammer-singer")).fit(*rows)
    at = [state.facts["iterations"] for state in states]
    assert at == [*range(1, model.n_iter_ + 1), model.n_iter_]
    seconds = [state.facts["seconds"] for state in states]
    assert seconds == sorted(seconds)
    facts = model.trace_.info["checkpoint"]
    assert facts["writes"] == len(states)
    assert facts["seconds"] > 0
    assert "resumed" not in facts


def test_the_seconds_between_two_writes_are_kept(rows, path, monkeypatch):
    """On a clock of its own, which goes on by one second at every look."""
    clock = itertools.count()
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    states = written(monkeypatch)
    model = make(checkpoint=(path, 5), **in_steps("crammer-singer")).fit(*rows)
    at = [state.facts["iterations"] for state in states]
    assert at == [*range(5, model.n_iter_, 5), model.n_iter_]


def test_the_default_is_a_minute(rows, path, monkeypatch):
    assert module.EVERY == 60.0
    states = written(monkeypatch)
    model = make(checkpoint=path, **in_steps("crammer-singer")).fit(*rows)
    assert len(states) == 1  # the end
    assert model.trace_.info["checkpoint"]["every"] == 60.0


def test_seconds_and_iterations_add_up(rows, path):
    _, first = begun(rows, path)
    with unfinished():
        model = make(checkpoint=path, max_iter=2, **in_steps("crammer-singer")).fit(*rows)
    second = read(path).facts
    assert second["iterations"] == 5
    assert second["seconds"] > first.facts["seconds"] > 0
    assert model.trace_.info["seconds"] < second["seconds"]
    assert model.trace_.info["checkpoint"]["resumed"] == first.facts
    assert [row.iteration for row in model.trace_] == [4, 5]
    assert pickle.loads(pickle.dumps(model)).trace_.iterations == 5


# -- what is the same problem, and what is not -----------------------------------------------------------
def test_rows_of_weight_zero_keep_their_numbers(rows, path):
    X, y = rows
    weight = np.where(np.arange(len(y)) % 3 == 1, 0.0, 1.0 + np.arange(len(y)) % 2)
    with unfinished():
        params = {"checkpoint": path, **in_steps("crammer-singer")}
        first = make(max_iter=3, **params).fit(X, y, weight)
    state = read(path)
    np.testing.assert_array_equal(state.rows, first.support_)
    assert (weight[state.rows] > 0).all()
    model = make(**params).fit(X, y, weight)
    kept = weight > 0
    K = kernel_matrix("rbf", X[kept], gamma=GAMMA)
    alone = make(solver="dasmc").fit(X[kept], y[kept], weight[kept])
    np.testing.assert_allclose(model.dual_objective_, alone.dual_objective_, rtol=1e-2)
    model.support_ = np.searchsorted(np.flatnonzero(kept), model.support_)
    audit(model, K, y[kept], C * weight[kept], TOL)
    with pytest.raises(ValueError, match="the costs"):
        make(**params).fit(X, y, np.roll(weight, 1))


@pytest.mark.parametrize(
    "stored",
    [
        lambda X: X.astype(np.float64),
        np.asfortranarray,
        sparse.csr_array,
        sparse.csr_matrix,
        lambda X: X.astype(np.int8),
        lambda X: X.tolist(),
    ],
    ids=["float64", "fortran", "csr array", "csr matrix", "int8", "list"],
)
def test_the_same_numbers_in_another_type_are_the_same_data(stored, path):
    rng = np.random.default_rng(0)
    X, y = rng.integers(-2, 3, size=(60, 5)).astype(np.float32), np.arange(60) % 3
    begun((X, y), path)
    assert make(checkpoint=path).fit(stored(X), y).n_iter_ > 3


def differs(X, y, **params):
    return X, y, None, params


FOREIGN = {
    "the machine": lambda X, y: differs(X, y, machine="weston-watkins"),
    "the kernel": lambda X, y: differs(X, y, kernel="laplacian"),
    "the kernel's gamma": lambda X, y: differs(X, y, gamma=0.3),
    "the kind of bias": lambda X, y: differs(X, y, bias="regularized"),
    "the costs": lambda X, y: differs(X, y, C=2 * C),
    "the number of samples": lambda X, y: differs(X[:-1], y[:-1]),
    "the number of features": lambda X, y: differs(X[:, :-1], y),
    "the number of classes": lambda X, y: differs(X, np.minimum(y, 1)),
    "the names of the classes": lambda X, y: differs(X, y + 1),
    "the labels": lambda X, y: differs(X, np.roll(y, 1)),
    "the samples": lambda X, y: differs(X + 1e-12 * (np.arange(len(X)) == 7)[:, None], y),
}


@pytest.mark.parametrize("part", FOREIGN)
def test_the_file_of_another_problem_is_refused_and_the_difference_named(part, rows, path):
    begun(rows, path)
    before = path.read_bytes()
    X, y, weight, params = FOREIGN[part](*rows)
    model = make(**({"checkpoint": path} | params))
    with pytest.raises(ValueError, match="belongs to another problem") as error:
        model.fit(X, y, weight)
    assert part in str(error.value)
    assert str(path) in str(error.value)
    assert path.read_bytes() == before
    assert not hasattr(model, "dual_coef_")
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("weighted", [False, True])
def test_only_what_differs_is_named(weighted, rows, path):
    begun(rows, path)
    weight = np.full(len(rows[1]), 2.0) if weighted else None
    with pytest.raises(ValueError, match=r"differs in the costs\. The file"):
        make(checkpoint=path, C=C if weighted else 2 * C).fit(*rows, weight)


def test_other_kernels_are_told_apart(rows, path):
    X, y = rows

    def one(A, B):
        return A @ B.T

    def other(A, B):
        return A @ B.T + 1.0

    begun(rows, path, kernel=one)
    with pytest.raises(ValueError, match="the kernel's func"):
        make(kernel=other, checkpoint=path).fit(X, y)
    assert make(kernel=one, checkpoint=path).fit(X, y).status_.converged
    path.unlink()
    K = kernel_matrix("rbf", X, gamma=GAMMA)
    begun((K, y), path, kernel="precomputed")
    with pytest.raises(ValueError, match="the samples"):
        make(kernel="precomputed", checkpoint=path).fit(K + 0.5, y)
    assert make(kernel="precomputed", checkpoint=path).fit(K, y).status_.converged


def test_samples_that_only_a_function_can_read_go_on(path):
    words = np.array([f"{'ab' * (i % 7)}{'c' * (i % 5)}" for i in range(40)])
    y = np.arange(40) % 3

    def common(A, B):
        left, right = (np.array([[word.count(c) for c in "abc"] for word in side]) for side in (A, B))
        return 1.0 * left @ right.T

    begun((words, y), path, kernel=common)
    with pytest.raises(ValueError, match="the samples"):
        make(kernel=common, checkpoint=path).fit(words[::-1], y)
    assert make(kernel=common, checkpoint=path).fit(words, y).n_iter_ > 3


def test_a_damaged_file_stops_the_fit_before_it_begins(rows, path):
    begun(rows, path)
    torn = path.read_bytes()[:-100]
    path.write_bytes(torn)
    model = make(checkpoint=path)
    with pytest.raises(ValueError, match="damaged or incomplete"):
        model.fit(*rows)
    assert path.read_bytes() == torn
    assert not hasattr(model, "dual_coef_")


# -- where a fit starts, and with what seed --------------------------------------------------------------
def test_the_checkpoint_comes_before_the_previous_solution(rows, path):
    begun(rows, path)
    model = make(warm_start=True, **in_steps("crammer-singer")).fit(*rows)
    model.set_params(checkpoint=path)
    model.fit(*rows)
    assert model.n_iter_ > 4
    assert model.trace_[0].iteration == 4


def test_a_previous_solution_is_the_start_if_there_is_no_file_yet(wine, path):
    model = make(warm_start=True, solver=solver_for("growing", "crammer-singer")).fit(*wine)
    model.set_params(checkpoint=path).fit(*wine)
    assert len(model.trace_) == 0
    assert read(path).rows.tolist() == model.support_.tolist()


def random_steps(path, **params):
    return make(solver="msvmpack", machine="weston-watkins", checkpoint=path, tol=1e-9, **params)


def test_a_fit_that_goes_on_keeps_its_seed_and_draws_new_numbers(rows, path, tmp_path):
    with unfinished():
        random_steps(path, random_state=5, max_iter=4).fit(*rows)
        begin = path.read_bytes()
        again = []
        for k in range(2):
            (tmp_path / f"{k}").write_bytes(begin)
            again.append(random_steps(tmp_path / f"{k}", random_state=k, max_iter=4).fit(*rows))
    assert read(tmp_path / "0").facts["seed"] == read(path).facts["seed"]
    np.testing.assert_array_equal(again[0].dual_coef_, again[1].dual_coef_)
    seeds = {state.facts["seed"] for state in map(read, (path, tmp_path / "0"))}
    for file in (path, tmp_path / "0"):  # after 4 and after 8 rounds
        seeds.add(module.Checkpoint(file, 60, read(file).problem, "msvmpack", 99).seed)
    assert len(seeds) == 3
    assert 99 not in seeds


def test_a_checkpoint_does_not_change_the_way(rows, path):
    plain = make(**in_steps("crammer-singer")).fit(*rows)
    written = make(checkpoint=(path, 0), **in_steps("crammer-singer")).fit(*rows)
    assert written.n_iter_ == plain.n_iter_
    np.testing.assert_array_equal(written.dual_coef_, plain.dual_coef_)


# -- disks and directories -------------------------------------------------------------------------------
def test_a_write_that_fails_is_a_warning_and_the_fit_goes_on(rows, path, monkeypatch):
    begun(rows, path)
    before = path.read_bytes()

    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(RuntimeWarning, match="could not be written.*No space left.*goes on") as said:
        model = make(checkpoint=(path, 0), **in_steps("crammer-singer")).fit(*rows)
    assert len(said) == len(model.trace_) + 1
    assert all(warning.filename == __file__ for warning in said)
    assert model.status_.converged
    assert model.trace_.info["checkpoint"]["writes"] == 0
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_missing_directory_is_an_error_before_the_fit(rows, tmp_path):
    model = make(checkpoint=tmp_path / "missing" / "file", callback=lambda row: pytest.fail("it has begun"))
    with pytest.raises(FileNotFoundError, match=r"cannot be written.*directory that exists"):
        model.fit(*rows)


def test_a_link_stays_a_link(rows, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    begun(rows, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert make(checkpoint=tmp_path / "file").fit(*rows).n_iter_ > 3


def test_paths_may_be_relative(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, _ = begun(rows, "file")
    assert model.trace_.info["checkpoint"]["path"] == str(tmp_path / "file")


# -- the parameter ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("value", "error"),
    [
        (5, TypeError),
        (b"bytes", TypeError),
        (("file",), TypeError),
        (("file", 1.0, 2.0), TypeError),
        ((1.0, "file"), TypeError),
        (("file", "soon"), TypeError),
        (("file", None), TypeError),
        (("file", -1.0), ValueError),
        (("file", np.nan), ValueError),
        ("", ValueError),
        (("", 1.0), ValueError),
    ],
)
def test_wrong_values_are_refused(value, error, rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match="checkpoint"):
        make(checkpoint=value).fit(*rows)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("form", [str, Path, lambda p: (str(p), 5), lambda p: (p, 0.5), lambda p: [p, 5]])
def test_all_forms_work_and_are_cloned_and_stored(form, rows, path):
    model = make(checkpoint=form(path), max_iter=3, **in_steps("crammer-singer"))
    assert clone(model).get_params()["checkpoint"] == form(path)
    with unfinished():
        model.fit(*rows)
    again = pickle.loads(pickle.dumps(model))
    assert again.checkpoint == form(path)
    assert read(path).facts["iterations"] == 3


def test_a_search_over_parameters_with_one_file_is_refused(rows, path):
    search = GridSearchCV(make(checkpoint=path), {"C": [0.1, 1.0]}, cv=3, error_score="raise")
    with pytest.raises(ValueError, match="belongs to another problem"):
        search.fit(*rows)


def test_fits_without_a_checkpoint_write_nothing(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "write", lambda *args: pytest.fail("written"))
    with warnings.catch_warnings():
        model = make().fit(*rows)
    assert not os.listdir(tmp_path)
    assert "checkpoint" not in model.trace_.info
