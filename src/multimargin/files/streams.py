"""Bytes of a file, of standard input or of a file object, unpacked on the way if they are compressed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np

from ..system.memory import available_bytes
from .faults import malformed

BLOCK = 16 << 20  # bytes of text that are read at a time
_STEP = 1 << 16  # bytes by which a look ahead grows
_ZSTD_STEP = 1 << 11  # compressed bytes at a time: a few may stand for very many

_MAGIC: list[tuple[bytes, str]] = [
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
]
COMPRESSED = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}


class Stream:
    """Bytes that are read once, with a look ahead.

    ``name`` is for messages. Errors of damaged compressed files are raised as ``ValueError``.
    """

    def __init__(self, raw: BinaryIO, name: str, compression: str | None = None) -> None:
        self._raw, self.name, self.compression = raw, name, compression
        self._ahead = b""
        self._errors: tuple[type[BaseException], ...] = ()

    @classmethod
    def open(cls, raw: BinaryIO, name: str) -> Stream:
        """A stream of what ``raw`` holds: its first bytes tell whether that is compressed."""
        packed = cls(raw, name)
        start = packed.head(8)
        kind = next((kind for magic, kind in _MAGIC if start.startswith(magic)), None)
        if kind is None:
            return packed
        unpacked, errors = _UNPACK[kind](io.BufferedReader(_Raw(packed.readinto)), name)
        stream = cls(unpacked, name, kind)
        stream._errors = errors
        return stream

    def head(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer at the end; they are read again later."""
        while len(self._ahead) < size:
            more = self._read(size - len(self._ahead))
            if not more:
                break
            self._ahead += more
        return self._ahead[:size]

    def head_lines(self, count: int, skipped: Callable[[bytes], bool]) -> list[bytes]:
        """The next ``count`` lines that are not ``skipped``, without their ends; they stay to be read."""
        size = _STEP
        while True:
            text = self.head(size)
            *whole, last = text.split(b"\n")
            if len(text) < size and last:
                whole.append(last)
            lines = [line for line in whole if not skipped(line)][:count]
            if len(lines) == count or len(text) < size:
                return lines
            size *= 2

    def readline(self) -> bytes:
        """The next line with its end; empty at the end of the file."""
        size = _STEP
        while True:
            text = self.head(size)
            end = text.find(b"\n") + 1
            if end or len(text) < size:
                line = text[: end or len(text)]
                self._ahead = self._ahead[len(line) :]
                return line
            size *= 2

    def readinto(self, view: memoryview) -> int:
        """Fill some of ``view``; 0 at the end."""
        if self._ahead:
            count = min(len(view), len(self._ahead))
            view[:count] = self._ahead[:count]
            self._ahead = self._ahead[count:]
            return count
        try:
            return int(self._raw.readinto(view))  # type: ignore[attr-defined]
        except self._errors as error:
            raise malformed(self.name, f"the compressed file is damaged or incomplete ({error})") from error

    def _read(self, size: int) -> bytes:
        buffer = bytearray(max(size, _STEP))
        ahead, self._ahead = self._ahead, b""
        count = self.readinto(memoryview(buffer))
        self._ahead = ahead
        return bytes(buffer[:count])

    def read(self) -> bytes:
        """All bytes that are left, if memory can hold them."""
        parts, total, most = [], 0, available_bytes() // 2
        size = _STEP
        while count := self.readinto(memoryview(part := bytearray(size))):
            parts.append(part[:count])
            total += count
            size = min(4 * size, BLOCK)
            if total > most:
                what = f"it unpacks to more than {most / 1e9:.3g} GB, half of the free memory"
                raise malformed(self.name, what)
        return b"".join(parts)

    def blocks(self) -> Iterator[np.ndarray]:
        """Whole lines, some megabytes at a time, as bytes that are valid until the next ones are read."""
        buffer, kept = bytearray(_STEP), 0
        while True:
            view = memoryview(buffer)
            count = self.readinto(view[kept:])
            if not count:
                break
            total = kept + count
            end = buffer.rfind(b"\n", kept, total) + 1
            if end:
                yield np.frombuffer(view[:end], np.uint8)
            kept = total - end
            full = total == len(buffer)
            pays = full and len(buffer) < BLOCK and _can_double(buffer)  # the file is long
            if pays or (full and not end):
                buffer = self._longer(buffer, end)
            else:
                buffer[:kept] = buffer[end:total]
        if kept:
            yield np.frombuffer(memoryview(buffer)[:kept], np.uint8)

    def _longer(self, buffer: bytearray, first: int) -> bytearray:
        """A buffer of twice the length with what is in this one from ``first`` on."""
        if not _can_double(buffer):
            what = f"a line has more than {len(buffer)} bytes, a third of the free memory"
            raise malformed(self.name, what)
        return buffer[first:] + bytearray(len(buffer) + first)


