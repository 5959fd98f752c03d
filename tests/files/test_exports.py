"""Exports: LIBSVM's own program and onnxruntime give the answers of the model."""

import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from multimargin import KernelSVC, KernelSVCCV, LinearSVC, LinearSVCCV, datasets, kernels
from multimargin.datasets import Scaling
from multimargin.files import onnx_model

SVM_PREDICT = shutil.which("svm-predict")
needs_libsvm = pytest.mark.skipif(SVM_PREDICT is None, reason="svm-predict (libsvm-tools) is not installed")


@pytest.fixture(scope="module")
def two():
    X, y = load_digits(return_X_y=True)
    keep = np.isin(y, (3, 8))
    return X[keep], np.where(y[keep] == 8, 1, -1)


# -- LIBSVM ----------------------------------------------------------------------------------------------
KERNELS = {
    "rbf": {"gamma": 0.001},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "gamma": 0.01, "coef0": 1.0},
    "sigmoid": {"kernel": "sigmoid", "gamma": 1e-4, "coef0": 0.0, "C": 10.0},
}


@needs_libsvm
@pytest.mark.parametrize("form", ["dense", "sparse", "bytes"])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("machine", ["c-svc", "weston-watkins"])
def test_svm_predict_agrees(machine, name, form, two, tmp_path):
    X, y = two
    X = {"dense": X, "sparse": sparse.csr_array(X), "bytes": X.astype(np.uint8)}[form]
    model = KernelSVC(machine, **KERNELS[name]).fit(X[:200], y[:200])
    model.export(tmp_path / "m.model")
    datasets.save(tmp_path / "test.libsvm", X[200:], y[200:])
    command = [SVM_PREDICT, tmp_path / "test.libsvm", tmp_path / "m.model", tmp_path / "out"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "out"), model.predict(X[200:]))
    assert float(re.search(r"Accuracy = ([\d.]+)%", said)[1]) == pytest.approx(
        100 * model.score(X[200:], y[200:]), abs=1e-3
    )


@needs_libsvm
def test_svm_predict_agrees_on_kernel_values(two, tmp_path):
    X, y = two
    K = np.exp(-0.001 * ((X[:, None] - X[None, :200]) ** 2).sum(axis=2))
    model = KernelSVC("c-svc", kernel="precomputed").fit(K[:200], y[:200])
    model.export(tmp_path / "m.model", "libsvm")
    numbered = np.column_stack([np.arange(1, len(K) - 199), K[200:]])
    datasets.save(tmp_path / "test.libsvm", numbered, y[200:], zero_based=True)
    command = [SVM_PREDICT, tmp_path / "test.libsvm", tmp_path / "m.model", tmp_path / "out"]
    subprocess.run(command, capture_output=True, check=True)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "out"), model.predict(K[200:]))


def test_the_numbers_are_exact(two, tmp_path):
    """Read by hand: the text has the decision function to the last bit of its coefficients."""
    X, y = two
    model = KernelSVC("c-svc", gamma=0.001).fit(X, y)
    model.export(tmp_path / "m.model")
    head, _, rows = (tmp_path / "m.model").read_text().partition("SV\n")
    facts = dict(line.split(" ", 1) for line in head.splitlines())
    lines = [row.split() for row in rows.splitlines()]
    assert facts["label"] == "1 -1"
    assert -float(facts["rho"]) == model.intercept_[0]
    coef = np.array([float(line[0]) for line in lines])
    assert sorted(coef) == sorted(model.dual_coef_[:, 0])
    counts = [int(n) for n in facts["nr_sv"].split()]
    assert (coef[: counts[0]] > 0).all()
    assert (coef[counts[0] :] < 0).all()
    support = np.zeros((len(lines), 64))
    for k, line in enumerate(lines):
        for pair in line[1:]:
            column, value = pair.split(":")
            support[k, int(column) - 1] = float(value)
    K = np.exp(-float(facts["gamma"]) * ((X[:20, None] - support) ** 2).sum(axis=2))
    np.testing.assert_allclose(K @ coef - float(facts["rho"]), model.decision_function(X[:20]), atol=1e-12)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda X, y: KernelSVC().fit(X, y % 3), "two classes, and this one has 3"),
        (lambda X, y: KernelSVC("c-svc").fit(X, np.where(y % 2, "a", "b")), "whole numbers"),
        (
            lambda X, y: KernelSVC("c-svc", kernel="laplacian").fit(X, y % 2),
            "does not have the kernel Laplacian",
        ),
        (lambda X, y: LinearSVC(C=0.01, tol=0.1).fit(X / 16, y % 2), "for kernel machines"),
    ],
)
def test_what_libsvm_cannot_have_is_said(make, said, tmp_path):
    X, y = load_digits(return_X_y=True)
    model = make(X[:100], y[:100])
    with pytest.raises(ValueError, match=said):
        model.export(tmp_path / "m.model")
    assert not list(tmp_path.iterdir())


def test_a_name_without_format_and_a_scaling_for_libsvm_are_errors(two, tmp_path):
    model = KernelSVC("c-svc").fit(*two)
    with pytest.raises(ValueError, match=r"end it with \.onnx or \.model"):
        model.export(tmp_path / "m")
    with pytest.raises(ValueError, match="'libsvm', 'onnx'"):
        model.export(tmp_path / "m", "pmml")
    with pytest.raises(ValueError, match="no place for a scaling"):
        model.export(tmp_path / "m.model", scaling=Scaling.fit("minmax", two[0]))


