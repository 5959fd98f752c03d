"""Samples in the memory of a device, which NumPy cannot read.

The engine that owns the device implements ``DeviceData``. Whatever else needs a fact of such samples, a norm
or a variance, asks them for it, so that they stay where they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np

from .typing import FloatArray, IntArray

_ON_DEVICE = (2, 13)  # of DLPack: memory of CUDA, and managed memory of CUDA


class Moments(NamedTuple):
    """Of all entries."""

    mean: float
    variance: float


class DeviceData(ABC):
    """A table of samples, or of kernel values, on a device."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @abstractmethod
    def __getitem__(self, rows: IntArray | slice) -> Self:
        """Some of the rows, on the device."""

    @abstractmethod
    def columns(self, ids: IntArray) -> Self:
        """Some of the columns, on the device."""

    def block(self, rows: IntArray, columns: IntArray | None = None) -> FloatArray:
        """Some of the entries, on the host: of some columns, or of all."""
        part = self[rows] if columns is None else self[rows].columns(columns)
        return np.asarray(part.on_host(), dtype=np.float64)

    @abstractmethod
    def on_host(self) -> np.ndarray:
        """A copy that NumPy can read."""

    @abstractmethod
    def beside(self, values: np.ndarray) -> Any:
        """An array of the host as one of the device."""

    @abstractmethod
    def fetch(self, values: Any) -> np.ndarray:
        """An array of the device as one of the host."""

    @abstractmethod
    def hand_back(self, values: Any) -> Any:
        """An array of the device as one of the kind that the user has given."""

    @abstractmethod
    def range(self) -> tuple[float, float]:
        """The smallest and the largest entry."""

    @abstractmethod
    def moments(self, weight: FloatArray | None, unit: float) -> Moments:
        """Of the entries divided by ``unit``; a row of ``weight`` 2 counts twice."""

    @abstractmethod
    def sqnorms(self) -> FloatArray:
        """‖x‖² of every row, on the host."""

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """The diagonal of a matrix of kernel values, on the host."""

    @abstractmethod
    def asymmetry(self) -> tuple[float, float]:
        """The largest |K_ij - K_ji| of such a matrix, and the largest |K_ij|."""


def lives_on_device(values: Any) -> bool:
    """Whether an array, of whatever package, is in the memory of a CUDA device."""
    if isinstance(values, DeviceData):
        return True
    if type(values) is np.ndarray or not hasattr(values, "__dlpack_device__"):
        return False
    return int(values.__dlpack_device__()[0]) in _ON_DEVICE


def on_host(values: Any) -> Any:
    """Samples of a device as an array of the host; anything else as it is."""
    return values.on_host() if isinstance(values, DeviceData) else values
