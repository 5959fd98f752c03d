"""The fits of one linear machine: all costs and all folds, each from the solution for the next smaller C.

If most support vectors are at their bounds, α is scaled by the ratio of the two C, because bounded
coefficients grow in proportion to C. The start is made feasible, and its weights are rebuilt from α.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..linear.descent import LinearOptions, TrainingSet
from ..linear.stages import StagedFit
from ..run.monitor import Monitor
from ..solution import LinearSolution
from ..system.typing import Data, FloatArray, LabelArray
from .fits import Fold

_MANY_BOUNDED = 0.5  # of the support vectors
_AT_BOUND = 1.0 - 1e-9  # of a cost


class LinearFitted(NamedTuple):
    """One certified fit."""

    data: TrainingSet
    solution: LinearSolution
    scores: FloatArray  # of the test samples, a column per class
    seconds: float
    rows: int = 0  # kernel rows: there are none


class LinearFits:
    """Fits one fold after another.

    Parameters
    ----------
    X, y
        All samples, and their labels 0..m-1.
    folds : sequence of Fold
        The problems; the last one has all samples.
    options : LinearOptions
        How to solve them.
    m, constant, machine
        See ``TrainingSet``.
    """

    def __init__(
        self,
        X: Data,
        y: LabelArray,
        folds: Sequence[Fold],
        options: LinearOptions,
        m: int,
        constant: float,
        machine: str,
    ) -> None:
        self.X, self.y, self.folds, self.options = X, y, folds, options
        self.m, self.constant, self.machine = m, constant, machine
        self.whole = len(folds) - 1
        self._last: dict[int, tuple[float, sp.csr_array, bool]] = {}  # by fold: C, α, many are bounded

    def fit(self, C: float, fold: int) -> LinearFitted:
        """Solve a fold, certified to the tolerance."""
        begin = time.perf_counter()
        data = self._data(C, fold)
        solution = StagedFit(data, self.options).solve(Monitor())
        solution.judge_gap()
        self._keep(C, fold, solution.alpha, data.C)
        scores = self._scores(solution.weights, self.folds[fold].test)
        return LinearFitted(data, solution, scores, time.perf_counter() - begin)

    def fit_all(self, C: float, folds: Sequence[int]) -> Iterator[LinearFitted]:
        """Solve folds one after another: a fit runs on all threads."""
        return (self.fit(C, fold) for fold in folds)

    def _data(self, C: float, fold: int) -> TrainingSet:
        out, unit = self.folds[fold].left_out, self.folds[fold].unit
        X, y, cost = self.X, self.y, C * unit
        if out is not None:
            train = np.flatnonzero(~out)
            X, y, cost = X[train], y[train], cost[train]
        data = TrainingSet(X, y, cost, self.m, self.constant, None, machine=self.machine)
        before = self._last.get(fold)
        if before is None or before[0] > C:
            return data
        scale = C / before[0] if before[2] else 1.0
        start = data.problem.shrink_sparse_into(before[1] * scale, y, cost)
        return TrainingSet(X, y, cost, self.m, self.constant, start, machine=self.machine)

    def _keep(self, C: float, fold: int, alpha: sp.csr_array, cost: FloatArray) -> None:
        """Keep the solution for the next C."""
        largest = abs(alpha).max(axis=1).toarray().ravel()
        bounded = np.count_nonzero(largest >= _AT_BOUND * cost)
        support = int(np.count_nonzero(largest))
        self._last[fold] = C, alpha, bool(bounded > _MANY_BOUNDED * support)

    def _scores(self, weights: FloatArray, test: np.ndarray) -> FloatArray:
        d = self.X.shape[1]
        scores = np.asarray(self.X[test] @ weights[:d, : self.m])
        return scores + self.constant * weights[d, : self.m] if self.constant else scores
