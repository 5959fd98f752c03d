"""Collective messages on one communicator, and the one loop that waits for them.

All of them are nonblocking requests. The loop tests a request in quick succession first, then lets other
processes run, then sleeps in growing pauses: so more ranks than cores do not take each other's time. Every
message is counted, with its bytes: those received are the whole receive buffer, with this rank's own part.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_SPINS = 3000  # tests before the first pause: about 1 ms
_YIELDS = 100  # tests with a chance for other processes in between
_PAUSE = 0.02  # of the seconds waited so far: so a pause makes no wait much longer
_SHORTEST_PAUSE, _LONGEST_PAUSE = 2e-5, 2e-4  # seconds
_MOST_BYTES = 1 << 30  # of one message: MPI before version 4 counts up to 2^31 - 1


@dataclass
class Count:
    """What the messages of one verb have cost this rank."""

    messages: int = 0
    sent: int = 0
    received: int = 0


class Messages:
    """Messages between the ranks of a communicator; all of its methods are collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        Used for these messages only.
    crowded : bool
        Whether this host has fewer cores than ranks: then waiting begins by letting others run.
    """

    def __init__(self, comm: Any, crowded: bool = False) -> None:
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()
        self.crowded = crowded
        self.patience: Callable[[str, float], None] | None = None  # told the verb and the seconds of a wait
        self.unfinished: Any = None  # a request whose wait was interrupted
        self.reset()

    def renew(self, comm: Any) -> None:
        """Use another communicator, because messages of this one are unfinished."""
        self.comm, self.unfinished = comm, None

    def reset(self) -> None:
        """Count from zero."""
        self.counts: dict[str, Count] = {}
        self.seconds = 0.0  # waited

    def finish(self, verb: str, request: Any, sent: int, received: int) -> None:
        """Wait until the request is complete, and count it."""
        count = self.counts.get(verb)
        if count is None:
            count = self.counts[verb] = Count()
        count.messages += 1
        count.sent += sent
        count.received += received
        try:
            self._wait(verb, request.Test)
        except BaseException:
            self.unfinished = request  # MPI may still write to its arrays, so it must live
            raise

    def _wait(self, verb: str, test: Callable[[], bool]) -> None:
        begin = time.perf_counter()
        if not self._soon(test):
            self._later(verb, test, begin)
        self.seconds += time.perf_counter() - begin

    def _soon(self, test: Callable[[], bool]) -> bool:
        """Whether it is complete before the first pause."""
        for _ in range(1 if self.crowded else _SPINS):
            if test():
                return True
        for _ in range(_YIELDS):
            _let_others_run()
            if test():
                return True
        return False

    def _later(self, verb: str, test: Callable[[], bool], begin: float) -> None:
        """Test between pauses until it is complete."""
        waited = 0.0
        while not test():
            time.sleep(min(max(_SHORTEST_PAUSE, _PAUSE * waited), _LONGEST_PAUSE))
            waited = time.perf_counter() - begin
            if self.patience is not None:
                self.patience(verb, waited)

    def gather(self, verb: str, mine: np.ndarray) -> np.ndarray:
        """Every rank's array, all of one shape; the first axis is the rank."""
        out = np.empty((self.size, *mine.shape), dtype=mine.dtype)
        self.finish(verb, self.comm.Iallgather(mine, out), mine.nbytes, out.nbytes)
        return out

    def combine(self, verb: str, mine: np.ndarray, op: Any) -> np.ndarray:
        """All arrays, combined entry by entry with an operation of MPI that does not depend on the order."""
        out = np.empty_like(mine)
        self.finish(verb, self.comm.Iallreduce(mine, out, op), mine.nbytes, out.nbytes)
        return out

    def broadcast(self, verb: str, data: np.ndarray, root: int = 0) -> None:
        """Fill every rank's ``data``, which are bytes, with those of ``root``."""
        for begin in range(0, len(data), _MOST_BYTES):
            part = data[begin : begin + _MOST_BYTES]
            sent = part.nbytes if self.rank == root else 0
            self.finish(verb, self.comm.Ibcast(part, root), sent, part.nbytes)

    def join(self, verb: str, mine: np.ndarray, counts: Sequence[int]) -> np.ndarray:
        """Every rank's bytes, one rank after the other; ``counts`` are their numbers."""
        bounds = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        out = np.empty(bounds[-1], dtype=np.uint8)
        if len(out) <= _MOST_BYTES:
            places = (list(counts), bounds[:-1].tolist())
            self.finish(verb, self.comm.Iallgatherv(mine, (out, places)), mine.nbytes, out.nbytes)
            return out
        out[bounds[self.rank] : bounds[self.rank + 1]] = mine
        for root in range(self.size):
            self.broadcast(verb, out[bounds[root] : bounds[root + 1]], root)
        return out

    def add(self, verb: str, mine: np.ndarray) -> np.ndarray:
        """The sum of long vectors in the order of the ranks: each rank adds one part of them for all."""
        out = np.empty_like(mine)
        step = _MOST_BYTES // mine.itemsize
        for begin in range(0, len(mine), step):
            self._add(verb, mine[begin : begin + step], out[begin : begin + step])
        return out

    def _add(self, verb: str, mine: np.ndarray, out: np.ndarray) -> None:
        bounds = np.linspace(0, len(mine), self.size + 1).astype(np.int64)
        places = (np.diff(bounds).tolist(), bounds[:-1].tolist())
        here = places[0][self.rank]
        parts = np.empty((self.size, here), dtype=mine.dtype)
        receive = (parts, ([here] * self.size, [here * rank for rank in range(self.size)]))
        self.finish(verb, self.comm.Ialltoallv((mine, places), receive), mine.nbytes, parts.nbytes)
        for part in parts[1:]:
            parts[0] += part
        self.finish(verb, self.comm.Iallgatherv(parts[0], (out, places)), parts[0].nbytes, out.nbytes)


def raw(array: np.ndarray) -> np.ndarray:
    """The bytes of an array, which is copied only if its rows are not contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def in_order(parts: np.ndarray) -> np.ndarray:
    """The sum over the first axis, from its first entry to its last: the same bits on any machine."""
    return np.array(np.add.accumulate(parts, axis=0)[-1])


def _let_others_run() -> None:
    if hasattr(os, "sched_yield"):
        os.sched_yield()
    else:
        time.sleep(0)
