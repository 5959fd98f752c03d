"""Checks of parameters and data; every message says what was wrong and what would be right."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp

from .typing import Data


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's program that called us, through scikit-learn's decorators or not."""
    level = 1
    frame = sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in ("multimargin", "sklearn"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


# What data may be stored as: these are kept as they are, other integers become 16-bit or floating-point.
_KEPT = (np.float64, np.float32, np.uint8, np.int8, np.int16)
# What scikit-learn's validation is asked for; anything else becomes float64.
STORED = [*_KEPT, np.bool_, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def without_duplicates(X: Data) -> Data:
    """Sparse data with every entry once."""
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def canonical(X: Data) -> Data:
    """Data in one of the few types the engines know, sparse data without duplicate entries."""
    X = without_duplicates(X)
    if X.dtype in _KEPT:
        return X
    values = X.data if sp.issparse(X) else X
    if X.dtype == np.bool_:
        values = values.view(np.uint8)
    elif values.max(initial=0) <= 32767 and values.min(initial=0) >= -32767:
        values = values.astype(np.int16)
    else:
        values = values.astype(np.float64)
    return sp.csr_array((values, X.indices, X.indptr), shape=X.shape) if sp.issparse(X) else values


def same_storage(A: Data, B: Data) -> tuple[Data, Data]:
    """Both dense or both CSR: if one is sparse, the other becomes sparse too."""
    if sp.issparse(A) == sp.issparse(B):
        return A, B
    return sp.csr_array(A), sp.csr_array(B)


def features_per_sample(X: Data) -> float:
    """Stored values a row: the number of features, for sparse data of those present."""
    return float(X.nnz / max(1, X.shape[0])) if sp.issparse(X) else float(X.shape[1])


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """``value`` must be one of the names."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def check_number(name: str, value: object, *, positive: bool = True) -> None:
    """``value`` must be a finite number, positive or at least not negative."""
    what = "a finite number > 0" if positive else "a finite number >= 0"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {what}, got {value!r}.")
    number = float(value)
    if not np.isfinite(number) or number < 0 or (positive and number == 0):
        raise ValueError(f"{name} must be {what}, got {value!r}.")


def check_integer(name: str, value: object, least: int) -> None:
    """``value`` must be an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer >= {least}, got {value!r}.")
    if int(value) < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}.")
