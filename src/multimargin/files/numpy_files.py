"""NumPy's files: one array (.npy), or several by name (.npz). Neither may hold Python objects."""

from __future__ import annotations

import io
import shutil
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..system.memory import available_bytes
from .dataset import Dataset
from .faults import MalformedFileError
from .options import ReadOptions, WriteOptions
from .source import Source
from .types import check_finite, converted

_NAMES = (("X", "y"), ("X_train", "y_train"))  # of the samples and their labels
_PARTS = ("data", "indices", "indptr", "shape")
_SMALL = ("uint8", "int8", "int16", "float32", "float64")  # types that stay as they are


# -- .npy ----------------------------------------------------------------------------------------------
def read_npy(source: Source, options: ReadOptions) -> Dataset:
    """Read an array of samples; a plain file is mapped into memory, and so not read before it is used.

    Labels are a column, if ``label`` is a number, or another .npy file, if ``label`` is a path.
    """
    part = source.part

    def parse() -> tuple[Any, Any]:
        X = _array(source, source.whole())
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise source.error(f"a matrix of numbers expected, got {X.dtype} of shape {X.shape}")
        mine = slice(*part.bounds(len(X)))
        X, y = _with_labels(source, options, X, mine)
        options.check_features(X.shape[1], source.name)
        return X, y

    X, y = part.attempt(parse)
    return Dataset(_typed(X, options, source), y, None, source.name)


def _with_labels(source: Source, options: ReadOptions, X: Any, mine: slice) -> tuple[Any, Any]:
    """The rows of this part and their labels."""
    if options.label is None or options.label is False:
        return X[mine], None
    if isinstance(options.label, str):
        if not Path(options.label).is_file():
            raise ValueError(
                f"An .npy file has no names of columns: label={options.label!r} must be the number of a "
                "column, or the path of another .npy file with the labels, and there is no such file."
            )
        y = _array(source, Path(options.label))
        if y.shape != X.shape[:1]:
            raise ValueError(f"{options.label} has shape {y.shape}, and {source.name} has {len(X)} rows.")
        return X[mine], np.array(y[mine])
    if not -X.shape[1] <= options.label < X.shape[1]:
        raise ValueError(f"{source.name} has {X.shape[1]} columns, so label={options.label} names none.")
    rows = X[mine]
    y = np.array(rows[:, options.label])
    whole = y.dtype.kind == "f" and bool((y == np.trunc(y)).all())
    return np.delete(rows, options.label, axis=1), y.astype(np.int64) if whole else y


def _array(source: Source, file: Any) -> Any:
    try:
        if isinstance(file, Path):
            return np.load(file, mmap_mode="r", allow_pickle=False)
        return _checked_array(source, file, len(file.getbuffer()))
    except MemoryError:
        raise
    except Exception as error:  # of many kinds, because the header is Python's text of a dict
        raise source.error(f"it is not an array that can be read without executing code ({error})") from error


