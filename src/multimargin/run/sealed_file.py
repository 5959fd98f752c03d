"""Files of bytes with a checksum at their end, written whole or not at all (``system/atomic.py``)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from ..system.atomic import replacing

_DIGEST = hashlib.sha256().digest_size
# What content can raise that somebody has made up.
MADE_UP_ERRORS = (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError, RecursionError)


def write_sealed(path: Path, parts: Sequence[Any]) -> None:
    """Replace the file by these bytes and their SHA-256; ``OSError`` if that fails: the old file stays."""
    digest = hashlib.sha256()
    with replacing(path) as file:
        for part in parts:
            digest.update(part)
            file.write(part)
        file.write(digest.digest())


def refuse(path: Path, reason: str) -> NoReturn:
    """Raise ``ValueError`` for a file that cannot be used."""
    raise ValueError(
        f"The checkpoint {str(path)!r} cannot be used: {reason}. The file was not changed. To start from the "
        "beginning, give another path, or move or delete the file."
    )


def read_sealed(path: Path, magic: bytes, kind: str) -> memoryview:
    """Return what follows ``magic``, without the checksum; ``ValueError`` if a byte is wrong or missing."""
    content = path.read_bytes()
    if not content.startswith(magic):
        is_part = magic.startswith(content)
        refuse(path, "it is incomplete" if is_part else f"it is not a {kind} of multimargin")
    body, digest = memoryview(content)[:-_DIGEST], content[-_DIGEST:]
    if hashlib.sha256(body).digest() != digest:
        refuse(path, "it is damaged or incomplete, because its checksum does not match its content")
    return body[len(magic) :]
