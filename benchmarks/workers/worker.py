"""A contender's process: loads a problem, then fits and predicts when told to.

    python -m benchmarks.workers.worker ADAPTER PROBLEM.npz THREADS

Commands come on standard input, one JSON object per line; the answer to each is one JSON line on the original
standard output (what libraries print there goes to standard error). An adapter is a module of this package
with a class Adapter:

    Adapter(threads)             imports, and nothing that a fit would do
    load(split)                  conversions that are no part of a fit
    fit(C, gamma, tol, **options)    what is timed; may return times measured closer to the fit
    predict() -> labels          of the test rows
    facts() -> dict              counts of the last fit, as JSON
    coefficients() -> dict       support, dual_coef, classes of a Crammer-Singer model (of another machine, or
                                 with a bias: intercept, machine, bias too; of c-svc one column), or
                                 weights, classes of one that has nothing else, or empty

A small fit and prediction of another problem come first, so that nobody pays for what is loaded lazily. First
fits in a fresh process are timed without them.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO, TypeVar

import numpy as np

from .instructions import count_instructions
from .resident import forget_peak, resident_mb
from .storage import few_rows, read_split

WARM_UP_ROWS = 60
Result = TypeVar("Result")


def own_channel() -> TextIO:
    """The original standard output; from here on, prints go to standard error."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return channel


def timed(action: Any, **arguments: Any) -> tuple[dict[str, float], Any]:
    start, cpu = time.perf_counter(), time.process_time()
    result = action(**arguments)
    return {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}, result


def measured(action: Callable[[], Result]) -> tuple[Result, dict[str, float]]:
    """The result of ``action``, and the memory of this process before it and at its peak if that is known."""
    try:
        forget_peak()
    except OSError:  # not Linux, or not allowed
        return action(), {}
    before = resident_mb("VmRSS")
    result = action()
    return result, {"before_mb": before, "peak_mb": resident_mb("VmHWM")}


class Server:
    """Answers commands about one problem."""

    def __init__(self, adapter: str, problem: Path, threads: int) -> None:
        self.adapter = importlib.import_module(f".{adapter}", __package__).Adapter(threads)
        self.split = read_split(problem)

    def load(self) -> dict[str, Any]:
        self.adapter.load(self.split)
        return {}

    def warm_up(self, **parameters: Any) -> dict[str, Any]:
        self.adapter.load(few_rows(self.split, WARM_UP_ROWS))
        self.adapter.fit(**parameters)
        self.adapter.predict()
        self.adapter.load(self.split)
        return {}

    def fit(self, **parameters: Any) -> dict[str, Any]:
        (times, told), memory = measured(lambda: timed(self.adapter.fit, **parameters))
        return times | (told or {}) | {"facts": self.adapter.facts(), "memory": memory}

    def count(self, **parameters: Any) -> dict[str, Any]:
        """Instructions of one more fit, if they can be counted here."""
        return {"instructions": count_instructions(lambda: self.adapter.fit(**parameters))}

    def predict(self, file: str) -> dict[str, Any]:
        """The labels of the test rows into ``file``, the seconds in the answer."""
        times, labels = timed(self.adapter.predict)
        np.save(file, np.asarray(labels))
        return times

    def coefficients(self, file: str) -> dict[str, Any]:
        found = self.adapter.coefficients()
        if found:
            np.savez(file, **found)
        return {"found": bool(found)}


def main() -> None:
    channel = own_channel()
    server: Server | None = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if server is None:
                server = Server(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
            answer = getattr(server, command.pop("command"))(**command)
        except Exception as error:  # whatever a peer raises is a result of the benchmark
            answer = {"error": f"{type(error).__name__}: {error}"}
        channel.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
