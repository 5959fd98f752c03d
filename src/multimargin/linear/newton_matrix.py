"""Newton's matrix of a proximal step, and the step it gives.

    M = I + Σ_i t_i x_i x_iᵀ ⊗ Q_i Q_iᵀ,    Q_i an orthonormal basis of what moves in the row of sample i

If rows of α sum to zero, k free classes move in k - 1 directions, and Q_i Q_iᵀ = I - 1 1ᵀ / k. The classes
are coupled: M has d m rows. By the Woodbury identity, a matrix with a row per column of all Q_i does as well
if that is smaller. If rows have no sum to keep, Q_i Q_iᵀ = I, and M falls apart into one matrix per class.
Products of a matrix with its own transpose take half the time of others, so samples carry the square root of
their factor.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from ..system.typing import FloatArray

_ROWS = 8192  # multiplied at a time


def direction(
    g: FloatArray, X: FloatArray, free: np.ndarray, t: FloatArray, *, sums_to_zero: bool, most: int
) -> FloatArray | None:
    """-M⁻¹ g; None if a matrix of more than ``most`` rows would be needed.

    ``X``, ``free`` and ``t`` are those of the samples that have free classes.
    """
    if not len(X):
        return -g
    if not sums_to_zero:
        return _by_class(g, X, free, t, most)
    k = np.count_nonzero(free, axis=1)
    unknowns, moves = g.size, int(k.sum()) - len(k)
    if min(unknowns, moves) > most:
        return None
    return by_moves(g, X, free, k, t) if moves < unknowns else by_weights(g, X, free, k, t)


def _by_class(g: FloatArray, X: FloatArray, free: np.ndarray, t: FloatArray, most: int) -> FloatArray | None:
    step = np.empty_like(g)
    for r in range(g.shape[1]):
        ids = np.flatnonzero(free[:, r])
        if min(len(ids), len(g)) > most:
            return None
        if not len(ids):
            step[:, r] = -g[:, r]
            continue
        if len(ids) < len(g):
            A = X[ids] * np.sqrt(t[ids])[:, None]
            step[:, r] = A.T @ _solved(A @ A.T, A @ g[:, r]) - g[:, r]
        else:
            step[:, r] = -_solved(_gram(X, ids, t[ids]), g[:, r])
    return step


def by_weights(g: FloatArray, X: FloatArray, free: np.ndarray, k: np.ndarray, t: FloatArray) -> FloatArray:
    """-M⁻¹ g from M itself."""
    p, m = g.shape
    M = np.zeros((g.size, g.size), order="F")
    for a in range(m):
        with_a, part = np.flatnonzero(free[:, a]), slice(a * p, a * p + p)
        M[part, part] = _gram(X, with_a, t[with_a] * (1.0 - 1.0 / k[with_a]))
        for b in range(a):
            both = with_a[free[with_a, b]]
            if len(both):
                M[part, b * p : b * p + p] = -_gram(X, both, t[both] / k[both])
    return -_solved(M, g.T.ravel()).reshape(m, p).T


def by_moves(g: FloatArray, X: FloatArray, free: np.ndarray, k: np.ndarray, t: FloatArray) -> FloatArray:
    """-M⁻¹ g by the Woodbury identity."""
    A = X * np.sqrt(t)[:, None]
    of = np.repeat(np.arange(len(k)), k - 1)
    Q = _bases(free, k, of)
    M = (A @ A.T)[np.ix_(of, of)] * (Q @ Q.T)
    moved = _solved(M, ((A @ g)[of] * Q).sum(axis=1))
    by_sample = np.zeros((len(k), g.shape[1]))
    np.add.at(by_sample, of, Q * moved[:, None])
    return np.asarray(A.T @ by_sample - g)


def _gram(X: FloatArray, ids: np.ndarray, factor: FloatArray) -> FloatArray:
    """Σ_i factor_i x_i x_iᵀ over the samples ``ids``; a few of their rows are copied at a time."""
    total = np.zeros((X.shape[1], X.shape[1]))
    root = np.sqrt(factor)
    for first in range(0, len(ids), _ROWS):
        part = slice(first, first + _ROWS)
        A = X[ids[part]] * root[part, None]
        total += A.T @ A
    return total


def _solved(M: FloatArray, rhs: FloatArray) -> FloatArray:
    """(I + M)⁻¹ rhs from the lower half of M, which is overwritten."""
    M = np.asfortranarray(M)
    M.flat[:: len(M) + 1] += 1.0
    factor, _ = lapack.dpotrf(M, lower=1, overwrite_a=1)
    return np.asarray(lapack.dpotrs(factor, rhs, lower=1)[0])


def _bases(free: np.ndarray, k: np.ndarray, of: np.ndarray) -> FloatArray:
    """The columns of all Q_i as rows: Helmert's basis on the free classes of sample ``of``.

    Column j of a sample is (1, …, 1, -j, 0, …) / √(j (j + 1)), with j ones.
    """
    first = np.concatenate([[0], np.cumsum(k - 1)])[:-1]
    j = (np.arange(len(of)) - first[of] + 1)[:, None]
    place = np.where(free, np.cumsum(free, axis=1) - 1, free.shape[1])[of]
    return np.asarray(np.where(place < j, 1.0, np.where(place == j, -j, 0.0)) / np.sqrt(j * (j + 1.0)))
