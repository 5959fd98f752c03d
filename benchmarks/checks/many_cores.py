"""Many cores, on paper: which part of a fit would hold 4, 16 or 64 cores back?

Fits with one thread and with two take turns; the first fit of each does not count, and of every phase
(``trace_.info["profile"]``) the best time does. What is left of a fit beside its phases (checks of the data,
making the model) is the phase "around". Each phase gets its serial share by Amdahl's law from its two times
(lib/amdahl.py), and the shares give the seconds on more cores. Beside them stand the times that were once
measured on 16 cores (a Xeon, commit 1067630, which was slower on one core too).

Claims: 16 cores would take at most 0.25 s on letter and 2.5 s on mnist (60,000 rows, bytes), and would be at
least 6 times as fast as one on mnist.

Kernel rows that are kept are written once and read by every step that moves their sample. --bandwidth is how
fast the imagined machine reads and writes memory; the bytes of these rows set a floor for the phases "kernel
rows" and "gradient".

What such a prediction cannot know: how long 16 threads take to wake and to wait for each other, which grows
with their number and hurts phases of many short calls; whether there are enough tasks for them; caches, which
many cores have more of, and memory on several sockets; the clock, which falls when all cores work. Two
threads that share the memory of a small machine look serial to Amdahl's law, although a machine with more
memory channels would divide their work. And on cores that others use too, the second thread is the first to
suffer: then serial shares are too large. So a product on one core takes turns with one on each of two. If the
best of these take much longer, the second core was never free, and the run cannot tell.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from multimargin import KernelSVC

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.amdahl import Phase, predicted
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.scoring import timed_fit
from benchmarks.lib.suite import SUITE, Entry
from benchmarks.lib.turns import take_turns
from benchmarks.workers.storage import Split

CORES = (4, 16, 64)
AT = 16  # cores of the claims
MOST = {"letter": 0.25, "mnist 60,000": 2.5}  # seconds
LEAST_SPEEDUP = {"mnist 60,000": 6.0}
AROUND = "around"
BUSY = 1.25  # times the time of one product, for two at once: the second core is not free
# Seconds by cores that were measured once.
MEASURED = {
    "letter": {1: 2.18, 2: 1.56, 4: 1.56, 8: 1.43, 16: 1.36},
    "usps": {1: 0.43, 2: 0.31, 4: 0.26, 8: 0.24, 16: 0.21},
    "isolet": {1: 0.89, 2: 0.62, 4: 0.60, 8: 0.51, 16: 0.40},
    "mnist 60,000": {1: 16.1, 2: 10.8, 4: 6.9, 8: 5.8, 16: 5.2},
}


def products(count: int, size: int = 1024) -> float:
    """Seconds of so many products at once, each on a core of its own."""
    A = np.ones((size, size), dtype=np.float32)
    with threadpool_limits(1), ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda _: A @ A, range(count)))
        start = perf_counter()
        list(pool.map(lambda _: A @ A, range(count)))
        return perf_counter() - start


class Measured(NamedTuple):
    """Best seconds of every phase by threads, of whole fits, and the bytes of kept kernel rows."""

    phases: dict[int, dict[str, float]]
    fits: dict[int, float]
    written: float
    read: float
    second_core: float  # time of two products at once, in that of one


def measure(C: float, gamma: float, split: Split, repeats: int) -> Measured:
    """Fits with one and with two threads in turns."""
    profiles: dict[str, list[dict[str, float]]] = {"1": [], "2": []}
    together: dict[str, list[float]] = {"1": [], "2": []}
    last = None

    def fit(threads: str) -> float:
        nonlocal last
        last, seconds = timed_fit(KernelSVC(C=C, gamma=gamma, n_threads=int(threads)), split)
        profile = last.trace_.info["profile"]
        together[threads].append(products(int(threads)))
        profiles[threads].append(profile | {AROUND: seconds - sum(profile.values())})
        return seconds

    seconds, _ = take_turns(profiles, fit, repeats + 1)
    phases = {
        int(name): {key: min(profile[key] for profile in found[1:]) for key in found[0]}
        for name, found in profiles.items()
    }
    row = split.n * np.dtype(last.trace_.info["row_dtype"]).itemsize if last.trace_.info["cache_rows"] else 0
    done = last.trace_[-1]
    written, read = float(done.rows * row), float((done.rows + done.hits) * row)
    best = {int(name): min(found[1:]) for name, found in seconds.items()}
    return Measured(phases, best, written, read, min(together["2"]) / min(together["1"]))


def fitted(found: Measured, bandwidth: float) -> dict[str, Phase]:
    """The phases by Amdahl's law; ``bandwidth`` in bytes per second."""
    floors = {"kernel rows": found.written / bandwidth, "gradient": found.read / bandwidth}
    one, two = found.phases[1], found.phases[2]
    return {name: Phase.of(one[name], two[name], floors.get(name, 0.0)) for name in one}


