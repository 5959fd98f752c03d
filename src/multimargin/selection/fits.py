"""The fits of one kernel: all costs and all folds, by one engine that keeps the kernel rows.

A fold is the whole problem without the samples of its test set, which have no weight and are in no working
set. But their rows of the gradient are kept up to date, so that it has their out-of-fold scores in the end.

A fit starts from the nearest solution that is known:

    the same fold at a smaller C    with α scaled by the ratio of the two C: bounded variables grow in
                                    proportion to C, and scores scale without any kernel value. If few
                                    samples are bounded, α as it is; if none are, that is the solution.
    all samples                     at the same C or a smaller one, without the samples that are now left out
    the fold that was fitted last   likewise
    nothing                         from zero
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..engines import EngineOptions
from ..engines.base import Task
from ..engines.lasting import Lasting, Place
from ..methods.decomposition import Decomposition
from ..run.monitor import Monitor
from ..solution import Solution
from ..system.typing import FloatArray, IntArray

_WARM_SHARE = 0.02  # of a block's violation that is left, if a fit starts near its end: few samples are new
_MOST_PLACES = 16  # folds whose last solution is kept
_BOUNDED = 2  # what ``Problem.group`` says of a bounded sample
_MANY_BOUNDED = 0.1  # of the support vectors: α is scaled with C
_ROUNDING = 1e-12  # of C_i: a start that is made feasible may differ by so much without a kernel row


@dataclass(frozen=True)
class Fold:
    """Who trains, who is tested, and what each sample costs if C is 1."""

    left_out: np.ndarray | None  # mask; None if all samples take part
    test: IntArray
    unit: FloatArray


class Fitted(NamedTuple):
    """One certified fit."""

    task: Task
    solution: Solution
    scores: FloatArray  # of the test samples, a column per class; one column for c-svc
    seconds: float
    rows: int  # kernel rows that had to be computed


class _End(NamedTuple):
    """Where a fit has ended."""

    C: float
    reached: Place
    bias: FloatArray
    bounded: float  # the share of the support vectors that are at their bounds


class KernelFits:
    """Fits one problem after another with the same kernel.

    Parameters
    ----------
    task : Task
        The problem at its smallest costs, which decide the offset of a free bias.
    largest : ndarray
        The largest costs that will be asked for: they decide the precision of kernel rows.
    folds : sequence of Fold
        The problems; the last one has all samples.
    kind : type of Lasting
        The engine.
    """

    def __init__(
        self,
        task: Task,
        largest: FloatArray,
        folds: Sequence[Fold],
        method: Decomposition,
        options: EngineOptions,
        kind: type[Lasting],
    ) -> None:
        self.task, self.folds, self.options = task, folds, options
        warm = replace(method, inner_share=min(method.inner_share, _WARM_SHARE), inner_share_anew=None)
        self._methods = {False: method, True: warm}  # by whether a fit starts from another one
        self.engine = kind(replace(task, C=largest), options)
        self.whole = len(folds) - 1
        self._places: dict[int, _End] = {}
        self._last: int | None = None  # the fold that was fitted last

    def fit(self, C: float, fold: int) -> Fitted:
        """Solve a fold, certified to the tolerance."""
        begin, rows = time.perf_counter(), self.engine.counts().rows
        monitor = Monitor()  # its clock counts the start, as the profile of the engine does
        method = self._methods[self._begin(C, fold)]
        monitor.trace.info["solver"] = "auto"
        solution = method.run(
            self.engine,
            monitor,
            tol=self.options.tol,
            rng=np.random.default_rng(self.options.seed),
            free_bias=self.options.free_bias,
        )
        solution.judge_gap()
        scores = self.engine.scores(self.folds[fold].test)
        self._keep(C, fold)
        computed = self.engine.counts().rows - rows
        return Fitted(self.engine.task, solution, scores, time.perf_counter() - begin, computed)

    def _begin(self, C: float, fold: int) -> bool:
        """Give the engine its next problem and a start; whether that is another solution."""
        left_out, unit = self.folds[fold].left_out, self.folds[fold].unit
        task, near = replace(self.task, C=C * unit, left_out=left_out), self._near(C, fold)
        if near is None:
            self.engine.another(task)
            return False
        reached, bias = near
        alpha = reached.alpha.copy()
        if left_out is not None:
            alpha[left_out] = 0.0
        alpha = task.problem.shrink_into(alpha, task.y, task.C)
        ids = np.flatnonzero(alpha.any(axis=1))
        task = replace(task, start=(ids, alpha[ids]), bias=bias if self.options.free_bias else None)
        self.engine.another(task, _rounded(reached, alpha, task.C))
        return True

    def _near(self, C: float, fold: int) -> tuple[Place, FloatArray] | None:
        """The nearest point that is known, and its bias."""
        for number in (fold, self.whole, self._last):
            place = None if number is None else self._places.get(number)
            if place is not None and place.C <= C:
                scale = C / place.C if place.bounded > _MANY_BOUNDED else 1.0
                return (place.reached if scale == 1.0 else place.reached.scaled(scale)), place.bias
        return None

    def _keep(self, C: float, fold: int) -> None:
        """Keep the point that was reached, for later fits."""
        task, reached = self.engine.task, self.engine.reached()
        support = np.flatnonzero(reached.alpha.any(axis=1))
        groups = task.problem.group(reached.alpha[support], task.y[support], task.C[support])
        if len(self._places) >= _MOST_PLACES and fold not in self._places:
            del self._places[next(reversed(self._places))]
        bounded = np.count_nonzero(groups == _BOUNDED) / max(1, len(support))
        self._places[fold] = _End(C, reached, self.engine.bias.copy(), bounded)
        self._last = fold


def _rounded(reached: Place, alpha: FloatArray, C: FloatArray) -> Place:
    """The same point, with rows of ``alpha`` where these differ by rounding alone."""
    same = np.abs(reached.alpha - alpha).max(axis=1) <= _ROUNDING * C
    return reached.at(np.where(same[:, None], alpha, reached.alpha))
