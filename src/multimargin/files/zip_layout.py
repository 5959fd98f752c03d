"""The bytes of a zip file between its members, for members that are stored as they are.

A member's content begins at a multiple of 64 bytes, so that an array in it can be mapped into memory. The
layout follows from names, sizes and checksums alone. So a reader can compute it again and compare every byte
with the file. Whatever is not the content of a member is then known to be as it was written.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64
_DATE = 0x21  # 1 January 1980: the same model gives the same bytes at any time
_PADDING = 0xD935  # the kind of an extra field that is there for alignment
_LARGE = 0xFFFFFFFF  # sizes and offsets from here on need the 64-bit form
_MANY = 0xFFFF


@dataclass(frozen=True)
class Member:
    """One file in the zip file."""

    name: str  # ASCII
    size: int
    crc: int


@dataclass(frozen=True)
class Layout:
    """Where everything is."""

    headers: list[bytes]  # before each member's content
    starts: list[int]  # offset of each header
    directory: bytes  # after the last member

    @property
    def contents(self) -> list[int]:
        """The offset of each member's content."""
        return [start + len(header) for start, header in zip(self.starts, self.headers, strict=True)]


def layout(members: Sequence[Member]) -> Layout:
    """Return what stands around these members, in this order."""
    headers, starts, entries, at = [], [], [], 0
    for member in members:
        header = _header(member, at)
        headers.append(header)
        starts.append(at)
        entries.append(_entry(member, at))
        at += len(header) + member.size
    directory = b"".join(entries)
    return Layout(headers, starts, directory + _end(len(members), len(directory), at))


def _header(member: Member, at: int) -> bytes:
    """The local header of a member that begins at offset ``at``."""
    large = member.size >= _LARGE
    extra = struct.pack("<HHQQ", 1, 16, member.size, member.size) if large else b""
    start = at + 30 + len(member.name) + len(extra) + 4
    padding = -start % ALIGNMENT
    extra += struct.pack("<HH", _PADDING, padding) + bytes(padding)
    size = _LARGE if large else member.size
    fields = 0x04034B50, 45 if large else 20, 0, 0, 0, _DATE, member.crc, size, size
    return struct.pack("<IHHHHHIIIHH", *fields, len(member.name), len(extra)) + member.name.encode() + extra


def _entry(member: Member, at: int) -> bytes:
    """The entry of a member in the directory."""
    large = member.size >= _LARGE or at >= _LARGE
    extra = struct.pack("<HHQQQ", 1, 24, member.size, member.size, at) if large else b""
    size, offset = (_LARGE, _LARGE) if large else (member.size, at)
    version = 45 if large else 20
    fields = 0x02014B50, version, version, 0, 0, 0, _DATE, member.crc, size, size
    rest = len(member.name), len(extra), 0, 0, 0, 0, offset
    return struct.pack("<IHHHHHHIIIHHHHHII", *fields, *rest) + member.name.encode() + extra


def _end(count: int, size: int, at: int) -> bytes:
    """The end of the file, after a directory of ``size`` bytes that begins at offset ``at``."""
    large = count >= _MANY or size >= _LARGE or at >= _LARGE
    before = b""
    if large:
        before = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, size, at)
        before += struct.pack("<IIQI", 0x07064B50, 0, at + size, 1)
    few = (_MANY, _MANY, _LARGE, _LARGE) if large else (count, count, size, at)
    return before + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, *few, 0)
