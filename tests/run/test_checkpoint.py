"""Fits with a checkpoint: they go on where another one stopped, and end at the same optimum."""

import numpy as np
import pytest
from helpers import audit, unfinished
from oracle import kernel_matrix

from multimargin import KernelSVC
from multimargin.run.checkpoint_file import read

GAMMA, C, TOL = 0.2, 3.0, 1e-3


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


def in_steps(machine):
    """A solver that needs many rounds, so that there is a way to stop on."""
    return {"solver": "svm-light" if machine == "c-svc" else "dasmc", "working_set_size": 8}


def problem(machine, wine, bias="none"):
    X, y = wine[0][::3], wine[1][::3]
    if machine == "c-svc":
        X, y = X[y < 2], y[y < 2]
    offset = 1.0 if bias == "regularized" else 0.0
    return X, y, kernel_matrix("rbf", X, gamma=GAMMA, offset=offset)


def make(machine, **params):
    return KernelSVC(machine, **({"C": C, "gamma": GAMMA, "tol": TOL} | params))


CASES = [
    (machine, bias)
    for machine in ("crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest")
    for bias in ("none", "regularized", "free")
] + [("c-svc", "auto")]


@pytest.mark.parametrize("engine", ["cpu", "numpy"])
@pytest.mark.parametrize(("machine", "bias"), CASES)
def test_a_fit_goes_on_and_reaches_the_optimum(machine, bias, engine, wine, path):
    X, y, K = problem(machine, wine, bias)
    params = {"bias": bias, "engine": engine, "checkpoint": path}
    with unfinished():
        first = make(machine, max_iter=3, **in_steps(machine), **params).fit(X, y)
    assert not first.status_.converged
    stopped = read(path)
    np.testing.assert_array_equal(stopped.rows, first.support_)
    np.testing.assert_array_equal(stopped.coef, first.dual_coef_)
    other = {} if engine == "numpy" else in_steps(machine)  # the other solver is faster there
    second = make(machine, **other, **params).fit(X, y)
    assert second.status_.converged
    audit(second, K, y, C, TOL)
    whole = make(machine, bias=bias).fit(X, y)
    np.testing.assert_allclose(second.dual_objective_, whole.dual_objective_, rtol=1e-2)
    assert second.n_iter_ == 3 + len(second.trace_)
    assert second.trace_[0].iteration == 4
    resumed = second.trace_.info["checkpoint"]["resumed"]
    assert resumed["iterations"] == 3
    assert resumed["seconds"] > 0
    if bias != "free":  # with a free bias the first fit ended by balancing the classes, which moves the dual
        assert second.trace_[0].dual <= first.dual_objective_ + 1e-9
