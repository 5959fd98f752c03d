"""Several fits at the same time, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Result = TypeVar("_Result")


def at_once(calls: Sequence[Callable[[], _Result]], stop: threading.Event) -> list[_Result]:
    """The results of all calls, which run at the same time.

    ``stop`` is set if this thread is interrupted or a call fails: the other calls should end then.
    """
    if len(calls) == 1:
        return [calls[0]()]
    with ThreadPoolExecutor(len(calls)) as pool:
        try:
            return [future.result() for future in [pool.submit(call) for call in calls]]
        except BaseException:
            stop.set()
            raise
