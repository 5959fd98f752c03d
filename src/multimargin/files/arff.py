"""ARFF, Weka's format: a header that names the attributes, then rows of values, dense or sparse.

Features must be numbers. A nominal attribute is read as numbers if its values are numbers, and as 0 and 1 if
it has two values. In sparse rows an attribute that is left out is 0, or the first of its nominal values.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import scipy.sparse as sp

from .. import _core
from .arff_header import Attribute, read_header
from .arff_sparse import read_sparse
from .dataset import Dataset
from .labels import Words, column, read_words, to_words
from .libsvm import row_blocks
from .options import ReadOptions, WriteOptions
from .source import Source
from .tables import write_dense
from .types import converted

_PLAIN = re.compile(r"[\w.+-]+")


def read(source: Source, options: ReadOptions) -> Dataset:
    """Read an ARFF file."""
    attributes = read_header(source)
    names = [attribute.name for attribute in attributes]
    words = [k for k, attribute in enumerate(attributes) if attribute.kind != "number"]
    label = column(options.label, names, words, len(names), source.name)
    features = [k for k in range(len(names)) if k != label]
    if not features:
        raise source.error("it has one attribute only, the labels; label=False says that it has none")
    options.check_features(len(features), source.name)
    coded = {k: attributes[k].numbers(source) for k in features if attributes[k].kind != "number"}
    first = source.stream.head_lines(1, _is_skipped)
    if not first:
        raise source.error("there are no rows in it")
    if first[0].lstrip().startswith(b"{"):
        X, y = read_sparse(source, options, attributes, label, coded)
    else:
        X, y = _read_dense(source, options, attributes, label, coded)
    return Dataset(X, y, [names[k] for k in features], source.name)


def _is_skipped(line: bytes) -> bool:
    return not line.strip() or line.lstrip().startswith(b"%")


def _read_dense(
    source: Source,
    options: ReadOptions,
    attributes: list[Attribute],
    label: int | None,
    coded: dict[int, dict[str, float]],
) -> tuple[Any, Any]:
    """Rows of values between commas."""
    part = source.part
    at_words = sorted([*coded, *([] if label is None else [label])])
    kinds = np.zeros(len(attributes), dtype=np.uint8)
    kinds[at_words] = 1
    reader = _core.TableReader(ord(","), "\"'", ord("%"), kinds)

    def parse() -> tuple[Any, dict[int, Words]]:
        source.feed(reader, options.n_threads)
        found = {k: _nominal(source, reader, at, attributes[k]) for at, k in enumerate(at_words)}
        numbers = np.empty((reader.rows, int((kinds == 0).sum())))
        reader.values(numbers, options.n_threads)
        return numbers, found

    numbers, words = part.attempt(parse)
    X = np.empty((reader.rows, len(attributes)))
    X[:, kinds == 0] = numbers
    for k, meaning in coded.items():
        X[:, k] = np.array([meaning[value] for value in words[k].values])[words[k].codes]
    y = None if label is None else words[label](part)
    mine = source.rows(len(X))
    features = [k for k in range(len(attributes)) if k != label]
    return converted(X[mine][:, features], options.dtype, source), None if y is None else y[mine]


def _nominal(source: Source, reader: _core.TableReader, at: int, attribute: Attribute) -> Words:
    """A column of words, which must be values of the attribute if that is nominal."""
    words = read_words(source, reader, at)
    lines = reader.words(at)[1]
    for value, line in zip(words.values, lines, strict=True):
        if attribute.kind == "nominal" and value not in attribute.values:
            what = f"{value!r} is none of the values of the attribute {attribute.name!r}"
            raise source.error(what, source.line(line))
    return words


# -- write ---------------------------------------------------------------------------------------------
def write(file: Any, X: Any, y: Any, options: WriteOptions) -> None:
    """Write an ARFF file: sparse rows if X is sparse. Labels are the first attribute, nominal."""
    names = list(options.feature_names or (f"x{k}" for k in range(1, X.shape[1] + 1)))
    words, codes = to_words(y, X.shape[0])
    quoted = [_quoted(word) for word in words] if y is not None else []
    lines = ["@relation data", ""]
    if y is not None:
        lines.append(f"@attribute {_quoted(options.label)} {{{','.join(quoted)}}}")
    lines += [f"@attribute {_quoted(name)} numeric" for name in names] + ["", "@data", ""]
    file.write("\n".join(lines).encode())
    if not sp.issparse(X):
        before = [word.encode() for word in quoted] or [b""]
        write_dense(file, X, codes, _core.TextStyle(before, [b"\n"], b",", b"", y is not None))
        return
    before = [f"{{0 {word}".encode() for word in quoted] or [b"{"]
    style = _core.TextStyle(before, [b"}\n"], b",", b" ", y is not None)
    for rows in row_blocks(X):
        part = sp.csr_array(X[rows])
        parts = (part.data, part.indices.astype(np.int64), part.indptr.astype(np.int64))
        file.write(_core.write_sparse(*parts, int(y is not None), codes[rows], style))


def _quoted(word: str) -> str:
    if "\n" in word or "\r" in word:
        raise ValueError(f"ARFF cannot have {word!r}: a value ends in its line.")
    if _PLAIN.fullmatch(word):
        return word
    return "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'"
