"""Random rows of every machine, for suites about a machine's row formulas."""

import numpy as np
import pytest
from hypothesis import strategies as st
from oracle import MACHINES, random_point

from multimargin.problems import PROBLEMS

every_machine = pytest.mark.parametrize(
    "machine", sorted(name for name, problem in PROBLEMS.items() if not problem.balanced)
)


class Samples:
    """Random rows of one machine: labels, costs over six orders, a feasible point, scores of any size."""

    def __init__(self, machine, seed, m, ties=False, n=8):
        self.rng = rng = np.random.default_rng(seed)
        self.machine, self.m, self.n = machine, m, n
        self.problem = PROBLEMS[machine](m)
        self.y = rng.integers(m, size=n).astype(np.int32)
        self.C = 10.0 ** rng.uniform(-3, 3, n)
        self.alpha = self.point()
        self.S = self.centred(self.values(ties))
        self.G = self.problem.gradient(self.S, self.alpha, self.y, self.C)

    def values(self, ties):
        """Scores; with ties, of a few values only."""
        S = self.rng.normal(size=(self.n, self.m)) * 10.0 ** self.rng.uniform(-2, 2, (self.n, 1))
        return np.round(S) if ties else S

    def centred(self, S):
        return S - S.mean(axis=1, keepdims=True) * MACHINES[self.machine].margin.centred

    def point(self, most=3.0):
        return random_point(self.machine, self.y, self.m, self.C, self.rng, most)

    def update(self, name, k):
        """Every row after its own update with the curvatures k."""
        rows = zip(self.alpha, self.G, self.y, self.C, k, strict=True)
        return np.array([self.problem.update(name, *row) for row in rows])


@st.composite
def samples(draw, machine):
    seed, m, ties = draw(st.integers(0, 2**32 - 1)), draw(st.integers(2, 12)), draw(st.booleans())
    return Samples(machine, seed, m, ties)
