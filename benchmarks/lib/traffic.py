"""Bytes that a rank receives in one outer iteration: the model of two schemes, and what was counted.

Rows sharded (ours): every rank has some rows of X, alpha and G. It receives the candidates of all ranks for
the working set, the rows of X that it sees for the first time, and alpha and G of the working set. Rows of X
travel in the compact form of their layout, and those of the model's support vectors once more as they are, if
the compact form does not say what they were.

Columns shared (Niu & Yuan's Algorithm 6): every rank has all rows. The update of n × m numbers is summed
over the ranks (a ring of messages), blocks are put together from slices, and their Algorithm 5 gathers q × m
numbers in every inner iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from multimargin.engines.cpu.layouts import Layout
from multimargin.kernels import RBF

REAL, CANDIDATE, MEASURES = 8, 16, 32  # bytes
FACTS = 24  # bytes that travel with a row of X: label, cost, diagonal entry
VALUE = 4  # of a kernel value


@dataclass(frozen=True)
class Iteration:
    """One outer iteration of a decomposition with working sets of fixed size."""

    q: int  # samples of the working set
    fresh: int  # of them, those that were in no working set before
    inner: int  # inner iterations
    received: float = 0.0  # bytes counted
    largest: float = 0.0  # bytes of the largest message


@dataclass(frozen=True)
class Shape:
    """What the bytes of an iteration depend on beside it."""

    n: int
    m: int
    row: float  # bytes of a row of X as it travels
    new: int  # largest violators asked for in an iteration


def row_bytes(X: np.ndarray, gamma: float) -> tuple[int, int]:
    """Bytes of a dense row as it travels to a working set, and as it travels to the model, if it must."""
    layout, row = Layout.plan(RBF(gamma), X, "auto"), X[:1]
    compact = layout.compact(X)
    again = not np.array_equal(layout.restored(compact, X.dtype), X)
    return compact[:1].nbytes, row.nbytes if again else 0


def by_rows(shape: Shape, ranks: int, it: Iteration) -> float:
    """Bytes received per rank if rows are sharded and every rank solves the block."""
    candidates = CANDIDATE * ranks * shape.new
    return candidates + it.fresh * (shape.row + FACTS) + 2 * REAL * it.q * shape.m + MEASURES


def by_columns(shape: Shape, ranks: int, it: Iteration) -> float:
    """The same for Algorithms 5 and 6: a ring for the update, the block, and a gather per inner iteration."""
    ring = 2 * (ranks - 1) / ranks * REAL * shape.n * shape.m
    block = VALUE * it.q**2
    return ring + block + REAL * it.q * shape.m * it.inner


def iterations_of(rounds: list[dict[str, Any]], q: int) -> list[Iteration]:
    """The iterations between two others with working sets of at most ``q`` samples, from what a rank counted.

    The first one has the set-up in it, and one after a larger set (the last block of all support vectors) a
    proof: these are left out.
    """
    found = []
    for before, after in pairwise(rounds):
        if max(before["working_set"], after["working_set"]) <= q:
            fresh, received = (int(after[key] - before[key]) for key in ("samples", "received"))
            size, inner = int(after["working_set"]), int(after["inner"])
            found.append(Iteration(size, fresh, inner, received, after["largest_now"]))
    return found
