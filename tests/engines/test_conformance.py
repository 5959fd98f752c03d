"""Every verb of the engine seam against its definition, for every engine.

The definitions are the oracle's and plain NumPy's, from X, y, C, alpha and the bias alone. What an engine
holds is read through the seam: ``found`` gives alpha, and everything else must follow from it.
"""

import math
from itertools import product

import numpy as np
import pytest
from held import EXACT, HERE, WAYS, Held, every_machine, every_way, make_engine
from oracle import (
    ZERO_SHARE,
)

from multimargin.engines import ENGINES, find_engine
from multimargin.engines.base import Task
from multimargin.inner import CoordinateDescent
from multimargin.inner.block import Aim
from multimargin.kernels import make_kernel
from multimargin.problems import PROBLEMS


def test_every_engine_is_tested():
    assert {engine for engine, _, _ in WAYS.values()} == {*ENGINES, "columns"}


# -- the state ------------------------------------------------------------------------------------------
@every_way
@every_machine
@pytest.mark.parametrize("start", ["zero", "random", "vertex"])
@pytest.mark.parametrize("offset", [0.0, 1.5])
def test_start(way, machine, start, offset):
    held = Held(way, machine, start, offset=offset)
    engine = held.engine
    with engine.running():
        assert (engine.n, engine.m, engine.offset) == (24, held.columns, offset)
        assert engine.problem.name == machine
        assert engine.total_cost == pytest.approx(held.C.sum(), rel=1e-14)
        np.testing.assert_array_equal(engine.bias, held.bias)
        if start == "zero":
            assert engine.dual == 0.0
        held.assert_certificate(engine.certificate(), EXACT)
        held.assert_certificate(engine.prove(), EXACT)
        np.testing.assert_array_equal(held.alpha, held.start)


@every_way
@every_machine
@pytest.mark.parametrize("offset", [0.0, 1.5])
def test_found(way, machine, offset):
    held = Held(way, machine, offset=offset)
    ids, coef, loss, intercept = held.engine.found()
    np.testing.assert_array_equal(ids, np.flatnonzero(held.start.any(axis=1)))
    np.testing.assert_array_equal(coef, held.start[ids])
    scores = held.K @ held.start + held.bias
    short, pair = held.margin.shortfall(scores, held.y), held.margin.pairs(held.y, held.columns)
    np.testing.assert_allclose(loss, held.cost.loss(short, pair, np.ones(24))[ids], atol=1e-10)
    np.testing.assert_allclose(intercept, held.bias + offset * held.start.sum(axis=0), atol=1e-12)


@every_way
def test_a_start_is_not_written_to(way):
    held = Held(way, "crammer-singer")
    before, given = held.start.copy(), held.engine.task.alpha
    with held.engine.running():
        held.engine.improve(np.arange(8), CoordinateDescent(), Aim(1e-8))
    np.testing.assert_array_equal(before, held.start)
    assert given is not held.start


def off_diagonal(A, B):
    """1 for equal samples, else NaN."""
    return np.where(A[:, :1] == B[:, 0], 1.0, np.nan)


@every_way
@pytest.mark.parametrize(
    ("kernel", "size", "said"),
    [("poly", 1e200, "K.x, x. is not finite"), (off_diagonal, 1.0, "NaN or infinite")],
)
def test_a_kernel_without_finite_values_is_refused(way, kernel, size, said):
    X, y = size * np.arange(1.0, 9.0).reshape(4, 2), np.array([0, 1, 2, 0], dtype=np.int32)
    kernel = make_kernel(kernel, degree=3, gamma=1.0, coef0=0.0).resolve(X, None)
    alpha = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, -1.0, 1.0], [0.0, 0.0, 0.0]])
    task = Task(PROBLEMS["crammer-singer"](3), kernel, X, y, np.ones(4), 0.0, (np.arange(4), alpha))
    with pytest.raises(ValueError, match=said), np.errstate(all="ignore"):
        make_engine(way, task)


