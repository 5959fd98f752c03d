"""Every verb of the engine seam against its definition, for every engine.

The definitions are the oracle's and plain NumPy's, from X, y, C, alpha and the bias alone. What an engine
holds is read through the seam: ``found`` gives alpha, and everything else must follow from it.
"""

import math
from itertools import product

import numpy as np
import pytest
from oracle import (
    MACHINES,
    ZERO_SHARE,
    assert_feasible,
    certify,
    kernel_matrix,
    least_violation,
    random_point,
)
from oracle import best_bias as best_binary_bias

from multimargin.engines import ENGINES, EngineOptions, find_engine
from multimargin.engines.base import LowRank, Task
from multimargin.inner import CoordinateDescent, FrankWolfe, PairDescent, ProjectedGradient
from multimargin.inner.block import Aim
from multimargin.kernels import make_kernel
from multimargin.problems import PROBLEMS

# name: (engine, options, how far G may be from its definition after steps, relative)
WAYS = {
    "numpy": ("numpy", {}, 1e-10),
    "cpu": ("cpu", {"dtype": "float64"}, 1e-10),
    "cpu, two threads": ("cpu", {"dtype": "float64", "n_threads": 2}, 1e-10),
    "cpu, float32 rows": ("cpu", {"dtype": "float32"}, 1e-5),
    "cpu, few rows kept": (
        "cpu",
        {"dtype": "float64", "cache_bytes": 5600, "working_set": 24, "shrinking": False},
        1e-10,
    ),
}
every_way = pytest.mark.parametrize("way", WAYS)
every_machine = pytest.mark.parametrize("machine", MACHINES)
OTHERS = [machine for machine in MACHINES if machine != "c-svc"]
EXACT = 1e-10  # where float64 is promised


def test_every_engine_is_tested():
    assert {engine for engine, _, _ in WAYS.values()} == set(ENGINES)


