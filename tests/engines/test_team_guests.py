"""Samples of other processes: their rows travel in the compact form of the layout, with the same kernel."""

import numpy as np
import pytest
from scipy import sparse
from thread_team import run_ranks

from multimargin.engines import CpuEngine, EngineOptions
from multimargin.engines.base import Task
from multimargin.engines.cpu import guests, kernel_values
from multimargin.kernels import RBF, CallableKernel, Linear, Polynomial
from multimargin.problems import PROBLEMS

N, D, CUT = 120, 37, 50
IDS = np.array([119, 3, 49, 50, 0, 77])  # of both ranks
MORE = np.array([77, 12, 100, 3])  # some of them again
FACTS = 24  # bytes of label, cost and diagonal entry

RNG = np.random.default_rng(0)
PIXELS = np.where(RNG.random((N, D)) < 0.6, RNG.integers(1, 256, (N, D)), 0)
FLOATS = RNG.normal(size=(N, D))
BITS = RNG.random((N, D)) < 0.3
# Not what 1 / 255 times an integer gives in float32, but near enough for the grid.
UNEVEN = np.nextafter((PIXELS / 255).astype(np.float32), np.float32(2), dtype=np.float32) * (PIXELS > 0)
POLYNOMIAL = Polynomial(0.5, normalize=True)

# name: (X, kernel, type of a guest's row, kernel_form)
CASES = {
    "bytes": (UNEVEN, RBF(0.05), np.uint8, "uint8 product"),
    "quotients": ((PIXELS / 255).astype(np.float32), RBF(0.05), np.uint8, "uint8 product"),
    "bytes as they are": (PIXELS.astype(np.uint8), RBF(1e-6), np.uint8, "uint8 product"),
    "signed bytes": ((PIXELS % 200 - 100) * 0.25, RBF(1e-3), np.int8, "int8 product"),
    "16 bits": ((PIXELS * 90 - 40) / 8, RBF(1e-7), np.int16, "int16 product"),
    "binary": (BITS * 0.5, RBF(0.1), np.uint8, "binary"),
    "sparse bytes": (sparse.csr_array(UNEVEN), RBF(0.05), np.uint8, "uint8 product"),
    "sparse binary": (sparse.csr_array(BITS * 0.5), RBF(0.1), np.uint8, "binary"),
    "sparse": (sparse.csr_array(FLOATS * BITS), RBF(0.1), np.float64, "sparse float64"),
    "floats": (FLOATS, RBF(0.05), np.float64, "float64 product"),
    "float32": (FLOATS.astype(np.float32), Linear(), np.float32, "float64 product"),
    "few floats": (FLOATS[:, :5], RBF(0.1), np.float64, "float64 direct"),
    "normalised": (UNEVEN, POLYNOMIAL, np.float32, "uint8 product"),
    "normalised floats": (FLOATS, POLYNOMIAL, np.float64, "float64 product"),
    "callable": (FLOATS, CallableKernel(lambda A, B: A @ B.T), np.float64, "python"),
}
every_case = pytest.mark.parametrize("case", CASES)


def engine_of(case, team=None, dtype="float64"):
    """The engine of one rank of two, or of one process."""
    X, kernel = CASES[case][:2]
    here = slice(None) if team is None else (slice(0, CUT), slice(CUT, N))[team.rank]
    y, C = (np.arange(N) % 3).astype(np.int32), np.ones(N)
    own = {} if team is None else {"team": team}
    task = Task(PROBLEMS["crammer-singer"](3), kernel, X[here], y[here], C[here], **own)
    return CpuEngine(task, EngineOptions(dtype=dtype, cache_bytes=20 << 20))


def on_two_ranks(case, function, **options):
    """What ``function(engine)`` gives on each rank, after some samples have become guests."""

    def rank(team):
        engine = engine_of(case, team, **options)
        for ids in (IDS, MORE):
            engine.guests.welcome(ids)
        return function(engine)

    return run_ranks(2, rank)


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def values_of(values, ids, here):
    """Kernel values by every verb; the samples ``here`` have other numbers in their process."""
    rows = np.empty((len(ids), values.width), dtype=values.dtype)
    values.fill(ids, rows, np.arange(len(ids)))
    coef = np.linspace(-1, 1, 2 * len(ids)).reshape(-1, 2)
    own = values.against(ids, here), values.scores(ids, coef)
    return rows, values.table(IDS)(ids, 4), *own


