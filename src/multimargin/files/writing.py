"""Where a data file is written to: a path, by a rename at the end; standard output; or a file object."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ..system.atomic import replacing
from .source import STANDARD
from .streams import COMPRESSED, need_zstd


@contextmanager
def writing(path: Any) -> Iterator[Any]:
    """A binary file to write to, compressed if the ending of ``path`` says so."""
    if hasattr(path, "write"):
        yield path
    elif path == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        place = Path(os.fspath(path))
        with replacing(place) as file, _compressed(file, place) as inner:
            yield inner


@contextmanager
def _compressed(file: BinaryIO, path: Path) -> Iterator[Any]:
    kind = COMPRESSED.get(path.suffix.lower())
    if kind is None:
        yield file
        return
    with _PACK[kind](file, path) as inner:
        yield inner


_PACK: dict[str, Callable[[BinaryIO, Path], Any]] = {
    "gzip": lambda file, path: gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0),
    "bzip2": lambda file, path: bz2.BZ2File(file, "wb"),
    "xz": lambda file, path: lzma.LZMAFile(file, "wb"),  # noqa: SIM115
    "zstd": lambda file, path: need_zstd(str(path)).ZstdCompressor().stream_writer(file, closefd=False),
}
