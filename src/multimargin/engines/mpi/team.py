"""The ranks of MPI as a team. This is the only file that imports mpi4py, when a team is assembled.

A sum adds the ranks' parts in the order of the ranks, whatever the network does: all ranks get the same bits,
and get them again in the next run.
"""

from __future__ import annotations

import functools
import pickle
import platform
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import threadpoolctl
from numpy.typing import ArrayLike

from ... import _core
from ...system.team import Team, Value
from ...system.threads import effective_threads, own_cores, share_of
from ...system.typing import FloatArray, IntArray
from ...system.warn import warn_user
from .faults import Faults, Interrupts
from .heartbeat import Heartbeat
from .messages import Count, Messages, in_order, raw

if TYPE_CHECKING:
    from mpi4py import MPI

_LONG = 1 << 16  # bytes of a sum from which each rank adds one part of it for all
_SLOT = 128  # bytes of a pickled value that travels in the first message
_HEAD = 8  # of them, its length; the last one says whether the user pressed Ctrl-C
_SPACE = _SLOT - _HEAD - 1
_PAIR = np.dtype([("score", np.float64), ("id", np.int64)])
_KINDS = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "U": "strings", "T": "strings"}
_NO_THREADS = (
    "This MPI library does not let threads send messages (MPI_THREAD_MULTIPLE), so a rank that computes "
    "gives no sign of life. Instead, a rank that waits longer than timeout={:g} s for a message ends all."
)


