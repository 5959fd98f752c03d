"""What users of scikit-learn's SVC and LinearSVC do, done by both: ours must come out the same or better.

A case is a function of an estimator class that returns facts. It runs for scikit-learn's class and for ours
in the same process. If scikit-learn's raises an error, ours raises one of the same kind. If not, all facts
are equal, except that a fact whose name begins with "score" may be larger, or smaller by at most a margin.
What differs by design is not asked: the orientation of ``dual_coef_``, the meaning of ``n_iter_``, one score
per pair of classes.
"""

import copy
import io
import pickle
import warnings
from functools import cache
from tempfile import TemporaryFile
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context, datasets, svm
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    train_test_split,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import LabelEncoder, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import estimator_html_repr

from multimargin import KernelSVC, LinearSVC

try:
    import pandas
except ImportError:
    pandas = None
try:
    import polars
except ImportError:
    polars = None
try:
    import skops.io as skops
except ImportError:
    skops = None
try:
    import matplotlib as mpl
except ImportError:
    mpl = None

PAIRS = {"SVC": (KernelSVC, svm.SVC), "LinearSVC": (LinearSVC, svm.LinearSVC)}
KINDS = (NotFittedError, TypeError, AttributeError, ValueError)  # of errors; the first that fits counts
MARGIN = 0.03
WIDER = {  # margins where the machines themselves differ
    # The kernel is not positive semidefinite. SVC fits every pair of classes by itself; ours is one problem.
    # It has several stationary points, and the order of updates decides which one is found.
    ("SVC", "kernel: sigmoid"): 0.12,
    ("SVC", "accuracy at defaults: iris, sigmoid"): 0.1,
    ("SVC", "accuracy at defaults: digits, sigmoid"): 0.05,
    ("SVC", "accuracy at defaults: blobs, sigmoid"): 0.35,
    # A squared hinge loss against one per sample: at a small cost the latter is farther from a fit.
    ("LinearSVC", "cost: 1e-2"): 0.08,
    # Two or three rounds more or less of a method that reweighs samples.
    ("SVC", "inside: AdaBoost"): 0.06,
    ("LinearSVC", "inside: AdaBoost"): 0.06,
}
ONLY_OURS = "x as: CSR of 64-bit indices"  # scikit-learn refuses these
REFUSED = (  # both refuse these
    "wrong",
    "not fitted",
    "unknown parameter",
    "a pandas frame with missing values",
    "frames with other names",
    "labels: object integers",
    "labels: bytes",
    "sample weight: too few",
    "sample weight: two dimensions",
    "sample weight: NaN",
    "sample weight: all zero",
    "coef of another kernel",
    "precomputed of another width",
    "precomputed that is not square",
    "rfe without weights",
)
PEERS = {make: theirs for ours, theirs in PAIRS.values() for make in (ours, theirs)}
CASES = {}  # (pair, title) → (function, module that it needs)


def case(*pairs, name=None, needs=None):
    """Put a function into the table of cases."""

    def register(function):
        title = name or function.__name__.removeprefix("case_").replace("_", " ")
        for pair in pairs or PAIRS:
            assert (pair, title) not in CASES
            CASES[pair, title] = function, needs
        return function

    return register


def several(values, *pairs, needs=None):
    """The same for a function of an estimator class and one of several named values."""

    def register(function):
        title = function.__name__.removeprefix("case_").replace("_", " ")
        for key, value in values.items():
            case(*pairs, name=f"{title}: {key}", needs=needs)(lambda make, value=value: function(make, value))
        return function

    return register


def outcome(function, make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message=".*positive semidefinite.*")
        try:
            return function(make), None
        except KINDS as error:
            return None, error


def kind_of(error):
    return next(kind for kind in KINDS if isinstance(error, kind))


# -- data ---------------------------------------------------------------------------------------------
@cache
def iris():
    X, y = datasets.load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X)[::2], y[::2]


@cache
def two():
    X, y = iris()
    return X[y > 0], y[y > 0]


def integers():
    return np.rint(10 * iris()[0]).astype(np.int64)


def facts_of(model, X, y, *names):
    predicted = model.predict(X)
    facts = {"shape": predicted.shape, "kind": predicted.dtype.kind, "score": model.score(X, y)}
    facts["classes"] = model.classes_.tolist()
    return facts | {name: getattr(model, name) for name in names}


# -- constructors and parameters ----------------------------------------------------------------------
@case()
def case_defaults_of_shared_parameters(make):
    shared = ("C", "class_weight", "random_state", "verbose", "tol")
    params = make().get_params()
    wanted = {name: params[name] for name in shared if name != "tol"}
    return wanted | {name: params[name] for name in ("kernel", "degree", "gamma", "coef0") if name in params}


