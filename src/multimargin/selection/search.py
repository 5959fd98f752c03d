"""The search over a grid: for each kernel all costs, for each cost all folds that are still worth it.

Kernels are visited from the middle of the grid outwards. Where the best point is usually found early, most
others are dropped after few folds. Costs go from small to large, because fits start from smaller ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..system.typing import FloatArray
from .dropping import Dropping
from .fits import Fitted, Fold, KernelFits
from .progress import SearchProgress
from .results import Results

Score = Callable[[Fold, FloatArray], dict[str, float]]


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
    Cs : sequence of float
        The costs, in the order of the grid.
    params : sequence of dict
        The points, all costs of the first kernel first.
    folds : sequence of Fold
        What every point is fitted to.
    score : callable
        The scores of a fold by its metrics, from the decision values of its test samples.
    dropping : Dropping
        Compares points by the metric ``by``; None if they are not compared.
    whole_first : bool
        Whether to fit the first point to all samples before its folds, which then start from there. That
        pays if the point will be refitted anyway, because there is no other.
    """

    kernels: Sequence[Callable[[], KernelFits]]
    Cs: Sequence[float]
    params: Sequence[dict[str, Any]]
    folds: Sequence[Fold]
    score: Score
    metrics: Sequence[str]
    by: str | None
    dropping: Dropping
    progress: SearchProgress
    whole_first: bool

    def __post_init__(self) -> None:
        self.results = Results(self.params, len(self.folds), self.metrics)
        self.interrupted = False
        self.out_of_fold: list[FloatArray] = []  # scores of the best point so far, fold by fold
        self._best = -np.inf, 0  # its mean, and minus its number: of equal points the first is the best
        self.last: tuple[int, KernelFits] | None = None  # the kernel that was used last
        self.refitted: Fitted | None = None  # a single point, fitted to all samples

    @property
    def best(self) -> int:
        """The number of the best point."""
        return -self._best[1]

    def run(self, keep_interrupted: bool) -> None:
        """Fit all points; Ctrl-C ends the search if ``keep_interrupted`` and one point is done."""
        try:
            for kernel in middle_first(len(self.kernels)):
                self.last = None  # the memory of the last one is free again
                fits = self.kernels[kernel]()
                self.last = kernel, fits
                if self.whole_first:
                    self.refitted = fits.fit(float(self.Cs[0]), fits.whole)
                for place in np.argsort(self.Cs, kind="stable"):
                    self._point(kernel * len(self.Cs) + int(place), float(self.Cs[place]), fits)
        except KeyboardInterrupt:
            if not keep_interrupted or not self.results.done.any():
                raise
            self.interrupted = True
        finally:
            self.progress.close()

    def _point(self, point: int, C: float, fits: KernelFits) -> None:
        results, kept = self.results, []
        scores = None if self.by is None else results.scores[self.by][point]
        for fold in range(len(self.folds)):
            fitted = self._fit(point, fold, C, fits)
            kept.append(fitted.scores)
            left = len(self.folds) - fold - 1
            if left and scores is not None and self.dropping.drops(scores):
                results.dropped[point] = True
                self.progress.step(left)
                break
        if scores is not None:
            results.bound[point] = self.dropping.bound(scores)
            self._compare(point, scores, kept)
        self.progress.point(self.params[point], results.dropped[point], scores)

    def _fit(self, point: int, fold: int, C: float, fits: KernelFits) -> Fitted:
        fitted = fits.fit(C, fold)
        self.results.note(point, fold, fitted, self.score(self.folds[fold], fitted.scores))
        self.progress.step()
        return fitted

    def _compare(self, point: int, scores: FloatArray, kept: list[FloatArray]) -> None:
        """Keep the out-of-fold scores if the point is the best so far."""
        if np.isnan(scores).any():
            return
        self.dropping.saw(scores)
        rank = float(scores.mean()), -point
        if rank > self._best:
            self._best, self.out_of_fold = rank, kept
