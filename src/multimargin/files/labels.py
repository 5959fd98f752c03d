"""Labels of a file: integers if all are, else numbers if all are, else strings."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .parts import Part
from .source import Source

_WHOLE = re.compile(rb"[+-]?\d{1,18}")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MISSING = (b"", b"?")
NAMES = ("label", "class", "target", "y")  # of a column of labels


def kind_of(words: Sequence[bytes]) -> int:
    """0 if the words are integers, 1 if they are numbers, else 2."""
    if all(_WHOLE.fullmatch(word) for word in words):
        return 0
    return 1 if all(_NUMBER.fullmatch(word) for word in words) else 2


class Words(NamedTuple):
    """The labels that a native reader has found, not yet of one kind."""

    values: list[str]  # the different ones
    kind: int  # of this part's
    codes: np.ndarray  # which of the values each row has

    def __call__(self, part: Part) -> np.ndarray:
        """The labels; the processes that read the parts of a file agree on their kind."""
        kind = max(part.collect(self.kind))
        convert, dtype = ((int, np.int64), (float, np.float64), (str, np.str_))[kind]
        return np.asarray(np.array([convert(value) for value in self.values], dtype=dtype)[self.codes])


def read_words(source: Source, reader: Any, column: int = 0) -> Words:
    """The labels in a column of a native reader."""
    names, lines = reader.words(column)
    codes = np.empty(reader.rows, dtype=np.int64)
    reader.codes(column, codes)
    values = []
    for name, line in zip(names, lines, strict=True):
        if name in _MISSING:
            raise source.error("a label is missing", source.line(line))
        if b"\0" in name:
            raise source.error("a label has a byte 0", source.line(line))
        values.append(_decoded(source, name, line))
    kind = kind_of(names)
    if kind == 1:
        for value, line in zip(values, lines, strict=True):
            if not math.isfinite(float(value)):
                raise source.error(f"the label {value} is beyond float64", source.line(line))
    return Words(values, kind, codes)


def _decoded(source: Source, name: bytes, line: int) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise source.error(f"a label is not UTF-8 ({error.reason})", source.line(line)) from error


def to_words(y: Any, n: int) -> tuple[list[str], np.ndarray]:
    """The different labels as text, and which of them each row has; no label at all is one empty text."""
    if y is None:
        return [""], np.zeros(n, dtype=np.int64)
    values, codes = np.unique(y, return_inverse=True)
    kind = values.dtype.kind
    texts = [repr(float(v)) if kind == "f" else str(int(v)) if kind in "iub" else str(v) for v in values]
    return texts, codes.reshape(-1).astype(np.int64)


def column(
    label: Any, names: Sequence[str] | None, words: Sequence[int], count: int, source: str
) -> int | None:
    """The number of the column of labels; None if there is none.

    ``label`` is its name or number, False for no labels, or None: then it is a column named label, class,
    target or y, else the only one of ``words`` (columns that have text), else the last.
    """
    if label is False:
        return None
    if label is None:
        lower = [name.strip().lower() for name in names or []]
        named = next((lower.index(name) for name in NAMES if name in lower), None)
        return named if named is not None else words[0] if len(words) == 1 else count - 1
    if isinstance(label, str):
        if names is None or label not in names:
            known = "its columns have no names" if names is None else f"its columns are {_listed(names)}"
            raise ValueError(f"{source} has no column {label!r}: {known}.")
        return list(names).index(label)
    if not -count <= label < count:
        raise ValueError(f"{source} has {count} columns, so label={label} names none of them.")
    return int(label) % count


def check_label(label: Any) -> Any:
    """Raise unless it is a name, a number, False or None."""
    number = isinstance(label, int | np.integer) and not isinstance(label, bool | np.bool_)
    if label is None or label is False or isinstance(label, str) or number:
        return label
    raise TypeError(f"label must be the name or number of a column, False or None, got {label!r}.")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:10]))
    return shown if len(names) <= 10 else f"{shown}, ... ({len(names)} in all)"