@case()
def case_set_params_returns_the_estimator(make):
    model = make()
    return {"same": model.set_params(C=2.0) is model, "C": model.C, "got": model.get_params()["C"]}


@case()
def case_set_params_after_fit(make):
    model = make().fit(*iris()).set_params(C=3.0)
    return {"C": model.C, "score": model.score(*iris())}


@case()
def case_clone(make):
    model = make(C=3.0, random_state=5).fit(*iris())
    again = clone(model)
    return {"params": again.get_params() == model.get_params(), "fitted": hasattr(again, "classes_")}


@case()
def case_unknown_parameter_in_set_params(make):
    make().set_params(gama=1.0)


@case()
def case_unknown_parameter_in_the_constructor(make):
    make(gama=1.0)


@case()
def case_is_a_classifier(make):
    tags = make().__sklearn_tags__()
    names = ("multi_class", "multi_label", "poor_score")
    return {
        "classifier": is_classifier(make()),
        "sparse": tags.input_tags.sparse,
        "required": tags.target_tags.required,
    } | {name: getattr(tags.classifier_tags, name) for name in names}


@case()
def case_repr(make):
    return {"plain": repr(make()).split("(")[1], "one": repr(make(C=5.0)).split("(")[1]}


@case()
def case_html_representation(make):
    text = estimator_html_repr(make(C=5.0))
    return {
        "html": text.startswith("<style>"),
        "named": make.__name__ in text,
        "link": "Documentation" in text,
    }


@case()
def case_html_representation_after_fit(make):
    return {"fitted": "Fitted" in make().fit(*iris())._repr_html_()}


@case()
def case_refit_forgets(make):
    model = make().fit(*iris())
    model.fit(*two())
    return {"classes": model.classes_.tolist(), "shape": model.decision_function(two()[0]).shape}


@case()
def case_fit_returns_the_estimator(make):
    model = make()
    return {"same": model.fit(*iris()) is model}


@case()
def case_fits_are_reproducible(make):
    a, b = (make(random_state=0).fit(*iris()).decision_function(iris()[0]) for _ in range(2))
    return {"equal": np.array_equal(a, b)}


@case()
def case_the_data_are_not_changed(make):
    X, y = iris()[0].copy(), iris()[1].copy()
    make().fit(X, y).predict(X)
    return {"X": np.array_equal(X, iris()[0]), "y": np.array_equal(y, iris()[1])}


@case()
def case_max_iter_that_is_too_small_warns(make):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(max_iter=0).fit(*iris())
    return {"warned": any(issubclass(each.category, ConvergenceWarning) for each in caught)}