class MpiTeam(Team):
    """All ranks of a communicator, which is duplicated: messages of the user's own do not mix with ours.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        Its ranks are the team. All of them must make the team at the same time.

    Attributes
    ----------
    hosts : list of str
        The name of each rank's host.
    ranks_on_host : int
        Ranks that share this rank's host.
    core_share : float
        This rank's share of the cores that it may use: 1 if no other rank may use them.
    uniform : bool
        Whether all ranks run the same versions of this package, NumPy, SciPy and the C library with the same
        instruction sets and number of threads: then the same computation gives the same bits on each.
    watched : bool
        Whether a silent rank is noticed during a computation too. It needs MPI_THREAD_MULTIPLE.
    timeout : float
        Seconds after which a silent rank is taken for lost.
    """

    def __init__(self, comm: MPI.Comm) -> None:
        mpi = _mpi()
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        neighbours = comm.Split_type(mpi.COMM_TYPE_SHARED)
        self.ranks_on_host = neighbours.Get_size()
        self.core_share = share_of(own_cores(), neighbours.allgather(own_cores()))
        neighbours.Free()
        self._owned = [comm.Dup() for _ in range(3)]
        messages, faults, beats = self._owned
        self._messages = Messages(messages, crowded=self.core_share * len(own_cores()) < 1)
        self._either = mpi.BOR
        self.hosts: list[str] = self.collect(mpi.Get_processor_name())
        self.uniform = len(set(self.collect(_build(self.core_share)))) == 1
        self._messages.reset()
        self.timeout = 60.0
        self.watched = mpi.Query_thread() == mpi.THREAD_MULTIPLE
        self._faults = Faults(faults, self.hosts[self.rank])
        self._heartbeat = Heartbeat(beats, self.hosts, self._faults.end)
        self._interrupts = Interrupts()
        self._fits = 0
        self._fitting: int | None = None  # the thread that fits

    @classmethod
    def assemble(cls, comm: MPI.Comm | None = None, timeout: float = 60.0) -> MpiTeam:
        """The team of a communicator, by default of all ranks; it is made once and kept.

        ``timeout`` is the number of seconds after which a silent rank is taken for lost.
        """
        mpi = _mpi()
        comm = mpi.COMM_WORLD if comm is None else comm
        key = _key()
        team = comm.Get_attr(key)
        if not isinstance(team, MpiTeam):
            team = cls(comm)
            comm.Set_attr(key, team)
        team.timeout = timeout
        return team

    def free(self) -> None:
        """Give the communicators back to MPI."""
        for comm in self._owned:
            comm.Free()
        self._owned.clear()

    @contextmanager
    def together(self) -> Iterator[None]:
        """One fit: if it fails on a rank, it ends on all of them.

        If it fails on all ranks, each raises its own exception and the program can go on. All ranks leave at
        the same time. Within it, Ctrl-C on any rank raises ``KeyboardInterrupt`` on all ranks in ``agree``.
        """
        here = threading.get_ident()
        if self.size == 1 or self._fitting == here:
            yield
            return
        if self._fitting is not None:
            raise RuntimeError(
                "Two threads fit with the same ranks at the same time, and their messages would mix. Fit one "
                "after the other, or give each its own communicator: Mpi(comm=...)."
            )
        self._fits, self._fitting = self._fits + 1, here
        self._messages.reset()
        with self._interrupts.noted(), self._watching():
            try:
                yield
                self.agree(None)
            except BaseException as error:
                self._fail(error)
                raise
            finally:
                self._fitting = None

    def _fail(self, error: BaseException) -> None:
        """Come back if all ranks have failed."""
        broken = self._faults.met(self._fits, self._messages.unfinished is not None)
        if broken is None:
            self._faults.report(error)
        if broken:
            self._owned.append(self._faults.comm.Dup())
            self._messages.renew(self._owned[-1])

    @contextmanager
    def _watching(self) -> Iterator[None]:
        if self.watched:
            with self._heartbeat.watching(self.timeout):
                yield
            return
        if self.rank == 0:
            warn_user(_NO_THREADS.format(self.timeout), RuntimeWarning)
        self._messages.patience = self._give_up
        try:
            yield
        finally:
            self._messages.patience = None

    def _give_up(self, verb: str, seconds: float) -> None:
        if seconds > self.timeout:
            self._faults.end(
                f"this rank has waited {self.timeout:g} s (timeout) for the other ranks in {verb!r}. "
                "All ranks end."
            )

    @property
    def counts(self) -> dict[str, Count]:
        """Messages and bytes of each verb. Those received are the whole receive buffer."""
        return self._messages.counts

    def sum(self, x: ArrayLike) -> FloatArray:
        mine = np.ascontiguousarray(x, dtype=np.float64).reshape(np.shape(x))
        if self.size == 1:
            return mine
        if mine.nbytes > _LONG:
            return self._messages.add("sum", mine.reshape(-1)).reshape(mine.shape)
        return in_order(self._messages.gather("sum", mine))

    def max(self, x: float) -> float:
        """The largest ``x``; NaN if one of them is."""
        if self.size == 1:
            return x
        return float(self._messages.gather("max", np.array([x], dtype=np.float64)).max())

    def union(self, values: np.ndarray) -> np.ndarray:
        parts = self._collect("union", np.unique(values))
        kinds = [_KINDS.get(part.dtype.kind, str(part.dtype)) for part in parts]
        filled = [k for k, part in enumerate(parts) if len(part)]
        if not filled:
            return parts[0]
        others = [k for k in filled if kinds[k] != kinds[filled[0]]]
        if others:
            a, b = filled[0], others[0]
            raise ValueError(
                f"Labels must be of one kind on all ranks: rank {a} has {kinds[a]} such as {parts[a][0]!r}, "
                f"and rank {b} has {kinds[b]} such as {parts[b][0]!r}."
            )
        return np.unique(np.concatenate([parts[k] for k in filled]))

    def top(self, ids: IntArray, score: FloatArray, k: int, most: int | None = None) -> IntArray:
        sent = k if most is None else min(k, most)
        mine = np.zeros(sent, dtype=_PAIR)  # a score of 0 means: no more of them
        best = _best(ids, score, sent)
        mine["id"][: len(best)], mine["score"][: len(best)] = ids[best], score[best]
        if self.size > 1 and sent:
            mine = self._messages.gather("top", raw(mine)).reshape(-1).view(_PAIR)
        return np.array(mine["id"][_best(mine["id"], mine["score"], k)], dtype=np.int64)

    def agree(self, value: Value) -> Value:
        return value if self.size == 1 else self._agree(value)

    def _agree(self, value: Any) -> Any:
        slot = np.zeros(_SLOT, dtype=np.uint8)
        slot[-1] = self._interrupts.asked
        data = b""
        if self.rank == 0:
            data = pickle.dumps(value, protocol=5)
            _write(slot, data)
        slot = self._messages.combine("agree", slot, self._either)
        if slot[-1]:
            self._interrupts.act()
        length = int(slot[:_HEAD].view(np.int64)[0])
        if length <= _SPACE:
            return _unpickle(slot[_HEAD:])
        long = np.frombuffer(bytearray(data or length), dtype=np.uint8)
        self._messages.broadcast("agree", long)
        return value if self.rank == 0 else _unpickle(long)

    def join(self, mine: np.ndarray, counts: Sequence[int] | None = None) -> np.ndarray:
        if self.size == 1:
            return mine
        if mine.dtype.hasobject:
            return np.concatenate(self._collect("join", mine))
        if counts is None:
            counts = self._row_counts(mine)
        row = mine.dtype.itemsize * int(np.prod(mine.shape[1:]))
        joined = self._messages.join("join", raw(mine), [int(count) * row for count in counts])
        return joined.view(mine.dtype).reshape(int(sum(counts)), *mine.shape[1:])

    def gather(self, mine: np.ndarray) -> np.ndarray:
        return self._messages.gather("gather", np.ascontiguousarray(mine))

    def _row_counts(self, mine: np.ndarray) -> list[int]:
        form = zlib.crc32(repr((mine.dtype, mine.shape[1:])).encode())
        heads = self._messages.gather("join", np.array([len(mine), form], dtype=np.int64))
        if len(set(heads[:, 1].tolist())) > 1:
            raise ValueError(
                "Arrays can be joined if they differ in their number of rows only: on this rank it is of "
                f"type {mine.dtype} with rows of shape {mine.shape[1:]}, on another rank it is not."
            )
        return [int(rows) for rows in heads[:, 0]]

    def collect(self, value: Value) -> list[Value]:
        return self._collect("collect", value)

    def _collect(self, verb: str, value: Value) -> list[Value]:
        """In one message if all values are small, else in two."""
        data = pickle.dumps(value, protocol=5)
        slot = np.zeros(_SLOT, dtype=np.uint8)
        _write(slot, data)
        slots = self._messages.gather(verb, slot)
        lengths = slots[:, :_HEAD].copy().view(np.int64)[:, 0].tolist()
        if max(lengths) <= _SPACE:
            return [_unpickle(slot[_HEAD:]) for slot in slots]
        joined = self._messages.join(verb, np.frombuffer(data, dtype=np.uint8), lengths)
        ends = np.cumsum(lengths)
        return [_unpickle(joined[end - n : end]) for end, n in zip(ends, lengths, strict=True)]

    def facts(self) -> dict[str, object]:
        counts = self._messages.counts.values()
        return {
            "ranks": self.size,
            "hosts": len(set(self.hosts)),
            "messages": sum(count.messages for count in counts),
            "bytes_sent": sum(count.sent for count in counts),
            "bytes_received": sum(count.received for count in counts),
            "seconds_waited": self._messages.seconds,
            "watched": self.watched,
        }


