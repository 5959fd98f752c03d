"""A block that sweeps take very long for, and coordinate descents of it."""

import numpy as np
from oracle import assert_feasible, certify, kernel_matrix, one_hot

from multimargin import _core
from multimargin.system.fixed_point import FIXED_POINT, decoded, encoded

M = 4
MACHINES = ("crammer-singer", "weston-watkins")


class Case:
    """Overlapping clusters under a smooth kernel, so that sweeps creep."""

    def __init__(self, machine, dtype=np.float64, n=120, gamma=0.1):
        rng = np.random.default_rng(0)
        self.machine = machine
        self.y = rng.integers(M, size=n).astype(np.int32)
        X = rng.normal(size=(M, 3))[self.y] + 0.7 * rng.normal(size=(n, 3))
        K = kernel_matrix("rbf", X, gamma=gamma)
        self.K = encoded(K, FIXED_POINT) if dtype == FIXED_POINT else K.astype(dtype)
        self.C = 20.0 * rng.uniform(0.3, 3.0, n)
        self.alpha, self.G = np.zeros((n, M)), -one_hot(self.y, M)

    @property
    def values(self):
        """The kernel values that the block has, in float64."""
        return decoded(self.K, np.dtype(np.float64))

    def descend(self, eps=1e-4, sweeps=100_000, width=np.inf, **steps):
        """Returns sweeps, updates, violation."""
        options = _core.DescentOptions(eps=eps, max_sweeps=sweeps, seed=1, width=width, **steps)
        arrays = self.K, np.diag(self.values).copy(), self.G, self.alpha, self.y, self.C
        room = np.empty(2 * self.K.size, dtype=self.K.dtype)
        return _core.coordinate_descent(self.machine, *arrays, options, room)[:3]

    def check(self):
        """Feasible, and the gradient is that of alpha; the dual."""
        assert_feasible(self.alpha, self.y, self.C, machine=self.machine)
        K = self.values
        np.testing.assert_allclose(self.G, K @ self.alpha - one_hot(self.y, M), atol=1e-9)
        return certify(K, self.y, self.alpha, self.C, self.machine).dual
