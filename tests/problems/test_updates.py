"""Property tests of the six single-sample updates, the plain ones and the native ones.

The problem: min 1/2 k |a - alpha|^2 + <G, a - alpha> over a <= C e_y, sum a = 0, whose only
solution is a = C e_y - z with z the projection of D = C e_y - alpha + G / k on the simplex of size C.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import assert_feasible, project_simplex

from multimargin import _core
from multimargin.problems import CrammerSinger
from multimargin.problems.base import UPDATES

EXACT = ("sort", "pivot", "bisection", "fixed-point")
TO_CONVERGENCE = (*EXACT, "smo")
ALL = (*TO_CONVERGENCE, "frank-wolfe")
SIDES = ("plain", "native")


@dataclass(frozen=True)
class Sample:
    alpha: np.ndarray
    G: np.ndarray
    y: int
    C: float
    k: float

    def value(self, a):
        step = np.asarray(a, dtype=np.longdouble) - self.alpha
        slope = self.G.astype(np.longdouble) - self.G.max()  # steps sum to zero: a shift changes nothing
        return float(0.5 * self.k * (step @ step) + slope @ step)

    @property
    def unit(self):
        """The size of the numbers that the gradient of the one-sample problem is a sum of."""
        return max(np.abs(self.G).max() + self.k * self.C, 1e-300)

    def psi(self, a):
        """The violation left in row a, in units of the gradient."""
        G = self.G + self.k * (a - self.alpha)
        z = self.C * (np.arange(len(a)) == self.y) - a
        return (G.max() - G[z > 1e-8 * self.C].min()) / self.unit

    def best(self):
        e = np.arange(len(self.G)) == self.y
        alpha, G = (part.astype(np.longdouble) for part in (self.alpha, self.G - self.G.max()))
        row = -project_simplex(self.C * e - alpha + G / np.longdouble(self.k), self.C)
        row[self.y] = 0
        row[self.y] = -row.sum()
        return np.asarray(row, dtype=float)


def random_row(rng, m, y, C):
    """A feasible row: zero, a vertex, or inside with most classes at zero."""
    shape = rng.integers(3)
    if shape == 0 or m == 1:
        return np.zeros(m)
    z = np.zeros(m)
    if shape == 1:
        z[rng.integers(m)] = C
    else:
        some = rng.choice(m, size=min(m, int(rng.integers(2, 6))), replace=False)
        z[some] = C * rng.dirichlet(np.ones(len(some)))
    alpha = -z
    alpha[y] = 0.0
    alpha[y] = -alpha.sum()
    return alpha + 0.0  # no negative zeros


@st.composite
def samples(
    draw, max_classes=1000, scales=(1e-9, 1e9), shapes=("smooth", "ties", "equal", "one winner", "zeros")
):
    m = draw(st.one_of(st.integers(2, 12), st.integers(2, max_classes)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    low, high = (int(np.log10(scale)) for scale in scales)
    C, k, size = (10.0 ** draw(st.integers(low, high)) * rng.uniform(1, 9) for _ in range(3))
    y = int(rng.integers(m))
    shape = draw(st.sampled_from(shapes))
    G = {
        "smooth": lambda: rng.normal(size=m),
        "ties": lambda: rng.integers(-2, 3, size=m).astype(float),
        "equal": lambda: np.full(m, rng.normal()),
        "one winner": lambda: np.where(np.arange(m) == rng.integers(m), 1.0, -rng.random(m)),
        "zeros": lambda: np.zeros(m),
    }[shape]() * size
    return Sample(random_row(rng, m, y, C), G, y, C, k)


def plain(name, sample):
    before = sample.alpha.copy(), sample.G.copy()
    machine = CrammerSinger(len(sample.G))
    row = machine.update(name, sample.alpha, sample.G, sample.y, sample.C, sample.k)
    np.testing.assert_array_equal(sample.alpha, before[0])
    np.testing.assert_array_equal(sample.G, before[1])
    return row


def native(name, sample, seed=0):
    alpha, G = sample.alpha[None].copy(), sample.G[None].copy()
    y, C, k = np.array([sample.y], dtype=np.int32), np.array([sample.C]), np.array([sample.k])
    _core.update_samples("crammer-singer", name, alpha, G, y, C, k, seed)
    return alpha[0]


RUN = {"plain": plain, "native": native}


def assert_in_the_simplex(row, sample):
    assert_feasible(row[None], np.array([sample.y]), sample.C, atol=1e-12 * len(row))
    others = np.delete(row, sample.y)
    assert (others <= 0).all()
    assert not np.signbit(row[row == 0]).any()
    if not others.any():
        assert row[sample.y] == 0


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", ALL)
@given(sample=samples())
def test_feasible_and_never_worse(name, side, sample):
    row = RUN[side](name, sample)
    assert_in_the_simplex(row, sample)
    assert sample.value(row) <= 1e-12 * sample.unit * sample.C * len(row)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", TO_CONVERGENCE)
@given(sample=samples())
def test_optimal(name, side, sample):
    """Optimal by its own conditions and by value, on every scale from 1e-9 to 1e9."""
    row = RUN[side](name, sample)
    assert sample.psi(row) <= 1e-10
    assert sample.value(row) - sample.value(sample.best()) <= 1e-11 * sample.unit * sample.C


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", TO_CONVERGENCE)
@given(sample=samples(scales=(1e-2, 1e2)))
def test_the_row_itself(name, side, sample):
    """Where the problem is well scaled the solution is known to many digits: all updates agree on it."""
    assume(np.abs(sample.G).max() <= 1e4 * sample.k * sample.C)
    accuracy = 1e-9 if name != "smo" else 1e-7
    scale = sample.C + np.abs(sample.G).max() / sample.k
    np.testing.assert_allclose(RUN[side](name, sample), sample.best(), rtol=0, atol=accuracy * scale)


@pytest.mark.slow
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", ALL)
@given(
    sample=samples(scales=(1e-1, 1e1), max_classes=40),
    cost=st.integers(-29, 29),
    slope=st.integers(-29, 29),
)
def test_scales_by_powers_of_two_change_nothing(name, side, sample, cost, slope):
    """(s alpha, t G, s C, t k / s) has the solution s a: nothing in an update may be absolute."""
    s, t = 2.0**cost, 2.0**slope
    scaled = Sample(s * sample.alpha, t * sample.G, sample.y, s * sample.C, t * sample.k / s)
    np.testing.assert_allclose(
        RUN[side](name, scaled) / s, RUN[side](name, sample), rtol=0, atol=1e-12 * sample.C
    )


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", TO_CONVERGENCE)
@given(sample=samples(scales=(1e-2, 1e2), max_classes=60))
def test_optimal_rows_stay(name, side, sample):
    best = sample.best()
    again = Sample(best, sample.G + sample.k * (best - sample.alpha), sample.y, sample.C, sample.k)
    scale = sample.C + np.abs(sample.G).max() / sample.k
    np.testing.assert_allclose(RUN[side](name, again), best, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", TO_CONVERGENCE)
@pytest.mark.parametrize("left", [0.0, 1e-17, 1e-16, 1e-12])
def test_a_rounding_leftover_does_not_stop_an_update(name, side, left):
    """z_y = C - alpha_y is next to nothing but the worst class: there is more to do between the others."""
    alpha = np.array([0.3 - left, -0.2, -0.1 + left])
    sample = Sample(alpha, np.array([-1.0, 0.0, 0.5]), 0, 0.3, 1.0)
    np.testing.assert_allclose(RUN[side](name, sample), [0.3, 0.0, -0.3], atol=1e-9)


@pytest.mark.parametrize("side", SIDES)
@given(sample=samples(scales=(1e-3, 1e3), max_classes=30))
def test_frank_wolfe_decreases_the_objective(side, sample):
    """Strictly, by at least half of g min(1, g / (k |d|^2)), the bound of a Frank-Wolfe step."""
    z = sample.C * (np.arange(len(sample.G)) == sample.y) - sample.alpha
    gain = float(z @ (sample.G.max() - sample.G))
    assume(gain > 1e-6 * sample.unit * sample.C)
    d2 = 2 * sample.C**2
    promised = 0.5 * gain * min(1.0, gain / (sample.k * d2))
    decrease = -sample.value(RUN[side]("frank-wolfe", sample))
    assert decrease >= promised * (1 - 1e-6)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", ALL)
@given(sample=samples(scales=(1e-3, 1e3), max_classes=30, shapes=("smooth", "ties", "equal")))
def test_no_curvature_means_a_vertex(name, side, sample):
    """K_ii = 0: the linear problem, solved at C (e_y - e_p) with p a best class."""
    flat = Sample(sample.alpha, sample.G, sample.y, sample.C, 0.0)
    row = RUN[side](name, flat)
    assert_in_the_simplex(row, flat)
    assert flat.psi(row) <= 1e-12


@pytest.mark.parametrize("name", ALL)
def test_many_rows_at_once_equal_one_at_a_time(name):
    rng = np.random.default_rng(0)
    m, count = 7, 50
    y = rng.integers(m, size=count).astype(np.int32)
    C, k = rng.uniform(0.5, 2, count), rng.uniform(0.5, 2, count)
    alpha = np.array([random_row(rng, m, label, cost) for label, cost in zip(y, C, strict=True)])
    G = rng.normal(size=(count, m))
    together = alpha.copy()
    _core.update_samples("crammer-singer", name, together, G.copy(), y, C, k, 3)
    for i in range(count):
        sample = Sample(alpha[i], G[i], int(y[i]), C[i], k[i])
        np.testing.assert_allclose(together[i], native(name, sample), atol=1e-9)
        np.testing.assert_allclose(together[i], plain(name, sample), atol=1e-9)


def test_an_unknown_update_is_named():
    row, y, one = np.zeros((1, 3)), np.zeros(1, dtype=np.int32), np.ones(1)
    with pytest.raises(ValueError, match="bogus"):
        _core.update_samples("crammer-singer", "bogus", row, row.copy(), y, one, one, 0)


def test_both_sides_know_the_same_updates():
    assert set(UPDATES) == set(ALL)
