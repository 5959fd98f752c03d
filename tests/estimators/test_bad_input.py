"""Bad input: a clear error or the right answer, never a crash."""

import numpy as np
import pytest
from helpers import ENGINES, METHODS, SOLVERS, audit
from oracle import kernel_matrix
from scipy import sparse

from multimargin import KernelSVC

SMALL_X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0], [0.5, 0.5], [2.5, 1.5]])
SMALL_Y = np.array([0, 1, 2, 2, 0, 1])


def refuses(match, X=SMALL_X, y=SMALL_Y, error=ValueError, sample_weight=None, **settings):
    with pytest.raises(error, match=match):
        KernelSVC(**settings).fit(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_features_not_finite(value, form):
    X = SMALL_X.copy()
    X[2, 1] = value
    wrap = sparse.csr_array if form == "sparse" else np.asarray
    refuses("NaN|infinity|inf", X=wrap(X))
    model = KernelSVC().fit(wrap(SMALL_X), SMALL_Y)
    with pytest.raises(ValueError, match=r"NaN|infinity|inf"):
        model.predict(wrap(X))


def test_target_not_finite():
    refuses("NaN|inf", y=np.array([0, 1, np.nan, 2, 0, 1]))


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        (SMALL_X[:, 0], SMALL_Y, "2D|1D|dimension"),
        (SMALL_X[None], SMALL_Y, "dim"),
        (SMALL_X, SMALL_Y[:-1], "inconsistent|samples|length"),
        (SMALL_X, np.eye(3)[SMALL_Y], "1d|shape|multilabel"),
        (np.empty((0, 2)), np.empty(0, dtype=int), "0 sample|minimum"),
        (np.empty((6, 0)), SMALL_Y, "0 feature|minimum"),
        (SMALL_X, np.zeros(6, dtype=int), "class"),
        (SMALL_X, SMALL_Y + 0.5, "[Uu]nknown label|continuous"),
        (SMALL_X.astype(complex) * 1j, SMALL_Y, "[Cc]omplex"),
    ],
    ids=[
        "1-d X",
        "3-d X",
        "short y",
        "2-d y",
        "no rows",
        "no columns",
        "one class",
        "continuous y",
        "complex",
    ],
)
def test_wrong_shapes_and_targets(X, y, match):
    refuses(match, X=X, y=y)


def test_one_class_says_how_many():
    refuses("1 class|one class|at least two|2 classes|single class", y=np.ones(6, dtype=int))


def test_one_class_after_dropping_weightless_rows():
    refuses("class", y=np.array([0, 0, 0, 0, 0, 1]), sample_weight=np.array([1.0, 1, 1, 1, 1, 0]))


def test_wrong_number_of_features_at_prediction():
    model = KernelSVC().fit(SMALL_X, SMALL_Y)
    with pytest.raises(ValueError, match="feature"):
        model.predict(SMALL_X[:, :1])


@pytest.mark.parametrize("C", [0.0, -1.0, np.nan, np.inf])
def test_cost_out_of_range(C):
    refuses("C", C=C)