def stored_view(entry: Entry) -> tuple[float, float, Split]:
    """C, γ and the data: bytes if the file has them."""
    C, views = entry.views(1)
    view = views.get("stored", views["scaled"])
    return C, view.gamma, view.split


def show(report: Report, name: str, found: Measured, phases: dict[str, Phase]) -> None:
    """Print each phase, then the sum."""
    print(f"\n{name} (two products at once: {found.second_core:.2f} times the time of one)")
    heads = ("phase", "1 thread", "2 threads", "serial", *(f"{cores} cores" for cores in CORES))
    table = Table(heads, (12, 9, 9, 7, 9, 9, 9))

    def times(of: list[float]) -> list[str]:
        return [f"{value:.3f}" for value in of]

    for key, phase in phases.items():
        ahead = times([phase.seconds(cores) for cores in CORES])
        own = times([found.phases[1][key], found.phases[2][key]])
        table.row(key, *own, f"{phase.serial_share:.0%}", *ahead)
        report.keep("phases", {"data": name, "phase": key, **phase._asdict()})
    sums = [sum(found.phases[threads].values()) for threads in (1, 2)]
    share = sum(phase.serial for phase in phases.values()) / sums[0]
    table.row("sum", *times(sums), f"{share:.0%}", *times([predicted(phases, cores) for cores in CORES]))
    table.row("best fit", *times([found.fits[1], found.fits[2]]), "", *[""] * len(CORES))
    before = MEASURED.get(name, {})
    cells = [f"{before[cores]:.2f}" if cores in before else "" for cores in (1, 2, *CORES)]
    table.row("1067630", *cells[:2], "", *cells[2:])
    report.keep("fits", {"data": name, **found._asdict()})


def check(report: Report, name: str, phases: dict[str, Phase], second_core: float) -> None:
    at, busy = predicted(phases, AT), second_core > BUSY

    def claim(text: str, held: bool, numbers: str) -> None:
        said = f"{numbers}; the second core was busy" if busy else numbers
        report.claim(text, None if busy else held, said)

    if name in MOST:
        text = f"{name}: at most {MOST[name]:g} s predicted on {AT} cores"
        claim(text, at <= MOST[name], f"{at:.3f} s")
    if name in LEAST_SPEEDUP:
        faster = predicted(phases, 1) / at
        text = f"{name}: {AT} cores at least {LEAST_SPEEDUP[name]:g} times as fast as one, predicted"
        claim(text, faster >= LEAST_SPEEDUP[name], f"{faster:.1f} times")


def main() -> int:
    entries = {entry.name: entry for entry in SUITE if entry.name in MEASURED}
    parser = options(__doc__, repeats=5)
    parser.add_argument("--data", nargs="+", choices=entries, default=list(entries))
    parser.add_argument("--bandwidth", type=float, default=100.0, help="GB/s of the imagined machine")
    args = parser.parse_args()
    report = Report("many_cores", args, words=("PASS", "MISS"))
    ahead = {}
    for name in args.data:
        found = measure(*stored_view(entries[name]), args.repeats)
        phases = fitted(found, args.bandwidth * 1e9)
        show(report, name, found, phases)
        ahead[name] = phases, found.second_core
    print()
    for name, (phases, second_core) in ahead.items():
        check(report, name, phases, second_core)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
