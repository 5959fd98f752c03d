"""Large costs: kernel rows become fixed-point numbers after two rounds, if the coefficients are small."""

import numpy as np
import pytest
from helpers import audit
from oracle import kernel_matrix

from multimargin import KernelSVC
from multimargin.engines import EngineOptions
from multimargin.engines.base import Task
from multimargin.engines.cpu.coarse_rows import ROUNDS
from multimargin.engines.cpu.engine import CpuEngine
from multimargin.engines.cpu.lasting import LastingEngine
from multimargin.inner.block import Aim
from multimargin.kernels import RBF
from multimargin.methods.table import find_method
from multimargin.problems import PROBLEMS

N, M, D, GAMMA = 2300, 4, 20, 0.05
MACHINES = ["crammer-singer", "weston-watkins", "one-vs-rest"]


def blobs(distance):
    rng = np.random.default_rng(0)
    y = np.arange(N) % M
    return rng.normal(size=(N, D)) + distance * rng.normal(size=(M, D))[y], y


def engine(kind=CpuEngine, start=None, **options):
    X, y = blobs(1.5)
    C = np.full(N, 500.0)
    task = Task(PROBLEMS["crammer-singer"](M), RBF(gamma=GAMMA), X, y.astype(np.int32), C, start=start)
    method = find_method("auto", "auto", "crammer-singer")
    own = {"lazy_blocks": True, "inner": method.inner, "leap": False} | options
    return kind(task, EngineOptions(**own)), method.inner


def row_dtypes(made, inner):
    """The type of kernel rows after each of three rounds."""
    found = []
    for size in (256, 384, 600):
        made.improve(np.arange(size), inner, Aim(1e-3, 0.1), keep=True)
        found.append(made.describe()["row_dtype"])
    return found


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("distance", "gamma", "dtype"), [(1.5, GAMMA, "uint16"), (0.3, 1e-3, "float32")])
def test_the_first_coefficients_decide(machine, distance, gamma, dtype):
    X, y = blobs(distance)
    model = KernelSVC(machine, C=500.0, gamma=gamma, random_state=0, time_limit=60).fit(X, y)
    assert model.status_.converged
    assert model.trace_.info["row_dtype"] == dtype
    assert (np.diff(model.trace_["rows"]) >= 0).all()  # counts go on
    audit(model, kernel_matrix("rbf", X, gamma=gamma), y, 500.0, tol=1e-3)


def test_rows_change_once_after_two_rounds():
    made, inner = engine()
    assert made.describe()["row_dtype"] == "float32"
    assert row_dtypes(made, inner) == ["float32"] * (ROUNDS - 1) + ["uint16"] * (4 - ROUNDS)
    assert made.rows.kept.dtype == np.uint16 and made.blocks.growing(np.arange(600)).K.dtype == np.uint16


def test_a_proof_after_the_change_knows_the_steps_before():
    """The error of G is that of all steps, so the rows of other samples are as wrong as the bound says."""
    made, inner = engine()
    row_dtypes(made, inner)
    X, _ = blobs(1.5)
    exact = kernel_matrix("rbf", X, gamma=GAMMA) @ made.state.alpha
    error = np.abs(made.state.scores(slice(None)) - exact).max()
    assert 0 < error <= made.steps.proof.error()
    length = made.steps.proof.knows()[0]
    assert (length >= np.abs(made.state.alpha).sum(axis=0) - 1e-9).all()


@pytest.mark.parametrize(
    ("kind", "options"),
    [(LastingEngine, {}), (CpuEngine, {"dtype": "float32"}), (CpuEngine, {"tol": 1e-5})],
    ids=["other fits use the rows", "asked for", "a small tolerance"],
)
def test_rows_stay_as_they_are(kind, options):
    made, inner = engine(kind, **options)
    assert row_dtypes(made, inner) == ["float32"] * 3


def test_rows_of_a_known_start_stay_as_they_are():
    made, inner = engine()
    made.improve(np.arange(256), inner, Aim(1e-3, 0.1), keep=True)
    found = made.found()
    again, inner = engine(start=(found.ids, found.coef))
    assert row_dtypes(again, inner) == ["float32"] * 3