# -- ONNX ------------------------------------------------------------------------------------------------
MODELS = {
    "rbf": lambda X, y: KernelSVC(gamma=0.001).fit(X, y),
    "rbf, far from the origin": lambda X, y: KernelSVC(gamma=0.001).fit(X + 1e4, y),
    "rbf, bytes": lambda X, y: KernelSVC().fit(X.astype(np.uint8), y),
    "rbf, float32": lambda X, y: KernelSVC().fit(X.astype(np.float32), y),
    "rbf, sparse": lambda X, y: KernelSVC().fit(sparse.csr_array(X), y),
    "laplacian": lambda X, y: KernelSVC(kernel="laplacian").fit(X, y),
    "poly": lambda X, y: KernelSVC("weston-watkins", kernel="poly", coef0=1.0).fit(X, y),
    "poly, normalised": lambda X, y: KernelSVC(kernel=kernels.Polynomial(degree=2, normalize=True)).fit(X, y),
    "sigmoid": lambda X, y: KernelSVC(kernel="sigmoid", gamma=1e-4).fit(X, y),
    "linear kernel": lambda X, y: KernelSVC("one-vs-rest", kernel="linear", C=0.01).fit(X, y),
    "text": lambda X, y: KernelSVC().fit(X, np.array(list("abcdefghij"))[y]),
    "objects": lambda X, y: KernelSVC().fit(X, np.array(list("abcdefghij"), dtype=object)[y]),
    "floats": lambda X, y: KernelSVC().fit(X, 1.0 * y),
    "two classes": lambda X, y: KernelSVC().fit(X, y % 2),
    "two words": lambda X, y: KernelSVC("c-svc").fit(X, np.where(y % 2, "odd", "even")),
    "true or false": lambda X, y: KernelSVC("c-svc").fit(X, y > 4),
    "LinearSVC": lambda X, y: LinearSVC(C=0.01, tol=1e-2).fit(X, y),
    "LinearSVC, two words": lambda X, y: LinearSVC(C=0.01, tol=1e-2).fit(X, np.where(y % 2, "odd", "even")),
    "LinearSVC, sparse weights": lambda X, y: LinearSVC(C=0.01, tol=1e-2).fit(X, y).sparsify(),
    "search": lambda X, y: KernelSVCCV(Cs=[1], gammas=[1e-3], cv=2).fit(X, y),
    "linear search": lambda X, y: LinearSVCCV(Cs=[1], cv=2).fit(X, y),
    "search, two classes": lambda X, y: KernelSVCCV(Cs=[1], gammas=[1e-3], cv=2).fit(X, y % 2),
}


def by_runtime(path, X):
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    assert given.name == "X"
    X = X.astype(np.float32 if given.type == "tensor(float)" else np.float64)
    names = [out.name for out in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


def far_from_ties(scores):
    """Samples whose label does not hang on rounding: two wrong classes of a training sample may be equal."""
    if scores.ndim == 1:
        return np.abs(scores) > 1e-4
    second, first = np.sort(scores, axis=1)[:, -2:].T
    return first - second > 1e-4


@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_agrees(name, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    X, y = load_digits(return_X_y=True)
    X, y = X[:500], y[:500]
    model = MODELS[name](X[:300], y[:300])
    X = X + 1e4 if "far" in name else X
    model.export(tmp_path / "m.onnx")
    found = by_runtime(tmp_path / "m.onnx", X)
    scores = model.decision_function(X)
    np.testing.assert_allclose(found["scores"], scores, rtol=1e-5, atol=1e-5 * np.abs(scores).max())
    clear = far_from_ties(scores)
    assert clear.mean() > 0.98
    np.testing.assert_array_equal(found["label"][clear], model.predict(X)[clear])
    assert ("probabilities" in found) == hasattr(model, "predict_proba")
    if "probabilities" in found:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-5)


def test_onnxruntime_agrees_on_kernel_values(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    X, y = load_digits(return_X_y=True)
    K = np.exp(-0.001 * ((X[:300, None] - X[None, :200]) ** 2).sum(axis=2))
    model = KernelSVC(kernel="precomputed").fit(K[:200], y[:200])
    model.export(tmp_path / "m.onnx")
    np.testing.assert_allclose(
        by_runtime(tmp_path / "m.onnx", K)["scores"], model.decision_function(K), atol=1e-6
    )


@pytest.mark.parametrize("kind", ["minmax", "standard", "unit"])
def test_the_graph_repeats_the_scaling(kind, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    X, y = load_digits(return_X_y=True)
    scaling = Scaling.fit(kind, X[:300])
    model = KernelSVC().fit(scaling.apply(X[:300]), y[:300])
    model.export(tmp_path / "m.onnx", scaling=scaling)
    found = by_runtime(tmp_path / "m.onnx", X[300:600])
    np.testing.assert_allclose(found["scores"], model.decision_function(scaling.apply(X[300:600])), atol=1e-6)


def test_a_function_has_no_graph(two, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    X, y = two
    model = KernelSVC(kernel=lambda A, B: A @ B.T, bias="none").fit(X[:50], y[:50])
    with pytest.raises(ValueError, match="a Python function has no form in ONNX"):
        model.export(tmp_path / "m.onnx")


def test_without_onnx_the_extra_is_named(two, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"multimargin\[onnx\]"):
        KernelSVC().fit(*two).export(tmp_path / "m.onnx")
    assert onnx_model.__doc__
