"""Data files: :func:`load` reads one, :func:`save` writes one.

======== ============================ ============================================================
format   endings                      what it is
======== ============================ ============================================================
libsvm   .libsvm .svm .svmlight       ``label index:value index:value ... # comment`` per line
csv      .csv                         values between commas, or semicolons, perhaps with names
tsv      .tsv .tab                    values between tabs, perhaps with names
npy      .npy                         one array of NumPy, mapped into memory
npz      .npz                         arrays X and y of NumPy; a sparse X in four parts
parquet  .parquet .pq                 a table; needs pyarrow, the extra ``arrow``
arrow    .arrow .feather .ipc         a table; needs pyarrow, the extra ``arrow``
msvmpack .msvmpack                    rows, features, then ``x1 ... xd label`` per line
arff     .arff                        Weka's tables, dense or sparse
======== ============================ ============================================================

Each may be compressed: .gz, .bz2, .xz, or .zst, which needs the extra ``zstd``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .files.dataset import Dataset
from .files.faults import MalformedFileError
from .files.formats import to_read, to_write
from .files.options import ReadOptions, WriteOptions
from .files.parts import Part
from .files.scaling import Scaling
from .files.source import check_readable, opened
from .files.writing import writing

__all__ = ["Dataset", "MalformedFileError", "Scaling", "load", "save"]


def load(
    path: Any,
    *,
    format: str = "auto",
    label: str | int | bool | None = None,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    dtype: Any = "auto",
    n_threads: int | None = None,
    rank: int = 0,
    size: int = 1,
    comm: Any = None,
) -> Dataset:
    r"""Read samples and labels from a file.

    Parameters
    ----------
    path : str, path-like or binary file object
        The file; "-" is standard input. Compressed files are unpacked on the way.
    format : str, default="auto"
        "libsvm", "csv", "tsv", "npy", "npz", "parquet", "arrow", "msvmpack" or "arff". "auto" goes by the
        ending of the name, and if that says nothing, by the first bytes.
    label : str, int, False or None, default=None
        In tables (CSV, TSV, ARFF, Parquet, Arrow) the name or number of the column of labels. None is the
        column named label, class, target or y, whatever its case, else the only column that has text in the
        first row, else the last column. False: the file has no labels, in any format. For .npy the number of
        a column, or the path of another .npy file with the labels; None is no labels.
    n_features : int or None, default=None
        Number of features. LIBSVM text does not tell it: None is the largest index of the file. A file that
        has more raises ``ValueError``, and so does a table that has not exactly as many.
    zero_based : bool or "auto", default="auto"
        Whether indices of LIBSVM text count from 0. "auto": they do if there is an index 0.
    dtype : dtype or "auto", default="auto"
        Type of the values. "auto" is uint8, int8 or int16 if all are whole numbers that fit, else float64;
        integers and floats of .npy and .npz files that a fit takes as they are stay so.
    n_threads : int or None, default=None
        Threads that read text; None is every core.
    rank, size : int, default=0, 1
        Read part ``rank`` of ``size`` parts only: a range of bytes of plain text files, rows of others. The
        parts know nothing of each other: give ``n_features`` and ``dtype``, or ``comm``.
    comm : mpi4py.MPI.Comm or None, default=None
        Each process of this communicator reads its part. They agree on the number of features, on dense or
        sparse, and on types. All of them must call this function.

    Returns
    -------
    data : Dataset
        With attributes ``X``, ``y``, ``feature_names`` and ``source``; ``X, y = load(path)`` unpacks it.
        LIBSVM text and sparse ARFF become a dense array if that takes at most twice the bytes of a CSR
        matrix (from a tenth of entries on if values are bytes, from a third on if they are float64), else a
        CSR matrix with ascending indices and without zeros. Other text is dense.

    Raises
    ------
    MalformedFileError
        A ``ValueError`` that says in which file, line and column something is wrong: a word that is no
        number, nan and infinity, a missing value, an index that is there twice, two labels in a line.

    Examples
    --------
    >>> import io
    >>> from multimargin.datasets import load
    >>> X, y = load(io.BytesIO(b"cat 1:3 2:1\ndog 2:7 # barks\n"))
    >>> X
    array([[3, 1],
           [0, 7]], dtype=uint8)
    >>> y
    array(['cat', 'dog'], dtype='<U3')
    """
    part = Part(rank, size, comm)
    options = ReadOptions.checked(label, n_features, zero_based, dtype, n_threads)
    part.attempt(lambda: check_readable(path))
    with opened(path, part) as source:
        return to_read(format, source).read(source, options)


def save(
    path: Any,
    X: Any,
    y: Any = None,
    *,
    format: str = "auto",
    feature_names: Sequence[str] | None = None,
    zero_based: bool = False,
    label: str = "label",
) -> None:
    """Write samples and labels to a file.

    An existing file is replaced when the new one is complete and on the disk, not before. Floats are written
    with as many digits as give the same number again.

    Parameters
    ----------
    path : str, path-like or binary file object
        The file; "-" is standard output. An ending .gz, .bz2, .xz or .zst compresses it.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples: finite numbers.
    y : array-like of shape (n_samples,) or None, default=None
        The labels: integers, numbers or strings.
    format : str, default="auto"
        As for :func:`load`; "auto" goes by the ending of the name.
    feature_names : sequence of str or None, default=None
        Names of the columns, for formats that have them; None is x1, x2, ...
    zero_based : bool, default=False
        Whether indices of LIBSVM text count from 0.
    label : str, default="label"
        Name of the column of labels, for formats that have it.

    Examples
    --------
    >>> import os, tempfile
    >>> from multimargin.datasets import load, save
    >>> path = os.path.join(tempfile.mkdtemp(), "tiny.csv.gz")
    >>> save(path, [[1.5, 2], [3, 4]], ["a", "b"], feature_names=["width", "height"])
    >>> data = load(path)
    >>> data.feature_names
    ['width', 'height']
    >>> data.y
    array(['a', 'b'], dtype='<U1')
    """
    name = (
        path if isinstance(path, str) else getattr(path, "name", None) or getattr(path, "__fspath__", str)()
    )
    writer = to_write(format, name if isinstance(name, str) else None)
    X, y = _checked(X, y)
    if feature_names is not None and len(feature_names) != X.shape[1]:
        raise ValueError(f"There are {len(feature_names)} feature_names for {X.shape[1]} features.")
    names = None if feature_names is None else [str(each) for each in feature_names]
    with writing(path) as file:
        writer.write(file, X, y, WriteOptions(names, bool(zero_based), str(label)))


def _checked(X: Any, y: Any) -> tuple[Any, Any]:
    """X as an array or CSR matrix of finite numbers of a native type, y as an array of as many labels."""
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"X must be a matrix of numbers, got {X.dtype} of shape {X.shape}.")
    if 0 in X.shape:
        raise ValueError(f"X must have rows and features, got shape {X.shape}.")
    if X.dtype.name not in ("uint8", "int8", "int16", "int32", "int64", "float32", "float64"):
        fits = {"bool": np.uint8, "uint16": np.int32, "uint32": np.int64, "float16": np.float32}
        X = X.astype(fits.get(X.dtype.name, np.float64))
    if not X.dtype.isnative:
        X = X.astype(X.dtype.newbyteorder("="))
    if not np.isfinite(X.data if sp.issparse(X) else X).all():
        raise ValueError("X must have finite numbers only: there are NaN or infinite ones.")
    if y is None:
        return X, None
    y = np.asarray(y)
    if y.shape != X.shape[:1]:
        raise ValueError(f"y must have one label for each of the {X.shape[0]} rows, got shape {y.shape}.")
    if y.dtype == object:
        y = y.astype(str)
    if y.dtype.kind not in "biufU":
        raise ValueError(f"y must have integers, numbers or strings, got {y.dtype}.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y must have finite numbers only: there are NaN or infinite ones.")
    return X, y
