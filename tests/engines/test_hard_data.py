"""Offsets, outliers and extreme scales: certificates and scores are those of the exact kernel."""

import warnings

import numpy as np
import pytest
from helpers import audit
from oracle import dense, full_alpha, kernel_matrix
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from multimargin import KernelSVC, kernels


def data(n, m, d):
    rng = np.random.default_rng(0)
    y = np.arange(n) % m
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(m, d))[y], y


def gamma_scale(X):
    """1 / (n_features · variance) in 80 bits, with entries of any size."""
    X = dense(X).astype(np.longdouble)
    return float(1 / (X.shape[1] * X.var()))


def one_huge_value(d, value):
    X, _ = data(150, 3, d)
    X[0, 0] = value
    return X


def two_far_clouds(d, dtype=np.float64):
    X, _ = data(150, 3, d)
    X[:75] += 1e7
    return X.astype(dtype)


def shifted(offset, dtype=np.float64):
    return sparse.csr_matrix((data(150, 3, 4)[0] + offset).astype(dtype))


def scaled(scale, dtype=np.float64, d=4):
    return (data(150, 3, d)[0] * scale).astype(dtype)


CASES = {
    "a huge value, 40 features": (one_huge_value(40, 1e12), 1 / 40),
    "a huge value, 4 features": (one_huge_value(4, 1e18), 1 / 4),
    "csr + 1e7": (shifted(1e7), "scale"),
    "csr + 1e8": (shifted(1e8), "scale"),
    "float32 csr + 1e4": (shifted(1e4, np.float32), "scale"),
    "float32 csr + 1e5": (shifted(1e5, np.float32), "scale"),
    "two far clouds, 40 features": (two_far_clouds(40), 1 / 40),
    "two far clouds, 4 features": (two_far_clouds(4), 1 / 4),
    "sparse far clouds": (sparse.csr_array(two_far_clouds(40)), 1 / 40),
    "columns of all scales": (scaled(1.0, d=40) * 10.0 ** np.linspace(-6, 6, 40), 1 / 40),
    "float32 · 1e-20": (scaled(1e-20, np.float32), "scale"),
    "float32 · 1e-20, 40 features": (scaled(1e-20, np.float32, 40), "scale"),
    "float32 csr · 1e-20": (sparse.csr_array(scaled(1e-20, np.float32)), "scale"),
    "float32 · 1e20": (scaled(1e20, np.float32), "scale"),
    "· 1e-150": (scaled(1e-150), "scale"),
    "· 1e150": (scaled(1e150), "scale"),
    "· 1e200, gamma given": (scaled(1e200), 1.0),
}


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("case", CASES)
def test_certificates_and_scores_are_those_of_the_exact_kernel(case, kernel):
    X, gamma = CASES[case]
    y = data(150, 3, 4)[1]
    model = KernelSVC(kernel=kernel, gamma=gamma).fit(X, y)
    number = gamma_scale(X) if gamma == "scale" else gamma
    with np.errstate(over="ignore"):
        K = kernel_matrix(kernel, X, gamma=number)
    audit(model, K, y, 1.0, tol=1e-3)
    np.testing.assert_allclose(model.decision_function(X), K @ full_alpha(model, 150), atol=1e-8)


@pytest.mark.parametrize("case", [name for name in CASES if "csr" in name or "far" in name])
def test_the_specification_computes_differences(case):
    X, gamma = CASES[case]
    gamma = gamma_scale(X) if gamma == "scale" else gamma
    found = kernels.RBF(gamma).between(X[:20], X)
    np.testing.assert_allclose(found, kernel_matrix("rbf", X[:20], X, gamma=gamma), atol=1e-12)


def test_values_in_float64_and_rows_in_less_if_rounding_does_not_show():
    X, y = data(2100, 3, 4)
    X[:1050] += 1e7
    model = KernelSVC(gamma=0.25).fit(X, y)
    assert model.trace_.info["kernel_form"] == "float64 direct"
    assert model.trace_.info["row_dtype"] == "uint16"  # fixed point
    audit(model, kernel_matrix("rbf", X, gamma=0.25), y, 1.0, tol=1e-3)


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_new_data_far_from_the_model(stored):
    X, y = data(150, 3, 40)
    model = KernelSVC(gamma=1 / 40).fit(stored(X), y)
    far = np.concatenate([X[:5] + 1e8, X[:5] * 1e200, X[:5]])
    with np.errstate(over="ignore"):
        K = kernel_matrix("rbf", far, X, gamma=1 / 40)
    np.testing.assert_allclose(model.decision_function(stored(far)), K @ full_alpha(model, 150), atol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e155, 1e200, 1e300])
