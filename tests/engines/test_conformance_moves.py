"""Verbs of the engine seam that move the point, against their definitions, for every engine."""

import numpy as np
import pytest
from held import EXACT, OTHERS, Held, every_machine, every_way
from oracle import (
    MACHINES,
    assert_feasible,
    least_violation,
)
from oracle import best_bias as best_binary_bias

from multimargin.inner import CoordinateDescent, FrankWolfe, PairDescent, ProjectedGradient
from multimargin.inner.block import Aim


# -- move -----------------------------------------------------------------------------------------------
@every_way
@every_machine
@pytest.mark.parametrize("q", [1, 2, 9, 24])
@pytest.mark.parametrize("keep", [False, True])
def test_improve(way, machine, q, keep):
    """The block is solved as exactly as asked, the others stay, and alpha, G and the dual belong together."""
    held = Held(way, machine, offset=0.5)
    W = held.rng.permutation(24)[:q]
    before, dual = held.left(W), held.engine.dual
    with held.engine.running():
        steps, moved = held.engine.improve(W, held.inner(), Aim(1e-4), keep)
        alpha, others = held.alpha, np.setdiff1d(np.arange(24), W)
        np.testing.assert_array_equal(alpha[others], held.start[others])
        assert moved is not np.array_equal(alpha, held.start)
        if machine == "c-svc":  # the sum is kept
            rounding = 0.1 * held.accuracy * held.C.sum()
            assert alpha.sum() == pytest.approx(held.start.sum(), rel=0, abs=rounding)
        if before > 1e-3:
            assert steps > 0 and moved
            assert held.engine.dual < dual
        assert held.left(W) <= 1e-4 + held.accuracy
        held.assert_consistent()


@every_way
@every_machine
def test_improve_as_far_as_asked(way, machine):
    """A share of the block's own violation, but never beyond the least."""
    for aim in (Aim(least=0.0, share=0.5), Aim(least=0.05, share=1e-3)):
        held = Held(way, machine, "random", bias=False)
        W = np.arange(12)
        with held.engine.running():
            truth = held.truth()
            start = truth.psi[W].max() / truth.kappa
            held.engine.improve(W, held.inner(), aim)
            assert held.left(W) <= max(aim.share * start, aim.least) + held.accuracy
            assert held.left(W) < start
            held.assert_consistent()


INNER = {
    "coordinate descent": CoordinateDescent(),
    "with faces": CoordinateDescent("sort", relax=1.2, reach=0.1, faces=True),
    "projected gradient": ProjectedGradient(),
    "frank-wolfe": FrankWolfe(),
}


@every_way
@pytest.mark.parametrize("machine", OTHERS)
@pytest.mark.parametrize("inner", INNER)
def test_improve_by_every_solver(way, machine, inner):
    held = Held(way, machine, "random")
    W = held.rng.permutation(24)[:10]
    with held.engine.running():
        before = held.engine.dual
        assert held.engine.improve(W, INNER[inner], Aim(0.05)).moved
        assert held.engine.dual < before
        held.assert_consistent()


@pytest.mark.slow
@every_way
@every_machine
@pytest.mark.parametrize("lazy", [False, True])
def test_a_long_series_of_working_sets(way, machine, lazy):
    """Growing, shrinking and disjoint sets, kept or not: the state is that of alpha, and the dual falls."""
    n = 24 if way == "numpy" else 60
    held = Held(way, machine, "zero", bias=False, n=n, lazy_blocks=lazy, cache_bytes=40_000, working_set=n)
    with held.engine.running():
        duals = [held.engine.dual]
        for k, share in enumerate((0.1, 0.2, 0.3, 0.5, 1.0, 0.1, 0.4, 1.0, 0.2, 0.7)):
            W = np.sort(held.rng.permutation(n)[: int(share * n)])
            held.engine.improve(W, held.inner(), Aim(1e-4), keep=k % 3 != 2)
            duals.append(held.engine.dual)
            held.assert_certificate(held.engine.certificate(), 10 * held.accuracy)
        assert (np.diff(duals) <= 1e-9).all()
        held.assert_consistent()


@every_way
@every_machine
def test_past_the_deadline(way, machine):
    """Solvers end soon, with a point that is feasible and no worse."""
    held = Held(way, machine, "random", bias=False)
    inner = PairDescent() if machine == "c-svc" else CoordinateDescent(max_sweeps=100)
    with held.engine.running():
        before = held.engine.dual
        held.engine.deadline = 0.0
        held.engine.improve(np.arange(24), inner, Aim(0.0))
        assert held.engine.dual <= before + 1e-12
        held.assert_consistent()


