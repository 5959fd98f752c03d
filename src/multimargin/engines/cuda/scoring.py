"""Scores of new samples on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ...kernels import Kernel
from ...system.device_data import DeviceData
from ...system.typing import Data, FloatArray
from .device import cupy, memory_errors
from .resident import Resident, resident
from .samples import DeviceSamples, Form
from .values import Tiles

_ROWS = 1 << 18  # new samples that are on the device at a time
_DENSE_VALUES = 1 << 26  # of sparse new samples, as dense ones
_MATRIX_ROWS = 1 << 14  # of new kernel values at a time


class DeviceScorer:
    """Σ_i K(x, sv_i) coef_i for new data, with the support vectors kept on the device."""

    @memory_errors()
    def __init__(self, kernel: Kernel, support: Any, coef: FloatArray) -> None:
        self._kernel = kernel
        self._coef = cupy().asarray(np.ascontiguousarray(coef))
        self._support: Any = support if kernel.pairwise or sp.issparse(support) else resident(support)
        self._form = None if kernel.pairwise or not len(coef) else Form.plan(kernel, self._support)
        self._laid_out: dict[bool, DeviceSamples] = {}

    @memory_errors()
    def __call__(self, X: Data) -> Any:
        """The scores, (rows of X, columns of coef): on the device if X is, else on the host."""
        there, shape = isinstance(X, DeviceData), (X.shape[0], self._coef.shape[1])
        out = cupy().zeros(shape) if there else np.zeros(shape)
        step = self._rows_at_once(X)
        for first in range(0, X.shape[0], step):
            part = slice(first, first + step)
            scores = self._scores(X[part])
            out[part] = scores if there else scores.get()
        return out

    def _rows_at_once(self, X: Data) -> int:
        if self._kernel.pairwise:
            return _MATRIX_ROWS
        return max(1, _DENSE_VALUES // X.shape[1]) if self._must_spread(X) else _ROWS

    def _must_spread(self, X: Data) -> bool:
        """Whether new samples are sparse, and the support vectors are dense."""
        return sp.issparse(X) and isinstance(self._support, Resident)

    def _scores(self, X: Data) -> Any:
        if self._form is None:  # kernel values, or a model without support vectors
            return self._of_values(X)
        if self._must_spread(X):
            X = X.toarray()
        X = X if sp.issparse(X) else resident(X)
        held = self._form.holds(X)
        form = self._form if held else self._form.in_float64(self._support)
        if held not in self._laid_out:
            self._laid_out[held] = DeviceSamples(form, self._support)
        support = self._laid_out[held]
        tiles, every = Tiles(form), support.rows(slice(0, support.n))
        return tiles.scores(support, every, self._coef, DeviceSamples(form, X)).T

    def _of_values(self, X: Data) -> Any:
        if not len(self._coef):
            return cupy().zeros((X.shape[0], self._coef.shape[1]))
        return resident(X).columns(self._support).values.astype(np.float64) @ self._coef
