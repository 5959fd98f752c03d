"""Which of the rows that a user gives to ``fit`` belong to this process.

This is decided before anything reads the data, so that a process never touches the rows of the others.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from typing import Any

import numpy as np
import scipy.sparse as sp

from ... import _core
from ...system.team import Team

_BYTES_AT_ONCE = 1 << 20


def own_rows(team: Team, data: str, X: Any, y: Any, weight: Any, first: float = 1.0) -> tuple[Any, Any, Any]:
    """The rows of this process: of X, y and the sample weights, none of them checked yet.

    If all processes were given the same arrays, each takes its slice. The slices are equal, except that the
    one of rank 0 is ``first`` times as large as that. Otherwise what it was given is its own. ``data`` says
    which, or "auto" to compare the arrays.
    """
    if team.size == 1:
        return X, y, weight
    if data == "auto":
        data = "same" if are_equal(team, X, y, weight) else "shards"
    if data == "shards":
        return X, y, weight
    n = _same_length(team, X, y, weight)
    if n is None:  # nothing that has rows: validation says so
        return X, y, weight
    part = slice(_bound(team.rank, n, team.size, first), _bound(team.rank + 1, n, team.size, first))
    return _slice(X, part), _slice(y, part), _slice(weight, part)


def _bound(rank: int, n: int, size: int, first: float) -> int:
    """The first row of a rank's slice."""
    if rank in (0, size):
        return n * rank // size
    own = int(first * n / size)
    return own + (rank - 1) * (n - own) // (size - 1)


def length(value: Any) -> int | None:
    """How many rows it has; None if it has no rows."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return int(shape[0]) if shape else None
    return len(value) if hasattr(value, "__len__") and not isinstance(value, str | bytes) else None


def _same_length(team: Team, X: Any, y: Any, weight: Any) -> int | None:
    """The number of rows of X on all ranks, which must be equal; y and the weights must have as many."""
    told = team.collect((length(X), length(y), length(weight)))
    for rank, (n, labels, weights) in enumerate(told):
        if n != told[0][0]:
            raise ValueError(
                f"data='same' needs the same arrays on all ranks, but X has {told[0][0]} rows on rank 0 and "
                f"{n} on rank {rank}. Use data='shards' if every rank has its own rows."
            )
        for what, count in (("y", labels), ("sample_weight", weights)):
            if n is not None and count not in (None, n):
                raise ValueError(f"X has {n} rows, but {what} has {count} (on rank {rank}).")
    return told[0][0]


def _slice(value: Any, part: slice) -> Any:
    """Some rows of an array, sparse matrix, data frame or list; what has no rows stays as it is."""
    if length(value) is None:
        return value
    if sp.issparse(value):
        return value.tocsr()[part]
    return value.iloc[part] if hasattr(value, "iloc") else value[part]


# -- are the arrays of all processes equal? ------------------------------------------------------------
def are_equal(team: Team, X: Any, y: Any, weight: Any) -> bool:
    """Whether all ranks were given the same X, y and weights; lengths are compared before the contents."""
    outlines = team.collect([(length(part), _shape(part)) for part in (X, y, weight)])
    if any(outline != outlines[0] for outline in outlines):
        return False
    digests = team.collect(team.attempt(lambda: (digest(X), digest(y, weight))))
    if any(rank[0] != digests[0][0] for rank in digests):
        return False
    odd = [rank for rank, (_, labels) in enumerate(digests) if labels != digests[0][1]]
    if odd:
        raise ValueError(
            f"X is the same on all ranks, but y or sample_weight differ between rank 0 and rank {odd[0]}. "
            "Give the same arrays on all ranks, or use data='shards' if every rank has its own rows."
        )
    return True


def _shape(value: Any) -> tuple[int, ...]:
    shape = getattr(value, "shape", ())
    return tuple(map(int, shape)) if isinstance(shape, tuple) else ()


def digest(*values: Any) -> bytes:
    """A number of 16 bytes that stands for the contents of arrays, sparse matrices, frames or lists.

    A memory map of a file is named by the file, its size and the time of its last change; it is not read.
    """
    found = hashlib.blake2b(digest_size=16)
    for value in values:
        _add(found, value)
    return found.digest()


def _add(found: Any, value: Any) -> None:
    if sp.issparse(value):
        rows = value.tocsr()
        found.update(repr(rows.shape).encode())
        for part in (rows.data, rows.indices, rows.indptr):
            _add(found, part)
    elif hasattr(value, "columns"):
        for name in value.columns:
            found.update(repr(name).encode())
            _add(found, np.asarray(value[name]))
    elif isinstance(value, np.ndarray) and (place := _place_in_file(value)) is not None:
        found.update(repr(place).encode())
    else:
        _add_array(found, _as_array(value))


def _as_array(value: Any) -> np.ndarray:
    try:
        return np.asarray(value)
    except ValueError:  # sequences of different lengths
        return np.array([*value, None], dtype=object)


def _add_array(found: Any, array: np.ndarray) -> None:
    found.update(f"{array.dtype.str}{array.shape}".encode())
    if array.dtype == object:
        found.update(pickle.dumps(array.tolist()))
        return
    # A checksum of each part: it is as fast as memory, and a hash of all bytes is not.
    rows = max(1, _BYTES_AT_ONCE // max(1, array.nbytes // max(1, len(array)))) if array.ndim else 1
    for first in range(0, len(array) if array.ndim else 0, rows):
        part = np.ascontiguousarray(array[first : first + rows])
        found.update(_core.checksum(part.reshape(-1).view(np.uint8)).to_bytes(8, "little"))
    if not array.ndim:
        found.update(array.tobytes())


def _place_in_file(array: np.ndarray) -> tuple[object, ...] | None:
    """Where an array that is part of a memory map lies, on which file; None if it is no such array."""
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    if not isinstance(root, np.memmap) or root.filename is None or root.mode == "c":
        return None
    try:
        state = os.stat(root.filename)
    except OSError:
        return None
    start = root.offset + array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    file = os.path.realpath(root.filename), state.st_size, state.st_mtime_ns
    return *file, start, array.shape, array.strides, array.dtype.str
