"""Solvers of blocks whose samples are coupled by their sum: each other, a generic QP, degenerate cases."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.svm import SVC

from multimargin import Decomposition, KernelSVC
from multimargin.engines import ENGINES
from multimargin.engines.base import EngineOptions, Task
from multimargin.inner import Block, ProjectedGradient
from multimargin.inner.box_interior_point import BoxInteriorPoint
from multimargin.inner.variable_projection import VariableProjection
from multimargin.kernels import make_kernel
from multimargin.problems import CSvc
from multimargin.problems.projections import project_balanced
from multimargin.system.threads import blas_threads
from multimargin.working_set import SvmLight

INNER = {
    "vpm": VariableProjection(),
    "vpm, dai-fletcher": VariableProjection(projection="dai-fletcher"),
    "pg": ProjectedGradient(max_iter=20_000),
    "pg, ell": ProjectedGradient(max_iter=20_000, initial_step="ell", projection="dai-fletcher"),
    "interior point": BoxInteriorPoint(),
}
SIDES = ("numpy", "cpu")
solvers = pytest.mark.parametrize("name", INNER)
both = pytest.mark.parametrize("side", SIDES)
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


class Case:
    """A block: a kernel matrix, labels, costs, a feasible start, a linear term from samples outside of it."""

    def __init__(self, seed, q=25, C=1.0, dtype=np.float64, start="zero", gamma=0.4, identical=False, y=None):
        rng = np.random.default_rng(seed)
        X = np.ones((q, 3)) if identical else rng.normal(size=(q, 3))
        K = np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))
        room = np.full((q, q + 3), np.nan, dtype=dtype)  # a corner of a larger array, as kept blocks are
        room[:, :q] = K
        self.K = room[:, :q]
        self.y = (rng.random(q) < 0.4).astype(np.int32) if y is None else np.asarray(y, dtype=np.int32)
        self.C = C * rng.uniform(0.5, 2, size=q)
        self.low, self.high = CSvc(2).bounds(self.y, self.C)
        total = 0.0
        if start == "inside":
            inside = rng.uniform(self.low, self.high)
            inside[rng.random(q) < 0.3] = 0.0
            total = inside.sum()
            self.alpha = project_balanced(inside, self.low, self.high, total)
        else:
            self.alpha = np.zeros(q)
        self.total = self.alpha.sum()
        self.linear = 0.2 * rng.normal(size=q) - np.where(self.y == 1, 1.0, -1.0) + 3.0  # with a bias in it
        self.G = self.K.astype(float) @ self.alpha + self.linear

    def value(self, alpha):
        return 0.5 * alpha @ self.K.astype(float) @ alpha + (self.linear - 3.0) @ alpha

    def violation(self, alpha):
        G = self.K.astype(float) @ alpha + self.linear
        slack = 1e-8 * self.C
        grow = -G[alpha < self.high - slack]
        shrink = G[alpha > self.low + slack]
        return 0.5 * max(grow.max() + shrink.max(), 0) if len(grow) and len(shrink) else 0.0

    def solve(self, name, side, eps=1e-8, n_threads=1, inner=None):
        """(alpha, G, iterations)."""
        q = len(self.y)
        diagonal = self.K.diagonal().astype(float)
        block = Block(
            np.arange(q), self.K, diagonal, self.alpha[:, None].copy(), self.G[:, None].copy(), self.y, self.C
        )
        inner, rng = inner or INNER[name], np.random.default_rng(0)
        if side == "numpy":
            steps = inner.solve(CSvc(2), block, eps, rng)
        else:
            steps = engine(self.y, self.C, n_threads).solvers.solve(inner, block, eps)
        self.check(block)
        return block.alpha[:, 0], block.G[:, 0], steps

    def check(self, block):
        """Bounds hold to the last bit, the sum to rounding; G is the gradient up to one constant."""
        alpha, G = block.alpha[:, 0], block.G[:, 0]
        assert (self.low <= alpha).all() and (alpha <= self.high).all()
        size = 1 + np.abs(alpha).sum()
        assert abs(alpha.sum() - self.total) <= 1e-12 * size
        wrong = G - self.K.astype(float) @ alpha - self.linear
        np.testing.assert_allclose(wrong, wrong[0], atol=1e-11 * size)

    def optimum(self):
        """The least dual by a generic method, in units that make the box of size 1."""
        q, scale = len(self.y), self.C.max()
        K, c = scale * self.K.astype(float), self.linear - 3.0
        found = minimize(
            lambda x: 0.5 * x @ K @ x + c @ x,
            self.alpha / scale,
            jac=lambda x: K @ x + c,
            bounds=list(zip(self.low / scale, self.high / scale, strict=True)),
            constraints={
                "type": "eq",
                "fun": lambda x: x.sum() - self.total / scale,
                "jac": lambda x: np.ones(q),
            },
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 2000},
        )
        return scale * found.fun


def engine(y, C, n_threads):
    """Of no data: blocks are all that is used of it."""
    X = np.zeros((len(y), 1))
    kernel = make_kernel("rbf", degree=3, gamma=1.0, coef0=0.0).resolve(X, None)
    return ENGINES["cpu"](Task(CSvc(2), kernel, X, y, C), EngineOptions(n_threads=n_threads))


@pytest.fixture(autouse=True)
def one_blas_thread():
    with blas_threads(1):
        yield


@solvers
@both
@dtypes
@pytest.mark.parametrize("start", ["zero", "inside"])
@pytest.mark.parametrize("C", [0.1, 1.0, 50.0])
def test_finds_the_optimum_of_a_generic_method(name, side, dtype, start, C):
    case = Case(3, C=C, dtype=dtype, start=start)
    alpha, _, steps = case.solve(name, side)
    best = case.optimum()
    assert steps > 0
    assert abs(case.value(alpha) - best) <= 1e-6 * max(1, abs(best))
    assert case.violation(alpha) <= 1e-7


@dtypes
@pytest.mark.parametrize(("C", "gamma"), [(1e-6, 0.4), (1.0, 0.4), (1e6, 8.0)])
@pytest.mark.parametrize("seed", range(3))
def test_solvers_agree_where_generic_methods_are_too_slow(dtype, C, gamma, seed):
    case = Case(seed, q=150, C=C, gamma=gamma, dtype=dtype, start="inside" if C <= 1 else "zero")
    points = {name: case.solve(name, "cpu", eps=1e-7)[0] for name in INNER}
    values = {name: case.value(alpha) for name, alpha in points.items()}
    least = min(values.values())
    for name, value in values.items():
        assert value - least <= 1e-6 * abs(least), name
        assert case.violation(points[name]) <= 2e-7, name


@solvers
@dtypes
def test_both_sides_do_the_same(name, dtype):
    """The native solver is the specification's method: the same steps, up to rounding."""
    case = Case(5, q=60, dtype=dtype, start="inside")
    (a, _, steps), (b, _, native) = (case.solve(name, side, eps=1e-4) for side in SIDES)
    assert steps == native
    np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.slow