@pytest.mark.parametrize("gamma", [np.nan, np.inf, -0.5, 0.0])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_gamma_out_of_range(kernel, gamma):
    refuses("gamma", gamma=gamma, kernel=kernel)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"solver": "simplex"}, "solver.*|.*mcsvm"),
        ({"engine": "abacus"}, "engine.*|.*numpy"),
        ({"kernel": "spline"}, "kernel.*|.*rbf"),
        ({"machine": "turing"}, "machine.*|.*crammer-singer"),
        ({"bias": "slight"}, "bias"),
        ({"gamma": "wide"}, "gamma"),
        ({"dtype": "float16"}, "dtype"),
        ({"tol": 0.0}, "tol"),
        ({"tol": -1e-3}, "tol"),
        ({"tol": np.nan}, "tol"),
        ({"max_iter": -2}, "max_iter"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"time_limit": np.nan}, "time_limit"),
        ({"cache_size": -5}, "cache_size"),
        ({"cache_size": "huge"}, "cache_size"),
        ({"cache_size": np.nan}, "cache_size"),
        ({"working_set_size": 0}, "working_set_size"),
        ({"working_set_size": "big"}, "working_set_size"),
        ({"degree": -1, "kernel": "poly"}, "degree"),
        ({"coef0": np.nan, "kernel": "poly"}, "coef0"),
        ({"coef0": np.inf, "kernel": "sigmoid"}, "coef0"),
        ({"n_threads": 0}, "n_threads"),
        ({"n_threads": -3}, "n_threads"),
        ({"class_weight": "fair"}, "class_weight"),
        ({"class_weight": {0: -1.0}}, "class_weight|weight"),
        ({"class_weight": {0: np.nan}}, "class_weight|weight"),
        ({"on_interrupt": "shrug"}, "on_interrupt"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_bad_settings_are_named(settings, match):
    refuses(match, error=(ValueError, TypeError), **settings)


@pytest.mark.parametrize("settings", [{"C": "1"}, {"tol": "small"}, {"max_iter": 2.5}, {"callback": 3}])
def test_bad_types(settings):
    with pytest.raises((TypeError, ValueError), match=next(iter(settings))):
        KernelSVC(**settings).fit(SMALL_X, SMALL_Y)


def test_settings_are_not_checked_before_fit():
    """scikit-learn's rule: __init__ only stores."""
    assert KernelSVC(C=-1.0, kernel="spline").C == -1.0


def test_a_machine_not_there_yet_says_so():
    """It must not silently train something else."""
    with pytest.raises(ValueError, match="c-svc"):
        KernelSVC(machine="c-svc").fit(SMALL_X, SMALL_Y)


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ([1.0, 1, 1, -1, 1, 1], "weight"),
        ([1.0, 1, 1, np.nan, 1, 1], "NaN|weight"),
        ([1.0, 1, 1, np.inf, 1, 1], "inf|weight"),
        ([1.0, 1, 1], "weight"),
        ([0.0] * 6, "weight|class|sample"),
    ],
    ids=["negative", "nan", "inf", "short", "all zero"],
)
def test_bad_sample_weights(weights, match):
    refuses(match, sample_weight=np.array(weights))


