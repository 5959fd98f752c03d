"""The folds of a single point, in threads: the same models as fits alone, whoever was first."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold

from multimargin import KernelSVC, KernelSVCCV
from multimargin.engines.cpu import LastingEngine
from multimargin.selection.at_once import at_once
from multimargin.selection.fits import KernelFits

CV = StratifiedKFold(5, shuffle=True, random_state=0)
ROWS = 2200  # more than are treated as one block
# Kernel rows are computed anew if samples have few features, and kept if they have many.
SHAPES = {"rows anew": 8, "rows kept": 150}


def samples(features: int):
    X, y = make_classification(
        ROWS, features, n_informative=6, n_redundant=0, n_classes=4, class_sep=1.5, random_state=1
    )
    return X / np.sqrt(features), y


def search(n_threads: int, **rest) -> KernelSVCCV:
    setting = {"Cs": [4.0], "gammas": [1.0], "cv": CV, "n_threads": n_threads, "tol": 1e-4} | rest
    return KernelSVCCV(**setting)


def scores_of(found: KernelSVCCV) -> np.ndarray:
    return np.array([found.cv_results_[f"split{k}_test_score"][0] for k in range(5)])


@pytest.fixture
def threads(monkeypatch):
    """The threads that have solved a fold."""
    solve, seen = KernelFits._solve, set()

    def noted(self, *args):
        seen.add(threading.get_ident())
        return solve(self, *args)

    monkeypatch.setattr(KernelFits, "_solve", noted)
    return seen


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins", "one-vs-rest"])
@pytest.mark.parametrize("refit", [False, True])
def test_every_fold_is_that_of_a_fit_alone(shape, machine, refit, threads):
    X, y = samples(SHAPES[shape])
    found = search(2, machine=machine, bias="none", refit=refit).fit(X, y)
    assert len(threads) >= 3 - (not refit)
    assert all(found.cv_results_[f"split{k}_converged"][0] for k in range(5))
    model = KernelSVC(machine, C=4.0, gamma=1.0, bias="none", tol=1e-4)
    alone = [model.fit(X[train], y[train]).score(X[test], y[test]) for train, test in CV.split(X, y)]
    np.testing.assert_allclose(scores_of(found), alone, atol=2.1 / (ROWS / 5))


@pytest.mark.parametrize("shape", SHAPES)
def test_results_do_not_depend_on_who_is_first(shape, monkeypatch):
    X, y = samples(SHAPES[shape])
    solve, order = KernelFits._solve, np.random.default_rng(0)
    outcomes = []
    for _ in range(3):
        kept = []

        def late(self, *args, kept=kept):
            time.sleep(order.uniform(0, 0.02))
            fitted = solve(self, *args)
            kept.append((args[2], fitted.scores, fitted.solution.dual))
            return fitted

        monkeypatch.setattr(KernelFits, "_solve", late)
        search(2, refit=False).fit(X, y)
        outcomes.append(sorted(kept, key=lambda fold: fold[0]))
    for other in outcomes[1:]:
        for mine, its in zip(outcomes[0], other, strict=True):
            np.testing.assert_array_equal(mine[1], its[1])
            assert mine[2] == its[2]


@pytest.mark.parametrize("count", [1, 3, 8])
def test_any_number_of_threads(count):
    X, y = samples(8)
    found = search(count).fit(X, y)
    np.testing.assert_allclose(scores_of(found), scores_of(search(2).fit(X, y)), atol=2.1 / (ROWS / 5))


ALONE = {
    "little memory": {"cache_size": 4},
    "much Python": {"bias": "free"},
    "a kernel of the user": {"kernel": lambda A, B: A @ B.T, "gammas": None},
}


@pytest.mark.parametrize("why", ALONE)
def test_one_after_another_where_threads_cannot_help(why, threads):
    X, y = samples(150)
    found = search(2, **({"tol": 1e-2} | ALONE[why]))
    found.fit(X, y)
    assert threads == {threading.get_ident()}


def test_twins_share_rows_and_divide_memory(monkeypatch):
    X, y = samples(150)
    made, twins = [], LastingEngine.twins
    monkeypatch.setattr(
        LastingEngine, "twins", lambda self, count: made.append((self, twins(self, count))) or made[-1][1]
    )
    search(2, cache_size=200).fit(X, y)
    parent, others = made[0]
    assert all(twin.rows.kept is parent.rows.kept for twin in others)
    blocks = sum(engine.rows.budget._block_bytes for engine in (parent, *others))
    assert parent.rows.kept.nbytes + blocks <= parent.options.cache_bytes


def test_a_failure_ends_the_others():
    stop = threading.Event()

    def fails():
        raise ValueError("as it should")

    with pytest.raises(ValueError, match="as it should"):
        at_once([fails, lambda: stop.wait(30)], stop)
    assert stop.is_set()
