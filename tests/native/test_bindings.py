"""The bindings: other Python threads run meanwhile; a foreign BLAS and too large blocks are refused."""

import ctypes
import threading
import time

import numpy as np
import pytest
import scipy.linalg.cython_blas

from multimargin import _core

FLOATS = np.zeros((240_000, 120), dtype=np.float32)  # pages that nobody writes to take no memory
BYTES = np.zeros((200_000, 100), dtype=np.uint8)
ENTRIES = 6_000_000


def sparse_arguments():
    indptr = np.arange(0, ENTRIES + 1, 60)
    return np.ones(ENTRIES), np.tile(np.arange(60), ENTRIES // 60), indptr, len(indptr) - 1, 60


def conversions():
    """Calls that look at all data, by name; each takes at least 5 ms."""
    data, indices, indptr, n, d = sparse_arguments()
    y, C = np.zeros(n, dtype=np.int32), np.ones(n)
    labels, costs = np.zeros(len(FLOATS), dtype=np.int32), np.ones(len(FLOATS))
    samples, order = _core.dense_product(FLOATS), np.arange(len(FLOATS))
    flat, machine = FLOATS.ravel(), "crammer-singer"
    return {
        "integers": lambda: _core.integers(BYTES, 1.0),
        "binary": lambda: _core.binary(BYTES, 1.0),
        "sparse": lambda: _core.sparse(data, indices, indptr, n, d),
        "binary, sparse": lambda: _core.binary(indices, indptr, n, d, 1.0),
        "take": lambda: samples.take(order),
        "grid_range": lambda: _core.grid_range(flat, 1.0),
        "to_grid": lambda: _core.to_grid(flat, 1.0, np.empty(len(flat), dtype=np.int8)),
        "linear, dense": lambda: _core.LinearProblem(machine, FLOATS, labels, costs, 2, 1.0, 1),
        "linear, sparse": lambda: _core.LinearProblem(machine, data, indices, indptr, d, y, C, 2, 1.0, 1),
    }


class Ticker:
    """Notes when another Python thread gets its turn; it asks every 0.2 ms."""

    def __enter__(self):
        self.ticks, self._stop = [], False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def _run(self):
        while not self._stop:
            self.ticks.append(time.perf_counter())
            time.sleep(0.0002)

    def longest_wait(self, call):
        """The share of the call's time that the other thread waited in one piece."""
        self.ticks.clear()
        start = time.perf_counter()
        call()
        end = time.perf_counter()
        seen = [tick for tick in self.ticks.copy() if start < tick < end]
        return float(np.diff([start, *seen, end]).max()) / (end - start)

    def __exit__(self, *_):
        self._stop = True
        self._thread.join()


@pytest.mark.parametrize(
    "name",
    [
        "integers",
        "binary",
        "sparse",
        "binary, sparse",
        "take",
        "grid_range",
        "to_grid",
        "linear, dense",
        "linear, sparse",
    ],
)
def test_other_python_threads_run_during_a_conversion_of_all_data(name):
    call = conversions()[name]
    with Ticker() as ticker:
        waits = []
        while len(waits) < 3 or (min(waits) > 0.4 and len(waits) < 25):  # a busy machine may starve a thread
            waits.append(ticker.longest_wait(call))
    assert min(waits) <= 0.4


CAPSULES = scipy.linalg.cython_blas.__pyx_capi__
GEMM = "void (char *, char *, {i}, {i}, {i}, {v}, {v}, {i}, {v}, {i}, {v}, {v}, {i})"


def capsule(signature):
    """A capsule of that name; its pointer is never called."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = signature.encode()
    NAMES.append(name)  # a capsule does not copy its name
    return new(1, name, None)


NAMES = []


@pytest.mark.parametrize(
    "signature",
    [
        GEMM.format(i="int64_t *", v="double *"),
        GEMM.format(i="long *", v="double *"),
        GEMM.format(i="__pyx_t_5scipy_6linalg_11cython_blas_blas_int *", v="double *"),
        GEMM.format(i="int *", v="double *").replace("int *)", "long *)"),
        GEMM.format(i="int *", v="double *").replace(", int *)", ")"),
        GEMM.format(i="int *", v="double *").replace(")", ", int *)"),
        GEMM.format(i="int *", v="double *").replace("double *", "float *", 1),
        GEMM.format(i="int *", v="double *").replace("void", "int"),
        "",
    ],
)
def test_a_blas_of_another_signature_is_refused(signature):
    """A BLAS with 64-bit integers would read beyond ours."""
    with pytest.raises(ImportError, match=r"dgemm .*SciPy whose BLAS has 32-bit integers"):
        _core.set_blas(CAPSULES["sgemm"], capsule(signature))
    _core.set_blas(CAPSULES["sgemm"], CAPSULES["dgemm"])


def test_what_is_no_capsule_is_refused():
    with pytest.raises(TypeError, match="sgemm: a PyCapsule expected"):
        _core.set_blas(print, CAPSULES["dgemm"])


def test_a_block_of_more_variables_than_positions_is_refused(tmp_path):
    """2^31 variables. The file has no contents, so it takes neither memory nor disk."""
    q, m = 1 << 12, 1 << 19
    large = np.memmap(tmp_path / "zeros", dtype=np.float64, mode="w+", shape=(q, m))
    options = _core.DescentOptions(eps=1e-3, max_sweeps=1)
    with pytest.raises(ValueError, match=r"4096 samples and 524288 classes has more than 2\^31 variables"):
        _core.coordinate_descent(
            "weston-watkins",
            np.zeros((q, q)),
            np.ones(q),
            large,
            large,
            np.zeros(q, np.int32),
            np.ones(q),
            options,
        )


@pytest.mark.parametrize("machine", ["lee-lin-wahba", "msvm2"])
def test_fixed_point_blocks_are_refused_if_no_descent_takes_them(machine):
    K = np.full((3, 3), 65535, dtype=np.uint16)
    G, alpha = np.zeros((3, 2)), np.zeros((3, 2))
    y, C = np.array([0, 1, 0], dtype=np.int32), np.ones(3)
    options = _core.DescentOptions(eps=1e-3, max_sweeps=1)
    with pytest.raises(ValueError, match="fixed-point"):
        _core.coordinate_descent(machine, K, np.ones(3), G, alpha, y, C, options)


@pytest.mark.parametrize(("text", "dtype", "fits"), [
    (b"1 1:2 2:-4\n", np.int8, True),
    (b"1 1:2 2:-4\n", np.uint8, False),
    (b"1 1:2 2:1000\n", np.int8, False),
    (b"1 1:2 2:0.5\n", np.int16, False),
])  # fmt: skip
def test_text_is_not_converted_to_a_type_that_cannot_hold_its_numbers(text, dtype, fits):
    reader = _core.LibsvmReader(labelled=True, least_index=0, most_index=10)
    reader.feed(block=np.frombuffer(text, np.uint8), n_threads=1)
    out = np.zeros((1, 2), dtype=dtype)
    if fits:
        reader.dense(out=out, base=1, n_threads=1)
        assert out.tolist() == [[2, -4]]
    else:
        with pytest.raises(ValueError, match="cannot hold"):
            reader.dense(out=out, base=1, n_threads=1)


@pytest.mark.parametrize(
    "sizes", [{"batch": 2**62, "rank": 0, "ranks": 1}, {"batch": 2, "rank": 0, "ranks": 2**62}]
)
def test_sizes_of_messages_are_limited(sizes):
    kernel, every = np.eye(4), np.arange(4)
    places = {"slots": every, "columns": every, "places": every}
    rows = _core.RowSource(K=kernel, known=np.full(4, 4), store=kernel, diag=np.ones(4), **places)
    point = {"G": np.zeros((4, 3)), "alpha": np.zeros((4, 3)), "y": np.zeros(4, np.int32), "C": np.ones(4)}
    options = _core.DescentOptions(eps=1e-3, max_sweeps=3)
    others = _core.SharedArguments(**sizes, exchange=np.array)
    with pytest.raises(ValueError, match="1000000"):
        _core.shared_descent("crammer-singer", rows, **point, options=options, others=others)
