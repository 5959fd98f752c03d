"""In which type and form values are returned.

Values of "auto" come in the smallest of uint8, int8 and int16 if they are whole numbers that fit, because
kernels of such integers are exact and fast and take little memory; else in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .source import Source

_SMALL = (np.uint8, np.int8, np.int16)
_KNOWN = (*_SMALL, np.int32, np.int64, np.float32, np.float64)
_DENSE_TIMES = 2  # dense data may take so many times the bytes of the same data as CSR


def check_dtype(dtype: Any) -> np.dtype[Any] | None:
    """The type that was asked for; None for "auto"."""
    if isinstance(dtype, str) and dtype == "auto":
        return None
    try:
        found: np.dtype[Any] | None = np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found not in _KNOWN:
        names = ", ".join(repr(np.dtype(known).name) for known in _KNOWN)
        raise ValueError(f"dtype must be 'auto' or one of {names}, got {dtype!r}.")
    return found


def dtype_for(
    dtype: np.dtype[Any] | None, least: float, most: float, whole: bool, source: str
) -> np.dtype[Any]:
    """The type of values from ``least`` to ``most``, of which all are ``whole`` numbers, or not."""
    if dtype is None:
        fitting = (kind for kind in _SMALL if whole and _fits(np.dtype(kind), least, most))
        return np.dtype(next(fitting, np.float64))
    if dtype.kind in "iu" and not (whole and _fits(dtype, least, most)):
        values = "whole numbers" if whole else "numbers that are not all whole"
        raise ValueError(
            f"{source} has {values} from {least:g} to {most:g}, which dtype={dtype.name!r} does not hold."
        )
    if dtype == np.float32 and max(most, -least) > float(np.finfo(np.float32).max):
        raise ValueError(f"{source} has numbers up to {max(most, -least):g}, which float32 does not hold.")
    return dtype


def _fits(dtype: np.dtype[Any], least: float, most: float) -> bool:
    limits = np.iinfo(dtype)
    return bool(limits.min <= least and most <= limits.max)


def is_dense(n: float, d: float, entries: float, dtype: np.dtype[Any]) -> bool:
    """Whether n·d values of which ``entries`` are not zero are returned as a dense array.

    They are if that takes at most twice the bytes of a CSR matrix: bytes from a tenth of entries on, float64
    from a third on.
    """
    return n * d * dtype.itemsize <= _DENSE_TIMES * entries * (dtype.itemsize + 4)


def check_finite(X: Any, source: Source) -> None:
    """Raise if an array has NaN or infinite values."""
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        at = np.argwhere(~np.isfinite(X))[0]
        place = f"row {at[0] + 1}: " if X.ndim == 2 else ""
        raise source.error(f"{place}values must be finite, got {X[tuple(at)]}")


def converted(X: Any, dtype: np.dtype[Any] | None, source: Source) -> Any:
    """An array of numbers in the type of ``dtype``, or in the smallest for "auto"; floats must be finite.

    The processes that read the parts of a file agree on the type.
    """
    part = source.part

    def limits() -> tuple[float, float, bool]:
        check_finite(X, source)
        whole = X.dtype.kind in "biu" or bool((X == np.trunc(X)).all())
        return float(X.min(initial=0)), float(X.max(initial=0)), whole

    told = part.collect(part.attempt(limits))
    least, most = min(told)[0], max(fact[1] for fact in told)
    whole = all(fact[2] for fact in told)
    return X.astype(part.attempt(lambda: dtype_for(dtype, least, most, whole, source.name)), copy=False)
