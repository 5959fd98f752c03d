"""What a fit costs each of several ranks, by what it does and by what each thing costs on one rank.

``Counts`` says what a fit does. It is the same with any number of ranks. ``Costs`` has the CPU seconds of
each thing, from a fit on one rank, and of messages, from a test on two. Some work is divided by the ranks:
kernel rows, updates, selections, proofs. Small blocks for one round every rank puts together and solves. With
the shared solve (Niu & Yuan's Algorithm 5) a rank does its part of both: it needs q / P rows of the block,
multiplies them in each inner iteration, and all gather the q × m numbers of the product.

Blocks that are kept from round to round the ranks solve together: each has its columns, and solves its own
samples. The more ranks there are, the more updates this takes, and a message for every few of them. Both are
counted on that number of ranks: counts do not depend on how many cores there are.

What a team costs beyond that (``Team``: taking a step of another rank, a message in the midst of a fit, one
of ranks that share cores, a round) no single rank shows. It is found from small problems on a few ranks, and
then holds for all.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from benchmarks.lib.traffic import CANDIDATE, FACTS, REAL, VALUE
from benchmarks.workers.tally import SMALL
from multimargin.engines.cpu.solvers import steps_at_once

MEASURES = 24  # bytes per rank of a selection
SLOT = 128  # bytes of a small value that is agreed on
AGREED = 2  # such values in a round
HEAD, STEP = 6, 2  # numbers of a message of steps: its head, and a step's
FEW_CLASSES = 3  # of a step, about


@dataclass(frozen=True)
class Counts:
    """What a fit does, on all ranks together."""

    n: float
    m: float
    row: float  # bytes of a row of X as it travels to a working set
    original: float  # bytes of a support vector's row of X, which travels to the model
    rounds: float
    rows: float  # kernel rows computed
    updated: float  # rows times samples of gradient updates
    selections: float
    asked: float  # samples that selections asked for
    visits: float  # samples of all working sets
    gathered: float  # values of blocks of small sets, put together for one round
    alone: float  # of these, values that every rank computes by itself
    large: float  # new values of large blocks for one round, which come from all ranks
    kept: float  # new values of blocks that the ranks keep and solve together
    solved: float  # samples of all sets with such a block
    moved: float  # of these, those that moved: their steps travel
    descent: float  # single-sample updates of such blocks, on one rank
    converted: float  # rows of X that a rank of a team brings into native form
    samples: float  # different ones in all working sets
    support: float
    proofs: float  # in which the coefficients of all support vectors are needed
    inner: float  # inner iterations of all other blocks

    @classmethod
    def of(cls, fit: Any, n: int, m: int, row: float, original: float) -> Counts:
        """From a fit on one rank."""
        support = len(fit["coefficients"]["support"])
        same = ("selections", "asked", "visits", "gathered", "alone", "large", "kept", "solved", "moved")
        inner = _inner(fit)
        return cls(
            n=n,
            m=m,
            row=row,
            original=original,
            rounds=fit["iterations"],
            rows=fit["rows"],
            updated=fit.total("updated"),
            support=support,
            samples=fit["samples"],
            inner=inner,
            descent=fit["inner"] - inner,
            converted=fit["converted"],
            proofs=fit["proof_samples"] / support,
            **{name: fit[name] for name in same},
        )


def _inner(fit: Any) -> int:
    """Inner iterations of small blocks; the others are descents, which count single updates."""
    if not fit["gathered"]:
        return 0
    return int(sum(state["inner"] for state in fit["rounds"] if state["working_set"] <= SMALL))


def memory_of_small_blocks(fit: Any) -> float:
    """CPU seconds in which small blocks for one round were put together."""
    if not fit["gathered"]:
        return 0.0
    total, before = 0.0, fit["setup_memory"]
    for state in fit["rounds"]:
        total += (state["memory"] - before) * (state["working_set"] <= SMALL)
        before = state["memory"]
    return total


@dataclass(frozen=True)
class Costs:
    """CPU seconds of each thing that a fit does."""

    row_value: float  # a kernel value of a row
    update: float  # a row of the gradient of one sample, for one moved sample
    select: float  # one sample, measured once
    proof_value: float  # an exact kernel value
    setup: float  # per sample: validation and conversion
    small_value: float  # a value of a small block for one round: to put it there
    block_value: float  # the same of any other block
    product: float  # an inner iteration: what Algorithm 5 shares
    rest: float  # an inner iteration: what it does not share
    descent: float = 0.0  # a single-sample update of a block that is kept
    convert: float = 0.0  # on a team: a row of X to its native form
    byte: float = 0.0  # received
    message: float = 0.0
    taken: float = 0.0  # a step of another rank of a shared descent
    crowded: float = 0.0  # more for a message of ranks that share cores
    round: float = 0.0  # on a team: whatever else a round takes

    @classmethod
    def of(cls, fit: Any, counts: Counts, product_share: float, **team: float) -> Costs:
        """From a fit on one rank, with those of a team.

        ``product_share`` is the part of an inner iteration that can be shared.
        """
        phases, c = fit["profile"], counts
        small = memory_of_small_blocks(fit)
        inner = phases["inner"] / (c.inner or math.inf)  # descents of one last block are a small part of it
        other = fit["cpu"] - sum(phases.values())
        return cls(
            row_value=phases["kernel rows"] / fit["values"],
            update=phases["gradient"] / c.updated,
            select=phases["selection"] / (c.selections * c.n),
            proof_value=phases["proof"] / (c.proofs * c.n * c.support),
            setup=(other + fit["setup_memory"]) / c.n,
            small_value=small / (c.gathered or math.inf),
            block_value=(phases["memory"] - fit["setup_memory"] - small) / (c.large + c.kept or math.inf),
            product=inner * product_share,
            rest=inner * (1 - product_share),
            descent=0.0 if c.inner else phases["inner"] / c.descent,
            **team,
        )


@dataclass(frozen=True)
class Prediction:
    """CPU seconds of the slowest rank by their kind, and its messages."""

    divided: float
    blocks: float  # putting blocks together, and values that every rank computes
    solve: float
    talk: float  # CPU seconds for messages, and for whatever else only a team does
    received: float  # bytes
    messages: float
    taken: float = 0.0  # steps of other ranks
    crowded: float = 0.0  # messages of ranks that share cores: after each, caches have another rank's data

    @property
    def cpu(self) -> float:
        return self.divided + self.blocks + self.solve + self.talk


@dataclass(frozen=True)
class Network:
    """Seconds from rank to rank beside a message's bytes and CPU time, and bytes per second."""

    name: str
    latency: float
    bandwidth: float


