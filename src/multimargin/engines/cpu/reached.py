"""What a fit leaves to the next one with the same samples and kernel: its point, and the scores there.

The next fit has other costs, or leaves other samples out. Scores are linear in alpha. So those of its start
follow from the kernel rows of the samples whose alpha differs, and from no others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ... import _core
from ...system.typing import FloatArray
from .kernel_values import NativeValues
from .proof import Known
from .row_store import RowStore


@dataclass(frozen=True)
class Reached:
    """A point, and what is known of the scores there.

    ``length`` and ``known`` say how exact the scores are, and which of them were proved; see ``proof.py``.
    ``is_exact`` says that all were computed from alpha in float64.
    """

    alpha: FloatArray  # (n, m)
    scores: FloatArray  # K alpha
    length: FloatArray  # (m,)
    known: Known | None
    is_exact: bool = False

    @classmethod
    def nothing(cls, n: int, m: int) -> Reached:
        """The point zero."""
        return cls(np.zeros((n, m)), np.zeros((n, m)), np.zeros(m), None)

    def scaled(self, factor: float) -> Reached:
        """The point ``factor`` alpha: its scores need no kernel value."""
        known = self.known
        if known is not None:
            known = known._replace(scores=factor * known.scores, coef=factor * known.coef)
        length = abs(factor) * self.length
        return Reached(factor * self.alpha, factor * self.scores, length, known, self.is_exact)

    def at(self, alpha: FloatArray) -> Reached:
        """The same with ``alpha``, which differs by rounding alone."""
        return replace(self, alpha=alpha)

    def moved(self, alpha: FloatArray, rows: RowStore, n_threads: int, steady: bool) -> Reached:
        """The point ``alpha``, by the kernel rows of the samples that differ.

        It is reached from zero if that takes fewer rows. ``steady`` asks for more exact sums.
        """
        delta = alpha - self.alpha
        moved = np.flatnonzero(delta.any(axis=1))
        if np.count_nonzero(alpha.any(axis=1)) < len(moved):
            return Reached.nothing(*alpha.shape).moved(alpha, rows, n_threads, steady)
        delta, scores = delta[moved], self.scores.copy()
        if rows.keeps_rows:
            for store, slots, which in rows.visit(moved):
                with rows.values.one_blas_thread():
                    _core.update_gradient(scores, store, slots, delta[which], n_threads)
        elif len(moved):
            assert isinstance(rows.values, NativeValues)
            every = np.arange(len(alpha))
            rows.values.gradient(moved, delta, every, self.scores, scores, steady)
            rows.computed += len(moved)
        length = self.length + np.abs(delta).sum(axis=0)
        return Reached(alpha, scores, length, self.known, self.is_exact and not len(moved))
