"""Data that are on the GPU already: used where they are, with predictions of the same kind beside them."""

import importlib

import numpy as np
import pytest
from gpu import HostArray, why_no_gpu
from oracle import kernel_matrix

from multimargin import KernelSVC, KernelSVCCV, LinearSVC, regularization_path
from multimargin.engines.cuda import resident as module
from multimargin.engines.cuda.resident import Resident
from multimargin.kernels import RBF, Linear, Polynomial, Precomputed
from multimargin.system.arithmetic import check_symmetric
from multimargin.system.device_data import lives_on_device
from multimargin.system.spread import inverse_variance
from multimargin.system.team import SOLO

NO_GPU = why_no_gpu()
on_gpu = pytest.mark.skipif(NO_GPU is not None, reason=str(NO_GPU))
CUDA, HOST = 2, 1


def problem(n=300, m=4, d=6, seed=0):
    """Overlapping classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, m, n)
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(m, d))[y], y


# -- without a GPU --------------------------------------------------------------------------------------
class Elsewhere:
    """What says that it is on a device; nothing can be read of it."""

    shape = (20, 3)

    def __init__(self, device):
        self.device = device

    def __dlpack_device__(self):
        return self.device, 0


class AsCupy:
    """NumPy in the place of CuPy."""

    def __getattr__(self, name):
        return getattr(np, name)

    @staticmethod
    def asarray(values):
        return np.asarray(values).view(HostArray)

    ascontiguousarray = asarray

    @staticmethod
    def ones(shape):
        return np.ones(shape).view(HostArray)


def test_where_arrays_are():
    assert lives_on_device(Elsewhere(CUDA))
    for here in (Elsewhere(HOST), np.zeros(3), [1.0], None, "text"):
        assert not lives_on_device(here)


@pytest.mark.parametrize(
    "model",
    [KernelSVC(engine="cpu"), KernelSVC(engine="numpy"), KernelSVCCV(engine="cpu")],
    ids=lambda model: f"{type(model).__name__} {model.engine}",
)
def test_others_say_that_they_read_the_host(model):
    with pytest.raises(TypeError, match=r"X is on a GPU.*copy on the host"):
        model.fit(Elsewhere(CUDA), np.arange(20) % 2)


def test_paths_say_so_too():
    with pytest.raises(TypeError, match="X is on a GPU"):
        regularization_path(Elsewhere(CUDA), np.arange(20) % 2)


@pytest.mark.skipif(NO_GPU is None, reason="there is a GPU")
def test_auto_goes_where_the_data_are():
    with pytest.raises((ImportError, RuntimeError), match="engine='cuda'"):
        KernelSVC().fit(Elsewhere(CUDA), np.arange(20) % 2)


@pytest.fixture
def table(monkeypatch):
    """Makes samples of the host look like those of a device."""
    monkeypatch.setattr(module, "cupy", AsCupy)
    monkeypatch.setattr(module, "_VALUES_AT_ONCE", 100)
    monkeypatch.setattr(module, "_TILE", 7)
    return lambda X: Resident(X.view(HostArray), X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.int16])
def test_facts_of_samples(table, dtype):
    rng = np.random.default_rng(1)
    X = (30 * rng.random((50, 7)) + 5).astype(dtype)
    weight = rng.random(50)
    there = table(X)
    for given in (None, weight):
        assert inverse_variance(there, given, SOLO) == pytest.approx(
            inverse_variance(X, given, SOLO), rel=1e-9
        )
    for kernel in (Linear(), RBF(gamma=0.1), Polynomial(gamma=0.1, coef0=1.0, normalize=True)):
        np.testing.assert_allclose(kernel.diagonal(there), kernel.diagonal(X), rtol=1e-12)
    centre = X.mean(axis=0, dtype=np.float64)
    assert there.farthest(centre, squared=True) == pytest.approx(((X - centre) ** 2).sum(axis=1).max())
    assert there.farthest(centre, squared=False) == pytest.approx(np.abs(X - centre).sum(axis=1).max())


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_gamma_of_constant_data(table, value):
    X = np.full((20, 3), value)
    assert inverse_variance(table(X), None, SOLO) == inverse_variance(X, None, SOLO) == 1.0


def test_facts_of_a_matrix_of_kernel_values(table):
    K = kernel_matrix("rbf", problem(30)[0], gamma=0.1)
    there, kernel, rows = table(K), Precomputed(), np.array([3, 1, 20])
    check_symmetric(there, "K")
    np.testing.assert_array_equal(kernel.diagonal(there), np.diag(K))
    np.testing.assert_array_equal(kernel.block(there, rows), K[rows])
    np.testing.assert_array_equal(kernel.block(there, rows, rows), K[np.ix_(rows, rows)])
    K[2, 25] += 0.5
    with pytest.raises(ValueError, match=r"not symmetric.*differ by up to 0\.5"):
        check_symmetric(there, "K")


# -- on a GPU -------------------------------------------------------------------------------------------
def cupy_array(values):
    return importlib.import_module("cupy").asarray(values)


def torch_tensor(values):
    torch = pytest.importorskip("torch")
    return torch.from_numpy(np.ascontiguousarray(values)).cuda()


def jax_array(values):
    jax = pytest.importorskip("jax")
    array = jax.numpy.asarray(values)
    if not lives_on_device(array):
        pytest.skip("JAX has no GPU")
    return array


KINDS = {"cupy": cupy_array, "torch": torch_tensor, "jax": jax_array}
FORMS = {
    "float32": lambda X: X.astype(np.float32),
    "float64": lambda X: X,
    "bytes": lambda X: np.round(20 * (X - X.min())).clip(0, 255).astype(np.uint8),
    "int16": lambda X: np.round(500 * X).astype(np.int16),
    "tenths": lambda X: np.round(X, 1).astype(np.float32),
    "transposed": lambda X: np.asfortranarray(X),
}


def as_numpy(values):
    """A copy on the host of any kind's array."""
    return module.copied(values) if lives_on_device(values) else np.asarray(values)


