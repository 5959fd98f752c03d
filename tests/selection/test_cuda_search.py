"""Cross-validation on a GPU: the scores of independent fits, and kernel values that are computed once."""

import numpy as np
import pytest
from gpu import why_no_gpu
from oracle import MACHINES, certify, codes, full_alpha, has_free_bias, kernel_matrix
from sklearn.model_selection import StratifiedKFold

from multimargin import KernelSVC, KernelSVCCV
from multimargin.engines.cuda import lasting

NO_GPU = why_no_gpu()
pytestmark = pytest.mark.skipif(NO_GPU is not None, reason=str(NO_GPU))
GRID = {"Cs": [0.3, 3.0, 30.0], "gammas": [0.02, 0.1, 0.5]}
TOL, TIES = 1e-3, 2  # predictions of two solutions may differ where two classes are equal within tol


def problem(n=400, m=4, d=6, seed=0):
    """Overlapping classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, m, n)
    return rng.normal(size=(n, d)) + 1.2 * rng.normal(size=(m, d))[y], y


@pytest.mark.parametrize("machine", MACHINES)
def test_scores_are_those_of_independent_fits(machine):
    X, y = problem(m=2 if machine == "c-svc" else 4)
    cv = StratifiedKFold(4)
    search = KernelSVCCV(machine, **GRID, cv=cv, drop=None, engine="cuda").fit(X, y)
    table = search.cv_results_
    assert all(table[f"split{k}_converged"].all() for k in range(4))
    for number, params in enumerate(table["params"]):
        for k, (train, test) in enumerate(cv.split(X, y)):
            if (number + k) % 5:
                continue
            alone = KernelSVC(machine, **params, engine="cpu").fit(X[train], y[train])
            difference = table[f"split{k}_test_score"][number] - alone.score(X[test], y[test])
            assert abs(difference) * len(test) <= TIES


@pytest.mark.parametrize("machine", [machine for machine in MACHINES if machine != "c-svc"])
def test_the_refitted_model_is_certified_by_the_oracle(machine):
    X, y = problem()
    search = KernelSVCCV(machine, **GRID, bias="none", engine="cuda").fit(X, y)
    model = search.best_estimator_
    assert not has_free_bias(model)
    K, C = kernel_matrix("rbf", X, gamma=model.gamma), np.full(len(y), model.C)
    truth = certify(K, codes(model, y), full_alpha(model, len(y)), C, machine)
    assert truth.psi.max() / truth.kappa <= TOL * (1 + 1e-6)
    assert model.duality_gap_ == pytest.approx(truth.gain.sum(), abs=1e-8)


@pytest.mark.parametrize("keeps", [True, False])
def test_kernel_values_are_computed_once(keeps, monkeypatch):
    X, y = problem()
    n = len(y)
    if not keeps:
        monkeypatch.setattr(lasting, "largest_whole", lambda *_: 0)
    search = KernelSVCCV(Cs=[1.0], gammas=[0.1], engine="cuda", drop=None, refit=False).fit(X, y)
    rows = np.array([search.cv_results_[f"split{k}_kernel_rows"][0] for k in range(5)])
    blocks = np.array([n, 0, 0, 0, 0] if keeps else [0.64 * n] * 5)  # the others are of scores
    assert (rows - blocks <= 2.0 * n).all()
    whole = KernelSVCCV(Cs=[1.0], gammas=[0.1], engine="cpu", drop=None, refit=False).fit(X, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"], atol=TIES / n
    )


def test_weights_and_a_matrix_of_kernel_values():
    X, y = problem()
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    K = kernel_matrix("rbf", X, gamma=0.1)
    options = {"Cs": [0.3, 3.0], "kernel": "precomputed", "drop": None, "class_weight": "balanced"}
    there = KernelSVCCV(**options, engine="cuda").fit(K, y, weight)
    here = KernelSVCCV(**options, engine="cpu").fit(K, y, weight)
    assert there.best_estimator_.dual_objective_ == pytest.approx(
        here.best_estimator_.dual_objective_, rel=1e-4
    )
    np.testing.assert_allclose(
        there.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"], atol=2 * TIES / len(y)
    )
