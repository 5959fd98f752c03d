"""Fits with engine="cuda": against the oracle where there is a GPU; a clear error where there is none."""

import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from gpu import why_no_gpu
from oracle import MACHINES, certify, class_biases, codes, full_alpha, has_free_bias, kernel_matrix
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from multimargin import KernelSVC, KernelSVCCV
from multimargin.engines.cuda.device import memory_errors

NO_GPU = why_no_gpu()
on_gpu = pytest.mark.skipif(NO_GPU is not None, reason=str(NO_GPU))
TOL = 1e-3


def problem(n=240, m=4, d=6, seed=0):
    """Overlapping classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, m, n)
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(m, d))[y], y


def judged(model, X, y, kernel, C=1.0, **parameters):
    """The oracle's certificate of a model."""
    constant = 1.0 if model.bias_ == "regularized" else 0.0
    K = kernel_matrix(kernel, X, offset=constant, **parameters)
    alpha = full_alpha(model, len(y))
    bias = class_biases(model) if has_free_bias(model) else None
    return certify(K, codes(model, y), alpha, np.full(len(y), C), model.machine, bias)


# -- without a GPU --------------------------------------------------------------------------------------
@pytest.mark.skipif(NO_GPU is None, reason="there is a GPU")
def test_without_a_gpu_the_error_says_what_is_missing():
    X, y = problem(20)
    with pytest.raises((ImportError, RuntimeError), match=r"engine='cuda'.*engine='cpu'"):
        KernelSVC(engine="cuda").fit(X, y)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Out of memory allocating 512 bytes"),
        RuntimeError("CUBLAS_STATUS_ALLOC_FAILED"),
        RuntimeError("cudaErrorMemoryAllocation: out of memory"),
        RuntimeError("CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
    ],
)
def test_every_sign_of_a_full_card_is_a_memory_error(error):
    with pytest.raises(MemoryError, match=r"no memory left .*cache_size.*engine='cpu'"), memory_errors():
        raise error


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered"),
        MemoryError("Unable to allocate 8.00 GiB for an array with shape (32768, 32768)"),  # the host's
    ],
)
def test_other_errors_stay_what_they_are(error):
    with pytest.raises(type(error)) as raised, memory_errors():
        raise error
    assert raised.value is error


def test_import_does_not_import_cupy():
    code = "import sys, multimargin; from multimargin import KernelSVC; KernelSVC(engine='cuda')"
    said = subprocess.run(
        [sys.executable, "-c", f"{code}; print('cupy' in sys.modules)"], capture_output=True, text=True
    )
    assert said.stdout.strip() == "False", said.stderr


@pytest.mark.skipif(NO_GPU is None, reason="there is a GPU")
def test_without_a_gpu_a_search_says_so_too():
    X, y = problem(40)
    with pytest.raises((ImportError, RuntimeError), match="engine='cuda'"):
        KernelSVCCV(engine="cuda").fit(X, y)


# -- on a GPU -------------------------------------------------------------------------------------------
@on_gpu
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_machines_and_biases(machine, bias, dtype):
    if machine == "c-svc" and bias != "free":
        pytest.skip("c-svc has a free bias")
    X, y = problem(m=2 if machine == "c-svc" else 4)
    model = KernelSVC(machine, gamma=0.2, bias=bias, engine="cuda", dtype=dtype, tol=TOL).fit(X, y)
    assert model.status_.converged
    truth = judged(model, X, y, "rbf", gamma=0.2)
    assert truth.psi.max() / truth.kappa <= TOL * (1 + 1e-6)
    assert model.duality_gap_ == pytest.approx(truth.gain.sum(), abs=1e-8)
    same = KernelSVC(machine, gamma=0.2, bias=bias, engine="cpu", tol=TOL).fit(X, y)
    assert model.dual_objective_ == pytest.approx(same.dual_objective_, rel=1e-4)


KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.1},
    "poly": {"gamma": 0.1, "coef0": 1.0, "degree": 3},
    "laplacian": {"gamma": 0.1},
}
FORMS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "bytes": lambda X: np.round(20 * (X - X.min())).clip(0, 255).astype(np.uint8),
    "int8": lambda X: np.round(10 * X).clip(-128, 127).astype(np.int8),
    "int16": lambda X: np.round(500 * X).astype(np.int16),
    "tenths": lambda X: np.round(X, 1),
    "sparse": lambda X: sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0)),
    "sparse bytes": lambda X: sparse.csr_array(np.round(3 * np.abs(X)).clip(0, 20).astype(np.uint8)),
}


@on_gpu
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("form", FORMS)
def test_kernels_and_forms(kernel, form):
    X, y = problem(150)
    X = FORMS[form](X)
    plain = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    unit = 1.0 / plain.std()
    parameters = dict(KERNELS[kernel])
    if "gamma" in parameters:
        parameters["gamma"] *= unit if kernel == "laplacian" else unit**2
    C = unit**2 if kernel == "linear" else 1.0
    model = KernelSVC(C=C, kernel=kernel, bias="none", engine="cuda", tol=TOL, **parameters).fit(X, y)
    truth = judged(model, plain, y, kernel, C, **parameters)
    assert model.status_.converged
    assert truth.psi.max() <= TOL * (1 + 1e-6)
    expected = kernel_matrix(kernel, plain[:20], plain[model.support_], **parameters) @ model.dual_coef_
    np.testing.assert_allclose(model.decision_function(X[:20]), expected, rtol=1e-7, atol=1e-7)


