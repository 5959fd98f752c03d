"""An engine for tests of working-set rules, whose measures the test writes down."""

import math

import numpy as np

from multimargin.engines.base import Selection


class StandIn:
    """An engine with given psi, gain, cost, support and groups; ``asked`` records what was examined."""

    keeps_rows = True

    def __init__(self, psi, gain=None, C=1.0, support=(), groups=None, block=10**6):
        self.psi = np.asarray(psi, dtype=float)
        self.n = len(self.psi)
        self.gain = self.psi.copy() if gain is None else np.asarray(gain, dtype=float)
        self.C = np.broadcast_to(np.asarray(C, dtype=float), (self.n,))
        self.supports = np.array(support, dtype=np.int64)
        self.group_of = np.zeros(self.n, dtype=int) if groups is None else np.asarray(groups)
        self.block, self.asked = block, []

    def support(self, reach=math.inf):
        return self.supports

    def everyone(self):
        return np.arange(self.n)

    def draw(self, k, rng):
        return rng.permutation(self.n)[:k]

    def select(self, k, *, rank="psi", stop="psi", above=0.0, among="all", even=False, seen=False):
        self.asked.append((among, above))
        inside = np.isin(np.arange(self.n), self.supports)
        everyone = np.ones(self.n, dtype=bool)
        among = "all" if among == "near" else among
        ids = np.flatnonzero({"all": everyone, "support": inside, "rest": ~inside}[among])
        if not len(ids):
            return Selection(ids, 0.0, math.nan, 0)
        value = (self.psi if stop == "psi" else self.gain / self.C)[ids]
        score = (self.psi if rank == "psi" else self.gain)[ids]
        able = (value > above) & (score > 0)
        order = np.argsort(-score[able], kind="stable")[:k]
        gap = float(self.gain.sum()) if among == "all" else math.nan
        return Selection(ids[able][order], float(value.max()), gap, int(able.sum()))

    def groups(self, ids):
        return self.group_of[ids]

    def largest_block(self):
        return self.block