@on_gpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_same_model_and_predictions_of_the_same_kind(kind, form, monkeypatch):
    X, y = problem()
    X = FORMS[form](X)
    there, labels = KINDS[kind](X), KINDS[kind](y)
    if str(there.dtype).rpartition(".")[2] != str(X.dtype):
        pytest.skip(f"{kind} does not keep {X.dtype}")
    expected = KernelSVC(engine="cuda").fit(X, y)
    on_host, rows_copied = Resident.on_host, []

    def counted(self):
        rows_copied.append(self.shape[0])
        return on_host(self)

    monkeypatch.setattr(Resident, "on_host", counted)
    model = KernelSVC().fit(there, labels)
    assert model.trace_.info["engine"] == "cuda"
    assert sum(rows_copied) == len(model.support_) < len(y)  # the support vectors alone
    np.testing.assert_allclose(model.dual_coef_, expected.dual_coef_, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.support_vectors_, expected.support_vectors_)
    rows_copied.clear()
    scores, predicted = model.decision_function(there), model.predict(there)
    assert type(scores) is type(predicted) is type(there)
    assert not rows_copied
    rtol = 1e-5 if "32" in str(scores.dtype) else 1e-12  # JAX has float32 only, unless told otherwise
    np.testing.assert_allclose(as_numpy(scores), expected.decision_function(X), rtol=rtol, atol=rtol)
    np.testing.assert_array_equal(as_numpy(predicted), expected.predict(X))
    assert model.score(there, labels) == expected.score(X, y)
    assert isinstance(model.predict(X), np.ndarray)


@on_gpu
def test_a_model_of_the_host_scores_where_the_data_are():
    X, y = problem()
    model = KernelSVC(engine="cpu").fit(X, y)
    scores = model.decision_function(cupy_array(X))
    np.testing.assert_allclose(scores.get(), model.decision_function(X), rtol=1e-9, atol=1e-9)


@on_gpu
def test_labels_that_are_text_and_weights_on_the_device():
    X, y = problem()
    names, weight = np.array(["ant", "bee", "cat", "dog"])[y], np.arange(len(y)) % 3
    model = KernelSVC().fit(cupy_array(X), names, cupy_array(weight))
    expected = KernelSVC(engine="cuda").fit(X, names, weight)
    np.testing.assert_allclose(model.dual_coef_, expected.dual_coef_, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.predict(cupy_array(X)), expected.predict(X))


@on_gpu
@pytest.mark.parametrize("machine", ["crammer-singer", "c-svc"])
def test_two_classes(machine):
    X, y = problem(m=2)
    model = KernelSVC(machine).fit(cupy_array(X), y)
    scores = model.decision_function(cupy_array(X))
    assert scores.shape == (len(y),)
    np.testing.assert_array_equal(model.predict(cupy_array(X)).get(), (scores.get() > 0).astype(int))


