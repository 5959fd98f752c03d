"""The benchmarks' own machinery: it must catch a wrong model, take turns, and say why somebody is missing."""

import argparse
import runpy
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from oracle import class_biases, kernel_matrix
from sklearn import svm

from multimargin import KernelSVC

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.checks import regression, work_units
from benchmarks.lib import contenders
from benchmarks.lib.arena import Arena, Limits, Result, View, race
from benchmarks.lib.bars import check_certified, check_ratio, is_certified
from benchmarks.lib.contenders import CONTENDERS, MACHINES, OURS, SVC, Contender
from benchmarks.lib.data import Problem, load_digits_problem, standardised
from benchmarks.lib.floor import Floor, factors
from benchmarks.lib.printed import TABLE_4
from benchmarks.lib.report import Table
from benchmarks.lib.scoring import Coefficients, InfeasibleError, judge
from benchmarks.lib.suite import Entry
from benchmarks.lib.turns import WithdrawnError, take_turns
from benchmarks.papers import msvmpack_table2, msvmpack_table4
from benchmarks.peers import machines
from benchmarks.workers.instructions import count_events
from benchmarks.workers.storage import few_rows, read_split, write_split

C, GAMMA = 2.0, 0.3
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = sorted(path for room in ("checks", "papers", "peers") for path in (BENCHMARKS / room).glob("*.py"))


@pytest.fixture(scope="module")
def model(split):
    return KernelSVC(C=C, gamma=GAMMA).fit(split.X_train, split.y_train)


# -- scripts -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_script_explains_itself(script, monkeypatch, capsys):
    """As a user calls it, and in the table of the README."""
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(script), run_name="__main__")
    assert not end.value.code
    assert "--repeats" in capsys.readouterr().out
    assert f"\n| `{script.name}` |" in (BENCHMARKS / "README.md").read_text(encoding="utf-8")


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
@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("machine", MACHINES)
def test_judge_certifies_a_right_model_and_catches_a_wrong_one(machine, bias, split):
    """Half of every coefficient is feasible for every machine, and no optimum."""
    model = KernelSVC(machine, C=C, gamma=GAMMA, bias=bias).fit(split.X_train, split.y_train)
    judgement, labels = judge(model, split, C, GAMMA)
    assert judgement.certified(1e-3)
    assert judgement.gap == pytest.approx(model.duality_gap_, rel=1e-6, abs=1e-8 * judgement.primal)
    np.testing.assert_array_equal(labels, model.predict(split.X_test))
    halved = (model.support_, model.dual_coef_ / 2, model.classes_)
    judgement, _ = judge(Coefficients(*halved, class_biases(model), machine, bias), split, C, GAMMA)
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
    contenders.missing_kernlab.cache_clear()
    assert "Rscript" in CONTENDERS["kernlab spoc-svc"].missing()
    contenders.missing_kernlab.cache_clear()


# -- processes -----------------------------------------------------------------------------------------
@pytest.mark.slow
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


@pytest.mark.slow
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


# -- machines ------------------------------------------------------------------------------------------
def test_digits_has_the_rows_of_the_published_optimum():
    problem = load_digits_problem()
    assert (problem.n, len(problem.splits[0].y_test)) == (1198, 599)
    assert problem.splits[0].X_train.max() == 1


def test_digits_bars(report):
    run = argparse.Namespace(dual=-478.57, support=321, accuracy=99.2, psi=1e-4, converged=True)
    run.certified = lambda tol: run.psi <= tol
    machines.check_digits(report, "crammer-singer", run)
    machines.check_digits(report, "msvm2", run)
    assert [claim["held"] for claim in report.found["claims"]] == [True] * 5
    run.dual, run.support = -478.56, 323
    machines.check_digits(report, "crammer-singer", run)
    assert [claim["held"] for claim in report.found["claims"][5:]] == [True, False, False, True]


@pytest.mark.slow
def test_machines_race_and_are_judged_each_by_its_own_definition(split, report, monkeypatch):
    monkeypatch.setattr(Entry, "views", lambda self, test_rows: (C, {"scaled": View(split, GAMMA)}))
    args = argparse.Namespace(
        machines=tuple(MACHINES), repeats=1, patience=9.0, cap=60.0, threads=1, full=False, method=False
    )
    results = machines.measure(machines.DATA["usps"], report, args)
    assert all(is_certified(result) for result in results.values())
    duals = {round(result.judgement.dual, 3) for result in results.values()}
    assert len(duals) == len(MACHINES)
    ratios = [claim for claim in report.found["claims"] if "x crammer-singer" in claim["claim"]]
    assert len(ratios) == 4


