"""Samples as a user gives them: numbers are checked, all else is left to a callable kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import assert_all_finite, check_consistent_length, column_or_1d, validate_data

from ..engines.cuda.resident import taken
from ..engines.mpi.data import length
from ..kernels import Kernel
from ..system.data import STORED, canonical, same_form
from ..system.device_data import DeviceData, lives_on_device
from ..system.team import SOLO, Team
from ..system.typing import Data

_FLOATS = (np.float64, np.float32)


def training_data(
    estimator: Any, kernel: Kernel, X: Any, y: Any, team: Team = SOLO, device: bool = False
) -> tuple[Data, np.ndarray]:
    """Return checked samples and labels of this process, and tell the estimator the number of features.

    Samples on a GPU stay there, if the engine takes them from a ``device``; else they are refused.
    All processes of the team have samples of the same form, and labels of the same type. Some may have none.
    """
    if not device and lives_on_device(X):
        raise TypeError(
            f"X is on a GPU, and {type(estimator).__name__} reads arrays of the host unless engine='cuda': "
            "give it a copy on the host."
        )
    return agreed_data(estimator, lambda: _checked(estimator, kernel, X, y), X, y, team)


def agreed_data(
    estimator: Any, checked: Callable[[], tuple[Data, np.ndarray]], X: Any, y: Any, team: Team
) -> tuple[Data, np.ndarray]:
    """The same for samples and labels that ``checked`` returns; it is not asked if there are none here."""
    if team.size == 1:
        return checked()
    empty = length(X) == 0 and length(y) == 0
    X, y = team.attempt(lambda: (np.empty((0, 0)), np.empty(0)) if empty else checked())
    if not team.sum(len(y)):
        raise ValueError("No rank has any rows of training data: X is empty on all ranks.")
    X = same_form(X, team)
    _agree_on_features(estimator, len(y), team)
    return X, _same_type(y, team)


def _agree_on_features(estimator: Any, rows: int, team: Team) -> None:
    """Raise unless all processes that have rows have the same feature names; the others take them over."""
    names = getattr(estimator, "feature_names_in_", None)
    told = team.collect((rows, rows and estimator.n_features_in_, None if names is None else names.tolist()))
    ranks = [rank for rank, facts in enumerate(told) if facts[0]]
    first = told[ranks[0]]
    for rank in ranks:
        if told[rank][2] != first[2]:
            raise ValueError(
                f"The features have the names {first[2]} on rank {ranks[0]}, and {told[rank][2]} on rank "
                f"{rank}. All ranks must have the same features in the same order."
            )
    if rows:
        return
    estimator.n_features_in_ = first[1]
    if first[2] is not None:
        estimator.feature_names_in_ = np.asarray(first[2], dtype=object)
    elif names is not None:
        del estimator.feature_names_in_


def _same_type(y: np.ndarray, team: Team) -> np.ndarray:
    """The labels of this process in a type that holds those of all: these must be all text or all numbers."""
    types = [(rank, dtype) for rank, (rows, dtype) in enumerate(team.collect((len(y), y.dtype))) if rows]
    text = [rank for rank, dtype in types if dtype.kind in "OSU"]
    numbers = [rank for rank, dtype in types if dtype.kind not in "OSU"]
    if text and numbers:
        raise ValueError(
            f"The labels y are text on rank {text[0]}, and numbers on rank {numbers[0]}. They must be of one "
            "kind on all ranks."
        )
    return y.astype(np.result_type(*(dtype for _, dtype in types)), copy=False)


def _checked(estimator: Any, kernel: Kernel, X: Any, y: Any) -> tuple[Data, np.ndarray]:
    if _is_valid(estimator, X, y):
        estimator.n_features_in_ = X.shape[1]
        return X, y
    if lives_on_device(X):
        return _on_device(estimator, kernel, X, reset=True), _labels(X, y)
    samples = _for_callable(kernel, X)
    if samples is None:
        X, y = validate_data(estimator, X, y, **_options(kernel))
        return canonical(X), y
    y = _labels(samples, y)
    estimator.n_features_in_ = samples.shape[1] if samples.ndim > 1 else 1
    return samples, y


def _labels(samples: Any, y: Any) -> np.ndarray:
    """Checked labels, one per sample."""
    check_consistent_length(samples, y)
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    return np.asarray(y)


def _on_device(estimator: Any, kernel: Kernel, X: Any, reset: bool) -> DeviceData:
    """Checked samples that are on a device, where they stay."""
    if kernel.native is None and not kernel.pairwise:
        raise TypeError(
            "A kernel function needs NumPy arrays, and X is on a GPU. Give a copy on the host, or the matrix "
            "of kernel values with kernel='precomputed', which may be on the GPU."
        )
    data = taken(X)
    if reset:
        estimator.n_features_in_ = data.shape[1]
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif data.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {data.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return data


def _is_valid(estimator: Any, X: Any, y: Any) -> bool:
    """Whether scikit-learn would return X and y as they are, if that is seen at a glance.

    Its own look at them takes a third of the time of a small fit. It is left to judge whatever is not the
    usual case: rows of finite floating-point numbers without names, and integer labels.
    """
    return bool(
        type(X) is np.ndarray
        and type(y) is np.ndarray
        and X.dtype in _FLOATS
        and y.dtype.kind in "iu"
        and X.ndim == 2
        and y.shape == X.shape[:1]
        and X.size
        and X.flags.c_contiguous
        and not hasattr(estimator, "feature_names_in_")
        and _sum_is_finite(X)
    )


def _sum_is_finite(X: np.ndarray) -> bool:
    """Whether the sum of all values is a number: then all of them are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum()))


def new_data(estimator: Any, kernel: Kernel, X: Any) -> Data:
    """Return checked samples with the features of the training data."""
    if lives_on_device(X):
        return _on_device(estimator, kernel, X, reset=False)
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