@solvers
def test_threads_change_nothing(name):
    case = Case(1, q=1500, gamma=2.0)
    (a, G, one), (b, H, two) = (case.solve(name, "cpu", eps=1e-3, n_threads=n) for n in (1, 3))
    assert one == two and (a == b).all() and (G == H).all()


@solvers
@both
@dtypes
@pytest.mark.parametrize("C", [1e-8, 1.0, 1e8])
def test_identical_points(name, side, dtype, C):
    """K is all ones: at a sum of 0 only the linear term is left, and as much as possible moves.

    The paper's variable projection keeps its first step length there, 1: a huge C is out of its reach.
    """
    case = Case(2, q=12, C=C, dtype=dtype, identical=True)
    out_of_reach = name.startswith("vpm") and C > 1
    inner = replace(INNER[name], max_iter=1000) if out_of_reach else None
    alpha, _, _ = case.solve(name, side, eps=1e-6, inner=inner)
    assert case.value(alpha) < case.value(case.alpha)
    assert case.violation(alpha) <= 1e-6 or out_of_reach


@solvers
@both
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("q", [1, 2, 5])
def test_nothing_can_move_where_all_are_at_one_end(name, side, label, full, q):
    case = Case(0, q=q, y=[label] * q)
    if full:
        case.alpha = np.where(case.y == 1, case.high, case.low)
        case.total, case.G = case.alpha.sum(), case.K @ case.alpha + case.linear
    alpha, G, steps = case.solve(name, side)
    assert steps == 0
    assert (alpha == case.alpha).all() and np.isfinite(G).all()


@solvers
@both
@dtypes
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_two_samples_by_hand(name, side, dtype, C):
    """One of each class, from 0: both go to (T₁ - T₀) / (K₀₀ + K₁₁ - 2 K₀₁), or to the smaller bound."""
    case = Case(4, q=2, C=C, dtype=dtype, y=[0, 1])
    alpha, _, _ = case.solve(name, side, eps=1e-10)
    K = case.K.astype(float)
    step = min((case.linear[0] - case.linear[1]) / (K[0, 0] + K[1, 1] - 2 * K[0, 1]), case.C.min())
    np.testing.assert_allclose(alpha, [-step, step], rtol=1e-7)
    smaller = case.C.argmin()
    assert step < case.C.min() or abs(alpha[smaller]) == step


@solvers
@both
def test_a_single_sample_stays(name, side):
    case = Case(0, q=1, y=[1])
    case.alpha = 0.5 * case.high
    case.total, case.G = case.alpha.sum(), case.K @ case.alpha + case.linear
    alpha, _, steps = case.solve(name, side)
    assert steps == 0 and (alpha == case.alpha).all()


