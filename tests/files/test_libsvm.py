"""LIBSVM text, against scikit-learn and plain Python."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
import svmlight_oracle
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from multimargin.datasets import MalformedFileError, load, save
from multimargin.files import streams


def read(text, **options):
    return load(io.BytesIO(text.encode() if isinstance(text, str) else text), format="libsvm", **options)


def dense(X):
    return X.toarray() if sp.issparse(X) else X


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.lists(
    st.tuples(st.integers(-5, 5), st.dictionaries(st.integers(1, 40), NUMBERS, max_size=8)),
    min_size=1,
    max_size=20,
).filter(lambda rows: any(row for _, row in rows))


def text_of(rows, shift=0):
    return "".join(
        f"{label} " + " ".join(f"{k + shift}:{v!r}" for k, v in sorted(row.items())) + "\n"
        for label, row in rows
    )


@given(rows=ROWS)
@example(rows=[(1, {1: 5e-324, 2: 1.7976931348623157e308, 3: 2.2250738585072011e-308})])
def test_it_agrees_with_scikit_learn(rows):
    text = text_of(rows)
    X, y = read(text)
    expected, labels = load_svmlight_file(io.BytesIO(text.encode()), zero_based=False)
    np.testing.assert_array_equal(dense(X), expected.toarray())
    np.testing.assert_array_equal(y, labels)
    assert y.dtype == np.int64


@given(rows=ROWS)
def test_indices_count_from_0_if_there_is_one(rows):
    text = text_of(rows, shift=-1)
    smallest = min(k for _, row in rows for k in row) - 1
    X, _ = read(text, zero_based=True)
    expected, _ = load_svmlight_file(io.BytesIO(text.encode()), zero_based=True)
    np.testing.assert_array_equal(dense(X), expected.toarray())
    automatic, _ = read(text)
    assert automatic.shape[1] == X.shape[1] - (smallest > 0)


DIGITS = st.text("0123456789", min_size=1, max_size=40)
DECIMALS = st.builds(
    lambda sign, whole, point, part, power: sign + whole + point + part + power,
    st.sampled_from(["", "-", "+"]),
    DIGITS,
    st.sampled_from(["", "."]),
    st.text("0123456789", max_size=40),
    st.one_of(
        st.just(""),
        st.builds("e{}".format, st.integers(-360, 360)),
        st.builds("E+{}".format, st.integers(0, 9)),
    ),
)


@given(numbers=st.lists(DECIMALS, min_size=1, max_size=30))
@example(
    ["9007199254740993", "9007199254740993.00000000000000000001", "1e23", "8.5e22", "4.9e-324", "2.4e-324"]
)
@example(
    ["1e-400", "-1e-400", "0.000000000000000000000000000000000000001e39", "123456789012345678901234567890"]
)
def test_numbers_are_what_float_makes_of_them(numbers):
    numbers = [number for number in numbers if abs(float(number)) < float("inf")] or ["1"]
    text = "".join(f"1 1:{number}\n" for number in numbers)
    X, _ = read(text, dtype="float64", n_features=1)
    assert dense(X).ravel().tolist() == [float(number) for number in numbers]


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("1 1:2\n1 2:x\n", (2, 5), "a number expected after the colon, got 'x'"),
        ("1 1:2\n\n# c\n1 2\n", (4, 3), "index:value expected, got '2'"),
        ("1 1:2 1:3\n", (1, 7), "index 1 is there twice"),
        ("1 3:2 1:3 01:4\n", (1, 11), "index 1 is there twice"),
        ("1:2 3:4\n", (1, 1), "a label expected at the beginning of the line"),
        ("1 1:1\n1,2 1:2\n", (2, 1), "one label per line expected, got several: '1,2'"),
        ("1 1:nan\n", (1, 5), "a finite number expected, got 'nan'"),
        ("1 1:-Infinity\n", (1, 5), "a finite number expected, got '-Infinity'"),
        ("1 1:1e999\n", (1, 5), "a finite number expected"),
        ("1 1:1 -2:1\n", (1, 7), "index:value expected"),
        ("1 1:1 2:\n", (1, 9), "a number expected"),
        ("1 1:1 2: 3\n", (1, 9), "a number expected"),
        ("1 1:0x10\n", (1, 5), "a number expected after the colon, got '0x10'"),
        ("1 1:1_0\n", (1, 5), "a number expected"),
        ("1 1:1:2\n", (1, 5), "a number expected"),
        ("1 99999999999999999999999:1\n", (1, 3), "the index '99999999999999999999999' is too large"),
        ("1 1:1\n2 99999999999999:1\n", (2, 3), "makes so many features"),
        ("1 1:1\n2 1:" + "x" * 99 + "\n", (2, 5), "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"),
        ("1 1:1\n? 1:1\n", (2, None), "a label is missing"),
        (b"1 1:1\n\xff\xfe 1:1\n", (2, None), "a label is not UTF-8"),
        (b"1 1:1\n0\0 1:1\n", (2, None), "a label has a byte 0"),
        (b"1 1:1\n1e999 1:1\n2 1:3", (2, None), "beyond float64"),
    ],
)
def test_a_fault_says_where_it_is(text, place, what):
    with pytest.raises(MalformedFileError, match=what.replace("(", "\\(")) as caught:
        read(text)
    assert (caught.value.line, caught.value.column) == place
    assert str(caught.value).startswith(f"<file>, line {place[0]}")


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "1\n2\n"])
def test_a_file_without_rows_or_features_is_refused(text):
    with pytest.raises(MalformedFileError, match=r"there are no (rows|features)"):
        read(text)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", " \n", "\t\r\n"])
def test_blanks_line_ends_and_comments(end):
    lines = ["+1 1:2\t 3:4", "  -1   qid:7 2:5 # 1:9", "# all of it", "2#3", "3 2:1"]
    text = end.join(lines)
    for each in (text, text + end, "\ufeff" + text):
        X, y = read(each)
        np.testing.assert_array_equal(X, [[2, 0, 4], [0, 5, 0], [0, 0, 0], [0, 1, 0]])
        np.testing.assert_array_equal(y, [1, -1, 2, 3])


def test_indices_in_any_order_come_out_ascending_and_without_zeros():
    X, _ = read("1 900:1.5 3:0 20:2.5\n2 7:1 2:0 5:3\n")
    assert X.shape == (2, 900) and X.has_sorted_indices
    assert X[[0]].indices.tolist() == [19, 899] and X[[1]].indices.tolist() == [4, 6]
    assert X.nnz == 4


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1", "-1", "+1"], np.array([1, -1, 1])),
        (["1.5", "-1", "2e3"], np.array([1.5, -1, 2000])),
        (["a", "1", "ü"], np.array(["a", "1", "ü"])),
        (["1", "nan", "2"], np.array(["1", "nan", "2"])),
        (["9" * 18, "1", "2"], np.array([10**18 - 1, 1, 2])),
    ],
)
def test_labels_are_of_one_kind(labels, expected):
    _, y = read("".join(f"{label} 1:1\n" for label in labels))
    assert y.dtype.kind == expected.dtype.kind
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([0, 1, 255], "uint8"),
        ([-128, 127], "int8"),
        ([-1, 128], "int16"),
        ([-32768, 32767], "int16"),
        ([32768], "float64"),
        ([0.5, 1], "float64"),
        ([-0.0, 1e2], "uint8"),
    ],
)
def test_values_come_in_the_smallest_type(values, dtype):
    for spread in (1, 50):  # dense, sparse
        X, _ = read(
            "".join(f"1 {1 + spread * k}:{v!r}\n" for k, v in enumerate(values)) + f"1 {spread * 9}:1\n"
        )
        assert X.dtype == dtype
        assert dense(X)[range(len(values)), spread * np.arange(len(values))].tolist() == values


def test_a_type_that_does_not_hold_the_values_is_refused():
    with pytest.raises(ValueError, match="dtype='uint8' does not hold"):
        read("1 1:300\n", dtype="uint8")
    with pytest.raises(ValueError, match="not all whole"):
        read("1 1:0.5\n", dtype=np.int16)
    with pytest.raises(ValueError, match="float32 does not hold"):
        read("1 1:1e300\n", dtype="float32")
    assert read("1 1:300\n", dtype="float32").X.dtype == np.float32
    with pytest.raises(ValueError, match="dtype must be 'auto' or one of"):
        read("1 1:300\n", dtype="complex128")


def test_density_decides_about_sparse():
    """Bytes are dense from a tenth of entries on, float64 from a third on."""
    for value, share, sparse in (
        ("1", 0.09, True),
        ("1", 0.11, False),
        ("1.5", 0.3, True),
        ("1.5", 0.35, False),
    ):
        count = round(100 * share)
        X, _ = read("1 100:" + value + " " + " ".join(f"{k}:{value}" for k in range(1, count)) + "\n")
        assert sp.issparse(X) == sparse, (value, share)


def test_n_features():
    assert read("1 2:1\n", n_features=5).X.shape == (1, 5)
    with pytest.raises(MalformedFileError, match="larger than n_features allows") as caught:
        read("1 1:1\n1 6:1\n", n_features=5)
    assert (caught.value.line, caught.value.column) == (2, 3)
    with pytest.raises(MalformedFileError, match="indices count from 0") as caught:
        read("1 0:1\n1 5:1\n", n_features=5)
    assert (caught.value.line, caught.value.column) == (2, 3)
    with pytest.raises(MalformedFileError, match=r"indices count from 1"):
        read("1 0:1\n", zero_based=False)
    assert read("1 5000000000:1\n", n_features=5000000000).X.shape == (1, 5000000000)
    with pytest.raises(ValueError, match="n_features must be"):
        read("1 1:1\n", n_features=0)


def test_a_file_without_labels():
    X, y = read("1:2 2:3\n\n# c\n2:1\n", label=False)
    assert y is None
    np.testing.assert_array_equal(X, [[2, 3], [0, 1]])
    with pytest.raises(ValueError, match="label must be None, or False"):
        read("1 1:1\n", label="y")


# -- long files: blocks, chunks, threads ----------------------------------------------------------------
@pytest.fixture(scope="module")
def long_text():
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(20_000):
        indices = np.sort(rng.choice(400, rng.integers(0, 9), replace=False)) + 1
        lines.append(f"{rng.integers(5)} " + " ".join(f"{k}:{rng.normal():.4g}" for k in indices))
    return "\n".join(lines).encode()


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_threads_and_blocks_change_nothing(long_text, monkeypatch, n_threads):
    expected, labels = load_svmlight_file(io.BytesIO(long_text), n_features=400)
    for block in (1 << 16, 1 << 18, 1 << 24):
        monkeypatch.setattr(streams, "BLOCK", block)
        X, y = read(long_text, n_threads=n_threads, n_features=400)
        assert (X != sp.csr_array(expected)).nnz == 0
        np.testing.assert_array_equal(y, labels)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_the_first_fault_of_a_long_file_is_told(long_text, n_threads):
    lines = long_text.split(b"\n")
    lines[17_000] = b"1 1:wrong"
    lines[11_000] = b"1 1:1 7:bad"
    with pytest.raises(MalformedFileError, match="'bad'") as caught:
        read(b"\n".join(lines), n_threads=n_threads)
    assert (caught.value.line, caught.value.column) == (11_001, 9)


def test_a_very_long_line():
    count = 200_000
    X, y = read(b"7 " + b" ".join(b"%d:%d" % (k, k % 100 + 1) for k in range(1, count + 1)))
    assert X.shape == (1, count) and y.tolist() == [7]
    np.testing.assert_array_equal(dense(X)[0], np.arange(1, count + 1) % 100 + 1)


def test_many_different_labels():
    labels = np.random.default_rng(0).normal(size=30_000)
    _, y = read("".join(f"{label!r} 1:1\n" for label in labels.tolist()))
    np.testing.assert_array_equal(y, labels)


def test_the_oracle_reads_what_scikit_learn_reads(long_text):
    """The oracle of the fuzzer is no worse than a known reader."""
    expected, labels = load_svmlight_file(io.BytesIO(long_text))
    found, rows = svmlight_oracle.dense(long_text)
    assert rows == expected.toarray().tolist() and [float(label) for label in found] == labels.tolist()


def test_what_is_written(tmp_path):
    path = tmp_path / "a.svm"
    save(path, sp.csr_array(np.array([[0, 0.1, 0], [3, 0, 1e-300]])), ["x", "y"])
    assert path.read_text() == "x 2:0.1\ny 1:3 3:1e-300\n"
    save(path, np.array([[0, 7]], dtype=np.uint8), zero_based=True)
    assert path.read_text() == "1:7\n"
    for label in ("a b", "a:b", "#a", "", "1,2"):
        with pytest.raises(ValueError, match="LIBSVM text cannot have the label"):
            save(path, [[1.0]], [label])
    assert path.read_text() == "1:7\n"  # nothing was lost
