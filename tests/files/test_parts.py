"""Parts of files: together they are the whole, and processes agree on what one part does not tell."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from thread_team import run_ranks

from multimargin.datasets import MalformedFileError, load, save

TEXT = {
    ".svm": b"3 1:2\n# c\n\n1 2:5 4:0.5\n" + b"2 3:1\n" * 9 + b"1 1:7",
    ".csv": b"a,y,b\n" + b"".join(b"%d,%d,%d\n" % (k, k % 3, k * k) for k in range(17)),
    ".arff": b"@relation r\n@attribute a real\n@attribute y {0,1,2}\n@data\n"
    + b"".join(b"%d,%d\n" % (k, k % 3) for k in range(11)),
    ".msvmpack": b"5\n2\n1 2 1\n3 4 2\n5 6 1\n7 8 2\n9 10 1\n",
}


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


@pytest.fixture(params=[*TEXT, ".svm.gz", "sparse.arff", ".npz"])
def path(tmp_path, request):
    path = tmp_path / f"data{request.param}"
    if request.param in TEXT:
        path.write_bytes(TEXT[request.param])
    else:
        rng = np.random.default_rng(0)
        X = sp.random_array((23, 12), density=0.2, format="csr", rng=rng)
        save(path, X, rng.integers(0, 3, 23))
    return path


@pytest.mark.parametrize("size", [1, 2, 3, 7, 40])
def test_parts_together_are_the_whole(path, size):
    whole = load(path)
    d = whole.X.shape[1]
    options = {"n_features": d, "dtype": "float64", "zero_based": False}
    parts = []
    for rank in range(size):
        try:
            parts.append(load(path, rank=rank, size=size, **options))
        except MalformedFileError as error:
            assert "no rows" in str(error) or "no features" in str(error)
    np.testing.assert_array_equal(np.concatenate([dense(part.X) for part in parts]), dense(whole.X))
    np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), whole.y)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_processes_agree(path, size):
    """Also those whose part is empty."""
    whole = load(path)
    parts = run_ranks(size, lambda team: load(path, comm=team))
    assert {part.X.shape[1] for part in parts} == {whole.X.shape[1]}
    assert {part.X.dtype for part in parts} == {whole.X.dtype}
    assert {sp.issparse(part.X) for part in parts} == {sp.issparse(whole.X)}
    assert {part.y.dtype for part in parts} == {whole.y.dtype}
    np.testing.assert_array_equal(np.concatenate([dense(part.X) for part in parts]), dense(whole.X))
    np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), whole.y)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1 1:1\n", "2 900:1\n"),  # width
        ("1 1:1\n", "2 1:1000\n"),  # type
        ("1 1:1\n", "a 1:1\n"),  # labels
        ("1 1:1\n", "1.5 0:1\n"),  # base
        ("1 1:1 2:1 3:1\n", "1 99:0.5\n"),  # sparse
    ],
)
def test_one_part_tells_the_others(tmp_path, first, second):
    path = tmp_path / "a.svm"
    path.write_text(first * 50 + second * 50)
    whole = load(path)
    parts = run_ranks(2, lambda team: load(path, comm=team))
    for part in parts:
        assert (
            type(part.X) is type(whole.X) and part.X.dtype == whole.X.dtype and part.y.dtype == whole.y.dtype
        )
    np.testing.assert_array_equal(np.concatenate([dense(part.X) for part in parts]), dense(whole.X))


def test_a_fault_of_one_part_is_told_to_all_with_its_line(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n" * 100 + "1 1:x\n" + "1 1:1\n" * 9)

    def work(team):
        with pytest.raises(MalformedFileError, match=r"line 101, column 5: .*\(on rank 2\)"):
            load(path, comm=team)
        return True

    assert all(run_ranks(3, work))
    with pytest.raises(MalformedFileError) as caught:
        load(path, rank=2, size=3)
    assert (caught.value.line, caught.value.column) == (101, 5)


def test_a_file_that_one_process_cannot_see(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n2 1:2\n")

    def work(team):
        with pytest.raises(FileNotFoundError, match=r"nowhere.*\(on rank 1\)"):
            load(tmp_path / "nowhere.svm" if team.rank == 1 else path, comm=team)
        return True

    assert all(run_ranks(2, work))


def test_wrong_ranks(tmp_path):
    with pytest.raises(ValueError, match="rank must be in"):
        load(io.BytesIO(b"1 1:1"), rank=2, size=2)
    with pytest.raises(ValueError, match="not both"):
        run_ranks(2, lambda team: load(io.BytesIO(b"1 1:1"), rank=1, size=2, comm=team))
    with pytest.raises(TypeError, match="communicator"):
        load(io.BytesIO(b"1 1:1"), comm=3)
    with pytest.raises(ValueError, match="cannot share standard input"):
        load("-", rank=0, size=2)
