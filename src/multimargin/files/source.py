"""A data file that is being read: where its bytes come from, which of them are wanted, and its messages."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np

from ..system.memory import available_bytes
from .faults import MalformedFileError, malformed
from .parts import Part
from .streams import COMPRESSED, Stream, _Raw, of_object

STANDARD = "-"  # the name of standard input and output
_LOOK = 256 << 20  # bytes of content after which the free memory is looked at again
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BOM = b"\xef\xbb\xbf"


class TextReader(Protocol):
    """A native reader of text."""

    @property
    def nbytes(self) -> int:
        """Bytes of what has been read."""

    def feed(self, block: np.ndarray, n_threads: int) -> tuple[int, int, bytes] | None:
        """Read whole lines; where and why it could not, if so."""


class Source:
    """An open data file."""

    def __init__(self, stream: Stream, part: Part, path: Path | None, file: BinaryIO | None) -> None:
        self.stream, self.part = stream, part
        self.name = stream.name
        self._lines = 0  # lines of the header that have been read
        self._bytes = 0  # their bytes
        self._first = 0  # the byte at which the lines of this part begin
        self._file = file if stream.compression is None else None  # if its bytes can be chosen
        self.path = path if self._file is not None else None  # if it is a plain file
        if stream.head(3).startswith(_UTF16):
            raise malformed(self.name, "it is text in UTF-16; save it as UTF-8")
        if stream.head(3) == _BOM:
            self._bytes = stream.readinto(memoryview(bytearray(3)))

    @property
    def suffixes(self) -> list[str]:
        """The endings of the name, without that of a compressed file."""
        found = [suffix.lower() for suffix in Path(self.name).suffixes]
        return found[:-1] if found and found[-1] in COMPRESSED else found

    def error(self, what: str, line: int | None = None, column: int | None = None) -> MalformedFileError:
        """The error of a place of this file."""
        return malformed(self.name, what, line, column)

    # -- text ------------------------------------------------------------------------------------------
    def header_line(self) -> bytes:
        """The next line, which belongs to the header: all parts read it."""
        line = self.stream.readline()
        self._lines += bool(line)
        self._bytes += len(line)
        return line

    @property
    def lines_read(self) -> int:
        """Lines of the header."""
        return self._lines

    @property
    def shares_bytes(self) -> bool:
        """Whether this part reads its own bytes only; otherwise it reads all, and takes its rows of them."""
        return self.part.size > 1 and self._file is not None

    def feed(self, reader: TextReader, n_threads: int, hint: str = "") -> None:
        """Read the lines after the header, or those of this part."""
        stream, looked = self.stream, 0
        if self.shares_bytes:
            assert self._file is not None
            self._first, end = self.part.lines(self._file, self._bytes, _size(self._file))
            stream = Stream(_between(self._file, self._first, end), self.name)
        for block in stream.blocks():
            fault = reader.feed(block, n_threads)
            if fault is not None:
                line, column, what = fault
                raise self.error(what.decode(errors="backslashreplace") + hint, self.line(line), column)
            if reader.nbytes > looked + _LOOK:  # reading how much is free takes a while
                looked, free = reader.nbytes, available_bytes()
                if reader.nbytes > free:
                    raise self.error(f"its content is too large for memory: {looked / 1e9:.3g} GB so far")

    def line(self, number: int) -> int:
        """The number in the file of a line that ``feed`` has read."""
        if not self.shares_bytes:
            return self._lines + number
        assert self._file is not None
        self._file.seek(0)
        left = self._first
        while left:
            text = self._file.read(min(left, 1 << 20))
            number += text.count(b"\n")
            left -= len(text)
        return number

    def rows(self, n: int) -> slice:
        """The rows of this part, if it has read all ``n`` rows."""
        return slice(None) if self.shares_bytes else slice(*self.part.bounds(n))

    # -- other files -----------------------------------------------------------------------------------
    def whole(self) -> Any:
        """The path of a plain file, or all its bytes as a file in memory."""
        return self.path if self.path is not None else io.BytesIO(self.stream.read())


def check_readable(path: Any) -> None:
    """Raise ``OSError`` if a file cannot be read; one process may not see what others do."""
    if hasattr(path, "read") or path == STANDARD:
        return
    if not stat.S_ISFIFO(os.stat(path).st_mode):  # opening a pipe would take its content
        with open(path, "rb"):
            pass


@contextmanager
def opened(path: Any, part: Part) -> Iterator[Source]:
    """Open a data file for reading: a path, "-" for standard input, or a binary file object."""
    if hasattr(path, "read"):
        name = getattr(path, "name", None)
        yield Source(
            Stream.open(of_object(path), name if isinstance(name, str) else "<file>"), part, None, None
        )
        return
    if path == STANDARD:
        if part.size > 1:
            raise ValueError("Several processes cannot share standard input. Give the name of a file.")
        yield Source(Stream.open(of_object(sys.stdin.buffer), "<standard input>"), part, None, None)
        return
    place = Path(os.fspath(path))
    with open(place, "rb", buffering=0) as file:
        if not file.seekable():  # a named pipe
            yield Source(Stream.open(of_object(file), str(place)), part, None, None)
            return
        with open(place, "rb") as again:  # with a position of its own
            yield Source(Stream.open(file, str(place)), part, place, again)


def _size(file: BinaryIO) -> int:
    return file.seek(0, os.SEEK_END)


def _between(file: BinaryIO, first: int, end: int) -> Any:
    """The bytes of a file from ``first`` to ``end``."""
    at = first

    def readinto(view: memoryview) -> int:
        nonlocal at
        file.seek(at)
        count = int(file.readinto(view[: end - at]))  # type: ignore[attr-defined]
        at += count
        return count

    return _Raw(readinto)
