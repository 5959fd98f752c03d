"""Every method x engine x kernel x {dense, sparse} x bias, judged by the oracle in float64."""

import numpy as np
import pytest
from helpers import ENGINES, METHODS, SOLVERS, audit
from oracle import certify, codes, full_alpha, kernel_matrix, solve_crammer_singer
from scipy import sparse

from multimargin import KernelSVC
from multimargin.kernels import Polynomial

TOL = 1e-3


def cosine_like(A, B):
    """A callable kernel for dense and sparse input: (x.z + 1)^2 / 4."""
    product = A @ B.T
    return (np.asarray(product.toarray() if sparse.issparse(product) else product) + 1.0) ** 2 / 4


# name: (what the estimator gets, what the oracle computes)
KERNELS = {
    "linear": ({"kernel": "linear"}, ("linear", {})),
    "rbf": ({"kernel": "rbf", "gamma": 0.2}, ("rbf", {"gamma": 0.2})),
    "poly": (
        {"kernel": "poly", "gamma": 0.2, "coef0": 1.0, "degree": 2},
        ("poly", {"gamma": 0.2, "coef0": 1.0, "degree": 2}),
    ),
    "normalised poly": (
        {"kernel": Polynomial(degree=3, gamma=0.2, coef0=1.0, normalize=True)},
        ("poly", {"gamma": 0.2, "coef0": 1.0, "degree": 3, "normalize": True}),
    ),
    "sigmoid": (
        {"kernel": "sigmoid", "gamma": 0.02, "coef0": 0.1},
        ("sigmoid", {"gamma": 0.02, "coef0": 0.1}),
    ),
    "laplacian": ({"kernel": "laplacian", "gamma": 0.2}, ("laplacian", {"gamma": 0.2})),
    "precomputed": ({"kernel": "precomputed"}, ("rbf", {"gamma": 0.3})),
    "callable": ({"kernel": cosine_like}, ("poly", {"gamma": 0.5, "coef0": 0.5, "degree": 2})),
}


def sparsify(X, keep=0.5, seed=0):
    """X with about half of its entries set to zero: what both the dense and the sparse fit see."""
    return X * (np.random.default_rng(seed).random(X.shape) < keep)


def expected_kernel(kernel, bias, A, B=None):
    name, options = KERNELS[kernel][1]
    return kernel_matrix(name, A, B, offset=float(bias == "regularized"), **options)


def prepare(kernel, form, bias, X):
    """The training input in the form asked for, and the oracle's kernel matrix with the bias in it."""
    X = sparsify(X)
    given = expected_kernel(kernel, "none", X) if kernel == "precomputed" else X
    given = sparse.csr_array(given) if form == "sparse" else given
    return given, X, expected_kernel(kernel, bias, X)


FORMS = [
    (kernel, form)
    for kernel in KERNELS
    for form in ("dense", "sparse")
    if (kernel, form) != ("precomputed", "sparse")
]


