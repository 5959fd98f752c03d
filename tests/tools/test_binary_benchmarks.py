"""The benchmarks of the binary machine: peers' models are judged too, and wrong ones are caught."""

import argparse
import sys
from pathlib import Path

import numpy as np
import pytest
from oracle import bounded_samples
from scipy import sparse
from sklearn import svm

from multimargin import KernelSVC

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.arena import Result, View
from benchmarks.lib.binary_data import (
    BINARY_SUITE,
    BinaryEntry,
    against_rest,
    dense_rows,
    first_of_each,
    largest_against_rest,
)
from benchmarks.lib.contenders import C_SVC, SVC
from benchmarks.lib.data import Problem
from benchmarks.lib.printed import DECOMPOSED, Solved
from benchmarks.lib.scoring import Coefficients, InfeasibleError, judge
from benchmarks.papers import vpdt_tables
from benchmarks.peers import binary
from benchmarks.workers.storage import Split

C, GAMMA = 0.5, 0.1


@pytest.fixture(scope="module")
def problem(blobs):
    """Two of four overlapping classes against the others."""
    X, y = blobs
    return against_rest(Problem("blobs", C, GAMMA, (Split(X, y, X[:10], y[:10]),)), [1, 3])


@pytest.fixture(scope="module")
def split(problem):
    return problem.splits[0]


def claims(report):
    return [claim["held"] for claim in report.found["claims"]]


# -- judging -------------------------------------------------------------------------------------------
def test_judge_certifies_a_right_model_and_catches_a_wrong_one(split):
    model = KernelSVC("c-svc", C=C, gamma=GAMMA).fit(split.X_train, split.y_train)
    judgement, labels = judge(model, split, C, GAMMA)
    assert judgement.certified(1e-3)
    assert judgement.bounded == (np.abs(model.dual_coef_) == C).sum() > 0
    np.testing.assert_array_equal(labels, model.predict(split.X_test))
    halved = (model.support_, model.dual_coef_ / 2, model.classes_, model.intercept_, "c-svc")
    judgement, _ = judge(Coefficients(*halved), split, C, GAMMA)
    assert not judgement.certified(1e-3)
    assert judgement.bounded == 0
    tilted = (model.support_, model.dual_coef_ * np.where(model.dual_coef_ > 0, 0.9, 1), *halved[2:])
    with pytest.raises(InfeasibleError, match="a column"):
        judge(Coefficients(*tilted), split, C, GAMMA)


def test_coefficients_of_float32_are_feasible_to_their_own_rounding(split):
    peer = svm.SVC(C=C, gamma=GAMMA, tol=1e-4).fit(split.X_train, split.y_train)
    coef = peer.dual_coef_.T.astype(np.float32) * np.float32(1 + 1e-6)
    found = Coefficients(peer.support_, coef, peer.classes_, peer.intercept_, "c-svc", "free")
    assert judge(found, split, C, GAMMA)[0].gap < 1e-2
    with pytest.raises(InfeasibleError):
        judge(found._replace(dual_coef_=coef.astype(np.float64)), split, C, GAMMA)


