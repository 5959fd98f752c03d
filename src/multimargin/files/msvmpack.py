"""MSVMpack's data files: the number of rows, that of features, and then ``x1 ... xd label`` per line."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .dataset import Dataset
from .labels import to_words
from .options import ReadOptions, WriteOptions
from .source import Source
from .tables import NUMBER, WORD, is_blank, numbers_and_labels, write_dense


def read(source: Source, options: ReadOptions) -> Dataset:
    """Read a file of MSVMpack."""
    if options.label not in (None, False):
        raise ValueError(
            "MSVMpack's files have labels at the ends of the lines: label must be None or False."
        )
    n, d = _count(source, "rows"), _count(source, "features")
    labelled = options.label is None
    first = source.stream.head_lines(1, is_blank)
    if not first or d > len(first[0]):
        raise source.error(f"a line of {d} features expected", source.lines_read + 1)
    kinds = np.array([NUMBER] * d + [WORD] * labelled, dtype=np.uint8)
    reader = _core.TableReader(0, "", 0, kinds)
    X, y = numbers_and_labels(source, reader, options, len(kinds), labelled)
    counts = source.part.collect(X.shape[0])
    if len(counts) == source.part.size and sum(counts) != n:
        raise source.error(f"its first line says that it has {n} rows, but there are {sum(counts)}")
    return Dataset(X, y, None, source.name)


def _count(source: Source, what: str) -> int:
    line = source.header_line()
    while line and is_blank(line):
        line = source.header_line()
    number = line.strip()
    if not number.isdigit() or not 1 <= int(number[:19]) < 1 << 40:
        got = number[:30].decode(errors="backslashreplace")
        raise source.error(f"the number of {what} expected, got {got!r}", max(1, source.lines_read), 1)
    return int(number)


def write(file: Any, X: Any, y: Any, options: WriteOptions) -> None:
    """Write a file of MSVMpack."""
    words, codes = to_words(y, X.shape[0])
    if y is not None and any(len(word.split()) != 1 for word in words):
        raise ValueError("MSVMpack's files have labels of one word, integers from 1 on for MSVMpack itself.")
    after = [f" {word}\n".encode() if y is not None else b"\n" for word in words]
    file.write(f"{X.shape[0]}\n{X.shape[1]}\n".encode())
    write_dense(file, X, codes, _core.TextStyle([b""], after, b" ", b"", False))
