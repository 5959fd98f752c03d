"""Which rows are whose, and what the ranks agree on before a fit: samples, labels, weights, parameters."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from thread_team import run_ranks

from multimargin import KernelSVC
from multimargin.engines.mpi.data import digest, own_rows
from multimargin.estimators.samples import training_data
from multimargin.kernels import RBF, CallableKernel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(11, 3))
Y = RNG.integers(3, size=11)
FORMS = {
    "array": lambda X: X,
    "column order": np.asfortranarray,
    "csr": sp.csr_array,
    "coo matrix": sp.coo_matrix,
    "list": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, index=range(100, 100 + len(X))),
    "polars": lambda X: pl.DataFrame(X),
}


def dense(part):
    return part.toarray() if sp.issparse(part) else np.asarray(part)


def raises_alike(P, match, function):
    """Every rank raises a ValueError, with the same words."""

    def work(team):
        with pytest.raises(ValueError, match=match) as caught:
            function(team)
        return str(caught.value)

    messages = run_ranks(P, work)
    assert len(set(messages)) == 1


class Recorded(np.ndarray):
    """An array that notes which rows were asked for, and that refuses to be converted as a whole."""

    def __getitem__(self, key):
        assert isinstance(key, slice)
        self.asked.append(key)
        return np.array(self.view(np.ndarray)[key])

    def __array_function__(self, function, types, args, kwargs):
        raise AssertionError(f"{function.__name__} reads all rows")


# -- the slice of a rank ------------------------------------------------------------------------------
@pytest.mark.parametrize("data", ["auto", "same"])
@pytest.mark.parametrize("form", FORMS)
def test_the_same_arrays_are_cut_into_slices(form, data):
    def part(team):
        return own_rows(team, data, FORMS[form](X), pd.Series(Y, index=range(50, 61)), Y.tolist())

    parts = run_ranks(4, part)
    assert [len(labels) for _, labels, _ in parts] == [2, 3, 3, 3]
    np.testing.assert_array_equal(np.concatenate([dense(rows) for rows, _, _ in parts]), X)
    np.testing.assert_array_equal(np.concatenate([labels for _, labels, _ in parts]), Y)
    np.testing.assert_array_equal(np.concatenate([weights for _, _, weights in parts]), Y)


@pytest.mark.parametrize("form", FORMS)
def test_different_arrays_are_shards(form):
    bounds = [0, 2, 2, 7, 11]  # the second rank has none

    def part(team):
        mine = slice(bounds[team.rank], bounds[team.rank + 1])
        return own_rows(team, "auto", FORMS[form](X[mine]), Y[mine], None)

    for rank, (rows, labels, weights) in enumerate(run_ranks(4, part)):
        mine = slice(bounds[rank], bounds[rank + 1])
        np.testing.assert_array_equal(dense(rows).reshape(-1, 3), X[mine])
        np.testing.assert_array_equal(labels, Y[mine])
        assert weights is None


def test_shards_of_equal_length_are_told_from_the_same_array():
    parts = run_ranks(2, lambda team: own_rows(team, "auto", X[team.rank : 9 + team.rank], Y[:9], None))
    assert [len(rows) for rows, _, _ in parts] == [9, 9]


def test_equal_arrays_are_taken_as_shards_if_asked():
    parts = run_ranks(2, lambda team: own_rows(team, "shards", X, Y, None))
    assert [len(rows) for rows, _, _ in parts] == [11, 11]


def test_a_rank_reads_only_its_slice():
    def part(team):
        rows = X.view(Recorded)
        rows.asked = []
        mine, _, _ = own_rows(team, "same", rows, Y, None)
        return rows.asked, mine

    for rank, (asked, mine) in enumerate(run_ranks(3, part)):
        assert asked == [slice(rank * 11 // 3, (rank + 1) * 11 // 3)]
        np.testing.assert_array_equal(mine, X[asked[0]])


@pytest.mark.parametrize("view", [lambda X: X, lambda X: X[2:9], np.asarray], ids=["whole", "part", "array"])
def test_memory_maps_of_one_file_are_the_same_and_are_not_read(tmp_path, monkeypatch, view):
    np.save(tmp_path / "X.npy", X)

    def part(team):
        mapped = view(np.load(tmp_path / "X.npy", mmap_mode="r"))
        return own_rows(team, "auto", mapped, Y[: len(mapped)], None)[0]

    read = []
    monkeypatch.setattr("multimargin._core.checksum", lambda part: read.append(len(part)) or 0)
    parts = run_ranks(2, part)
    assert max(read) < X.nbytes / 2  # labels only
    assert not any(rows.flags.owndata for rows in parts)
    np.testing.assert_array_equal(np.concatenate(parts), view(X))


def test_memory_maps_of_two_files_or_places_are_shards(tmp_path):
    for rank in range(2):
        np.save(tmp_path / f"X{rank}.npy", X)
    files = run_ranks(
        2, lambda team: len(own_rows(team, "auto", np.load(tmp_path / f"X{team.rank}.npy", "r"), Y, None)[1])
    )
    mapped = np.load(tmp_path / "X0.npy", "r")
    places = run_ranks(
        2, lambda team: len(own_rows(team, "auto", mapped[team.rank : team.rank + 9], Y[:9], None)[1])
    )
    assert files == [11, 11]
    assert places == [9, 9]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (lambda rank: (X[: 5 + rank], Y[: 5 + rank], None), "X has 5 rows on rank 0 and 6 on rank 1"),
        (lambda rank: (X, Y[: 11 - rank], None), r"X has 11 rows, but y has 10 \(on rank 1\)"),
        (lambda rank: (X, Y, Y[: 11 - rank]), r"but sample_weight has 10 \(on rank 1\)"),
        (lambda rank: (X, Y[:0], None), r"but y has 0 \(on rank 0\)"),
    ],
)
def test_same_data_that_differ_are_refused_on_all_ranks(given, match):
    raises_alike(2, match, lambda team: own_rows(team, "same", *given(team.rank)))


def test_the_same_samples_with_different_labels_are_refused():
    raises_alike(
        2,
        "y or sample_weight differ between rank 0 and rank 1",
        lambda team: own_rows(team, "auto", X, Y + team.rank, None),
    )


# -- digests ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", FORMS)
def test_a_digest_sees_every_entry(form):
    other = X.copy()
    other[7, 1] = np.nextafter(other[7, 1], 9)
    assert digest(FORMS[form](X)) == digest(FORMS[form](X.copy()))
    assert digest(FORMS[form](X)) != digest(FORMS[form](other))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.arange(6), np.arange(6).reshape(2, 3)),
        (np.arange(6, dtype=np.int32), np.arange(6, dtype=np.float32)),
        (["a", "b"], ["a", "c"]),
        ([[1, 2], [3]], [[1], [2, 3]]),
        (np.array([None, "x"], dtype=object), np.array([None, "y"], dtype=object)),
        (None, 0),
        (2.0, 3.0),
        (pd.DataFrame({"a": [1], "b": [2]}), pd.DataFrame({"b": [1], "a": [2]})),
        (np.zeros(300_000), np.r_[np.zeros(299_999), 1.0]),
        (np.zeros((300, 2000))[::2], np.r_[np.zeros((149, 2000)), np.ones((1, 2000))]),
    ],
)
def test_different_data_have_different_digests(a, b):
    assert digest(a) != digest(b)
    assert digest(a) == digest(a)


# -- what the ranks agree on --------------------------------------------------------------------------
def checked(team, rows, labels, kernel=None):
    model = KernelSVC()
    made = training_data(model, kernel or RBF(), rows, labels, team)
    return *made, model


@pytest.mark.parametrize(
    "empty", [np.empty((0, 3)), np.empty((0, 0)), [], sp.csr_array((0, 7)), pd.DataFrame()]
)
@pytest.mark.parametrize("form", FORMS)
def test_a_rank_without_rows_takes_the_form_of_the_others(form, empty):
    def work(team):
        return checked(team, *((empty, []) if team.rank == 1 else (FORMS[form](X.astype(np.float32)), Y)))

    results = run_ranks(3, work)
    rows, labels, model = results[1]
    assert rows.shape == (0, 3) and labels.shape == (0,)
    assert rows.dtype == results[0][0].dtype and labels.dtype == results[0][1].dtype
    assert sp.issparse(rows) == sp.issparse(results[0][0])
    assert model.n_features_in_ == 3
    assert hasattr(model, "feature_names_in_") == hasattr(results[0][2], "feature_names_in_")


def test_a_rank_without_rows_takes_the_names_of_the_features():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    names = run_ranks(
        2, lambda team: checked(team, *((frame, Y), (X[:0], Y[:0]))[team.rank])[2].feature_names_in_
    )
    assert [list(of_rank) for of_rank in names] == [["a", "b", "c"]] * 2


def test_samples_that_only_a_callable_reads_may_be_missing_too():
    words = np.array(["a", "bcd", "e"])
    kernel = CallableKernel(lambda A, B: np.ones((len(A), len(B))))
    parts = run_ranks(2, lambda team: checked(team, *((words, [0, 1, 0]), ([], []))[team.rank], kernel)[0])
    assert parts[1].shape == (0,) and parts[1].dtype == words.dtype


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ([(X, Y), (X[:, :2], Y)], "All ranks must have the same features"),
        ([(X, Y), (X, None)], r"y.* \(on rank 1\)"),
        ([(X[:0], Y[:0]), (X[:0], Y[:0])], "X is empty on all ranks"),
        ([(X, Y), (np.where(X > 1, np.nan, X), Y)], r"NaN.* \(on rank 1\)"),
        ([(X, Y), (X, Y[:4])], r"inconsistent numbers of samples.* \(on rank 1\)"),
        ([(X, Y), (X[:0], Y)], r"0 sample.* \(on rank 1\)"),
        ([(X, Y), (X, np.full(11, "a"))], "text on rank 1, and numbers on rank 0"),
        ([(pd.DataFrame(X, columns=list("abc")), Y), (pd.DataFrame(X, columns=list("acb")), Y)], "on rank 1"),
        ([(pd.DataFrame(X, columns=list("abc")), Y), (X, Y)], "and None on rank 1"),
        ([(X, Y), (sp.csr_array(X), Y)], "dense on rank 0 and sparse on rank 1"),
    ],
)
def test_data_that_do_not_fit_together_are_refused_on_all_ranks(given, match):
    raises_alike(2, match, lambda team: checked(team, *given[team.rank]))


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([[2, 1], [], [7, 1]], [1, 2, 7]),
        ([["a", "b"], ["long name"], []], ["a", "b", "long name"]),
        ([[1.0, 2.0], [3.0], [2.0]], [1.0, 2.0, 3.0]),
        ([[True], [False], []], [False, True]),
        ([np.array(["x"], dtype=object), ["why"], []], ["why", "x"]),
        ([np.array([1], np.int8), np.array([300], np.int32), []], [1, 300]),
    ],
)
def test_classes_are_those_of_all_ranks(labels, classes):
    def work(team):
        given = np.asarray(labels[team.rank])
        _, y, model = checked(team, np.ones((len(given), 2)), given)
        return model._rows(y, None, team)

    for rank, rows in enumerate(run_ranks(3, work)):
        assert rows.labels.tolist() == classes
        assert rows.labels[rows.y].tolist() == list(labels[rank])
        assert not rows.weighted


def test_weights_may_be_zero_on_one_rank_and_missing_on_one_without_rows():
    weights = [np.zeros(2), np.array([1.0, 0.0]), None]
    labels = [np.array([5, 6]), np.array([6, 5]), np.empty(0, int)]
    more = [np.array([5]), np.array([1.0])]

    def work(team):
        y, w = labels[team.rank], weights[team.rank]
        if team.rank == 1:
            y, w = np.append(y, more[0]), np.append(w, more[1])
        return KernelSVC()._rows(y, w, team)

    rows = run_ranks(3, work)
    assert [len(of_rank.kept) for of_rank in rows] == [0, 2, 0]
    assert all(of_rank.weighted and of_rank.labels.tolist() == [5, 6] for of_rank in rows)


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        ([None, np.ones(11)], "sample_weight was given on rank 1, but not on rank 0"),
        ([np.zeros(11), np.zeros(11)], "All sample weights are zero"),
        ([np.ones(11), -np.ones(11)], r"negative values.* \(on rank 1\)"),
        ([np.ones(11), np.ones(3)], r"must have shape \(11,\).* \(on rank 1\)"),
    ],
)
def test_wrong_weights_are_refused_on_all_ranks(weights, match):
    raises_alike(2, match, lambda team: KernelSVC()._rows(Y, weights[team.rank], team))


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        ([np.ones(3, int), np.ones(2, int)], "At least 2 classes are needed"),
        ([np.array([1.0, 2.0]), np.array([0.5, 0.7])], r"Unknown label type.* \(on rank 1\)"),
    ],
)
def test_wrong_labels_are_refused_on_all_ranks(labels, match):
    raises_alike(2, match, lambda team: KernelSVC()._rows(labels[team.rank], None, team))


def test_different_parameters_are_refused_on_all_ranks():
    raises_alike(
        2,
        "C is 1.0 on rank 0 and 2.0 on rank 1",
        lambda team: KernelSVC(C=1.0 + team.rank, verbose=team.rank)._check_same_parameters(team),
    )


@pytest.mark.parametrize("first", [1.0, 0.83, 0.0])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_rank_0_may_have_a_smaller_slice(first, size):
    """Every row is some rank's; the other ranks have equal slices, to one row."""
    rows = np.arange(101)[:, None]
    parts = run_ranks(size, lambda team: own_rows(team, "same", rows, None, None, first)[0])
    np.testing.assert_array_equal(np.concatenate(parts), rows)
    if size > 1:
        assert abs(len(parts[0]) - first * 101 / size) <= 1
        others = [len(part) for part in parts[1:]]
        assert max(others) - min(others) <= 1
