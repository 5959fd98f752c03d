"""Seconds to label mnist's 10,000 test rows, against the floor of the kernel values that it takes.

The model is fitted to 10,000 rows, with --full to all 60,000, once on pixels / 255 in float32 and once on the
uint8 pixels as they are. The floor is one float32 product and exp for every value between the test rows and
the support vectors, with as many threads (lib/floor.py); it takes turns with the predictions. Claims: at most
1.3 times the floor; every label is the one that the coefficients give in float64.

First the time to label a single row (lib/latency.py). Claims: 1 ms for 3,000 support vectors of 300 features,
0.2 ms for a sparse row of 2^18 features and 20 classes of the linear machine. --latency stops there.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.arena import Arena, Limits, Result, View
from benchmarks.lib.bars import check_ratio, seconds
from benchmarks.lib.contenders import CONTENDERS, OURS, STORED
from benchmarks.lib.floor import Floor
from benchmarks.lib.latency import check_latency
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.suite import FLOOR, SUITE
from benchmarks.lib.turns import take_turns

BAR = 1.3
NAMES = (OURS, STORED)


def measure(
    views: dict[str, View], C: float, repeats: int, threads: int
) -> tuple[dict[str, Result], dict[str, Result]]:
    """The fitted models, and the times of their predictions and of the floor."""
    with Arena(views, [CONTENDERS[name] for name in NAMES], threads) as arena:
        fitted = arena.measure(C, Limits(repeats=1, threads=threads))
        present = [name for name in NAMES if fitted[name].absent is None]
        times = {name: Result(name, absent=fitted[name].absent) for name in NAMES} | {FLOOR: Result(FLOOR)}
        if not present:
            return fitted, times
        split, support = views["scaled"].split, fitted[present[0]].coefficients.support_
        floor = Floor(split.X_test, split.X_train[support], views["scaled"].gamma, threads)

        def once(name: str) -> float:
            if name == FLOOR:
                return floor.once()
            arena.predict(fitted[name], None)
            return fitted[name].predict_seconds

        for name, spent in take_turns([*present, FLOOR], once, repeats)[0].items():
            times[name].seconds = spent
    return fitted, times


def main() -> int:
    parser = options(__doc__, repeats=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--latency", action="store_true", help="single rows only")
    args = parser.parse_args()
    report = Report("prediction", args, words=("PASS", "MISS"))
    check_latency(report)
    if args.latency:
        return report.finish()
    name = "mnist 60,000" if args.full else "mnist 10,000"
    C, views = next(entry for entry in SUITE if entry.name == name).views(None)
    fitted, times = measure(views, C, args.repeats, args.threads)
    floor = times[FLOOR]
    table = Table(("data", "SVs", "sec.", "floor", "accuracy"), (20, 7, 8, 8, 8))
    for name, result in fitted.items():
        if times[name].seconds:
            cells = (seconds(times[name].best), seconds(floor.best), f"{result.accuracy:.2f}")
            table.row(name, result.facts["support"], *cells)
    for name, result in fitted.items():
        check_ratio(
            report, f"{name}, labels of {len(views['scaled'].split.y_test):,} rows", times[name], floor, BAR
        )
        report.claim(
            f"{name}: labels are those of the coefficients",
            result.disagreeing == 0,
            str(result.absent or f"{result.disagreeing} differ"),
        )
        report.keep("results", {"seconds": times[name].seconds, "floor": floor.seconds, **result.record()})
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
