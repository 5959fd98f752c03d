"""Kernel values of the last working set: half of the next one was often in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...system.typing import IntArray


class Values(NamedTuple):
    """Kernel values of some samples against others."""

    rows: IntArray
    columns: IntArray
    K: np.ndarray


def old_and_new(last: Values | None, W: IntArray) -> tuple[IntArray, IntArray]:
    """The samples of ``W`` that were in the last set, and the others."""
    if last is None:
        return W[:0], W
    old = np.isin(W, last.rows, assume_unique=True)
    return W[old], W[~old]


def from_last(
    last: Values | None, W: IntArray, columns: IntArray, dtype: np.dtype[np.floating]
) -> tuple[np.ndarray, int, int]:
    """Values of ``W`` against ``columns``, as far as the last set has them.

    Also how many of ``W`` and of ``columns`` it has, which must come first.
    """
    K = np.empty((len(W), len(columns)), dtype=dtype)
    if last is None:
        return K, 0, 0
    rows, at = _places(last.rows, W), _places(last.columns, columns)
    K[: len(rows), : len(at)] = last.K.take(rows, axis=0).take(at, axis=1)
    return K, len(rows), len(at)


def _places(known: IntArray, ids: IntArray) -> IntArray:
    """Places of ``ids`` among ``known``, for the first of them that are."""
    order = np.argsort(known)
    at = np.minimum(np.searchsorted(known, ids, sorter=order), len(known) - 1)
    places = order[at] if len(known) else order
    return np.asarray(places[: np.count_nonzero(known[places] == ids[: len(places)])])
