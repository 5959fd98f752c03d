"""Kernel values between 0 and 1 as 16-bit fixed-point numbers (``native/base/fixed16.hpp``)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FIXED_POINT = np.dtype(np.uint16)
_ONE = 65535


def encoded(values: np.ndarray, dtype: np.dtype[np.generic]) -> np.ndarray:
    """Kernel values in the type in which a block stores them.

    >>> encoded(np.array([0.0, 0.5, 1.0]), FIXED_POINT)
    array([    0, 32768, 65535], dtype=uint16)
    """
    if dtype != FIXED_POINT:
        return values.astype(dtype, copy=False)
    return np.asarray(np.floor(np.clip(values, 0.0, 1.0) * _ONE + 0.5), dtype=dtype)


def decoded(values: np.ndarray, dtype: npt.DTypeLike = np.float64) -> np.ndarray:
    """Stored kernel values as floating-point numbers.

    >>> decoded(encoded(np.array([0.0, 1.0]), FIXED_POINT))
    array([0., 1.])
    """
    fixed = values.dtype == FIXED_POINT
    return np.divide(values, _ONE, dtype=dtype) if fixed else values.astype(dtype)
