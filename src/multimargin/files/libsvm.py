"""LIBSVM text: ``label index:value index:value ... # comment`` in every line."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _core
from ..system.memory import available_bytes
from .dataset import Dataset
from .labels import read_words, to_words
from .options import ReadOptions, WriteOptions
from .source import Source
from .types import dtype_for, is_dense

_MOST = np.iinfo(np.int64).max // 16  # the largest index that the native reader knows
_BYTES_PER_FEATURE = 16  # that a fit needs at least: a column pointer, a weight
_ALWAYS = 1 << 24  # so many features are never too many


def read(source: Source, options: ReadOptions) -> Dataset:
    """Read LIBSVM text."""
    if options.label not in (None, False):
        raise ValueError(
            "LIBSVM text has its labels at the beginning of the lines: label must be None, or False for a "
            f"file without labels, got {options.label!r}."
        )
    reader = _core.LibsvmReader(
        labelled=options.label is None,
        least_index=1 if options.zero_based is False else 0,
        most_index=_most_index(options),
    )
    part = source.part

    def parse() -> Any:
        source.feed(reader, options.n_threads)
        return None if options.label is False else read_words(source, reader)

    words = part.attempt(parse)
    facts = part.collect((*reader.indices, *reader.range, reader.rows, reader.entries))
    least_index, most_index = min(fact[0] for fact in facts), max(fact[1] for fact in facts)
    base = int(least_index > 0) if options.zero_based is None else int(not options.zero_based)
    part.attempt(lambda: _check_indices(source, reader, options, base))
    d = options.n_features or max(most_index + 1 - base, 0)
    limits = min(fact[2] for fact in facts), max(fact[3] for fact in facts), all(fact[4] for fact in facts)
    n, entries = sum(fact[5] for fact in facts), sum(fact[6] for fact in facts)
    if not n:
        raise source.error("there are no rows in it")
    if not d:
        raise source.error("there are no features in it; n_features says how many there should be")
    dtype = part.attempt(lambda: dtype_for(options.dtype, *limits, source.name))
    y = None if words is None else words(part)
    X = _arrays(reader, d, dtype, is_dense(n, d, entries, dtype), base, options.n_threads)
    mine = source.rows(X.shape[0])
    return Dataset(X[mine], None if y is None else y[mine], None, source.name)


def _most_index(options: ReadOptions) -> int:
    if options.n_features is None:
        return int(_MOST)
    return options.n_features - (options.zero_based is True)


def _check_indices(source: Source, reader: _core.LibsvmReader, options: ReadOptions, base: int) -> None:
    """Raise if an index is too large for ``n_features``, or for memory."""
    (_, most), (_, (line, column)) = reader.indices, reader.places
    if options.n_features is not None and most - base >= options.n_features:
        what = f"indices count from 0, and the index {most} is larger than n_features allows"
        raise source.error(what, source.line(line), column)
    if options.n_features is not None or most <= _ALWAYS:
        return
    needed, free = _BYTES_PER_FEATURE * most, available_bytes()
    if needed > free:
        what = (
            f"the index {most} makes so many features that a number or two for each would need "
            f"{needed / 1e9:.3g} GB, and {free / 1e9:.3g} GB are free; n_features={most} says that it "
            "is meant"
        )
        raise source.error(what, source.line(line), column)


def _arrays(
    reader: _core.LibsvmReader, d: int, dtype: np.dtype[Any], dense: bool, base: int, n_threads: int
) -> Any:
    """The rows that were read, as an array or a CSR matrix."""
    n, entries = reader.rows, reader.entries
    if dense:
        X = np.zeros((n, d), dtype)
        reader.dense(X, base, n_threads)
        return X
    index = np.int32 if max(entries, d) <= np.iinfo(np.int32).max else np.int64
    data, indices, indptr = np.empty(entries, dtype), np.empty(entries, index), np.empty(n + 1, index)
    reader.csr(data, indices, indptr, base, n_threads)
    X = sp.csr_array((data, indices, indptr), shape=(n, d))
    X.has_canonical_format = True
    return X


def write(file: Any, X: Any, y: Any, options: WriteOptions) -> None:
    """Write LIBSVM text."""
    words, codes = to_words(y, X.shape[0])
    for word in words:
        if y is not None and (not word or any(sign in word for sign in ":,#") or len(word.split()) != 1):
            raise ValueError(
                f"LIBSVM text cannot have the label {word!r}: a label is one word without any of ':,#'."
            )
    before = [f"{word} ".encode() if y is not None else b"" for word in words]
    style = _core.TextStyle(before, [b"\n"], b" ", b":", False)
    base = int(not options.zero_based)
    for rows in row_blocks(X):
        part = sp.csr_array(X[rows])
        part.sum_duplicates()
        part.eliminate_zeros()
        parts = (part.data, part.indices.astype(np.int64), part.indptr.astype(np.int64))
        file.write(_core.write_sparse(*parts, base, codes[rows], style))


def row_blocks(X: Any, values: int = 1 << 20) -> list[slice]:
    """Slices of rows with about so many values each."""
    n, per_row = X.shape[0], max(1, X.nnz // max(1, X.shape[0]) if sp.issparse(X) else X.shape[1])
    step = max(1, values // per_row)
    return [slice(first, first + step) for first in range(0, n, step)]
