"""A fit that is written to a file now and then, so that a killed one can go on.

A state is the support vectors, their rows of alpha, and the bias. All else (gradient, kernel rows, the
working set) is made from these at the next start. So any method on any engine, with any number of threads or
processes, can go on with it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from ..solution import Trace
from ..system.atomic import prepare
from ..system.team import SOLO, Team
from ..system.typing import FloatArray, IntArray
from ..system.warn import warn_user
from .checkpoint_file import Snapshot, read, write
from .fingerprint import differences
from .sealed_file import refuse

EVERY = 60.0  # seconds between two writes, unless others are asked for


class Checkpoint:
    """The file of one fit. Only the first process of a team reads and writes it.

    Parameters
    ----------
    path : str or path-like
        The file. If it exists, the fit goes on with it.
    every : float
        Seconds between two writes.
    problem : dict
        What the problem is, from ``fingerprint``; ``ValueError`` if the file has another one.
    solver : str
        Name of the method.
    seed : int
        Seed of the fit; a fit that goes on keeps the one of its first part.
    numbers : ndarray or None
        Row number of every sample in the user's data; None if samples are numbered as the rows are.
    team : Team
        The processes of the fit.

    Attributes
    ----------
    before : Snapshot or None
        The state to go on from.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        every: float,
        problem: dict[str, Any],
        solver: str,
        seed: int,
        numbers: IntArray | None = None,
        team: Team = SOLO,
    ) -> None:
        self.path, self.every = Path(os.path.realpath(path)), every
        self._problem, self._solver, self._numbers, self._team = problem, solver, numbers, team
        self.before = self._open()
        self._seed = seed if self.before is None else int(self.before.facts["seed"])
        self._said: dict[str, object] = {"path": str(self.path), "every": every, "writes": 0, "seconds": 0.0}
        self._writes, self._seconds = 0, 0.0
        self._last = time.perf_counter()

    def _open(self) -> Snapshot | None:
        """Return the state in the file, if any. All processes raise what the first one does."""
        first = self._team.rank == 0
        return self._team.agree(self._team.attempt(lambda: self._look() if first else None))

    def _look(self) -> Snapshot | None:
        prepare(self.path, "checkpoint")
        if not self.path.exists():
            return None
        state = read(self.path)
        if different := differences(state.problem, self._problem):
            refuse(self.path, f"it belongs to another problem, which differs in {', '.join(different)}")
        n = self._problem["the number of samples"]
        columns = 1 if self._problem["the machine"] == "c-svc" else self._problem["the number of classes"]
        known = state.rows < n if self._numbers is None else np.isin(state.rows, self._numbers)
        if not known.all() or (state.rows < 0).any() or len(state.bias) != columns:
            refuse(self.path, "its support vectors or its classes are not those of the problem")
        return state

    # -- the start -------------------------------------------------------------------------------
    @property
    def ids(self) -> IntArray:
        """The samples that the support vectors of ``before`` are."""
        rows = self.before.rows if self.before is not None else np.empty(0, dtype=np.int64)
        return rows if self._numbers is None else np.searchsorted(self._numbers, rows)

    @property
    def seed(self) -> int:
        """The seed of this part of the fit: a new one, so that random choices are not repeated."""
        if self.before is None:
            return self._seed
        entropy = np.random.SeedSequence([self._seed, self.before.facts["iterations"]])
        return int(entropy.generate_state(1)[0] >> 1)

    def begin(self, trace: Trace) -> None:
        """Let the trace count on, and say what it goes on with."""
        trace.info["checkpoint"] = self._said
        if self.before is not None:
            trace.before = self.before.facts["iterations"]
            self._said["resumed"] = dict(self.before.facts)

    # -- on the way ------------------------------------------------------------------------------
    @property
    def is_due(self) -> bool:
        """Whether the last write is long enough ago. Only the first process's answer counts."""
        return time.perf_counter() - self._last >= self.every

    def save(
        self,
        ids: IntArray,
        coef: FloatArray,
        bias: FloatArray,
        trace: Trace,
        seconds: float,
        counts: dict[str, int],
    ) -> None:
        """Write a point down. If that fails there is a warning, the old file stays, and the fit goes on.

        ``ids`` are samples; ``seconds`` and ``counts`` are those of this part of the fit.
        """
        if self._team.rank > 0:
            return
        start = time.perf_counter()
        facts = {
            "iterations": trace.iterations,
            "seconds": seconds + (0.0 if self.before is None else self.before.facts["seconds"]),
            "seed": self._seed,
            "solver": self._solver,
            "counts": counts,
        }
        rows = ids if self._numbers is None else self._numbers[ids]
        try:
            write(self.path, Snapshot(rows, coef, bias, facts, self._problem))
            self._writes += 1
        except OSError as error:
            warn_user(
                f"The checkpoint {str(self.path)!r} could not be written: {error}. The fit goes on, and the "
                "file stays as it was.",
                RuntimeWarning,
            )
        self._last = time.perf_counter()
        self._seconds += self._last - start
        self._said.update(writes=self._writes, seconds=self._seconds)
