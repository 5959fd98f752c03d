"""Kernels of samples that several processes hold: parameters and diagonals are those of all samples."""

import numpy as np
import pytest
from scipy import sparse
from shards import on_ranks, splits_of
from thread_team import run_ranks

from multimargin import kernels
from multimargin.system.data import features_per_sample, same_form

N = 240
splits = splits_of(N)


def data_of(name):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 6)) * np.linspace(0.1, 5, 6)
    return {
        "float64": X,
        "float32": X.astype(np.float32),
        "offset": X + 1e7,
        "pixels": rng.integers(0, 256, (N, 6)).astype(np.uint8),
        "sparse": sparse.random_array((N, 6), density=0.3, format="csr", rng=rng),
        "ascending": np.sort(X, axis=0),
        "huge": X * 1e150,
        "tiny": X * 1e-150,
        "constant": np.full((N, 6), 0.7),  # its mean rounds
        "constant but for one": np.where(np.arange(6 * N).reshape(N, 6) == 6, 0.8, 0.7),
        "sparse constant": sparse.csr_array(np.full((N, 6), -0.3)),
    }[name]


DATA = [
    "float64",
    "float32",
    "offset",
    "pixels",
    "sparse",
    "ascending",
    "huge",
    "tiny",
    "constant",
    "constant but for one",
    "sparse constant",
]


@splits
@pytest.mark.parametrize("name", DATA)
def test_gamma_scale_is_that_of_all_samples(name, bounds):
    X = data_of(name)
    alone = kernels.RBF("scale").resolve(X).gamma
    found = on_ranks(bounds, X, lambda rows, team: kernels.RBF("scale").resolve(rows, None, team).gamma)
    assert len(set(found)) == 1
    assert found[0] == pytest.approx(alone, rel=1e-12)
    assert (found[0] == 1.0) == name.endswith("constant")


def test_gamma_is_that_of_all_samples_if_ranks_have_different_types():
    X = data_of("pixels")
    parts = [X[:100], X[100:150].astype(np.float32) / 2, X[150:] / 3]
    alone = kernels.RBF("scale").resolve(np.concatenate(parts)).gamma
    for agreed in False, True:

        def resolved(team, agreed=agreed):
            rows = same_form(parts[team.rank], team) if agreed else parts[team.rank]
            return kernels.RBF("scale").resolve(rows, None, team).gamma

        found = run_ranks(3, resolved)
        assert len(set(found)) == 1
        assert found[0] == pytest.approx(alone, rel=1e-12)


def test_gamma_auto_counts_the_features_of_a_rank_without_samples():
    parts = [np.ones((5, 4)), np.empty((0, 0))]

    def resolved(team):
        return kernels.Polynomial("auto").resolve(same_form(parts[team.rank], team), None, team).gamma

    assert run_ranks(2, resolved) == [0.25, 0.25]


@splits
def test_gamma_scale_counts_weights_of_all_samples(bounds):
    X = data_of("float64")
    X = np.column_stack([X, np.arange(N) % 3])  # the last column is the weight
    alone = kernels.Laplacian("scale").resolve(X[:, :-1], X[:, -1]).gamma
    found = on_ranks(
        bounds,
        X,
        lambda rows, team: kernels.Laplacian("scale").resolve(rows[:, :-1], rows[:, -1], team).gamma,
    )
    assert len(set(found)) == 1
    assert found[0] == pytest.approx(alone, rel=1e-12)


def test_gamma_that_overflows_is_refused_on_all_ranks():
    X = data_of("float64")
    X[-1] = 1e200  # on the last rank only

    def resolve(rows, team):
        with pytest.raises(ValueError, match="Scale the features"):
            kernels.RBF("scale").resolve(rows, None, team)

    on_ranks([0, 100, 150, N], X, resolve)


@splits
@pytest.mark.parametrize("form", ["dense", "transposed", "sparse", "float32"])
def test_each_rank_has_its_part_of_a_precomputed_matrix(form, bounds):
    A = data_of("float64")
    K = A @ A.T
    given = {"dense": K, "transposed": K.T, "sparse": sparse.csr_array(K), "float32": np.float32(K)}[form]
    kernel, ids = kernels.Precomputed(), np.array([200, 3, 110])

    def parts(rows, team):
        first = bounds[team.rank]
        return kernel.resolve(rows, None, team).own_diagonal(rows, first), kernel.against(rows, ids)

    found = on_ranks(bounds, given, parts)
    expected = sparse.csr_array(given).toarray().astype(np.float64)
    np.testing.assert_array_equal(np.concatenate([part[0] for part in found]), expected.diagonal())
    np.testing.assert_array_equal(np.concatenate([part[1] for part in found]), expected[:, ids])


