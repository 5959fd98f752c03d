"""The engines of all ranks of a team behind one engine: every verb runs on all of them, in threads.

What a verb returns must be equal on all ranks, to the last bit.
"""

import math
import threading
from copy import deepcopy
from dataclasses import replace

import numpy as np
from thread_team import Meeting, RankFailedError, ThreadTeam

from multimargin.engines import CpuEngine


def same(a, b):
    """Whether two results are equal, NaN included."""
    if isinstance(a, np.ndarray) or np.isscalar(a):
        return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f")
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b


class Ranks:
    """A problem on a team of ``len(cuts) - 1`` ranks; rank p holds the samples cuts[p]..cuts[p + 1] - 1."""

    def __init__(self, task, options, cuts, kind=CpuEngine):
        meeting = Meeting(len(cuts) - 1, timeout=10.0)
        self._teams = [ThreadTeam(rank, meeting) for rank in range(meeting.size)]
        self._meeting = meeting
        parts = [part_of(task, team, cuts) for team in self._teams]
        self._engines = self._on_all(lambda rank: kind(parts[rank], options))

    def _on_all(self, function):
        results = [None] * len(self._teams)

        def work(rank):
            try:
                results[rank] = function(rank)
            except BaseException as error:
                self._meeting.fail(error)

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(len(self._teams))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._meeting.first_failure is not None:
            raise self._meeting.first_failure
        return results

    def __getattr__(self, name):
        first = getattr(self._engines[0], name)
        if name == "running" or not callable(first):
            return first

        def verb(*args, **kwargs):
            copies = [args] + [deepcopy(args) for _ in self._engines[1:]]  # each rank has its random numbers
            results = self._on_all(lambda rank: getattr(self._engines[rank], name)(*copies[rank], **kwargs))
            if name != "describe":  # says what each rank has sent
                assert all(same(results[0], result) for result in results[1:]), (name, results)
            return results[0]

        return verb

    def __setattr__(self, name, value):
        if name.startswith("_"):
            super().__setattr__(name, value)
            return
        for engine in self._engines:
            setattr(engine, name, value)


def part_of(task, team, cuts):
    """The task of one rank."""
    here = slice(cuts[team.rank], cuts[team.rank + 1])
    start = task.start
    if start is not None:
        mine = (start[0] >= here.start) & (start[0] < here.stop)
        start = start[0][mine] - here.start, start[1][mine]
    return replace(task, X=task.X[here], y=task.y[here], C=task.C[here], start=start, team=team)


def cuts_of(n, shares):
    """Where the samples are cut, for shares of them per rank."""
    return [math.floor(n * share) for share in np.concatenate([[0], np.cumsum(shares)])]


__all__ = ["RankFailedError", "Ranks", "cuts_of", "part_of", "same"]
