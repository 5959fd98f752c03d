"""The model file as a container: one JSON document and named arrays, in a zip file (docs/model-file.md).

The document is the first member, ``model.json``; each array is a member in NumPy's ``.npy`` format. The
document has the SHA-256 checksum of every array, the zip file that of the document, and all other bytes
follow from these (``zip_layout.py``). So a file with a single wrong byte is refused. Nothing in it can be
executed: arrays of Python objects are neither written nor read.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal, NoReturn

import numpy as np

from ..system.atomic import prepare, replacing
from .zip_layout import Layout, Member, layout

FORMAT, VERSION = "multimargin model", 1
DOCUMENT = "model.json"
Path_ = str | os.PathLike[str]
_NAME = re.compile(r"arrays/[\w.-]{1,200}\.npy", re.ASCII)
_BEGINNING = re.compile(rb"PK\x03\x04.{26}" + re.escape(DOCUMENT).encode(), re.DOTALL)
_LONGEST_HEADER = 1 << 16  # of an array
_AT_ONCE = 1 << 24  # bytes that are hashed at a time


def is_beginning(content: bytes) -> bool:
    """Whether a file that begins so, with 64 bytes or more, seems to be a model file."""
    return _BEGINNING.match(content) is not None


def is_model_file(path: Path_) -> bool:
    """Whether this is a file that seems to be a model file; what is no plain file is not looked into."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return is_beginning(file.read(64))


# -- write -----------------------------------------------------------------------------------------------
def write(path: Path_, document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Replace the file by one with this document and these arrays.

    Raises ``OSError`` if that fails; then the old file stays as it was.
    """
    target = Path(path)
    prepare(target, "model file")
    parts = {f"arrays/{name}.npy": _npy(array) for name, array in arrays.items()}
    checksums = {name: _sha256(*part) for name, part in parts.items()}
    head = {"format": FORMAT, "version": VERSION}
    text = json.dumps({**head, **document, "arrays": checksums}, indent=1, allow_nan=False).encode()
    contents: dict[str, tuple[Any, ...]] = {DOCUMENT: (text,), **parts}
    members = [Member(name, sum(map(_size, part)), _crc(*part)) for name, part in contents.items()]
    around = layout(members)
    with replacing(target) as file:
        for header, part in zip(around.headers, contents.values(), strict=True):
            file.write(header)
            for piece in part:
                file.write(piece)
        file.write(around.directory)


def _npy(array: np.ndarray) -> tuple[bytes, memoryview]:
    """The header and the values of an array, in the order of memory in which it is."""
    if array.dtype.hasobject:
        raise TypeError("A model file has no arrays of Python objects.")
    fortran = array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and np.little_endian is False):
        array = array.astype(array.dtype.newbyteorder("<"))
    header = io.BytesIO()
    described = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": fortran,
        "shape": array.shape,
    }
    np.lib.format.write_array_header_1_0(header, described)
    flat = array.ravel(order="F" if fortran else "C")
    return header.getvalue(), memoryview(flat.view(np.uint8) if flat.size else b"")  # type: ignore[arg-type]


def _size(part: Any) -> int:
    return memoryview(part).nbytes


def _sha256(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _crc(*parts: Any) -> int:
    crc = 0
    for part in parts:
        crc = zlib.crc32(part, crc)
    return crc


# -- read ------------------------------------------------------------------------------------------------
def refuse(path: Path_, reason: str) -> NoReturn:
    """Raise ``ValueError`` for a file that cannot be used."""
    raise ValueError(f"The model file {os.fspath(path)!r} cannot be used: {reason}.")


def read(
    path: Path_, *, mmap: bool = False, check: bool = True
) -> tuple[dict[str, Any], dict[str, np.ndarray], int]:
    """Return the document, the arrays by name, and the size of the file.

    Raises ``ValueError`` if it is not a complete file of a version known here. With ``mmap`` the arrays are
    read-only maps of the file. Without ``check`` the checksums of arrays are not compared.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        members, text = _members(path, file, size)
        document = _document(path, text)
        around = _compare(path, file, members, size)
        sums = document.pop("arrays", None)
        if not isinstance(sums, dict) or list(sums) != [member.name for member in members[1:]]:
            refuse(path, "its list of arrays is not that of its members")
        arrays = {}
        for member, at in zip(members[1:], around.contents[1:], strict=True):
            if check and _sum_of_part(file, at, member.size) != sums[member.name]:
                refuse(path, f"it is damaged: the checksum of {member.name!r} does not match its content")
            arrays[member.name[len("arrays/") : -len(".npy")]] = _array(path, file, member, at, mmap)
    return document, arrays, size


def _members(path: Path_, file: BinaryIO, size: int) -> tuple[list[Member], bytes]:
    """The members by the zip file's directory, if they can be those of a model file, and the document."""
    beginning = file.read(64)
    try:
        archive = zipfile.ZipFile(file)
        infos = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError) as error:
        refuse(path, _not_a_zip(beginning, str(error)))
    if not infos or infos[0].filename != DOCUMENT:
        refuse(path, "it is a zip file, but not one that multimargin has written")
    names = [info.filename for info in infos]
    odd = [name for name in names[1:] if not _NAME.fullmatch(name)]
    if odd or len(set(names)) < len(names):
        refuse(path, f"it has members that a model file does not have, such as {(odd or names)[0]!r}")
    if any(info.compress_type != zipfile.ZIP_STORED or info.flag_bits for info in infos):
        refuse(path, "its members are compressed or encrypted, which multimargin never does")
    if sum(info.file_size for info in infos) > size:
        refuse(path, "its members claim to be larger than the file")
    try:
        text = archive.read(infos[0])
    except (zipfile.BadZipFile, EOFError, OSError):
        refuse(path, f"it is damaged: the checksum of {DOCUMENT!r} does not match its content")
    return [Member(info.filename, info.file_size, info.CRC) for info in infos], text


