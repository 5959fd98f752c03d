"""Scores of samples against support vectors in native blocks: prediction, and the float64 proof."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ... import _core
from ...kernels import Kernel
from ...system.typing import Data, FloatArray
from .layouts import Layout

_CALL_FLOPS = 5e9  # of one native call
_CALL_ROWS = 256  # at least, and a multiple, of a call


@dataclass(frozen=True)
class Scorer:
    """Σ_i (K(x, sv_i) + offset) coef_i in native calls, each short enough that Ctrl-C is heard after it."""

    spec: _core.KernelSpec
    sv: _core.Samples
    sv_scale: FloatArray | None
    coef: FloatArray
    n_threads: int

    def steps(self, n: int, work: float) -> Iterator[tuple[int, int]]:
        """First and last row of each call for ``n`` samples whose kernel values take ``work`` each."""
        step = max(1, int(_CALL_FLOPS / (max(1, self.sv.n) * work)) // _CALL_ROWS) * _CALL_ROWS
        for first in range(0, n, step):
            yield first, min(first + step, n)

    def __call__(
        self, x: _core.Samples, first: int, last: int, scale: FloatArray | None, out: FloatArray
    ) -> None:
        coef = np.ascontiguousarray(self.coef)
        _core.kernel_scores(
            self.spec, self.sv, coef, x, first, last, self.sv_scale, scale, out, self.n_threads
        )


def scoring_layouts(kernel: Kernel, support: Data, dtype: str) -> list[Layout]:
    """Layouts for new data against the support vectors, the fastest first; the last holds any data."""
    grid = Layout.of_grid(kernel, support)
    integer = [] if grid is None else [grid, grid.widened()]
    return [layout for layout in integer if layout is not None] + [Layout.of_floats(kernel, support, dtype)]


def native_scores(
    layouts: list[Layout],
    offset: float,
    support: Data,
    coef: FloatArray,
    X: Data,
    n_threads: int,
    out: FloatArray,
) -> None:
    """Scores of the rows of ``X`` into ``out``, each part in the first layout that holds it."""
    scorers: dict[int, Scorer] = {}

    def scorer(k: int) -> Scorer:
        layout = layouts[k]
        if k not in scorers:
            sv, scale = layout.samples(support), layout.scale(support)
            scorers[k] = Scorer(layout.spec(offset), sv, scale, coef, n_threads)
        return scorers[k]

    for first, last in scorer(0).steps(X.shape[0], layouts[0].work(X)):
        part = X[first:last]
        k = next(k for k, layout in enumerate(layouts) if layout.holds(part))
        scale = layouts[k].scale(part)
        scorer(k)(layouts[k].samples(part), 0, last - first, scale, out[first:last])
