"""Searches by several workers, ranks and machines; those that are killed and go on; wrong files."""

import json
import os
import signal
import subprocess
import sys

import joblib
import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from thread_team import run_ranks

from multimargin import KernelSVC, KernelSVCCV
from multimargin.engines import Mpi
from multimargin.selection.fits import KernelFits
from multimargin.selection.search import middle_first

GRID = {"Cs": [0.1, 1.0, 10.0], "gammas": [0.01, 0.05, 0.2, 1.0], "cv": 3, "n_threads": 1}
TIMES = ("mean_fit_time", "std_fit_time", "fit_time")


@pytest.fixture(scope="module")
def overlap():
    X, y = make_blobs(300, centers=4, n_features=4, cluster_std=3.0, random_state=1)
    return X - X.mean(axis=0), y


def assert_same(one, other):
    """The same results to the last bit, except for seconds."""
    assert list(one.cv_results_) == list(other.cv_results_)
    for name, values in one.cv_results_.items():
        if not name.endswith(TIMES):
            np.testing.assert_array_equal(values, other.cv_results_[name], err_msg=name)
    assert one.best_params_ == other.best_params_
    np.testing.assert_array_equal(one.best_estimator_.dual_coef_, other.best_estimator_.dual_coef_)
    assert one.temperature_ == other.temperature_


def test_a_backend_that_gives_all_results_at_the_end(overlap):
    """As those of ray and spark, which are made of multiprocessing."""
    X, y = overlap
    with joblib.parallel_config(backend="multiprocessing", n_jobs=2):
        search = KernelSVCCV(**GRID).fit(X, y)
    assert_same(search, KernelSVCCV(**GRID).fit(X, y))


@pytest.mark.parametrize("drop", ["exact", None, 0.02])
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_jobs_give_the_same_results(backend, drop, overlap):
    X, y = overlap
    alone = KernelSVCCV(**GRID, drop=drop).fit(X, y)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert_same(KernelSVCCV(**GRID, drop=drop).fit(X, y), alone)
    assert_same(KernelSVCCV(**GRID, drop=drop, n_jobs=2).fit(X, y), alone)


def test_workers_divide_the_memory(overlap, monkeypatch):
    X, y = overlap
    seen, made = [], KernelFits.__init__

    def look(self, task, largest, folds, method, options, kind):
        seen.append(options.cache_bytes)
        made(self, task, largest, folds, method, options, kind)

    monkeypatch.setattr(KernelFits, "__init__", look)
    with joblib.parallel_config(backend="threading"):
        KernelSVCCV(**GRID, n_jobs=4, cache_size=40).fit(X, y)
    assert set(seen) == {10_000_000}


def test_errors_of_workers_are_raised(overlap):
    X, y = overlap
    with pytest.raises(ValueError, match="cache_size"):
        KernelSVCCV(**GRID, n_jobs=2, cache_size=0.001).fit(X, y)


def test_kernels_in_the_middle_come_first():
    assert middle_first(9) == [4, 5, 3, 6, 2, 7, 1, 8, 0]
    assert middle_first(0) == []


# -- several machines and kernel parameters --------------------------------------------------------------
def test_machines_are_searched_together(overlap):
    X, y = overlap
    machines = ["crammer-singer", "one-vs-rest"]
    both = KernelSVCCV(machines, **GRID, drop=None).fit(X, y)
    table = both.cv_results_
    assert len(table["params"]) == 24
    for machine in machines:
        alone = KernelSVCCV(machine, **GRID, drop=None).fit(X, y)
        part = table["param_machine"] == machine
        np.testing.assert_array_equal(table["mean_test_score"][part], alone.cv_results_["mean_test_score"])
    assert both.best_estimator_.machine == both.best_params_["machine"]
    assert both.best_score_ == table["mean_test_score"].max()
    assert_same(KernelSVCCV(machines, **GRID, drop=None, n_jobs=2).fit(X, y), both)


