"""What a fit costs each of several ranks, by what it does and by what each thing costs on one rank.

``Counts`` says what a fit does. It is the same with any number of ranks. ``Costs`` has the CPU seconds of
each thing, from a fit on one rank, and of messages, from a test on two. Some work is divided by the ranks:
kernel rows, updates, selections, proofs, conversions. Some every rank does: it puts the blocks together and
solves them. A block that is kept from round to round only the first rank has. With the shared solve (Niu &
Yuan's Algorithm 5) a rank does its part of both: it needs q / P rows of the block, multiplies them in each
inner iteration, and all gather the q × m numbers of the product.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from benchmarks.lib.traffic import CANDIDATE, FACTS, REAL, VALUE
from benchmarks.workers.tally import SMALL

MEASURES = 24  # bytes per rank of a selection
SLOT = 128  # bytes of a small value that is agreed on
AGREED = 2  # such values in a round


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
    kept: float  # new values of a block that the first rank keeps and solves for all
    solved: float  # samples of all sets with such a block: their solution travels
    converted: float  # rows of X that a rank of a team brings into native form
    samples: float  # different ones in all working sets
    support: float
    proofs: float
    inner: float  # inner iterations
    first: float = 1.0  # samples of the first rank of a team, in units of an equal share

    @classmethod
    def of(cls, fit: Any, n: int, m: int, row: float, original: float, first: float = 1.0) -> Counts:
        """From a fit on one rank."""
        support = len(fit["coefficients"]["support"])
        same = ("selections", "asked", "visits", "gathered", "alone", "large", "kept", "solved", "converted")
        return cls(
            n=n,
            m=m,
            row=row,
            original=original,
            first=first,
            rounds=fit["iterations"],
            rows=fit["rows"],
            updated=fit.total("updated"),
            support=support,
            samples=fit["samples"],
            inner=_inner(fit),
            proofs=fit.total("proof_values") / (n * support),
            **{name: fit[name] for name in same},
        )


def _inner(fit: Any) -> int:
    """Inner iterations; those of the last block of all support vectors are of another kind."""
    if not fit["gathered"]:
        return int(fit["inner"])
    return int(sum(state["inner"] for state in fit["rounds"] if state["working_set"] <= SMALL))


@dataclass(frozen=True)
class Costs:
    """CPU seconds of each thing that a fit does."""

    row_value: float  # a kernel value of a row
    update: float  # a row of the gradient of one sample, for one moved sample
    select: float  # one sample, measured once
    proof_value: float  # an exact kernel value
    setup: float  # per sample: validation and conversion
    block_value: float  # a value of a block: to put it there
    product: float  # an inner iteration: what Algorithm 5 shares
    rest: float  # an inner iteration: what it does not share
    convert: float = 0.0  # on a team: a row of X to its native form
    byte: float = 0.0  # received
    message: float = 0.0
    round: float = 0.0  # on a team: whatever else a round takes

    @classmethod
    def of(cls, fit: Any, counts: Counts, product_share: float, **team: float) -> Costs:
        """From a fit on one rank, with those of a team.

        ``product_share`` is the part of an inner iteration that can be shared.
        """
        phases, c = fit["profile"], counts
        blocks = phases["memory"] - fit["setup_memory"]
        inner = phases["inner"] / c.inner
        other = fit["cpu"] - sum(phases.values())
        return cls(
            row_value=phases["kernel rows"] / fit["values"],
            update=phases["gradient"] / c.updated,
            select=phases["selection"] / (c.selections * c.n),
            proof_value=phases["proof"] / (c.proofs * c.n * c.support),
            setup=(other + fit["setup_memory"]) / c.n,
            block_value=blocks / (c.gathered + c.large + c.kept),
            product=inner * product_share,
            rest=inner * (1 - product_share),
            **team,
        )


@dataclass(frozen=True)
class Prediction:
    """CPU seconds of the slowest rank by their kind, and its messages."""

    divided: float
    blocks: float  # putting blocks together, and values that every rank computes
    solve: float
    talk: float  # CPU seconds for messages
    received: float  # bytes
    messages: float

    @property
    def cpu(self) -> float:
        return self.divided + self.blocks + self.solve + self.talk


@dataclass(frozen=True)
class Network:
    """Seconds of one message beside its bytes, and bytes per second."""

    name: str
    latency: float
    bandwidth: float


def first_share(c: Counts, ranks: int) -> float:
    """Of the new values of a kept block, those that the first rank computes by itself.

    It does so while the block is less than twice as long as a rank's part of a row. The others travel.
    """
    return 1.0 if c.samples == 0 else min(1.0, (2 * c.n / ranks / c.samples) ** 2)


def received(c: Counts, ranks: int, shared_solve: bool = False) -> float:
    """Bytes that a rank receives in a whole fit."""
    if ranks == 1:
        return 0.0
    choose = c.selections * MEASURES * ranks + CANDIDATE * ranks * c.asked
    rows = c.samples * (c.row + FACTS) + c.support * c.original
    columns = c.kept * (1 - first_share(c, ranks))
    block = 2 * REAL * c.m * c.visits + VALUE * (c.large + columns)
    solution = (2 * REAL * c.m + REAL) * c.solved  # and who is in the block
    proof = c.proofs * REAL * c.m * c.support + (REAL * c.m + REAL) * c.support
    inner = c.inner * REAL * c.m * c.visits / c.rounds if shared_solve else 0.0
    return choose + rows + block + solution + proof + inner + AGREED * SLOT * c.rounds


def _divided(c: Counts, cost: Costs, part: float, ranks: int) -> float:
    """CPU seconds of a rank with ``part`` samples for the work that is divided."""
    rows = c.rows * part + (0.0 if ranks == 1 else c.large / ranks)
    each = (
        cost.update * c.updated / c.n + cost.select * c.selections + cost.proof_value * c.proofs * c.support
    )
    return cost.row_value * rows + (each + cost.setup) * part


def predict(
    c: Counts, cost: Costs, ranks: int, per_round: float, *, shared_solve: bool = False
) -> Prediction:
    """One of ``ranks`` ranks; ``per_round`` messages in a round, and one in a shared inner iteration."""
    mine = ranks if shared_solve else 1
    first = c.n if ranks == 1 else c.first * c.n / ranks
    divided = _divided(c, cost, first, ranks)
    blocks = cost.block_value * (c.gathered / mine + c.large + c.kept)
    solve = c.inner * (cost.product / mine + cost.rest)
    bytes_, messages, talk = received(c, ranks, shared_solve), 0.0, 0.0
    if ranks > 1:  # one rank finds these values in its rows
        blocks += cost.row_value * (c.alone / mine + c.kept * first_share(c, ranks))
        blocks += cost.convert * c.converted
        messages = c.rounds * per_round + (c.inner if shared_solve else 0.0)
        talk = cost.byte * bytes_ + cost.message * messages + cost.round * c.rounds
        other = _divided(c, cost, (c.n - first) / (ranks - 1), ranks)
        if c.kept and other > divided + blocks + solve:  # the others have more to do than the first
            return Prediction(other, 0.0, 0.0, talk, bytes_, messages)
    return Prediction(divided, blocks, solve, talk, bytes_, messages)


def seconds(p: Prediction, ranks: int, network: Network) -> float:
    """Wall seconds on ranks with a core each: messages take the latency once per doubling of the ranks."""
    steps = math.ceil(math.log2(ranks)) if ranks > 1 else 0
    return p.cpu + p.messages * steps * network.latency + p.received / network.bandwidth


def efficiency(one: Prediction, many: Prediction, ranks: int, network: Network) -> float:
    return seconds(one, 1, network) / (ranks * seconds(many, ranks, network))


def limit_of(c: Counts, cost: Costs) -> float:
    """The number of ranks at which solving the block takes as long as all work that is divided."""
    one = predict(c, cost, 1, 0.0)
    return one.divided / one.solve


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
            steady = field.name in ("n", "m", "row", "original", "first") or (values <= 0).any()
            exponents[field.name] = 0.0 if steady else float(np.polyfit(logs, np.log(values), 1)[0])
        return cls(max(measured, key=lambda c: c.n), exponents)

    def at(self, n: float) -> Counts:
        """From the largest measured n on; there are never more samples or support vectors than n."""
        ratio = n / self.largest.n
        grown = {name: value * ratio ** self.exponents[name] for name, value in asdict(self.largest).items()}
        grown |= {name: min(n, grown[name]) for name in ("rows", "samples", "support")}
        return replace(Counts(**grown), n=n)
