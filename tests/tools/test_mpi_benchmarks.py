"""The benchmarks of several processes: formulas of bytes, and what a rank counts of its own work."""

import numpy as np
import pytest

from benchmarks.lib.traffic import Iteration, Shape, by_columns, by_rows, iterations_of
from benchmarks.workers.tally import tallied
from multimargin import KernelSVC, _core
from multimargin.engines.cpu.row_store import RowStore

MNIST = Shape(n=60_000, m=10, row=784 * 4, new=200)


def test_bytes_of_an_iteration_are_those_of_the_worked_example():
    """mnist, q = 400, 200 new rows in float32, 4 ranks: 0.63 MB of rows, 0.064 MB of block, 0.013 MB rest."""
    every = by_rows(MNIST, 4, Iteration(q=400, fresh=200, inner=50))
    none = by_rows(MNIST, 4, Iteration(q=400, fresh=0, inner=50))
    assert every - none == pytest.approx(0.63e6, rel=0.01)
    assert none == pytest.approx(0.064e6 + 0.013e6, rel=0.01)


def test_bytes_of_algorithm_6_grow_with_n_and_with_inner_iterations():
    """7.2 MB for n × m numbers on 4 ranks, and 32 kB per inner iteration."""
    some, more = (by_columns(MNIST, 4, Iteration(400, 0, inner)) for inner in (0, 1))
    assert some - 4 * 400**2 == pytest.approx(7.2e6)
    assert more - some == 32_000
    half = by_columns(Shape(30_000, 10, 784 * 4, 200), 4, Iteration(400, 0, 0))
    assert some - half == pytest.approx(3.6e6)


def test_iterations_leave_out_set_up_and_proof():
    def state(working_set, received, samples):
        return {
            "working_set": working_set,
            "received": received,
            "samples": samples,
            "inner": 3,
            "largest_now": 5,
        }

    rounds = [state(40, 1000, 40), state(40, 1100, 50), state(900, 9000, 60), state(40, 9500, 60)]
    assert iterations_of(rounds, 40) == [Iteration(q=40, fresh=10, inner=3, received=100, largest=5)]


def test_a_rank_counts_what_it_does(split):
    X, y = split.X_train, split.y_train
    update = _core.update_gradient
    with tallied() as tally:
        model = KernelSVC(solver="dasmc", working_set_size=20, gamma=0.3, n_threads=1).fit(X, y)
    assert tally.filled == model.trace_[-1].rows
    assert tally.row_values == tally.filled * len(y)
    assert tally.updated >= len(y) * len(model.support_)
    assert tally.proof_values >= len(y) * len(model.support_)
    assert len(tally.rounds) == model.n_iter_
    assert np.sum([row["inner"] for row in tally.rounds]) == np.sum(model.trace_["inner"])
    assert len(model.support_) <= tally.samples <= len(y)
    assert tally.messages == 0
    assert _core.update_gradient is update
    assert RowStore.between.__module__ == RowStore.__module__
