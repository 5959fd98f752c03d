"""Signs of life between ranks, so that a stopped rank or a cut link does not leave the others waiting.

During a fit a thread of every rank sends a short message to the next rank at regular times, and listens to
the rank before it; the last rank sends to the first. If that rank has not been heard of for too long, the
thread tells all ranks, and each ends its process. The thread works during long computations too, because they
do not hold Python's lock.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_BEAT, _ALARM = 0, 1
_FAREWELL = 0.5  # seconds for an alarm to reach the other ranks


class Heartbeat:
    """The signs of life of one rank.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        Used for these messages only.
    hosts : list of str
        The name of each rank's host.
    end : callable
        Ends this process and all others, with a message if it is not empty.
    """

    def __init__(self, comm: Any, hosts: list[str], end: Callable[[str], object]) -> None:
        self._comm, self._hosts, self._end = comm, hosts, end
        self._rank, self._size = comm.Get_rank(), comm.Get_size()
        self._fit = 0  # their number: a late message of an earlier fit says nothing about this one
        self._sends: list[tuple[Any, np.ndarray]] = []  # not yet complete

    @contextmanager
    def watching(self, timeout: float) -> Iterator[None]:
        """Send signs of life, and end all ranks if one of them is silent for ``timeout`` seconds."""
        self._fit += 1
        stop = threading.Event()
        thread = threading.Thread(target=self._run, args=(timeout, stop), name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _run(self, timeout: float, stop: threading.Event) -> None:
        try:
            self._watch(timeout, stop)
        except Exception as error:
            self._end(f"a sign of life could not be sent or received: {error!r}. All ranks end.")

    def _watch(self, timeout: float, stop: threading.Event) -> None:
        pause = min(1.0, timeout / 10)
        before = (self._rank - 1) % self._size
        met, silent, last = False, 0.0, time.monotonic()
        self._send(_BEAT, 0, (self._rank + 1) % self._size)
        while not stop.wait(pause):
            self._send(_BEAT, 0, (self._rank + 1) % self._size)
            heard, lost = self._listen()
            now = time.monotonic()
            # If this process itself was stopped, that time says nothing about the others.
            silent = 0.0 if heard else silent + min(now - last, 2 * pause)
            met, last = met or heard, now
            if lost is not None:
                self._end("")  # the rank that noticed has said why
            if silent < timeout:
                continue
            if met:
                self._report(before, timeout)
            else:
                self._say_what_it_waits_for(before, timeout)
                silent = -np.inf

    def _send(self, kind: int, subject: int, to: int) -> None:
        self._sends = [(request, data) for request, data in self._sends if not request.Test()]
        if kind == _BEAT and len(self._sends) > 2:
            return  # nothing gets through; the other side will notice
        data = np.array([kind, self._fit, self._rank, subject], dtype=np.int64)
        self._sends.append((self._comm.Isend(data, to), data))

    def _listen(self) -> tuple[bool, int | None]:
        """Whether the rank before this one gave a sign in this fit, and a rank that is reported as lost."""
        heard, lost, data = False, None, np.empty(4, dtype=np.int64)
        while self._comm.Iprobe():
            self._comm.Recv(data)
            kind, fit, _, subject = data.tolist()
            if fit == self._fit:
                heard = heard or kind == _BEAT
                lost = subject if kind == _ALARM else lost
        return heard, lost

    def _report(self, lost: int, timeout: float) -> None:
        for rank in range(self._size):
            if rank not in (self._rank, lost):
                self._send(_ALARM, lost, rank)
        limit = time.monotonic() + _FAREWELL
        while time.monotonic() < limit and not all(request.Test() for request, _ in self._sends):
            time.sleep(0.01)
        self._end(
            f"rank {lost} on host {self._hosts[lost]} has given no sign of life for {timeout:g} s (timeout): "
            "it was stopped, or the network to it is cut. All ranks end."
        )

    def _say_what_it_waits_for(self, rank: int, timeout: float) -> None:
        print(
            f"multimargin: rank {self._rank} has waited {timeout:g} s for rank {rank} on host "
            f"{self._hosts[rank]} to call fit, and goes on waiting.",
            file=sys.stderr,
            flush=True,
        )
