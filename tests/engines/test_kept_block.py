"""The kernel block kept between rounds: always the dense matrix's, never larger than allowed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimargin import _core
from multimargin.engines import CpuEngine, EngineOptions
from multimargin.engines.base import Task
from multimargin.engines.cpu.kept_block import KeptBlock
from multimargin.inner import CoordinateDescent, ProjectedGradient
from multimargin.kernels import RBF, Laplacian, Linear
from multimargin.problems import PROBLEMS
from multimargin.system.fixed_point import FIXED_POINT, decoded, encoded
from multimargin.system.memory import WHOLE_SAMPLES


def matrix(n, dtype=np.float64, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return np.ascontiguousarray(A + A.T, dtype=dtype)


def bounded(n, dtype=np.float32):
    """A matrix like that of a bounded kernel; some values are outside by rounding."""
    K = np.exp(-np.abs(matrix(n)))
    K.flat[::7] = np.float32(1 + 1e-7)
    return ((K + K.T) / 2).astype(dtype)


def take_in(kept, K, W, how="rows", chunk=None, seed=0):
    """A round as the engine does it: rows from a store in any order, or against the members only."""
    new = kept.missing(W, 2)
    if not len(new):
        return new
    if how == "columns":
        everyone = np.concatenate([kept.members, new])
        kept.extend_by(new, np.ascontiguousarray(K[np.ix_(new, everyone)]), 2)
        return new
    place = np.random.default_rng(seed).permutation(len(K))  # sample i's row is in slot place[i]
    store = np.empty_like(K)
    store[place] = K
    for first in range(0, len(new), chunk or len(new)):
        part = new[first : first + chunk] if chunk else new
        kept.extend(part, store, place[part], 2)
    return new


def check(kept, K, W):
    members = kept.members
    assert len(np.unique(members)) == len(members) <= kept.largest
    assert np.isin(W, members).all()
    np.testing.assert_array_equal(kept.kernel, K[np.ix_(members, members)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data(), n=st.integers(1, 40), seed=st.integers(0, 1000))
def test_any_sequence_of_working_sets(dtype, data, n, seed):
    """Rows in slots of any order, all at once or in chunks, or only their columns of members."""
    rng, K = np.random.default_rng(seed), matrix(n, dtype)
    largest = data.draw(st.integers(1, n + 3))
    kept = KeptBlock(n, largest, np.dtype(dtype))
    for _ in range(data.draw(st.integers(1, 8))):
        size = data.draw(st.integers(1, kept.largest))
        W = rng.permutation(n)[:size].astype(np.int64)
        how, chunk = data.draw(st.sampled_from([("rows", None), ("rows", 1), ("rows", 3), ("columns", None)]))
        take_in(kept, K, W, how, chunk, seed)
        check(kept, K, W)
        idle = len(kept.members) - len(W)
        assert idle <= KeptBlock.IDLE_SHARE * len(W)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("how", ["rows", "columns"])
def test_fixed_point_values_are_those_of_the_rows(how, dtype):
    K = bounded(60, dtype)
    kept = KeptBlock(60, 60, FIXED_POINT)
    rng = np.random.default_rng(0)
    for size in (20, 35, 30, 60):
        W = rng.permutation(60)[:size]
        take_in(kept, K, W, how, 7)
        values = K[np.ix_(kept.members, kept.members)]
        np.testing.assert_array_equal(kept.kernel, encoded(values, FIXED_POINT))
        np.testing.assert_allclose(decoded(kept.kernel), values, rtol=0, atol=7.7e-6)


def engine(machine="crammer-singer", kernel=None, C=4.0, offset=0.0, **options):
    rng = np.random.default_rng(0)
    n = WHOLE_SAMPLES + 1
    y = np.arange(n, dtype=np.int32) % 3
    X = rng.normal(size=(n, 2)) + y[:, None]
    options = {"inner": CoordinateDescent(), "cache_bytes": 1 << 28, "block_share": 0.5} | options
    task = Task(PROBLEMS[machine](3), kernel or RBF(0.5), X, y, np.full(n, C), offset)
    return CpuEngine(task, EngineOptions(**options))


@pytest.mark.parametrize(
    ("dtype", "changed"),
    [
        (FIXED_POINT, {}),
        (FIXED_POINT, {"machine": "weston-watkins"}),
        (FIXED_POINT, {"machine": "one-vs-rest"}),
        (FIXED_POINT, {"kernel": Laplacian(0.5)}),
        (np.float32, {"machine": "msvm2"}),
        (np.float32, {"machine": "lee-lin-wahba"}),
        (np.float32, {"inner": ProjectedGradient()}),
        (np.float32, {"C": 1e3}),
        (np.float32, {"offset": 1.0}),
        (np.float64, {"dtype": "float64"}),
        (np.float64, {"kernel": Linear()}),
    ],
)
def test_fixed_point_is_for_bounded_kernels_and_moderate_costs(dtype, changed):
    blocks = engine(**changed).blocks
    assert blocks.growing(np.arange(50)).K.dtype == dtype


def test_the_work_space_serves_blocks_of_any_type():
    blocks = engine().blocks
    kept, once = blocks.growing(np.arange(50)), blocks.once(np.arange(20))
    assert (kept.K.dtype, once.K.dtype) == (FIXED_POINT, np.float32)
    assert blocks.work_space(kept).dtype == FIXED_POINT
    assert blocks.work_space(once).dtype == np.float32


def test_memory_is_that_of_the_largest():
    kept = KeptBlock(100, 30, np.dtype(np.float32))
    assert kept.room(np.dtype(np.float32)).nbytes == kept._values.nbytes == 30 * 30 * 4
    assert kept.room(np.dtype(np.float64)).nbytes == 30 * 30 * 4
    for seed in range(5):
        values = kept._values
        take_in(kept, matrix(100, np.float32), np.random.default_rng(seed).permutation(100)[:30])
        assert kept._values is values
        assert np.shares_memory(kept.kernel, values)
    small = KeptBlock(10, 30, np.dtype(np.float32))
    assert small.room(np.dtype(np.float32)).size == 100  # never more than all samples


def test_more_than_the_largest_is_an_error():
    kept = KeptBlock(20, 5, np.dtype(np.float64))
    with pytest.raises(ValueError, match="room"):
        take_in(kept, matrix(20), np.arange(6))


def test_what_is_a_member_is_not_missing():
    K, kept = matrix(30), KeptBlock(30, 30, np.dtype(np.float64))
    np.testing.assert_array_equal(take_in(kept, K, np.arange(10)), np.arange(10))
    np.testing.assert_array_equal(take_in(kept, K, np.array([3, 12, 5, 11])), [12, 11])
    assert len(take_in(kept, K, np.array([3, 12, 5, 11]))) == 0


def test_few_idle_members_stay_and_many_leave():
    K, kept = matrix(40), KeptBlock(40, 40, np.dtype(np.float64))
    take_in(kept, K, np.arange(20))
    take_in(kept, K, np.arange(3, 23))  # three idle of 20: they stay
    assert set(kept.members) == set(range(23))
    take_in(kept, K, np.arange(15, 30))  # 15 idle: they leave
    assert set(kept.members) == set(range(15, 30))
    check(kept, K, np.arange(15, 30))


def test_idle_members_leave_where_they_would_take_the_room():
    K, kept = matrix(40), KeptBlock(40, 20, np.dtype(np.float64))
    take_in(kept, K, np.arange(20))
    take_in(kept, K, np.arange(1, 21))  # one idle, but 21 do not fit
    assert set(kept.members) == set(range(1, 21))
    check(kept, K, np.arange(1, 21))


@pytest.mark.parametrize("machine", ["crammer-singer", "msvm2"])
def test_block_of_all_samples_is_the_row_store(machine):
    """It is copied only where a ridge has to be added; later, smaller sets have a block of their own."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60).astype(np.int32)
    engine = CpuEngine(Task(PROBLEMS[machine](3), RBF(0.3), X, y, np.full(60, 2.0)), EngineOptions())
    K = RBF(0.3).between(X, X) + (0.25 * np.eye(60) if machine == "msvm2" else 0.0)
    whole = engine.blocks.growing(np.arange(60))
    assert np.shares_memory(whole.K, engine.rows.kept) == (machine == "crammer-singer")
    np.testing.assert_allclose(whole.K, K, atol=1e-14)
    part = engine.blocks.growing(np.arange(5, 40))
    assert not np.shares_memory(part.K, engine.rows.kept)
    np.testing.assert_allclose(part.K, K[np.ix_(part.W, part.W)], atol=1e-14)


@pytest.mark.parametrize("rows", [0, 30, 60])
def test_proof_by_rows_in_store_or_computed(rows):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60).astype(np.int32)
    alpha = rng.normal(size=(60, 3))
    alpha[40:] = 0.0
    engine = CpuEngine(Task(PROBLEMS["crammer-singer"](3), RBF(0.3), X, y, np.ones(60)), EngineOptions())
    for _ in engine.rows.visit(np.arange(rows)):
        pass
    engine.place(alpha)
    np.testing.assert_allclose(engine.state.scores(slice(None)), RBF(0.3).between(X, X) @ alpha, atol=1e-13)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("old, new", [(1600, 1600), (1600, 1680), (1600, 4000)])
def test_rows_move_apart_on_threads(threads, old, new):
    rows, columns = 1600, 1590
    values = np.zeros(rows * new, dtype=np.uint16)
    before = values[: rows * old].reshape(rows, old)
    before[:, :columns] = np.random.default_rng(0).integers(0, 65536, (rows, columns))
    expected = before[:, :columns].copy()
    _core.widen_block(values, rows, columns, old, new, threads)
    np.testing.assert_array_equal(values.reshape(rows, new)[:, :columns], expected)
