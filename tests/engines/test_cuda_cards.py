"""Several ranks on GPUs: one fit that all of them share, and searches that are spread over them."""

import numpy as np
import pytest
from gpu import why_no_gpu
from oracle import MACHINES, certify, class_biases, codes, full_alpha, has_free_bias, kernel_matrix
from scipy import sparse
from thread_team import run_ranks

from multimargin import KernelSVC, KernelSVCCV
from multimargin.engines import Mpi

NO_GPU = why_no_gpu()
on_gpu = pytest.mark.skipif(NO_GPU is not None, reason=str(NO_GPU))
TOL = 1e-3


def problem(n=300, m=4, d=6, seed=0):
    """Overlapping classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, m, n)
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(m, d))[y], y


def on_cards(P, X, y, weight=None, cuts=None, **parameters):
    """The models of ``P`` ranks, which share GPUs; ``cuts`` says which rows each gives."""

    def fit(team):
        data = "same" if cuts is None else "shards"
        own = slice(None) if cuts is None else slice(cuts[team.rank], cuts[team.rank + 1])
        model = KernelSVC(**parameters, engine=Mpi(engine="cuda", data=data, comm=team))
        return model.fit(X[own], y[own], None if weight is None else weight[own])

    return run_ranks(P, fit)


# -- without a GPU --------------------------------------------------------------------------------------
@pytest.mark.skipif(NO_GPU is None, reason="there is a GPU")
def test_without_a_gpu_all_ranks_say_so():
    X, y = problem(20)
    with pytest.raises((ImportError, RuntimeError), match="engine='cuda'"):
        on_cards(2, X, y)


def test_schemes_are_for_the_host():
    with pytest.raises(ValueError, match="scheme of Mpi is for engine='cpu'"):
        Mpi(engine="cuda", scheme="columns")
    with pytest.raises(ValueError, match="engine of Mpi must be one of 'cpu', 'cuda', got 'tpu'"):
        Mpi(engine="tpu")


# -- on a GPU -------------------------------------------------------------------------------------------
@on_gpu
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("P", [2, 3])
def test_all_ranks_have_the_certified_model(machine, bias, P):
    if machine == "c-svc" and bias != "free":
        pytest.skip("c-svc has a free bias")
    X, y = problem(m=2 if machine == "c-svc" else 4)
    models = on_cards(P, X, y, machine=machine, gamma=0.2, bias=bias, tol=TOL)
    model = models[0]
    for other in models[1:]:
        np.testing.assert_array_equal(other.dual_coef_, model.dual_coef_)
        np.testing.assert_array_equal(other.support_vectors_, model.support_vectors_)
        assert other.duality_gap_ == model.duality_gap_
    free = class_biases(model) if has_free_bias(model) else None
    K, C = kernel_matrix("rbf", X, gamma=0.2), np.ones(len(y))
    truth = certify(K, codes(model, y), full_alpha(model, len(y)), C, machine, free)
    assert truth.psi.max() / truth.kappa <= TOL * (1 + 1e-6)
    assert model.duality_gap_ == pytest.approx(truth.gain.sum(), abs=1e-8)
    one = KernelSVC(machine, gamma=0.2, bias=bias, tol=TOL, engine="cuda").fit(X, y)
    assert model.dual_objective_ == pytest.approx(one.dual_objective_, rel=1e-6)


@on_gpu
@pytest.mark.parametrize("solver", ["mcsvm", "dasmc"])
def test_solvers_of_the_host(solver):
    X, y = problem(80)
    models = on_cards(2, X, y, solver=solver, gamma=0.2)
    assert models[0].status_.converged
    np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)


@on_gpu
def test_shards_weights_and_sparse_data():
    X, y = problem()
    X, weight = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0)), np.arange(len(y)) % 3
    models = on_cards(3, X, y, weight, cuts=[0, 200, 200, 300], gamma=0.2)
    one = KernelSVC(gamma=0.2, engine="cpu").fit(X, y, weight)
    assert models[2].dual_objective_ == pytest.approx(one.dual_objective_, rel=1e-4)
    np.testing.assert_array_equal(models[0].support_, models[2].support_)


@on_gpu
@pytest.mark.parametrize("kernel", ["precomputed", "callable"])
def test_other_kernels(kernel):
    X, y = problem()
    K = kernel_matrix("rbf", X, gamma=0.2)
    if kernel == "callable":
        data, of = X, lambda A, B: kernel_matrix("rbf", np.asarray(A), np.asarray(B), gamma=0.2)
    else:
        data, of = K, kernel
    models = on_cards(2, data, y, kernel=of, bias="none")
    one = KernelSVC(gamma=0.2, bias="none").fit(X, y)
    assert models[1].dual_objective_ == pytest.approx(one.dual_objective_, rel=1e-4)


@on_gpu
def test_a_search_is_spread_over_the_cards():
    X, y = problem()
    grid = {"Cs": [0.5, 5.0], "gammas": [0.05, 0.2, 0.8]}
    searches = run_ranks(2, lambda team: KernelSVCCV(**grid, engine=Mpi(engine="cuda", comm=team)).fit(X, y))
    one = KernelSVCCV(**grid, engine="cuda").fit(X, y)
    for search in searches:
        assert search.best_params_ == one.best_params_
        np.testing.assert_array_equal(search.best_estimator_.dual_coef_, one.best_estimator_.dual_coef_)
        assert search.best_estimator_.trace_.info["engine"] == "cuda"
