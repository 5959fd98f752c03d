"""Scaling, against scikit-learn's scalers."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

from multimargin.datasets import Scaling

VALUES = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 9), st.integers(1, 5)), elements=st.floats(-1e3, 1e3, width=16)
)
DENSE = {"minmax": MinMaxScaler, "standard": StandardScaler, "unit": Normalizer}
SPARSE = {"minmax": MaxAbsScaler, "standard": lambda: StandardScaler(with_mean=False), "unit": Normalizer}


@pytest.mark.parametrize("kind", DENSE)
@given(X=VALUES)
def test_dense_data(kind, X):
    scaling, scaler = Scaling.fit(kind, X), DENSE[kind]().fit(X)
    for rows in (X, X[:1] + 1):
        np.testing.assert_allclose(scaling.apply(rows), scaler.transform(rows), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", DENSE)
@given(X=VALUES)
def test_undone(kind, X):
    for rows in (X, np.rint(X), sp.csr_array(X)):
        scaling = Scaling.fit(kind, rows)
        before = scaling.undo(scaling.apply(rows))
        if kind == "unit":
            assert before is None
            continue
        rows, before = (each.toarray() if sp.issparse(each) else each for each in (rows, before))
        np.testing.assert_allclose(before, rows, rtol=1e-9, atol=1e-9)
    if kind != "unit":
        whole = np.rint(X)
        scaling = Scaling.fit(kind, whole)
        np.testing.assert_array_equal(scaling.undo(scaling.apply(whole)), whole)


@pytest.mark.parametrize("kind", SPARSE)
@given(X=VALUES)
def test_sparse_data_stay_sparse(kind, X):
    S = sp.csr_array(X)
    before = S.copy()
    scaled = Scaling.fit(kind, S).apply(S)
    assert sp.issparse(scaled) and scaled.nnz == S.nnz
    np.testing.assert_allclose(
        scaled.toarray(), SPARSE[kind]().fit_transform(S).toarray(), rtol=1e-9, atol=1e-9
    )
    assert (S != before).nnz == 0


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
@pytest.mark.parametrize("kind", DENSE)
def test_small_integers_do_not_overflow(kind, dtype):
    limits = np.iinfo(dtype)
    X = np.array([[limits.min, limits.max], [limits.max, limits.min], [1, 2]], dtype=dtype)
    np.testing.assert_allclose(Scaling.fit(kind, X).apply(X), DENSE[kind]().fit_transform(X.astype(float)))
    S = sp.csr_array(X)
    np.testing.assert_allclose(
        Scaling.fit(kind, S).apply(S).toarray(), SPARSE[kind]().fit_transform(S.astype(float)).toarray()
    )


def test_types_and_plain_state():
    X = np.ones((3, 2), dtype=np.float32) * [[1], [2], [4]]
    for kind in DENSE:
        scaling = Scaling.fit(kind, X.astype(np.float32))
        assert scaling.apply(X.astype(np.float32)).dtype == np.float32
        again = Scaling(scaling.kind, scaling.offset, scaling.factor)
        np.testing.assert_array_equal(again.apply(X), scaling.apply(X))


def test_many_rows_are_scaled_as_few_are():
    X = np.random.default_rng(0).normal(5, 2, size=(9000, 3))
    np.testing.assert_allclose(
        Scaling.fit("standard", X).apply(X), StandardScaler().fit_transform(X), atol=1e-12
    )


def test_wrong_use():
    with pytest.raises(ValueError, match="Unknown scaling 'log'"):
        Scaling.fit("log", np.ones((2, 2)))
    scaling = Scaling.fit("minmax", np.array([[0.0, 1.0], [2.0, 3.0]]))
    with pytest.raises(ValueError, match="X has 3 features, and the scaling is for 2"):
        scaling.apply(np.ones((1, 3)))
    with pytest.raises(ValueError, match="would fill sparse data"):
        scaling.apply(sp.csr_array(np.ones((1, 2))))