class Held:
    """An engine, and the problem and point that were given to it.

    ``start`` is "zero", "random" (a third of the variables at each bound), "even" (small sums, most variables
    off their bounds) or "vertex" (no variable off its bounds).
    """

    def __init__(self, way, machine, start="random", *, bias=True, n=24, offset=0.0, seed=0, **changes):
        name, options, self.accuracy = WAYS[way]
        self.rng = rng = np.random.default_rng(seed)
        self.machine, self.n, self.classes = machine, n, 2 if machine == "c-svc" else 4
        self.columns = 1 if machine == "c-svc" else self.classes
        self.X = rng.normal(size=(n, 3))
        self.y = rng.permutation(np.arange(n) % self.classes).astype(np.int32)
        self.C = 10.0 ** rng.uniform(-1, 0.5, n)
        self.K = kernel_matrix("rbf", self.X, gamma=0.3, offset=offset)
        self.margin, self.cost, _ = MACHINES[machine]
        self.bias = np.zeros(self.columns)
        if bias:
            b = rng.normal(size=self.columns)
            self.bias = b - b.mean() * self.margin.centred
        kernel = make_kernel("rbf", degree=3, gamma=0.3, coef0=0.0).resolve(self.X, None)
        problem = PROBLEMS[machine](self.classes)
        self.start = self.point(start)
        given = np.arange(n), self.start
        task = Task(problem, kernel, self.X, self.y, self.C, offset, given, self.bias.copy())
        self.engine = find_engine(name)(task, EngineOptions(**{"seed": 3, **options, **changes}))

    def point(self, start):
        alpha = random_point(self.machine, self.y, self.columns, self.C, self.rng)
        alpha[self.rng.random(self.n) < 0.3] = 0.0
        if start == "zero":
            return np.zeros_like(alpha)
        beta = self.margin.lower(alpha, self.y)
        pair = self.margin.pairs(self.y, self.columns)
        if start == "even":
            beta = pair * self.rng.uniform(0.2, 0.25, beta.shape)
            self.C[:] = self.C.mean()
            beta *= self.C[:, None]
        if start == "vertex":
            first = np.argmax(pair, axis=1)
            most = 0.0 if self.cost.ridge else self.C  # without bounds only zero is a vertex
            beta = most * (np.arange(self.columns) == first[:, None]).T
            beta = beta.T * (self.rng.random(self.n) < 0.5)[:, None]
        return self.margin.lift(beta, self.y)

    @property
    def alpha(self):
        """What the engine says that alpha is now."""
        found = self.engine.found()
        alpha = np.zeros((self.n, self.columns))
        alpha[found.ids] = found.coef
        return alpha

    def truth(self, alpha=None, bias=None):
        """The oracle's certificate of a point: that of the engine, unless another is given."""
        alpha = self.alpha if alpha is None else alpha
        return certify(
            self.K, self.y, alpha, self.C, self.machine, self.engine.bias if bias is None else bias
        )

    def closeness(self, truth):
        """What stop="gain" compares: M-SVM² has no gap that is linear in the violation."""
        return truth.psi / truth.kappa if self.machine == "msvm2" else truth.gain / truth.scale

    def lagrangian(self, truth, alpha):
        """The dual with the bias as the price of the class sums."""
        return truth.dual + self.engine.bias @ alpha.sum(axis=0)

    def assert_certificate(self, said, accuracy):
        alpha, truth = self.alpha, self.truth()
        size = 1 + abs(truth.primal) + np.abs(self.engine.bias).max() * np.abs(alpha).sum()
        assert said.violation == pytest.approx(truth.psi.max() / truth.kappa, abs=accuracy * size)
        assert said.gain == pytest.approx(self.closeness(truth).max(), abs=accuracy * size)
        assert said.primal == pytest.approx(truth.primal, abs=accuracy * size)
        assert said.dual == pytest.approx(self.lagrangian(truth, alpha), abs=accuracy * size)
        assert said.gap == pytest.approx(truth.gain.sum(), abs=accuracy * size)
        assert self.engine.dual == said.dual

    def assert_consistent(self, feasible=True):
        """The state that the engine went on from is that of its alpha; a proof is so in float64."""
        if feasible:
            assert_feasible(self.alpha, self.y, self.C, machine=self.machine)
        self.assert_certificate(self.engine.certificate(), self.accuracy)
        self.assert_certificate(self.engine.prove(), EXACT)

    def inner(self):
        return PairDescent() if self.machine == "c-svc" else CoordinateDescent(max_sweeps=20_000)

    def left(self, W):
        """The largest violation of the block of ``W``, relative to the margin; of c-svc at the best bias."""
        truth = self.truth()
        if self.machine != "c-svc":
            return truth.psi[W].max() / truth.kappa
        S = self.K @ self.alpha
        return least_violation(S[W], self.y[W], self.alpha[W], self.C[W])


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
    name, options, _ = WAYS[way]
    X, y = size * np.arange(1.0, 9.0).reshape(4, 2), np.array([0, 1, 2, 0], dtype=np.int32)
    kernel = make_kernel(kernel, degree=3, gamma=1.0, coef0=0.0).resolve(X, None)
    alpha = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, -1.0, 1.0], [0.0, 0.0, 0.0]])
    task = Task(PROBLEMS["crammer-singer"](3), kernel, X, y, np.ones(4), 0.0, (np.arange(4), alpha))
    with pytest.raises(ValueError, match=said), np.errstate(all="ignore"):
        find_engine(name)(task, EngineOptions(**options))


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
def test_a_team_of_one_agrees_with_itself(way):
    engine = Held(way, "crammer-singer").engine
    value = object()
    assert engine.agree(value) is value
    assert type(engine).assemble().agree(value) is value


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
            np.testing.assert_allclose(alpha.sum(), held.start.sum(), atol=1e-12 * held.C.sum())
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
        if held.engine.leap(LowRank(), 1e-3):
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


# -- engines among themselves ---------------------------------------------------------------------------
@pytest.mark.slow
@every_machine
def test_all_engines_reach_one_optimum(machine):
    """A whole problem in one block: the same scores and dual, whatever the engine."""
    found = []
    for way in WAYS:
        held = Held(way, machine, "zero", bias=False)
        with held.engine.running():
            for _ in range(2):
                held.engine.improve(np.arange(24), held.inner(), Aim(1e-6))
            found.append((held.engine.prove().dual, held.K @ held.alpha))
    for dual, scores in found[1:]:
        assert dual == pytest.approx(found[0][0], rel=1e-6)
        np.testing.assert_allclose(scores, found[0][1], atol=1e-3)
