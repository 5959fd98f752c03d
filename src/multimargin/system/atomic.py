"""Files that are written whole or not at all.

The content goes to a temporary file in the same directory, which is flushed to the disk and then renamed to
the name that was asked for; the rename is flushed too. So a process may be killed at any moment, and the
machine may lose its power: that name has the old content or the new one.

    with replacing(path) as file:  # binary, seekable
        file.write(content)
"""

from __future__ import annotations

import errno
import itertools
import os
import platform
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_FORGOTTEN = 86400.0  # seconds after which a temporary file of another machine was left by a killed process
_number = itertools.count()  # of the temporary files of this process
_being_written: set[Path] = set()  # by this process


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a new file, open for writing, that takes the place of ``path`` when the block ends.

    If the block or the disk fails, the old file stays, the new one is removed, and the error is raised.
    If ``path`` is a symbolic link, what it points to is replaced. A device or a pipe is written to as it is.
    The new file has the permissions of the old one.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
        return
    temporary = _new_name(path)
    _being_written.add(temporary)
    try:
        with open(temporary, "wb") as file:
            if path.exists():
                os.chmod(temporary, path.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            _name(error, path, temporary)
        raise
    finally:
        _being_written.discard(temporary)
    _sync_directory(path.parent)


def _name(error: OSError, path: Path, temporary: Path) -> None:
    """Let an error name the file that was asked for, not the temporary one, and a file if a disk is full."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
    unnamed = error.filename is None and full
    if unnamed or error.filename == str(temporary):
        error.filename = str(path)


def prepare(path: Path, what: str) -> None:
    """Check that a file can be written, and remove temporary files of it that killed processes left behind.

    Raises ``OSError`` if it cannot be written. ``what`` names the file in messages, such as "checkpoint".
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, f"The {what} {str(path)!r} must be a file, and that is something else")
    _remove_leftovers(path)
    probe = _new_name(path)
    _being_written.add(probe)
    try:
        with open(probe, "xb"):
            pass
        os.unlink(probe)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(probe)
        if not isinstance(error, OSError):
            raise
        raise type(error)(
            error.errno,
            f"The {what} {str(path)!r} cannot be written: {error.strerror}. Give a path in a directory "
            "that exists and that this process may write to",
        ) from error
    finally:
        _being_written.discard(probe)


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


# -- temporary files -------------------------------------------------------------------------------------
def _prefix(path: Path) -> str:
    """How the names of the temporary files begin that processes of this machine make for ``path``."""
    host = re.sub(r"[^\w-]", "-", platform.node())
    return f".{path.name}.{host}."


def _new_name(path: Path) -> Path:
    return path.with_name(f"{_prefix(path)}{os.getpid()}.{next(_number)}.tmp")


def _remove_leftovers(path: Path) -> None:
    name = re.compile(rf"\.{re.escape(path.name)}\.[\w-]*\.(\d+)\.\d+\.tmp")
    here = _prefix(path)
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
