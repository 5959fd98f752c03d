"""Every format gives back what was saved in it, compressed or not."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from multimargin.datasets import load, save
from multimargin.files.formats import FORMATS
from multimargin.files.streams import COMPRESSED

TYPES = ("uint8", "int8", "int16", "float32", "float64")
FINITE = {"allow_nan": False, "allow_infinity": False}
WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="\n\r\0?", exclude_categories=["Cs", "Z"]), min_size=1
)
# LIBSVM's and MSVMpack's labels are single words without the signs of the format.
SIMPLE = st.text(st.characters(categories=["L", "N"], codec="utf-8"), min_size=1, max_size=5)
NAMES = [name for name in FORMATS if name != "npy"]


@st.composite
def datasets(draw, words):
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    dtype = draw(st.sampled_from(TYPES))
    limits = {} if dtype.startswith("float") else {"min_value": None, "max_value": None}
    elements = st.floats(width=int(dtype[5:]), **FINITE) if dtype.startswith("float") else None
    X = draw(
        hnp.arrays(dtype, (n, d), elements=elements, fill=None) if not limits else hnp.arrays(dtype, (n, d))
    )
    kinds = st.integers(-(10**9), 10**9), st.floats(**FINITE), words
    y = np.array(draw(st.one_of(*(st.lists(kind, min_size=n, max_size=n) for kind in kinds))))
    return X, y


def same(found, X, y):
    values = found.X.toarray() if sp.issparse(found.X) else found.X
    np.testing.assert_array_equal(values, X)
    assert found.y.tolist() == y.tolist()


def round_trip(name, X, y, **options):
    file = io.BytesIO()
    save(file, X, y, format=name, **options)
    file.seek(0)
    return load(
        file, format=name, n_features=X.shape[1], dtype=X.dtype, zero_based=options.get("zero_based", "auto")
    )


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_arrays_come_back(name, data):
    X, y = data.draw(datasets(SIMPLE if name in ("libsvm", "msvmpack") else WORDS))
    if y.dtype.kind == "U":
        y = np.char.add("_", y)  # words that look like numbers are read as numbers
    if name == "libsvm" and not X.any():
        return  # there is no entry to be read
    same(round_trip(name, X, y, **({"zero_based": False} if name == "libsvm" else {})), X, y)
    if name in ("libsvm", "npz", "arff"):
        same(round_trip(name, sp.csr_array(X), y, **({"zero_based": True} if name == "libsvm" else {})), X, y)


@given(X=hnp.arrays(st.sampled_from(TYPES), hnp.array_shapes(min_dims=2, max_dims=2)))
def test_an_array_alone_comes_back(X):
    if not np.isfinite(X).all():
        X = np.zeros_like(X)
    file = io.BytesIO()
    save(file, X, format="npy")
    file.seek(0)
    found, y = load(file)
    assert found.dtype == X.dtype and y is None
    np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize("compression", ["", *COMPRESSED])
@pytest.mark.parametrize("name", FORMATS)
def test_files_come_back_compressed_or_not(tmp_path, name, compression):
    if compression == ".zst":
        pytest.importorskip("zstandard", reason="zstandard is not installed")
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 9, (30, 4)).astype(np.uint8), rng.integers(0, 3, 30)
    path = tmp_path / f"data{FORMATS[name].suffixes[0]}{compression}"
    if name == "npy":
        save(path, X)
        assert load(path).X.tolist() == X.tolist()
        return
    save(path, X, y)
    same(load(path), X, y)
    assert load(path).X.dtype == np.uint8 and load(path).source == str(path)
    path.rename(tmp_path / "without an ending")
    same(load(tmp_path / "without an ending"), X, y)


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("npy", "npz", "parquet", "arrow")])
def test_files_without_labels(name):
    X = np.array([[1.5, 2], [3, 4]])
    file = io.BytesIO()
    save(file, X, format=name)
    file.seek(0)
    data = load(file, format=name, label=False)
    assert data.X.tolist() == X.tolist() and data.y is None


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("npy", "libsvm", "msvmpack")])
def test_names_of_features_come_back(name):
    file = io.BytesIO()
    names = ["plain", "two words", "ü,'\"%"]
    save(file, np.ones((2, 3)), ["a", "b"], format=name, feature_names=names)
    file.seek(0)
    assert load(file, format=name).feature_names == names
    with pytest.raises(ValueError, match="2 feature_names for 3 features"):
        save(file, np.ones((2, 3)), format=name, feature_names=names[:2])