@on_gpu
@pytest.mark.parametrize("kind", ["cupy", "torch"])
def test_a_matrix_of_kernel_values(kind):
    X, y = problem()
    K = kernel_matrix("rbf", X, gamma=0.1)
    model = KernelSVC(kernel="precomputed", bias="none").fit(KINDS[kind](K), y)
    expected = KernelSVC(gamma=0.1, engine="cpu").fit(X, y)
    assert model.trace_.info["kernel_form"] == "matrix"
    assert model.dual_objective_ == pytest.approx(expected.dual_objective_, rel=1e-4)
    weight = np.arange(len(y)) % 2
    half = KernelSVC(kernel="precomputed", bias="none").fit(KINDS[kind](K), y, weight)
    kept = weight == 1
    same = KernelSVC(gamma=0.1, engine="cpu").fit(X[kept], y[kept])
    assert half.dual_objective_ == pytest.approx(same.dual_objective_, rel=1e-4)
    np.testing.assert_allclose(
        as_numpy(half.decision_function(KINDS[kind](K))), same.decision_function(X), atol=0.02
    )


@on_gpu
@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid", "laplacian"])
def test_other_kernels(kernel):
    X, y = problem()
    parameters = {"kernel": kernel, "gamma": 0.02, "coef0": 0.1}
    there = KernelSVC(**parameters).fit(cupy_array(X), y)
    here = KernelSVC(**parameters, engine="cuda").fit(X, y)
    assert there.dual_objective_ == pytest.approx(here.dual_objective_, rel=1e-9)
    np.testing.assert_allclose(
        there.decision_function(cupy_array(X)).get(), here.decision_function(X), rtol=1e-6, atol=1e-6
    )


@on_gpu
def test_a_checkpoint_of_the_host_is_of_the_same_data(tmp_path):
    X, y = problem()
    path = tmp_path / "fit"
    KernelSVC(engine="cpu", checkpoint=path).fit(X, y)
    model = KernelSVC(checkpoint=path).fit(cupy_array(X), y)
    assert model.trace_.info["checkpoint"]["resumed"]["iterations"] > 0


@on_gpu
def test_bad_data_are_refused():
    X, y = problem(40)
    bad = X.copy()
    bad[3, 2] = np.nan
    model = KernelSVC().fit(cupy_array(X), y)
    with pytest.raises(ValueError, match="NaN or infinity"):
        KernelSVC().fit(cupy_array(bad), y)
    with pytest.raises(ValueError, match="2-dimensional"):
        KernelSVC().fit(cupy_array(X[:, 0]), y)
    with pytest.raises(ValueError, match="real numbers"):
        KernelSVC().fit(cupy_array(X + 1j), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelSVC().fit(cupy_array(X), y[:-1])
    with pytest.raises(ValueError, match=r"X has 5 features.*6 features"):
        model.predict(cupy_array(X[:, :5]))
    with pytest.raises(TypeError, match="kernel function"):
        KernelSVC(kernel=lambda A, B: A @ B.T).fit(cupy_array(X), y)
    with pytest.raises(TypeError):
        LinearSVC().fit(cupy_array(X), y)


@on_gpu
def test_sparse_new_data_for_a_dense_model():
    from scipy import sparse

    X, y = problem()
    X = FORMS["bytes"](X)
    model = KernelSVC(gamma=1e-3, engine="cuda").fit(X, y)
    np.testing.assert_allclose(model.decision_function(sparse.csr_array(X)), model.decision_function(X))


@on_gpu
@pytest.mark.parametrize("kind", KINDS)
def test_a_search_of_data_on_the_device(kind):
    X, y = problem()
    X = X.astype(np.float32)
    there, labels = KINDS[kind](X), KINDS[kind](y)
    grid = {"Cs": [0.5, 5.0], "gammas": [0.05, 0.2], "drop": None}
    here = KernelSVCCV(**grid, engine="cuda").fit(X, y)
    search = KernelSVCCV(**grid).fit(there, labels)
    assert search.best_params_ == here.best_params_
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"])
    probabilities, predicted = search.predict_proba(there), search.predict(there)
    assert type(probabilities) is type(predicted) is type(there)
    np.testing.assert_allclose(as_numpy(probabilities), here.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(as_numpy(predicted), here.predict(X))
    assert search.score(there, labels) == here.score(X, y)
