"""Scores of samples against support vectors in native blocks: prediction, and the float64 proof."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from ... import _core
from ...inner import work
from ...kernels import Kernel
from ...system.data import features_per_sample
from ...system.typing import Data, FloatArray
from .layouts import Layout

_CALL_ROWS = 256  # the rows of one native call are a multiple of this
_DENSE_VALUES = 1 << 22  # of sparse data made dense at a time


@dataclass(frozen=True)
class SupportScorer:
    """Σ_i (K(x, sv_i) + offset) coef_i in native calls, each short enough that Ctrl-C is heard after it.

    A kernel value takes ``cost``.
    """

    spec: _core.KernelSpec
    sv: _core.Samples
    coef: FloatArray
    cost: float

    def steps(self, n: int, n_threads: int) -> Iterator[tuple[int, int]]:
        """First and last row of each call for ``n`` samples.

        More threads get more rows: so that each has some, and because they take no longer.
        """
        rows = n_threads * work.SCORES_CALL / (max(1, self.sv.n) * self.cost)
        step = max(1, int(rows) // _CALL_ROWS) * _CALL_ROWS
        for first in range(0, n, step):
            yield first, min(first + step, n)

    def __call__(self, x: _core.Samples, first: int, last: int, out: FloatArray, n_threads: int) -> None:
        """The scores of ``x[first:last]``, into ``out``."""
        _core.kernel_scores(self.spec, self.sv, self.coef, x, first, last, out, n_threads)

    def among(self, n_threads: int) -> FloatArray:
        """The scores of the support vectors themselves: half of the kernel values serve, by symmetry."""
        n, tile = self.sv.n, _core.SQUARE_TILE
        pairs = n_threads * work.SCORES_CALL / self.cost  # of one call: about (last² - first²) / 2
        out, first = np.zeros(self.coef.shape), 0
        while first < n:
            last = int(math.sqrt(first**2 + 2 * pairs)) // tile * tile
            last = min(max(last, first + tile), n)
            _core.square_scores(self.spec, self.sv, self.coef, first, last, out, n_threads)
            first = last
        return out


@dataclass
class LaidOutScorer:
    """Scores of any data against support vectors, each part of the data in the first layout that holds it.

    The support vectors are laid out when a layout is needed for the first time, and stay so. The data become
    dense or sparse as the support vectors are.
    """

    layouts: list[Layout]
    offset: float
    support: Data
    coef: FloatArray
    _scorers: dict[int, SupportScorer] = field(default_factory=dict)

    def _scorer(self, k: int) -> SupportScorer:
        if k not in self._scorers:
            layout, coef = self.layouts[k], np.ascontiguousarray(self.coef)
            cost = layout.work(features_per_sample(self.support))
            sv = layout.samples(self.support)
            self._scorers[k] = SupportScorer(layout.spec(self.offset), sv, coef, cost)
        return self._scorers[k]

    def __call__(self, X: Data, n_threads: int, out: FloatArray) -> None:
        """The scores of the rows of ``X``, into ``out``."""
        for first, last, part in self._parts(X, n_threads):
            k = next(k for k, layout in enumerate(self.layouts) if layout.holds(part))
            self._scorer(k)(self.layouts[k].samples(part), 0, last - first, out[first:last], n_threads)

    def among(self, n_threads: int) -> FloatArray:
        """The scores of the support vectors themselves."""
        return self._scorer(0).among(n_threads)

    def _parts(self, X: Data, n_threads: int) -> Iterator[tuple[int, int, Data]]:
        dense, n = not sp.issparse(self.support), X.shape[0]
        if not dense and not sp.issparse(X):
            X = sp.csr_array(X)
        most = max(1, _DENSE_VALUES // X.shape[1]) if dense and sp.issparse(X) else n
        for begin, end in self._scorer(0).steps(n, n_threads):
            for first in range(begin, end, most):
                last = min(first + most, end)
                part = X[first:last]
                yield first, last, part.toarray() if dense and sp.issparse(part) else part


def scoring_layouts(kernel: Kernel, support: Data, coef: FloatArray, dtype: str) -> list[Layout]:
    """Layouts for new data against the support vectors, the fastest first; the last holds any data.

    Unless ``dtype`` is "float64", values are computed in float32 if the scores then stay as exact as a
    certificate claims.
    """
    grid = Layout.of_grid(kernel, support)
    integer = [] if grid is None else [grid, grid.widened()]
    floats = Layout.of_floats(kernel, support, dtype).for_scores(support, coef)
    return [layout for layout in integer if layout is not None] + floats