BROKEN_KERNELS = {
    "too small": (lambda A, B: np.ones((1, 1)), "shape"),
    "transposed": (lambda A, B: np.ones((B.shape[0], A.shape[0] + 1)), "shape"),
    "vector": (lambda A, B: np.ones(A.shape[0]), "shape"),
    "nan": (lambda A, B: np.full((A.shape[0], B.shape[0]), np.nan), "NaN|finite|inf"),
    "inf": (lambda A, B: np.full((A.shape[0], B.shape[0]), np.inf), "NaN|finite|inf"),
    "text": (lambda A, B: np.full((A.shape[0], B.shape[0]), "x"), "convert|numeric|string|dtype|number"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("broken", list(BROKEN_KERNELS))
def test_broken_callable(broken, engine):
    function, match = BROKEN_KERNELS[broken]
    refuses(match, kernel=function, **ENGINES[engine], error=(ValueError, TypeError))


def test_callable_that_raises_is_not_swallowed():
    def kernel(A, B):
        raise RuntimeError("my own mistake")

    refuses("my own mistake", kernel=kernel, error=RuntimeError)


@pytest.mark.parametrize("engine", ENGINES)
def test_callable_broken_only_at_prediction(engine):
    state = {"broken": False}

    def kernel(A, B):
        K = A @ B.T
        return np.full_like(K, np.nan) if state["broken"] else K

    model = KernelSVC(kernel=kernel, **ENGINES[engine]).fit(SMALL_X, SMALL_Y)
    state["broken"] = True
    with pytest.raises(ValueError, match=r"NaN|finite|inf"):
        model.predict(SMALL_X)


@pytest.mark.parametrize(
    ("K", "match"),
    [
        (np.ones((6, 5)), "square"),
        (np.full((6, 6), np.nan), "NaN|inf"),
        (np.ones((5, 5)), "inconsistent|square|samples"),
    ],
    ids=["not square", "nan", "too small"],
)
def test_bad_kernel_matrix(K, match):
    refuses(match, X=K, kernel="precomputed")


def test_kernel_matrix_of_the_wrong_width_at_prediction():
    model = KernelSVC(kernel="precomputed").fit(SMALL_X @ SMALL_X.T, SMALL_Y)
    with pytest.raises(ValueError, match=r"feature|shape|samples|column"):
        model.predict(np.ones((2, 5)))


@pytest.mark.parametrize("method", METHODS)
def test_a_matrix_that_is_no_kernel_is_not_certified(method):
    """K_ii < 0 proves that K is not positive semidefinite: a stationary point is then no optimum, and a gap
    of 0 no proof. It must be said, by an error or (warnings are errors here) by a warning."""
    with pytest.raises((ValueError, UserWarning), match=r"negative|semidefinite"):
        KernelSVC(kernel="precomputed", solver=SOLVERS[method]).fit(-np.eye(6), SMALL_Y)


def scrambled(X):
    """X in CSR with the indices of every row reversed and its first entry split in two duplicates."""
    canonical = sparse.csr_array(X)
    data, indices, indptr = [], [], [0]
    for row in range(X.shape[0]):
        part = slice(*canonical.indptr[row : row + 2])
        values, columns = list(canonical.data[part][::-1]), list(canonical.indices[part][::-1])
        if values:
            values[0] /= 2
            values.append(values[0])
            columns.append(columns[0])
        data += values
        indices += columns
        indptr.append(len(data))
    matrix = sparse.csr_array((np.array(data), np.array(indices), np.array(indptr)), shape=X.shape)
    assert not matrix.has_canonical_format
    return matrix


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian"])
def test_unsorted_and_duplicate_indices(kernel, engine, iris):
    X, y = iris[0][:24], iris[1][:24]
    X = X * (np.abs(X) > 0.5)
    messy = scrambled(X)
    before = messy.data.copy(), messy.indices.copy()
    settings = {"kernel": kernel, "bias": "none", "gamma": 0.3, "random_state": 0} | ENGINES[engine]
    model, clean = (KernelSVC(**settings).fit(given, y) for given in (messy, sparse.csr_array(X)))
    audit(model, kernel_matrix(kernel, X, gamma=0.3), y, 1.0, 1e-3)
    np.testing.assert_allclose(model.decision_function(messy), clean.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(messy.data, before[0])
    np.testing.assert_array_equal(messy.indices, before[1])


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_zero_rows(form, method, engine, iris):
    """K_ii = 0: no influence on the model, but unless their dual is solved the gap stays open."""
    X, y = iris[0][:24].copy(), iris[1][:24]
    X[[0, 5, 11, 20]] = 0.0
    given = sparse.csr_array(X) if form == "sparse" else X
    model = KernelSVC(kernel="linear", bias="none", solver=SOLVERS[method], **ENGINES[engine]).fit(given, y)
    audit(model, kernel_matrix("linear", X), y, 1.0, 1e-3)


def test_all_rows_zero():
    """Nothing to learn: every margin is lost, the primal is the sum of the costs."""
    model = KernelSVC(kernel="linear", bias="none", C=2.0).fit(np.zeros((6, 2)), SMALL_Y)
    assert model.duality_gap_ == pytest.approx(0.0, abs=1e-9)
    assert model.primal_objective_ == pytest.approx(12.0)
    np.testing.assert_array_equal(model.decision_function(SMALL_X), np.zeros((6, 3)))


def test_tiny_rows_among_large_ones(iris):
    X, y = iris[0].copy(), iris[1]
    X[::7] *= 1e-9
    model = KernelSVC(kernel="linear", bias="none").fit(X, y)
    audit(model, kernel_matrix("linear", X), y, 1.0, 1e-3)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", METHODS)
def test_fewer_samples_than_the_working_set(method, engine):
    model = KernelSVC(solver=SOLVERS[method], **ENGINES[engine], gamma=0.5, working_set_size=64).fit(
        SMALL_X, SMALL_Y
    )
    audit(model, kernel_matrix("rbf", SMALL_X, gamma=0.5), SMALL_Y, 1.0, 1e-3)


def test_two_samples():
    X = np.array([[0.0], [1.0]])
    model = KernelSVC(gamma=1.0, tol=1e-8).fit(X, [3, 5])
    audit(model, kernel_matrix("rbf", X, gamma=1.0), np.array([3, 5]), 1.0, 1e-8)
    assert list(model.predict(X)) == [3, 5]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", METHODS)
def test_duplicated_points_with_different_labels(method, engine):
    X = np.repeat(SMALL_X[:3], 4, axis=0)
    y = np.tile([0, 1, 2, 0], 3)
    model = KernelSVC(C=5.0, gamma=0.5, solver=SOLVERS[method], **ENGINES[engine]).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.5), y, 5.0, 1e-3)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float64])
