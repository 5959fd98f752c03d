"""dtype="auto": kernel rows become float64 if float32 rounding stops the descent, and only then."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import audit, unfinished
from oracle import kernel_matrix

from multimargin import KernelSVC
from multimargin.engines import CpuEngine, EngineOptions
from multimargin.engines.base import Task
from multimargin.kernels import RBF
from multimargin.methods.table import find_method
from multimargin.problems import PROBLEMS


def blobs(n, m, d=4):
    rng, y = np.random.default_rng(0), np.arange(n) % m
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(m, d))[y], y


@pytest.mark.parametrize(
    ("machine", "gamma", "C"),
    [("c-svc", 1e-9, 1e6), ("crammer-singer", 1e-3, 1e5), ("weston-watkins", 1e-3, 1e5)],
)
def test_rows_become_float64_if_float32_does_not_suffice(machine, gamma, C):
    X, y = blobs(2100, 2 if machine == "c-svc" else 3)
    solver = replace(find_method("auto", "auto", machine), leap=False)  # a leap has an exact gradient
    model = KernelSVC(machine, C=C, gamma=gamma, solver=solver, time_limit=60).fit(X, y)
    assert model.status_.converged
    assert model.trace_.info["row_dtype"] == "float64"
    assert (np.diff(model.trace_["rows"]) >= 0).all()  # counts go on
    # The oracle rounds scores too: 1e9, the sum of all coefficients, times 1e-15.
    audit(model, kernel_matrix("rbf", X, gamma=gamma), y, C, tol=1.01e-3)


def test_rows_stay_float32_if_float64_ones_do_not_fit_the_memory():
    """A working set of 1,000 samples takes 4 MB, or 8 in float64: a fit must not end in an error half way."""
    X, y = blobs(2200, 3)
    task = Task(PROBLEMS["crammer-singer"](3), RBF(gamma=1.0), X, y.astype(np.int32), np.ones(2200))
    for megabytes, promoted in ((5, False), (9, True)):
        engine = CpuEngine(task, EngineOptions(cache_bytes=megabytes * 10**6, working_set=1000))
        assert engine.describe()["row_dtype"] == "float32"
        assert engine.promote() is promoted
        assert engine.describe()["row_dtype"] == ("float64" if promoted else "float32")


def test_rows_stay_small_if_they_suffice_or_are_asked_for():
    X, y = blobs(2200, 3)
    assert KernelSVC().fit(X, y).trace_.info["row_dtype"] == "uint16"  # fixed point
    assert KernelSVC(tol=5e-5).fit(X, y).trace_.info["row_dtype"] == "float32"
    with unfinished():
        model = KernelSVC(C=1e5, gamma=1e-3, dtype="float32", max_iter=60).fit(X, y)
    assert model.trace_.info["row_dtype"] == "float32"