# -- look -----------------------------------------------------------------------------------------------
@every_way
@every_machine
@pytest.mark.parametrize(("rank", "stop"), list(product(("psi", "gain"), repeat=2)))
@pytest.mark.parametrize("among", ["all", "support", "rest"])
def test_select(way, machine, rank, stop, among):
    held = Held(way, machine)
    truth = held.truth(held.start, held.bias)
    value = truth.psi / truth.kappa if stop == "psi" else held.closeness(truth)
    score = truth.psi if rank == "psi" else truth.gain
    inside = held.start.any(axis=1)
    looked = {"support": inside, "rest": ~inside}.get(among, np.ones(24, dtype=bool))
    for above, k in product((0.0, float(np.median(value)), float(value.max()) + 1), (1, 5, 100)):
        able = looked & (value > above) & (score > 0)
        found = held.engine.select(k, rank=rank, stop=stop, above=above, among=among)
        expected = np.flatnonzero(able)[np.argsort(-score[able], kind="stable")][:k]
        np.testing.assert_allclose(score[found.ids], score[expected], rtol=1e-8, atol=1e-12)
        assert len(set(found.ids.tolist())) == len(found.ids)
        assert able[found.ids].all()
        assert found.violation == pytest.approx(value[looked].max(), rel=1e-8, abs=1e-12)
        assert found.above == able.sum()
        if among == "all":
            assert found.gap == pytest.approx(truth.gain.sum(), rel=1e-9)
        else:
            assert math.isnan(found.gap)


@every_way
@every_machine
def test_select_evenly(way, machine):
    """Of every class its worst samples, as many as there are up to its share of k."""
    held = Held(way, machine)
    truth = held.truth(held.start, held.bias)
    for k in (1, held.classes, 2 * held.classes + 1, 100):
        found = held.engine.select(k, above=1e-9, even=True)
        share = math.ceil(k / held.classes)
        for label in range(held.classes):
            able = np.flatnonzero((held.y == label) & (truth.psi > 1e-9 * truth.kappa))
            expected = able[np.argsort(-truth.psi[able], kind="stable")][:share]
            np.testing.assert_array_equal(found.ids[held.y[found.ids] == label], expected)
        assert held.y[found.ids[: held.classes]].tolist() == sorted(set(held.y[found.ids].tolist()))


@every_way
def test_select_among_nobody(way):
    held = Held(way, "crammer-singer", "zero")
    found = held.engine.select(5, among="support")
    assert (len(found.ids), found.violation, found.above) == (0, 0.0, 0)
    assert math.isnan(found.gap)