def test_labels_that_look_like_numbers(dtype):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.warns(UserWarning, match="unique classes is greater than 50%"):
        KernelSVC().fit(X, np.minimum(np.arange(30), 20).astype(dtype))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The number of unique classes is greater than 50%:UserWarning")
@pytest.mark.parametrize(("method", "classes"), [("mcsvm", 300), ("dasmc", 1000), ("auto", 1000)])
def test_hundreds_of_classes(method, classes):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(classes, 8)) * 2
    X = np.vstack([centres, centres[:50] + 0.1 * rng.normal(size=(50, 8))])
    y = np.concatenate([np.arange(classes), np.arange(50)])
    model = KernelSVC(C=1.0, gamma=0.5, solver=SOLVERS[method], tol=0.05).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.5), y, 1.0, 0.05)
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.5])
def test_constant_features(gamma):
    """No variance: 'scale' must not divide by zero."""
    X, y = np.ones((9, 3)), np.repeat([0, 1, 2], 3)
    model = KernelSVC(gamma=gamma).fit(X, y)
    audit(model, np.ones((9, 9)), y, 1.0, 1e-3)


def test_one_constant_feature_among_others(iris):
    X, y = np.column_stack([iris[0], np.full(len(iris[1]), 1e6)]), iris[1]
    model = KernelSVC(gamma=0.2).fit(X, y)
    audit(model, kernel_matrix("rbf", X, gamma=0.2), y, 1.0, 1e-3)


@pytest.mark.parametrize(
    "layout", ["fortran", "strided", "read-only", "integers", "bool", "list", "big-endian"]
)
def test_unusual_arrays(layout, iris):
    X, y = iris
    X = np.round(X * 4)
    given = {
        "fortran": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=0)[::2],
        "read-only": np.frombuffer(X.tobytes(), dtype=X.dtype).reshape(X.shape),
        "integers": X.astype(np.int32),
        "bool": X > 0,
        "list": X.tolist(),
        "big-endian": X.astype(">f8"),
    }[layout]
    model = KernelSVC(gamma=0.02).fit(given, y)
    audit(model, kernel_matrix("rbf", np.asarray(given, dtype=float), gamma=0.02), y, 1.0, 1e-3)
    assert model.predict(given).shape == y.shape


def test_predict_before_fit():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        KernelSVC().predict(SMALL_X)


def test_predicting_no_rows_is_refused():
    model = KernelSVC().fit(SMALL_X, SMALL_Y)
    with pytest.raises(ValueError, match=r"0 sample|minimum"):
        model.predict(np.empty((0, 2)))


@pytest.mark.parametrize("row", [-7, 6, 1000])
def test_label_distribution_of_a_row_that_is_not_there(row):
    model = KernelSVC().fit(SMALL_X, SMALL_Y)
    with pytest.raises((IndexError, ValueError)):
        model.label_distribution(row)
