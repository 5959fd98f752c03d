"""Files that are written whole or not at all.

A new file is written under a temporary name in the same directory, flushed to the disk, and then renamed; the
rename is flushed too. So a process may be killed at any moment, and the machine may lose its power: the name
has the old content or the new one.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of ``path`` when the context ends without an error.

    A link stays, and what it leads to is replaced. A device or a pipe is written to as it is.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
        return
    name = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with open(name, "xb") as file:
            if path.exists():
                os.chmod(name, path.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
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
