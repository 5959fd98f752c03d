"""Files that are written whole or not at all, with a checksum at their end.

A new content is written to a temporary file in the same directory, which is flushed to the disk and then
renamed to the name that was asked for; the rename is flushed too. So a process may be killed at any moment,
and the machine may lose its power: that name has the old content or the new one.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import platform
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

_DIGEST = hashlib.sha256().digest_size
_FORGOTTEN = 86400.0  # seconds after which a temporary file of another machine was left by a killed process
_number = itertools.count()  # of the temporary files of this process
_being_written: set[Path] = set()  # by this process


# -- write -----------------------------------------------------------------------------------------------
def write_whole(path: Path, parts: Sequence[Any]) -> None:
    """Replace the file by these bytes and their SHA-256; ``OSError`` if that fails: the old file stays."""
    temporary = path.with_name(f"{prefix(path)}{os.getpid()}.{next(_number)}.tmp")
    _being_written.add(temporary)
    digest = hashlib.sha256()
    try:
        with open(temporary, "wb") as file:
            for part in parts:
                digest.update(part)
                file.write(part)
            file.write(digest.digest())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        _being_written.discard(temporary)
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """Flush the names in a directory to the disk, on systems that can."""
    if os.name == "nt":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system without it
            raise
    finally:
        os.close(handle)


# -- read ------------------------------------------------------------------------------------------------
def refuse(path: Path, reason: str) -> NoReturn:
    """Raise ``ValueError`` for a file that cannot be used."""
    raise ValueError(
        f"The checkpoint {str(path)!r} cannot be used: {reason}. The file was not changed. To start from the "
        "beginning, give another path, or move or delete the file."
    )


def read_whole(path: Path, magic: bytes, kind: str) -> memoryview:
    """Return what follows ``magic``, without the checksum; ``ValueError`` if a byte is wrong or missing."""
    content = path.read_bytes()
    if not content.startswith(magic):
        is_part = magic.startswith(content)
        refuse(path, "it is incomplete" if is_part else f"it is not a {kind} of multimargin")
    body, digest = memoryview(content)[:-_DIGEST], content[-_DIGEST:]
    if hashlib.sha256(body).digest() != digest:
        refuse(path, "it is damaged or incomplete, because its checksum does not match its content")
    return body[len(magic) :]


# -- the directory ---------------------------------------------------------------------------------------
def prepare(path: Path) -> None:
    """Check that the file can be written, and remove temporary files that killed processes left behind.

    Raises ``OSError`` if it cannot be written.
    """
    if path.exists() and not path.is_file():
        raise OSError(
            errno.EINVAL, f"The checkpoint {str(path)!r} must be a file, and that is something else"
        )
    _remove_leftovers(path)
    probe = path.with_name(f"{prefix(path)}{os.getpid()}.{next(_number)}.tmp")
    try:
        with open(probe, "xb"):
            pass
        os.unlink(probe)
    except OSError as error:
        raise type(error)(
            error.errno,
            f"The checkpoint {str(path)!r} cannot be written: {error.strerror}. Give a path in a directory "
            "that exists and that this process may write to",
        ) from error


def prefix(path: Path) -> str:
    """How the names of the temporary files begin that processes of this machine make for ``path``."""
    host = re.sub(r"[^\w-]", "-", platform.node())
    return f".{path.name}.{host}."


def _remove_leftovers(path: Path) -> None:
    name = re.compile(rf"\.{re.escape(path.name)}\.[\w-]*\.(\d+)\.\d+\.tmp")
    here = prefix(path)
    with suppress(OSError):  # said later if the directory cannot be used
        for entry in os.scandir(path.parent):
            match = name.fullmatch(entry.name)
            if match is None or path.with_name(entry.name) in _being_written:
                continue
            old = time.time() - entry.stat().st_mtime > _FORGOTTEN
            local = os.name != "nt" and entry.name.startswith(here)
            if (local and not _is_alive(int(match[1]))) or (not local and old):
                os.unlink(entry.path)


def _is_alive(process: int) -> bool:
    """Whether there is another process of this number here. What this one writes is in ``_being_written``."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it exists and belongs to somebody else
        return True
    return True
