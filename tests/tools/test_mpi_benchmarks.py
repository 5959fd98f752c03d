"""The benchmarks of several processes: formulas of bytes and seconds, and what a rank counts of its work."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.lib.cost_model import (
    Costs,
    Counts,
    Growth,
    Network,
    Team,
    Together,
    _inner,
    efficiency,
    limit_of,
    memory_of_small_blocks,
    predict,
    received,
)
from benchmarks.lib.traffic import Iteration, Shape, by_columns, by_rows, iterations_of, row_bytes
from benchmarks.workers.tally import tallied
from multimargin import KernelSVC, _core

MNIST = Shape(n=60_000, m=10, row=784, new=200)


def test_bytes_of_an_iteration_are_those_of_the_worked_example():
    """mnist, q = 400, 200 new rows in bytes, 4 ranks: 0.162 MB of rows, 0.064 MB of block, 0.013 MB rest."""
    every = by_rows(MNIST, 4, Iteration(q=400, fresh=200, inner=50))
    none = by_rows(MNIST, 4, Iteration(q=400, fresh=0, inner=50))
    assert every - none == pytest.approx(0.162e6, rel=0.01)
    assert none == pytest.approx(0.064e6 + 0.013e6, rel=0.01)


def test_bytes_of_algorithm_6_grow_with_n_and_with_inner_iterations():
    """7.2 MB for n × m numbers on 4 ranks, and 32 kB per inner iteration."""
    some, more = (by_columns(MNIST, 4, Iteration(400, 0, inner)) for inner in (0, 1))
    assert some - 4 * 400**2 == pytest.approx(7.2e6)
    assert more - some == 32_000
    half = by_columns(Shape(30_000, 10, 784, 200), 4, Iteration(400, 0, 0))
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
    assert tally.row_values == model.trace_[-1].rows * len(y)
    assert tally.values >= tally.row_values
    assert tally.updated >= len(y) * len(model.support_)
    assert tally.proof_values >= len(y) * len(model.support_)
    assert len(tally.rounds) == model.n_iter_
    assert np.sum([row["inner"] for row in tally.rounds]) == np.sum(model.trace_["inner"])
    assert len(model.support_) <= tally.samples <= len(y)
    assert tally.gathered + tally.large >= tally.visits
    assert tally.kept == tally.solved == 0
    assert 0 < tally.alone <= tally.gathered
    assert tally.messages == 0
    assert _core.update_gradient is update


# -- the cost model ------------------------------------------------------------------------------------
COUNTS = Counts(
    n=1000,
    m=3,
    row=40,
    original=160,
    rounds=10,
    rows=200,
    updated=500_000,
    selections=20,
    asked=100,
    visits=400,
    gathered=16_000,
    alone=2_000,
    large=1_000,
    kept=3_000,
    solved=100,
    moved=80,
    descent=0,
    converted=600,
    samples=150,
    support=120,
    proofs=2,
    inner=50,
)
FOUR = Together(updates=1.5, batch=20.0, most=5)
COSTS = Costs(
    row_value=1e-6,
    update=1e-7,
    select=1e-6,
    proof_value=1e-6,
    setup=1e-5,
    small_value=1e-6,
    block_value=1e-6,
    product=4e-3,
    rest=1e-3,
    convert=1e-6,
)


def test_inner_iterations_of_the_last_large_block_are_of_another_kind():
    rounds = [{"working_set": 40, "inner": 7}, {"working_set": 5000, "inner": 900}]
    assert _inner({"gathered": 1600, "inner": 907, "rounds": rounds}) == 7
    assert _inner({"gathered": 0, "inner": 907, "rounds": rounds}) == 0  # blocks that are kept


def test_memory_of_small_blocks_is_told_from_that_of_the_last_large_one():
    rounds = [{"working_set": 40, "memory": 1.5}, {"working_set": 5000, "memory": 4.0}]
    rounds.append({"working_set": 40, "memory": 4.25})
    fit = {"gathered": 3200, "setup_memory": 1.0, "rounds": rounds}
    assert memory_of_small_blocks(fit) == pytest.approx(0.75)
    assert memory_of_small_blocks(fit | {"gathered": 0}) == 0.0


def test_costs_of_a_team_are_found_from_what_is_left_unexplained():
    counts = [replace(COUNTS, descent=descent, rounds=rounds) for descent, rounds in ((900, 10), (200, 40))]
    true = Team(taken=2e-3, message=1e-3, crowded=3e-3, round=5e-3)
    costs, measured = replace(COSTS, descent=1e-3), []
    for c in counts:
        for ranks in (2, 3, 4):
            guess = predict(c, costs, ranks, 8.0, FOUR, cores=2)
            cpu = predict(c, true.added_to(costs), ranks, 8.0, FOUR, cores=2).cpu
            measured.append((cpu, c.rounds, guess))
    assert Team.of(measured) == pytest.approx(true)
    free = [(guess.cpu, rounds, guess) for _, rounds, guess in measured]
    assert Team.of(free) == pytest.approx(Team(), abs=1e-12)


def test_divided_work_is_divided_and_the_solve_is_not():
    one, four = (predict(COUNTS, COSTS, ranks, 8.0, FOUR) for ranks in (1, 4))
    extra = COSTS.row_value * COUNTS.large / 4  # columns of large blocks, which one rank has in its rows
    assert four.divided == pytest.approx(one.divided / 4 + extra)
    assert four.solve == one.solve == pytest.approx(50 * 5e-3)
    assert four.blocks == pytest.approx(one.blocks + 1e-6 * (COUNTS.alone - 0.75 * COUNTS.kept) + 600e-6)
    assert (one.received, one.messages) == (0, 0)
    assert four.messages == 80


def test_a_shared_solve_divides_products_and_blocks_and_costs_a_message_per_iteration():
    alone, shared = (predict(COUNTS, COSTS, 4, 8.0, FOUR, shared_solve=on) for on in (False, True))
    assert shared.solve == pytest.approx(50 * (1e-3 + 4e-3 / 4))
    assert shared.blocks < alone.blocks
    assert shared.messages - alone.messages == COUNTS.inner
    assert shared.received - alone.received == pytest.approx(50 * 8 * 3 * 40)  # q = 40


def test_bytes_of_a_fit_do_not_depend_on_n():
    assert received(COUNTS, 4, FOUR) == received(replace(COUNTS, n=10**6), 4, FOUR)
    rows = received(replace(COUNTS, row=140), 4, FOUR) - received(COUNTS, 4, FOUR)
    assert rows == pytest.approx(100 * COUNTS.samples)
    model = received(COUNTS, 4, FOUR) - received(replace(COUNTS, original=0), 4, FOUR)
    assert model == pytest.approx(160 * COUNTS.support)


def test_a_row_of_pixels_travels_as_bytes_and_to_the_model_only_if_these_do_not_say_what_it_was():
    pixels = np.random.default_rng(0).integers(0, 256, (50, 784), dtype=np.uint8)
    even = (pixels / 255).astype(np.float32)
    assert row_bytes(np.nextafter(even, np.float32(2)) * (pixels > 0), 0.02) == (784, 3136)
    assert row_bytes(even, 0.02) == row_bytes(pixels, 0.02) == (784, 0)


def test_a_descent_of_all_ranks_is_divided_and_takes_more_updates_and_messages():
    counts, costs = replace(COUNTS, descent=900.0), replace(COSTS, descent=1e-3)
    alone, four = predict(COUNTS, costs, 4, 8.0, FOUR), predict(counts, costs, 4, 8.0, FOUR)
    assert four.solve - alone.solve == pytest.approx(900 * 1.5 * 1e-3 / 4)
    assert four.messages - alone.messages == pytest.approx(900 * 1.5 / 20)
    assert four.received - alone.received == pytest.approx(4 * 8 * (6 + 8 + 5 * 8) * 900 * 1.5 / 20)
    assert four.blocks == alone.blocks
    more = predict(replace(counts, kept=2 * COUNTS.kept), costs, 4, 8.0, FOUR)
    assert more.blocks - four.blocks == pytest.approx(1e-6 * COUNTS.kept / 4)
    assert Together(most=1).message(100) == 8 * (6 + 8 + 2 + 200)  # and for a step of all classes


def test_how_ranks_descend_together_is_counted():
    found = Together.of({"inner": 1000}, {"inner": 1300, "batches": 65}, 16)
    assert (found.updates, found.batch, found.most) == (1.3, 20, 4)


def test_the_solve_is_the_limit_where_it_equals_the_divided_work():
    ranks = limit_of(COUNTS, COSTS)
    one = predict(COUNTS, COSTS, 1, 0.0, Together())
    assert one.divided / ranks == pytest.approx(one.solve)


def test_growth_finds_powers_of_n_and_keeps_what_is_constant():
    ns = (1000, 2000, 4000)
    some = [replace(COUNTS, n=n, rows=0.1 * n, inner=n**0.5, support=0.2 * n, alone=0) for n in ns]
    far = Growth.of(some).at(16_000)
    assert far.rows == pytest.approx(1600)
    assert far.inner == pytest.approx(16_000**0.5)
    assert (far.m, far.row, far.alone, far.n) == (3, 40, 0, 16_000)
    assert Growth.of([replace(c, rows=c.n**2) for c in some]).at(10**6).rows == 10**6


def test_efficiency_is_one_if_nothing_is_in_the_way():
    free = replace(COSTS, small_value=0.0, block_value=0.0, product=0.0, rest=0.0, convert=0.0)
    counts = replace(COUNTS, alone=0, large=0, kept=0)
    one, many = predict(counts, free, 1, 0.0, Together()), predict(counts, free, 16, 0.0, FOUR)
    assert efficiency(one, many, 16, Network("free", 0.0, np.inf)) == pytest.approx(1.0)
    slow = Network("slow", 1e-3, 1e6)
    assert efficiency(one, many, 16, slow) < 0.9
