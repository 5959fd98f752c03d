"""The formats of data files: names, endings and first bytes of the files, who reads and writes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import arff, arrow_files, libsvm, msvmpack, numpy_files, tables
from .archive import is_beginning
from .dataset import Dataset
from .options import ReadOptions, WriteOptions
from .source import Source
from .streams import COMPRESSED

_ENTRY = re.compile(rb"\s(qid|\d+):")
_COMMENT = re.compile(rb"\s*(#.*)?$")


@dataclass(frozen=True)
class Format:
    """A format of data files."""

    suffixes: tuple[str, ...]
    read: Callable[[Source, ReadOptions], Dataset]
    write: Callable[[Any, Any, Any, WriteOptions], None]


FORMATS: dict[str, Format] = {
    "libsvm": Format((".libsvm", ".svm", ".svmlight"), libsvm.read, libsvm.write),
    "csv": Format((".csv",), tables.read_csv, tables.write_csv),
    "tsv": Format((".tsv", ".tab"), tables.read_tsv, tables.write_tsv),
    "npy": Format((".npy",), numpy_files.read_npy, numpy_files.write_npy),
    "npz": Format((".npz",), numpy_files.read_npz, numpy_files.write_npz),
    "parquet": Format((".parquet", ".pq"), arrow_files.read_parquet, arrow_files.write_parquet),
    "arrow": Format((".arrow", ".feather", ".ipc"), arrow_files.read_arrow, arrow_files.write_arrow),
    "msvmpack": Format((".msvmpack",), msvmpack.read, msvmpack.write),
    "arff": Format((".arff",), arff.read, arff.write),
}
_BY_SUFFIX = {suffix: name for name, each in FORMATS.items() for suffix in each.suffixes}
_MAGIC = {
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
}


def named(name: str) -> Format:
    """The format of that name."""
    if not isinstance(name, str) or name not in FORMATS:
        known = ", ".join(map(repr, ["auto", *FORMATS]))
        raise ValueError(f"Unknown format {name!r}. Use one of {known}.")
    return FORMATS[name]


def to_read(name: str, source: Source) -> Format:
    """The format of a file that is read: by its name, by the ending of the file, or by how it begins."""
    if name != "auto":
        return named(name)
    known = _BY_SUFFIX.get(source.suffixes[-1]) if source.suffixes else None
    return FORMATS[known or guess(source)]


def to_write(name: str, path: str | None) -> Format:
    """The format of a file that is written: by its name, or by the ending of the file."""
    if name != "auto":
        return named(name)
    suffixes = [suffix.lower() for suffix in Path(path or "").suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    if suffixes and suffixes[-1] in _BY_SUFFIX:
        return FORMATS[_BY_SUFFIX[suffixes[-1]]]
    known = ", ".join(_BY_SUFFIX)
    raise ValueError(f"format= is needed, because {path!r} has none of the endings {known}.")


def guess(source: Source) -> str:
    """The format that a file's first bytes look like."""
    start = source.stream.head(64)
    if is_beginning(start):
        raise source.error("it is a model file of multimargin, not a data file")
    for magic, name in _MAGIC.items():
        if start.startswith(magic):
            return name
    lines = source.stream.head_lines(3, lambda line: bool(_COMMENT.match(line)))
    if not lines:
        raise source.error("there are no rows in it")
    first = lines[0].strip()
    if first[:1] in b"%@" and first.startswith((b"%", b"@")):
        return "arff"
    if any(_ENTRY.search(line) for line in lines):
        return "libsvm"
    if len(lines) == 3 and all(line.strip().isdigit() for line in lines[:2]):
        values = len(lines[2].split())
        return "msvmpack" if int(lines[1][:18]) in (values, values - 1) else "libsvm"
    for sign, name in ((b"\t", "tsv"), (b",", "csv"), (b";", "csv")):
        if sign in first:
            return name
    raise source.error(f"its format cannot be told; give format=, one of {', '.join(map(repr, FORMATS))}")
