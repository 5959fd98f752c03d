"""Tables in text: CSV and TSV, with or without a line of names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from .dataset import Dataset
from .labels import NAMES, column, read_words, to_words
from .libsvm import row_blocks
from .options import ReadOptions, WriteOptions
from .source import Source
from .types import dtype_for

NUMBER, WORD = 0, 1  # kinds of columns
_ESCAPED = re.compile(r'""|\\["\\]')
_IN_QUOTES = re.compile(rb'"[^"]*"')
_HINT = " (features must be numbers; label= names the column of labels)"


def read_csv(source: Source, options: ReadOptions) -> Dataset:
    """Read a table whose values are separated by commas, or by semicolons if its first line has one."""
    first = source.stream.head_lines(1, is_blank)
    semicolons = first and b";" in _IN_QUOTES.sub(b"", first[0])
    return read(source, options, ";" if semicolons else ",")


def read_tsv(source: Source, options: ReadOptions) -> Dataset:
    """Read a table whose values are separated by tabs."""
    return read(source, options, "\t")


def read(source: Source, options: ReadOptions, delimiter: str) -> Dataset:
    """Read a table of numbers with a column of labels."""
    rows = [_fields(source, line, delimiter) for line in source.stream.head_lines(2, is_blank)]
    if not rows:
        raise source.error("there are no rows in it")
    names = [field.strip() for field in rows[0]] if _is_header(rows, options.label) else None
    if names is not None:
        while is_blank(source.header_line()):
            pass
        if len(rows) < 2:
            raise source.error("there are no rows after the names of the columns")
    words = [k for k, field in enumerate(rows[-1][: len(rows[0])]) if not _is_number(field)]
    label = column(options.label, names, words, len(rows[0]), source.name)
    kinds = np.zeros(len(rows[0]), dtype=np.uint8)
    if label is not None:
        kinds[label] = WORD
    reader = _core.TableReader(ord(delimiter), '"', 0, kinds)
    X, y = numbers_and_labels(source, reader, options, len(kinds), label is not None, _HINT)
    features = None if names is None else [name for k, name in enumerate(names) if k != label]
    return Dataset(X, y, features, source.name)


def numbers_and_labels(
    source: Source,
    reader: _core.TableReader,
    options: ReadOptions,
    columns: int,
    labelled: bool,
    hint: str = "",
) -> tuple[Any, Any]:
    """Read the lines of a table of numbers, of which one column may be labels."""
    part, d = source.part, columns - labelled

    def parse() -> Any:
        if not d:
            raise source.error("it has one column only, the labels; label=False says that it has none")
        options.check_features(d, source.name)
        source.feed(reader, options.n_threads, hint)
        return read_words(source, reader) if labelled else None

    words = part.attempt(parse)
    facts = part.collect((*reader.range, reader.rows))
    if not sum(fact[3] for fact in facts):
        raise source.error("there are no rows in it")
    limits = min(fact[0] for fact in facts), max(fact[1] for fact in facts), all(fact[2] for fact in facts)
    dtype = part.attempt(lambda: dtype_for(options.dtype, *limits, source.name))
    y = None if words is None else words(part)
    X = np.empty((reader.rows, d), dtype)
    reader.values(X, options.n_threads)
    mine = source.rows(len(X))
    return X[mine], None if y is None else y[mine]


def is_blank(line: bytes) -> bool:
    """Whether a line has no values."""
    return not line.strip()


def _fields(source: Source, line: bytes, delimiter: str) -> list[str]:
    try:
        text = line.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise source.error(f"its first lines are not text in UTF-8 ({error.reason})") from error
    quote = re.compile(
        rf'[^\S{delimiter}]*"((?:""|\\["\\]|\\(?!["\\])|[^"\\])*)"[^{delimiter}]*({delimiter}|$)'
    )
    fields, at = [], 0
    while at <= len(text):
        found = quote.match(text, at)
        if found is not None:
            fields.append(_ESCAPED.sub(lambda sign: sign.group()[1], found.group(1)))
            at = found.end() if found.group(2) else len(text) + 1
        else:
            end = text.find(delimiter, at)
            end = len(text) if end < 0 else end
            fields.append(text[at:end].strip())
            at = end + 1
    return fields


def _is_header(rows: Sequence[Sequence[str]], label: Any) -> bool:
    """Whether the first line has the names of the columns.

    It has if it has a name of labels, or text in a column that has a number in the next line.
    """
    first = [field.strip() for field in rows[0]]
    if len(rows) < 2:
        return len(first) > 1 and not any(map(_is_number, first))
    if any(field.lower() in NAMES for field in first) or (isinstance(label, str) and label in first):
        return True
    return any(not _is_number(a) and _is_number(b) for a, b in zip(first, rows[1], strict=False))


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field


# -- write ---------------------------------------------------------------------------------------------
def write_csv(file: Any, X: Any, y: Any, options: WriteOptions) -> None:
    """Write a table whose values are separated by commas; labels are the first column."""
    write(file, X, y, options, ",")


def write_tsv(file: Any, X: Any, y: Any, options: WriteOptions) -> None:
    """Write a table whose values are separated by tabs."""
    write(file, X, y, options, "\t")


def write(file: Any, X: Any, y: Any, options: WriteOptions, delimiter: str) -> None:
    """Write the names of the columns and the rows."""
    names = list(options.feature_names or (f"x{k}" for k in range(1, X.shape[1] + 1)))
    labels, codes = to_words(y, X.shape[0])
    heading = names if y is None else [options.label, *names]
    file.write(delimiter.join(quoted(name, delimiter) for name in heading).encode() + b"\n")
    before = [quoted(word, delimiter).encode() if y is not None else b"" for word in labels]
    write_dense(file, X, codes, _core.TextStyle(before, [b"\n"], delimiter.encode(), b"", y is not None))


def write_dense(file: Any, X: Any, codes: np.ndarray, style: _core.TextStyle) -> None:
    """Write rows in a style, sparse ones with their zeros."""
    for rows in row_blocks(X, 1 << 18):
        part = X[rows]
        part = part.toarray() if hasattr(part, "toarray") else np.ascontiguousarray(part)
        file.write(_core.write_dense(part, codes[rows], style))


def quoted(word: str, delimiter: str) -> str:
    """A value in quotes if it needs them."""
    if "\n" in word or "\r" in word:
        raise ValueError(f"A table in text cannot have {word!r}: a value ends in its line.")
    plain = word and word == word.strip() and not any(sign in word for sign in (delimiter, '"', "\\"))
    return word if plain else '"' + word.replace("\\", "\\\\").replace('"', '""') + '"'
