"""Scores of new samples: what a fitted model needs of all this, whatever engine has trained it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels import Kernel
from ..system.data import same_storage
from ..system.device_data import DeviceData
from ..system.threads import blas_threads
from ..system.typing import Data, FloatArray
from .cpu.scores import LaidOutScorer, scoring_layouts
from .cuda.device import is_available
from .cuda.scoring import DeviceScorer

_VALUES_AT_ONCE = 1 << 22  # kernel values that Python holds at a time


class Scorer:
    """Σ_i K(x, sv_i) coef_i for every row x of new data.

    Laying the support vectors out takes longer than scoring a few rows, so it is done once for each precision
    of data that comes, and kept. A model that was fitted with ``engine="cuda"`` scores on the GPU, if there
    is one. Data that are there are scored there, and so are their scores.
    """

    def __init__(self, kernel: Kernel, support: Any, coef: FloatArray, place: str = "cpu") -> None:
        self.kernel, self.support, self.coef, self.place = kernel, support, coef, place
        self._on_device: DeviceScorer | None = None
        self._laid_out: dict[str, LaidOutScorer] = {}

    def __call__(self, X: Data, n_threads: int) -> Any:
        """The scores, (rows of X, columns of coef): an array of the device if X is there."""
        if isinstance(X, DeviceData) or self._belongs_on_device():
            if self._on_device is None:
                self._on_device = DeviceScorer(self.kernel, self.support, self.coef)
            return self._on_device(X)
        out = np.zeros((X.shape[0], self.coef.shape[1]))
        if not len(self.coef):
            return out
        if self.kernel.native is None:
            self._in_python(X, n_threads, out)
            return out
        dtype = "auto" if X.dtype == self.support.dtype == np.float32 else "float64"
        with blas_threads(1):
            if dtype not in self._laid_out:
                layouts = scoring_layouts(self.kernel, self.support, self.coef, dtype)
                self._laid_out[dtype] = LaidOutScorer(layouts, 0.0, self.support, self.coef)
            self._laid_out[dtype](X, n_threads, out)
        return out

    def _belongs_on_device(self) -> bool:
        """Whether data of the host are scored on the GPU."""
        return self.place == "cuda" and self.kernel.native is not None and is_available()

    def _in_python(self, X: Data, n_threads: int, out: FloatArray) -> None:
        support = self.support
        if not self.kernel.pairwise:
            X, support = same_storage(X, support)
        step = max(1, _VALUES_AT_ONCE // len(self.coef))
        with blas_threads(n_threads):
            for first in range(0, X.shape[0], step):
                part = slice(first, first + step)
                out[part] = self.kernel.against(X[part], support) @ self.coef
