"""Arrays that are on the device: those that a user has there, and copies of the host's.

Arrays of other packages (PyTorch, JAX, ...) come and go by DLPack, which shares their memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from ...system.device_data import DeviceData, Moments
from ...system.typing import FloatArray, IntArray
from .device import cupy, function

C_TYPES = {
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short",
    "uint16": "unsigned short",
    "float32": "float",
    "float64": "double",
}
_INT16 = 32767
_VALUES_AT_ONCE = 1 << 24  # in float64
_TILE = 4096  # rows and columns of a matrix that are compared with their mirror image at a time


class Resident(DeviceData):
    """A table on the device, in a type that the kernels read, row after row."""

    def __init__(self, values: Any, given: Any = None) -> None:
        self.values, self.given = values, values if given is None else given
        self.shape, self.dtype = (int(values.shape[0]), int(values.shape[1])), np.dtype(values.dtype)

    def __getitem__(self, rows: IntArray | slice) -> Self:
        at = rows if isinstance(rows, slice) else cupy().asarray(rows)
        return type(self)(self.values[at], self.given)

    def columns(self, ids: IntArray) -> Self:
        return type(self)(cupy().ascontiguousarray(self.values[:, cupy().asarray(ids)]), self.given)

    def on_host(self) -> np.ndarray:
        return np.asarray(self.values.get())

    def beside(self, values: np.ndarray) -> Any:
        return cupy().asarray(values)

    def fetch(self, values: Any) -> np.ndarray:
        return np.asarray(values.get())

    def hand_back(self, values: Any) -> Any:
        return _as_kind_of(self.given, values)

    # -- facts -----------------------------------------------------------------------------------------
    def range(self) -> tuple[float, float]:
        return float(self.values.min()), float(self.values.max())

    def moments(self, weight: FloatArray | None, unit: float) -> Moments:
        cp, (n, d) = cupy(), self.shape
        factors = cp.ones(n) if weight is None else cp.asarray(weight)
        count = float(factors.sum()) * d

        def average(squared: bool, mean: float) -> float:
            total = 0.0
            for first, part in self._parts():
                entries = part / unit - mean
                rows = (cp.square(entries) if squared else entries).sum(axis=1)
                total += float(factors[first : first + len(part)] @ rows)
            return total / count

        mean = average(False, 0.0)
        return Moments(mean, average(True, mean))

    def mean(self) -> Any:
        """The mean of the rows, on the device."""
        return self.values.sum(axis=0, dtype=np.float64) / self.shape[0]

    def farthest(self, centre: Any, squared: bool) -> float:
        """The largest distance of a row from ``centre``: squared and Euclidean, or L1."""
        cp = cupy()
        largest = 0.0
        for _, part in self._parts():
            difference = part - centre
            distances = (cp.square(difference) if squared else cp.abs(difference)).sum(axis=1)
            largest = np.maximum(largest, float(distances.max()))  # NaN stays
        return float(largest)

    def sqnorms(self) -> FloatArray:
        cp = cupy()
        return np.concatenate([cp.square(part).sum(axis=1).get() for _, part in self._parts()])

    def sample(self, step: int, most: int) -> np.ndarray:
        """Every ``step``-th entry, at most so many, on the host."""
        return np.asarray(self.values.reshape(-1)[::step][:most].get())

    def whole_numbers(self, scale: float) -> tuple[int, int] | None:
        """The smallest and the largest integer k, and 0, if all entries are k · ``scale``; else None.

        The rule is that of ``native/samples/grid.hpp``.
        """
        if self.dtype.kind in "iu" and scale == 1.0:
            low, high = self.range()
            return min(0, int(low)), max(0, int(high))
        cp = cupy()
        kernel = function("limits.cu", "limits", STORED=C_TYPES[self.dtype.name])
        found = cp.zeros(3, dtype=np.int32)
        tolerance = 4.0 * float(np.finfo(self.dtype).eps)
        numbers = np.float64(scale), np.float64(1.0 / scale), np.float64(tolerance)
        kernel((1024,), (256,), (self.values, self.values.size, *numbers, found))
        off, low, high = found.get().tolist()
        return None if off else (low, high)

    def _parts(self) -> Iterator[tuple[int, Any]]:
        """The rows in float64, some at a time, and the number of the first of them."""
        step = max(1, _VALUES_AT_ONCE // max(1, self.shape[1]))
        for first in range(0, self.shape[0], step):
            yield first, self.values[first : first + step].astype(np.float64)

    # -- matrices of kernel values -----------------------------------------------------------------------
    def diagonal(self) -> FloatArray:
        return np.asarray(self.values.diagonal().astype(np.float64).get())

    def asymmetry(self) -> tuple[float, float]:
        cp, K, n = cupy(), self.values, self.shape[0]
        worst, size = 0.0, 0.0
        for i in range(0, n, _TILE):
            for j in range(i, n, _TILE):
                tile = K[i : i + _TILE, j : j + _TILE].astype(np.float64)
                mirror = K[j : j + _TILE, i : i + _TILE].astype(np.float64).T
                worst = max(worst, float(cp.abs(tile - mirror).max()))
                size = max(size, float(cp.abs(tile).max()))
        return worst, size


def resident(X: Any) -> Resident:
    """A table as it is on the device, or a copy there; ``X`` is of the host, or ``Resident`` already."""
    if isinstance(X, Resident):
        return X
    return Resident(_stored(cupy().asarray(X)))


def taken(X: Any) -> Resident:
    """What a user has on the device, shared unless its type or layout must change.

    ``ValueError`` or ``TypeError`` if it is no table of finite numbers, or on another device than the current
    one of CuPy.
    """
    values = shared(X)
    if values.ndim != 2:
        raise ValueError(f"X must be 2-dimensional, got shape {tuple(values.shape)}.")
    if 0 in values.shape:
        raise ValueError(f"X must have rows and columns, got shape {tuple(values.shape)}.")
    if values.dtype.kind not in "biuf":
        raise ValueError(f"X must have real numbers, got type {values.dtype}.")
    values = _stored(values)
    if values.dtype.kind == "f" and not bool(cupy().isfinite(values).all()):
        raise ValueError("Input X contains NaN or infinity.")
    return Resident(values, X)


def shared(array: Any) -> Any:
    """An array on the device as one of CuPy, with the same memory."""
    cp = cupy()
    if not isinstance(array, cp.ndarray):
        array = cp.from_dlpack(array.detach() if hasattr(array, "detach") else array)
    if array.device.id != cp.cuda.Device().id:
        raise ValueError(
            f"The array is on GPU {array.device.id}, and the current device of CuPy is "
            f"{cp.cuda.Device().id}. Call cupy.cuda.Device({array.device.id}).use() before."
        )
    return array


def copied(array: Any) -> np.ndarray:
    """An array on the device as one of the host: labels, weights, predictions."""
    return np.asarray(shared(array).get())


def _stored(values: Any) -> Any:
    """The values in a type that the kernels read (as ``system.data.canonical``), row after row."""
    cp = cupy()
    if values.dtype.kind == "b":
        values = values.astype(np.uint8)
    elif values.dtype.kind == "f" and values.dtype.name not in C_TYPES:
        values = values.astype(np.float32)
    elif values.dtype.name not in ("uint8", "int8", "int16", "float32", "float64"):
        small = -_INT16 <= int(values.min()) and int(values.max()) <= _INT16
        values = values.astype(np.int16 if small else np.float64)
    return cp.ascontiguousarray(values)


def _as_kind_of(given: Any, values: Any) -> Any:
    """An array of CuPy as one of the package that ``given`` comes from."""
    package = type(given).__module__.partition(".")[0]
    if package == "cupy":
        return values
    if package == "torch":
        return sys.modules["torch"].from_dlpack(values)
    return given.__array_namespace__().from_dlpack(values)
