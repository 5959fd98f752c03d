"""Conversion of samples to the few types and layouts that the rest of the package accepts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .team import SOLO, Team
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


def same_form(X: Data, team: Team) -> Data:
    """Return the rows of ``X`` in the form that the samples of all processes have together.

    They must be all dense or all sparse, with the same features. Their type becomes the smallest that holds
    the types of all. A process without samples has no say.
    """
    if team.size == 1:
        return X
    forms = team.collect((X.shape[0] > 0, bool(sp.issparse(X)), X.shape[1:], X.dtype))
    ranks = [rank for rank, form in enumerate(forms) if form[0]] or [0]
    _, sparse, shape, _ = forms[ranks[0]]
    odd = [rank for rank in ranks if forms[rank][1] != sparse]
    if odd:
        names = "dense", "sparse"
        raise ValueError(
            f"X is {names[sparse]} on rank {ranks[0]} and {names[not sparse]} on rank "
            f"{', '.join(map(str, odd))}. It must be dense on all ranks, or sparse on all."
        )
    odd = [rank for rank in ranks if forms[rank][2] != shape]
    if odd:
        raise ValueError(
            f"The rows of X have shape {shape} on rank {ranks[0]}, and shape {forms[odd[0]][2]} on rank "
            f"{odd[0]}. All ranks must have the same features."
        )
    dtype = np.result_type(*(forms[rank][3] for rank in ranks))
    if X.shape[0]:
        return X.astype(dtype, copy=False)
    return sp.csr_array((0, *shape), dtype=dtype) if sparse else np.empty((0, *shape), dtype)


def features_per_sample(X: Data, team: Team = SOLO) -> float:
    """Mean number of stored values per row of all processes: the number of features if ``X`` is dense."""
    if not sp.issparse(X):
        return float(X.shape[1])
    return float(team.sum(X.nnz)) / max(1.0, float(team.sum(X.shape[0])))