def _checked_array(source: Source, file: Any, size: int) -> np.ndarray:
    """The array in a file of ``size`` bytes, which must be as long as its header says."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"version {version} of the format is not known")
    read_header = (
        np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    )
    shape, fortran, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("it has Python objects")
    count = 1
    for length in shape:
        count *= length
    if count * dtype.itemsize != size - file.tell():
        raise ValueError(
            f"{count * dtype.itemsize} bytes of values expected, and {size - file.tell()} are there"
        )
    values = np.frombuffer(file.read(), dtype)
    return values.reshape(shape[::-1]).T if fortran else values.reshape(shape)


def _typed(X: Any, options: ReadOptions, source: Source) -> Any:
    """Samples in the type that was asked for; "auto" leaves those alone that a fit takes as they are.

    What is mapped into memory is not looked at: a fit does that.
    """
    kept = options.dtype is None and (X.dtype.name in _SMALL) and X.dtype.isnative
    values = X.data if sp.issparse(X) else X
    if kept or X.dtype == options.dtype:
        if not isinstance(X, np.memmap):
            source.part.attempt(lambda: check_finite(values, source))
        return X
    values = converted(values, options.dtype, source)
    return sp.csr_array((values, X.indices, X.indptr), shape=X.shape) if sp.issparse(X) else values


# -- .npz ----------------------------------------------------------------------------------------------
def read_npz(source: Source, options: ReadOptions) -> Dataset:
    """Read samples ``X`` and labels ``y``, or ``X_train`` and ``y_train``, or SciPy's ``save_npz``.

    A sparse X is four arrays: ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape``.
    """
    if options.label not in (None, False):
        raise ValueError("An .npz file has its labels in an array y: label must be None or False.")
    part = source.part

    def parse() -> Dataset:
        try:
            with zipfile.ZipFile(source.whole()) as archive:
                X, y, names = _members(source, archive, options.label is False)
        except (MalformedFileError, MemoryError):
            raise
        except Exception as error:  # of many kinds: zipfile trusts what the file says of itself
            raise source.error(f"the file is damaged or incomplete ({error})") from error
        mine = slice(*part.bounds(X.shape[0]))
        options.check_features(X.shape[1], source.name)
        return Dataset(X[mine], None if y is None else y[mine], names, source.name)

    found = part.attempt(parse)
    return replace(found, X=_typed(found.X, options, source))


def _members(source: Source, archive: zipfile.ZipFile, unlabelled: bool) -> tuple[Any, Any, Any]:
    known = {name.removesuffix(".npy"): name for name in archive.namelist() if name.endswith(".npy")}

    def array(name: str) -> np.ndarray:
        return _member(source, archive, known[name])

    for samples, labels in _NAMES:
        parts = [f"{samples}_{part}" for part in _PARTS]
        if samples not in known and not all(part in known for part in parts):
            continue
        X = array(samples) if samples in known else _csr(source, *map(array, parts))
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise source.error(f"{samples} must be a matrix of numbers, got {X.dtype} of shape {X.shape}")
        y = None if unlabelled or labels not in known else array(labels)
        if y is not None and y.shape != X.shape[:1]:
            raise source.error(f"{labels} has shape {y.shape}, and {samples} has {X.shape[0]} rows")
        names = [str(name) for name in array("feature_names")] if "feature_names" in known else None
        if names is not None and len(names) != X.shape[1]:
            raise source.error(f"there are {len(names)} names for {X.shape[1]} features")
        return X, y, names
    if all(part in known for part in _PARTS) and "format" in known:
        if bytes(np.asarray(array("format"), dtype="S")) != b"csr":
            raise source.error("a sparse matrix must be stored as CSR")
        return _csr(source, *map(array, _PARTS)), None, None
    raise source.error(f"arrays X and y expected, got {', '.join(sorted(known)) or 'none'}")


def _member(source: Source, archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """An array of the file; it must fit into memory, and must be as long as it says."""
    info, free = archive.getinfo(name), available_bytes()
    if 2 * info.file_size > free:
        what = f"{name} unpacks to {info.file_size / 1e9:.3g} GB, and {free / 1e9:.3g} GB of memory are free"
        raise source.error(what)
    try:
        with archive.open(info) as member:
            content = io.BytesIO(member.read())
        return _checked_array(source, content, info.file_size)
    except MemoryError:
        raise
    except Exception as error:  # as above
        raise source.error(f"{name} cannot be read without executing code ({error})") from error


def _csr(source: Source, data: Any, indices: Any, indptr: Any, shape: Any) -> sp.csr_array:
    try:
        X = sp.csr_array((data, indices, indptr), shape=tuple(int(length) for length in shape))
        X.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise source.error(f"its arrays are not a sparse matrix ({error})") from error
    X.sum_duplicates()
    return X


# -- write ---------------------------------------------------------------------------------------------
def write_npy(file: Any, X: Any, y: Any, options: WriteOptions) -> None:
    """Write the samples alone; they must be dense."""
    if y is not None:
        raise ValueError("An .npy file holds one array: save X and y in two files, or as .npz.")
    if sp.issparse(X):
        raise ValueError("An .npy file holds a dense array: save a sparse X as .npz.")
    array = np.ascontiguousarray(X)
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    # NumPy's own writer goes past the file object, and does not notice that a disk is full.
    file.write(memoryview(array.reshape(-1).view(np.uint8)))  # type: ignore[arg-type]


def write_npz(file: Any, X: Any, y: Any, options: WriteOptions) -> None:
    """Write X, or its parts if it is sparse, and y."""
    if sp.issparse(X):
        shape = np.array(X.shape, dtype=np.int64)
        arrays = {"X_data": X.data, "X_indices": X.indices, "X_indptr": X.indptr, "X_shape": shape}
    else:
        arrays = {"X": np.ascontiguousarray(X)}
    if y is not None:
        arrays["y"] = np.asarray(y)
    if options.feature_names is not None:
        arrays["feature_names"] = np.array(options.feature_names, dtype=str)
    if isinstance(file, io.BufferedRandom | io.BufferedWriter | io.BytesIO) and file.seekable():
        np.savez_compressed(file, **arrays)
        return
    with tempfile.TemporaryFile() as whole:  # a zip file is not written from its beginning to its end
        np.savez_compressed(whole, **arrays)
        whole.seek(0)
        shutil.copyfileobj(whole, file)
