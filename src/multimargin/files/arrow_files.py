"""Parquet and Arrow files, by pyarrow (the extra ``arrow``)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .dataset import Dataset
from .labels import column
from .options import ReadOptions, WriteOptions
from .source import Source
from .types import converted


def need_pyarrow() -> Any:
    """The package pyarrow; an error that names the extra if it is not there."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "Parquet and Arrow files need the package pyarrow: pip install multimargin[arrow]"
        ) from error
    return pyarrow


def read_parquet(source: Source, options: ReadOptions) -> Dataset:
    """Read a Parquet file; of a part only the row groups that it needs."""
    pyarrow = need_pyarrow()

    def table() -> Any:
        file = pyarrow.parquet.ParquetFile(source.whole())
        groups = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
        first, end = source.part.bounds(sum(groups))
        starts = np.concatenate([[0], np.cumsum(groups, dtype=np.int64)])
        wanted = [k for k in range(len(groups)) if starts[k] < end and starts[k + 1] > first]
        if not wanted:
            return file.schema_arrow.empty_table()
        return file.read_row_groups(wanted).slice(first - int(starts[wanted[0]]), end - first)

    return _read(source, options, pyarrow, table)


def read_arrow(source: Source, options: ReadOptions) -> Dataset:
    """Read an Arrow (Feather) file or stream; a plain file is mapped into memory."""
    pyarrow = need_pyarrow()

    def table() -> Any:
        is_file = source.stream.head(6) == b"ARROW1"
        whole = source.whole()
        place = (
            pyarrow.memory_map(str(whole))
            if source.path is not None
            else pyarrow.BufferReader(whole.getvalue())
        )
        found = (pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream)(place).read_all()
        first, end = source.part.bounds(found.num_rows)
        return found.slice(first, end - first)

    return _read(source, options, pyarrow, table)


def _read(source: Source, options: ReadOptions, pyarrow: Any, table: Any) -> Dataset:
    """Samples and labels of the rows of a table that belong to this part."""

    def parse() -> Dataset:
        try:
            rows = table()
            rows.validate(full=True)  # pyarrow believes the lengths in a file: wrong ones would crash it
        except (pyarrow.ArrowException, OSError, MemoryError) as error:
            raise source.error(f"pyarrow cannot read it ({error})") from error
        names = [str(name) for name in rows.column_names]
        if not names:
            raise source.error("there are no columns in it")
        words = [k for k, field in enumerate(rows.schema) if not _is_number(pyarrow, field.type)]
        at = column(options.label, names, words, len(names), source.name)
        features = [k for k in range(len(names)) if k != at]
        options.check_features(len(features), source.name)
        if not features:
            raise source.error("it has one column only, the labels; label=False says that it has none")
        X = _matrix(source, pyarrow, rows, features)
        y = None if at is None else _labels(source, pyarrow, rows, at)
        return Dataset(X, y, [names[k] for k in features], source.name)

    found = source.part.attempt(parse)
    counts = source.part.collect(found.X.shape[0])
    if len(counts) == source.part.size and not sum(counts):
        raise source.error("there are no rows in it")
    return replace(found, X=converted(found.X, options.dtype, source))


def _is_number(pyarrow: Any, kind: Any) -> bool:
    types = pyarrow.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _matrix(source: Source, pyarrow: Any, rows: Any, features: list[int]) -> np.ndarray:
    """The columns of numbers, side by side."""
    kinds = [rows.schema.field(k).type for k in features]
    for k, kind in zip(features, kinds, strict=True):
        if not _is_number(pyarrow, kind):
            raise source.error(f"the column {rows.column_names[k]!r} has values of type {kind}, not numbers")
        _check_nulls(source, pyarrow, rows, k)
    dtypes = [
        np.dtype(np.uint8) if pyarrow.types.is_boolean(kind) else np.dtype(kind.to_pandas_dtype())
        for kind in kinds
    ]
    X = np.empty((rows.num_rows, len(features)), np.result_type(*dtypes))
    for at, k in enumerate(features):
        X[:, at] = rows.column(k).to_numpy()
    return X.astype(np.float32) if X.dtype == np.float16 else X


def _check_nulls(source: Source, pyarrow: Any, rows: Any, k: int) -> None:
    if rows.column(k).null_count:
        row = pyarrow.compute.index(rows.column(k).is_null(), True).as_py()
        raise source.error(f"a value is missing in row {row + 1} of the column {rows.column_names[k]!r}")


def _labels(source: Source, pyarrow: Any, rows: Any, k: int) -> np.ndarray:
    _check_nulls(source, pyarrow, rows, k)
    values, kind = rows.column(k), rows.schema.field(k).type
    if pyarrow.types.is_dictionary(kind):
        values = values.cast(kind.value_type)
        kind = kind.value_type
    if _is_number(pyarrow, kind):
        y = np.asarray(values.to_numpy())
        return y.astype(np.int64) if y.dtype.kind in "bi" else y
    if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
        raise source.error(f"the labels in column {rows.column_names[k]!r} have the type {kind}")
    return np.array(values.to_pylist(), dtype=str)


# -- write ---------------------------------------------------------------------------------------------
def write_parquet(file: Any, X: Any, y: Any, options: WriteOptions) -> None:
    """Write a Parquet file."""
    pyarrow = need_pyarrow()
    pyarrow.parquet.write_table(_table(pyarrow, X, y, options), file)


def write_arrow(file: Any, X: Any, y: Any, options: WriteOptions) -> None:
    """Write an Arrow file."""
    pyarrow = need_pyarrow()
    table = _table(pyarrow, X, y, options)
    with pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _table(pyarrow: Any, X: Any, y: Any, options: WriteOptions) -> Any:
    X = X.toarray() if hasattr(X, "toarray") else X
    names = list(options.feature_names or (f"x{k}" for k in range(1, X.shape[1] + 1)))
    columns = [pyarrow.array(np.ascontiguousarray(X[:, k])) for k in range(X.shape[1])]
    if y is not None:
        names, columns = [options.label, *names], [pyarrow.array(y), *columns]
    return pyarrow.table(columns, names=names)
