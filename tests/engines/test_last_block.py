"""The kernel block of a set for once: values of the last set, of cached rows, and computed ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimargin.engines import CpuEngine, EngineOptions
from multimargin.engines.base import Task
from multimargin.engines.cpu.last_block import Values, from_last, old_and_new
from multimargin.kernels import RBF
from multimargin.problems import PROBLEMS

SAMPLES = 300


def engine_for(machine="crammer-singer"):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(SAMPLES, 3)), rng.integers(0, 3, SAMPLES).astype(np.int32)
    task = Task(PROBLEMS[machine](3), RBF(0.3), X, y, np.full(SAMPLES, 2.0))
    options = EngineOptions(working_set=100, block_share=0.25, dtype="float64")
    ridge = 0.25 if machine == "msvm2" else 0.0
    return CpuEngine(task, options), RBF(0.3).between(X, X) + ridge * np.eye(SAMPLES)


def sets(count=6, size=100, new=50, seed=0):
    """Working sets, each with half of the samples of the one before."""
    rng = np.random.default_rng(seed)
    W = rng.permutation(SAMPLES)[:size]
    for _ in range(count):
        yield W
        outside = np.setdiff1d(np.arange(SAMPLES), W)
        W = rng.permutation(np.concatenate([W[: size - new], rng.choice(outside, new, replace=False)]))


@pytest.mark.parametrize("machine", ["crammer-singer", "msvm2"])
@pytest.mark.parametrize("cached", [0, 60, SAMPLES])
def test_blocks_of_sets_that_overlap_are_the_kernel_matrix(machine, cached):
    engine, K = engine_for(machine)
    engine.rows.load(np.arange(cached))
    for W in sets():
        block = engine.blocks.once(W)
        assert set(block.W) == set(W)
        np.testing.assert_allclose(block.K, K[np.ix_(block.W, block.W)], atol=1e-14)
        np.testing.assert_array_equal(block.y, engine.task.y[block.W])


def test_values_between_samples_of_the_last_set_are_not_computed_again():
    engine, _ = engine_for()
    computed = []
    against = engine.rows.values.table

    def table(columns):
        between = against(columns)

        def counted(ids, count):
            computed.append(len(ids) * count)
            return between(ids, count)

        return counted

    engine.rows.values.table = table
    first, second = list(sets(2, size=200, new=100))
    engine.blocks.once(first)
    assert sum(computed) < 200 * 200  # by symmetry
    computed.clear()
    engine.blocks.once(second)
    assert sum(computed) <= 100 * 200
    computed.clear()
    engine.blocks.once(np.sort(second))
    assert not computed


def test_a_small_or_a_very_large_set_is_not_kept():
    engine, _ = engine_for()
    engine.blocks.once(np.arange(20))
    assert engine.blocks._last is None
    engine.blocks.once(np.arange(100))
    assert engine.blocks._last is not None
    engine.blocks.budget = type("Budget", (), {"largest_block": 120, "passing_rows": 8, "row": SAMPLES})()
    engine.blocks.once(np.arange(100))  # two such blocks are more than one of 120 samples
    assert engine.blocks._last is None


@given(st.integers(0, 1000), st.integers(0, 30), st.integers(1, 30), st.integers(0, 30))
def test_what_the_last_set_has_comes_first(seed, before, now, columns):
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(40, 40))
    rows, at = rng.permutation(40)[:before], rng.permutation(40)[:columns]
    last = Values(rows, at, K[np.ix_(rows, at)])
    W = np.concatenate(old_and_new(last, rng.permutation(40)[:now]))
    wanted = np.concatenate([at[::2], np.setdiff1d(np.arange(40), at)])
    values, old, old_columns = from_last(last, W, wanted, np.dtype(np.float64))
    assert old == len(np.intersect1d(W, rows))
    assert old_columns == len(at[::2])
    np.testing.assert_array_equal(values[:old, :old_columns], K[np.ix_(W[:old], at[::2])])
