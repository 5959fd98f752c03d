"""Problems of two classes: Serafini, Zanghirati & Zanni's, and some classes of a dataset against the rest.

Class 1 is the one that is named. Rows are dense for everyone. Text is CSR, because dense rows of it do not
fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.lib.arena import View
from benchmarks.lib.contenders import INTELEX, SVC
from benchmarks.lib.data import Problem, Split, load, read_stored
from benchmarks.lib.linear_data import training_part

TEXT_C, TEXT_GAMMA = 10.0, 1.0  # rows of length one


def against_rest(problem: Problem, positive: Sequence[int]) -> Problem:
    """Class 1 is the named ones, class 0 all others."""
    splits = tuple(
        split._replace(
            y_train=np.isin(split.y_train, positive).astype(int),
            y_test=np.isin(split.y_test, positive).astype(int),
        )
        for split in problem.splits
    )
    return replace(problem, splits=splits)


def largest_against_rest(problem: Problem) -> Problem:
    """The class with most training rows, of several the first."""
    labels, counts = np.unique(problem.splits[0].y_train, return_counts=True)
    return against_rest(problem, [labels[counts.argmax()]])


def at_rows(problem: Problem, rows: np.ndarray) -> Problem:
    """The same with these training rows only."""
    splits = tuple(
        split._replace(X_train=split.X_train[rows], y_train=split.y_train[rows]) for split in problem.splits
    )
    return replace(problem, splits=splits)


def first_of_each(y: np.ndarray, counts: dict[bool, int], positive: int) -> np.ndarray:
    """Row numbers of the first so many rows with that label (True) and without (False), in their order."""
    return np.sort(
        np.concatenate([np.flatnonzero((y == positive) == own)[:count] for own, count in counts.items()])
    )


# -- the paper's -----------------------------------------------------------------------------------------
def eights_and_nines(n: int) -> Problem:
    """mnist: the first n/2 eights and the first n/2 nines."""
    problem = load("mnist-raw", test_rows=2)
    y = problem.splits[0].y_train
    rows = np.sort(np.concatenate([np.flatnonzero(y == digit)[: n // 2] for digit in (8, 9)]))
    return against_rest(at_rows(problem, rows), [8])


def eights(n: int, test_rows: int | None = None) -> Problem:
    """mnist: digit 8 against the rest; of 40,000 rows 5,000 are the first eights, of 60,000 rows all."""
    problem = load("mnist-raw", test_rows=test_rows)
    y = problem.splits[0].y_train
    rows = first_of_each(y, {True: 5000, False: 35_000}, 8) if n == 40_000 else np.arange(n)
    return against_rest(at_rows(problem, rows), [8])


def adult(name: str, test_rows: int | None = None) -> Problem:
    """a1a to a9a, dense; the smaller ones are rows of a9a that its file names."""
    problem = load("a9a", test_rows=test_rows)
    if name != "a9a":
        problem = at_rows(problem, read_stored("a9a")[f"rows_{name}"])
    return against_rest(dense_rows(problem), [1])


def dense_rows(problem: Problem) -> Problem:
    """LIBSVM's and oneDAL's machines are faster so if the rows have few features."""
    splits = tuple(
        split._replace(X_train=split.X_train.toarray(), X_test=split.X_test.toarray())
        if sp.issparse(split.X_train)
        else split
        for split in problem.splits
    )
    return replace(problem, splits=splits)


# -- against peers ---------------------------------------------------------------------------------------
@dataclass(frozen=True)
class BinaryEntry:
    """A problem of two classes; ``bars`` are the largest ratios of our seconds to somebody else's."""

    name: str
    load: Callable[[int | None], Problem]  # of the number of test rows
    bars: dict[str, float]
    dtype: Any = np.float64

    def view(self, test_rows: int | None) -> tuple[float, View]:
        problem = self.load(test_rows)
        return problem.C, View(problem.splits[0].astype(self.dtype), problem.gamma)


def text(name: str) -> Callable[[int | None], Problem]:
    """CSR rows of length one; a few training rows stand for the test part."""

    def loaded(_: int | None) -> Problem:
        split = training_part(name)
        X, y = sp.csr_matrix(split.X_train), split.y_train  # what every peer takes
        return largest_against_rest(Problem(name, TEXT_C, TEXT_GAMMA, (Split(X, y, X[:2], y[:2]),)))

    return loaded


def one_class(name: str) -> Callable[[int | None], Problem]:
    return lambda test_rows: largest_against_rest(dense_rows(load(name, test_rows=test_rows)))


def classes(name: str, positive: Sequence[int]) -> Callable[[int | None], Problem]:
    return lambda test_rows: against_rest(dense_rows(load(name, test_rows=test_rows)), positive)


LARGE = {SVC: 1 / 8, INTELEX: 1 / 2}
NEVER_SLOWER = {SVC: 1.0}
BINARY_SUITE = (
    BinaryEntry("a9a", lambda test_rows: adult("a9a", test_rows), LARGE),
    BinaryEntry("mnist 8 / rest", lambda test_rows: eights(60_000, test_rows), LARGE, np.float32),
    BinaryEntry("connect4 win / rest", classes("connect4", [1]), LARGE),
    BinaryEntry("letter A-M / N-Z", classes("letter", range(13)), {SVC: 1 / 2}),
    BinaryEntry("letter, one class", one_class("letter"), NEVER_SLOWER),
    BinaryEntry("satimage, one class", one_class("satimage"), NEVER_SLOWER),
    BinaryEntry("usps, one class", one_class("usps"), NEVER_SLOWER),
    BinaryEntry("isolet, one class", one_class("isolet"), NEVER_SLOWER),
    BinaryEntry("shuttle, one class", one_class("shuttle"), NEVER_SLOWER),
    BinaryEntry("shuttle-scaled, one class", one_class("shuttle-scaled"), NEVER_SLOWER),
    BinaryEntry("sector text, one class", text("sector_scale"), NEVER_SLOWER),
    BinaryEntry("news20 text, one class", text("news20_bydate"), NEVER_SLOWER),
    BinaryEntry("news20 libsvm text, one class", text("news20_libsvm_train"), NEVER_SLOWER),
)
