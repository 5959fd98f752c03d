"""Was Ctrl-C pressed? An error that follows it is then its consequence."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Self


class Interrupts:
    """Remembers Ctrl-C, and raises ``KeyboardInterrupt`` as Python does.

    Extension modules that are being imported replace that exception by ``ImportError``, so that it alone does
    not tell. Only the main thread has handlers, and a handler that somebody else has set is left alone.

    Parameters
    ----------
    wanted : bool
        False for the processes of an MPI run, which have a handler of their own.
    """

    def __init__(self, wanted: bool) -> None:
        self.any = False
        self._wanted = wanted
        self._ours = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.any = True
        signal.default_int_handler(number, frame)

    def __enter__(self) -> Self:
        self._ours = (
            self._wanted
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self._ours:
            signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
