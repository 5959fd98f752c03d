"""A free bias: few steps for few samples, an end in every case, and no linear program that ends a fit."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers import audit
from oracle import MACHINES, kernel_matrix
from thread_team import run_ranks

from multimargin import KernelSVC
from multimargin.methods.bias import proximal_weight
from multimargin.problems import PROBLEMS, flows
from multimargin.system.team import SOLO

MULTICLASS = sorted(set(MACHINES) - {"c-svc"})


def blobs(n, m=3, d=4):
    rng, y = np.random.default_rng(0), np.arange(n) % m
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(m, d))[y], y


@pytest.mark.parametrize("C", [1e-9, 1.0, 100.0])
@pytest.mark.parametrize("machine", MULTICLASS)
def test_few_samples_take_few_rounds(machine, C):
    X, y = blobs(60)
    model = KernelSVC(machine, C=C, gamma=0.25, bias="free", time_limit=20).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.25), y, C, tol=1e-6)
    assert len(model.trace_) <= 40


def test_a_bias_of_more_classes_than_a_program_has_arcs():
    rng, y = np.random.default_rng(0), np.arange(3, dtype=np.int32)
    S, C = rng.normal(size=(3, 6000)), np.ones(3)
    for machine in ("crammer-singer", "weston-watkins"):
        problem = PROBLEMS[machine](6000)
        b = problem.best_bias(S, y, C)
        assert problem.loss(S + b, y, C).sum() <= problem.loss(S, y, C).sum()


@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins"])
def test_a_failed_linear_program_leaves_a_valid_model(machine, monkeypatch):
    monkeypatch.setattr(flows, "linprog", lambda *_, **__: SimpleNamespace(status=4, message="numbers"))
    X, y = blobs(60)
    model = KernelSVC(machine, gamma=0.25, bias="free").fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.25), y, 1.0, tol=1e-6)


def test_a_failed_linear_program_ends_frank_wolfe_without_an_error(monkeypatch):
    monkeypatch.setattr(flows, "linprog", lambda *_, **__: SimpleNamespace(status=4, message="numbers"))
    X, y = blobs(60)
    with pytest.warns(UserWarning, match="stalled"):
        model = KernelSVC(gamma=0.25, bias="free", solver="msvmpack", tol=0.02).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.25), y, 1.0)


def test_the_weight_of_the_bias_is_that_of_all_ranks():
    rng = np.random.default_rng(0)
    diagonal, C = rng.uniform(1.0, 2.0, 600), rng.uniform(1e-3, 1.0, 600)  # more than count as few
    alone, cuts = proximal_weight(diagonal, C, 3, SOLO), [0, 100, 100, 600]
    rows = [slice(*cuts[k : k + 2]) for k in range(3)]
    found = run_ranks(3, lambda team: proximal_weight(diagonal[rows[team.rank]], C[rows[team.rank]], 3, team))
    assert found == [pytest.approx(alone, rel=1e-14)] * 3
    assert len(set(found)) == 1