# -- forms of X ---------------------------------------------------------------------------------------
def wide(X):
    matrix = sparse.csr_array(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def unsorted(X):
    matrix = sparse.csr_array(X)
    for i in range(matrix.shape[0]):
        row = slice(*matrix.indptr[i : i + 2])
        matrix.indices[row], matrix.data[row] = (
            matrix.indices[row][::-1].copy(),
            matrix.data[row][::-1].copy(),
        )
    matrix.has_sorted_indices = False
    return matrix


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def mapped(X):
    with TemporaryFile() as file:
        found = np.memmap(file, dtype=X.dtype, mode="w+", shape=X.shape)
    found[:] = X
    return found


FORMS = {
    "lists": lambda X: X.tolist(),
    "tuples": lambda X: tuple(map(tuple, X)),
    "rows in a list": lambda X: list(X),
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "long double": lambda X: X.astype(np.longdouble),
    "big endian": lambda X: X.astype(">f8"),
    "objects": lambda X: X.astype(object),
    "Fortran order": np.asfortranarray,
    "a strided view": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X: X[:, ::-1],
    "read-only": read_only,
    "memory map": mapped,
    "a masked array": lambda X: np.ma.masked_array(X),
    "CSR": sparse.csr_matrix,
    "CSC": sparse.csc_matrix,
    "COO": sparse.coo_matrix,
    "LIL": sparse.lil_matrix,
    "DOK": sparse.dok_matrix,
    "BSR": sparse.bsr_matrix,
    "CSR array": sparse.csr_array,
    "CSC array": sparse.csc_array,
    "CSR of 64-bit indices": wide,
    "CSR unsorted": unsorted,
    "CSR float32": lambda X: sparse.csr_array(X.astype(np.float32)),
}


@several(FORMS)
def case_x_as(make, form):
    X, y = iris()
    model = make().fit(form(X), y)
    facts = facts_of(model, form(X), y, "n_features_in_")
    return facts | {"as plain": bool(np.mean(model.predict(form(X)) == make().fit(X, y).predict(X)) > 0.97)}


INTEGERS = {name: np.dtype(name) for name in ("int64", "int32", "int16", "int8", "uint8", "bool")}


@several(INTEGERS)
def case_x_of_type(make, dtype):
    X = integers() - integers().min()
    X = (X > 20) if dtype.kind == "b" else X.astype(dtype)
    return facts_of(make().fit(X, iris()[1]), X, iris()[1])


@case(needs="pandas")
def case_x_as_a_pandas_frame(make):
    X = pandas.DataFrame(iris()[0], columns=list("abcd"))
    model = make().fit(X, pandas.Series(iris()[1]))
    return facts_of(model, X, iris()[1]) | {"names": model.feature_names_in_.tolist()}


@case(needs="pandas")
def case_a_pandas_frame_of_mixed_numbers(make):
    X = pandas.DataFrame({"a": iris()[0][:, 0], "b": integers()[:, 1], "c": iris()[0][:, 2] > 0})
    return facts_of(make().fit(X, iris()[1]), X, iris()[1])


@case(needs="pandas")
def case_a_pandas_frame_with_missing_values(make):
    X = pandas.DataFrame(iris()[0])
    X.iloc[0, 0] = None
    make().fit(X, iris()[1])


@case(needs="pandas")
def case_frames_with_other_names(make):
    X = pandas.DataFrame(iris()[0], columns=list("abcd"))
    make().fit(X, iris()[1]).predict(X.rename(columns={"a": "z"}))


@case(needs="pandas")
def case_arrays_after_frames_warn(make):
    model = make().fit(pandas.DataFrame(iris()[0], columns=list("abcd")), iris()[1])
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(iris()[0])
    return {}


@case(needs="polars")
def case_x_as_a_polars_frame(make):
    X = polars.DataFrame(iris()[0], schema=list("abcd"))
    return facts_of(make().fit(X, iris()[1]), X, iris()[1])


# -- labels -------------------------------------------------------------------------------------------
NAMES = np.array(["setosa", "versicolor", "virginica"])
LABELS = {
    "integers": lambda y: y,
    "a list": lambda y: y.tolist(),
    "int8": lambda y: y.astype(np.int8),
    "uint8": lambda y: y.astype(np.uint8),
    "bool": lambda y: y == 1,
    "floats": lambda y: y.astype(float),
    "float32": lambda y: y.astype(np.float32),
    "negative": lambda y: y - 5,
    "minus one and one": lambda y: np.where(y == 0, -1, 1),
    "far apart": lambda y: y * 10**12,
    "strings": lambda y: NAMES[y],
    "a list of strings": lambda y: NAMES[y].tolist(),
    "object strings": lambda y: NAMES[y].astype(object),
    "object integers": lambda y: y.astype(object),
    "bytes": lambda y: NAMES[y].astype("S"),
    "read-only": lambda y: read_only(y),
    "descending": lambda y: 2 - y,
}


@several(LABELS)
def case_labels(make, change):
    X, y = iris()[0], change(iris()[1])
    model = make().fit(X, y)
    return facts_of(model, X, y) | {"dtype": model.classes_.dtype == model.predict(X).dtype}


@case(needs="pandas")
def case_labels_in_a_category(make):
    y = pandas.Series(NAMES[iris()[1]]).astype("category")
    return facts_of(make().fit(iris()[0], y), iris()[0], y)


@case()
def case_labels_in_a_column_warn(make):
    with pytest.warns(UserWarning, match="column-vector"):
        return facts_of(make().fit(iris()[0], iris()[1][:, None]), *iris())


# -- what is wrong ------------------------------------------------------------------------------------
def spoilt(value):
    X = iris()[0].copy()
    X[3, 1] = value
    return X


WRONG_DATA = {
    "NaN": lambda: (spoilt(np.nan), iris()[1]),
    "infinity": lambda: (spoilt(np.inf), iris()[1]),
    "NaN in CSR": lambda: (sparse.csr_array(spoilt(np.nan)), iris()[1]),
    "None": lambda: (spoilt(np.nan).astype(object), iris()[1]),
    "no X": lambda: (None, iris()[1]),
    "no y": lambda: (iris()[0], None),
    "one dimension": lambda: (iris()[0][:, 0], iris()[1]),
    "three dimensions": lambda: (iris()[0][:, :, None], iris()[1]),
    "a number": lambda: (3.0, 1),
    "no rows": lambda: (iris()[0][:0], iris()[1][:0]),
    "no features": lambda: (iris()[0][:, :0], iris()[1]),
    "fewer labels than rows": lambda: (iris()[0], iris()[1][:-1]),
    "two columns of labels": lambda: (iris()[0], np.stack([iris()[1]] * 2, axis=1)),
    "continuous labels": lambda: (iris()[0], iris()[0][:, 0]),
    "NaN among labels": lambda: (iris()[0], np.where(iris()[1] == 0, np.nan, 1.0)),
    "one class": lambda: (iris()[0], np.zeros(len(iris()[1]))),
    "complex numbers": lambda: (iris()[0] + 1j, iris()[1]),
    "words": lambda: (NAMES[np.stack([iris()[1]] * 2, axis=1)], iris()[1]),
    "ragged lists": lambda: ([[1.0], [1.0, 2.0]], [0, 1]),
}


@several(WRONG_DATA)
def case_wrong_data(make, data):
    make().fit(*data())


WRONG_PARAMETERS = {
    "C=0": {"C": 0.0},
    "C=-1": {"C": -1.0},
    "C=nan": {"C": np.nan},
    "C as text": {"C": "1"},
    "tol as text": {"tol": "small"},
    "tol=-1": {"tol": -1.0},
    "max_iter=-2": {"max_iter": -2},
    "max_iter=1.5": {"max_iter": 1.5},
    "verbose=-1": {"verbose": -1},
    "verbose as text": {"verbose": "yes"},
    "class_weight as text": {"class_weight": "balance"},
    "class_weight of other labels": {"class_weight": {"a": 1.0}},
    "class_weight as a list": {"class_weight": [1, 2, 3]},
    "random_state as text": {"random_state": "a"},
}


@several(WRONG_PARAMETERS)
def case_wrong_parameter(make, parameters):
    make(**parameters).fit(*iris())


OF_KERNELS = {
    "kernel='spline'": {"kernel": "spline"},
    "kernel=3": {"kernel": 3},
    "degree=-1": {"degree": -1},
    "degree=2.5": {"degree": 2.5},
    "gamma=-1": {"gamma": -1.0},
    "gamma as text": {"gamma": "small"},
    "gamma=-1 of a linear kernel": {"gamma": -1.0, "kernel": "linear"},
    "coef0=nan": {"coef0": np.nan},
    "shrinking as text": {"shrinking": "no"},
    "cache_size=-1": {"cache_size": -1.0},
}


@several(OF_KERNELS, "SVC")
def case_wrong_kernel_parameter(make, parameters):
    make(**parameters).fit(*iris())


AT_PREDICTION = {
    "another number of features": lambda X: X[:, :2],
    "one row without brackets": lambda X: X[0],
    "NaN": lambda X: np.where(X > 1, np.nan, X),
    "no rows": lambda X: X[:0],
    "words": lambda X: X.astype(str).astype(object) + "x",
}


@several(AT_PREDICTION)
def case_wrong_rows_to_predict(make, change):
    make().fit(*iris()).predict(change(iris()[0]))


@several({name: name for name in ("predict", "decision_function", "score")})
def case_not_fitted(make, method):
    arguments = iris() if method == "score" else iris()[:1]
    getattr(make(), method)(*arguments)


# -- weights ------------------------------------------------------------------------------------------
WEIGHTS = {
    "none": None,
    "ones": np.ones(75),
    "a list": [1.0] * 75,
    "integers": np.ones(75, dtype=int),
    "a few zeros": np.where(np.arange(75) % 7, 1.0, 0.0),
    "large": np.full(75, 1e3),
    "of one class": np.where(iris()[1] == 2, 5.0, 1.0),
    "too few": np.ones(74),
    "two dimensions": np.ones((75, 2)),
    "NaN": np.full(75, np.nan),
    "all zero": np.zeros(75),
}


@several(WEIGHTS)
def case_sample_weight(make, weight):
    return facts_of(make().fit(*iris(), sample_weight=weight), *iris())


CLASS_WEIGHTS = {"balanced": "balanced", "a dict": {0: 1.0, 1: 2.0, 2: 0.5}, "a part": {1: 3.0}}


@several(CLASS_WEIGHTS)
def case_class_weight(make, class_weight):
    return facts_of(make(class_weight=class_weight).fit(*iris()), *iris())


@several(CLASS_WEIGHTS, "SVC")
def case_class_weight_attribute(make, class_weight):
    return {"found": make(class_weight=class_weight).fit(*iris()).class_weight_.round(9).tolist()}


@case()
def case_a_class_without_weight_stays_a_class(make):
    X, y = iris()
    model = make().fit(X, y, sample_weight=np.where(y == 2, 0.0, 1.0))
    return {"classes": model.classes_.tolist(), "score": model.score(X[y < 2], y[y < 2])}


# -- attributes ---------------------------------------------------------------------------------------
DATA = {
    "three classes": lambda: iris(),
    "two classes": lambda: two(),
    "three classes, sparse": lambda: (sparse.csr_array(iris()[0]), iris()[1]),
    "two classes, sparse": lambda: (sparse.csr_array(two()[0]), two()[1]),
}


@several(DATA)
def case_shape_of_the_decision(make, data):
    X, y = data()
    scores = make().fit(X, y).decision_function(X)
    return {"shape": scores.shape, "dtype": scores.dtype, "type": type(scores)}


@several(DATA)
def case_prediction_follows_the_decision(make, data):
    X, y = data()
    model = make().fit(X, y)
    scores = model.decision_function(X)
    best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    return {"score": float(np.mean(model.classes_[best] == model.predict(X)))}


@several(DATA, "SVC")
def case_attributes(make, data):
    X, y = data()
    model = make().fit(X, y)
    vectors = model.support_vectors_
    dense = vectors.toarray() if sparse.issparse(vectors) else vectors
    given = X.toarray() if sparse.issparse(X) else X
    return {
        "sparse": sparse.issparse(vectors),
        "vectors": np.array_equal(dense, given[model.support_]),
        "dtype": dense.dtype,
        "counts": (model.n_support_.shape, model.n_support_.dtype, int(model.n_support_.sum()) == len(dense)),
        "of each class": np.bincount(np.searchsorted(model.classes_, y[model.support_])).tolist()
        == model.n_support_.tolist(),
        "weights": model.class_weight_.tolist(),
        "shape": model.shape_fit_,
        "status": model.fit_status_,
        "features": model.n_features_in_,
        "coef": hasattr(model, "coef_"),
        "indices": model.support_.dtype.kind,
        "dual": model.dual_coef_.ndim,
        "intercept of two": model.intercept_.shape if len(model.classes_) == 2 else None,
    }


@several({key: value for key, value in DATA.items() if "two" in key})
def case_weights_of_two_classes(make, data):
    X, y = data()
    model = make(kernel="linear") if "kernel" in make().get_params() else make()
    model.fit(X, y)
    coef = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
    scores = (X @ coef.T + model.intercept_)[:, 0]
    return {
        "shapes": (coef.shape, model.intercept_.shape),
        "scores": bool(np.allclose(scores, model.decision_function(X), atol=1e-8)),
        "positive means": model.predict(X[scores > 0]).min() == model.classes_[1],
    }


@case()
def case_weights_of_three_classes(make):
    model = make(kernel="linear") if "kernel" in make().get_params() else make()
    return {"width": model.fit(*iris()).coef_.shape[1], "classes": len(model.classes_)}


@several(
    {name: name for name in ("support_", "n_support_", "support_vectors_", "shape_fit_", "coef_")}, "SVC"
)
def case_no_attribute_before_fit(make, name):
    return {"has": hasattr(make(kernel="linear"), name)}


@case("SVC")
def case_coef_of_another_kernel(make):
    _ = make().fit(*iris()).coef_


@case("SVC")
def case_precomputed_has_no_support_vectors(make):
    X, y = iris()
    return {"shape": make(kernel="precomputed").fit(X @ X.T, y).support_vectors_.shape}


@case("LinearSVC")
def case_sparsify_and_densify(make):
    model = make().fit(*iris())
    before = model.predict(iris()[0])
    same = [np.array_equal(change().predict(iris()[0]), before) for change in (model.sparsify, model.densify)]
    return {"same": same, "type": type(model.coef_)}


# -- kernels and accuracy -----------------------------------------------------------------------------
KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly"},
    "poly of degree 2": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "rbf": {},
    "rbf, gamma auto": {"gamma": "auto"},
    "rbf, gamma 0.1": {"gamma": 0.1},
    "sigmoid": {"kernel": "sigmoid"},
    "a function": {"kernel": rbf_kernel},
    "a lambda": {"kernel": lambda A, B: A @ B.T},
}