@dataclass(frozen=True)
class Together:
    """How so many ranks descend together, counted."""

    updates: float = 1.0  # for one of a single rank
    batch: float = 1.0  # updates of all ranks in an iteration
    most: int = 1  # updates of one rank for which a message has room

    @classmethod
    def of(cls, one: Any, fit: Any, ranks: int) -> Together:
        """From fits of the same problem on one rank and on several."""
        most = steps_at_once(ranks)
        if not fit["batches"]:  # no block was solved together
            return cls(most=most)
        return cls(fit["inner"] / one["inner"], fit["inner"] / fit["batches"], most)

    def message(self, m: float) -> float:
        """Bytes that each rank sends in an iteration."""
        return REAL * (HEAD + STEP + 2 * m + self.most * (STEP + 2 * FEW_CLASSES))


def received(c: Counts, ranks: int, together: Together, shared_solve: bool = False) -> float:
    """Bytes that a rank receives in a whole fit."""
    if ranks == 1:
        return 0.0
    choose = c.selections * MEASURES * ranks + CANDIDATE * ranks * c.asked
    rows = c.samples * (c.row + FACTS) + c.support * c.original
    block = 2 * REAL * c.m * (c.visits - c.solved) + VALUE * c.large
    steps = REAL * (c.m + 2) * c.moved  # who moved and how, and whether it is a support vector now
    steps += ranks * together.message(c.m) * c.descent * together.updates / together.batch
    proof = c.proofs * REAL * c.m * c.support + (REAL * c.m + REAL) * c.support
    inner = c.inner * REAL * c.m * c.visits / c.rounds if shared_solve else 0.0
    return choose + rows + block + steps + proof + inner + AGREED * SLOT * c.rounds


def _divided(c: Counts, cost: Costs, part: float, ranks: int) -> float:
    """CPU seconds of a rank with ``part`` samples for the work that is divided."""
    rows = c.rows * part + (0.0 if ranks == 1 else c.large / ranks)
    each = (
        cost.update * c.updated / c.n + cost.select * c.selections + cost.proof_value * c.proofs * c.support
    )
    return cost.row_value * rows + (each + cost.setup) * part


