"""The search over a grid: columns of points, each with a kernel of its own, in waves.

Kernels are visited from the middle of the grid outwards. Where the best point is usually found early, most
others are dropped after few folds. The first wave has one column, and each wave has twice as many as the one
before. The columns of a wave know the best point of the waves before, and nothing of each other. So they may
be fitted at the same time, and what is dropped does not depend on how many are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..system.typing import FloatArray
from .column import Column, Fits, Point, Score
from .dropping import Dropping
from .fits import Fold
from .progress import SearchProgress
from .results import Results
from .search_file import SearchFile
from .spread import Here, Spread


def middle_first(count: int) -> list[int]:
    """0..count-1 from the middle outwards.

    Examples
    --------
    >>> middle_first(5)
    [2, 3, 1, 4, 0]
    """
    return sorted(range(count), key=lambda k: (abs(k - count // 2), -k))


def in_waves(order: Sequence[int]) -> list[list[int]]:
    """Parts of ``order`` with 1, 2, 4, … entries; the last has what is left.

    Examples
    --------
    >>> in_waves([2, 3, 1, 4, 0])
    [[2], [3, 1], [4, 0]]
    """
    parts, size = [], 1
    while len(order):
        parts.append(list(order[:size]))
        order, size = order[size:], 2 * size
    return parts


@dataclass
class Search:
    """One search.

    Parameters
    ----------
    kernels : sequence of callables
        Each makes the fits of one kernel.
    order : sequence of int
        In which kernels are visited.
    Cs : sequence of float
        The costs, in the order of the grid.
    params : sequence of dict
        The points, all costs of the first kernel first.
    folds, score, metrics, by, dropping
        See ``Column``.
    whole_first : bool
        Whether to fit the first point to all samples before its folds, which then start from there. That
        pays if the point will be refitted anyway, because there is no other.
    spread : Spread
        Who fits the columns.
    file : SearchFile or None
        Where finished points are written to.
    begun : sequence of Point
        What an earlier search has done already.
    """

    kernels: Sequence[Callable[[], Fits]]
    order: Sequence[int]
    Cs: Sequence[float]
    params: Sequence[dict[str, Any]]
    folds: Sequence[Fold]
    score: Score
    metrics: Sequence[str]
    by: str | None
    dropping: Dropping
    progress: SearchProgress
    whole_first: bool
    spread: Spread
    file: SearchFile | None = None
    begun: Sequence[Point] = ()

    def __post_init__(self) -> None:
        self.results = Results(self.params, len(self.folds), self.metrics)
        self.interrupted = False
        self.out_of_fold: list[FloatArray] = []  # scores of the best point so far, fold by fold
        self._best = -np.inf, 0  # its mean, and minus its number: of equal points the first is the best
        self.refitted: Any = None  # a single point, fitted to all samples

    @property
    def best(self) -> int:
        """The number of the best point."""
        return -self._best[1]

    def run(self, keep_interrupted: bool) -> None:
        """Fit all points; Ctrl-C ends the search if ``keep_interrupted`` and one point is done."""
        try:
            for point in self.begun:
                self._take(point)
            self._run()
        except KeyboardInterrupt:
            if not keep_interrupted or not self.results.done.any():
                raise
            self.interrupted = True
        finally:
            if self.file is not None:
                self.file.save()
            self.progress.close()

    def _run(self) -> None:
        if self.whole_first:
            fits = self.kernels[0]()
            self.refitted = fits.fit(float(self.Cs[0]), fits.whole)
            for point in self._column(0).run(fits):
                self._take(point)
            return
        for wave in in_waves(self.order):
            columns = [column for kernel in wave if (column := self._column(kernel)).costs]
            spread = Here() if not columns else self.spread
            for point in spread.points(columns):
                self._take(point)
                if self.file is not None:
                    self.file.add(point)

    def _column(self, kernel: int) -> Column:
        """What is left to do for a kernel."""
        first, known = kernel * len(self.Cs), self.results.known
        costs = [(first + k, float(C)) for k, C in enumerate(self.Cs) if not known[first + k]]
        make = self.kernels[kernel]
        return Column(make, costs, self.folds, self.score, self.by, self.dropping.copy())

    def _take(self, point: Point) -> None:
        """Nothing more is to be done for a point."""
        self.results.take(point)
        self.progress.step(len(self.folds))
        scores = None
        if self.by is not None:
            scores = self.results.scores[self.by][point.number]
            self._compare(point, scores)
        self.progress.point(self.params[point.number], point.dropped, scores)

    def _compare(self, point: Point, scores: FloatArray) -> None:
        """Keep the out-of-fold scores if the point is the best so far."""
        if np.isnan(scores).any():
            return
        self.dropping.saw(scores)
        rank = float(scores.mean()), -point.number
        if rank > self._best and point.out_of_fold is not None:
            self._best, self.out_of_fold = rank, point.out_of_fold
