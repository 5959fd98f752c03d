"""Features in any unit: the same model, and a certificate, if float64 can tell."""

import numpy as np
import pytest
from helpers import unfinished
from oracle import certify, full_alpha
from sklearn.exceptions import ConvergenceWarning

from multimargin import LinearSVC
from multimargin.solution import Status


def data(n, m, d):
    rng = np.random.default_rng(0)
    y = np.arange(n) % m
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(m, d))[y], y


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("scale", [1e5, 1e7, 1e9])
def test_separable_data_in_large_units(scale, intercept):
    X, y = data(300, 3, 40)
    model = LinearSVC(fit_intercept=intercept).fit(X * scale, y)
    assert model.status_.converged
    assert model.score(X * scale, y) == 1.0
    # No sample uses up its cost, so the same point is optimal for a cost that is not much larger than it.
    alpha = scale**2 * full_alpha(model, len(y))
    assert alpha.max() < 1e-3 * scale**2
    K = X @ X.T + (intercept / scale) ** 2
    found = certify(K, y, alpha, np.full(len(y), 10.0 * alpha.max()))
    assert found.psi.max() <= 1e-3 * (1 + 1e-6)
    np.testing.assert_allclose(model.coef_ * scale, alpha.T @ X, atol=1e-9 * np.abs(alpha).sum())
    assert model.dual_objective_ * scale**2 == pytest.approx(found.dual, rel=1e-9)
    assert model.primal_objective_ + model.dual_objective_ == pytest.approx(model.duality_gap_)


def test_pixels_of_sixteen_bits():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    X = rng.integers(0, 65536, size=(200, 3000)).astype(np.float64)
    X[:, :40] += 20_000 * np.eye(4)[y].repeat(10, axis=1)
    model = LinearSVC().fit(X, y)
    assert model.status_.converged and model.score(X, y) == 1.0


def test_one_huge_row_does_not_shrink_the_others():
    X, y = data(300, 3, 40)
    X[0, 0] = 1e8
    model = LinearSVC().fit(X, y)
    assert model.status_.converged and model.score(X, y) == 1.0


@pytest.mark.parametrize("scale", [1e-4, 1e-8, 1e-12])
def test_small_units(scale):
    """Every sample is bounded, and the weights are a sum of the samples."""
    X, y = data(300, 3, 40)
    model = LinearSVC(fit_intercept=False).fit(X * scale, y)
    assert model.status_.converged and model.score(X * scale, y) > 0.99
    alpha = full_alpha(model, len(y))
    found = certify(scale**2 * (X @ X.T), y, alpha, np.ones(len(y)))
    assert found.psi.max() <= 1e-3
    np.testing.assert_allclose(model.coef_, scale * (alpha.T @ X), rtol=1e-9, atol=1e-12 * scale)


def test_what_float64_cannot_tell_is_said_and_the_model_is_good():
    """Classes overlap, so some samples use up their cost, 1e15 times what the weights need."""
    X, y = data(300, 3, 4)
    with pytest.warns(ConvergenceWarning, match="Scale the features, take a smaller C"):
        model = LinearSVC(fit_intercept=False).fit(X * 1e7, y)
    assert model.status_ is Status.STALLED
    assert model.score(X * 1e7, y) >= LinearSVC(fit_intercept=False).fit(X, y).score(X, y)


def test_limits_hold_over_all_stages():
    X, y = data(300, 3, 4)
    with unfinished():
        model = LinearSVC(max_iter=120).fit(X * 1e7, y)
    assert model.n_iter_ <= 120 and model.trace_["working_set"].sum() <= 120 * len(y)
    with unfinished():
        model = LinearSVC(callback=lambda row: row.iteration == 5).fit(X * 1e7, y)
    assert len(model.trace_) == 5 and model.status_ is Status.CALLBACK
    np.testing.assert_allclose(
        model.coef_, full_alpha(model, len(y)).T @ (X * 1e7), rtol=1e-6, atol=1e-9 * np.abs(model.coef_).max()
    )


def test_a_warm_start_in_large_units():
    X, y = data(300, 3, 40)
    model = LinearSVC(warm_start=True).fit(X * 1e7, y)
    cold = model.n_iter_
    assert model.fit(X * 1e7, y).n_iter_ < cold
    assert model.status_.converged
