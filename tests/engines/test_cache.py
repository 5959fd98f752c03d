"""The book-keeping of kept kernel rows: who has which slot, who leaves first, what is counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimargin.engines import CpuEngine, EngineOptions
from multimargin.engines.base import Task
from multimargin.engines.cpu.row_cache import RowCache
from multimargin.inner import CoordinateDescent
from multimargin.inner.block import Aim
from multimargin.kernels import RBF
from multimargin.problems import PROBLEMS


def admit(cache, ids):
    """Give slots to absent ids, as the row store does."""
    slots = cache.reserve(len(ids))
    cache.publish(ids, slots)
    return slots


def test_least_recently_used_leaves_first():
    cache = RowCache(3, 100)
    admit(cache, [1, 2, 3])
    cache.lookup([1])
    admit(cache, [4])
    assert 2 not in cache and 1 in cache and 3 in cache and 4 in cache
    admit(cache, [5])
    assert 3 not in cache and 1 in cache


def test_slots_are_stable_and_reused():
    cache = RowCache(2, 100)
    first = admit(cache, [10, 20])
    assert sorted(first) == [0, 1]
    np.testing.assert_array_equal(cache.lookup([20, 10]), first[::-1])
    assert admit(cache, [30])[0] == first[1]  # 20 was looked up before 10


def test_counts():
    cache = RowCache(2, 100)
    cache.lookup([1, 2])
    admit(cache, [1, 2])
    cache.lookup([2, 1, 3])
    admit(cache, [3])
    assert (cache.hits, cache.misses, cache.evictions) == (2, 3, 1)


def test_peek_leaves_no_trace():
    cache = RowCache(2, 100)
    admit(cache, [1, 2])
    np.testing.assert_array_equal(cache.peek(np.array([1, 9])), [0, -1])
    assert (cache.hits, cache.misses) == (0, 0)
    admit(cache, [3])
    assert 1 not in cache  # peeking did not make it recent


def test_more_rows_than_slots_is_an_error():
    cache = RowCache(2, 100)
    with pytest.raises(ValueError, match=r"3 rows.*2"):
        admit(cache, [1, 2, 3])


def test_rows_just_found_survive_the_admission_of_the_missing():
    """A working set that fits is wholly in the cache after lookup and admit, whatever was there before."""
    cache = RowCache(4, 100)
    admit(cache, [1, 2, 3, 4])
    wanted = np.array([1, 8, 2, 9])
    slots = cache.lookup(wanted)
    admit(cache, wanted[slots < 0])
    assert all(i in cache for i in wanted)


@given(
    capacity=st.integers(1, 6),
    calls=st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=6, unique=True), max_size=30),
)
def test_against_a_list_model(capacity, calls):
    """The same behaviour as a plain list ordered by last use, and never more rows than slots."""
    cache, order = RowCache(capacity, 100), []
    hits = misses = evictions = 0
    for ids in calls:
        ids = ids[:capacity]
        found = cache.lookup(ids)
        absent = [i for i, slot in zip(ids, found, strict=True) if slot < 0]
        assert absent == [i for i in ids if i not in order]
        hits, misses = hits + len(ids) - len(absent), misses + len(absent)
        order = [i for i in order if i not in ids] + [i for i in ids if i in order]
        admit(cache, absent)
        order += absent
        evictions += max(0, len(order) - capacity)
        order = order[-capacity:]
        slots = cache.peek(order)
        assert len(cache) == len(order)
        assert len(set(slots)) == len(order) and (slots >= 0).all() and (slots < capacity).all()
    assert (cache.hits, cache.misses, cache.evictions) == (hits, misses, evictions)


def test_a_reserved_slot_is_found_by_nobody_until_it_is_published():
    cache = RowCache(2, 100)
    admit(cache, [1, 2])
    slots = cache.reserve(1)  # takes the place of 1, and is given up
    np.testing.assert_array_equal(cache.peek([1, 2]), [-1, 1])
    assert len(cache) == 1 and cache.evictions == 1
    np.testing.assert_array_equal(admit(cache, [7]), slots)  # the empty slot comes first
    assert 2 in cache and 7 in cache and cache.evictions == 1


@pytest.mark.parametrize("keep", [True, False], ids=["growing", "once"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_exception_while_rows_are_computed_leaves_no_wrong_row(monkeypatch, error, keep):
    """The engine goes on afterwards, and its gradient is that of the exact kernel: (K + R) alpha - T."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40, dtype=np.int32) % 3
    problem, kernel = PROBLEMS["crammer-singer"](3), RBF(gamma=0.5)
    engine = CpuEngine(Task(problem, kernel, X, y, np.ones(40)), EngineOptions(block_share=0.3))
    fill, values = engine.values.fill, engine.values

    def broken(ids, store, slots):
        store[slots] = np.nan  # what an interrupted row may look like
        raise error

    W, inner = np.arange(30), CoordinateDescent()
    with monkeypatch.context() as patch:
        patch.setattr(values, "fill", broken)
        with pytest.raises(error):
            engine.improve(W, inner, Aim(1e-6), keep)
    assert values.fill == fill and len(engine.rows.cache) == 0
    engine.prove()  # an interrupt may keep alpha, and then G comes from the proof
    engine.improve(W, inner, Aim(1e-6), keep)
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    alpha, target = engine.state.alpha, np.eye(3)[y]
    assert alpha.any()
    np.testing.assert_allclose(engine.state.G, np.exp(-0.5 * distances) @ alpha - target, atol=1e-9)


def test_a_retired_engine_gives_its_rows_back_and_still_has_samples():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40, dtype=np.int32) % 4
    problem = PROBLEMS["crammer-singer"](4)
    engine = CpuEngine(Task(problem, RBF(0.5), X, y, np.ones(40)), EngineOptions())
    engine.improve(np.arange(40), CoordinateDescent(), Aim(1e-3, 0.1))
    assert engine.rows.kept.nbytes > 0
    computed = engine.rows.computed
    engine.retire()
    assert engine.rows.kept.nbytes == 0
    assert engine.rows.computed == computed  # counts stay
    np.testing.assert_array_equal(engine.samples(np.array([3, 7])), X[[3, 7]])