@on_gpu
@pytest.mark.parametrize("solver", ["mcsvm", "ell-based", "dasmc", "msvmpack"])
def test_named_methods(solver):
    X, y = problem(80)
    tol = 0.02 if solver == "msvmpack" else TOL
    model = KernelSVC(solver=solver, gamma=0.2, engine="cuda", tol=tol).fit(X, y)
    assert model.status_.converged
    on_host = {"dasmc": ["projected-gradient"], "msvmpack": ["frank-wolfe"]}.get(solver)
    assert model.trace_.info.get("solved_on_host") == on_host


@on_gpu
def test_precomputed_and_callable_kernels():
    X, y = problem(150)
    K = kernel_matrix("rbf", X, gamma=0.2)
    direct = KernelSVC(gamma=0.2, engine="cuda").fit(X, y)
    for model, data in (
        (KernelSVC(kernel="precomputed", bias="none", engine="cuda"), K),
        (KernelSVC(kernel=lambda A, B: kernel_matrix("rbf", A, B, gamma=0.2), bias="none", engine="cuda"), X),
    ):
        model.fit(data, y)
        assert model.dual_objective_ == pytest.approx(direct.dual_objective_, rel=1e-4)
        np.testing.assert_allclose(
            model.decision_function(data[:9]), direct.decision_function(X[:9]), atol=0.02
        )


@on_gpu
@pytest.mark.parametrize("m", [2, 33, 150, 1000])
def test_many_classes(m):
    X, y = problem(3 * m + 40, m)
    model = KernelSVC(gamma=0.2, engine="cuda", tol=TOL).fit(X, y)
    assert model.status_.converged
    assert judged(model, X, y, "rbf", gamma=0.2).psi.max() <= TOL * (1 + 1e-6)


@on_gpu
@pytest.mark.parametrize("machine", ["crammer-singer", "one-vs-rest", "c-svc"])
def test_a_growing_set(machine):
    """With little memory only a part of the samples is solved at a time, and the same optimum is reached."""
    X, y = problem(3000, 2 if machine == "c-svc" else 4)
    whole = KernelSVC(machine, gamma=0.05, engine="cuda").fit(X, y)
    part = KernelSVC(machine, gamma=0.05, engine="cuda", cache_size=8).fit(X, y)
    assert part.status_.converged and part.n_iter_ > whole.n_iter_
    assert part.dual_objective_ == pytest.approx(whole.dual_objective_, rel=1e-4)


@on_gpu
def test_same_bits():
    X, y = problem(2500)
    found = [KernelSVC(gamma=0.1, engine="cuda").fit(X, y) for _ in range(3)]
    for model in found[1:]:
        np.testing.assert_array_equal(model.dual_coef_, found[0].dual_coef_)
        np.testing.assert_array_equal(model.support_, found[0].support_)


@on_gpu
def test_weights_and_a_warm_start():
    X, y = problem(200)
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    model = KernelSVC(gamma=0.2, engine="cuda", tol=1e-4, warm_start=True).fit(X, y, weight)
    repeated = KernelSVC(gamma=0.2, engine="cpu", tol=1e-4).fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    assert model.dual_objective_ == pytest.approx(repeated.dual_objective_, rel=1e-4)
    again = model.fit(X, y, weight)
    assert again.n_iter_ == 0 and again.status_.converged


@on_gpu
def test_a_time_limit_is_kept():
    X, y = problem(6000, 10)
    model = KernelSVC(C=1e4, gamma=1e-3, engine="cuda", tol=1e-6, time_limit=1.0)
    KernelSVC(engine="cuda").fit(X, y)  # compiles
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert time.perf_counter() - begin <= 2.0
    assert np.isfinite(model.duality_gap_)


@on_gpu
def test_ctrl_c_keeps_the_point():
    import _thread

    X, y = problem(6000, 10)
    model = KernelSVC(C=1e4, gamma=1e-3, engine="cuda", tol=1e-6, on_interrupt="keep")
    timer = threading.Timer(1.5, _thread.interrupt_main)
    timer.start()
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    timer.cancel()
    assert time.perf_counter() - begin <= 3.0
    assert model.dual_objective_ < 0
    truth = judged(model, X, y, "rbf", C=1e4, gamma=1e-3)
    assert model.duality_gap_ == pytest.approx(truth.gain.sum(), rel=1e-6)


@on_gpu
@pytest.mark.parametrize("estimator", [KernelSVC, KernelSVCCV])
def test_a_full_card_is_a_memory_error_and_the_next_fit_works(estimator):
    import cupy

    X, y = problem(2000)
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.get_limit()
    pool.set_limit(size=pool.total_bytes() + (1 << 20))
    try:
        with pytest.raises(MemoryError, match="no memory left"):
            estimator(engine="cuda").fit(X, y)
    finally:
        pool.set_limit(size=before)
    assert estimator(engine="cuda").fit(X, y).score(X, y) > 0.5


@on_gpu
def test_too_little_memory_is_an_error():
    X, y = problem(200)
    with pytest.raises(ValueError, match="cache_size"):
        KernelSVC(engine="cuda", cache_size=0.001).fit(X, y)
