"""The search over a grid: columns of points, each with a kernel of its own.

If points may be dropped, there are three parts:

    1. the first fold of every point;
    2. the other folds of the point that is best there: so that there is a good mean to compare others with;
    3. all other points, those that cannot be the best any more excepted.

The columns of a part know the best point of the parts before, and nothing of each other. So they may be
fitted at the same time, and what is dropped does not depend on how many are. Without dropping there is one
part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..system.typing import FloatArray
from .column import Column, Fits, Point, Score
from .dropping import Dropping
from .fits import Fold
from .progress import SearchProgress
from .results import Results
from .search_file import SearchFile
from .spread import Spread


def middle_first(count: int) -> list[int]:
    """0..count-1 from the middle outwards.

    Examples
    --------
    >>> middle_first(5)
    [2, 3, 1, 4, 0]
    """
    return sorted(range(count), key=lambda k: (abs(k - count // 2), -k))


@dataclass
class Search:
    """One search.

    Parameters
    ----------
    kernels : sequence of callables
        Each makes the fits of one kernel.
    order : sequence of int
        In which kernels are visited, as long as nothing is known of them.
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
        What an earlier search has done already, perhaps only the first folds of some points.
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
        self._looked: dict[int, Point] = {}  # points of which the first fold is done, by number

    @property
    def best(self) -> int:
        """The number of the best point."""
        return -self._best[1]

    def run(self, keep_interrupted: bool) -> None:
        """Fit all points; Ctrl-C ends the search if ``keep_interrupted`` and one point is done."""
        try:
            for point in self.begun:
                done = point.dropped or point.is_done(len(self.folds))
                (self._take if done else self._saw_first)(point)
            self._run()
            self._complete()
        except KeyboardInterrupt:
            if not keep_interrupted or not self.results.done.any():
                raise
            self.interrupted = True
        finally:
            if self.file is not None:
                self.file.save()
            self.progress.close()

    def _run(self) -> None:
        if len(self.params) == 1 and self.file is None:
            fits = self.kernels[0]()
            if self.whole_first:
                self.refitted = fits.fit(float(self.Cs[0]), fits.whole)
            for point in self._column(0).run(fits):
                self._take(point)
            return
        if self._looks_first:
            self._look([column for kernel in self.order if (column := self._column(kernel, seen=False)).todo])
            first = max(self._looked.values(), key=self._at_first, default=None)
            if first is not None:
                self._finish([self._column(first.number // len(self.Cs), only=first.number)])
        columns = [column for kernel in self.order if (column := self._column(kernel)).todo]
        self._finish(sorted(columns, key=lambda column: -column.seconds))  # the longest first

    @property
    def _looks_first(self) -> bool:
        return self.by is not None and self.dropping.can_drop and len(self.folds) > 1

    def _at_first(self, point: Point) -> tuple[float, int]:
        """The score of the first fold, and the place in the grid: of equal ones the first is the best."""
        return point.scores[0][str(self.by)], -point.number

    def _look(self, columns: Sequence[Column]) -> None:
        """Fit the first fold of all points."""
        for point in self.spread.points([replace(column, most=1) for column in columns]):
            self._saw_first(point)
            if self.file is not None:
                self.file.add(replace(point, out_of_fold=None))

    def _saw_first(self, point: Point) -> None:
        """The first folds of a point are done, and others are not."""
        self._looked[point.number] = point
        self.results.take(point)
        self.progress.step(len(point.scores))

    def _finish(self, columns: Sequence[Column]) -> None:
        for point in self.spread.points(columns):
            looked = self._looked.pop(point.number, None)
            if looked is not None and point.out_of_fold is not None:
                point.out_of_fold = [*(looked.out_of_fold or []), *point.out_of_fold]
            self._take(point, 0 if looked is None else len(looked.scores))
            if self.file is not None:
                self.file.add(point)

    def _column(self, kernel: int, only: int | None = None, seen: bool = True) -> Column:
        """What is left to do for a kernel, for ``only`` one point, or for points of which nothing is seen."""
        known, todo = self.results.known, []
        for number, C in enumerate(self.Cs, start=kernel * len(self.Cs)):
            if known[number] or only not in (None, number) or (number in self._looked and not seen):
                continue
            looked = self._looked.get(number, Point(number))
            facts, scores = list(looked.facts), list(looked.scores)
            todo.append((Point(number, facts, scores), float(C)))  # without the decision values
        make = self.kernels[kernel]
        return Column(make, todo, self.folds, self.score, self.by, self.dropping.copy())

    def _complete(self) -> None:
        """Fit the first folds of the best point again if their decision values were not in the file."""
        missing = len(self.folds) - len(self.out_of_fold)
        if self.by is None or not self.out_of_fold or not missing:
            return
        fits, C = self.kernels[self.best // len(self.Cs)](), float(self.Cs[self.best % len(self.Cs)])
        self.out_of_fold = [*(fits.fit(C, fold).scores for fold in range(missing)), *self.out_of_fold]

    def _take(self, point: Point, before: int = 0) -> None:
        """Nothing more is to be done for a point, of which so many folds were done ``before``."""
        self.results.take(point)
        self.progress.step(len(self.folds) - before)
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