@pytest.fixture(scope="module")
def optimum():
    """Optimal dual values by the oracle's QP solver, made when asked for."""
    known = {}

    def value(kernel, bias, K, y, C):
        case = kernel, bias, len(y)
        if case not in known:
            known[case] = certify(K, y, solve_crammer_singer(K, y, C), C).dual
        return known[case]

    return value


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize(("kernel", "form"), FORMS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", METHODS)
def test_converges(method, engine, kernel, form, bias, iris, optimum):
    rows = slice(0, 15 if engine == "numpy" else 42)
    X, y = iris[0][rows], iris[1][rows]
    given, X, K = prepare(kernel, form, bias, X)
    model = KernelSVC(
        C=2.0, bias=bias, solver=SOLVERS[method], **ENGINES[engine], tol=TOL, **KERNELS[kernel][0]
    ).fit(given, y)
    found = audit(model, K, y, 2.0, TOL)
    if kernel != "sigmoid":  # indefinite: a stationary point, no unique optimum
        best = optimum(kernel, bias, K, y, 2.0)
        assert -1e-8 * abs(best) <= found.dual - best <= found.gap + 1e-8 * abs(best)

    scores = K @ full_alpha(model, len(y))
    decision = model.decision_function(given)
    np.testing.assert_allclose(decision, scores, atol=1e-4 * (1 + np.abs(scores).max()))
    np.testing.assert_array_equal(model.predict(given), model.classes_[decision.argmax(axis=1)])
    np.testing.assert_allclose(
        model.intercept_, model.dual_coef_.sum(axis=0) * (bias == "regularized"), atol=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", ["wine", "digits", "blobs"])
def test_real_data(data, method, bias, request):
    """Larger problems on the native engine; the methods' objectives agree with a tightly solved one."""
    X, y = request.getfixturevalue(data)
    gamma = 0.05
    K = kernel_matrix("rbf", X, gamma=gamma, offset=float(bias == "regularized"))
    settings = {"C": 4.0, "gamma": gamma, "bias": bias, "engine": "cpu"}
    found = audit(KernelSVC(solver=SOLVERS[method], tol=TOL, **settings).fit(X, y), K, y, 4.0, TOL)
    tight = audit(KernelSVC(solver="auto", tol=1e-7, **settings).fit(X, y), K, y, 4.0, 1e-7)
    assert -tight.gap <= found.dual - tight.dual <= found.gap
    assert found.primal >= -found.dual >= 0


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["equal", "unequal"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", METHODS)
def test_small_working_sets(method, engine, weights, blobs):
    """Working sets far smaller than the problem: selection, inheriting and eviction all take part.

    With costs over six orders of magnitude the sample of the largest gap is not the one that violates most.
    """
    rows = slice(0, 45 if engine == "numpy" else 90)
    X, y = blobs[0][rows], blobs[1][rows]
    C = np.ones(len(y)) if weights == "equal" else 10 ** np.random.default_rng(0).uniform(-3, 3, len(y))
    settings = {"solver": SOLVERS[method], "working_set_size": 8, "tol": TOL} | ENGINES[engine]
    model = KernelSVC(C=1.0, gamma=0.1, **settings).fit(X, y, sample_weight=C)
    assert model.n_iter_ > 1
    audit(model, kernel_matrix("rbf", X, gamma=0.1), y, C, TOL)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("gamma", [0.1, 0.5])
@pytest.mark.parametrize("method", ["dasmc", "auto", "growing"])
def test_tight_tolerance_on_a_degenerate_problem(method, gamma, seed):
    """Many equal rows with different labels: flat directions, along which a block solver must still move."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(40, 3))
    X[X < 0.6] = 0
    y = rng.integers(4, size=40)
    model = KernelSVC(gamma=gamma, solver=SOLVERS[method], tol=1e-5).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=gamma), y, 1.0, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_shrinking_changes_only_the_path(method, shrinking, digits):
    X, y = digits
    model = KernelSVC(C=4.0, gamma=0.02, solver=SOLVERS[method], shrinking=shrinking, tol=TOL).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.02), y, 4.0, TOL)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", METHODS)
def test_weights(method, engine, blobs):
    X, y = blobs[0][:50], blobs[1][:50]
    sample_weight = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    sample_weight[7] = 0.0
    class_weight = {0: 0.5, 2: 4.0}
    model = KernelSVC(
        C=1.5, gamma=0.1, solver=SOLVERS[method], **ENGINES[engine], class_weight=class_weight, tol=TOL
    )
    model.fit(X, y, sample_weight=sample_weight)
    assert 7 not in model.support_
    kept = np.arange(len(y)) != 7
    C = 1.5 * sample_weight * np.array([class_weight.get(label, 1.0) for label in y])
    K = kernel_matrix("rbf", X, gamma=0.1)
    alpha = full_alpha(model, len(y))
    found = certify(K[np.ix_(kept, kept)], y[kept], alpha[kept], C[kept])
    assert (found.gain / C[kept] if method == "dasmc" else found.psi).max() <= TOL * (1 + 1e-6)
    assert model.dual_objective_ == pytest.approx(found.dual, rel=1e-6)
    assert model.duality_gap_ == pytest.approx(found.gap, rel=1e-6, abs=1e-9)


def test_balanced_class_weight(blobs):
    X, y = blobs[0][:60], np.minimum(blobs[1][:60], 2)
    model = KernelSVC(gamma=0.1, class_weight="balanced", tol=TOL).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.1), y, len(y) / (3 * np.bincount(y)[y]), TOL)


def test_string_labels_keep_their_order(iris):
    X, y = iris
    names = np.array(["pear", "apple", "quince"])[y]
    model = KernelSVC(gamma=0.2).fit(X, names)
    assert list(model.classes_) == ["apple", "pear", "quince"]
    audit(model, kernel_matrix("rbf", X, gamma=0.2), names, 1.0, TOL)
    assert np.mean(model.predict(X) == names) > 0.9
    assert (codes(model, names) == np.searchsorted(["apple", "pear", "quince"], names)).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", ["auto", "float32", "float64"])
def test_float32_input_and_rows(kernel, form, dtype, digits):
    X, y = digits
    X = X.astype(np.float32)
    given = sparse.csr_array(X) if form == "sparse" else X
    model = KernelSVC(C=2.0, bias="none", dtype=dtype, tol=TOL, **KERNELS[kernel][0]).fit(given, y)
    name, options = KERNELS[kernel][1]
    audit(model, kernel_matrix(name, X, **options), y, 2.0, TOL)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian"])
@pytest.mark.parametrize("engine", ENGINES)
def test_64_bit_sparse_indices(engine, kernel, iris):
    X, y = iris[0][:24], iris[1][:24]
    narrow = sparse.csr_array(sparsify(X))
    wide = narrow.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    models = [
        KernelSVC(bias="none", **ENGINES[engine], random_state=0, **KERNELS[kernel][0]).fit(given, y)
        for given in (narrow, wide)
    ]
    audit(models[1], expected_kernel(kernel, "none", narrow), y, 1.0, TOL)
    np.testing.assert_array_equal(models[0].support_, models[1].support_)
    np.testing.assert_array_equal(models[0].decision_function(narrow), models[1].decision_function(wide))


@pytest.mark.parametrize("container", [sparse.csc_array, sparse.coo_array, sparse.csr_matrix])
def test_other_sparse_formats(container, iris):
    X, y = iris
    X = sparsify(X)
    model = KernelSVC(gamma=0.2).fit(container(X), y)
    audit(model, kernel_matrix("rbf", X, gamma=0.2), y, 1.0, TOL)


def test_dense_model_predicts_sparse_rows_and_back(digits):
    X, y = digits
    by_dense = KernelSVC(gamma=0.05, tol=1e-5).fit(X, y)
    by_sparse = KernelSVC(gamma=0.05, tol=1e-5).fit(sparse.csr_array(X), y)
    expected = by_dense.decision_function(X)
    for model in (by_dense, by_sparse):
        for given in (X, sparse.csr_array(X)):
            np.testing.assert_allclose(model.decision_function(given), expected, atol=1e-3)


@pytest.mark.parametrize(("kernel", "form"), FORMS)
def test_held_out_scores(kernel, form, wine):
    """decision_function on unseen rows, against the oracle's kernel between them and the support vectors."""
    X, y = wine
    train, test = X[:80], X[80:]
    if kernel == "precomputed":
        given, asked = expected_kernel(kernel, "none", train), expected_kernel(kernel, "none", test, train)
    else:
        wrap = sparse.csr_array if form == "sparse" else np.asarray
        given, asked = wrap(train), wrap(test)
    model = KernelSVC(bias="regularized", **KERNELS[kernel][0]).fit(given, y[:80])
    scores = expected_kernel(kernel, "regularized", test, train[model.support_]) @ model.dual_coef_
    np.testing.assert_allclose(model.decision_function(asked), scores, atol=1e-4 * (1 + np.abs(scores).max()))


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_large_offset_does_not_spoil_distances(form, iris):
    """Far from the origin |x|^2 + |z|^2 - 2xz cancels: the certificate must still be true."""
    X, y = iris
    shifted = X + 1000.0
    given = sparse.csr_array(shifted) if form == "sparse" else shifted
    model = KernelSVC(gamma=0.2, C=4.0).fit(given, y)
    audit(model, kernel_matrix("rbf", shifted, gamma=0.2), y, 4.0, TOL)


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_extreme_costs(scale, iris):
    X, y = iris
    model = KernelSVC(gamma=0.2, C=scale).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.2), y, scale, TOL)
