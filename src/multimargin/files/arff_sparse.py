"""Sparse rows of ARFF: ``{index value, index value, ...}``, where indices count from 0."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import scipy.sparse as sp

from .arff_header import Attribute, unquoted
from .labels import Words, kind_of
from .options import ReadOptions
from .source import Source
from .types import dtype_for, is_dense

_ENTRY = re.compile(r"""\s*(\d+)\s+('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^\s,{}'"]+)\s*(?:,|$)""")


class _Rows:
    """A reader of sparse rows, to which blocks of text are fed."""

    def __init__(self, attributes: list[Attribute], label: int | None, coded: dict[int, dict[str, float]]):
        self._attributes, self._label, self._coded = attributes, label, coded
        self.labels: list[str] = []
        self.indices: list[int] = []
        self.values: list[float] = []
        self.ends = [0]
        self._line = 0
        self._places = [k - (label is not None and k > label) for k in range(len(attributes))]
        # An attribute that is left out is 0, or the first of its nominal values.
        self._left_out = {k: next(iter(meaning.values())) for k, meaning in coded.items()}

    @property
    def nbytes(self) -> int:
        return 64 * len(self.values) + 64 * len(self.ends)

    def feed(self, block: np.ndarray, n_threads: int) -> tuple[int, int, bytes] | None:
        for line in block.tobytes().split(b"\n"):
            self._line += 1
            try:
                self._read(line.decode().strip())
            except UnicodeDecodeError:
                return self._line, 1, b"it is not text in UTF-8"
            except _FaultError as fault:
                return self._line, fault.column, fault.what.encode()
        self._line -= 1  # what follows the last line end
        return None

    def _read(self, text: str) -> None:
        if not text or text.startswith("%"):
            return
        if not (text.startswith("{") and text.endswith("}")):
            raise _FaultError(1, "a row in braces expected")
        row, label, inside, at = dict(self._left_out), None, text[1:-1].rstrip(), 0
        seen: set[int] = set()
        while at < len(inside):
            found = _ENTRY.match(inside, at)
            if found is None:
                raise _FaultError(at + 2, f"index value expected, got {inside[at : at + 30]!r}")
            k, value = int(found.group(1)[:18]), unquoted(found.group(2))
            if k >= len(self._attributes) or k in seen:
                raise _FaultError(
                    at + 2, f"the index {k} is " + ("there twice" if k in seen else "too large")
                )
            seen.add(k)
            if k == self._label:
                label = value
            else:
                row[k] = self._number(k, value, at + 2)
            at = found.end()
        self._add(row, label)

    def _number(self, k: int, value: str, column: int) -> float:
        if k in self._coded:
            if value not in self._coded[k]:
                name = self._attributes[k].name
                raise _FaultError(column, f"{value!r} is none of the values of the attribute {name!r}")
            return self._coded[k][value]
        try:
            number = float(value)
        except ValueError:
            number = np.nan
        if not np.isfinite(number):
            what = "a value is missing" if value == "?" else f"a finite number expected, got {value!r}"
            raise _FaultError(column, what)
        return number

    def _add(self, row: dict[int, float], label: str | None) -> None:
        if self._label is not None:
            attribute = self._attributes[self._label]
            label = label if label is not None else (attribute.values or ("0",))[0]
            if label == "?" or (attribute.kind == "nominal" and label not in attribute.values):
                raise _FaultError(1, f"the label {label!r} is none of the values of {attribute.name!r}")
            self.labels.append(label)
        entries = sorted((self._places[k], value) for k, value in row.items() if value)
        self.indices += [k for k, _ in entries]
        self.values += [value for _, value in entries]
        self.ends.append(len(self.values))


class _FaultError(Exception):
    def __init__(self, column: int, what: str) -> None:
        self.column, self.what = column, what


def read_sparse(
    source: Source,
    options: ReadOptions,
    attributes: list[Attribute],
    label: int | None,
    coded: dict[int, dict[str, float]],
) -> tuple[Any, Any]:
    """Read all rows: dense or sparse as LIBSVM text would be."""
    rows, part = _Rows(attributes, label, coded), source.part
    part.attempt(lambda: source.feed(rows, options.n_threads))
    values, n, d = np.array(rows.values), len(rows.ends) - 1, len(attributes) - (label is not None)
    limits = (
        float(values.min(initial=0)),
        float(values.max(initial=0)),
        bool((values == np.trunc(values)).all()),
    )
    facts = part.collect((*limits, n, len(values)))
    least, most = min(fact[0] for fact in facts), max(fact[1] for fact in facts)
    dtype = part.attempt(lambda: dtype_for(options.dtype, least, most, all(f[2] for f in facts), source.name))
    X = sp.csr_array(
        (values.astype(dtype), np.array(rows.indices, int), np.array(rows.ends, int)), shape=(n, d)
    )
    if is_dense(sum(fact[3] for fact in facts), d, sum(fact[4] for fact in facts), dtype):
        X = X.toarray()
    mine = source.rows(n)
    return X[mine], None if label is None else _labels(rows.labels, source)[mine]


def _labels(labels: list[str], source: Source) -> np.ndarray:
    names, codes = np.unique(np.array(labels, dtype=str), return_inverse=True)
    values = names.tolist()
    return Words(values, kind_of([value.encode() for value in values]), codes.reshape(-1))(source.part)
