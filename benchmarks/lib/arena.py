"""Contenders around one problem: everyone in a process of its own, fits on demand, models judged here."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.lib.contenders import Contender
from benchmarks.lib.data import Split
from benchmarks.lib.process import TooSlowError, Worker
from benchmarks.lib.scoring import Coefficients, InfeasibleError, Judgement, Weights, accuracy, judge
from benchmarks.lib.turns import WithdrawnError, take_turns
from benchmarks.workers.storage import write_split

TOL = 1e-3
STARTING = 120.0  # seconds for imports, loading and a small fit
MORE = {"intercept": "intercept_", "machine": "machine", "bias": "bias"}  # said of ours only


class View(NamedTuple):
    """The rows in one storage, with the kernel parameter that goes with it."""

    split: Split
    gamma: float | None  # None is the linear kernel


@dataclass
class Limits:
    """How often and how long."""

    repeats: int = 3
    patience: float = 60.0  # who needs longer for one fit is not asked again
    cap: float | None = None  # seconds after which a peer's fit or prediction is stopped
    at_least: float = 0.0  # seconds of fits in all, by more rounds
    threads: int = 2


@dataclass
class Result:
    """One contender's times and the worth of its model."""

    name: str
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    absent: str | None = None  # why there is no time
    slower_than: float | None = None  # the limit at which it was stopped
    facts: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)  # MB before the last fit, and at its peak
    predict_seconds: float | None = None
    accuracy: float | None = None
    coefficients: Coefficients | None = None
    weights: Weights | None = None  # of a linear model that has no coefficients
    judgement: Judgement | None = None
    labels: np.ndarray | None = None  # what its coefficients say of the test rows
    infeasible: str | None = None  # why its coefficients could not be judged
    disagreeing: int | None = None  # test rows that its own predict labels otherwise than its coefficients

    @property
    def best(self) -> float | None:
        return min(self.seconds, default=None)

    @property
    def median(self) -> float | None:
        return median(self.seconds) if self.seconds else None

    @property
    def spread(self) -> float | None:
        """(slowest - fastest) / fastest."""
        return max(self.seconds) / min(self.seconds) - 1 if self.seconds else None

    def record(self) -> dict[str, Any]:
        """What goes into a file."""
        large = ("coefficients", "weights", "labels", "judgement")
        kept = {key: value for key, value in vars(self).items() if key not in large}
        judgement = asdict(self.judgement) if self.judgement else None
        return kept | {"best": self.best, "median": self.median, "judgement": judgement}


