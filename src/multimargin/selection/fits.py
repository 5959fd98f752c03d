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

The folds of a single point may be solved at the same time, in threads. Then each starts from all samples,
which are solved roughly first if they are not solved yet. So no result depends on which fold is done first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ..engines import EngineOptions
from ..engines.base import Task
from ..engines.lasting import Lasting, Place
from ..methods.decomposition import Decomposition
from ..methods.working_sets import Growing
from ..run.monitor import Monitor
from ..solution import Solution, TraceRow
from ..system.memory import WHOLE_SAMPLES
from ..system.typing import FloatArray, IntArray
from .at_once import at_once

# If a fit starts near its end: what a block leaves of its violation, if kernel rows are kept and if they are
# computed anew; and how many samples may join the support vectors in a round, as a share of these.
_WARM_SHARE, _WARM_SHARE_ANEW, _WARM_GROWTH = 0.02, 0.05, 0.3
_ROUGH = 0.5  # largest violation of a rough solution, in margin units: few support vectors are missing then
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
        self._methods = {False: method, True: _warm(method)}  # by whether a fit starts from another one
        self.engine = kind(replace(task, C=largest), options)
        self.whole = len(folds) - 1
        self._places: dict[int, _End] = {}
        self._last: int | None = None  # the fold that was fitted last

    def fit(self, C: float, fold: int) -> Fitted:
        """Solve a fold, certified to the tolerance."""
        fitted = self._solve(self.engine, C, fold, Monitor())
        self._keep(C, fold)
        return fitted

    def fit_all(self, C: float, folds: Sequence[int]) -> Iterator[Fitted]:
        """Solve folds at one C: as many at the same time as there are threads, if the samples are not few.

        With a free bias much of a fit is Python, of which one thread runs at a time.
        """
        few = self.engine.n <= WHOLE_SAMPLES
        if few or self.options.free_bias or not self.engine.may_have_twins:
            yield from (self.fit(C, fold) for fold in folds)
            return
        if self.whole not in self._places:
            self._approach(C)
        twins: list[Lasting] = []
        first = 0
        while first < len(folds):
            count = min(self.options.n_threads, len(folds) - first)
            if len(twins) != count:
                twins = []  # two sets of them may not fit
                twins = self.engine.twins(count) if count > 1 else []
            engines, stop = twins or [self.engine], threading.Event()
            calls = [
                partial(self._solve, engine, C, fold, Monitor(observers=[partial(_is_set, stop)]))
                for engine, fold in zip(engines, folds[first:], strict=False)
            ]
            with self.engine.lent_to(twins):
                fitted = at_once(calls, stop)
            yield from fitted
            first += len(calls)

    def _approach(self, C: float) -> None:
        """Solve roughly for all samples."""
        method = self._methods[self._begin(self.engine, C, self.whole)]
        method.approach(
            self.engine,
            Monitor(observers=[lambda row: row.violation <= _ROUGH]),
            tol=self.options.tol,
            rng=np.random.default_rng(self.options.seed),
            free_bias=self.options.free_bias,
        )
        self._keep(C, self.whole)

    def _solve(self, engine: Lasting, C: float, fold: int, monitor: Monitor) -> Fitted:
        begin, rows = time.perf_counter(), engine.counts().rows
        method = self._methods[self._begin(engine, C, fold)]
        monitor.trace.info["solver"] = "auto"
        solution = method.run(
            engine,
            monitor,
            tol=self.options.tol,
            rng=np.random.default_rng(self.options.seed),
            free_bias=self.options.free_bias,
        )
        solution.judge_gap()
        scores = engine.scores(self.folds[fold].test)
        computed = engine.counts().rows - rows
        return Fitted(engine.task, solution, scores, time.perf_counter() - begin, computed)

    def _begin(self, engine: Lasting, C: float, fold: int) -> bool:
        """Give the engine its next problem and a start; whether that is another solution."""
        left_out, unit = self.folds[fold].left_out, self.folds[fold].unit
        task, near = replace(self.task, C=C * unit, left_out=left_out), self._near(C, fold)
        if near is None:
            engine.another(task)
            return False
        reached, bias = near
        alpha = reached.alpha.copy()
        if left_out is not None:
            alpha[left_out] = 0.0
        alpha = task.problem.shrink_into(alpha, task.y, task.C)
        ids = np.flatnonzero(alpha.any(axis=1))
        task = replace(task, start=(ids, alpha[ids]), bias=bias if self.options.free_bias else None)
        engine.another(task, _rounded(reached, alpha, task.C))
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


def _is_set(stop: threading.Event, _: TraceRow) -> bool:
    return stop.is_set()


def _warm(method: Decomposition) -> Decomposition:
    """The same method for a fit that starts near its end."""
    rule, share = method.working_set, min(method.inner_share, _WARM_SHARE)
    if isinstance(rule, Growing):
        rule = replace(rule, share=min(rule.share, _WARM_GROWTH), share_anew=_WARM_GROWTH)
    return replace(method, working_set=rule, inner_share=share, inner_share_anew=_WARM_SHARE_ANEW)


def _rounded(reached: Place, alpha: FloatArray, C: FloatArray) -> Place:
    """The same point, with rows of ``alpha`` where these differ by rounding alone."""
    same = np.abs(reached.alpha - alpha).max(axis=1) <= _ROUNDING * C
    return reached.at(np.where(same[:, None], alpha, reached.alpha))