def test_kernel_parameters_like_grid_search(overlap):
    X, y = overlap
    cv, values = StratifiedKFold(3), {"degree": [2, 3], "coef0": [0.0, 1.0]}
    ours = KernelSVCCV(
        Cs=[0.1, 1.0], gammas=[0.1], kernel="poly", bias="regularized", cv=cv, drop=None, **values
    ).fit(X, y)
    theirs = GridSearchCV(
        KernelSVC(kernel="poly", gamma=0.1, bias="regularized"), values | {"C": [0.1, 1.0]}, cv=cv
    ).fit(X, y)
    expected = {
        (p["C"], p["degree"], p["coef0"]): mean
        for p, mean in zip(theirs.cv_results_["params"], theirs.cv_results_["mean_test_score"], strict=True)
    }
    assert len(ours.cv_results_["params"]) == 8
    assert set(ours.best_params_) == {"C", "gamma", "degree", "coef0"}
    for p, mean in zip(ours.cv_results_["params"], ours.cv_results_["mean_test_score"], strict=True):
        assert mean == pytest.approx(expected[p["C"], p["degree"], p["coef0"]], abs=1.01 / 300)
    assert np.asarray(ours.cv_results_["param_degree"]).tolist() == [2, 2, 2, 2, 3, 3, 3, 3]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"machine": []}, "machine must have at least one"),
        ({"machine": ["msvm2", "msvm2"]}, "twice"),
        ({"machine": ["msvm2", "svm"]}, "machine must be one of"),
        ({"degree": [2, -1], "kernel": "poly"}, "degree"),
        ({"degree": [2, 3]}, "degree has several values"),
        ({"coef0": [0.0, 1.0]}, "coef0 has several values"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"n_jobs": 1.5}, "n_jobs"),
        ({"engine": "numpy"}, "cannot leave samples out"),
        ({"engine": Mpi(data="shards")}, "all rows"),
        ({"checkpoint": ""}, "empty path"),
        ({"calibration": "platt"}, "calibration must be one of"),
    ],
)
def test_refusals(wrong, words, overlap):
    with pytest.raises((ValueError, TypeError), match=words):
        KernelSVCCV(**(GRID | wrong)).fit(*overlap)


# -- checkpoints -----------------------------------------------------------------------------------------
def stop_after(fits, monkeypatch):
    fit, seen = KernelFits.fit, []

    def interrupted(self, C, fold):
        seen.append(fold)
        if len(seen) > fits:
            raise KeyboardInterrupt
        return fit(self, C, fold)

    monkeypatch.setattr(KernelFits, "fit", interrupted)
    return seen


@pytest.mark.parametrize("every", [0, 1000])
def test_a_search_goes_on(every, overlap, tmp_path, monkeypatch):
    X, y = overlap
    path = tmp_path / "search"
    alone = KernelSVCCV(**GRID, drop=None).fit(X, y)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        stop_after(20, patch)
        KernelSVCCV(**GRID, drop=None, checkpoint=(path, every)).fit(X, y)
    seen = stop_after(10**6, monkeypatch)
    again = KernelSVCCV(**GRID, drop=None, checkpoint=path).fit(X, y)
    assert len(seen) == 36 - 18 + 1  # six points of three folds were done; one refit
    done = alone.cv_results_["mean_test_score"]
    np.testing.assert_allclose(again.cv_results_["mean_test_score"], done, atol=1.01 / 300)
    assert again.best_score_ == pytest.approx(alone.best_score_, abs=1.01 / 300)
    seen.clear()
    third = KernelSVCCV(**GRID, drop=None, checkpoint=path, n_jobs=2).fit(X, y)
    assert seen == [3]  # the refit alone
    assert_same(third, again)


@pytest.mark.parametrize("fits", [8, 15])
def test_first_folds_are_not_fitted_again(fits, overlap, tmp_path, monkeypatch):
    """Stopped among the first folds of twelve points, or after them."""
    X, y = overlap
    path = tmp_path / "search"
    alone = KernelSVCCV(**GRID).fit(X, y)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        stop_after(fits, patch)
        KernelSVCCV(**GRID, checkpoint=path).fit(X, y)
    seen = stop_after(10**6, monkeypatch)
    again = KernelSVCCV(**GRID, checkpoint=path).fit(X, y)
    left = max(0, 12 - fits)
    assert seen.count(0) in (left, left + 1)  # decision values of the best point may have been lost
    assert again.best_params_ == alone.best_params_
    assert again.best_score_ == pytest.approx(alone.best_score_, abs=1.01 / 300)
    assert again.temperature_ == pytest.approx(alone.temperature_, rel=0.02)
    assert again.predict_proba(X).shape == (300, 4)