@several(KERNELS, "SVC")
def case_kernel(make, parameters):
    return facts_of(make(**parameters).fit(*iris()), *iris())


@several(KERNELS, "SVC")
def case_kernel_of_two_classes(make, parameters):
    """The binary machine of SVC is "c-svc": the same scores."""
    model = make("c-svc", **parameters) if make is KernelSVC else make(**parameters)
    scores = model.set_params(tol=1e-6).fit(*two()).decision_function(two()[0])
    return {"digits": scores.round(2).tolist()} if parameters.get("kernel") != "sigmoid" else {}


@case("SVC")
def case_precomputed(make):
    X, y = iris()
    model = make(kernel="precomputed").fit(rbf_kernel(X), y)
    return {"score": model.score(rbf_kernel(X), y), "pairwise": model.__sklearn_tags__().input_tags.pairwise}


@case("SVC")
def case_precomputed_of_another_width(make):
    X, y = iris()
    make(kernel="precomputed").fit(X @ X.T, y).predict(X)


@case("SVC")
def case_precomputed_that_is_not_square(make):
    make(kernel="precomputed").fit(*iris())


@case("SVC")
def case_precomputed_in_cross_validation(make):
    X, y = iris()
    return {"score": cross_val_score(make(kernel="precomputed"), rbf_kernel(X), y, cv=3).mean()}


