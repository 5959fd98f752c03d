"""Only C·K matters: data and costs of any scale give the model of the same data at an ordinary scale."""

import numpy as np
import pytest
from helpers import unfinished
from oracle import MACHINES, certify, codes, full_alpha, kernel_matrix
from sklearn.exceptions import ConvergenceWarning

from multimargin import KernelSVC

MULTICLASS = sorted(set(MACHINES) - {"c-svc"})


def separable(m, n=60, d=20):
    rng, y = np.random.default_rng(0), np.arange(n) % m
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(m, d))[y], y


def overlapping(m, n=60, d=4):
    rng, y = np.random.default_rng(0), np.arange(n) % m
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(m, d))[y], y


def fitted(X, y, machine, C=1.0, engine="cpu", **kernel):
    bias = "auto" if machine == "c-svc" else "none"
    return KernelSVC(machine, C=C, bias=bias, engine=engine, time_limit=20, **kernel).fit(X, y)


@pytest.mark.parametrize("machine", [*MULTICLASS, "c-svc"])
@pytest.mark.parametrize(
    ("scale", "C", "engine"), [(1e7, 1.0, "cpu"), (1.0, 1e14, "cpu"), (1e3, 1e9, "cpu"), (1e7, 1.0, "numpy")]
)
def test_very_large_costs_are_those_of_a_hard_margin(machine, scale, C, engine):
    X, y = separable(2 if machine == "c-svc" else 3, n=24 if engine == "numpy" else 60)
    ordinary = fitted(X, y, machine, 1e3 if machine == "msvm2" else 10.0, kernel="linear")
    model = fitted(scale * X, y, machine, C, engine, kernel="linear")
    assert model.status_.converged
    free = model.intercept_ if machine == "c-svc" else None
    found = certify(scale**2 * X @ X.T, codes(model, y), full_alpha(model, len(y)), C, machine, free)
    rounding = 1e-12 * C * len(y)  # of the scores, times the costs
    np.testing.assert_allclose(model.primal_objective_, found.primal, rtol=1e-6, atol=rounding)
    np.testing.assert_allclose(model.duality_gap_, found.gap, rtol=1e-6, atol=rounding)
    scores, expected = model.decision_function(scale * X), ordinary.decision_function(X)
    np.testing.assert_allclose(scores, expected, atol=0.01 * np.abs(expected).max())


@pytest.mark.parametrize("machine", [*MULTICLASS, "c-svc"])
@pytest.mark.parametrize(
    ("scale", "C", "engine"), [(1e-8, 1.0, "cpu"), (1.0, 1e-16, "cpu"), (1e-8, 1.0, "numpy")]
)
def test_very_small_costs_put_every_sample_at_its_bound(machine, scale, C, engine):
    X, y = overlapping(2 if machine == "c-svc" else 3)
    ordinary = fitted(X, y, machine, 1e-10, kernel="linear")
    model = fitted(scale * X, y, machine, C, engine, kernel="linear")
    assert model.status_.converged
    assert len(model.support_) == len(y)
    assert model.duality_gap_ <= 1e-6 * model.primal_objective_
    alpha = full_alpha(model, len(y)) / C, full_alpha(ordinary, len(y)) / 1e-10
    if machine != "crammer-singer":  # which of its classes takes the weight is open if all scores are tied
        np.testing.assert_allclose(*alpha, atol=1e-3 * np.abs(alpha[1]).max())


@pytest.mark.parametrize("machine", MULTICLASS)
def test_sixteen_bit_pixels_and_polynomials_of_any_gamma_converge(machine):
    rng, y = np.random.default_rng(0), np.arange(60) % 3
    pixels = rng.integers(0, 65536, size=(60, 300)).astype(np.uint16)
    assert fitted(pixels, y, machine, kernel="linear").status_.converged
    X, y = separable(3)
    for gamma in (1e-9, 1e6):
        assert fitted(X, y, machine, kernel="poly", gamma=gamma).status_.converged


@pytest.mark.parametrize("machine", MULTICLASS)
def test_a_sample_of_tiny_weight_meets_its_conditions(machine):
    X, y = overlapping(3)
    y[0] = (y[0] + 1) % 3  # a violator
    weight = np.ones(len(y))
    weight[0] = 1e-15
    model = KernelSVC(machine).fit(X, y, sample_weight=weight)
    assert model.status_.converged
    assert model.violation_ <= 1e-3


def test_samples_at_the_cap_raise_it():
    X, y = overlapping(3)
    model = fitted(X, y, "crammer-singer", 1e7, kernel="linear")
    with unfinished():
        found = certify(X @ X.T, codes(model, y), full_alpha(model, len(y)), 1e7)
    assert np.abs(model.dual_coef_).max() > 0.99e7
    assert found.gap <= 1e-3 * found.primal


@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins", "one-vs-rest"])
def test_the_certificate_is_that_of_the_costs_asked_for(machine):
    """Rows that are there twice with different labels are bounded, however large the cost."""
    X, _ = overlapping(3, n=12)
    X, y = np.concatenate([X, X[:4]]), np.concatenate([np.arange(12) % 3, [1, 2, 0, 1]])
    model = fitted(X, y, machine, 3e6, gamma=1.0)
    K = kernel_matrix("rbf", X, gamma=1.0)
    found = certify(K, y, full_alpha(model, len(y)), 3e6, machine)
    assert model.status_.converged
    assert model.violation_ == pytest.approx(found.psi.max() / found.kappa, abs=1e-4)
    assert model.primal_objective_ == pytest.approx(found.primal, rel=1e-9)
    assert model.duality_gap_ == pytest.approx(found.gap, rel=1e-6, abs=1e-9 * found.primal)


@pytest.mark.parametrize("machine", sorted(set(MULTICLASS) - {"msvm2"}))
def test_costs_beyond_float64_leave_a_model_of_use(machine):
    """C·K of 1e14 with samples that stay bounded: the costs rise as far as they can be solved."""
    X, y = overlapping(3)
    with pytest.warns(ConvergenceWarning, match="Largest violation"):
        model = fitted(1e7 * X, y, machine, kernel="linear")
    assert model.score(1e7 * X, y) > 0.75
    margin, cost, _ = MACHINES[machine]
    alpha, C = full_alpha(model, len(y)), np.ones(len(y))
    short, pair = margin.shortfall(1e14 * X @ (X.T @ alpha), y), margin.pairs(y, 3)
    violation = cost.violation(short, margin.lower(alpha, y), pair, C).max() / margin.kappa(3)
    assert model.violation_ >= 0.9 * violation > 1e-3


@pytest.mark.parametrize("engine", ["cpu", "numpy"])
def test_kernel_values_whose_inverse_overflows(engine):
    X, y = overlapping(2)
    model = KernelSVC("c-svc", kernel="linear", engine=engine).fit(1e-160 * X, y)
    assert model.status_.converged and len(model.support_) == len(y)


def test_a_fit_without_hope_ends():
    """Values of 1e12 with random labels: float64 rounds the scores by 1e-2, and the dual creeps."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(100.0, size=(60, 2)), rng.integers(0, 2, 60)
    with pytest.warns(ConvergenceWarning, match="float64 rounds|stalled"):
        model = KernelSVC(kernel="poly", bias="none").fit(X, y)
    assert model.n_iter_ < 500
