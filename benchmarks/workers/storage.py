"""Problems on disk: one .npz with X_train, y_train, X_test, y_test, a sparse X in its CSR parts.

Used on both sides of the process border, so it needs NumPy and SciPy only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp


class Split(NamedTuple):
    """What to train on and what to test on."""

    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray

    @property
    def n(self) -> int:
        return len(self.y_train)

    def astype(self, dtype: Any) -> Split:
        return self._replace(X_train=self.X_train.astype(dtype), X_test=self.X_test.astype(dtype))


def read_matrix(stored: Any, name: str) -> Any:
    """The dense or CSR matrix ``name`` of an opened .npz."""
    if name in stored:
        return stored[name]
    parts = (stored[f"{name}_data"], stored[f"{name}_indices"], stored[f"{name}_indptr"])
    return sp.csr_matrix(parts, shape=tuple(stored[f"{name}_shape"]))


def write_split(path: Path, split: Split) -> None:
    arrays = {"y_train": split.y_train, "y_test": split.y_test}
    for name, X in (("X_train", split.X_train), ("X_test", split.X_test)):
        if sp.issparse(X):
            arrays |= {f"{name}_{part}": getattr(X, part) for part in ("data", "indices", "indptr", "shape")}
        else:
            arrays[name] = X
    np.savez(path, **arrays)


def read_split(path: Path) -> Split:
    with np.load(path) as stored:
        return Split(
            read_matrix(stored, "X_train"),
            stored["y_train"],
            read_matrix(stored, "X_test"),
            stored["y_test"],
        )


def few_rows(split: Split, rows: int) -> Split:
    """A small problem of the same kind: at least two rows of each of the first classes."""
    labels = np.unique(split.y_train)[: max(2, rows // 2)]
    each = max(2, rows // len(labels))
    picked = np.sort(np.concatenate([np.flatnonzero(split.y_train == label)[:each] for label in labels]))
    return Split(split.X_train[picked], split.y_train[picked], split.X_test[:2], split.y_test[:2])
