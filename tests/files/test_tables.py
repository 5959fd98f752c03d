"""CSV, TSV and MSVMpack's files."""

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimargin.datasets import MalformedFileError, load, save


def read(text, format="csv", **options):
    return load(io.BytesIO(text.encode() if isinstance(text, str) else text), format=format, **options)


def test_names_labels_and_types():
    data = read("width,species,height\n1,cat,2\n3,dog,4\n")
    assert data.feature_names == ["width", "height"]
    assert data.y.tolist() == ["cat", "dog"]
    assert data.X.dtype == np.uint8 and data.X.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "options", "labels", "features"),
    [
        ("1,2,a\n3,4,b\n", {}, ["a", "b"], None),  # the only text
        ("a,2,1\nb,4,3\n", {}, ["a", "b"], None),
        ("1,2,5\n3,4,6\n", {}, [5, 6], None),  # the last one
        ("y,p,q\n1,2,3\n", {}, [1], ["p", "q"]),  # by its name
        ("p,Class,q\n1,2,3\n", {}, [2], ["p", "q"]),
        ("target,label,q\n1,2,3\n", {}, [2], ["target", "q"]),
        ("label,p\ncat,3\n", {}, ["cat"], ["p"]),  # names, though both lines have text in one column
        ("p,q,r\n1,2,3\n", {"label": "q"}, [2], ["p", "r"]),
        ("p,q,r\n1,2,3\n", {"label": 0}, [1], ["q", "r"]),
        ("p,q,r\n1,2,3\n", {"label": -1}, [3], ["p", "q"]),
        ("p,q,r\n1,2,3\n", {"label": False}, None, ["p", "q", "r"]),
        ("1,2,3\n", {}, [3], None),
        ("1;2,5;3,5\n", {}, None, "refused"),  # decimal commas
        ("1;2;3\n4;5;6\n", {}, [3, 6], None),  # semicolons
        ("label,0,1\n7,8,9\n", {}, [7], ["0", "1"]),
    ],
)
def test_which_column_has_the_labels(text, options, labels, features):
    if features == "refused":
        with pytest.raises(MalformedFileError):
            read(text, **options)
        return
    data = read(text, **options)
    assert (None if data.y is None else data.y.tolist()) == labels
    assert data.feature_names == features


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("a,b,y\n1,,2\n", (2, 3), "a value is missing"),
        ("a,b,y\n1,2,2\n1,NA,2\n", (3, 3), "a value is missing \\('NA'\\)"),
        ("a,b,y\n1,?,2\n", (2, 3), "a value is missing"),
        ("a,b,y\n1,nan,2\n", (2, 3), "a value is missing"),
        ("a,b,y\n1,inf,2\n", (2, 3), "a finite number expected, got 'inf'"),
        ("a,b,y\n1,x,2\n", (2, 3), "a number expected, got 'x' \\(features must be numbers"),
        ("a,b,y\n1,2\n", (2, 4), "3 values expected in a line, got 2"),
        ("a,b,y\n1,2,3,4\n", (2, 7), "more than 3 values"),
        ("a,b,y\n1,2,\n", (2, None), "a label is missing"),
        ('a,b,y\n1,2,"x\n', (2, 5), "a quote is not closed"),
        ('a,b,y\n1,"2"3,4\n', (2, 6), "a delimiter expected after a quote"),
        ("a,b,y\n\n \n1,2,3\n1,2e,3\n", (5, 3), "a number expected"),
    ],
)
def test_a_fault_says_where_it_is(text, place, what):
    with pytest.raises(MalformedFileError, match=what) as caught:
        read(text)
    assert (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize("text", ["", "\n", "a,b,y\n", "y\n1\n"])
def test_a_table_without_data_is_refused(text):
    with pytest.raises(MalformedFileError, match=r"no rows|one column only"):
        read(text)


def test_quotes_blanks_and_line_ends():
    data = read('"a, b";y\r\n "1.5" ; "he said ""no"""\r\n2;\'x\'\r\n')
    assert data.feature_names == ["a, b"]
    assert data.X.tolist() == [[1.5], [2]]
    assert data.y.tolist() == ['he said "no"', "'x'"]
    spaces = read("a\tb\ty\n1 \t 2\tx y \n", "tsv")
    assert spaces.X.tolist() == [[1, 2]] and spaces.y.tolist() == ["x y"]


def test_wrong_columns_are_named():
    with pytest.raises(ValueError, match="no column 'z': its columns are 'a', 'b'"):
        read("a,b\n1,2\n", label="z")
    with pytest.raises(ValueError, match="its columns have no names"):
        read("1,2\n3,4\n", label="z")
    with pytest.raises(ValueError, match="label=2 names none"):
        read("1,2\n3,4\n", label=2)
    with pytest.raises(TypeError, match="label must be the name or number"):
        read("1,2\n3,4\n", label=1.5)
    with pytest.raises(ValueError, match="has 1 features, and n_features=3"):
        read("1,2\n3,4\n", n_features=3)


@given(
    values=st.lists(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
        min_size=1,
        max_size=9,
    ),
    data=st.data(),
)
def test_it_agrees_with_pandas(values, data):
    words = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0", exclude_categories=["Cs"]))
    labels = data.draw(
        st.lists(
            words.filter(lambda w: w.strip() == w and w not in ("", "?")),
            min_size=len(values),
            max_size=len(values),
        )
    )
    frame = pd.DataFrame(values, columns=["a", "b c", 'd"e'])
    frame.insert(1, "label", [f"_{label}" for label in labels])
    text = frame.to_csv(index=False)
    if "\\" in text:
        return  # a backslash before a quote is one of ours
    found = read(text)
    assert found.feature_names == ["a", "b c", 'd"e']
    np.testing.assert_array_equal(found.X, frame[["a", "b c", 'd"e']].to_numpy())
    assert found.y.tolist() == frame["label"].tolist()


def test_a_wide_and_a_long_table_are_read_in_a_time_that_grows_with_their_size():
    wide = ",".join(f"n{k}" for k in range(100_000)) + "\n" + ",".join(["1"] * 100_000) + "\n"
    assert read(wide).X.shape == (1, 99_999)
    long = "1,2,3\n" * 200_000
    assert read(long, n_threads=2).X.shape == (200_000, 2)


# -- MSVMpack ------------------------------------------------------------------------------------------
def test_msvmpack(tmp_path):
    data = read("3\n2\n1 2 1\n0.5\t-1 2\n 3   4 3 \n", "msvmpack")
    assert data.X.tolist() == [[1, 2], [0.5, -1], [3, 4]] and data.y.tolist() == [1, 2, 3]
    assert read("1\n2\n1 2\n", "msvmpack", label=False).y is None
    path = tmp_path / "a.msvmpack"
    save(path, [[1, 2.5], [3, 4]], [1, 2])
    assert path.read_text() == "2\n2\n1 2.5 1\n3 4 2\n"
    assert load(path, format="auto").X.tolist() == [[1, 2.5], [3, 4]]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x\n2\n1 2 1\n", "line 1, column 1: the number of rows expected, got 'x'"),
        ("1\n-2\n1 2 1\n", "line 2, column 1: the number of features expected"),
        ("2\n2\n1 2 1\n", "says that it has 2 rows, but there are 1"),
        ("1\n2\n1 2\n", "line 3, column 4: 3 values expected in a line, got 2"),
        ("1\n2\n1 2 3 4\n", "more than 3 values"),
        ("1\n99999999999\n1 2 3 4\n", "a line of 99999999999 features expected"),
        ("", "the number of rows expected"),
    ],
)
def test_wrong_msvmpack_files(text, what):
    with pytest.raises(MalformedFileError, match=what):
        read(text, "msvmpack")
