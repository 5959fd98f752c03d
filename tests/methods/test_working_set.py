"""Selection rules, driven by a stand-in engine whose measures the test writes down."""

import itertools
import math

import numpy as np
import pytest
from helpers import audit
from oracle import kernel_matrix
from stand_in import StandIn

from multimargin import KernelSVC
from multimargin.inner import CoordinateDescent
from multimargin.methods.decomposition import Decomposition
from multimargin.methods.working_sets import COOLING, Cyclic, Gain, Growing, MaxViolator, Practical


def start(rule, engine, stop="psi", tol=1e-3):
    return rule.choose(engine, stop, tol, np.random.default_rng(0))


@pytest.mark.parametrize("q", [1, 3])
def test_max_violator_takes_the_largest_psi(q):
    engine = StandIn(psi=[0.1, 0.9, 0.0, 0.5, 0.7], gain=[9, 1, 1, 1, 1])
    choice = next(start(MaxViolator(q=q), engine))
    assert list(choice.W) == [1, 4, 3][:q]
    assert choice.violation == 0.9


@pytest.mark.parametrize("q", [1, 3])
def test_algorithm_2_takes_the_largest_gain(q):
    engine = StandIn(psi=[0.1, 0.9, 0.1, 0.5, 0.7], gain=[9, 1, 4, 2, 3])
    choice = next(start(Gain(q=q), engine))
    assert list(choice.W) == [0, 2, 4][:q]
    assert choice.gap == 19


@pytest.mark.parametrize("rule", [MaxViolator(q=2), Gain(q=2), Practical(q=4, n_new=2), Growing(), Cyclic()])
def test_ends_when_nothing_violates(rule):
    assert list(start(rule, StandIn(psi=[1e-3, 5e-4, 0.0]))) == []


@pytest.mark.parametrize("rule", [Gain(q=3), Practical(q=4, n_new=3)])
def test_stop_measure_is_relative_to_the_cost(rule):
    """Stopping on gain is max g_i / C_i <= tol, however large psi is."""
    engine = StandIn(psi=[5.0, 5.0, 5.0], gain=[0.9e-2, 0.5e-3, 0.0], C=[10.0, 1.0, 1.0])
    assert list(start(rule, engine, stop="gain")) == []
    engine = StandIn(psi=[5.0, 5.0, 5.0], gain=[0.9e-2, 0.5e-3, 0.0], C=[1.0, 1.0, 1.0])
    assert next(start(rule, engine, stop="gain")).violation == pytest.approx(0.9e-2)


def test_algorithm_4_inherits_free_then_zero_then_bounded():
    n = 12
    engine = StandIn(psi=np.ones(n), gain=np.arange(n, 0, -1))
    steps = start(Practical(q=6, n_new=3), engine, stop="gain")
    assert list(next(steps).W) == [0, 1, 2]
    # New worst: 9, 10, 11. Of the old ones 0 is bounded, 1 zero, 2 free.
    engine.gain = np.arange(n) + 1.0
    engine.group_of = np.array([2, 1, 0, *[0] * 9])
    assert list(next(steps).W) == [11, 10, 9, 2, 1, 0]
    # Room for three: the newcomers of the last step are free like 2, but have stayed one step less.
    engine.gain = np.where(np.isin(np.arange(n), [3, 4, 5]), 50.0, 1.0)
    third = next(steps).W
    assert set(third[:3]) == {3, 4, 5}
    assert set(third[3:]) == {9, 10, 11}


