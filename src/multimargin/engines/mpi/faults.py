"""What happens to all ranks if one of them fails, or if the user presses Ctrl-C.

A rank that fails leaves the others waiting for its messages. So it looks whether all ranks have failed, as
they do if a parameter is wrong. Then each raises its exception. Otherwise it says what happened and ends all.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_MEETING = 2.0  # seconds for all ranks to find out that all have failed
_LAST_MOMENT = 2.0  # seconds for MPI to end this process
_ECHO = 0.5  # seconds in which a second signal may come from the same Ctrl-C, by way of mpiexec


class Faults:
    """The faults of one rank.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        Used only for finding out whether all ranks have failed.
    host : str
        The name of this rank's host.
    """

    def __init__(self, comm: Any, host: str) -> None:
        self.comm = comm
        self._name = f"rank {comm.Get_rank()} of {comm.Get_size()} on host {host}"

    def end(self, message: str) -> None:
        """Say why, and end all ranks with exit code 1."""
        if message:
            sys.stdout.flush()
            sys.stderr.write(f"\nmultimargin, {self._name}: {message}\n")
            sys.stderr.flush()
        # MPI may wait for a host that cannot be reached, with Python's lock held: a watchdog does without it.
        nowhere = open(os.devnull, "w")  # noqa: SIM115 (it must stay open)
        faulthandler.dump_traceback_later(_LAST_MOMENT, exit=True, file=nowhere)
        self.comm.Abort(1)

    def met(self, fit: int, broken: bool) -> bool | None:
        """None unless all ranks have failed in this fit; if so, whether one left a message unfinished."""
        mine = np.array([fit, broken], dtype=np.int64)
        all_ranks = np.empty((self.comm.Get_size(), 2), dtype=np.int64)
        request = self.comm.Iallgather(mine, all_ranks)
        limit = time.monotonic() + _MEETING
        while not request.Test():
            if time.monotonic() > limit:
                return None
            time.sleep(0.001)
        return bool(all_ranks[:, 1].any()) if (all_ranks[:, 0] == fit).all() else None

    def report(self, error: BaseException) -> None:
        """End all ranks because of this rank's exception."""
        lines = "".join(traceback.format_exception(error))
        self.end(f"an exception on this rank ends all ranks.\n{lines}")


class Interrupts:
    """Ctrl-C during a fit: it is noted, and all ranks act upon it at the same moment.

    An exception in the middle of a message would leave the other ranks waiting. A second Ctrl-C raises
    ``KeyboardInterrupt`` at once.
    """

    asked = False  # whether this rank has got a signal that no rank has acted upon
    _first = -np.inf

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note signals instead of raising. A handler of the user's own stays in place."""
        in_main = threading.current_thread() is threading.main_thread()
        if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        self.asked, self._first = False, -np.inf
        signal.signal(signal.SIGINT, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _note(self, number: int, frame: object) -> None:
        now = time.monotonic()
        if self._first == -np.inf:
            self.asked, self._first = True, now
        elif now > self._first + _ECHO:
            raise KeyboardInterrupt

    def act(self) -> None:
        """Raise; to be called by all ranks at the same moment."""
        self.asked = False
        raise KeyboardInterrupt