@every_way
@pytest.mark.parametrize("start", ["zero", "random"])
def test_leap(way, start):
    """Either nothing happens, or the point is better, and feasible."""
    held = Held(way, "crammer-singer", start, bias=False, n=80)
    before = held.engine.dual, held.alpha
    with held.engine.running():
        if held.engine.leap(1e-3):
            assert held.engine.dual < before[0]
        else:
            assert held.engine.dual == before[0]
            np.testing.assert_array_equal(held.alpha, before[1])
        held.assert_consistent()


# -- the bias -------------------------------------------------------------------------------------------
@every_way
@every_machine
def test_sums_and_shift(way, machine):
    held = Held(way, machine)
    np.testing.assert_allclose(held.engine.sums(), held.start.sum(axis=0), atol=1e-12)
    change = held.rng.normal(size=held.columns)
    change -= change.mean() * held.margin.centred
    with held.engine.running():
        held.engine.shift(change)
        np.testing.assert_allclose(held.engine.bias, held.bias + change, rtol=1e-14)
        np.testing.assert_array_equal(held.alpha, held.start)
        held.assert_certificate(held.engine.certificate(), EXACT)
        held.assert_certificate(held.engine.prove(), EXACT)


@every_way
@pytest.mark.parametrize("start", ["zero", "random", "even"])
def test_centre(way, start):
    """No bias has a smaller largest violation."""
    held = Held(way, "c-svc", start)
    with held.engine.running():
        held.engine.centre()
        least = least_violation(held.K @ held.start, held.y, held.start, held.C)
        assert held.engine.certificate().violation == pytest.approx(least, abs=1e-10)
        held.assert_certificate(held.engine.certificate(), EXACT)


def assert_best_bias(held, alpha):
    """The primal is convex in the bias: no step from the engine's makes it smaller."""
    best = held.truth(alpha).primal
    if held.machine == "c-svc":
        other = best_binary_bias(held.K @ alpha, held.y, held.C)
        assert best <= held.truth(alpha, other).primal * (1 + 1e-12)
    for size in (1e-5, 1e-3, 0.1, 1.0):
        for step in held.rng.normal(size=(12, held.columns)) * size:
            step -= step.mean() * held.margin.centred
            assert held.truth(alpha, held.engine.bias + step).primal >= best * (1 - 1e-9)


@pytest.mark.slow
@every_way
@every_machine
@pytest.mark.parametrize("start", ["random", "even"])
def test_best_bias(way, machine, start):
    held, twin = Held(way, machine, start), Held(way, machine, start)
    with held.engine.running():
        held.engine.best_bias()
        assert_best_bias(held, held.start)
        held.assert_certificate(held.engine.certificate(), EXACT)
        twin.engine.best_bias(0.01)
        change = np.clip(held.engine.bias - held.bias, -0.01, 0.01)
        np.testing.assert_allclose(twin.engine.bias, held.bias + change, atol=1e-12)


@every_way
@every_machine
def test_balance(way, machine):
    held = Held(way, machine, "even")
    with held.engine.running():
        assert held.engine.balance()
        assert np.abs(held.engine.sums()).max() <= 1e-12 * held.C.sum()
        np.testing.assert_array_equal(held.engine.bias, held.bias)
        assert_feasible(held.alpha, held.y, held.C, machine=machine, free=True)
        held.assert_consistent()


@every_way
@pytest.mark.parametrize("machine", [machine for machine in MACHINES if machine != "msvm2"])
def test_no_room_to_balance(way, machine):
    held = Held(way, machine, "vertex", seed=1)
    assert np.abs(held.start.sum(axis=0)).max() > 0.1
    with held.engine.running():
        dual = held.engine.dual
        assert not held.engine.balance()
        np.testing.assert_array_equal(held.alpha, held.start)
        assert held.engine.dual == dual
        held.assert_consistent()


@pytest.mark.slow
@every_way
@every_machine
@pytest.mark.parametrize("start", ["zero", "random", "even", "vertex"])
def test_zero_sums(way, machine, start):
    """From anywhere: class sums of zero, feasible rows, the best bias, and so a true duality gap."""
    held = Held(way, machine, start)
    with held.engine.running():
        held.engine.zero_sums()
        assert np.abs(held.engine.sums()).max() <= 1e-12 * held.C.sum()
        alpha = held.alpha
        assert_feasible(alpha, held.y, held.C, machine=machine, free=True)
        assert_best_bias(held, alpha)
        held.assert_consistent()
        proof = held.engine.certificate()
        assert proof.gap == pytest.approx(proof.primal + proof.dual, abs=1e-9 * (1 + proof.primal))