@solvers
@both
def test_an_optimal_block_is_left_alone(name, side):
    case = Case(7)
    case.alpha, _, _ = case.solve(name, side, eps=1e-9)
    case.G = case.K @ case.alpha + case.linear
    case.total = case.alpha.sum()
    alpha, _, steps = case.solve(name, side, eps=1e-6)
    assert steps == 0 and (alpha == case.alpha).all()


@both
@pytest.mark.parametrize(
    "inner", [VariableProjection(max_iter=1), ProjectedGradient(max_iter=1), BoxInteriorPoint(max_iter=1)]
)
@given(seed=st.integers(0, 10_000), C=st.sampled_from([0.01, 1.0, 1000.0]))
def test_cut_short_it_ends_no_worse(side, inner, seed, C):
    case = Case(seed, q=15, C=C, start="inside")
    alpha, _, steps = case.solve(None, side, inner=inner)
    assert steps <= 1
    before = case.value(case.alpha)
    assert case.value(alpha) <= before + 1e-12 * (1 + abs(before) + C**2)


@both
@dtypes
@pytest.mark.parametrize("gamma", [1e-3, 1e-5])
def test_nearly_singular_blocks_in_float32(side, dtype, gamma):
    """All kernel values are almost 1, and rounding makes the block indefinite: the ridge must see to that."""
    case = Case(6, q=200, C=10.0, dtype=dtype, gamma=gamma)
    alpha, _, steps = case.solve("interior point", side, eps=1e-4)
    assert 0 < steps < 100
    assert case.violation(alpha) <= 1e-4


def section_3(Q, q, y, C, e, steps):
    """Serafini, Zanghirati & Zanni's Section 3 word for word, signs too: z after so many steps from 0."""
    z, rho = np.zeros(len(q)), 1.0
    for step in range(1, steps + 1):
        # (6), whose solution is z_j(λ) = clip(z_j - rho (q + Q z)_j + λ y_j, 0, C_j), λ by bisection.
        point = z - rho * (q + Q @ z)
        lower, upper = -1e6, 1e6
        for _ in range(200):
            middle = 0.5 * (lower + upper)
            bar = np.clip(point + middle * y, 0, C)
            lower, upper = (middle, upper) if y @ bar < e else (lower, middle)
        d = bar - z
        Qd = Q @ d
        theta = 1.0 if step == 1 else min(1.0, -(d @ (q + Q @ z)) / (d @ Qd))
        z = z + theta * d
        if Qd @ Qd > 1e-16 * (d @ d):
            rho = (d @ Qd) / (Qd @ Qd) if step % 6 < 3 else (d @ d) / (d @ Qd)
    return z


@both
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7, 13])
def test_variable_projection_is_that_of_the_paper(side, steps):
    case = Case(8, q=30, C=0.3)
    y = np.where(case.y == 1, 1.0, -1.0)
    expected = section_3(y[:, None] * case.K * y, y * case.linear, y, case.C, 0.0, steps)
    alpha, _, taken = case.solve(None, side, eps=1e-12, inner=VariableProjection(max_iter=steps))
    assert taken == steps
    np.testing.assert_allclose(y * alpha, expected, atol=1e-9)


@solvers
def test_needs_few_steps(name):
    case = Case(0, q=300, C=10.0, gamma=0.1)
    steps = case.solve(name, "cpu", eps=1e-3)[2]
    assert steps <= (20 if name == "interior point" else 1500)


def test_bad_parameters_are_named():
    for wrong in ({"rho": 0.0}, {"period": 0}, {"flat": -1.0}, {"max_iter": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            VariableProjection(**wrong)
    for solver in (VariableProjection, ProjectedGradient):
        with pytest.raises(ValueError, match="'dai-fletcher'"):
            solver(projection="sort")
    with pytest.raises(ValueError, match="max_iter"):
        BoxInteriorPoint(max_iter=0)


@solvers
@pytest.mark.parametrize("engine", ["numpy", "cpu"])
def test_in_a_decomposition_it_is_scikit_learns_machine(name, engine):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=150) > 0.3, "b", "a")
    solver = Decomposition(SvmLight(n_sp=40, n_c=20), INNER[name])
    model = KernelSVC(machine="c-svc", C=2.0, gamma=0.3, solver=solver, engine=engine, tol=1e-6).fit(X, y)
    peer = SVC(C=2.0, gamma=0.3, tol=1e-8).fit(X, y)
    assert model.status_.converged
    np.testing.assert_allclose(np.ravel(model.decision_function(X)), peer.decision_function(X), atol=1e-5)
    assert (model.support_ == np.sort(peer.support_)).all()