def test_algorithm_4_prefers_samples_that_stayed_fewest_iterations():
    n = 10
    engine = StandIn(psi=np.ones(n), gain=[10, 9, 1, 1, 1, 1, 1, 1, 1, 1])
    steps = start(Practical(q=4, n_new=2), engine, stop="gain")
    assert list(next(steps).W) == [0, 1]
    engine.gain = np.array([1, 1, 10, 9, 1, 1, 1, 1, 1, 1.0])
    assert list(next(steps).W) == [2, 3, 0, 1]  # 0, 1 in their second iteration
    engine.gain = np.array([1, 1, 1, 1, 10, 9, 1, 1, 1, 1.0])
    assert set(next(steps).W[2:]) == {2, 3}  # 2, 3 stayed one, 0, 1 stayed two
    # 0 comes back: its count starts again, so it is preferred to 2 and 3, now in the set for three.
    engine.gain = np.array([10, 1, 1, 1, 1, 1, 9, 1, 1, 1.0])
    assert list(next(steps).W[:2]) == [0, 6]
    engine.gain = np.array([1, 1, 1, 1, 1, 1, 1, 10, 9, 1.0])
    assert set(next(steps).W[2:]) == {0, 6}


def test_algorithm_4_groups_come_before_stays():
    n = 8
    engine = StandIn(psi=np.ones(n), gain=[10, 9, 1, 1, 1, 1, 1, 1], groups=[0, 0, 2, 2, 0, 0, 0, 0])
    steps = start(Practical(q=4, n_new=2), engine, stop="gain")
    next(steps)
    engine.gain = np.array([1, 1, 10, 9, 1, 1, 1, 1.0])
    next(steps)
    engine.gain = np.array([1, 1, 1, 1, 10, 9, 1, 1.0])
    assert set(next(steps).W[2:]) == {0, 1}  # free with two stays before bounded with one


def test_algorithm_4_never_repeats_a_sample():
    rng = np.random.default_rng(0)
    engine = StandIn(psi=np.ones(40), gain=rng.random(40), groups=rng.integers(3, size=40))
    for _, choice in zip(range(30), start(Practical(q=12, n_new=5), engine, stop="gain"), strict=False):
        assert len(set(choice.W)) == len(choice.W) <= 12
        engine.gain = rng.random(40)
        engine.group_of = rng.integers(3, size=40)


def test_active_set_is_exhausted_before_the_rest_is_examined():
    engine = StandIn(psi=[0.2, 5.0, 0.3, 9.0], support=[0, 2])
    steps = start(MaxViolator(active_set=True), engine)
    assert list(next(steps).W) == [2]
    assert {among for among, _ in engine.asked} == {"support"}
    engine.psi[[0, 2]] = 0.0
    assert list(next(steps).W) == [3]
    engine.supports = np.array([0, 2, 3])
    engine.psi[3] = 0.5
    assert list(next(steps).W) == [3]
    engine.psi[:] = 0.0
    assert list(steps) == []
    assert engine.asked[-1][0] == "rest"


def test_cooling_formulas():
    """Crammer & Singer, Section 7, epsilon_0 = 0.999."""
    for t in (0, 1, 5, 90):
        assert COOLING["exponential"](t) == pytest.approx(0.999 * math.exp(-t))
        assert COOLING["linear"](t) == pytest.approx(0.999 / (t + 1))
        assert COOLING["logarithmic"](t) == pytest.approx(0.999 / math.log10(t + 10))


@pytest.mark.parametrize("cooling", list(COOLING))
def test_cooling_never_rises_starts_loose_and_ends_at_tol(cooling):
    engine = StandIn(psi=np.linspace(0.0, 3.0, 50))
    for choice in start(MaxViolator(cooling=cooling), engine, tol=1e-3):
        engine.psi[choice.W] *= 0.5
    thresholds = [above for _, above in engine.asked]
    assert thresholds[0] == pytest.approx(0.999)
    assert thresholds[-1] == pytest.approx(1e-3)
    assert all(later <= sooner for sooner, later in itertools.pairwise(thresholds))
    assert engine.psi.max() <= 1e-3


def test_cooling_ignores_small_violators_at_first():
    engine = StandIn(psi=[0.5, 2.0])
    assert list(next(start(MaxViolator(q=2, cooling="logarithmic"), engine)).W) == [1]