def test_a_run_that_ends_without_the_gap_is_slower_than_that(model, split):
    judgement, _ = judge(model, split, C, GAMMA)
    near = Result("msvm2", [3.0], judgement=replace(judgement, gap=0.02 * judgement.primal))
    assert machines.to_gap(near).best == 3.0
    far = replace(near, judgement=replace(judgement, gap=0.021 * judgement.primal))
    assert machines.to_gap(far).best is None
    assert machines.to_gap(far).slower_than == 3.0
    assert machines.to_gap(Result("msvm2", absent="no such solver")).absent == "no such solver"


def test_standardised_features_leave_a_constant_one_alone():
    X = np.array([[1.0, 5.0], [3.0, 5.0]])
    train, test = standardised(X, X + 2)
    np.testing.assert_array_equal(train, [[-1, 0], [1, 0]])
    np.testing.assert_array_equal(test, [[1, 2], [3, 2]])


def test_msvmpack_table_2(split, report):
    args = argparse.Namespace(full=False, limit=60.0, method_limit=1.0, methods=("auto",), repeats=1)
    problem = Problem("Letter", C, GAMMA, (split,))
    found = msvmpack_table2.measure(report, problem, msvmpack_table2.MACHINES, args)
    assert list(found) == [(machine, "auto") for machine in msvmpack_table2.MACHINES]
    msvmpack_table2.check(report, "Letter", None, found, args)
    assert [claim["held"] for claim in report.found["claims"]] == [True] * 4
    msvmpack_table2.check(report, "ImageSeg", None, found, args)  # iris is not ImageSeg
    assert [claim["held"] for claim in report.found["claims"] if "primal" in claim["claim"]] == [False] * 4


def test_msvmpack_table_2_takes_rows_by_machine():
    args = argparse.Namespace(data=("MNIST", "Letter"), machines=None, full=False, all_rows=False)
    kinds = list(msvmpack_table2.MACHINES)
    assert msvmpack_table2.runs(args) == [("MNIST", 10_000, kinds), ("Letter", None, kinds[:2])]
    args.full = True
    mnist = [("MNIST", None, kinds[:2]), ("MNIST", 10_000, kinds[2:])]
    assert msvmpack_table2.runs(args) == [*mnist, ("Letter", None, kinds)]


@pytest.mark.slow
def test_msvmpack_table_4(split, report, monkeypatch):
    monkeypatch.setattr(msvmpack_table4, "ITEM", 8)  # so few samples have kernel rows in float64
    points = msvmpack_table4.measure(report, split, C, GAMMA, Limits(repeats=1, threads=1))
    assert [share for share, _ in points] == list(msvmpack_table4.SHARES)
    msvmpack_table4.show_shapes(report, points)
    msvmpack_table4.check(report, points)
    assert all(claim["held"] for claim in report.found["claims"] if "optimal" in claim["claim"])
    assert msvmpack_table4.shape(TABLE_4["CB513_01"])[0.05] == pytest.approx(3.03, abs=0.01)


# -- work units ----------------------------------------------------------------------------------------
def test_work_of_a_fit_is_watched_and_nothing_stays_changed(split):
    before = work_units.Solvers._sweeps, dict(work_units._NATIVE)
    with work_units.watched() as calls:
        KernelSVC("lee-lin-wahba", C, gamma=GAMMA, n_threads=1).fit(split.X_train, split.y_train)
        KernelSVC("c-svc", C=C, gamma=GAMMA, n_threads=1).fit(split.X_train, split.y_train == 0)
    assert (work_units.Solvers._sweeps, work_units._NATIVE) == before
    assert {call.kind for call in calls} == {work_units.SWEEPS, work_units.PAIRS}
    for kind in (work_units.SWEEPS, work_units.PAIRS):
        assert sum(call.work for call in calls if call.kind == kind) > 0


