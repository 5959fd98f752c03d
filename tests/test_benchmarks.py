"""The benchmarks' own machinery: it must catch a wrong model, take turns, and say why somebody is missing."""

import argparse
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from oracle import kernel_matrix
from sklearn import svm

from multimargin import KernelSVC

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
import _contenders
from _arena import Arena, Limits, Result, View, race
from _bars import check_certified, check_ratio, is_certified
from _contenders import CONTENDERS, OURS, SVC, Contender
from _floor import Floor, factors
from _report import Report
from _scoring import Coefficients, InfeasibleError, judge
from _turns import WithdrawnError, take_turns
from peers.instructions import count_events
from peers.storage import Split, few_rows, read_split, write_split
from regression import changes

C, GAMMA = 2.0, 0.3


@pytest.fixture
def report(tmp_path):
    return Report("test", argparse.Namespace(json=tmp_path / "test.json"), words=("PASS", "MISS"))


@pytest.fixture(scope="module")
def split(iris):
    X, y = iris
    return Split(X, y, X[:10], y[:10])


@pytest.fixture(scope="module")
def model(split):
    return KernelSVC(C=C, gamma=GAMMA).fit(split.X_train, split.y_train)


# -- taking turns --------------------------------------------------------------------------------------
def test_contenders_take_turns():
    order = []

    def fit(name):
        order.append(name)
        return 1.0

    seconds, reasons = take_turns("ABC", fit, 3)
    assert order == list("ABCABCABC")
    assert seconds == {name: [1.0] * 3 for name in "ABC"}
    assert not reasons


def test_the_slow_are_not_asked_again_and_the_broken_say_why():
    def fit(name):
        if name == "broken":
            raise WithdrawnError("no licence")
        return {"slow": 9.0, "fast": 0.1}[name]

    seconds, reasons = take_turns(["slow", "broken", "fast"], fit, 3, patience=5.0)
    assert seconds == {"slow": [9.0], "broken": [], "fast": [0.1] * 3}
    assert reasons == {"broken": "no licence"}


def test_short_times_are_taken_more_often():
    seconds, _ = take_turns("A", lambda name: 0.125, 2, at_least=1.0)
    assert len(seconds["A"]) == 8
    seconds, _ = take_turns("A", lambda name: 0.01, 2, at_least=9.0, most=7)
    assert len(seconds["A"]) == 7


# -- judging -------------------------------------------------------------------------------------------
def test_judge_certifies_a_right_model(model, split):
    judgement, labels = judge(model, split, C, GAMMA)
    assert judgement.certified(1e-3)
    np.testing.assert_array_equal(labels, model.predict(split.X_test))


def test_judge_catches_a_wrong_model(model, split):
    """Half of every coefficient is feasible, and no optimum."""
    halved = Coefficients(model.support_, model.dual_coef_ / 2, model.classes_)
    judgement, _ = judge(halved, split, C, GAMMA)
    assert not judgement.certified(1e-3)
    assert judgement.gap > 1e-2 * judgement.primal


def test_judge_refuses_an_infeasible_model(model, split):
    shifted = Coefficients(model.support_, model.dual_coef_ + 0.01, model.classes_)
    with pytest.raises(InfeasibleError, match="sums to"):
        judge(shifted, split, C, GAMMA)


def test_a_model_counts_as_certified_only_if_judge_and_solver_agree(model, split, report):
    judgement, _ = judge(model, split, C, GAMMA)
    agreed = Result(OURS, [1.0], facts={"converged": True}, judgement=judgement)
    assert is_certified(agreed)
    assert not is_certified(replace(agreed, facts={"converged": False}))
    assert not is_certified(replace(agreed, judgement=replace(judgement, psi=2e-3)))
    check_certified(report, "infeasible", Result(OURS, [1.0], infeasible="a row sums to 1"))
    assert report.finish() == 1


# -- bars ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("ours", "peer", "held"),
    [
        (Result(OURS, [2.0, 1.0]), Result(SVC, [2.0, 3.0]), True),
        (Result(OURS, [1.1]), Result(SVC, [2.0]), False),
        (Result(OURS, [1.0]), Result(SVC, slower_than=2.0), True),
        (Result(OURS, [1.1]), Result(SVC, slower_than=2.0), None),
        (Result(OURS, [1.0]), Result(SVC, absent="no environment"), None),
        (Result(OURS, absent="> 9 s"), Result(SVC, [2.0]), False),
    ],
)
def test_a_bar_is_held_missed_or_unknown(ours, peer, held, report):
    check_ratio(report, "letter", ours, peer, 0.5)
    assert report.found["claims"][0]["held"] is held
    assert report.finish() == (held is False)


