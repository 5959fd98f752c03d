"""A column of the grid: the points of one kernel, with every cost, fitted one after another.

Costs go from small to large, because a fit starts from a smaller one. A column fits so many folds of each
point. It leaves a point as it is if that cannot be the best any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

import numpy as np

from ..system.typing import FloatArray
from .dropping import Dropping
from .fits import Fold

FACTS = ("fit_time", "duality_gap", "violation", "converged", "n_iter", "n_updates", "kernel_rows")


class Fits(Protocol):
    """Fits one problem after another, each with a C and a number of a fold."""

    whole: int  # the number of the fold that has all samples

    def fit(self, C: float, fold: int) -> Any:
        """Return the certified ``solution``, ``scores`` of the test samples, ``seconds`` and ``rows``."""

    def fit_all(self, C: float, folds: Sequence[int]) -> Iterator[Any]:
        """The same of several folds."""


Score = Callable[[Fold, FloatArray], dict[str, float]]


@dataclass
class Point:
    """What is known of a point: the first folds, up to where it was dropped."""

    number: int
    facts: list[tuple[float, ...]] = field(default_factory=list)  # of each fit, in the order of ``FACTS``
    scores: list[dict[str, float]] = field(default_factory=list)  # of each fit, by metric
    dropped: bool = False
    bound: float = np.nan  # the largest mean that it could have reached
    out_of_fold: list[FloatArray] | None = None  # decision values, fold by fold, if it may be the best

    def is_done(self, folds: int) -> bool:
        """Whether it has been fitted in all folds."""
        return len(self.scores) == folds


@dataclass(frozen=True)
class Column:
    """The points of one kernel that are still to be fitted.

    Parameters
    ----------
    make : callable
        Makes the fits of the kernel.
    todo : sequence of (Point, float)
        The points, perhaps with some folds that are done, and the C of each.
    folds : sequence of Fold
        What every point is fitted to.
    score : callable
        The scores of a fold by its metrics, from the decision values of its test samples.
    by : str or None
        The metric that decides; None if points are not compared.
    dropping : Dropping
        Knows the best point of the columns before. It is not changed.
    most : int or None
        Folds of each point that are to be done in the end; None is all.
    """

    make: Callable[[], Fits]
    todo: Sequence[tuple[Point, float]]
    folds: Sequence[Fold]
    score: Score
    by: str | None
    dropping: Dropping
    most: int | None = None

    @property
    def seconds(self) -> float:
        """The seconds of the fits that are done, which say how long the others may take."""
        return sum(fact[0] for point, _ in self.todo for fact in point.facts)

    def points(self) -> Iterator[Point]:
        """Fit the points; each is told as soon as nothing more is to be done for it here."""
        return self._run(cache(self.make))  # nothing is made if all points are dropped

    def run(self, fits: Fits) -> Iterator[Point]:
        """The same with fits that are there already, which may solve all folds of a point at the same time.

        So all folds are fitted.
        """
        for point, C in self.todo:
            for fitted in fits.fit_all(C, range(len(point.scores), len(self.folds))):
                self._take(point, fitted)
            if self.by is not None:
                point.bound = self.dropping.bound(self._scores(point))
            yield point

    def _run(self, fits: Callable[[], Fits]) -> Iterator[Point]:
        dropping, most = self.dropping.copy(), len(self.folds) if self.most is None else self.most
        for point, C in sorted(self.todo, key=lambda pair: pair[1]):
            self._advance(point, C, fits, dropping, most)
            yield point

    def _advance(
        self, point: Point, C: float, fits: Callable[[], Fits], dropping: Dropping, most: int
    ) -> None:
        """Fit the other folds up to ``most``, unless they cannot change what the best point is."""
        while len(point.scores) < most:
            if self.by is not None and point.scores and dropping.drops(self._scores(point)):
                point.dropped, point.out_of_fold = True, None
                break
            self._take(point, fits().fit(C, len(point.scores)))
        if self.by is None:
            return
        scores = self._scores(point)
        point.bound = dropping.bound(scores)
        if point.is_done(len(self.folds)):
            dropping.saw(scores)
            if dropping.best_mean > scores.mean():
                point.out_of_fold = None  # nobody will ask for it

    def _take(self, point: Point, fitted: Any) -> None:
        """The next fold of a point has been fitted."""
        fold = len(point.scores)
        point.facts.append(_facts(fitted))
        point.scores.append(self.score(self.folds[fold], fitted.scores))
        point.out_of_fold = [*(point.out_of_fold or []), fitted.scores]

    def _scores(self, point: Point) -> FloatArray:
        """The deciding score in each fold; NaN for those that are not fitted."""
        scores = np.full(len(self.folds), np.nan)
        scores[: len(point.scores)] = [score[str(self.by)] for score in point.scores]
        return scores


def _facts(fitted: Any) -> tuple[float, ...]:
    solution = fitted.solution
    return (
        fitted.seconds,
        solution.gap,
        solution.violation,
        float(solution.status.converged),
        solution.trace.iterations,
        float(np.sum(solution.trace["inner"])),
        fitted.rows,
    )