def test_bounded_samples_of_other_machines(blobs):
    """Crammer-Singer's have all of C_i on other classes."""
    alpha = np.array([[2.0, -2.0, 0.0], [1.0, -0.5, -0.5], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(bounded_samples(alpha, np.zeros(3, int), 2.0), [True, False, False])
    assert not bounded_samples(alpha, np.zeros(3, int), 2.0, "msvm2").any()


# -- data ----------------------------------------------------------------------------------------------
def test_classes_against_the_rest(blobs):
    X, y = blobs
    whole = Problem("blobs", C, GAMMA, (Split(sparse.csr_matrix(X), y, sparse.csr_matrix(X), y),))
    several = against_rest(whole, [0, 2]).splits[0]
    np.testing.assert_array_equal(several.y_train, np.isin(y, [0, 2]))
    largest = largest_against_rest(whole).splits[0]
    assert largest.y_train.sum() == np.bincount(y).max()
    assert isinstance(dense_rows(whole).splits[0].X_train, np.ndarray)


def test_first_rows_of_each_label_in_their_order():
    y = np.array([8, 1, 8, 8, 3, 9])
    np.testing.assert_array_equal(first_of_each(y, {True: 2, False: 2}, 8), [0, 1, 2, 4])


def test_every_large_dataset_takes_part():
    names = " ".join(entry.name for entry in BINARY_SUITE)
    for data in (
        "a9a",
        "mnist",
        "connect4",
        "letter",
        "satimage",
        "usps",
        "isolet",
        "shuttle",
        "sector",
        "news20",
    ):
        assert data in names
    assert len({entry.name for entry in BINARY_SUITE}) == len(BINARY_SUITE)


# -- peers ---------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_everyone_is_judged_and_has_the_same_dual(form, split, report, monkeypatch):
    stored = split._replace(X_train=form(split.X_train), X_test=form(split.X_test))
    monkeypatch.setattr(BinaryEntry, "view", lambda self, test_rows: (C, View(stored, GAMMA)))
    entry = BinaryEntry("blobs", None, {SVC: 1e6})
    args = argparse.Namespace(
        contenders=(C_SVC.name, SVC), repeats=1, patience=9.0, cap=60.0, threads=1, full=True
    )
    results = binary.measure(entry, report, args)
    assert results[SVC].judgement.support == results[C_SVC.name].judgement.support
    binary.check(report, entry, results)
    assert claims(report) == [True, True, True]  # certified, fast enough, the same dual


def test_a_dual_that_differs_or_is_not_known(split, report):
    model = KernelSVC("c-svc", C=C, gamma=GAMMA).fit(split.X_train, split.y_train)
    right, _ = judge(model, split, C, GAMMA)
    halved = Coefficients(model.support_, model.dual_coef_ / 2, model.classes_, model.intercept_, "c-svc")
    wrong, _ = judge(halved, split, C, GAMMA)
    ours = Result(C_SVC.name, [1.0], judgement=right)
    binary.check_dual(report, "blobs", ours, Result(SVC, [1.0], judgement=wrong))
    binary.check_dual(report, "blobs", ours, Result(SVC, absent="> 2 s", slower_than=2.0))
    assert claims(report) == [False, None]


# -- tables --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("inner", vpdt_tables.INNER)
def test_one_block_of_everyone(inner, problem, report):
    args = argparse.Namespace(limit=60.0, threads=1)
    solver = vpdt_tables.one_block(vpdt_tables.INNER[inner], problem.splits[0].n)
    found = vpdt_tables.run(problem, vpdt_tables.machine(problem, solver, args), 1)
    assert found.iterations == 1
    assert found.steps > 1
    vpdt_tables.check_model(report, "blobs", found, Solved(1, 1.0, found.support, found.bounded))
    vpdt_tables.check_model(report, "blobs", found, Solved(1, 1.0, 2 * found.support, found.bounded))
    assert claims(report) == [True, True, True, True, False, True]


def test_rows_of_the_large_tables(problem, report, monkeypatch):
    """Every method and inner solver of them, on another problem."""
    monkeypatch.setattr(vpdt_tables, "LARGE", {"a9a": lambda: problem})
    args = argparse.Namespace(limit=60.0, threads=1, repeats=1, full=True, data=("a9a",))
    vpdt_tables.tables_3_to_5(report, args)
    optimal = [claim["held"] for claim in report.found["claims"] if "optimal" in claim["claim"]]
    assert optimal == [True] * len(DECOMPOSED["a9a"])


def test_the_short_form_has_rows_that_were_printed():
    for data, rows in vpdt_tables.SHORT.items():
        assert set(rows) <= set(DECOMPOSED[data])


def test_the_interior_point_must_be_slower_and_ever_more_so(report):
    def runs(slow, fast):
        return {
            "interior-point": argparse.Namespace(inner_seconds=slow),
            "vpm": argparse.Namespace(inner_seconds=fast),
        }

    vpdt_tables.check_speed(
        report, "adult", {1605: runs(2.0, 1.0), 2265: runs(1.0, 2.0), 3185: runs(9.0, 3.0)}
    )
    assert claims(report) == [True, False, True, True]
