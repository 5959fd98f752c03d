"""What several suites ask of a fitted model, put to the oracle."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from oracle import assert_feasible, certify, class_biases, codes, dense, full_alpha, has_free_bias
from sklearn.exceptions import ConvergenceWarning

from multimargin.methods import METHODS as NAMED
from multimargin.methods import find_method

# The named methods, and the loop of "auto" alone: "auto" itself finishes small problems beyond its tolerance,
# which would hide what its working sets and stop rule do.
SOLVERS = {
    "mcsvm": "mcsvm",
    "ell-based": "ell-based",
    "dasmc": "dasmc",
    "auto": "auto",
    "growing": replace(NAMED["auto"], polish=0),
}
METHODS = tuple(SOLVERS)


def solver_for(name, machine):
    """The solver of that name: "growing" has other parts for other machines."""
    if name == "growing":
        return replace(find_method("auto", "auto", machine), polish=0)
    return SOLVERS.get(name, name)


# Small problems get float64 kernel rows by themselves; float32 rows are what large ones run on.
ENGINES = {
    "numpy": {"engine": "numpy"},
    "cpu": {"engine": "cpu"},
    "cpu-float32": {"engine": "cpu", "dtype": "float32"},
}


def machine_of(model):
    """The oracle's name of a model's machine."""
    squared = getattr(model, "loss", "hinge") == "squared_hinge"
    return f"squared-{model.machine}" if squared else model.machine


def audit(model, K, y, C, tol=None):
    """Check a fitted model's certificates against the oracle's and return the oracle's.

    K is the training kernel matrix with the regularised bias in it; C the cost of every row. With tol, the
    model must also satisfy its method's stop rule: max g_i / c_i <= tol for dasmc (whose machine has a gap
    that is linear in the violation), else max psi_i <= tol kappa.
    """
    n = len(y)
    C = np.broadcast_to(np.asarray(C, dtype=float), (n,))
    machine, free = machine_of(model), has_free_bias(model)
    labels, alpha = codes(model, y), full_alpha(model, n)
    assert (np.diff(model.support_) > 0).all()
    assert np.abs(dense(model.dual_coef_)).max(axis=1, initial=0).all()
    assert_feasible(alpha, labels, C, machine=machine, free=free)
    found = certify(K, labels, alpha, C, machine, class_biases(model) if free else None)
    scale = max(1.0, abs(found.primal))
    # Costs multiply the rounding errors of scores: with C = 1e6 that is more than 1e-9 of the primal.
    rounding = np.finfo(float).eps * (np.abs(K) @ np.abs(alpha)).max(initial=0.0) * C.sum()
    np.testing.assert_allclose(model.primal_objective_, found.primal, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.dual_objective_, found.dual, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.duality_gap_, found.gap, rtol=1e-6, atol=1e-9 * scale + rounding)
    if tol is not None:
        by_gain = getattr(model, "solver", None) == "dasmc" and machine != "msvm2"
        measure = found.gain / found.scale if by_gain else found.psi / found.kappa
        assert measure.max() <= tol * (1 + 1e-6)
        assert found.gap <= tol * found.scale.sum() * (1 + 1e-6)
    return found


def audit_linear(model, X, y, C, tol=None):
    """``audit`` of a linear machine: its kernel is that of the data with the constant feature, and its
    weights must be those of the dual point."""
    X = dense(X)
    scale = float(model.intercept_scaling) if model.fit_intercept else 0.0
    K, alpha = X @ X.T + scale**2, full_alpha(model, len(y))
    found = audit(model, K, y, C, tol)
    rounding = np.finfo(float).eps * (np.abs(K) @ np.abs(alpha)).max(initial=0.0)  # of scores
    size = np.abs(alpha).sum() * np.abs(X).max(initial=1.0)
    weights, intercept = alpha.T @ X, scale**2 * alpha.sum(axis=0)
    if len(weights) == 2:  # as in scikit-learn: positive for the second class
        weights, intercept = np.diff(weights, axis=0), np.diff(intercept)
    np.testing.assert_allclose(model.coef_, weights, atol=1e-10 * size)
    np.testing.assert_allclose(model.intercept_, intercept, atol=1e-10 * size * max(1, scale**2))
    np.testing.assert_allclose(model.violation_, found.psi.max(), rtol=1e-6, atol=1e-9 + rounding)
    return found


@contextmanager
def unfinished():
    """Let a fit stop early without its ConvergenceWarning becoming an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
