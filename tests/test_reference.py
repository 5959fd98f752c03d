"""The stored optima of tiny problems: Crammer-Singer without bias and with a regularised one."""

import json

import numpy as np
import pytest
from helpers import ENGINES, METHODS, SOLVERS, audit
from oracle import certify, kernel_matrix, solve_binary, solve_crammer_singer

from multimargin import KernelSVC

CASES = [f"cs-{bias}-{data}" for bias in ("none", "reg") for data in ("A3", "B4", "C5", "Z3")]


@pytest.fixture(scope="module")
def optima(shared):
    return json.loads((shared / "reference" / "tiny_optima.json").read_text())


def load(optima, name):
    case = next(case for case in optima["cases"] if case["id"] == name)
    data = optima["datasets"][case["dataset"]]
    X, y, weight = (np.array(data[key]) for key in ("X", "y", "sample_weight"))
    gamma = case["gamma"] or 1.0
    K = kernel_matrix(case["kernel"], X, gamma=gamma, offset=float(case["bias"] == "reg"))
    return case, X, y, weight, gamma, K


def test_every_crammer_singer_case_is_covered(optima):
    stored = {case["id"] for case in optima["cases"] if case["machine"] == "cs" and case["bias"] != "free"}
    assert stored == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_oracle_finds_the_optimum(optima, name):
    case, _, y, weight, _, K = load(optima, name)
    found = certify(K, y, solve_crammer_singer(K, y, case["C"] * weight), case["C"] * weight)
    assert found.dual == pytest.approx(case["dual_opt"], rel=1e-9)


@pytest.mark.parametrize("name", [f"csvc-{bias}-{data}" for bias in ("none", "reg") for data in ("P2", "Z2")])
def test_binary_oracle_finds_the_optimum(optima, name):
    case, _, y, weight, _, K = load(optima, name)
    assert solve_binary(K, 2 * y - 1, case["C"] * weight) == pytest.approx(case["dual_opt"], rel=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CASES)
def test_optimum(optima, name, method, engine):
    case, X, y, weight, gamma, K = load(optima, name)
    bias = "regularized" if case["bias"] == "reg" else "none"
    model = KernelSVC(
        C=case["C"],
        kernel=case["kernel"],
        gamma=gamma,
        bias=bias,
        solver=SOLVERS[method],
        **ENGINES[engine],
        tol=1e-7,
    ).fit(X, y, sample_weight=weight)
    found = audit(model, K, y, case["C"] * weight, tol=1e-7)
    assert found.dual == pytest.approx(case["dual_opt"], rel=1e-6)
    assert found.primal == pytest.approx(-case["dual_opt"], rel=1e-6)
    scores = K[:, model.support_] @ model.dual_coef_
    np.testing.assert_allclose(scores, case["scores_no_bias"], atol=2e-3)
