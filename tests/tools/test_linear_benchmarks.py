"""The benchmarks of the linear machine: contenders meet one gap, figures and tables have the right shape."""

import argparse
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from multimargin import LinearSVC

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.checks import linear_scale
from benchmarks.lib.arena import Arena, Limits, View
from benchmarks.lib.contenders import LINEAR, ONE, SAME_CODE, TWO
from benchmarks.lib.linear_data import TEXT, stratified_splits
from benchmarks.lib.passes import METHODS
from benchmarks.lib.scoring import Coefficients, Weights, judge, primal
from benchmarks.papers import blondel_figures, blondel_table2
from benchmarks.peers import linear
from benchmarks.workers.storage import Split

C = 2.0


@pytest.fixture(scope="module")
def text():
    """Unit rows of word counts, six classes of different size."""
    X, y = linear_scale.synthetic(400, features=300, stored=12, m=6)
    return X.astype(np.float64), y


@pytest.fixture
def small_text(text, monkeypatch):
    monkeypatch.setattr(blondel_figures, "all_rows", lambda name: text)


def test_weights_and_coefficients_of_a_linear_model_are_judged_alike(split):
    model = LinearSVC(C=C, fit_intercept=False, tol=1e-4).fit(split.X_train, split.y_train)
    found = Coefficients(model.support_, model.dual_coef_.toarray(), model.classes_)
    judgement, labels = judge(found, split, C, None)
    assert judgement.certified(1e-4)
    assert judgement.gap == pytest.approx(model.duality_gap_, rel=1e-6, abs=1e-9)
    assert primal(Weights(model.coef_, model.classes_), split, C) == pytest.approx(judgement.primal)
    np.testing.assert_array_equal(labels, model.predict(split.X_test))


@pytest.mark.parametrize("start", [1, 0.02, 1e-5])
def test_the_loosest_tolerance_that_meets_a_gap_is_found_from_anywhere(start):
    assert linear.loosest(lambda tol: tol / 10, 2e-3, start) == 0.02


def test_no_tolerance_is_better_than_a_wrong_one():
    assert linear.loosest(lambda tol: 1.0, 1e-3, 0.1) is None
    assert linear.loosest(lambda tol: None, 1e-3, 0.1) is None


@pytest.mark.slow
def test_linear_contenders_meet_the_gap_with_tolerances_of_their_own(text, report):
    X, y = text
    entrants = [LINEAR[ONE], LINEAR[TWO], SAME_CODE]
    entry = linear.Entry("text", {1e-3: 1e-6}, {1e-3: 0.05})
    args = argparse.Namespace(repeats=1, patience=9.0, cap=60.0, full=False, short=False)
    with Arena({"scaled": View(Split(X, y, X[:2], y[:2]), None)}, entrants, threads=2) as arena:
        ring = linear.Ring(arena, args.cap)
        assert ring.reference(1e-5).gap < 1e-5
        tols = linear.search(ring, entry, 1e-3, args)
        assert tols.keys() == {ONE, TWO, SAME_CODE.name}
        for name, tol in tols.items():
            assert 0 <= ring.run(name, tol).judged <= 1e-3
        linear.race(ring, entry, 1e-3, tols, report, args)
    within = [claim["held"] for claim in report.found["claims"] if "float64" in claim["claim"]]
    assert within == [True, True]


@pytest.mark.skipif(LINEAR["LIBLINEAR -s 4"].missing() is not None, reason="LIBLINEAR has no environment")
def test_liblinear_hands_over_its_weights(text):
    X, y = text
    split = Split(X, y + 3, X[:2], y[:2] + 3)
    with Arena({"scaled": View(split, None)}, [LINEAR["LIBLINEAR -s 4"]], threads=1) as arena:
        (result,) = arena.measure(1.0, Limits(repeats=1), tol=1e-4).values()
    exact = LinearSVC(fit_intercept=False, tol=1e-4).fit(X, y + 3)
    assert primal(result.weights, split, 1.0) == pytest.approx(exact.primal_objective_, rel=1e-3)


@pytest.mark.parametrize("prepare", TEXT.values(), ids=TEXT)
def test_text_has_rows_of_length_one(prepare):
    counts = sp.csr_matrix(np.random.default_rng(0).poisson(0.4, size=(30, 40)).astype(float))
    np.testing.assert_allclose(sp.linalg.norm(prepare(counts), axis=1), 1)


def test_table_of_few_passes(text, report):
    found = blondel_table2.measure(stratified_splits(*text, 2), repeats=1)
    assert found.keys() == {(method, passes) for method in METHODS for passes in (1, 3, 5)}
    exact = [found[method, 5]["accuracy"] for method in ("sort", "pivot", "smo")]
    np.testing.assert_allclose(exact, exact[:1] * 3, atol=5)
    blondel_table2.print_rows("News20", "log", found)
    blondel_table2.check(report, "text", found)
    assert len(report.found["claims"]) == 2


def test_subsets_of_classes_have_the_same_number_of_rows(text):
    X, y = text
    rows = blondel_figures.subset(X, y, 2, None).n
    for m in (2, 4, 6):
        split = blondel_figures.subset(X, y, m, rows)
        assert split.n == rows
        assert len(np.unique(split.y_train)) == m


@pytest.mark.slow
@pytest.mark.usefixtures("small_text")
def test_figures_of_the_linear_machine(text, report):
    curves = blondel_figures.figure2(report, "text", (2, 6), repeats=1)
    assert all(len(xs) == len(ys) == 2 for xs, ys in curves.values())
    splits = stratified_splits(*text, 1)
    curves = blondel_figures.figure3(report, "text", splits[0], passes=30)
    assert all(len(xs) == len(ys) == 30 for xs, ys in curves.values())
    blondel_figures.figure4(report, splits, (0.1, 10.0, 1000.0))
    held = {claim["claim"]: claim["held"] for claim in report.found["claims"]}
    assert held["text: no τ has a lower dual than an exact method after 30 passes"]


def test_synthetic_rows_are_sorted_and_distinct():
    X, y = linear_scale.synthetic(50, features=400, stored=10, m=4)
    steps = np.diff(X.indices.reshape(50, 10), axis=1)
    assert (steps > 0).all()
    assert X.indices.max() < 400
    assert set(np.unique(y)) <= set(range(4))
    np.testing.assert_allclose(sp.linalg.norm(X, axis=1), 1, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_scale_reports_memory_and_seconds_of_one_pass(text, tmp_path):
    X, y = text
    for name, part in zip(linear_scale.FILES, (X.data, X.indices, X.indptr, y), strict=True):
        np.save(tmp_path / f"{name}.npy", part)
    found = linear_scale.run(tmp_path, X.shape[1], threads=1)
    assert found["peak_mb"] >= found["before_mb"] > 0
    assert found["seconds"] >= found["pass_seconds"] > 0
    assert found["coef_mb"] == pytest.approx(6 * 300 * 8 / 1e6)
