"""An engine at some point of a problem, and what the definitions say of it: the oracle and plain NumPy."""

import numpy as np
import pytest
from gpu import why_no_gpu
from oracle import (
    MACHINES,
    assert_feasible,
    certify,
    kernel_matrix,
    least_violation,
    random_point,
)
from ranks import Ranks, cuts_of

from multimargin.engines import ENGINES, EngineOptions, find_engine
from multimargin.engines.base import Task
from multimargin.engines.mpi.columns import ColumnsEngine
from multimargin.inner import CoordinateDescent, PairDescent
from multimargin.kernels import make_kernel
from multimargin.problems import PROBLEMS

NO_GPU = why_no_gpu()

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
    "cpu, two ranks": ("cpu", {"dtype": "float64", "shares": (0.5, 0.5)}, 1e-10),
    "cpu, ragged ranks": ("cpu", {"dtype": "float64", "shares": (0.1, 0.0, 0.9)}, 1e-10),
    "columns of three ranks": ("columns", {"dtype": "float64", "shares": (0.4, 0.0, 0.6)}, 1e-10),
    "cpu, four ranks, few rows kept": (
        "cpu",
        {"dtype": "float64", "cache_bytes": 5600, "working_set": 24, "shares": (0.25, 0.2, 0.25, 0.3)},
        1e-10,
    ),
    "cuda": ("cuda", {"dtype": "float64"}, 1e-10),
    "cuda, float32 blocks": ("cuda", {"dtype": "float32"}, 1e-5),
}
HERE = [way for way, (engine, _, _) in WAYS.items() if engine != "cuda" or NO_GPU is None]  # that can run
every_way = pytest.mark.parametrize(
    "way", [way if way in HERE else pytest.param(way, marks=pytest.mark.skip(reason=NO_GPU)) for way in WAYS]
)
every_machine = pytest.mark.parametrize("machine", MACHINES)
OTHERS = [machine for machine in MACHINES if machine != "c-svc"]
EXACT = 1e-10  # where float64 is promised


def make_engine(way, task, **changes):
    """The engine of that way: in one process, or on ranks with shares of the samples."""
    name, options, _ = WAYS[way]
    options = options | changes
    shares = options.pop("shares", None)
    if shares is None:
        return find_engine(name)(task, EngineOptions(**options))
    kind = ColumnsEngine if name == "columns" else ENGINES[name]
    return Ranks(task, EngineOptions(**options), cuts_of(len(task.y), shares), kind)


class Held:
    """An engine, and the problem and point that were given to it.

    ``start`` is "zero", "random" (a third of the variables at each bound), "even" (small sums, most variables
    off their bounds) or "vertex" (no variable off its bounds).
    """

    def __init__(self, way, machine, start="random", *, bias=True, n=24, offset=0.0, seed=0, **changes):
        self.accuracy = WAYS[way][2]
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
        self.engine = make_engine(way, task, seed=3, **changes)

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
