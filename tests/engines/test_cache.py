"""The book-keeping of kept kernel rows: who has which slot, who leaves first, what is counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimargin.engines.cpu.row_cache import RowCache


def test_least_recently_used_leaves_first():
    cache = RowCache(3, 100)
    cache.admit([1, 2, 3])
    cache.lookup([1])
    cache.admit([4])
    assert 2 not in cache and 1 in cache and 3 in cache and 4 in cache
    cache.admit([5])
    assert 3 not in cache and 1 in cache


def test_slots_are_stable_and_reused():
    cache = RowCache(2, 100)
    first = cache.admit([10, 20])
    assert sorted(first) == [0, 1]
    np.testing.assert_array_equal(cache.lookup([20, 10]), first[::-1])
    assert cache.admit([30])[0] == first[1]  # 20 was looked up before 10


def test_counts():
    cache = RowCache(2, 100)
    cache.lookup([1, 2])
    cache.admit([1, 2])
    cache.lookup([2, 1, 3])
    cache.admit([3])
    assert (cache.hits, cache.misses, cache.evictions) == (2, 3, 1)


def test_peek_leaves_no_trace():
    cache = RowCache(2, 100)
    cache.admit([1, 2])
    np.testing.assert_array_equal(cache.peek(np.array([1, 9])), [0, -1])
    assert (cache.hits, cache.misses) == (0, 0)
    cache.admit([3])
    assert 1 not in cache  # peeking did not make it recent


def test_more_rows_than_slots_is_an_error():
    cache = RowCache(2, 100)
    with pytest.raises(ValueError, match=r"3 rows.*2"):
        cache.admit([1, 2, 3])


def test_rows_just_found_survive_the_admission_of_the_missing():
    """A working set that fits is wholly in the cache after lookup and admit, whatever was there before."""
    cache = RowCache(4, 100)
    cache.admit([1, 2, 3, 4])
    wanted = np.array([1, 8, 2, 9])
    slots = cache.lookup(wanted)
    cache.admit(wanted[slots < 0])
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
        cache.admit(absent)
        order += absent
        evictions += max(0, len(order) - capacity)
        order = order[-capacity:]
        slots = cache.peek(order)
        assert len(cache) == len(order)
        assert len(set(slots)) == len(order) and (slots >= 0).all() and (slots < capacity).all()
    assert (cache.hits, cache.misses, cache.evictions) == (hits, misses, evictions)
