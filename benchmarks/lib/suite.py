"""The problems on which contenders meet, and the bars that ours has to hold there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from benchmarks.lib.arena import View
from benchmarks.lib.contenders import INTELEX, SVC
from benchmarks.lib.data import load, load_stored

FLOOR = "the floor"


@dataclass(frozen=True)
class Entry:
    """A problem; ``bars`` are the largest ratios of our seconds to somebody else's."""

    data: str  # a recipe's name
    bars: dict[str, float]
    rows: int | None = None
    cold: dict[str, float] | None = None  # the same of first fits in fresh processes
    stored: dict[str, float] | None = None  # bars of the fit on the data as the file has it, if there is one
    stored_unit: float = 1.0  # what 1 in the file is in the scaled data
    dtype: type = np.float64
    full: bool = False  # only with --full

    @property
    def name(self) -> str:
        return self.data if self.rows is None else f"{self.data} {self.rows:,}"

    def views(self, test_rows: int | None) -> tuple[float, dict[str, View]]:
        """C, and the data: "scaled" is dense, for everyone; "stored" is integers or CSR as they come."""
        problem = load(self.data, self.rows, test_rows)
        split, gamma = problem.splits[0], problem.gamma
        views = {}
        if self.stored is not None:
            sparse = sp.issparse(split.X_train)
            as_it_comes = split if sparse else load_stored(self.data, self.rows, test_rows)
            views["stored"] = View(as_it_comes, gamma * self.stored_unit**2)
        if sp.issparse(split.X_train):  # LIBSVM's and oneDAL's machines are faster on the dense form
            split = split._replace(X_train=split.X_train.toarray(), X_test=split.X_test.toarray())
        views["scaled"] = View(split.astype(self.dtype), gamma)
        return problem.C, views


NEVER_SLOWER = {SVC: 1.0, INTELEX: 1.0}
PIXEL = {"stored_unit": 1 / 255, "dtype": np.float32}
SUITE = (
    Entry("letter", {SVC: 0.25, INTELEX: 0.1}, cold={SVC: 0.35}),
    Entry("satimage", {SVC: 0.15, INTELEX: 0.4}, cold={SVC: 0.2}),
    Entry("usps", {SVC: 0.2, INTELEX: 0.2, FLOOR: 4}, cold={SVC: 0.25}),
    Entry("isolet", {SVC: 0.12, INTELEX: 0.5, FLOOR: 2.5}, cold={SVC: 0.2}),
    Entry("vowel", {SVC: 1.0}),
    Entry("glass", {SVC: 1.0}),
    Entry("segment", {SVC: 1.0}),
    Entry("shuttle", NEVER_SLOWER),
    Entry("shuttle-scaled", NEVER_SLOWER),
    Entry("connect4", NEVER_SLOWER, stored=NEVER_SLOWER),
    Entry("a9a", NEVER_SLOWER, stored=NEVER_SLOWER),
    Entry(
        "mnist",
        {SVC: 0.05, INTELEX: 0.2, FLOOR: 2.5},
        10_000,
        cold={SVC: 0.06},
        stored={SVC: 0.05, INTELEX: 0.2, FLOOR: 2.5},
        **PIXEL,
    ),
    Entry(
        "mnist",
        {SVC: 0.06, INTELEX: 0.5, FLOOR: 1.8},
        60_000,
        stored={SVC: 0.02, INTELEX: 0.2, FLOOR: 1.1},
        full=True,
        **PIXEL,
    ),
)
