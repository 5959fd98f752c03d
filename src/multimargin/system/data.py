"""Conversion of samples to the few types and layouts that the rest of the package accepts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .typing import Data

# Types that are kept as they are. Other integers become int16 if they fit, else float64.
_KEPT = (np.float64, np.float32, np.uint8, np.int8, np.int16)
# Types that scikit-learn's validation lets through; it converts anything else to float64.
STORED = [*_KEPT, np.bool_, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def without_duplicates(X: Data) -> Data:
    """Sum up duplicate entries of sparse data; dense data are returned as they are."""
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def canonical(X: Data) -> Data:
    """Convert ``X`` to a type that the engines accept, without duplicate entries if it is sparse."""
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
    """Return both arrays dense or both CSR: if one is sparse, the other becomes sparse too."""
    if sp.issparse(A) == sp.issparse(B):
        return A, B
    return sp.csr_array(A), sp.csr_array(B)


def features_per_sample(X: Data) -> float:
    """Mean number of stored values per row: the number of features if ``X`` is dense."""
    return float(X.nnz / max(1, X.shape[0])) if sp.issparse(X) else float(X.shape[1])
