"""Which part of a file this process reads, and what the processes that read the other parts tell it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

from ..system.team import Processes, Value

_STEP = 1 << 16


class Part(Processes):
    """Part ``rank`` of ``size``. Without a communicator nothing is known of the other parts.

    ``comm`` is a communicator of mpi4py, or anything else with ``rank``, ``size`` and ``allgather`` or
    ``collect``.
    """

    def __init__(self, rank: int = 0, size: int = 1, comm: Any = None) -> None:
        self._share: Any = None
        if comm is not None:
            if (rank, size) != (0, 1):
                raise ValueError("Give rank and size, or comm, which knows them; not both.")
            self._share = getattr(comm, "collect", None) or getattr(comm, "allgather", None)
            if self._share is None:
                raise TypeError(f"comm must be a communicator of mpi4py, got {comm!r}.")
            rank, size = comm.rank, comm.size
        if not 0 <= rank < size:
            raise ValueError(f"rank must be in 0 .. size - 1, got rank={rank} and size={size}.")
        self.rank, self.size = int(rank), int(size)

    def collect(self, value: Value) -> list[Value]:
        return [value] if self._share is None else list(self._share(value))

    def attempt(self, work: Callable[[], Value]) -> Value:
        return work() if self._share is None else super().attempt(work)

    def bounds(self, n: int) -> tuple[int, int]:
        """The first of ``n`` rows or bytes of this part, and the first of the next part."""
        return n * self.rank // self.size, n * (self.rank + 1) // self.size

    def lines(self, file: BinaryIO, first: int, end: int) -> tuple[int, int]:
        """The bytes of the lines of this part, if lines lie between bytes ``first`` and ``end`` of a file.

        A line belongs to the part in which its first byte lies.
        """
        low, high = self.bounds(end - first)
        return _line_at(file, first + low, first, end), _line_at(file, first + high, first, end)


def _line_at(file: BinaryIO, offset: int, first: int, end: int) -> int:
    """The first line that begins at ``offset`` or later."""
    if offset <= first:
        return first
    file.seek(offset - 1)
    at = offset - 1
    while at < end:
        text = file.read(min(_STEP, end - at))
        if not text:
            break
        line_end = text.find(b"\n")
        if line_end >= 0:
            return at + line_end + 1
        at += len(text)
    return end
