"""Samples as a user gives them: numbers are checked, all else is left to a callable kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import assert_all_finite, check_consistent_length, column_or_1d, validate_data

from ..kernels import Kernel
from ..system.data import STORED, canonical
from ..system.typing import Data


def training_data(estimator: Any, kernel: Kernel, X: Any, y: Any) -> tuple[Data, np.ndarray]:
    """Return checked samples and labels, and tell the estimator the number of features."""
    samples = _for_callable(kernel, X)
    if samples is None:
        X, y = validate_data(estimator, X, y, **_options(kernel))
        return canonical(X), y
    check_consistent_length(samples, y)
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    estimator.n_features_in_ = samples.shape[1] if samples.ndim > 1 else 1
    return samples, y


def new_data(estimator: Any, kernel: Kernel, X: Any) -> Data:
    """Return checked samples with the features of the training data."""
    samples = _for_callable(kernel, X)
    return (
        canonical(validate_data(estimator, X, reset=False, **_options(kernel)))
        if samples is None
        else samples
    )


def _options(kernel: Kernel) -> dict[str, Any]:
    """What scikit-learn's ``validate_data`` is asked for. A matrix of kernel values stays in its order."""
    order = None if kernel.pairwise else "C"
    return {"accept_sparse": "csr", "dtype": STORED, "order": order, "accept_large_sparse": True}


def _for_callable(kernel: Kernel, X: Any) -> np.ndarray | None:
    """Return what only a callable can read, strings or objects or arrays that are no table, as an array.

    None stands for a table of numbers, which is checked whatever the kernel is.
    """
    if kernel.native is not None or kernel.pairwise or sp.issparse(X):
        return None
    try:
        array = np.asarray(X)
    except ValueError:  # sequences of different lengths
        array = None
    if array is None or (array.dtype == object and not hasattr(X, "shape")):
        array = np.empty(len(X), dtype=object)
        for i, sample in enumerate(X):
            array[i] = sample
    return None if array.ndim == 2 and array.dtype.kind in "biuf" else array