@every_case
def test_the_kernel_values_are_those_of_one_process(case):
    alone = engine_of(case)
    assert alone.values.form == CASES[case][3]
    ids, here = np.concatenate([IDS, MORE[1:3]]), np.array([1, 20, 7])
    found = on_two_ranks(case, lambda engine: values_of(engine.values, ids, here))
    parts = [values_of(alone.values, ids, first + here) for first in (0, CUT)]
    integers = alone.values.form in ("binary", "uint8 product", "int8 product", "int16 product")
    tolerance = {"rtol": 0, "atol": 0} if integers else {"rtol": 1e-12, "atol": 1e-12}
    for rank, (rows, between, against, scores) in enumerate(found):
        expected, own = parts[rank], (slice(0, CUT), slice(CUT, N))[rank]
        np.testing.assert_allclose(rows, expected[0][:, own], **tolerance)
        np.testing.assert_allclose(between, expected[1], **tolerance)
        np.testing.assert_allclose(against, expected[2], **tolerance)
        np.testing.assert_allclose(scores, expected[3][own], rtol=1e-12, atol=1e-12)
    K = alone.task.kernel.between(alone.task.X[ids], alone.task.X)
    np.testing.assert_allclose(parts[0][0], K, rtol=2e-6, atol=2e-6)


@every_case
def test_rows_are_kept_in_the_compact_type_and_originals_are_rows_of_x(case):
    X, _, dtype, _ = CASES[case]
    ids = np.array([5, 119, 60, 12])  # not all of them guests

    def kept_and_original(engine):
        return engine.guests.rows(IDS), engine.samples(ids), engine.samples(ids[:0])

    for kept, original, none in on_two_ranks(case, kept_and_original):
        assert kept.dtype == dtype
        assert kept.shape == (len(IDS), X.shape[1])
        assert original.dtype == none.dtype == X.dtype
        assert none.shape == (0, X.shape[1])
        np.testing.assert_array_equal(dense(original), dense(X[ids]))


@pytest.mark.parametrize("case", ["signed bytes", "16 bits", "binary", "sparse binary", "quotients", "bytes"])
def test_rows_of_x_travel_again_only_if_the_compact_ones_do_not_say_what_they_were(case):
    def received(engine):
        team, found = engine.team, []
        for _ in range(2):  # the first time some of them are no guests
            before = team.received.get("join", 0)
            engine.samples(IDS)
            found.append(team.received.get("join", 0) - before)
        return found[1] > 0

    assert on_two_ranks(case, received) == [case == "bytes"] * 2


@pytest.mark.parametrize("case", [case for case in CASES if not sparse.issparse(CASES[case][0])])
def test_bytes_of_a_guest(case):
    """A guest travels once."""
    X, _, dtype, _ = CASES[case]
    row = X.shape[1] * np.dtype(dtype).itemsize

    def received(team):
        engine, found = engine_of(case, team), []
        for ids in (IDS, MORE, IDS):
            before = team.received.get("join", 0)
            engine.guests.welcome(ids)
            found.append(team.received.get("join", 0) - before)
        return found

    assert run_ranks(2, received) == [[6 * (row + FACTS), 2 * (row + FACTS), 0]] * 2


@pytest.mark.parametrize("case", ["bytes", "sparse", "sparse bytes", "floats"])
def test_many_rows_travel_in_messages_of_bounded_size(case, monkeypatch):
    monkeypatch.setattr(guests, "_MESSAGE_BYTES", 1000)
    X = CASES[case][0]

    def largest(team):
        engine, sizes, join = engine_of(case, team), [], team.join

        def noted(mine, counts=None):
            joined = join(mine, counts)
            sizes.append(joined.nbytes if joined.ndim == 1 or joined.shape[1] > 3 else 0)  # all but facts
            return joined

        team.join = noted
        ids = np.random.default_rng(1).permutation(N)
        engine.guests.welcome(ids)
        most, rows = max(sizes), engine.guests.rows(ids)
        original = engine.samples(ids)
        np.testing.assert_array_equal(dense(original), dense(X[ids]))
        return most, max(sizes), dense(engine.values.compact(X[ids])), dense(rows)

    for guest, original, expected, rows in run_ranks(2, largest):
        assert 0 < guest <= original <= 1500  # sparse rows are of unequal length
        np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("case", ["bytes", "floats"])
def test_guests_serve_rows_of_higher_precision_too(case, monkeypatch):
    monkeypatch.setattr(kernel_values, "WHOLE_SAMPLES", 10)
    expected = engine_of(case).values

    def promoted(engine):
        assert engine.values.dtype == np.float32
        assert engine.promote()
        assert engine.values.dtype == np.float64
        return values_of(engine.values, IDS, np.arange(3))[1]

    for values in on_two_ranks(case, promoted, dtype="auto"):
        np.testing.assert_allclose(values, expected.table(IDS)(IDS, 4), rtol=1e-13)