@pytest.mark.slow
@every_way
@every_machine
def test_near_samples_are_enough(way, machine):
    """Whoever is looked at, samples above the threshold are found as long as there are any."""
    n = 24 if way == "numpy" else 60
    held = Held(way, machine, "zero", n=n, bias=False, cache_bytes=40_000, working_set=n)
    tol = 0.02
    with held.engine.running():
        for _ in range(200):
            found = held.engine.select(6, above=tol, among="near")
            truth = held.truth()
            value = truth.psi / truth.kappa
            assert found.violation <= value.max() + held.accuracy
            assert (value[found.ids] > tol - held.accuracy).all()
            assert np.isnan(found.gap) or found.gap == pytest.approx(truth.gain.sum(), rel=1e-3)
            if not len(found.ids):
                break
            W = np.union1d(found.ids, held.rng.permutation(n)[: n // 2])
            held.engine.improve(W, held.inner(), Aim(1e-3))
            if machine == "c-svc":
                held.engine.centre()
        assert not len(found.ids)
        assert value.max() <= tol + held.accuracy


@every_way
@every_machine
@pytest.mark.parametrize("reach", [0.0, 0.5, 3.0, math.inf])
def test_support(way, machine, reach):
    """With a reach, only samples may be left out that are at their bounds and stay there: their conditions
    hold at every corner of the cube of gradients that are ``reach`` away."""
    held = Held(way, machine, "vertex", n=40)
    everyone = np.flatnonzero(held.start.any(axis=1))
    found = held.engine.support(reach)
    assert (np.diff(found) > 0).all()
    if math.isinf(reach):
        np.testing.assert_array_equal(found, everyone)
        return
    assert set(found) <= set(everyone)
    settled = np.ones(40, dtype=bool)
    beta, pair = held.margin.lower(held.start, held.y), held.margin.pairs(held.y, held.columns)
    for corner in product((-reach, reach), repeat=held.columns):
        scores = held.K @ held.start + held.bias + np.array(corner)
        short = held.margin.shortfall(scores, held.y)
        settled &= held.cost.violation(short, beta, pair, held.C) <= 1e-12
    assert settled[np.setdiff1d(everyone, found)].all()


@every_way
@every_machine
@pytest.mark.parametrize("start", ["zero", "random", "vertex"])
def test_groups(way, machine, start):
    held = Held(way, machine, start)
    beta = held.margin.lower(held.start, held.y)
    load, slack = held.cost.load(beta), ZERO_SHARE * held.C[:, None]
    zero = ~held.start.any(axis=1)
    if machine == "crammer-singer":  # bounded: all of C_i is in use
        bounded = load[:, 0] >= held.C * (1 - ZERO_SHARE)
    else:  # bounded: no multiplier off its bounds
        most = held.C[:, None] if load.shape[1] else np.inf
        bounded = ~((beta > slack) & (beta < most - slack)).any(axis=1)
    ids = held.rng.permutation(24)[:15]
    expected = np.where(zero, 1, np.where(bounded, 2, 0))
    np.testing.assert_array_equal(held.engine.groups(ids), expected[ids])


def pulls(held):
    """-G of those that may grow and G of those that may shrink, else -inf."""
    G = held.K @ held.start + held.bias - (2.0 * held.y - 1)[:, None]
    alpha, high = held.start[:, 0], held.C * (held.y == 1)
    slack = ZERO_SHARE * held.C
    up = np.where(alpha < high - slack, -G[:, 0], -np.inf)
    return up, np.where(alpha > high - held.C + slack, G[:, 0], -np.inf)


@every_way
@pytest.mark.parametrize("most", [1, 3, 100])
def test_pairs(way, most):
    """Disjoint pairs of descent, the steepest first: nobody left over is steeper."""
    held = Held(way, "c-svc")
    up, down = held.engine.pairs(most)
    grows, shrinks = pulls(held)
    assert len(up) == len(down) <= most
    assert len({*up.tolist(), *down.tolist()}) == 2 * len(up) > 0
    slope = grows[up] + shrinks[down]
    assert (slope > 0).all()
    assert (np.diff(grows[up]) <= 0).all() and (np.diff(shrinks[down]) <= 0).all()
    assert grows[up[0]] == grows.max()
    assert shrinks[down[0]] == shrinks[np.arange(24) != up[0]].max()
    rest = np.setdiff1d(np.arange(24), [*up, *down])
    if len(up) < most:
        assert grows[rest].max(initial=-np.inf) + shrinks[rest].max(initial=-np.inf) <= 0
    else:
        assert grows[rest].max() <= grows[up].min() and shrinks[rest].max() <= shrinks[down].min()


@every_way
def test_pairs_of_second_order(way):
    """The steepest pair, then those that gain most with one of the two: slope² / curvature."""
    held = Held(way, "c-svc")
    (i,), (j,) = held.engine.pairs(1)
    up, down = held.engine.pairs(4, second_order=True)
    assert (up[0], down[0]) == (i, j)
    grows, shrinks = pulls(held)
    diagonal = np.diag(held.K)
    with_i = np.maximum(grows[i] + shrinks, 0) ** 2 / (diagonal[i] + diagonal - 2 * held.K[i] + 1e-300)
    with_j = np.maximum(grows + shrinks[j], 0) ** 2 / (diagonal[j] + diagonal - 2 * held.K[j] + 1e-300)
    for chosen, gain in ((up[1:], with_j), (down[1:], with_i)):
        rest = np.setdiff1d(np.arange(24), [*up, *down])
        assert (gain[chosen] > 0).all()
        assert (np.diff(gain[chosen]) <= 1e-9).all()
        assert gain[rest].max() <= gain[chosen].min() * (1 + 1e-9)


@every_way
def test_draw(way):
    held = Held(way, "crammer-singer")
    first, again = (held.engine.draw(5, np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert len(set(first.tolist())) == 5
    rng = np.random.default_rng(4)
    drawn = np.concatenate([held.engine.draw(5, rng) for _ in range(40)])
    assert set(drawn.tolist()) == set(range(24))
    assert sorted(held.engine.draw(1000, rng).tolist()) == list(range(24))


@every_way
def test_largest_block(way):
    """Its kernel values fit; more memory or a larger share of it makes room for more."""
    small, large, larger = (
        Held(way, "crammer-singer", cache_bytes=size << 20, block_share=share).engine.largest_block()
        for size, share in ((1000, 0.2), (1000, 0.8), (4000, 0.8))
    )
    assert 0 < small < large < larger
    assert 4 * large**2 <= 0.8 * (1000 << 20)
    least = Held(way, "crammer-singer", cache_bytes=5600, working_set=24)
    assert least.engine.largest_block() == 24
    assert Held(way, "crammer-singer", cache_bytes=1000, working_set=None).engine.largest_block() < 24


@every_way
def test_counts_and_facts(way):
    held = Held(way, "crammer-singer", "zero")
    engine = held.engine
    assert engine.counts() == (0, 0, 0, 0)
    with engine.running():
        engine.improve(np.arange(10), CoordinateDescent(), Aim(1e-6))
        first = engine.counts()
        engine.improve(np.arange(5, 15), CoordinateDescent(), Aim(1e-6))
        second = engine.counts()
    assert first.rows > 0
    assert all(later >= sooner for sooner, later in zip(first[:3], second[:3], strict=True))
    assert second.support == len(engine.support()) > 0
    facts = engine.describe()
    assert facts["engine"] == engine.name
    assert facts["n_threads"] == WAYS[way][1].get("n_threads", 1)
    assert facts["row_dtype"] == WAYS[way][1].get("dtype", "float64")


@every_way
def test_everyone_agrees_with_the_first_process(way):
    engine = Held(way, "crammer-singer").engine
    assert engine.agree({"seed": 3}) == {"seed": 3}


@pytest.mark.parametrize("name", ENGINES)
def test_a_team_of_one_agrees_with_itself(name):
    value = object()
    assert find_engine(name).assemble().agree(value) is value


@every_way
def test_samples(way):
    """Rows of X, whoever holds them."""
    held, ids = Held(way, "crammer-singer"), np.array([23, 0, 11, 12, 5])
    np.testing.assert_array_equal(held.engine.samples(ids), held.X[ids])


# -- engines among themselves ---------------------------------------------------------------------------
@pytest.mark.slow
@every_machine
def test_all_engines_reach_one_optimum(machine):
    """A whole problem in one block: the same scores and dual, whatever the engine."""
    found = []
    for way in HERE:
        held = Held(way, machine, "zero", bias=False)
        with held.engine.running():
            for _ in range(2):
                held.engine.improve(np.arange(24), held.inner(), Aim(1e-6))
            found.append((held.engine.prove().dual, held.K @ held.alpha))
    for dual, scores in found[1:]:
        assert dual == pytest.approx(found[0][0], rel=1e-6)
        np.testing.assert_allclose(scores, found[0][1], atol=1e-3)
