"""Microseconds per message between the ranks of a team, and what waiting takes of a rank's core.

Every verb at 1 to 4 ranks on this machine, started by mpiexec: the best and the median of ``--repeats``
batches, and CPU time per call. With two ranks on two idle cores, a sum of four numbers may take 20 µs.
With more ranks than cores the seconds say little, and CPU time is what a fit pays.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.report import Report, Table, options

MOST_RANKS = 4
BATCH = 50  # calls
LATE = 0.02  # seconds by which one rank is late
BAR = 20.0  # microseconds


def calls_of(team: object) -> dict[str, Callable[[], object]]:
    rank, size = team.rank, team.size
    score = np.random.default_rng(rank).random(5000)
    ids = np.arange(5000) + 5000 * rank
    rows = np.zeros((200 // size, 784), dtype=np.float32)
    few, many = np.zeros(4), np.zeros(200_000)
    return {
        "sum of 4": lambda: team.sum(few),
        "max": lambda: team.max(1.0),
        "agree": lambda: team.agree(True),
        "collect": lambda: team.collect(3),
        "top 200 of 5000 each": lambda: team.top(ids, score, 200),
        "join of 600 kB": lambda: team.join(rows, [len(rows)] * size),
        "sum of 1.6 MB": lambda: team.sum(many),
    }


def measure(repeats: int) -> dict[str, dict[str, float]]:
    """On every rank: microseconds of each verb."""
    from multimargin.engines.mpi.team import MpiTeam

    team = MpiTeam.assemble()
    found = {}
    for name, call in calls_of(team).items():
        seconds, cpu = [], time.process_time()
        for _ in range(repeats):
            team.max(0.0)
            begin = time.perf_counter()
            for _ in range(BATCH):
                call()
            seconds.append((time.perf_counter() - begin) / BATCH * 1e6)
        cpu = (time.process_time() - cpu) / (repeats * BATCH) * 1e6
        found[name] = {"best": min(seconds), "median": float(np.median(seconds)), "cpu": cpu}
    found["wait of 20 ms"] = late(team)
    return found


def late(team: object) -> dict[str, float]:
    """The last rank waits for the first."""
    cpu, begin = time.process_time(), time.perf_counter()
    for _ in range(10):
        if team.rank == 0:
            time.sleep(LATE)
        team.max(0.0)
    wall, cpu = (time.perf_counter() - begin) / 10 * 1e6, (time.process_time() - cpu) / 10 * 1e6
    return {"best": wall, "median": wall, "cpu": cpu}


def start(ranks: int, repeats: int) -> dict[str, dict[str, float]]:
    """What the last of ``ranks`` ranks measures."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    mpiexec = shutil.which("mpiexec", path=places)
    if mpiexec is None:
        raise SystemExit('there is no mpiexec: pip install "multimargin[mpi]"')
    command = [mpiexec, "-n", str(ranks), sys.executable, __file__, "--rank", "--repeats", str(repeats)]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout
    return json.loads(output)


def idle(report: Report) -> bool:
    """Whether two cores were free when the script started."""
    load = report.found["load_at_start"]
    return load is not None and load[0] + 2 <= report.found["machine"]["cores"]


def main() -> int:
    parser = options(__doc__, repeats=20)
    parser.add_argument("--rank", action="store_true", help="be a rank, which the script starts itself")
    args = parser.parse_args()
    if args.rank:
        found = measure(args.repeats)
        from mpi4py import MPI

        if MPI.COMM_WORLD.rank == MPI.COMM_WORLD.size - 1:
            print(json.dumps(found))
        return 0
    report = Report("messages", args, words=("PASS", "MISS"))
    table = Table(("microseconds per call", "ranks", "best", "median", "CPU"), (22, 6, 10, 10, 10))
    for ranks in range(1, MOST_RANKS + 1):
        for name, us in start(ranks, args.repeats).items():
            table.row(name, ranks, *(f"{us[key]:.1f}" for key in ("best", "median", "cpu")))
            report.keep("rows", {"ranks": ranks, "call": name} | us)
    print()
    best = next(row["best"] for row in report.found["rows"] if row["ranks"] == 2)
    held = best <= BAR if best <= BAR or idle(report) else None
    report.claim(f"two ranks: a sum of 4 in {BAR:g} µs", held, f"{best:.1f} µs")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