# -- floor ---------------------------------------------------------------------------------------------
def test_floor_computes_the_kernel(split):
    left, right = factors(split.X_train, split.X_test, GAMMA)
    assert left.dtype == right.dtype == np.float32
    expected = kernel_matrix("rbf", split.X_train, split.X_test, gamma=GAMMA)
    np.testing.assert_allclose(np.exp(left @ right), expected, atol=1e-5)


def test_floor_takes_time_that_grows_with_the_work():
    X = np.random.default_rng(0).normal(size=(1500, 20))
    assert 0 < Floor(X[:50], X[:50], 0.1, 2).best() < Floor(X, X, 0.1, 2).best()


# -- who is missing ------------------------------------------------------------------------------------
def test_a_missing_environment_is_a_reason(split):
    absent = Contender("absent", "scikit_svc", "one-vs-one", environment="never made")
    assert "make peers" in absent.missing()
    with Arena({"scaled": View(split, GAMMA)}, [absent], threads=1) as arena:
        result = arena.measure(C, Limits(repeats=1))["absent"]
    assert result.best is None
    assert "never made" in result.absent


def test_missing_r_is_a_reason(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    _contenders.missing_kernlab.cache_clear()
    assert "Rscript" in CONTENDERS["kernlab spoc-svc"].missing()
    _contenders.missing_kernlab.cache_clear()


# -- processes -----------------------------------------------------------------------------------------
def test_a_race_judges_everyone(split):
    broken = replace(CONTENDERS[SVC], name="broken", options={"cache_size": -1})
    entrants = [CONTENDERS[OURS], CONTENDERS[SVC], broken]
    results = race({"scaled": View(split, GAMMA)}, C, entrants, Limits(repeats=2, threads=1))
    ours, peer = results[OURS], results[SVC]
    assert is_certified(ours)
    assert len(ours.seconds) == len(peer.seconds) == 2
    assert ours.disagreeing == 0
    assert ours.facts["rows"] > 0
    assert peer.judgement is None
    right = svm.SVC(C=C, gamma=GAMMA).fit(split.X_train, split.y_train).score(split.X_test, split.y_test)
    assert peer.accuracy == pytest.approx(100 * right)
    assert "cache_size" in results["broken"].absent


def test_a_fit_beyond_its_limit_is_stopped_and_the_next_one_runs(split):
    with Arena({"scaled": View(split, GAMMA)}, [CONTENDERS[OURS]], threads=1) as arena:
        stopped = arena.measure(C, Limits(repeats=2, cap=1e-6))[OURS]
        assert stopped.slower_than == 1e-6
        assert stopped.best is None
        assert arena.measure(C, Limits(repeats=1, cap=60.0))[OURS].best is not None


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_problems_survive_the_way_to_another_process(form, split, tmp_path):
    sent = split._replace(X_train=form(split.X_train), X_test=form(split.X_test))
    write_split(tmp_path / "problem.npz", sent)
    received = read_split(tmp_path / "problem.npz")
    assert sp.issparse(received.X_train) == sp.issparse(sent.X_train)
    for there, here in zip(received, sent, strict=True):
        difference = there - here
        assert not (difference.nnz if sp.issparse(difference) else difference.any())
    assert len(np.unique(few_rows(received, 10).y_train)) == 3


# -- regression ----------------------------------------------------------------------------------------
def test_regression_flags_a_worse_count():
    facts = {"rows": 1000, "updates": 5000, "rounds": 10}
    base = Result("base", [1.0], cpu=[1.0], facts=facts)
    head = Result("head", [1.05], cpu=[1.0], facts=facts | {"updates": 5200})
    assert [change.figure for change in changes(base, head) if change.worse] == ["updates"]
    slower = Result("head", [1.2], cpu=[1.0], facts=facts)
    assert [change.figure for change in changes(base, slower) if change.worse] == ["seconds"]


def test_regression_prefers_instructions_to_cpu_seconds():
    facts = {"rows": 1, "updates": 1, "rounds": 1, "instructions": 100}
    base = Result("base", [1.0], cpu=[1.0], facts=facts)
    head = Result("head", [1.0], cpu=[9.0], facts=facts | {"instructions": 120})
    assert [change.figure for change in changes(base, head) if change.worse] == ["instructions"]


def test_events_are_counted_or_not_at_all():
    """Whether this machine can count is its own affair; the action runs in any case."""
    ran = []
    count = count_events(lambda: ran.append(np.ones(10_000_000).sum()), "page-faults")
    assert ran == [1e7]
    assert count is None or count > 0
