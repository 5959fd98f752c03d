"""How the time of a fit grows: with rows, with accuracy, with working sets, and as the cache shrinks.

Rows (Niu & Yuan, Figure 4): mnist, seconds and support vectors against n; claim: the exponent of n, fitted by
least squares in logarithms, is at most 1.6 (the paper reports 1.8). Only --full goes on to 60,000 rows.

Tolerance (their Figure 2): seconds against tol from 1e-1 to 1e-5. Claim: every one certified.

Working sets (their Figure 3): seconds and iterations of "dasmc" against the size of its working set.

Cache: seconds when cache_size is 100, 50, 25, 10 and 5% of what the largest working set of an unlimited fit
needs: its rows and its block, in float32. Claims: every one certified; no step of these multiplies the time
by more than it divides the cache (no cliff).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.arena import Arena, Limits, Result, View
from benchmarks.lib.bars import check_certified, said
from benchmarks.lib.contenders import CONTENDERS, OURS
from benchmarks.lib.data import load
from benchmarks.lib.plot import draw
from benchmarks.lib.report import Report, Table, options

EXPONENT = 1.6
SIZES = (5_000, 10_000, 20_000, 40_000, 60_000)
TOLERANCES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5)
WORKING_SETS = (20, 50, 100, 200, 400, 800)
SHARES = (1.0, 0.5, 0.25, 0.1, 0.05)
ITEM = 4  # bytes of a kernel value
TEST_ROWS = 100  # accuracy is not what this is about


def arena(rows: int, threads: int) -> tuple[float, Arena]:
    """C, and ours alone around the first rows of mnist."""
    problem = load("mnist", rows, TEST_ROWS)
    view = View(problem.splits[0].astype(np.float32), problem.gamma)
    return problem.C, Arena({"scaled": view}, [CONTENDERS[OURS]], threads)


class Figure:
    """Runs ours along one axis: table, file and plot."""

    def __init__(self, report: Report, name: str, axis: str, limits: Limits) -> None:
        self.report, self.name, self.axis, self.limits = report, name, axis, limits
        self.points: list[tuple[float, Result]] = []
        self.table = Table(
            (axis, "sec.", "SVs", "rounds", "updates", "rows", "evictions", "ψ", "gap / P"),
            (14, 9, 7, 7, 10, 8, 10, 8, 8),
        )

    def add(self, x: float, arena: Arena, C: float, **changes) -> Result:
        result = arena.measure(C, self.limits, **changes)[OURS]
        counts = ("support", "rounds", "updates", "rows", "evictions")
        found = result.judgement
        self.table.row(
            f"{x:g}",
            said(result),
            *(result.facts.get(key, "") for key in counts),
            f"{found.psi:.1e}" if found else "",
            f"{found.gap / found.primal:.1e}" if found else "",
        )
        self.report.keep(self.name, {self.axis: x, **changes, **result.record()})
        self.points.append((x, result))
        return result

    @property
    def timed(self) -> tuple[list[float], list[float]]:
        points = [(x, result.best) for x, result in self.points if result.seconds]
        return [x for x, _ in points], [y for _, y in points]

    def draw(self) -> None:
        draw(self.report, self.name, {"seconds": self.timed}, self.axis, "seconds", log="xy")


def rows(report: Report, sizes: list[int], limits: Limits) -> None:
    print("\nTime against rows (Niu & Yuan, Figure 4), mnist")
    figure = Figure(report, "scaling_rows", "rows", limits)
    for n in sizes:
        C, ring = arena(n, limits.threads)
        with ring:
            figure.add(n, ring, C)
    figure.draw()
    for n, result in figure.points:
        check_certified(report, f"{n:,} rows", result)
    xs, ys = figure.timed
    support = [result.facts["support"] for _, result in figure.points if result.seconds]
    draw(report, "scaling_support", {"support vectors": (xs, support)}, "rows", "support vectors", log="xy")
    if len(xs) < 2:
        report.claim(f"exponent of n at most {EXPONENT}", False, "fewer than two times")
        return
    exponents = [float(np.polyfit(np.log(xs), np.log(values), 1)[0]) for values in (ys, support)]
    report.keep("exponents", dict(zip(("seconds", "support"), exponents, strict=True)))
    report.claim(
        f"seconds grow at most like n^{EXPONENT} ({xs[0]:,} to {xs[-1]:,} rows)",
        exponents[0] <= EXPONENT,
        f"n^{exponents[0]:.2f}, support vectors n^{exponents[1]:.2f}",
    )


def tolerance(report: Report, n: int, limits: Limits) -> None:
    print(f"\nTime against tol (Niu & Yuan, Figure 2), {n:,} rows of mnist")
    figure = Figure(report, "scaling_tol", "tol", limits)
    C, ring = arena(n, limits.threads)
    with ring:
        for tol in TOLERANCES:
            figure.add(tol, ring, C, tol=tol)
    figure.draw()
    for tol, result in figure.points:
        check_certified(report, f"tol {tol:g}", result, tol)


def working_set(report: Report, n: int, limits: Limits) -> None:
    print(f"\nTime of dasmc against its working set (Niu & Yuan, Figure 3), {n:,} rows of mnist")
    figure = Figure(report, "scaling_working_set", "working set", limits)
    C, ring = arena(n, limits.threads)
    with ring:
        for q in WORKING_SETS:
            figure.add(q, ring, C, solver="dasmc", working_set_size=q)
    figure.draw()


def cache(report: Report, n: int, limits: Limits) -> None:
    print(f"\nTime against cache, {n:,} rows of mnist")
    C, ring = arena(n, limits.threads)
    with ring:
        free = ring.measure(C, replace(limits, repeats=1))[OURS]
        if not free.seconds:
            report.claim("a fit without limit ends", False, str(free.absent))
            return
        largest = free.facts["working_set"]
        need = ITEM * largest * (n + largest) / 1e6
        print(f"the largest working set has {largest:,} samples: {need:.0f} MB of rows and block")
        figure = Figure(report, "scaling_cache", "share", limits)
        for share in SHARES:
            figure.add(share, ring, C, cache_size=share * need)
    figure.draw()
    for share, result in figure.points:
        check_certified(report, f"cache of {share:.0%}", result)
    for (share, result), (smaller, slower) in pairwise(figure.points):
        text = f"from {share:.0%} to {smaller:.0%} of the cache, no cliff"
        if not (result.seconds and slower.seconds):
            report.claim(text, False, f"{said(result)}, {said(slower)}")
            continue
        ratio = slower.best / result.best
        report.claim(text, ratio <= share / smaller, f"{ratio:.2f} times the time")


def main() -> int:
    parser = options(__doc__)
    figures = ("rows", "tol", "working-set", "cache")
    parser.add_argument("--figures", nargs="+", choices=figures, default=figures)
    parser.add_argument("--cap", type=float, help="seconds for a fit (short form: 60)")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    report = Report("scaling", args, words=("PASS", "MISS"))
    limits = Limits(args.repeats, cap=args.cap or (None if args.full else 60.0), threads=args.threads)
    if "rows" in args.figures:
        rows(report, [n for n in SIZES if args.full or n <= 20_000], limits)
    if "tol" in args.figures:
        tolerance(report, 10_000 if args.full else 3000, limits)
    if "working-set" in args.figures:
        working_set(report, 5000 if args.full else 2000, limits)
    if "cache" in args.figures:
        cache(report, 20_000 if args.full else 5000, limits)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
