"""CPU seconds of messages on a team, and of an inner iteration of the projected gradient."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from mpi4py import MPI

from benchmarks.workers.tally import tallied
from multimargin import _core
from multimargin.engines.mpi.team import MpiTeam
from multimargin.inner import ProjectedGradient
from multimargin.system.shard import Shard

SAMPLES, NEW, FEATURES = 20_000, 300, 784  # rows of X that join a working set, a byte per feature
STEPS = 60  # numbers of a short message: a few steps of a shared descent
REPEATS, MANY = 30, 100


def message_costs() -> dict[str, float]:
    """Of this rank: seconds of a short message, and per byte of rows of X.

    ``message`` is the CPU time of a message that nobody has to be waited for: one to this rank itself.
    ``byte`` is CPU seconds without those of waiting. ``latency`` and ``transfer`` are the wall seconds of a
    short message between the ranks, and the least of a byte of a long one.
    """
    team, alone = MpiTeam.assemble(), MpiTeam.assemble(MPI.COMM_SELF)
    shard = Shard(SAMPLES // team.size, team)
    rng = np.random.default_rng(0)
    ids = np.sort(rng.choice(shard.n, NEW, replace=False))
    rows = np.ones((len(shard.mine(ids)[1]), FEATURES), dtype=np.uint8)
    long = np.ones(1 << 20)
    head = np.ones(STEPS)
    latency, short = (each_of(lambda team=team: team.gather(head)) for team in (team, alone))
    _, taken = least(lambda: shard.take(ids, rows), REPEATS)
    wall, _ = least(lambda: team.join(long, [len(long)] * team.size), REPEATS)
    return {
        "message": short,
        "byte": taken / (NEW * FEATURES),
        "latency": latency,
        "transfer": wall / (long.nbytes * team.size),
    }


def each_of(action: Callable[[], object]) -> float:
    """Wall seconds of a call among many, without the slow ones."""
    found = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(MANY):
            action()
        found.append((time.perf_counter() - start) / MANY)
    return float(np.median(found))


def least(action: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Least wall seconds, and the median of CPU seconds without those of waiting."""
    wall, cpu = [], []
    for _ in range(repeats):
        with tallied() as tally:
            begin, start = time.perf_counter(), time.process_time()
            action()
            cpu.append(time.process_time() - start - tally.waiting)
            wall.append(time.perf_counter() - begin)
    return min(wall), float(np.median(cpu))


def product_share(q: int = 400, m: int = 10, steps: int = 200) -> float:
    """The part of an inner iteration that grows like q²: its product with the block."""
    small, large = (iteration_seconds(size, m, steps) for size in (q // 4, q))
    # t(q) = a q² + b q, at q and q / 4
    a = (large - 4 * small) / (q**2 - q**2 / 4)
    return float(np.clip(a * q**2 / large, 0.0, 1.0))


def iteration_seconds(q: int, m: int, steps: int) -> float:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(q, 20))
    K = np.exp(-0.02 * ((X[:, None] - X[None]) ** 2).sum(axis=2)).astype(np.float32)
    y = rng.integers(0, m, q).astype(np.int32)
    rule = ProjectedGradient()
    found = []
    for _ in range(5):
        G, alpha = -np.eye(m)[y], np.zeros((q, m))
        options = _core.GradientOptions(
            eps=0.0,
            max_iter=steps,
            rho_min=rule.rho_min,
            rho_max=rule.rho_max,
            memory=rule.memory,
            patience=rule.patience,
            initial_step=rule.initial_step,
        )
        start = time.process_time()
        made = _core.projected_gradient("crammer-singer", K, G, alpha, y, np.full(q, 4.0), options, 1)[0]
        found.append((time.process_time() - start) / max(1, made))
    return min(found)