class Arena:
    """A context in which contenders can be asked to fit one problem, as often as one likes."""

    def __init__(
        self,
        views: dict[str, View],
        contenders: Iterable[Contender],
        threads: int,
        *,
        judged: bool = True,
        callgrind: bool = False,
        cold: bool = False,
    ) -> None:
        self.views = views
        self.contenders = {contender.name: contender for contender in contenders}
        self.threads = threads
        self.judged = judged  # whether models are judged; if not, only times and facts are known
        self.callgrind = callgrind  # whether everyone runs under callgrind, to count instructions
        self.cold = cold  # whether every fit is the first one of a fresh process
        self.absent: dict[str, str] = {}  # who takes no part, and why
        self._workers: dict[str, Worker] = {}

    def __enter__(self) -> Arena:
        self._folder = tempfile.TemporaryDirectory(prefix="multimargin-bench-")
        for key, view in self.views.items():
            write_split(self._file(f"{key}.npz"), view.split)
        for name, contender in self.contenders.items():
            reason = contender.missing()
            if reason is None:
                self._start(name)
            else:
                self.absent[name] = reason
        for name in self._workers:
            try:
                self._prepare(name)
            except WithdrawnError as error:
                self.absent[name] = str(error)
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            worker.close()
        self._folder.cleanup()

    def measure(
        self, C: float, limits: Limits, own: dict[str, dict[str, Any]] | None = None, **changes: Any
    ) -> dict[str, Result]:
        """Everyone fits, taking turns, and models are judged; ``changes`` replace parameters of all.

        With ``own`` only those take part who are named in it, with parameters of their own.
        """
        if own is None:
            own = dict.fromkeys(self.contenders, changes)
        results = {name: Result(name, absent=self.absent.get(name)) for name in own}

        def fit(name: str) -> float:
            try:
                answer = self._fit(name, C, limits.cap, changes | own[name])
                if limits.cap is not None and answer["seconds"] > limits.cap:  # it ended before its stop
                    raise TooSlowError(limits.cap)
            except TooSlowError as slow:
                results[name].slower_than = slow.limit
                raise
            results[name].facts, results[name].memory = answer["facts"], answer["memory"]
            results[name].cpu.append(answer["cpu"])
            return answer["seconds"]

        present = [name for name in own if name not in self.absent]
        seconds, reasons = take_turns(
            present, fit, limits.repeats, patience=limits.patience, at_least=limits.at_least
        )
        for name in present:
            results[name].seconds, results[name].absent = seconds[name], reasons.get(name)
            if self.judged and name not in reasons:
                self._judge(results[name], C, changes | own[name])
        return results

    def instructions(self, name: str, C: float, **changes: Any) -> int | None:
        """Of one more fit, if they can be counted here."""
        return self._workers[name].ask("count", **self._parameters(name, C, changes))["instructions"]

    def predict(self, result: Result, cap: float | None) -> None:
        """The last fit's model labels the test rows."""
        file = self._file("labels.npy")
        try:
            answer = self._workers[result.name].ask("predict", limit=cap, file=str(file))
        except TooSlowError:
            return  # its time of fit stands
        labels, view = np.load(file), self.views[self.contenders[result.name].view]
        result.predict_seconds = answer["seconds"]
        result.accuracy = accuracy(labels, view.split.y_test)
        if result.labels is not None:
            result.accuracy = result.judgement.accuracy
            result.disagreeing = int(np.sum(labels != result.labels))

    def _fit(self, name: str, C: float, cap: float | None, changes: dict[str, Any]) -> dict[str, Any]:
        if self.cold or self._workers[name].ended:  # it may have been too slow at another point
            self._workers[name].close()
            self._start(name)
            self._prepare(name)
        return self._workers[name].ask("fit", limit=cap, **self._parameters(name, C, changes))

    def _judge(self, result: Result, C: float, changes: dict[str, Any]) -> None:
        """By the coefficients of the last fit's model, if it has any; weights are kept."""
        file = self._file("coefficients.npz")
        if not self._workers[result.name].ask("coefficients", file=str(file))["found"]:
            return
        with np.load(file) as found:
            if "weights" in found:
                result.weights = Weights(found["weights"], found["classes"])
                return
            result.coefficients = Coefficients(
                found["support"],
                found["dual_coef"],
                found["classes"],
                **{name: found[key][()] for key, name in MORE.items() if key in found},
            )
        view = self.views[self.contenders[result.name].view]
        gamma = changes.get("gamma", view.gamma)
        try:
            result.judgement, result.labels = judge(result.coefficients, view.split, C, gamma)
        except InfeasibleError as reason:
            result.infeasible = str(reason)

    def _start(self, name: str) -> None:
        contender = self.contenders[name]
        file = self._file(f"{contender.view}.npz")
        self._workers[name] = Worker(contender, file, self.threads, self.callgrind)

    def _prepare(self, name: str) -> None:
        """Import and load the data; unless first fits are asked for, make a small fit before."""
        if self.cold:
            self._workers[name].ask("load", limit=STARTING)
        else:
            self._workers[name].ask("warm_up", limit=STARTING, **self._parameters(name, 1.0, {}))

    def _parameters(self, name: str, C: float, changes: dict[str, Any]) -> dict[str, Any]:
        contender = self.contenders[name]
        return {"C": C, "gamma": self.views[contender.view].gamma, "tol": TOL} | contender.options | changes

    def _file(self, name: str) -> Path:
        return Path(self._folder.name) / name


def race(
    views: dict[str, View], C: float, contenders: Iterable[Contender], limits: Limits
) -> dict[str, Result]:
    """Everyone fits, taking turns; every model is judged, and predicts."""
    with Arena(views, contenders, limits.threads) as arena:
        results = arena.measure(C, limits)
        for result in results.values():
            if result.absent is None:
                arena.predict(result, limits.cap)
        return results