def test_files_of_other_searches_are_refused(overlap, tmp_path):
    X, y = overlap
    path = tmp_path / "search"
    KernelSVCCV(**GRID, checkpoint=path).fit(X, y)
    content = path.read_bytes()
    for wrong, words in [
        ({"Cs": [0.1, 1.0]}, "the points"),
        ({"cv": 4}, "the folds"),
        ({"machine": "msvm2"}, "the machine"),
        ({"tol": 1e-2}, "tol"),
        ({"scoring": ["accuracy"], "refit": "accuracy"}, "the scores"),
    ]:
        with pytest.raises(ValueError, match=words):
            KernelSVCCV(**(GRID | wrong), checkpoint=path).fit(X, y)
    with pytest.raises(ValueError, match="the samples"):
        KernelSVCCV(**GRID, checkpoint=path).fit(X[::-1].copy(), y)
    assert path.read_bytes() == content


@pytest.mark.parametrize("place", [0, 30, 400, -40, -1])
def test_damaged_files_are_refused(place, overlap, tmp_path):
    X, y = overlap
    path = tmp_path / "search"
    KernelSVCCV(**GRID, checkpoint=path).fit(X, y)
    content = bytearray(path.read_bytes())
    for damaged in (content[:place], [*content[:place], content[place] ^ 1, *content[place:][1:]]):
        path.write_bytes(bytes(damaged))
        with pytest.raises(ValueError, match="cannot be used"):
            KernelSVCCV(**GRID, checkpoint=path).fit(X, y)
    later = bytes(content).replace(b'"format": 1', b'"format": 2')
    from hashlib import sha256

    path.write_bytes(later[:-32] + sha256(later[:-32]).digest())
    with pytest.raises(ValueError, match="later version"):
        KernelSVCCV(**GRID, checkpoint=path).fit(X, y)


def test_a_write_that_fails_is_a_warning(overlap, tmp_path, monkeypatch):
    X, y = overlap

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(RuntimeWarning, match="The search goes on"):
        KernelSVCCV(**GRID, checkpoint=(tmp_path / "search", 1000)).fit(X, y)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL needs a POSIX system")
def test_a_killed_search_goes_on(tmp_path):
    script = f"""
import numpy as np, json
from sklearn.datasets import make_blobs
from multimargin import KernelSVCCV
X, y = make_blobs(500, centers=5, n_features=6, cluster_std=4.0, random_state=0)
search = KernelSVCCV(Cs=np.geomspace(0.1, 100, 5), gammas=5, cv=3, drop=None, n_threads=1,
                     checkpoint=({str(tmp_path / "search")!r}, 0), verbose=2)
search.fit(X, y)
print(json.dumps([search.best_params_["C"], search.best_score_]))
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(8):
            process.stderr.readline()
        process.send_signal(signal.SIGKILL)
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = found.stderr.splitlines()
    assert len(lines) == 25
    (tmp_path / "search").unlink()
    fresh = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(found.stdout)[1] == pytest.approx(json.loads(fresh.stdout)[1], abs=1e-3)


# -- ranks -----------------------------------------------------------------------------------------------
def test_ranks_share_the_kernels(overlap):
    X, y = overlap
    alone = KernelSVCCV(**GRID).fit(X, y)
    for size in (1, 2, 3):
        for search in run_ranks(size, lambda team: KernelSVCCV(**GRID, engine=Mpi(comm=team)).fit(X, y)):
            assert_same(search, alone)


def test_ranks_need_the_same_data(overlap):
    X, y = overlap

    def fit(team):
        with pytest.raises(ValueError, match="same X"):
            KernelSVCCV(**GRID, engine=Mpi(comm=team)).fit(X + team.rank, y)

    run_ranks(2, fit)