def _can_double(buffer: bytearray) -> bool:
    return 3 * len(buffer) <= available_bytes()


class _Raw(io.RawIOBase):
    """What a function reads, as a raw file."""

    def __init__(self, readinto: Callable[[memoryview], int]) -> None:
        self._readinto = readinto

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._readinto(memoryview(buffer).cast("B"))


def of_object(file: Any) -> BinaryIO:
    """A file object of the user's, which need only have ``read``, and which stays open."""

    def readinto(view: memoryview) -> int:
        data = file.read(len(view))
        if isinstance(data, str):
            raise TypeError("A binary file object is needed, got one of text. Open it with mode 'rb'.")
        view[: len(data)] = data
        return len(data)

    return io.BufferedReader(_Raw(readinto))


# -- compression ---------------------------------------------------------------------------------------
Unpacked = tuple[Any, tuple[type[BaseException], ...]]


def _gzip(raw: BinaryIO, name: str) -> Unpacked:
    return io.BufferedReader(gzip.GzipFile(fileobj=raw)), (EOFError, OSError, zlib.error)


def _bzip2(raw: BinaryIO, name: str) -> Unpacked:
    return io.BufferedReader(bz2.BZ2File(raw)), (EOFError, OSError)


def _xz(raw: BinaryIO, name: str) -> Unpacked:
    return io.BufferedReader(lzma.LZMAFile(raw)), (EOFError, lzma.LZMAError)


def _zstd(raw: BinaryIO, name: str) -> Unpacked:
    zstandard = need_zstd(name)
    return io.BufferedReader(_Raw(_ZstdReader(raw, zstandard).readinto)), (EOFError, zstandard.ZstdError)


def need_zstd(name: str) -> Any:
    """The package zstandard; an error that names the extra if it is not there."""
    try:
        import zstandard
    except ImportError as error:
        raise ImportError(
            f"{name} is compressed by Zstandard, which needs the package zstandard: "
            "pip install multimargin[zstd]"
        ) from error
    return zstandard


class _ZstdReader:
    """Frames of Zstandard, one after the other; an end inside of a frame is an ``EOFError``."""

    def __init__(self, raw: BinaryIO, zstandard: Any) -> None:
        self._raw, self._zstandard = raw, zstandard
        self._frame: Any = None
        self._left = memoryview(b"")

    def readinto(self, view: memoryview) -> int:
        while not self._left:
            packed = self._raw.read(_ZSTD_STEP)
            if not packed:
                if self._frame is not None:
                    raise EOFError("the file ended before the end of a frame")
                return 0
            self._left = memoryview(self._unpack(packed))
        count = min(len(view), len(self._left))
        view[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def _unpack(self, packed: bytes) -> bytes:
        parts = []
        while packed:
            self._frame = self._frame or self._zstandard.ZstdDecompressor().decompressobj()
            parts.append(self._frame.decompress(packed))
            packed = self._frame.unused_data if self._frame.eof else b""
            if self._frame.eof:
                self._frame = None
        return b"".join(parts)


_UNPACK: dict[str, Callable[[BinaryIO, str], Unpacked]] = {
    "gzip": _gzip,
    "bzip2": _bzip2,
    "xz": _xz,
    "zstd": _zstd,
}