@several({"1e-2": 1e-2, "1": 1.0, "1e2": 1e2, "1e4": 1e4})
def case_cost(make, C):
    return {"score": make(C=C).fit(*iris()).score(*iris())}


@cache
def held_out(name):
    if name == "blobs":
        X, y = datasets.make_blobs(300, 4, centers=5, cluster_std=2.0, random_state=0)
    elif name == "off the origin":
        X, y = datasets.make_blobs(
            200, centers=[[20, 20], [24, 20], [22, 24]], cluster_std=0.8, random_state=0
        )
    elif name == "a line of points":
        X = np.linspace(5.0, 6.0, 60)[:, None]
        y = (X[:, 0] > 5.5).astype(int)
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        X, y = StandardScaler().fit_transform(X)[-700:], y[-700:]
    return train_test_split(X, y, random_state=0, stratify=y)


SETS = ("iris", "wine", "breast_cancer", "digits", "blobs", "off the origin", "a line of points")
AT_DEFAULTS = {
    f"{name}, {kernel}": (name, kernel) for name in SETS for kernel in ("linear", "poly", "rbf", "sigmoid")
}


@several(AT_DEFAULTS, "SVC")
def case_accuracy_at_defaults(make, which):
    name, kernel = which
    X, X_test, y, y_test = held_out(name)
    model = make(kernel=kernel).fit(X, y)
    return {"score there": model.score(X, y), "score of new rows": model.score(X_test, y_test)}