@splits
@pytest.mark.parametrize(
    "kernel", [kernels.Linear(), kernels.RBF(0.1), kernels.Polynomial(0.1, normalize=True)]
)
def test_diagonals_of_the_ranks_make_up_the_diagonal(kernel, bounds):
    X = data_of("float64")
    parts = on_ranks(bounds, X, lambda rows, team: kernel.own_diagonal(rows, bounds[team.rank]))
    np.testing.assert_allclose(np.concatenate(parts), kernel.between(X, X).diagonal(), rtol=1e-12)


@pytest.mark.parametrize("wrong", ["one value", "all values"])
def test_an_asymmetric_matrix_is_refused_on_all_ranks(wrong):
    A = data_of("float64")
    K = A @ A.T
    if wrong == "one value":
        K[3, 200] += 0.01 * K.max()
    else:
        K += 1e-4 * K.max() * np.random.default_rng(0).normal(size=K.shape)

    def resolve(rows, team):
        with pytest.raises(ValueError, match="not symmetric"):
            kernels.Precomputed().resolve(rows, None, team)

    on_ranks([0, 100, 100, N], K, resolve)


def test_rounding_of_a_float32_matrix_is_no_asymmetry():
    A = data_of("float64")
    K = np.float32(A @ A.T) * (1 + np.float32(2e-7) * np.random.default_rng(0).normal(size=(N, N)))
    on_ranks([0, 100, N], np.float32(K), lambda rows, team: kernels.Precomputed().resolve(rows, None, team))


def test_a_matrix_without_the_other_ranks_columns_is_refused():
    K = np.eye(N)[:, :100]
    with pytest.raises(ValueError, match="a column for each of the 240 samples"):
        on_ranks([0, 100, N], K, lambda rows, team: kernels.Precomputed().resolve(rows, None, team))


# -- one form for all ranks --------------------------------------------------------------------------


def forms(*shards):
    return run_ranks(len(shards), lambda team: same_form(shards[team.rank], team))


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["uint8", "float64"], "float64"),
        (["float32", "float64", "float32"], "float64"),
        (["uint8", "int8"], "int16"),
        (["int16", "float32"], "float32"),
        (["uint8", "uint8"], "uint8"),
    ],
)
@pytest.mark.parametrize("make", [np.ones, lambda shape, dtype: sparse.csr_array(np.ones(shape, dtype))])
def test_ranks_agree_on_a_type_that_holds_all_values(make, types, expected):
    found = forms(*(make((3, 2), dtype) for dtype in types))
    assert [X.dtype for X in found] == [np.dtype(expected)] * len(types)


def test_a_rank_without_samples_takes_the_form_of_the_others():
    dense = forms(np.empty((0, 0)), np.ones((3, 2), np.uint8))
    assert (dense[0].shape, dense[0].dtype) == ((0, 2), np.uint8)
    assert dense[1].dtype == np.uint8
    thin = forms(sparse.csr_array(np.eye(3, dtype=np.float32)), np.empty((0, 3)))
    assert sparse.issparse(thin[1])
    assert (thin[1].shape, thin[1].dtype) == ((0, 3), np.float32)


def test_dense_and_sparse_ranks_do_not_mix():
    with pytest.raises(ValueError, match="dense on rank 1 and sparse on rank 2, 3"):
        forms(np.empty((0, 3)), np.eye(3), *[sparse.csr_array(np.eye(3))] * 2)


def test_all_ranks_need_the_same_features():
    with pytest.raises(ValueError, match=r"shape \(3,\) on rank 0, and shape \(4,\) on rank 2"):
        forms(np.eye(3), np.eye(3), np.eye(4))


@splits
def test_features_per_sample_are_those_of_all_ranks(bounds):
    X = sparse.vstack([sparse.csr_array((200, 9)), sparse.csr_array(np.ones((40, 9)))], format="csr")
    found = on_ranks(bounds, X, features_per_sample)
    assert found == [360 / 240] * len(found)