def _not_a_zip(beginning: bytes, error: str) -> str:
    if beginning.startswith(b"PK\3\4") and DOCUMENT.encode() in beginning:
        return f"it is incomplete or damaged ({error.rstrip('.')})"
    if beginning.startswith(b"svm_type"):
        return "it is a model of LIBSVM, which multimargin can write but not read"
    if beginning.startswith(b"\x80"):
        return "it seems to be a pickle; if you trust whoever wrote it, read it with pickle or joblib"
    return "it is not a model file of multimargin" if beginning else "it is empty"


def _document(path: Path_, text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
        known = document["format"] == FORMAT
        version = int(document["version"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        known, version = False, 0
    if not known:
        refuse(path, "it is a zip file, but not one that multimargin has written")
    if not 1 <= version <= VERSION:
        refuse(
            path,
            f"it has format version {version}, and this multimargin reads versions up to {VERSION}; "
            "a later multimargin has written it, so update multimargin",
        )
    return dict(document)


def _compare(path: Path_, file: BinaryIO, members: list[Member], size: int) -> Layout:
    """Refuse the file unless all its bytes around the members are as they were written."""
    around = layout(members)
    end = around.contents[-1] + members[-1].size
    expected = [*zip(around.starts, around.headers, strict=True), (end, around.directory)]
    for start, wanted in expected:
        file.seek(start)
        if file.read(len(wanted)) != wanted:
            refuse(path, "it is damaged, or another program has packed it again")
    if end + len(around.directory) != size:
        refuse(path, "it has bytes that do not belong to it")
    return around


def _sum_of_part(file: BinaryIO, at: int, size: int) -> str:
    digest = hashlib.sha256()
    file.seek(at)
    while size > 0:
        part = file.read(min(size, _AT_ONCE))
        if not part:
            break
        digest.update(part)
        size -= len(part)
    return digest.hexdigest()


def _array(path: Path_, file: BinaryIO, member: Member, at: int, mmap: bool) -> np.ndarray:
    """The array that is a member, whose header must fit its size."""
    file.seek(at)
    head = io.BytesIO(file.read(min(member.size, _LONGEST_HEADER)))
    try:
        if np.lib.format.read_magic(head) != (1, 0):
            raise ValueError("unknown version of the format")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(head, _LONGEST_HEADER)
    except (ValueError, SyntaxError, TypeError, RecursionError) as error:
        refuse(path, f"{member.name!r} is not an array ({error})")
    if dtype.hasobject:
        refuse(path, f"{member.name!r} has Python objects, which could run any program when they are read")
    if min(shape, default=0) < 0 or member.size - head.tell() != math.prod(shape) * dtype.itemsize:
        refuse(path, f"{member.name!r} has another size than its shape says")
    order: Literal["C", "F"] = "F" if fortran else "C"
    if not math.prod(shape) or not dtype.itemsize:
        return np.zeros(shape, dtype, order=order)
    if mmap:
        mapped: np.ndarray = np.memmap(file, dtype, "r", at + head.tell(), shape, order)
        return _native(np.asarray(mapped))
    file.seek(at + head.tell())
    values = np.fromfile(file, np.uint8, member.size - head.tell())
    return _native(values.view(dtype).reshape(shape, order=order))


def _native(array: np.ndarray) -> np.ndarray:
    """The array in this machine's order of bytes."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
