"""Who fits the columns of a grid: this process, the workers of joblib, or the ranks of a team.

A column's points depend on nothing but the column. So it does not matter who fits it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from ..system.team import Team
from .column import Column, Point


class Spread(ABC):
    """Fits columns that do not depend on each other."""

    workers: int  # that fit at the same time

    @abstractmethod
    def points(self, columns: Sequence[Column]) -> Iterator[Point]:
        """The points of all columns, as soon as they are there."""


class Here(Spread):
    """One column after another, in this process."""

    workers = 1

    def points(self, columns: Sequence[Column]) -> Iterator[Point]:
        for column in columns:
            yield from column.points()


class Jobs(Spread):
    """The workers of joblib, by whatever backend the user has chosen (loky, threading, dask, ray).

    Some backends cannot tell what is done before all is done. Then a Ctrl-C or a kill loses that part.
    """

    def __init__(self, n_jobs: int | None) -> None:
        self._n_jobs = n_jobs
        self.workers = effective_n_jobs(n_jobs)

    def points(self, columns: Sequence[Column]) -> Iterator[Point]:
        if self.workers == 1 or len(columns) == 1:  # all threads for a single column
            yield from Here().points(columns)
            return
        calls = [delayed(_fitted)(column) for column in columns]
        if not getattr(get_active_backend()[0], "supports_return_generator", False):
            for points in Parallel(n_jobs=self._n_jobs, batch_size=1)(calls):  # all at the end
                yield from points
            return
        parallel = Parallel(n_jobs=self._n_jobs, return_as="generator_unordered", batch_size=1)
        with closing(parallel(calls)) as found:
            for points in found:
                yield from points


class Ranks(Spread):
    """The processes of a team, all of which have all samples; each gets the points of all columns."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self.workers = team.size

    def points(self, columns: Sequence[Column]) -> Iterator[Point]:
        mine = columns[self._team.rank :: self._team.size]
        done = self._team.attempt(lambda: [point for column in mine for point in column.points()])
        for points in self._team.collect(done):
            yield from points


def _fitted(column: Column) -> list[Point]:
    return list(column.points())
