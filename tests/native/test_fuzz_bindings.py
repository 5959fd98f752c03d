"""Native functions refuse broken arguments and never crash; `make fuzz` makes a million calls."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from multimargin import _core

SCRIPT = Path(__file__).with_name("fuzz_bindings.py")


def test_broken_calls_are_refused():
    command = [sys.executable, str(SCRIPT), "--inputs", "4000", "--seconds", "20"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = [line.split() for line in done.stdout.splitlines() if line.endswith("refused")]
    assert len(counts) > 20
    assert all(int(line[1].replace(",", "")) > 0 for line in counts), done.stdout  # some calls are sound


# -- what the fuzzer has found ---------------------------------------------------------------------------
HUGE = [(1 << 62), (1 << 63) - 1]


@pytest.mark.parametrize("d", HUGE)
def test_sparse_samples_of_too_many_features_are_refused(d):
    """Multiples of d overflowed: 2^62 features took no memory, and were written to."""
    indices, indptr = np.zeros(1, np.int64), np.array([0, 1])
    with pytest.raises((ValueError, MemoryError)):
        _core.binary(indices, indptr, 1, d, 1.0)
    for make in (_core.sparse, _core.sparse_direct):
        with pytest.raises((ValueError, MemoryError)):
            make(np.ones(1), indices, indptr, 1, d)
    y, C = np.zeros(1, np.int32), np.ones(1)
    with pytest.raises((ValueError, MemoryError)):
        _core.LinearProblem("crammer-singer", np.ones(1), indices, indptr, d, y, C, 2, 1.0, 1)


@pytest.mark.parametrize("stride", HUGE)
def test_a_block_is_not_widened_beyond_its_array(stride):
    with pytest.raises(ValueError, match="no room"):
        _core.widen_block(np.zeros(20), 5, 4, 4, stride, 1)


@pytest.mark.parametrize("base", [*HUGE, -1, -(1 << 63)])
def test_indices_of_text_do_not_overflow(base):
    style = _core.TextStyle([b""], [b"\n"], b" ", b":", False)
    with pytest.raises(ValueError, match="base"):
        _core.write_sparse(
            np.ones(1), np.zeros(1, np.int64), np.array([0, 1]), base, np.zeros(1, np.int64), style
        )
    reader = _core.LibsvmReader(True, 0, 1 << 40)
    assert reader.feed(np.frombuffer(b"1 3:2\n", np.uint8), 1) is None
    with pytest.raises(ValueError, match=r"base|range"):
        reader.csr(np.zeros(1), np.zeros(1, np.int32), np.zeros(2, np.int32), base, 1)


@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins", "one-vs-rest"])
def test_weights_that_overflow_list_no_class_that_is_not_there(machine):
    """Scores of minus infinity let the padding reach the floor, and arrays were too short for it."""
    X, y, C = np.ones((40, 3), np.float32), np.zeros(40, np.int32), np.ones(40)
    for value in (np.inf, -np.inf, np.nan, -3e38):
        problem = _core.LinearProblem(machine, X, y, C, 2, 0.0, 1)
        weights = np.full((3, 8), value, np.float32)
        runner = _core.PassRunner(problem, weights, "sort", 0.0, 1, False)
        assert len(problem.measure(weights)) == 4
        runner.begin(True, 0.0, 1.0, 0.0, True)
        assert runner.go_on()[0] <= 40


def test_a_column_of_words_that_is_not_there_is_named():
    reader = _core.TableReader(44, '"', 0, np.zeros(2, np.uint8))
    with pytest.raises(ValueError, match="a column of words expected"):
        reader.words(0)


def test_a_kernel_that_integers_do_not_have_is_an_error_of_the_value():
    samples = _core.integers(np.ones((2, 2), np.uint8), 1.0)
    spec = _core.KernelSpec("laplacian", 1.0, 0.0, 3, 0.0)
    with pytest.raises(ValueError, match="no L1 distance"):
        _core.kernel_block(spec, samples, np.arange(2), samples, 0, 2, np.zeros((2, 2)), np.arange(2), 1)
