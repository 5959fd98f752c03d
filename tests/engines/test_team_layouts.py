"""The processes of a team lay their samples out as one process would that has them all."""

import threading
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from shards import on_ranks, splits_of
from sklearn.datasets import load_digits
from thread_team import run_ranks

from multimargin import _core, kernels
from multimargin.engines.cpu import layouts
from multimargin.engines.cpu.grids import Grid
from multimargin.engines.cpu.layouts import Layout
from multimargin.system.data import canonical, same_form

N = 300
splits = splits_of(N)
KERNELS = {
    "rbf": lambda X: kernels.RBF("scale").resolve(X),
    "near rbf": lambda X: kernels.RBF(1e4),
    "laplacian": lambda X: kernels.Laplacian("scale").resolve(X),
    "linear": lambda X: kernels.Linear(),
    "poly": lambda X: kernels.Polynomial(0.1, normalize=True),
}


@cache
def datasets():
    rng = np.random.default_rng(5)
    pixels = load_digits().data[:N].astype(np.uint8)
    floats = rng.normal(size=(N, 40))
    alternately = rng.permutation(N)
    halves = np.where(np.arange(N)[:, None] < N // 2, np.rint(floats * 10), floats)
    one_negative = pixels.astype(np.int16)
    one_negative[-1, 5] = -3
    one_large = pixels.astype(np.float64)
    one_large[-1, -1] = 40000.0
    first_odd = pixels / 16.0
    first_odd[0, 0] = np.sqrt(2)
    last_odd = pixels / 16.0
    last_odd[-1, -2] = np.sqrt(2)  # not in the sample that is looked at first
    outlier = floats.copy()
    outlier[-1] *= 1e16
    binary = (rng.random((N, 64)) < 0.3).astype(np.float64)
    one_two = binary.copy()
    one_two[0, 0] = 2.0
    heavy = sparse.random_array((N, 80), density=0.2, format="csr", rng=rng)
    lopsided = sparse.vstack([sparse.csr_array((N - 20, 80)), sparse.csr_array(rng.random((20, 80)))], "csr")
    counts = sparse.csr_array(np.where(rng.random((N, 90)) < 0.15, rng.integers(1, 200, (N, 90)), 0))
    return {
        "uint8": pixels,
        "pixels / 255": pixels / 255.0,
        "pixels / 255 in float32": (pixels / 255.0).astype(np.float32),
        "decimals": pixels * 1e-4,
        "int16": pixels.astype(np.int16) * 90 - 40,
        "wide integers": rng.integers(-70000, 70000, (N, 5)),
        "bool": pixels > 8,
        "binary": binary,
        "binary but for one": one_two,
        "zero": np.zeros((N, 40)),
        "constant": np.full((N, 4), 0.7),
        "floats": floats,
        "float32": floats.astype(np.float32),
        "few features": floats[:, :5],
        "offset": floats + 1e5,
        "far offset": floats[:, :7] + 1e9,
        "huge": floats * 1e200,
        "large": floats * 1e12,
        "tiny": floats * 1e-30,
        "one negative": one_negative,
        "one off the range": one_large,
        "one off the grid": first_odd,
        "last off the grid": last_odd,
        "one far away": outlier,
        "integers, then floats": halves,
        "floats, then integers": halves[::-1],
        "sorted": np.sort(floats, axis=0),
        "ranks differ in scale": floats * np.geomspace(1e-6, 1e6, N)[:, None],
        "fine and coarse grid": np.where(np.arange(N)[:, None] < 200, pixels, pixels / 4.0)[alternately],
        "sparse": heavy,
        "sparse float32": heavy.astype(np.float32),
        "sparse offsets": sparse.csr_array((heavy.data + 1e7, heavy.indices, heavy.indptr), heavy.shape),
        "sparse thin": sparse.random_array((N, 500), density=0.004, format="csr", rng=rng),
        "sparse pixels": sparse.csr_array(pixels),
        "sparse counts": counts,
        "sparse binary": sparse.csr_array((heavy.data > 0, heavy.indices, heavy.indptr), heavy.shape),
        "sparse, all on one rank": lopsided,
        "sparse without entries": sparse.csr_array((N, 30)),
    }


@cache
def alone(name, kernel, dtype="auto"):
    """The layout of one process."""
    X = canonical(datasets()[name])
    return Layout.plan(KERNELS[kernel](X), X, dtype)


def kernels_of(name):
    """The kernels for a data set; the squares of the largest one are beyond gamma="scale"."""
    return KERNELS if name != "huge" else ["near rbf", "linear"]


def assert_same(layout, other):
    assert layout.form == other.form
    assert layout.dtype == other.dtype
    assert layout.grid == other.grid
    assert (layout.center is None) == (other.center is None)


@splits
@pytest.mark.parametrize("name", list(datasets()))
def test_all_ranks_choose_the_layout_of_one_process(name, bounds):
    X = canonical(datasets()[name])
    largest = abs(X).max().astype(np.float64)
    cases = [(kernel, dtype) for kernel in kernels_of(name) for dtype in ("auto", "float64")]

    def plans(rows, team):
        return [Layout.plan(alone(name, *case).kernel, rows, case[1], team) for case in cases]

    found = on_ranks(bounds, X, plans)
    for case, layouts_found in zip(cases, zip(*found, strict=True), strict=True):
        expected = alone(name, *case)
        for layout in layouts_found:
            assert_same(layout, expected)
            if expected.center is not None:
                np.testing.assert_allclose(layout.center, expected.center, atol=1e-13 * largest, rtol=1e-12)
                np.testing.assert_array_equal(layout.center, layouts_found[0].center)


def test_the_datasets_have_all_forms():
    forms = {alone(name, kernel).describe() for name in datasets() for kernel in kernels_of(name)}
    assert forms == {
        *("binary", "uint8 product", "int8 product", "int16 product"),
        *("float32 product", "float64 product", "float32 direct", "float64 direct"),
        *("sparse float32", "sparse float64", "sparse float64 direct"),
    }


@pytest.mark.parametrize(
    "name", ["integers, then floats", "one off the grid", "last off the grid", "one far away", "one negative"]
)
def test_a_rank_alone_would_choose_otherwise(name):
    """Otherwise the tests above would not show that the ranks look at the samples of all."""
    X = datasets()[name]
    kernel = KERNELS["rbf"](X)
    first, second = (Layout.plan(kernel, rows, "auto") for rows in (X[:100], X[100:]))
    assert first.describe() != second.describe()


@splits
@pytest.mark.parametrize(
    "name", ["uint8", "bool", "floats", "few features", "sparse", "sparse offsets", "decimals"]
)
def test_every_rank_lays_out_its_rows_and_the_values_are_those_of_one_process(name, bounds):
    """The rows of some samples, as they come from their owners, against the rows of each rank."""
    X = canonical(datasets()[name])
    kernel, ids = KERNELS["rbf"](X), np.array([3, 290, 150, 7])
    expected = kernel.between(X[ids], X)

    def values(rows, team):
        layout = Layout.plan(kernel, rows, "float64", team)
        mine, guests = layout.samples(rows), layout.samples(X[ids])
        K, every = np.empty((len(ids), rows.shape[0])), np.arange(len(ids))
        _core.kernel_block(layout.spec(0.0), guests, every, mine, 0, rows.shape[0], K, every, 1)
        return K

    found = np.concatenate(on_ranks(bounds, X, values), axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_ranks_of_different_types_choose_the_layout_of_all_rows():
    X = datasets()["uint8"]
    parts = [X[:100], X[100:200].astype(np.float64) / 2, X[200:].astype(np.float32) / 4]
    together = np.concatenate(parts)
    kernel = KERNELS["rbf"](together)
    assert together.dtype == np.float64
    expected = Layout.plan(kernel, together, "auto")
    assert expected.grid == Grid(0.25, np.dtype(np.uint8), binary=False)

    def found(team):
        return Layout.plan(kernel, same_form(parts[team.rank], team), "auto", team)

    for layout in run_ranks(3, found):
        assert_same(layout, expected)


def test_the_scale_is_found_in_the_sample_of_one_process():
    """More values than the sample has: ranks take turns in it, so that it has the same values."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 50, (1000, 30)) * 0.02
    X[::7] *= 3
    X[5, 5] = 0.02 / 3  # in the data, hardly in the sample
    expected = Grid.find(X)
    for bounds in [0, 333, 1000], [0, 1, 2, 1000], [0, 0, 999, 999, 1000]:
        assert on_ranks(bounds, X, Grid.find) == [expected] * (len(bounds) - 1)


@pytest.mark.parametrize(("share", "form"), [(0.022, "sparse"), (0.2, "binary")])
def test_memory_of_all_ranks_decides_on_dense_copies(share, form, monkeypatch):
    monkeypatch.setattr(layouts, "_SMALL_BYTES", 0)
    full = np.random.default_rng(0).random((100, 500)) < 4 * share
    X = sparse.vstack([sparse.csr_array((300, 500)), sparse.csr_array(full.astype(np.float64))], "csr")
    kernel = kernels.RBF(1.0)
    assert Layout.plan(kernel, X, "auto").form == form
    found = on_ranks([0, 200, 300, 400], X, lambda rows, team: Layout.plan(kernel, rows, "auto", team))
    assert [layout.form for layout in found] == [form] * 3


def test_one_machine_without_vector_instructions_decides_for_all(monkeypatch):
    X = datasets()["uint8"]
    names = {"rank 0": "avx2", "rank 1": "portable", "rank 2": "avx2"}
    machine = SimpleNamespace(integer_simd=lambda: names[threading.current_thread().name])
    monkeypatch.setattr(layouts, "_core", machine)
    share = np.count_nonzero(X) / X.size
    for limit, fast in (0.99 * share, False), (1.01 * share, True):
        monkeypatch.setattr(layouts, "_PORTABLE_SHARE", limit)
        assert on_ranks([0, 5, 200, N], X, layouts._fast) == [fast] * 3
