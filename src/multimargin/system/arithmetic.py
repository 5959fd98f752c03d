"""Arithmetic on samples, dense or sparse, by definition: float64 values and no cancellation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from .device_data import DeviceData
from .shard import Shard
from .team import Team
from .typing import Data, FloatArray

# Looked at together if one number per row is needed: at most so many rows, and values of dense rows.
_ROWS_AT_ONCE, _VALUES_AT_ONCE = 4096, 1 << 19
_TILE_ROWS = 512  # (and columns) of a matrix that are compared with their mirror image at a time
# Asymmetry that counts as rounding, of the largest value: in float64 and in float32.
_ASYMMETRY = {False: 1e-5, True: 1e-4}


def as_float64(A: Data) -> Data:
    """Return the samples in float64, without a copy if they already are."""
    return A.astype(np.float64, copy=False)


def row_parts(A: Data) -> Iterator[Data]:
    """Yield the rows, so many at a time that a copy of them in float64 takes a few megabytes."""
    step = _ROWS_AT_ONCE
    if not sp.issparse(A):
        step = max(1, min(step, _VALUES_AT_ONCE // max(1, A.shape[1])))
    for first in range(0, A.shape[0], step):
        yield A[first : first + step]


def in_float64_parts(A: Data) -> Iterator[Data]:
    """Yield the same parts in float64."""
    return map(as_float64, row_parts(A))


def dense(product: Any) -> FloatArray:
    """Return a product of samples as an array."""
    return product.toarray() if sp.issparse(product) else np.asarray(product)


def dots(A: Data, B: Data) -> FloatArray:
    """Return a·b for every row a of ``A`` and b of ``B``."""
    return dense(as_float64(A) @ as_float64(B).T)


def short_indices(A: Data) -> Data:
    """Return float64 samples with the 32-bit indices that scikit-learn's L1 distance requires."""
    A = as_float64(A)
    if not sp.issparse(A) or A.indices.dtype == A.indptr.dtype == np.int32:
        return A
    return sp.csr_array((A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32)), shape=A.shape)


def floating(A: Data) -> Data:
    """Return integers as floating-point numbers, because products of small integer types would overflow.

    Anything else, strings and objects too, stays as it is.
    """
    return as_float64(A) if A.dtype.kind in "biu" else A


def checked_values(values: np.ndarray, expected: tuple[int, int]) -> FloatArray:
    """Return what a kernel function returned in float64; raise unless it is finite numbers of that shape."""
    found = None
    if values.dtype.kind in "biufO":
        with suppress(TypeError, ValueError):
            found = values.astype(np.float64, copy=False)
    if found is None:
        raise ValueError(
            f"The kernel callable returned values that are no real numbers, of type {values.dtype}; it must "
            "return an array of real numbers."
        )
    if found.shape != expected:
        raise ValueError(
            f"The kernel callable returned an array of shape {found.shape} for inputs of "
            f"{expected[0]} and {expected[1]} rows; it must return shape {expected}."
        )
    if not np.isfinite(found).all():
        raise ValueError("The kernel callable returned NaN or infinite values; they must be finite.")
    return found


def check_symmetric(K: Data, what: str) -> None:
    """Raise unless K = Kᵀ, up to the rounding that a product of matrices leaves."""
    worst, size = K.asymmetry() if isinstance(K, DeviceData) else _asymmetry(K)
    if worst > _ASYMMETRY[K.dtype == np.float32] * size:
        raise ValueError(
            f"{what} is not symmetric: K(a, b) and K(b, a) differ by up to {worst:.3g}, and the largest "
            f"value is {size:.3g}. A kernel needs K(a, b) = K(b, a)."
        )


def check_symmetric_shards(K: Data, team: Team, what: str) -> None:
    """Raise unless K = Kᵀ, if each process has the rows of its own samples.

    No process has a value and its mirror image, so sums are compared: Σ_b ±K(a, b) and Σ_b ±K(b, a) with the
    same random signs. Differences of n values that are rounding add up as random numbers do, to √n times as
    much. So a single wrong value must be √n times as wrong as in one process to be noticed, many need not.
    """
    shard = Shard(K.shape[0], team)
    if shard.n != K.shape[1]:
        raise ValueError(
            f"{what} needs a column for each of the {shard.n} samples of all ranks, got {K.shape[1]} columns."
        )
    signs, last = np.random.default_rng(0).choice([-1.0, 1.0], shard.n), shard.first + shard.count
    size, across, down = 0.0, [np.empty(0)], np.zeros(shard.n)
    for first in range(0, shard.count, _TILE_ROWS):
        part = as_float64(K[first : first + _TILE_ROWS])
        size = max(size, float(abs(part).max()))
        across.append(part @ signs)
        down += signs[shard.first + first :][: part.shape[0]] @ part
    differences = np.abs(team.sum(down)[shard.first : last] - np.concatenate(across))
    worst, size = team.max(float(differences.max(initial=0.0))), team.max(size)
    if worst > _ASYMMETRY[K.dtype == np.float32] * np.sqrt(shard.n) * size:
        raise ValueError(
            f"{what} is not symmetric: a sum of values ±K(a, b) over all b and the same sum of values "
            f"±K(b, a) differ by {worst:.3g}, and the largest value is {size:.3g}. A kernel needs "
            "K(a, b) = K(b, a)."
        )


def _asymmetry(K: Data) -> tuple[float, float]:
    """Return the largest difference of a value and its mirror image, and the largest value."""
    worst, size = 0.0, 0.0
    for tile, mirror in _mirrored(K):
        differences = np.abs(as_float64(tile) - as_float64(mirror))
        worst = max(worst, float(differences.max() if differences.size else 0.0))
        size = max(size, float(abs(tile).max() if tile.size else 0.0))
    return worst, size


def _mirrored(K: Data) -> Iterator[tuple[Data, Data]]:
    """Yield tiles of a square matrix and the transposed tiles on the other side of its diagonal."""
    n, step = K.shape[0], max(1, K.shape[0]) if sp.issparse(K) else _TILE_ROWS
    for i in range(0, n, step):
        for j in range(i, n, step):
            yield K[i : i + step, j : j + step], K[j : j + step, i : i + step].T


def squared_distances(A: Data, B: Data) -> FloatArray:
    """Return ‖a - b‖² by differences: ‖a‖² + ‖b‖² - 2a·b would lose what an offset leaves of them."""
    A, B = as_float64(A), as_float64(B)
    with np.errstate(over="ignore"):
        if not sp.issparse(A):
            return np.asarray(cdist(A, B, "sqeuclidean"))
        ones = sp.csr_array(np.ones((B.shape[0], 1)))
        rows = (sqnorms(B - ones @ sp.csr_array(A[i : i + 1])) for i in range(A.shape[0]))
        return np.stack(list(rows)) if A.shape[0] else np.empty((0, B.shape[0]))


def sqnorms(A: Data) -> FloatArray:
    """Return ‖a‖² for every row a of ``A``."""
    if isinstance(A, DeviceData):
        return A.sqnorms()
    if sp.issparse(A):
        A = as_float64(A)
        return np.asarray(A.multiply(A).sum(axis=1)).ravel()
    return np.concatenate(
        [np.einsum("ij,ij->i", part, part) for part in in_float64_parts(A)] or [np.empty(0)]
    )