def test_work_units_are_measured_by_name():
    calls = [
        work_units.Spent(work_units.SWEEPS, 4e9, 1, 2.0),
        work_units.Spent(work_units.PAIRS, 1e9, 1, 1.0),
        work_units.Spent(work_units.LEAP, 3e9, 20, 1.0),
    ]
    found = {entry.name: entry.here for entry in work_units.of_methods(calls)}
    assert found == {
        "LEAST_DESCENT": 0.5,
        "": 1.0,
        "LEAP": pytest.approx(1.5),
        "LEAP_STEPS": 20,
    }


# -- regression ----------------------------------------------------------------------------------------
FACTS = {"dual": -2.0, "rows": 1000, "updates": 5000, "rounds": 10, "support": 50, "converged": True}


def pair_of(head, seconds=1.0):
    """Base with these facts, and a head that differs from it."""
    base = Result("base", [1.0, 1.2], cpu=[1.0], facts=FACTS)
    return regression.Pair(base, Result("head", [seconds], cpu=[1.0], facts=FACTS | head))


@pytest.mark.parametrize(
    ("head", "same", "said"),
    [
        ({}, True, []),
        ({"dual": -2.0 - 1e-9}, True, []),
        ({"dual": -2.0 - 1e-8}, False, []),
        ({"updates": 4999}, False, ["updates 5,000 → 4,999"]),
        ({"converged": False}, False, ["HEAD did not converge"]),
    ],
)
def test_regression_wants_the_same_dual_and_counts(head, same, said):
    pair = pair_of(head)
    assert pair.same == same
    assert pair.different == said


def test_regression_fails_by_counts_and_by_times_only_if_asked(report):
    args = argparse.Namespace(counts=False, strict=False)
    regression.check(report, [("iris", pair_of({}, seconds=1.2))], args)
    assert [claim["held"] for claim in report.found["claims"]] == [True, True]
    assert len(report.found["missed"]) == 1
    args.strict = True
    regression.check(report, [("iris", pair_of({"rows": 1001}, seconds=1.02))], args)
    regression.check(report, [("iris", pair_of({}, seconds=1.2))], args)
    assert [claim["held"] for claim in report.found["claims"][2:]] == [True, False, True, True, True, False]


def test_regression_knows_the_problems_of_its_bar():
    known = regression.entries()
    for name in regression.SHORT:
        assert [type(entry).__name__ for entry in known[name]] == ["Entry", "BinaryEntry"]


def test_regression_counts_instructions_of_rows_of_all_classes(split):
    order = np.argsort(split.y_train)
    sorted_rows = split._replace(X_train=split.X_train[order], y_train=split.y_train[order])
    few = regression.Case("iris", C, View(sorted_rows, GAMMA), ()).few_rows(9).view.split
    assert few.X_train.shape == (9, split.X_train.shape[1])
    assert set(few.y_train) == set(split.y_train)


@pytest.mark.slow
def test_regression_of_this_python_with_itself(report, split):
    """Both roles in processes of their own, every machine."""
    args = argparse.Namespace(counts=True, strict=False, threads=[1], solver="auto")
    case = regression.Case("iris", C, View(split, GAMMA), ("crammer-singer", "weston-watkins"))
    table = Table(regression.HEADS, regression.WIDTHS)
    found = regression.compare(report, table, case, {"base": None, "head": None}, args)
    assert [name for name, pair in found if pair.same] == [
        "iris, crammer-singer, 1",
        "iris, weston-watkins, 1",
    ]


@pytest.mark.slow
def test_regression_times_by_turns_in_fresh_processes(split):
    args = argparse.Namespace(repeats=2, pairs=1, at_least=0.0)
    case = regression.Case("iris", C, View(split, GAMMA), ("crammer-singer",))
    both = regression.contenders({"base": None, "head": None}, "crammer-singer", "auto")
    pair = regression.timed(case, both, 1, args)
    assert len(pair.base.seconds) == len(pair.head.seconds) >= 2
    assert pair.slower() > 0


def test_events_are_counted_or_not_at_all():
    """Whether this machine can count is its own affair; the action runs in any case."""
    ran = []
    count = count_events(lambda: ran.append(np.ones(10_000_000).sum()), "page-faults")
    assert ran == [1e7]
    assert count is None or count > 0
