"""The error of a file that cannot be read, which says where."""

from __future__ import annotations


class MalformedFileError(ValueError):
    r"""A file is not what its format says.

    Parameters
    ----------
    message : str
        What is wrong, and where.
    source : str
        The file.
    line, column : int or None
        Where it is wrong, counted from 1; the column counts bytes. None if there is no such place.

    Examples
    --------
    >>> import io
    >>> from multimargin.datasets import load
    >>> load(io.BytesIO(b"1 1:2\n2 1:x\n"), format="libsvm")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    multimargin.files.faults.MalformedFileError: ...line 2...
    """

    def __init__(self, message: str, source: str = "", line: int | None = None, column: int | None = None):
        super().__init__(message)
        self.source, self.line, self.column = source, line, column


def malformed(
    source: str, what: str, line: int | None = None, column: int | None = None
) -> MalformedFileError:
    """The error for a place of a file.

    >>> str(malformed("a.csv", "a value is missing", 3, 7))
    'a.csv, line 3, column 7: a value is missing.'
    """
    place = "" if line is None else f", line {line}" if column is None else f", line {line}, column {column}"
    return MalformedFileError(f"{source}{place}: {what.removesuffix('.')}.", source, line, column)
