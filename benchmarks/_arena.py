"""Contenders around one problem: everyone in a process of its own, fits on demand, models judged here."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from _contenders import Contender
from _data import Split
from _scoring import Coefficients, InfeasibleError, Judgement, accuracy, judge
from _turns import WithdrawnError, take_turns
from _worker import TooSlowError, Worker
from peers.storage import write_split

TOL = 1e-3
STARTING = 120.0  # seconds for imports, loading and a small fit


class View(NamedTuple):
    """The rows in one storage, with the kernel parameter that goes with it."""

    split: Split
    gamma: float


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
    predict_seconds: float | None = None
    accuracy: float | None = None
    coefficients: Coefficients | None = None
    judgement: Judgement | None = None
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
        kept = {key: value for key, value in vars(self).items() if key not in ("coefficients", "judgement")}
        judgement = asdict(self.judgement) if self.judgement else None
        return kept | {"best": self.best, "median": self.median, "judgement": judgement}


class Arena:
    """A context in which contenders can be asked to fit one problem."""

    def __init__(self, views: dict[str, View], contenders: Iterable[Contender], threads: int) -> None:
        self.views = views
        self.contenders = {contender.name: contender for contender in contenders}
        self.threads = threads
        self.results = {name: Result(name) for name in self.contenders}
        self._workers: dict[str, Worker] = {}

    def __enter__(self) -> Arena:
        self._folder = tempfile.TemporaryDirectory(prefix="multimargin-bench-")
        folder = Path(self._folder.name)
        for key, view in self.views.items():
            write_split(folder / f"{key}.npz", view.split)
        for name, contender in self.contenders.items():
            self.results[name].absent = contender.missing()
            if self.results[name].absent is None:
                self._workers[name] = Worker(contender, folder / f"{contender.view}.npz", self.threads)
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            worker.close()
        self._folder.cleanup()

    @property
    def present(self) -> list[str]:
        return [name for name in self.contenders if self.results[name].absent is None]

    def warm_up(self, C: float) -> None:
        """A small fit of everyone, before anybody is timed."""
        for name in self.present:
            try:
                self._workers[name].ask("warm_up", limit=STARTING, **self._parameters(name, C, {}))
            except WithdrawnError as reason:
                self.results[name].absent = str(reason)

    def fit(self, name: str, C: float, cap: float | None = None, **changes: Any) -> dict[str, Any]:
        """One fit: its seconds, CPU seconds and facts. ``changes`` replace parameters."""
        return self._workers[name].ask("fit", limit=cap, **self._parameters(name, C, changes))

    def predict(self, name: str, cap: float | None = None) -> tuple[float, np.ndarray]:
        """Seconds and labels of the last fit's model."""
        file = str(Path(self._folder.name) / "labels.npy")
        seconds = self._workers[name].ask("predict", limit=cap, file=file)["seconds"]
        return seconds, np.load(file)

    def coefficients(self, name: str) -> Coefficients | None:
        """Of the last fit's model, if it is a Crammer-Singer one."""
        file = str(Path(self._folder.name) / "coefficients.npz")
        if not self._workers[name].ask("coefficients", file=file)["found"]:
            return None
        with np.load(file) as found:
            return Coefficients(found["support"], found["dual_coef"], found["classes"])

    def _parameters(self, name: str, C: float, changes: dict[str, Any]) -> dict[str, Any]:
        contender = self.contenders[name]
        return {"C": C, "gamma": self.views[contender.view].gamma, "tol": TOL} | contender.options | changes


def race(
    views: dict[str, View], C: float, contenders: Iterable[Contender], limits: Limits
) -> dict[str, Result]:
    """Everyone fits, taking turns; then every model predicts and is judged."""
    with Arena(views, contenders, limits.threads) as arena:
        arena.warm_up(C)

        def fit(name: str) -> float:
            result = arena.results[name]
            try:
                answer = arena.fit(name, C, limits.cap)
            except TooSlowError as slow:
                result.slower_than = slow.limit
                raise
            result.facts = answer["facts"]
            result.cpu.append(answer["cpu"])
            return answer["seconds"]

        seconds, reasons = take_turns(
            arena.present, fit, limits.repeats, patience=limits.patience, at_least=limits.at_least
        )
        for name, times in seconds.items():
            arena.results[name].seconds = times
            arena.results[name].absent = reasons.get(name)
        for name in arena.present:
            _score(arena, arena.results[name], C, limits)
        return arena.results


def _score(arena: Arena, result: Result, C: float, limits: Limits) -> None:
    view = arena.views[arena.contenders[result.name].view]
    true_labels = None
    result.coefficients = arena.coefficients(result.name)
    if result.coefficients is not None:
        try:
            result.judgement, true_labels = judge(result.coefficients, view.split, C, view.gamma)
        except InfeasibleError as reason:
            result.infeasible = str(reason)
    try:
        result.predict_seconds, labels = arena.predict(result.name, limits.cap)
    except TooSlowError:
        return  # its time of fit stands
    result.accuracy = accuracy(labels, view.split.y_test)
    if true_labels is not None:
        result.accuracy = result.judgement.accuracy
        result.disagreeing = int(np.sum(labels != true_labels))
