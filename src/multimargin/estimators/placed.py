"""Scores and predictions where the samples are: on the host, or on a device in the user's own kind."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..engines.cuda.resident import copied
from ..system.device_data import DeviceData, lives_on_device
from ..system.typing import Data, FloatArray
from .base import winners


class Scored(NamedTuple):
    """Checked samples, and values of each of them, which are where the samples are."""

    data: Data
    values: Any

    def on_host(self) -> FloatArray:
        """The values as NumPy has them."""
        return self.data.fetch(self.values) if isinstance(self.data, DeviceData) else self.values

    def handed_back(self) -> Any:
        """The values in the kind of array that the samples were given in."""
        return self.data.hand_back(self.values) if isinstance(self.data, DeviceData) else self.values

    def labels(self, classes: np.ndarray) -> Any:
        """The label of the largest score of each sample, in that kind; NumPy's if labels are no numbers."""
        if not isinstance(self.data, DeviceData):
            return winners(self.values, classes)
        best = (self.values > 0).astype(int) if self.values.ndim == 1 else self.values.argmax(axis=1)
        if classes.dtype.kind not in "biuf":
            return classes[self.data.fetch(best)]
        return self.data.hand_back(self.data.beside(classes)[best])


def beside(X: Data, values: np.ndarray) -> Any:
    """An array of the host where the samples are."""
    return X.beside(values) if isinstance(X, DeviceData) else values


def numpy_array(values: Any) -> Any:
    """Labels, weights, predictions: a copy on the host if they are on a device, else as they are."""
    return copied(values) if lives_on_device(values) else values
