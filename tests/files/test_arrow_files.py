"""Parquet and Arrow files, as pyarrow, pandas and polars write them."""

import io
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

from multimargin.datasets import MalformedFileError, load

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow has no Parquet")


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "a": rng.integers(0, 200, 50).astype(np.int64),
            "class": pa.array(np.array(["x", "y"])[rng.integers(0, 2, 50)]).dictionary_encode(),
            "b": rng.integers(0, 2, 50).astype(bool),
        }
    )


def write(table, path):
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=7)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=9)
    return path


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_columns_types_and_labels(tmp_path, table, suffix):
    path = write(table, tmp_path / f"a{suffix}")
    for given in (path, io.BytesIO(path.read_bytes())):
        data = load(given)
        assert data.feature_names == ["a", "b"] and data.X.dtype == np.uint8
        np.testing.assert_array_equal(data.X, np.column_stack([table["a"].to_numpy(), table["b"].to_numpy()]))
        assert data.y.tolist() == table["class"].to_pylist()


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("size", [2, 3, 60])
def test_parts_put_together_are_the_table(tmp_path, table, suffix, size):
    path = write(table, tmp_path / f"a{suffix}")
    whole = load(path)
    parts = [load(path, rank=rank, size=size, dtype="uint8") for rank in range(size)]
    np.testing.assert_array_equal(np.concatenate([part.X for part in parts]), whole.X)
    assert np.concatenate([part.y for part in parts]).tolist() == whole.y.tolist()


def test_files_of_others(tmp_path):
    frame = pd.DataFrame({"p": [1.5, 2.0], "q": np.array([1, 2], dtype=np.float32), "y": [3, 4]})
    frame.to_parquet(tmp_path / "pandas.parquet")
    pl.DataFrame(frame.to_dict("list")).write_ipc(tmp_path / "polars.arrow")
    pl.DataFrame(frame.to_dict("list")).write_ipc_stream(tmp_path / "stream.arrow")
    for name in ("pandas.parquet", "polars.arrow", "stream.arrow"):
        data = load(tmp_path / name)
        assert data.X.tolist() == [[1.5, 1], [2, 2]] and data.y.tolist() == [3, 4], name
    assert load(tmp_path / "pandas.parquet", label=False).X.shape == (2, 3)
    assert load(tmp_path / "pandas.parquet", label="p").y.tolist() == [1.5, 2.0]


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ({"a": [1, None], "y": [1, 2]}, "a value is missing in row 2 of the column 'a'"),
        ({"a": [1, 2], "y": ["p", None]}, "a value is missing in row 2 of the column 'y'"),
        ({"a": ["u", "v"], "y": [1, 2]}, "the column 'a' has values of type string, not numbers"),
        ({"y": [1, 2]}, "one column only"),
        ({"a": [[1], [2]], "y": [1, 2]}, "not numbers"),
    ],
)
def test_wrong_tables(tmp_path, columns, what):
    with pytest.raises(MalformedFileError, match=what):
        load(write(pa.table(columns), tmp_path / "a.parquet"))


def test_values_that_are_not_finite_are_refused(tmp_path):
    with pytest.raises(ValueError, match="row 1: values must be finite"):
        load(write(pa.table({"a": [np.inf, 1.0], "y": [1, 2]}), tmp_path / "a.arrow"))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_damaged_file_is_refused(tmp_path, table, suffix):
    path = write(table, tmp_path / f"a{suffix}")
    content = path.read_bytes()
    for damaged in (content[:-1], content[: len(content) // 2], content[:8]):
        path.write_bytes(damaged)
        with pytest.raises(MalformedFileError, match="pyarrow cannot read it"):
            load(path)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_no_wrong_byte_crashes(tmp_path, table, suffix):
    """Wrong lengths of words, for example, which pyarrow would follow beyond the end of its memory."""
    words = table.set_column(1, "class", table["class"].cast(pa.string()))
    content = write(words, tmp_path / f"a{suffix}").read_bytes()
    refused = 0
    for at in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        try:
            load(io.BytesIO(damaged), format=suffix[1:])
        except ValueError:
            refused += 1
    assert refused > 20


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install multimargin\[arrow\]"):
        load(tmp_path / "a.parquet")
