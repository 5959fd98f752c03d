"""Every corner of a grid search: C from 0.01 to 1,000 and γ from 2⁻¹⁰ to 2⁴, ours against scikit-learn's SVC.

grid    letter (first 5,000 rows, X / 15) and usps. Claims: every model is certified; at no point does ours
        take more than twice SVC's seconds; in all it takes at most half. The short form is letter alone,
        every other C and γ. A fit is stopped after --cap seconds: ours has then missed, and SVC's is known
        to be slower than that.
corner  letter (first 4,000 rows), (C, γ) = (2¹², 2⁻⁶) and (2¹², 2⁻⁴), one thread, for --full or --parts
        corner. Claims: certified within 1.5 and 5 seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.arena import TOL, Arena, Limits, Result, View
from benchmarks.lib.bars import check_ratio, is_certified, said
from benchmarks.lib.contenders import CONTENDERS, OURS, SVC
from benchmarks.lib.data import load
from benchmarks.lib.report import Report, options

COSTS = (0.01, 0.1, 1, 10, 100, 1000)
GAMMAS = tuple(2.0**k for k in (-10, -7, -4, -1, 2, 4))
ROWS = {"letter": 5000, "usps": None}
POINT_BAR, TOTAL_BAR = 2.0, 0.5
CORNER, CORNER_ROWS = {(2.0**12, 2.0**-6): 1.5, (2.0**12, 2.0**-4): 5.0}, 4000  # seconds at most
TEST_ROWS = 10  # accuracy is not what this is about


def print_matrix(found: dict[tuple[float, float], dict[str, Result]]) -> None:
    """Ratios, and our seconds over SVC's, one row a C."""
    costs, gammas = (sorted(set(values)) for values in zip(*found, strict=True))
    print(f"{'C':>6}  " + "  ".join(f"{f'γ = 2^{np.log2(gamma):.0f}':>20}" for gamma in gammas))
    for C in costs:
        cells = []
        for gamma in gammas:
            ours, peer = (found[C, gamma][name] for name in (OURS, SVC))
            ratio = f"{ours.best / peer.best:.2f}" if ours.best and peer.best else "?"
            cells.append(f"{ratio:>6} ({said(ours)}/{said(peer)})")
        print(f"{C:>6g}  " + "  ".join(f"{cell:>20}" for cell in cells), flush=True)


def check(report: Report, data: str, found: dict[tuple[float, float], dict[str, Result]]) -> None:
    """Claims over all points; those that fail are named."""
    uncertified, slow = [], []
    for (C, gamma), results in found.items():
        ours, peer = results[OURS], results[SVC]
        point = f"(C {C:g}, γ 2^{np.log2(gamma):.0f}: {said(ours)})"
        if not is_certified(ours):
            uncertified.append(point)
        if ours.best is None or ours.best > POINT_BAR * (peer.best or np.inf):
            slow.append(point)
    report.claim(
        f"{data}: every point optimal to {TOL:g}, recomputed in float64",
        not uncertified,
        f"{len(uncertified)} of {len(found)} are not {' '.join(uncertified)}",
    )
    report.claim(
        f"{data}: no point above {POINT_BAR:g} x {SVC}",
        not slow,
        f"{len(slow)} of {len(found)} are {' '.join(slow)}",
    )
    totals = {}
    for name in (OURS, SVC):
        times = [results[name].best for results in found.values()]
        whole = None if None in times else [float(sum(times))]
        at_least = sum(results[name].best or results[name].slower_than or 0 for results in found.values())
        totals[name] = Result(name, whole or [])
        if whole is None:
            totals[name].absent, totals[name].slower_than = f"more than {at_least:.1f} s", at_least
    check_ratio(report, f"{data}, the whole grid", totals[OURS], totals[SVC], TOTAL_BAR)


def run_corner(report: Report, args) -> None:
    problem = load("letter", CORNER_ROWS, TEST_ROWS)
    view = View(problem.splits[0], problem.gamma)
    limits = Limits(args.repeats, patience=args.cap / 2, cap=args.cap, threads=1)
    print(f"\nletter, {view.split.n:,} rows, one thread")
    with Arena({"scaled": view}, [CONTENDERS[OURS], CONTENDERS[SVC]], 1) as arena:
        for (C, gamma), bar in CORNER.items():
            results = arena.measure(C, limits, gamma=gamma)
            ours = results[OURS]
            for result in results.values():
                report.keep("corner", {"data": "letter", "C": C, "gamma": gamma, **result.record()})
            text = f"letter, C 2^{np.log2(C):.0f}, γ 2^{np.log2(gamma):.0f}"
            report.claim(f"{text}: optimal to {TOL:g}, recomputed in float64", is_certified(ours), said(ours))
            met = ours.best is not None and ours.best <= bar
            report.claim(f"{text}: at most {bar:g} s", met, f"{said(ours)}, {SVC} {said(results[SVC])}")


def run_grid(report: Report, args) -> None:
    step = 1 if args.full else 2
    for data in args.data or (ROWS if args.full else ("letter",)):
        problem = load(data, ROWS[data], TEST_ROWS)
        view = View(problem.splits[0], problem.gamma)
        found = {}
        limits = Limits(args.repeats, patience=args.cap / 2, cap=args.cap, at_least=0.02)
        with Arena({"scaled": view}, [CONTENDERS[OURS], CONTENDERS[SVC]], args.threads) as arena:
            for C in COSTS[step - 1 :: step]:
                for gamma in GAMMAS[::step]:
                    found[C, gamma] = arena.measure(C, limits, gamma=gamma)
                    for result in found[C, gamma].values():
                        report.keep("points", {"data": data, "C": C, "gamma": gamma, **result.record()})
        print(f"\n{data}, {view.split.n:,} rows: ours / SVC (seconds)")
        print_matrix(found)
        check(report, data, found)


PARTS = {"grid": run_grid, "corner": run_corner}


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--data", nargs="+", choices=ROWS, help="these only")
    parser.add_argument("--parts", nargs="+", choices=PARTS, help="these only")
    parser.add_argument("--cap", type=float, default=60.0, help="seconds for a fit")
    parser.add_argument("--threads", type=int, default=2, help="of the grid")
    args = parser.parse_args()
    report = Report("grid", args, words=("PASS", "MISS"))
    for part in args.parts or (PARTS if args.full else ("grid",)):
        PARTS[part](report, args)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
