"""Scores of new samples on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...kernels import Kernel
from ...system.typing import Data, FloatArray
from .device import cupy
from .samples import DeviceSamples, Form
from .values import Tiles

_ROWS = 1 << 18  # new samples that are on the device at a time


class DeviceScorer:
    """Σ_i K(x, sv_i) coef_i for new data, with the support vectors kept on the device."""

    def __init__(self, kernel: Kernel, support: Data, coef: FloatArray) -> None:
        self._kernel, self._support = kernel, support
        self._coef = cupy().asarray(np.ascontiguousarray(coef))
        self._form = Form.plan(kernel, support)
        self._laid_out: dict[bool, DeviceSamples] = {}

    def __call__(self, X: Data) -> FloatArray:
        """The scores, (rows of X, columns of coef)."""
        out = np.empty((X.shape[0], self._coef.shape[1]))
        for first in range(0, X.shape[0], _ROWS):
            part = slice(first, first + _ROWS)
            out[part] = self._scores(X[part]).T.get()
        return out

    def _scores(self, X: Data) -> Any:
        held = self._form.holds(X)
        form = self._form if held else self._form.in_float64(self._support)
        if held not in self._laid_out:
            self._laid_out[held] = DeviceSamples(form, self._support)
        support = self._laid_out[held]
        return Tiles(form).scores(
            support, support.rows(slice(0, support.n)), self._coef, DeviceSamples(form, X)
        )