@several({name: name for name in SETS}, "LinearSVC")
def case_accuracy_of_the_linear_machine(make, name):
    """Data off the origin need a larger constant feature in either, as scikit-learn's documentation says."""
    X, X_test, y, y_test = held_out(name)
    model = make(intercept_scaling=10.0 if name in SETS[-2:] else 1.0)
    return {"score": model.fit(X, y).score(X_test, y_test)}


# -- tools of scikit-learn ----------------------------------------------------------------------------
def piped(make, **parameters):
    return make_pipeline(StandardScaler(), make(**parameters))


@case()
def case_pipeline(make):
    model = piped(make).fit(*iris())
    return {"score": model.score(*iris()), "shape": model.decision_function(iris()[0]).shape}


@case()
def case_pipeline_with_weights(make):
    pipe = Pipeline([("scale", StandardScaler()), ("machine", make())])
    return {"score": pipe.fit(*iris(), machine__sample_weight=np.ones(75)).score(*iris())}


@case()
def case_pipeline_of_features(make):
    union = FeatureUnion(
        [("squares", PolynomialFeatures(2)), ("map", Nystroem(n_components=10, random_state=0))]
    )
    return {"score": make_pipeline(union, make()).fit(*iris()).score(*iris())}


@case()
def case_grid_search(make):
    search = GridSearchCV(make(), {"C": [0.1, 1.0]}, cv=3).fit(*iris())
    return {"score": search.best_score_, "shape": search.decision_function(iris()[0]).shape}


@case("SVC")
def case_grid_search_over_kernels(make):
    grid = [{"kernel": ["rbf"], "gamma": ["scale", 0.1]}, {"kernel": ["linear", "poly"]}]
    return {"score": GridSearchCV(make(), grid, cv=3).fit(*iris()).best_score_}


@case()
def case_grid_search_by_roc(make):
    scorer = make_scorer(roc_auc_score, response_method="decision_function")
    return {"score": GridSearchCV(make(), {"C": [1.0]}, cv=3, scoring=scorer).fit(*two()).best_score_}