def test_gamma_scale_of_values_whose_squares_are_no_numbers(scale, form):
    word = "underflow" if scale < 1 else "overflow"
    with pytest.raises(ValueError, match=rf"values up to .* squares {word}. Scale the features"):
        KernelSVC().fit(form(scaled(scale)), data(150, 3, 4)[1])


@pytest.mark.parametrize("weighted", [False, True])
def test_gamma_scale_of_sparse_data_counts_zeros(weighted):
    X = (
        np.array([[0.0, 3.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0], [5.0, 5.0, 5.0]])
        + np.diag([1e6] * 4)[:, :3]
    )
    weight = np.array([1.0, 2.0, 1.0, 3.0]) if weighted else None
    repeated = np.repeat(X, [1, 2, 1, 3], axis=0) if weighted else X
    found = kernels.RBF().resolve(sparse.csr_array(X), weight).gamma
    assert found == pytest.approx(gamma_scale(repeated), rel=1e-12)


@pytest.mark.parametrize("d", [4, 40])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
@pytest.mark.parametrize("C", [1.0, 1e5])
def test_float32_data_are_scored_as_exactly_as_the_certificate_claims(kernel, C, d):
    X, y = data(4000 // d, 3, d)
    X = X.astype(np.float32)
    model = KernelSVC(kernel=kernel, gamma=1e-3, C=C, bias="none", max_iter=30, tol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    scores = kernel_matrix(kernel, X, gamma=1e-3) @ full_alpha(model, len(y))
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-4)


def test_float32_scores_of_values_beyond_float32_squares():
    X, y = data(150, 3, 40)
    model = KernelSVC(gamma=1 / 40).fit(X.astype(np.float32), y)
    far = np.concatenate([X[:5] * 1e37, X[:5]]).astype(np.float32)
    K = kernel_matrix("rbf", far, X.astype(np.float32), gamma=1 / 40)
    np.testing.assert_allclose(model.decision_function(far), K @ full_alpha(model, 150), atol=1e-4)


# -- kernels that are not positive semidefinite, and values that are no numbers -----------------------


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_msvm2_says_that_it_needs_a_positive_semidefinite_kernel(bias):
    X, y = data(90, 3, 4)
    with pytest.raises(ValueError, match="'msvm2' needs a positive semidefinite kernel"):
        KernelSVC("msvm2", kernel="sigmoid", bias=bias).fit(X, y)


@pytest.mark.parametrize(
    "machine", ["crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest"]
)
def test_a_negative_diagonal_is_said(machine):
    X, y = data(90, 3, 4)
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        model = KernelSVC(machine, kernel="sigmoid", coef0=-2.0, bias="regularized").fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("bias", ["auto", "none", "regularized", "free"])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_kernels_that_overflow_say_so(kernel, bias):
    X, y = data(90, 3, 4)
    with pytest.raises(ValueError, match=r"kernel overflows on some samples.* Scale the features"):
        KernelSVC(kernel=kernel, gamma=1.0, bias=bias).fit(X * 1e160, y)


@pytest.mark.parametrize("kernel", ["poly", "sigmoid"])
def test_tiny_float32_data_with_rows_in_float32(kernel):
    """gamma="scale" is 1e40 here: no float32 number."""
    X, y = data(150, 3, 4)
    X = (X * 1e-20).astype(np.float32)
    model = KernelSVC(kernel=kernel, dtype="float32", bias="regularized").fit(X, y)
    K = kernel_matrix(kernel, X, gamma=gamma_scale(X), offset=1.0)
    audit(model, K, y, 1.0, tol=1e-3)


def test_a_certificate_that_rounding_spoils_is_no_proof():
    """The linear kernel is 1e11 here, with coefficients of 100, and the scores are about 1: they cancel."""
    y = np.arange(120) % 2
    x = np.random.default_rng(0).normal(size=(120, 1)) + 3.0 * y[:, None]
    model = KernelSVC("c-svc", kernel="linear", C=100.0, time_limit=10)
    with pytest.warns(ConvergenceWarning, match=r"float64 rounds the scores by about .* Centre or scale"):
        model.fit(x + 3e5, y)
    wide = (x + 3e5).astype(np.longdouble)
    exact = wide @ (wide[model.support_].T @ model.dual_coef_) + model.intercept_
    assert np.abs(exact[:, 0] - model.decision_function(x + 3e5)).max() > 1e-3
    model.fit(x, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernel_values_beyond_float32_are_refused_in_float32(dtype):
    X, y = data(150, 3, 4)
    model = KernelSVC(kernel="linear", dtype=dtype, bias="none")
    if dtype == "float32":
        with pytest.raises(ValueError, match=r"dtype='float32' holds numbers up to .* Use dtype='auto'"):
            model.fit(X * 1e25, y)
    else:
        y = (X[:, 0] > 0).astype(int)
        assert model.fit(X[:, :1] * 1e25 + 1e25 * np.sign(X[:, :1]), y).status_.converged


def test_a_ridge_beyond_float32_is_refused_in_float32():
    X, y = data(60, 3, 4)
    with pytest.raises(ValueError, match=r"dtype='float32' holds .* the machine's ridge, .* go up to"):
        KernelSVC("msvm2", C=1e-60, gamma=0.25, dtype="float32").fit(X, y)


def test_auto_takes_float64_for_a_ridge_beyond_float32():
    X, y = data(1500, 3, 4)
    model = KernelSVC("msvm2", C=1e-60, gamma=0.25).fit(X, y)
    assert model.trace_.info["row_dtype"] == "float64"


def test_a_matrix_that_is_a_little_asymmetric_proves_less_with_a_large_cost():
    """A fit reads rows of the matrix, and a prediction columns: with coefficients of 1e6 that shows."""
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(90, 4)), rng.integers(2, size=90)
    K = Z @ Z.T
    off = K * (1 + 1e-8 * np.triu(rng.normal(size=(90, 90)), 1))
    KernelSVC("c-svc", kernel="precomputed").fit(off, y)
    with pytest.warns(
        ConvergenceWarning, match=r"differ so much that the scores do .* Give \(K \+ K\.T\) / 2"
    ):
        KernelSVC("c-svc", kernel="precomputed", C=1e5, time_limit=10).fit(off, y)


def test_a_normalised_kernel_of_values_beyond_float32_is_refused_in_float32():
    X, y = data(150, 3, 4)
    kernel = kernels.Polynomial(gamma=1.0, degree=2, coef0=1.0, normalize=True)
    with pytest.raises(ValueError, match=r"dtype='float32' holds .* what they are divided by go up to"):
        KernelSVC(kernel=kernel, dtype="float32").fit(X * 1e20, y)
    model = KernelSVC(kernel=kernel, bias="none").fit(X * 1e20, y)
    K = kernel_matrix("poly", X * 1e20, gamma=1.0, degree=2, coef0=1.0, normalize=True)
    audit(model, K, y, 1.0, tol=1e-3)


@pytest.mark.parametrize("machine", ["crammer-singer", "weston-watkins"])
def test_values_that_overflow_together_are_refused(machine):
    """Each value is a number, but their sum with coefficients is none: the certificate was not finite."""
    K = np.array([[1.0, 1e308, 0.0], [1e308, 1.0, 0.0], [0.0, 0.0, 1.0]])
    model = KernelSVC(machine, kernel="precomputed", C=1.0, time_limit=1.0)
    with pytest.raises(ValueError, match="Scores or objectives overflow float64"):
        model.fit(K, [0, 1, 1])


@pytest.mark.parametrize("weight", [1e-300, 1e-150])
def test_costs_of_all_sizes_are_not_blamed_on_the_kernel(weight):
    """The identity is positive semidefinite, but the message said that it was not."""
    y, weights = np.arange(90) % 3, np.ones(90)
    weights[4] = weight
    model = KernelSVC("msvm2", C=1e100, kernel="precomputed", bias="free", solver="dasmc", time_limit=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model.fit(np.eye(90), y, sample_weight=weights)
        except ValueError as error:
            assert "float64 cannot hold what follows from costs from" in str(error)
