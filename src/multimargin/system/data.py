"""Samples in one of the few forms that the rest of the package knows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .typing import Data

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
