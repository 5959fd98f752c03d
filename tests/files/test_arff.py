"""ARFF, against SciPy's reader."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import arff

from multimargin.datasets import MalformedFileError, load, save

HEADER = """% a comment
@RELATION r

@attribute width numeric
@ATTRIBUTE 'the height' REAL
@attribute kind {cat,'wild dog'}
@data
"""


def read(text, **options):
    return load(io.BytesIO(text.encode()), format="arff", **options)


def test_dense_rows():
    data = read(HEADER + "1,2.5,cat\n% more\n\n3, 4 ,'wild dog'\r\n")
    assert data.feature_names == ["width", "the height"]
    assert data.X.tolist() == [[1, 2.5], [3, 4]]
    assert data.y.tolist() == ["cat", "wild dog"]


def test_sparse_rows_leave_out_zeros_and_first_values():
    data = read(HEADER + "{0 1, 2 'wild dog'}\n{}\n{1 7}\n")
    assert data.X.tolist() == [[1, 0], [0, 0], [0, 7]] and data.X.dtype == np.uint8
    assert data.y.tolist() == ["wild dog", "cat", "cat"]


def test_nominal_features_are_numbers_if_they_can_be():
    head = "@relation r\n@attribute a {0,5,7}\n@attribute b {no,yes}\n@attribute class {p,q}\n@data\n"
    data = read(head + "5,yes,p\n0,no,q\n")
    assert data.X.tolist() == [[5, 1], [0, 0]]
    sparse = read(head + "{0 7, 1 yes}\n{2 q}\n")
    assert sparse.X.tolist() == [[7, 1], [0, 0]] and sparse.y.tolist() == ["p", "q"]
    with pytest.raises(MalformedFileError, match="'a' is a feature, and its values are not numbers"):
        read("@relation r\n@attribute a {x,y,z}\n@attribute b {p,q}\n@data\nx,p\n")


def test_labels_may_be_numbers():
    head = "@relation r\n@attribute a real\n@attribute class {1,2}\n@data\n"
    assert read(head + "1,2\n3,1\n").y.tolist() == [2, 1]
    assert read(head + "{1 2}\n{0 3}\n").y.tolist() == [2, 1]
    assert read("@relation r\n@attribute a real\n@attribute b real\n@data\n1,2\n", label=0).y.tolist() == [1]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (HEADER + "1,2,bird\n", "line 8: 'bird' is none of the values of the attribute 'kind'"),
        (HEADER + "1,?,cat\n", r"line 8, column 3: a value is missing \('\?'\)"),
        (HEADER + "1,cat\n", "line 8, column 3: a number expected"),
        (HEADER + "1,2,?\n", "line 8: a label is missing"),
        (HEADER + "{0 1}\n{5 1}\n", "line 9, column 2: the index 5 is too large"),
        (HEADER + "{0 1}\n{0 1, 0 2}\n", "line 9, column 6: the index 0 is there twice"),
        (HEADER + "{0 1}\n{0 x}\n", "line 9, column 2: a finite number expected, got 'x'"),
        (HEADER + "{0 1}\n{0 ?}\n", "line 9, column 2: a value is missing"),
        (HEADER + "{0 1}\n1,2,cat\n", "line 9, column 1: a row in braces expected"),
        (HEADER + "{0 1}\n{2 bird}\n", "line 9, column 1: the label 'bird'"),
        (HEADER, "there are no rows"),
        (HEADER.replace("@data", "@dat"), "line 7, column 1: @attribute or @data expected"),
        ("@relation r\n@data\n1\n", "line 2, column 1: attributes expected"),
        (
            "@relation r\n@attribute a date\n@data\n1\n",
            "line 2: the attribute 'a' has a type that is not known",
        ),
        ("@relation r\n@attribute a real\n", "there is no line @data"),
    ],
)
def test_wrong_files(text, what):
    with pytest.raises(MalformedFileError, match=what):
        read(text)


@pytest.mark.parametrize("sparse", [False, True])
def test_scipy_reads_what_we_write(tmp_path, sparse):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), np.array(["a", "b c", "it's"])[rng.integers(0, 3, 20)]
    path = tmp_path / "a.arff"
    save(path, sp.csr_array(X) if sparse else X, y, feature_names=["p", "q", "r s"])
    data = load(path)
    np.testing.assert_array_equal(data.X, X)
    assert data.y.tolist() == y.tolist() and data.feature_names == ["p", "q", "r s"]
    if not sparse:  # SciPy does not read sparse rows
        save(path, X, np.array(["a", "b", "c"])[rng.integers(0, 3, 20)], feature_names=["p", "q", "r"])
        table, _ = arff.loadarff(path)
        np.testing.assert_array_equal(np.column_stack([table[name] for name in "pqr"]), X)


def test_a_long_row_is_read_in_a_time_that_grows_with_its_length():
    names = "".join(f"@attribute a{k} numeric\n" for k in range(20_000))
    row = "{" + ", ".join(f"{k} 1" for k in range(20_000)) + "}"
    assert read("@relation r\n" + names + "@attribute class {x,y}\n@data\n" + row + "\n").X.shape == (
        1,
        20_000,
    )
