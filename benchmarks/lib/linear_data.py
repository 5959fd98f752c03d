"""Data of the linear machine's benchmarks: text as sparse rows of length one, letter and mnist dense.

Text is prepared from word counts c by log(1 + c), times log(n / rows with the word) with "idf", then rows of
length one. sector comes prepared (tf-idf, unit rows).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import normalize

from benchmarks.lib.data import Split, over, read_stored
from benchmarks.workers.storage import read_matrix


def log_counts(counts: Any) -> sp.csr_array:
    """log(1 + c), rows of length one."""
    return sp.csr_array(normalize(counts.log1p()))


def log_counts_idf(counts: Any) -> sp.csr_array:
    """log(1 + c) log(n / n_word), rows of length one."""
    rows = np.maximum(counts.getnnz(axis=0), 1)
    return sp.csr_array(normalize(counts.log1p().multiply(np.log(counts.shape[0] / rows)).tocsr()))


TEXT = {"log": log_counts, "idf": log_counts_idf}
SCALES: dict[str, Callable] = {
    "sector_scale": sp.csr_array,
    "news20_bydate": log_counts,
    "news20_libsvm_train": log_counts,
    "letter": lambda X: over(15)(X, X)[0],
    "mnist": lambda X: over(255)(X, X)[0],
}

FILES = {"News20": "news20_bydate", "Sector": "sector_scale"}  # Blondel et al.'s names


def training_part(name: str, rows: int | None = None) -> Split:
    """The training rows, prepared; a few of them stand for the test part, which has no role here."""
    stored = read_stored(name)
    X, y = SCALES[name](_matrix(stored, "X_train")), stored["y_train"].astype(int)
    return Split(X[:rows], y[:rows], X[:2], y[:2])


def all_rows(paper_name: str, text: str = "log") -> tuple[Any, np.ndarray]:
    """Training and test rows together; ``text`` says how counts are prepared."""
    name = FILES[paper_name]
    stored = read_stored(name)
    X = sp.vstack([_matrix(stored, "X_train"), _matrix(stored, "X_test")], format="csr")
    y = np.concatenate([stored["y_train"], stored["y_test"]]).astype(int)
    return (TEXT[text] if SCALES[name] is log_counts else SCALES[name])(X), y


def stratified_splits(X: Any, y: np.ndarray, count: int) -> list[Split]:
    """Blondel et al.'s protocol: 4/5 of every class to train on, 1/5 to test."""
    shuffle = StratifiedShuffleSplit(count, test_size=0.2, random_state=0)
    return [Split(X[a], y[a], X[b], y[b]) for a, b in shuffle.split(X, y)]


def _matrix(stored: Any, name: str) -> Any:
    """As real numbers."""
    return read_matrix(stored, name) * (float(stored["scale"]) if "scale" in stored else 1.0)
