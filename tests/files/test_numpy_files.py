"""NumPy's files: types stay, files are mapped, nothing is executed, sizes are checked beforehand."""

import io
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from multimargin.datasets import MalformedFileError, load, save


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "float32", "float64"])
def test_an_array_stays_in_its_type_and_on_the_disk(tmp_path, dtype):
    X = np.arange(12).reshape(4, 3).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    found, y = load(tmp_path / "X.npy")
    assert isinstance(found, np.memmap) and found.dtype == dtype and y is None
    np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize(
    ("dtype", "becomes"), [("int64", "uint8"), (">f8", "uint8"), ("bool", "uint8"), ("uint16", "uint8")]
)
def test_types_that_a_fit_would_convert_become_small(tmp_path, dtype, becomes):
    X = np.array([[0, 1], [1, 0]]).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    found = load(tmp_path / "X.npy").X
    assert found.dtype == becomes
    np.testing.assert_array_equal(found, X)
    assert load(tmp_path / "X.npy", dtype="float32").X.dtype == np.float32


def test_labels_beside_an_array(tmp_path):
    X, y = np.arange(12, dtype=np.uint8).reshape(4, 3), np.array(["a", "b", "a", "c"])
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    found = load(tmp_path / "X.npy", label=str(tmp_path / "y.npy"))
    assert isinstance(found.X, np.memmap) and found.y.tolist() == y.tolist()
    for rank in range(3):
        part = load(tmp_path / "X.npy", label=str(tmp_path / "y.npy"), rank=rank, size=3)
        rows = slice(4 * rank // 3, 4 * (rank + 1) // 3)
        np.testing.assert_array_equal(part.X, X[rows])
        assert part.y.tolist() == y[rows].tolist()
    column = load(tmp_path / "X.npy", label=-1)
    np.testing.assert_array_equal(column.X, X[:, :2])
    np.testing.assert_array_equal(column.y, X[:, 2])
    with pytest.raises(ValueError, match="there is no such file"):
        load(tmp_path / "X.npy", label="nowhere.npy")
    with pytest.raises(ValueError, match="label=3 names none"):
        load(tmp_path / "X.npy", label=3)
    np.save(tmp_path / "y.npy", y[:3])
    with pytest.raises(ValueError, match=r"has shape \(3,\)"):
        load(tmp_path / "X.npy", label=str(tmp_path / "y.npy"))


class Bomb:
    def __reduce__(self):
        return print, ("executed",)


def test_objects_are_refused_and_not_executed(tmp_path, capfd):
    np.save(tmp_path / "X.npy", np.array([[Bomb()]], dtype=object))
    np.savez(tmp_path / "X.npz", X=np.array([[Bomb()]], dtype=object), y=[1])
    for name in ("X.npy", "X.npz"):
        with pytest.raises(MalformedFileError, match="without executing code"):
            load(tmp_path / name)
        with pytest.raises(MalformedFileError, match="without executing code"):
            load(io.BytesIO((tmp_path / name).read_bytes()))
    assert "executed" not in capfd.readouterr().out


@pytest.mark.parametrize(
    "array", [np.zeros(3), np.zeros((2, 2, 2)), np.array([["a"]]), np.zeros((2, 2), complex)]
)
def test_only_matrices_of_numbers(tmp_path, array):
    np.save(tmp_path / "X.npy", array)
    np.savez(tmp_path / "X.npz", X=array)
    for name in ("X.npy", "X.npz"):
        with pytest.raises(MalformedFileError, match="matrix of numbers"):
            load(tmp_path / name)


def test_values_that_are_not_finite_are_refused_unless_they_are_mapped(tmp_path):
    np.save(tmp_path / "X.npy", np.array([[1, 2], [np.nan, 1]], dtype=">f8"))
    with pytest.raises(ValueError, match="row 2: values must be finite, got nan"):
        load(tmp_path / "X.npy")
    np.savez(tmp_path / "X.npz", X=[[1.0, np.inf]])
    with pytest.raises(MalformedFileError, match="row 1: values must be finite, got inf"):
        load(tmp_path / "X.npz")


def test_names_of_arrays(tmp_path):
    X, y = np.arange(6.0).reshape(3, 2), np.array([1, 2, 1])
    np.savez(tmp_path / "a.npz", X_train=X, y_train=y, X_test=X[:1])
    found = load(tmp_path / "a.npz")
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.y, y)
    assert load(tmp_path / "a.npz", label=False).y is None
    S = sp.random_array((5, 50), density=0.1, format="csr", rng=np.random.default_rng(0))
    sp.save_npz(tmp_path / "s.npz", S)
    assert (load(tmp_path / "s.npz").X != S).nnz == 0
    np.savez(tmp_path / "b.npz", data=X)
    with pytest.raises(MalformedFileError, match="arrays X and y expected, got data"):
        load(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", X=X, y=y[:2])
    with pytest.raises(MalformedFileError, match=r"y has shape \(2,\), and X has 3 rows"):
        load(tmp_path / "c.npz")
    np.savez(tmp_path / "d.npz", X_data=S.data, X_indices=S.indices + 50, X_indptr=S.indptr, X_shape=S.shape)
    with pytest.raises(MalformedFileError, match="not a sparse matrix"):
        load(tmp_path / "d.npz")


def npz_member(path, content, **options):
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("X.npy", "w", **options) as member,
    ):
        for part in content:
            member.write(part)


def header(shape):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return file.getvalue()


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    """64 MB of zeros in 64 KB, with 50 MB of memory."""
    npz_member(tmp_path / "bomb.npz", [header((64, 1 << 20)), *[bytes(1 << 20)] * 64])
    assert (tmp_path / "bomb.npz").stat().st_size < 100_000
    assert load(tmp_path / "bomb.npz").X.shape == (64, 1 << 20)
    monkeypatch.setattr("multimargin.files.numpy_files.available_bytes", lambda: 50 << 20)
    monkeypatch.setattr(zipfile.ZipExtFile, "read", lambda *args: pytest.fail("it was unpacked"))
    with pytest.raises(MalformedFileError, match=r"unpacks to 0\.0671 GB, and 0\.0524 GB of memory are free"):
        load(tmp_path / "bomb.npz")


@pytest.mark.parametrize("shape", [(1 << 40, 1 << 20), (3, 5), (2, 2), (-1, 4)])
def test_a_header_that_does_not_fit_its_values_is_refused(tmp_path, shape):
    npz_member(tmp_path / "a.npz", [header(shape), bytes(8)])
    (tmp_path / "a.npy").write_bytes(header(shape) + bytes(8))
    for name in ("a.npz", "a.npy"):
        if shape == (2, 2) and name == "a.npy":
            continue  # a map takes the bytes that it needs
        with pytest.raises(MalformedFileError):
            load(tmp_path / name)


def test_a_truncated_file_is_refused(tmp_path):
    save(tmp_path / "a.npz", np.ones((50, 3)), np.arange(50))
    save(tmp_path / "a.npy", np.ones((50, 3)))
    for name in ("a.npz", "a.npy"):
        content = (tmp_path / name).read_bytes()
        for length in (len(content) - 1, len(content) // 2, 20, 5):
            (tmp_path / name).write_bytes(content[:length])
            with pytest.raises(MalformedFileError):
                load(tmp_path / name)


def test_what_npy_cannot_hold(tmp_path):
    with pytest.raises(ValueError, match="save X and y in two files"):
        save(tmp_path / "a.npy", [[1.0]], [1])
    with pytest.raises(ValueError, match="save a sparse X as"):
        save(tmp_path / "a.npy", sp.csr_array([[1.0]]))
    assert not list(tmp_path.iterdir())