def predict(
    c: Counts,
    cost: Costs,
    ranks: int,
    per_round: float,
    together: Together,
    *,
    shared_solve: bool = False,
    cores: float = math.inf,
) -> Prediction:
    """One of ``ranks`` ranks on so many cores.

    There are ``per_round`` messages in a round, one in a shared inner iteration, and one in an iteration of a
    shared descent.
    """
    mine, updates = ranks if shared_solve else 1, c.descent * together.updates
    divided = _divided(c, cost, c.n / ranks, ranks)
    blocks = cost.small_value * c.gathered / mine + cost.block_value * (c.large + c.kept / ranks)
    solve = c.inner * (cost.product / mine + cost.rest) + cost.descent * updates / ranks
    bytes_ = received(c, ranks, together, shared_solve)
    messages = taken = crowded = talk = 0.0
    if ranks > 1:  # one rank finds these values in its rows
        blocks += cost.row_value * c.alone / mine + cost.convert * c.converted
        messages = c.rounds * per_round + (c.inner if shared_solve else 0.0) + updates / together.batch
        taken = updates * (ranks - 1) / ranks
        crowded = messages if ranks > cores else 0.0
        talk = cost.byte * bytes_ + cost.message * messages + cost.crowded * crowded
        talk += cost.taken * taken + cost.round * c.rounds
    return Prediction(divided, blocks, solve, talk, bytes_, messages, taken, crowded)


class Team(NamedTuple):
    """CPU seconds that only a team needs: beyond ``Costs.message`` for a message, and the others of there."""

    taken: float = 0.0
    message: float = 0.0
    crowded: float = 0.0
    round: float = 0.0

    @classmethod
    def of(cls, measured: list[tuple[float, float, Prediction]]) -> Team:
        """From fits on teams: CPU seconds, rounds, and what was predicted without these costs.

        Least squares of relative errors; no cost is negative.
        """
        seconds = np.array([cpu for cpu, _, _ in measured])
        rest = np.array([cpu - guess.cpu for cpu, _, guess in measured])
        work = np.array(
            [[guess.taken, guess.messages, guess.crowded, rounds] for _, rounds, guess in measured]
        )
        return cls(*nnls(work / seconds[:, None], rest / seconds)[0].tolist())

    def added_to(self, costs: Costs) -> Costs:
        own = self._asdict() | {"message": costs.message + self.message}
        return replace(costs, **own)


def seconds(p: Prediction, ranks: int, network: Network) -> float:
    """Wall seconds on ranks with a core each: messages take the latency once per doubling of the ranks."""
    steps = math.ceil(math.log2(ranks)) if ranks > 1 else 0
    return p.cpu + p.messages * steps * network.latency + p.received / network.bandwidth


def efficiency(one: Prediction, many: Prediction, ranks: int, network: Network) -> float:
    return seconds(one, 1, network) / (ranks * seconds(many, ranks, network))


def limit_of(c: Counts, cost: Costs) -> float:
    """The number of ranks at which solving blocks on every rank takes as long as all work that is divided."""
    one = predict(c, cost, 1, 0.0, Together())
    alone = c.inner * (cost.product + cost.rest)
    return one.divided / alone if alone else math.inf


@dataclass(frozen=True)
class Growth:
    """Counts as powers of n, fitted to those of several n."""

    largest: Counts
    exponents: dict[str, float]

    @classmethod
    def of(cls, measured: list[Counts]) -> Growth:
        logs = np.log([c.n for c in measured])
        exponents = {}
        for field in fields(Counts):
            values = np.array([getattr(c, field.name) for c in measured], dtype=float)
            steady = field.name in ("n", "m", "row", "original") or (values <= 0).any()
            exponents[field.name] = 0.0 if steady else float(np.polyfit(logs, np.log(values), 1)[0])
        return cls(max(measured, key=lambda c: c.n), exponents)

    def at(self, n: float) -> Counts:
        """From the largest measured n on; there are never more samples or support vectors than n."""
        ratio = n / self.largest.n
        grown = {name: value * ratio ** self.exponents[name] for name, value in asdict(self.largest).items()}
        grown |= {name: min(n, grown[name]) for name in ("rows", "samples", "support")}
        return replace(Counts(**grown), n=n)
