"""Model files: what is saved comes back bit by bit, whatever the estimator, its data and its parameters."""

import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import chi2_kernel
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

import multimargin
from multimargin import Decomposition, KernelSVC, KernelSVCCV, LinearSVC, LinearSVCCV, kernels, load
from multimargin.datasets import Scaling
from multimargin.files.archive import read, write
from multimargin.files.tree import decode, encode
from multimargin.inner import CoordinateDescent
from multimargin.selection.calibration import Isotonic, Sigmoid
from multimargin.working_set import Gain

STORED = Path(__file__).resolve().parents[1] / "reference"
LINEAR = {"tol": 1e-2, "max_iter": -1}
MAKERS = {
    "defaults": lambda X, y: KernelSVC().fit(X, y),
    "bytes": lambda X, y: KernelSVC().fit((10 * X).astype(np.uint8), y),
    "short integers": lambda X, y: KernelSVC().fit((100 * X).astype(np.int16), y),
    "float32": lambda X, y: KernelSVC().fit(X.astype(np.float32), y),
    "sparse rows": lambda X, y: KernelSVC(class_weight={0: 1, 1: 2, 2: 3}).fit(sparse.csr_array(X), y),
    "sparse matrix": lambda X, y: KernelSVC(C=np.float64(2)).fit(sparse.csr_matrix(X), y),
    "kernel object": lambda X, y: KernelSVC(kernel=kernels.Polynomial(normalize=True)).fit(X, y),
    "sigmoid": lambda X, y: KernelSVC(kernel="sigmoid", gamma=0.01).fit(X, y),
    "laplacian": lambda X, y: KernelSVC(kernel="laplacian").fit(X, y),
    "precomputed": lambda X, y: KernelSVC(kernel="precomputed").fit(X @ X.T, y),
    "solver by hand": lambda X, y: KernelSVC(
        solver=Decomposition(Gain(q=10), CoordinateDescent("pivot")), random_state=np.random.RandomState(3)
    ).fit(X, y),
    "free bias": lambda X, y: KernelSVC("weston-watkins", bias="free", kernel="poly").fit(X, y),
    "weights": lambda X, y: KernelSVC(class_weight="balanced").fit(X, y, 1.0 + np.arange(len(y)) % 3),
    "text": lambda X, y: KernelSVC("one-vs-rest").fit(X, np.array(["ä", "b b", "c"])[y]),
    "objects": lambda X, y: KernelSVC().fit(X, np.array(["a", "b", "c"], dtype=object)[y]),
    "binary": lambda X, y: KernelSVC("c-svc").fit(X, y == 1),
    "linear": lambda X, y: LinearSVC(**LINEAR).fit(X, y),
    "linear, two classes": lambda X, y: LinearSVC(**LINEAR).fit(X, y == 0),
    "linear, sparse weights": lambda X, y: LinearSVC(**LINEAR).fit(X, y).sparsify(),
    "linear, warm": lambda X, y: LinearSVC(warm_start=True, **LINEAR).fit(X, y),
    "stream": lambda X, y: LinearSVC(keep_dual=True).partial_fit(X, y, classes=np.unique(y)),
    "search": lambda X, y: KernelSVCCV(Cs=[1, 10], gammas=[0.1, "scale"], cv=3).fit(X, y),
    "search, machines": lambda X, y: KernelSVCCV(
        ["crammer-singer", "weston-watkins"], Cs=[1], gammas=[0.1], cv=3, calibration="isotonic"
    ).fit(X, y),
    "search, linear": lambda X, y: LinearSVCCV(Cs=[1, 10], cv=3, calibration="sigmoid").fit(X, y),
    "search, scores": lambda X, y: KernelSVCCV(
        Cs=[1, 10], gammas=[0.1], scoring=["accuracy", "f1_macro"], refit="f1_macro", cv=StratifiedKFold(4)
    ).fit(X, y),
    "search, no refit": lambda X, y: KernelSVCCV(
        Cs=[1], gammas=[0.1, 1.0], refit=False, cv=ShuffleSplit(2, random_state=1)
    ).fit(X, y),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mm"


def equal(a, b):
    """Whether two states are the same, types and bits included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, np.ma.MaskedArray):
        return equal(a.data, b.data) and equal(np.ma.getmaskarray(a), np.ma.getmaskarray(b))
    if isinstance(a, np.ndarray):
        same = a.dtype == b.dtype and a.shape == b.shape
        return same and (equal(a.tolist(), b.tolist()) if a.dtype == object else a.tobytes() == b.tobytes())
    if isinstance(a, np.random.RandomState):
        return equal(a.get_state(), b.get_state())
    if isinstance(a, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes() or (a != a and b != b)
    if isinstance(a, KernelSVC | LinearSVC):
        return equal(a.__getstate__(), b.__getstate__())
    return equal(vars(a), vars(b)) if isinstance(a, Sigmoid | Isotonic) else a == b


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_a_model_comes_back_bit_by_bit(name, mmap, iris, path):
    X, y = iris
    model = MAKERS[name](X, y)
    model.save(path)
    back = load(path, mmap=mmap)
    assert type(back) is type(model)
    states = [
        {k: v for k, v in m.__getstate__().items() if k not in ("scorer_", "cv")} for m in (model, back)
    ]
    assert equal(*states)
    params = [clone(m).set_params(random_state=0) for m in (back, model)]
    assert repr(params[0]) == repr(params[1])
    if "no refit" in name:
        return
    X = X @ X.T if name == "precomputed" else X
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    assert back.score(X, model.predict(X)) == 1.0
    if "search" in name:
        np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    back.save(path)  # over the file that it may be a map of
    assert equal(
        *({**load(path).__getstate__(), "scorer_": 0, "cv": 0}, {**states[0], "scorer_": 0, "cv": 0})
    )


def test_the_same_model_gives_the_same_bytes(iris, path):
    model = KernelSVC().fit(*iris)
    model.save(path)
    first = path.read_bytes()
    pickle.loads(pickle.dumps(model)).save(path)
    assert path.read_bytes() == first


def test_a_mapped_model_is_in_the_file(iris, path):
    KernelSVC().fit(*iris).save(path)
    for name in ("dual_coef_", "_support"):
        array = getattr(load(path, mmap=True), name)
        assert isinstance(array.base, np.memmap)
        assert array.ctypes.data % 64 == 0
        assert not array.flags.writeable


def test_other_programs_can_look_into_the_file(iris, path):
    model = KernelSVC().fit((10 * iris[0]).astype(np.uint8), iris[1])
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        document = json.loads(archive.read("model.json"))
        assert document["summary"]["support_vectors"] == len(model.support_)
        assert document["summary"]["features_type"] == "uint8"
        with archive.open("arrays/dual_coef_.npy") as member:
            np.testing.assert_array_equal(np.load(member), model.dual_coef_)
        with archive.open("arrays/_support.npy") as member:
            assert np.load(member).dtype == np.uint8


def test_a_model_of_bytes_is_as_small_as_its_support_vectors(path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (3000, 300), dtype=np.uint8)
    model = KernelSVC().fit(X, rng.integers(0, 3, 3000))
    model.save(path)
    k = len(model.support_)
    assert os.path.getsize(path) <= 1.1 * (k * 300 + model.dual_coef_.nbytes)


# -- what cannot be stored -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"kernel": chi2_kernel}, "kernel is the function or class 'chi2_kernel'"),
        ({"callback": lambda row: False}, "callback is the function"),
    ],
)
def test_code_is_refused_and_named(params, said, iris, path):
    path.write_bytes(b"old")
    X, y = iris
    model = KernelSVC(**params).fit(np.abs(X), y)
    with pytest.raises(TypeError, match=said) as error:
        model.save(path)
    assert "pickle" in str(error.value)
    assert path.read_bytes() == b"old"


def test_a_score_that_is_a_function_is_refused(iris, path):
    def own(model, X, y):
        return 0.5

    model = KernelSVCCV(Cs=[1], gammas=[0.1], cv=2, scoring=own).fit(*iris)
    with pytest.raises(TypeError, match="scoring is the function"):
        model.save(path)


def test_a_model_that_is_not_fitted_cannot_be_saved(path):
    for model in (KernelSVC(), LinearSVC(), KernelSVCCV()):
        with pytest.raises(NotFittedError):
            model.save(path)
    assert not path.exists()


# -- any tree --------------------------------------------------------------------------------------------
NUMBERS = st.integers(-(2**70), 2**70) | st.floats() | st.booleans() | st.none() | st.text()
KINDS = [
    np.bool_,
    np.uint8,
    np.int16,
    np.int32,
    np.int64,
    np.uint64,
    np.float32,
    np.float64,
    "U3",
    "S2",
    "M8[s]",
]
ARRAYS = st.sampled_from(KINDS).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
LONG = st.builds(
    lambda values, dtype, times: np.resize(np.array(values), times).astype(dtype),
    st.lists(st.integers(0, 100), min_size=1, max_size=4),
    st.sampled_from([np.int64, np.int32, np.float64, np.float32]),
    st.integers(250, 1000),
) | st.builds(lambda a, n: np.arange(a, a + n), st.integers(-5, 10**12), st.integers(250, 400))
TREES = st.recursive(
    NUMBERS | ARRAYS | LONG,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(tree=st.dictionaries(st.text(), TREES, max_size=4))
def test_any_tree_of_plain_data_comes_back(tree, tmp_path_factory):
    path = tmp_path_factory.mktemp("tree") / "tree.mm"
    document, found = encode({"state": tree})
    write(path, document, found)
    for mmap in (False, True):
        document, found, _ = read(path, mmap=mmap)
        assert equal(decode(document["state"], found, 1 << 20), tree)


# -- files of every version ------------------------------------------------------------------------------
def test_a_file_of_version_1_answers_as_before():
    cases = json.loads((STORED / "model-file-1.json").read_text())
    for name, case in cases.items():
        model = load(STORED / "model-file-1" / f"{name}.mm")
        np.testing.assert_allclose(
            model.decision_function(case["rows"]), case["decision"], rtol=1e-12, atol=1e-13
        )
        assert model.predict(case["rows"]).tolist() == case["labels"]
        if "probabilities" in case:
            np.testing.assert_allclose(model.predict_proba(case["rows"]), case["probabilities"], rtol=1e-9)


def test_load_is_public():
    assert multimargin.load is load
    assert "load" in dir(multimargin)


# -- scaling ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["minmax", "standard", "unit"])
def test_a_scaling_comes_back_as_a_pipeline(kind, iris, path):
    X, y = iris
    scaling = Scaling.fit(kind, X)
    model = KernelSVC().fit(scaling.apply(X), y)
    model.save(path, scaling=scaling)
    back = load(path)
    assert list(back.named_steps) == ["scaling", "model"]
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(scaling.apply(X)))
    again = clone(back).fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), back.decision_function(X))
    with pytest.raises(ValueError, match="features"):
        back.predict(X[:, :2])


def test_a_scaling_that_does_not_fit_is_refused(iris, path):
    X, y = iris
    KernelSVC().fit(X, y).save(path, scaling=Scaling("minmax", np.zeros(2), np.ones(2)))
    with pytest.raises(ValueError, match="the scaling does not fit"):
        load(path)
