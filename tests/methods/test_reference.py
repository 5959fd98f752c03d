"""The stored optima of tiny problems: every machine and bias, by the oracle and by all solvers for it."""

from itertools import product

import numpy as np
import pytest
from helpers import ENGINES, METHODS, audit, solver_for
from oracle import certify, kernel_matrix, solve

from multimargin import KernelSVC

BIASES = {"none": "none", "reg": "regularized", "free": "free"}
SETS, BINARY_SETS = ("A3", "B4", "C5", "Z3"), ("P2", "Q2", "R2", "Z2")
CASES = ["-".join(parts) for parts in product(("cs", "ww", "llw", "msvm2", "ovr"), BIASES, SETS)]
BINARY_CASES = ["-".join(parts) for parts in product(("csvc",), BIASES, BINARY_SETS)]
GENERAL = ("growing", "auto", "dasmc")  # solvers of every machine and bias
BINARY = ("growing", "auto", "vpdt", "svm-light")  # solvers of c-svc, whose bias is free


def ways():
    """(case, method, engine), less what takes plain Python long: many steps of coordinate descent."""
    for name, engine in product(CASES, ENGINES):
        if name.startswith(("cs-none", "cs-reg")):
            methods = METHODS
        elif engine != "numpy":
            methods = GENERAL
        elif "free" in name:
            methods = ("growing",) if name.endswith(("A3", "Z3")) else ()
        else:
            methods = ("growing", "dasmc") if name.endswith("A3") else ("dasmc",)
        yield from ((name, method, engine) for method in methods)
    binary = (f"csvc-free-{data}" for data in BINARY_SETS)
    yield from product(binary, BINARY, ENGINES)


def load(optima, name):
    case = next(case for case in optima["cases"] if case["id"] == name)
    data = optima["datasets"][case["dataset"]]
    X, y, weight = (np.array(data[key]) for key in ("X", "y", "sample_weight"))
    K = kernel_matrix(case["kernel"], X, gamma=case["gamma"] or 1.0, offset=float(case["bias"] == "reg"))
    return case, optima["names"][case["machine"]], X, y, case["C"] * weight, K


def test_every_case_is_covered(optima):
    assert {case["id"] for case in optima["cases"]} == {*CASES, *BINARY_CASES}


@pytest.mark.parametrize("name", [*CASES, *BINARY_CASES])
def test_oracle_finds_the_optimum(optima, name):
    case, machine, _, y, C, K = load(optima, name)
    alpha, b = solve(K, y, C, machine, free=case["bias"] == "free")
    found = certify(K, y, alpha, C, machine, b)
    assert found.dual == pytest.approx(case["dual_opt"], rel=2e-9)
    assert found.primal == pytest.approx(-case["dual_opt"], rel=2e-9)
    np.testing.assert_allclose(K @ alpha, np.reshape(case["scores_no_bias"], alpha.shape), atol=1e-4)


@pytest.mark.parametrize(("name", "method", "engine"), list(ways()))
def test_optimum(optima, name, method, engine):
    case, machine, X, y, C, K = load(optima, name)
    model = KernelSVC(
        machine,
        C=case["C"],
        kernel=case["kernel"],
        gamma=case["gamma"] or 1.0,
        bias=BIASES[case["bias"]],
        solver=solver_for(method, machine),
        **ENGINES[engine],
        tol=1e-7,
    ).fit(X, y, sample_weight=C / case["C"])
    found = audit(model, K, y, C, tol=1e-7)
    assert found.dual == pytest.approx(case["dual_opt"], rel=1e-6)
    assert found.primal == pytest.approx(-case["dual_opt"], rel=1e-6)
    scores = K[:, model.support_] @ model.dual_coef_
    np.testing.assert_allclose(scores, np.reshape(case["scores_no_bias"], scores.shape), atol=2e-3)