def _mpi() -> Any:
    try:
        from mpi4py import MPI
    except ImportError as error:
        message = (
            "engine='mpi' needs mpi4py and an MPI library, and mpi4py could not be imported "
            f'({error}). pip install "multimargin[mpi]" installs both.'
        )
        raise ImportError(message) from error
    return MPI


@functools.cache
def _key() -> int:
    """The attribute of a communicator under which its team is kept, until the communicator is freed."""
    return int(_mpi().Comm.Create_keyval(delete_fn=_forget))


def _forget(comm: MPI.Comm, key: int, team: MpiTeam) -> None:
    team.free()


def _build(core_share: float) -> tuple[object, ...]:
    """What decides about the bits of a computation."""
    versions = [version(name) for name in ("multimargin", "numpy", "scipy")]
    blas = [str(library.get("architecture")) for library in threadpoolctl.threadpool_info()]
    ours = _core.instruction_set(), _core.integer_simd(), effective_threads(None, core_share)
    return (*versions, *sorted(blas), *platform.libc_ver(), *ours)


def _best(ids: IntArray, score: FloatArray, k: int) -> IntArray:
    """Places of the ``k`` largest positive scores, largest first; among equals the smallest id first."""
    if k == 1 and (largest := score.max(initial=0.0)) > 0:  # false if it is NaN
        equals = np.flatnonzero(score == largest)
        return equals[[np.argmin(ids[equals])]]
    places = np.flatnonzero(score > 0)
    if k < len(places):
        bar = np.partition(score[places], len(places) - k)[len(places) - k] if k else np.inf
        places = places[score[places] >= bar]
    return np.asarray(places[np.lexsort((ids[places], -score[places]))][:k])


def _write(slot: np.ndarray, data: bytes) -> None:
    """The length of the pickled value, and the value if there is space for it."""
    slot[:_HEAD].view(np.int64)[0] = len(data)
    if len(data) <= _SPACE:
        slot[_HEAD : _HEAD + len(data)] = np.frombuffer(data, dtype=np.uint8)


def _unpickle(data: np.ndarray) -> Any:
    return pickle.loads(data.data)