@case()
def case_randomized_search(make):
    search = RandomizedSearchCV(make(), {"C": [0.1, 1.0, 10.0]}, n_iter=2, cv=3, random_state=0)
    return {"score": search.fit(*iris()).best_score_}


@case()
def case_halving_search(make):
    search = HalvingGridSearchCV(make(), {"C": [0.3, 1.0, 3.0]}, cv=3, random_state=0, min_resources=40)
    return {"score": search.fit(*iris()).score(*iris())}


@case()
def case_cross_validation(make):
    return {"score": cross_val_score(make(), *iris(), cv=3).mean()}


@case()
def case_cross_validation_by_threads(make):
    with joblib.parallel_backend("threading"):
        return {"score": cross_val_score(make(), *iris(), cv=3, n_jobs=2).mean()}


@case()
def case_cross_validate_with_estimators(make):
    found = cross_validate(make(), *iris(), cv=3, return_estimator=True, scoring=["accuracy", "f1_macro"])
    return {"estimators": len(found["estimator"]), "score": found["test_f1_macro"].mean()}


@case()
def case_cross_val_predict(make):
    found = cross_val_predict(make(), *iris(), cv=3, method="decision_function")
    return {
        "shape": found.shape,
        "score": float(np.mean(cross_val_predict(make(), *iris(), cv=3) == iris()[1])),
    }


@case()
def case_learning_curve(make):
    sizes, _, test = learning_curve(
        make(), *iris(), cv=3, train_sizes=[0.5, 1.0], shuffle=True, random_state=0
    )
    return {"sizes": sizes.tolist(), "score": test[-1].mean()}


@case()
def case_validation_curve(make):
    _, test = validation_curve(make(), *iris(), param_name="C", param_range=[0.1, 1.0], cv=3)
    return {"shape": test.shape, "score": test[-1].mean()}


@several({"sigmoid": "sigmoid", "isotonic": "isotonic"})
def case_calibration(make, method):
    model = CalibratedClassifierCV(make(), method=method, cv=3).fit(*iris())
    chances = model.predict_proba(iris()[0])
    return {
        "shape": chances.shape,
        "sums": bool(np.allclose(chances.sum(axis=1), 1)),
        "score": model.score(*iris()),
    }


META = {
    "OneVsRest": lambda model: OneVsRestClassifier(model),
    "OneVsOne": lambda model: OneVsOneClassifier(model),
    "OutputCode": lambda model: OutputCodeClassifier(model, random_state=0),
    "Bagging": lambda model: BaggingClassifier(model, n_estimators=3, random_state=0),
    "AdaBoost": lambda model: AdaBoostClassifier(model, n_estimators=3, random_state=0),
    "Voting": lambda model: VotingClassifier([("a", model), ("b", DecisionTreeClassifier(random_state=0))]),
    "Stacking": lambda model: StackingClassifier(
        [("a", model)], DecisionTreeClassifier(random_state=0), cv=3
    ),
    "Stacking on top": lambda model: StackingClassifier([("a", DecisionTreeClassifier())], model, cv=3),
}


@several(META)
def case_inside(make, wrap):
    model = wrap(make()).fit(*iris())
    return {"shape": model.predict(iris()[0]).shape, "score": model.score(*iris())}


@case()
def case_several_outputs(make):
    Y = np.stack([iris()[1], 2 - iris()[1]], axis=1)
    model = MultiOutputClassifier(make()).fit(iris()[0], Y)
    return {"shape": model.predict(iris()[0]).shape, "score": model.score(iris()[0], Y)}


@case()
def case_a_chain_of_outputs(make):
    Y = np.stack([iris()[1] == 0, iris()[1] == 1], axis=1).astype(int)
    model = ClassifierChain(make(), order=[0, 1]).fit(iris()[0], Y)
    return {"shape": model.predict(iris()[0]).shape, "score": model.score(iris()[0], Y)}


def linear(make):
    return make(kernel="linear") if "kernel" in make().get_params() else make()


@several({"iris": iris, "two": two})
def case_rfe(make, data):
    model = RFE(linear(make), n_features_to_select=2).fit(*data())
    return {"kept": int(model.support_.sum()), "score": model.score(*data())}


@case()
def case_rfe_with_cross_validation(make):
    return {"score": RFECV(linear(make), cv=3).fit(*iris()).score(*iris())}


@several({"iris": iris, "two": two})
def case_select_from_model(make, data):
    chosen = SelectFromModel(linear(make)).fit(*data())
    return {"chooses": 0 < chosen.get_support().sum() < 4, "petals": bool(chosen.get_support()[2:].any())}


@case("SVC")
def case_rfe_without_weights(make):
    RFE(make()).fit(*iris())