def test_growing_keeps_all_support_vectors():
    rng = np.random.default_rng(1)
    engine = StandIn(psi=rng.random(500) + 1)
    steps = start(Growing(start=20, whole=499, least=10), engine)
    first = next(steps).W
    assert len(first) == len(set(first)) == 20
    engine.supports = np.sort(first[:15])
    engine.psi[first] = 0.0
    second = next(steps).W
    assert set(engine.supports) <= set(second)
    added = np.setdiff1d(second, engine.supports)
    assert set(added) == set(np.argsort(-engine.psi)[: len(added)])
    assert len(added) >= 10


@pytest.mark.parametrize(("n", "block", "size"), [(50, 10**6, 50), (51, 10**6, 8), (50, 30, 30), (51, 5, 5)])
def test_growing_starts_with_everyone_where_they_are_few(n, block, size):
    W = next(start(Growing(start=8, whole=50), StandIn(psi=np.ones(n), block=block))).W
    assert len(set(W)) == len(W) == size


def test_growing_respects_the_memory_budget_and_keeps_free_ones_first():
    n = 400
    engine = StandIn(
        psi=np.ones(n), support=np.arange(100), groups=np.where(np.arange(n) < 50, 2, 0), block=80
    )
    engine.psi[:100] = 0.0
    W = next(start(Growing(least=30), engine)).W
    assert len(W) == 80
    assert len(set(W) & set(range(50))) == 0  # bounded ones wait


@pytest.mark.parametrize(
    ("keeps", "anew", "newcomers"), [(True, 1.0, 50), (False, 1.0, 100), (False, None, 50)]
)
def test_growing_takes_more_where_no_rows_are_kept(keeps, anew, newcomers):
    engine = StandIn(psi=np.ones(1000), support=np.arange(100))
    engine.psi[:100] = 0.0
    engine.keeps_rows = keeps
    W = next(start(Growing(share=0.5, share_anew=anew, least=10), engine)).W
    assert len(W) == 100 + newcomers


def test_cyclic_visits_everyone_in_turn():
    engine = StandIn(psi=np.ones(7))
    steps = start(Cyclic(q=3), engine)
    assert [list(next(steps).W) for _ in range(4)] == [[0, 1, 2], [3, 4, 5], [6], [0, 1, 2]]


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        (MaxViolator, {"q": 0}),
        (Gain, {"q": 1.5}),
        (MaxViolator, {"cooling": "frosty"}),
        (Practical, {"q": 4, "n_new": 5}),
        (Practical, {"n_new": 0}),
        (Cyclic, {"q": -1}),
    ],
)
def test_impossible_rules_are_refused(rule, settings):
    with pytest.raises(ValueError, match="|".join(settings)):
        rule(**settings)


RULES = [
    MaxViolator(),
    MaxViolator(q=5),
    MaxViolator(active_set=True),
    *(MaxViolator(active_set=True, cooling=cooling) for cooling in COOLING),
    Gain(),
    Gain(q=5),
    Gain(active_set=True, cooling="linear"),
    Practical(q=10, n_new=4),
    Practical(q=3, n_new=3),
    Growing(start=4, least=2),
    Cyclic(),
    Cyclic(q=7),
]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_rule_reaches_the_optimum(rule, iris):
    X, y = iris
    solver = Decomposition(rule, CoordinateDescent())
    model = KernelSVC(C=2.0, gamma=0.3, solver=solver, tol=1e-4).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.3), y, 2.0, 1e-4)


@pytest.mark.parametrize("became, block, second", [(39, 10**6, 100), (30, 10**6, 46), (39, 99, 55)])
def test_growing_to_everyone(became, block, second):
    """Where most of the first set became support vectors, all samples are next, if their block fits."""
    engine = StandIn(np.ones(100), block=block)
    rule = Growing(start=40, whole=10, share=0.1, least=16, everyone=0.9)
    sets = rule.choose(engine, "psi", 0.1, np.random.default_rng(0))
    first = next(sets).W
    engine.supports = first[:became]
    assert (len(first), len(next(sets).W)) == (40, second)
