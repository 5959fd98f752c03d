"""Counts what one rank does in a fit: kernel values, updates, messages, and CPU seconds of each phase.

Counts do not depend on how busy the machine is. Seconds here are CPU seconds of this process. Those in which
it looked whether a message had come are kept apart: they depend on how long the others took.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from multimargin import _core
from multimargin.engines.cpu.engine import CpuEngine
from multimargin.engines.cpu.row_store import RowStore
from multimargin.engines.mpi.messages import Messages
from multimargin.run import profile
from multimargin.run.monitor import Monitor

SMALL = 1000  # samples of a set for once up to which every rank of a team computes its block


@dataclass
class Tally:
    """What was counted so far on one rank; ``rounds`` has the state at the end of each outer iteration."""

    values: int = 0  # kernel values computed, beside those of exact scores
    row_values: int = 0  # of these, the ones of kernel rows; known at the end
    proof_values: int = 0  # kernel values of exact scores
    proof_samples: int = 0  # whose coefficients were needed for them
    updated: int = 0  # rows times samples of gradient updates
    selections: int = 0
    asked: int = 0  # samples that selections asked for
    visits: int = 0  # samples of all working sets
    gathered: int = 0  # values of all blocks of at most SMALL samples, put together for one round
    alone: int = 0  # of these, values that every rank of a team computes by itself
    large: int = 0  # new values of larger blocks for one round, which ranks of a team bring together
    kept: int = 0  # new values of blocks that the ranks of a team keep and solve together
    solved: int = 0  # samples of all sets with such a block
    moved: int = 0  # of these, those that moved: their steps travel
    batches: int = 0  # iterations of shared descents: each is one message
    converted: int = 0  # rows of X that a rank of a team brings into native form
    samples: int = 0  # different ones in all working sets
    messages: int = 0
    received: int = 0  # bytes, this rank's own part included
    sent: int = 0
    largest: int = 0  # bytes of the largest message
    largest_verb: str = ""
    largest_now: int = 0  # the same of this outer iteration
    waiting: float = 0.0  # CPU seconds in which it looked whether a message had come, about
    setup: float = 0.0  # CPU seconds until the engine was made
    setup_memory: float = 0.0  # those of them that the profile calls memory
    seen: set[int] = field(default_factory=set, repr=False)
    last: set[int] = field(default_factory=set, repr=False)
    held: set[int] = field(default_factory=set, repr=False)  # samples of the block that is kept
    together: bool = False  # whether the set of this round has such a block
    rounds: list[dict[str, float]] = field(default_factory=list, repr=False)

    def snapshot(self, **more: float) -> None:
        now = {key: value for key, value in vars(self).items() if isinstance(value, int | float)}
        self.rounds.append(now | more)
        self.largest_now = 0

    def add_block(self, W: set[int], keep: bool) -> None:
        """A block that is kept, or one for one round, which has parts of the last one."""
        q, self.together = len(W), keep
        new = len(W - (self.held if keep else self.last))
        if keep:
            self.kept += new * q
            self.solved += q
            self.held |= W
        elif q > SMALL:
            self.large += new * q
        else:
            self.gathered += q * q
            self.alone += new * q
        if not keep:
            self.converted += q + new if q <= SMALL else new
        self.visits += q
        self.seen |= W
        self.samples = len(self.seen)
        if not keep:
            self.last = W

    @property
    def block_values(self) -> int:
        """Kernel values that were computed for blocks only."""
        return self.values - self.row_values

    def record(self) -> dict[str, Any]:
        found = {key: value for key, value in vars(self).items() if key not in ("seen", "last", "held")}
        return found | {"block_values": self.block_values}


@contextmanager
def tallied() -> Iterator[Tally]:
    """Count inside the context; phases of the profile are CPU seconds there."""
    tally = Tally()
    begin = time.process_time()
    clock = SimpleNamespace(perf_counter=time.process_time)

    def before(owner: Any, name: str, note: Callable[..., None]) -> Any:
        original = getattr(owner, name)

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            note(*args, **kwargs)
            return original(*args, **kwargs)

        return patch.object(owner, name, wrapper)

    engines: list[CpuEngine] = []

    def block(_: Any, __: Any, rows: Any, ___: Any, first: int, last: int, *____: Any) -> None:
        tally.values += len(rows) * (last - first)

    def scores(rows: RowStore, ids: Any, _: Any, here: Any = None) -> None:
        tally.proof_values += len(ids) * (rows.width if here is None else len(here))
        tally.proof_samples += len(ids)
        tally.converted += len(ids)

    def update(G: Any, _: Any, slots: Any, *__: Any) -> None:
        tally.updated += len(slots) * len(G)
        tally.moved += len(slots) * tally.together

    def select(engine: CpuEngine, k: int, **_: Any) -> None:
        tally.selections += 1
        tally.asked += min(k, engine.n)

    def improve(_: CpuEngine, W: Any, inner: Any, *__: Any, keep: bool = False) -> None:
        large = len(W) > SMALL and not inner.by_products
        tally.add_block(set(W.tolist()), keep or large)

    finish = Messages.finish

    def counted_finish(self: Messages, verb: str, request: Any, sent: int, received: int) -> None:
        tally.messages += 1
        tally.batches += verb == "gather"
        tally.sent += sent
        tally.received += received
        if received > tally.largest_now:
            tally.largest_now = received
            if received > tally.largest:
                tally.largest, tally.largest_verb = received, verb
        finish(self, verb, request, sent, received)

    def note(_: Monitor, *, working_set: int, inner: int, **__: Any) -> None:
        memory = engines[-1].profile.seconds["memory"]
        tally.snapshot(working_set=working_set, inner=inner, memory=memory, cpu=time.process_time() - begin)

    soon, later, make = Messages._soon, Messages._later, CpuEngine.__init__

    # Of two ranks on two cores, a clock of CPU seconds would take as long as a message. While such a rank
    # looks again and again, CPU seconds are seconds.
    def timed_soon(self: Messages, test: Callable[[], bool]) -> bool:
        seconds = time.process_time if self.crowded else time.perf_counter
        start = seconds()
        try:
            return soon(self, test)
        finally:
            tally.waiting += seconds() - start

    def timed_later(self: Messages, *args: Any) -> None:
        start = time.process_time()
        try:
            later(self, *args)
        finally:
            tally.waiting += time.process_time() - start

    def timed_make(self: CpuEngine, *args: Any) -> None:
        make(self, *args)
        engines.append(self)
        tally.setup = time.process_time() - begin
        tally.setup_memory = self.profile.seconds["memory"]

    with ExitStack() as stack:
        for change in (
            before(_core, "kernel_block", block),
            before(RowStore, "scores", scores),
            before(_core, "update_gradient", update),
            before(CpuEngine, "select", select),
            before(CpuEngine, "improve", improve),
            patch.object(Messages, "finish", counted_finish),
            before(Monitor, "note", note),
            patch.object(Messages, "_soon", timed_soon),
            patch.object(Messages, "_later", timed_later),
            patch.object(CpuEngine, "__init__", timed_make),
            patch.object(profile, "time", clock),
        ):
            stack.enter_context(change)
        yield tally
    for engine in engines:
        tally.row_values += engine.rows.computed * engine.rows.width
        tally.converted += engine.rows.computed