@case()
def case_sequential_selection(make):
    chosen = SequentialFeatureSelector(make(), n_features_to_select=1, cv=3).fit(*iris())
    return {"petals": bool(chosen.get_support()[2:].any())}


@case()
def case_permutation_importance(make):
    found = permutation_importance(make().fit(*iris()), *iris(), n_repeats=2, random_state=0)
    return {"petals": bool(found.importances_mean.argmax() >= 2), "shape": found.importances.shape}


@case()
def case_partial_dependence(make):
    found = partial_dependence(make().fit(*two()), two()[0], [2], grid_resolution=5, kind="average")
    return {"shape": found["average"].shape, "grows": bool(np.all(np.diff(found["average"][0]) > 0))}


@case(needs="mpl")
def case_decision_boundary(make):
    from sklearn.inspection import DecisionBoundaryDisplay

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    X, y = iris()[0][:, 2:], iris()[1]
    display = DecisionBoundaryDisplay.from_estimator(
        make().fit(X, y), X, grid_resolution=5, response_method="predict"
    )
    plt.close(display.figure_)
    return {"shape": np.shape(display.response)}


@case(needs="pandas")
def case_set_output(make):
    pipe = make_pipeline(StandardScaler(), make()).set_output(transform="pandas")
    X = pandas.DataFrame(iris()[0], columns=list("abcd"))
    return {"score": pipe.fit(X, iris()[1]).score(X, iris()[1])}


@case()
def case_metadata_routing(make):
    with config_context(enable_metadata_routing=True):
        model = make().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        found = cross_validate(model, *iris(), cv=3, params={"sample_weight": np.ones(75)})
    return {"score": found["test_score"].mean()}


@case()
def case_label_encoder_before(make):
    y = LabelEncoder().fit_transform(NAMES[iris()[1]])
    return facts_of(make().fit(iris()[0], y), iris()[0], y)


# -- copies -------------------------------------------------------------------------------------------
def by_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def by_skops(model):
    data = skops.dumps(model)
    return skops.loads(data, trusted=skops.get_untrusted_types(data=data))


COPIES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "the first protocol": lambda model: pickle.loads(pickle.dumps(model, protocol=0)),
    "joblib": by_joblib,
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "a pipeline": lambda model: pickle.loads(pickle.dumps(make_pipeline(model)))[-1],
}


def assert_copies(make, way):
    model = make().fit(*iris())
    back = way(model)
    return {
        "scores": np.array_equal(back.decision_function(iris()[0]), model.decision_function(iris()[0])),
        "params": repr(back) == repr(model),
        "again": back.fit(*iris()) is back,
    }


@several(COPIES)
def case_copy_by(make, way):
    return assert_copies(make, way)


@case(needs="skops")
def case_copy_by_skops(make):
    return assert_copies(make, by_skops)


@case()
def case_the_size_of_a_pickle(make):
    """At most 2 kB, or 1.5 times scikit-learn's, more: the certificate and the trace are kept too."""
    X, _, y, _ = held_out("digits")
    size = len(pickle.dumps(make().fit(X, y)))
    return {"score": -float(size > 2000 + 1.5 * len(pickle.dumps(PEERS[make]().fit(X, y))))}


@case()
def case_attributes_may_be_set(make):
    model = make().fit(*iris())
    model.note = SimpleNamespace(author="me")
    return {"kept": copy.deepcopy(model).note.author}


# -- all of them ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("pair", "title"), list(CASES), ids=str)
def test_side_by_side(pair, title):
    function, needs = CASES[pair, title]
    if needs is not None and globals()[needs] is None:
        pytest.skip(f"{needs} is not installed")
    (ours, our_error), (theirs, their_error) = (outcome(function, make) for make in PAIRS[pair])
    assert (their_error is not None) == title.startswith((ONLY_OURS, *REFUSED)), their_error
    if title == ONLY_OURS:
        assert our_error is None
        return
    if their_error is not None:
        assert our_error is not None, f"scikit-learn raises {their_error!r}"
        both_bad = {kind_of(our_error), kind_of(their_error)} <= {TypeError, ValueError}
        assert kind_of(our_error) is kind_of(their_error) or both_bad
        return
    if our_error is not None:
        raise our_error
    assert ours.keys() == theirs.keys()
    for fact, value in theirs.items():
        if fact.startswith("score"):
            margin = WIDER.get((pair, title), MARGIN)
            assert ours[fact] >= value - margin, f"{fact}: {ours[fact]} against {value}"
        else:
            assert ours[fact] == value, f"{fact}: {ours[fact]!r} against {value!r}"
