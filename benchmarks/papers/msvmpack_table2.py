"""Didiot & Lauer's Table 2: four machines on four datasets, beside MSVMpack's figures and other programs'.

As they have it: a free bias for Weston-Watkins, Lee-Lin-Wahba and M-SVM², none for Crammer-Singer; RBF with
σ = 1 (on raw mnist 1000), so γ = 1 / 2σ². Theirs stop when the dual is 98% of a bound on it, ours when no
sample violates its condition by more than 1e-3 of the margin; "msvmpack" is their method in ours, stopped
when theirs is. Bio and CB513 are not here.

What differs, and why:
- ImageSeg is the data they had, and the errors are theirs or within three of the 2,100 test rows.
- Which 500 rows of USPS theirs has, and how they are scaled, is not published: here the first 500 of each
  part, pixels in [0, 1] and rows of length one. Of the scalings tried only this one has MCSVM's number of
  support vectors; with pixels as they come σ = 1 is so narrow that all rows are support vectors, and a free
  bias then outweighs every kernel value (errors of 70%).
- Letter: "the BSVM scaling tool" is to [-1, 1]. The optima (Lee-Lin-Wahba's to a gap of 0.2%) then have all
  four of their errors, to 0.05 points, although theirs stopped at 98%, and M-SVM² by hand: what is left of
  the gap hardly shows in the error. With features of variance one Crammer-Singer's has 2.98%, not 6.90%:
  MCSVM's 3.90% looks like other data, not like a better optimum. Lee-Lin-Wahba and M-SVM² take minutes there:
  --full, or --machines.
- They count any coefficient that is not exactly zero as a support vector, and Frank-Wolfe hardly ever returns
  one to zero, so they have more of them.
- MNIST has 60,000 rows with --full for Weston-Watkins and Crammer-Singer; 10,000 otherwise. Then errors are
  higher than theirs because there is less to learn from. MCSVM's 2.76% looks like an unfinished run.

Claims checked; exit status 1 if one does not hold:
- every model is optimal to 1e-3 (ImageSeg: 1e-5), recomputed in float64;
- ImageSeg: errors 10.19, 9.24, 10.57 and 10.38% ± 0.1, and the primal values that an independent program
  found, to its duality gap or ours;
- MNIST with 60,000 rows (--full): Weston-Watkins and Crammer-Singer err on 1.4 ± 0.1%.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from multimargin import KernelSVC

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.data import Problem, load
from benchmarks.lib.printed import MSVMPACK, OTHER_PROGRAMS
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.scoring import InfeasibleError, Outcome, compete

TOL, GAP = 1e-3, 0.02
TIGHT = {"ImageSeg": 1e-5}  # so that primal values can be compared
METHODS = ("auto", "msvmpack")
MACHINES = ("weston-watkins", "crammer-singer", "lee-lin-wahba", "msvm2")
ROWS = {"USPS_500": 500, "MNIST": 10_000}  # if not all training rows take part
TEST_ROWS = {"USPS_500": 500}
LONG = {"Letter": ("lee-lin-wahba", "msvm2")}  # not in the short form, unless asked for
ALL_ROWS = ("weston-watkins", "crammer-singer")  # of MNIST, with --full
BY_THEIR_METHOD = ("ImageSeg", "USPS_500")  # unless --methods asks for it elsewhere
MNIST_ERROR, MNIST_WITHIN = 1.4, 0.1


class Optimum(NamedTuple):
    """What an independent program found on ImageSeg."""

    error: float  # per cent
    primal: float
    gap: float  # relative: how far its primal may be above the optimum

    within = 0.1  # points of error
    printed = 0.005  # of the primal, by its digits


IMAGE_SEG = {
    "weston-watkins": Optimum(10.19, 67.97, 2e-3),
    "crammer-singer": Optimum(9.24, 68.56, 3e-4),
    "lee-lin-wahba": Optimum(10.57, 91.02, 3e-4),
    "msvm2": Optimum(10.38, 77.32, 3e-8),
}


def tolerance(name: str, solver: str) -> float:
    return GAP if solver == "msvmpack" else TIGHT.get(name, TOL)


def model(problem: Problem, machine: str, solver: str, limit: float) -> KernelSVC:
    return KernelSVC(
        machine,
        C=problem.C,
        gamma=problem.gamma,
        bias="none" if machine == "crammer-singer" else "free",
        solver=solver,
        tol=tolerance(problem.name, solver),
        time_limit=limit,
    )


def measure(
    report: Report, problem: Problem, machines: Sequence[str], args
) -> dict[tuple[str, str], Outcome]:
    """(machine, solver) -> how it went; a model that is no point of its dual breaks a claim instead."""
    name = problem.name
    solvers = args.methods or (METHODS if name in BY_THEIR_METHOD else ("auto",))
    limits = {"auto": args.limit, "msvmpack": args.method_limit}
    found = {}
    for machine in machines:
        for solver in solvers:
            chosen = {(machine, solver): model(problem, machine, solver, limits[solver])}
            try:
                found |= compete(chosen, problem.splits[0], args.repeats, problem.C, problem.gamma)
            except InfeasibleError as reason:
                report.claim(f"{name}, {machine}, {solver}: can be judged", False, str(reason))
    return found


def print_rows(table: Table, name: str, rows: int | None, found: dict[tuple[str, str], Outcome]) -> None:
    for (machine, solver), run in found.items():
        theirs, other = MSVMPACK[name][machine], OTHER_PROGRAMS[name].get(machine)
        table.row(
            name if rows is None or name in TEST_ROWS else f"{name} {rows:,}",
            machine,
            solver,
            f"{100 - run.accuracy:.2f}",
            f"{theirs.error:.2f}",
            f"{other.error:.2f}" if other else "",
            run.support,
            theirs.support or "",
            other.support if other else "",
            f"{run.seconds:.2f}",
            f"{theirs.seconds:,.1f}",
            f"{run.primal:.2f}",
            f"{run.gap / run.primal:.1e}",
            f"{run.psi:.1e}",
        )


def check(report: Report, name: str, rows: int | None, found: dict[tuple[str, str], Outcome], args) -> None:
    for (machine, solver), run in found.items():
        text = f"{name if rows is None else f'{name} {rows:,}'}, {machine}, {solver}"
        numbers = f"violation {run.psi:.1e}, gap {run.gap / run.primal:.1e}, {run.seconds:.1f} s"
        if solver == "auto":
            limited = run.seconds >= args.limit and not run.converged and not args.full
            tol = tolerance(name, solver)
            held = run.converged and run.certified(tol)
            report.claim(f"{text}: optimal to {tol:g}", None if limited else held, numbers)
        elif run.converged:
            report.claim(f"{text}: gap of at most {GAP:.0%}", run.gap <= GAP * run.primal, numbers)
        if name == "ImageSeg" and solver == "auto":
            check_image_seg(report, machine, run)
        if name == "MNIST" and rows is None and machine in ALL_ROWS and solver == "auto":
            error = 100 - run.accuracy
            text = f"{text}: error {MNIST_ERROR} ± {MNIST_WITHIN}%"
            report.claim(text, abs(error - MNIST_ERROR) <= MNIST_WITHIN, f"{error:.2f}")


def check_image_seg(report: Report, machine: str, run: Outcome) -> None:
    """Two primal values, each at most its gap above the optimum, differ by no more than the larger gap."""
    known, error = IMAGE_SEG[machine], 100 - run.accuracy
    text = f"ImageSeg, {machine}: error {known.error} ± {known.within}%"
    report.claim(text, abs(error - known.error) <= known.within, f"{error:.2f}")
    within = max(known.gap * known.primal, run.gap) + known.printed
    off = run.primal - known.primal
    text = f"ImageSeg, {machine}: primal {known.primal} ± {within:.3f}"
    report.claim(text, abs(off) <= within, f"{run.primal:.3f} ({off:+.3f})")


def runs(args) -> list[tuple[str, int | None, list[str]]]:
    """(data, training rows, machines) of every fit; with --full MNIST's rows depend on the machine."""
    chosen = []
    for name in args.data:
        left_out = () if args.full or args.machines else LONG.get(name, ())
        machines = [m for m in args.machines or MACHINES if m not in left_out]
        every = [m for m in machines if name == "MNIST" and args.full and (m in ALL_ROWS or args.all_rows)]
        rest = [m for m in machines if m not in every]
        chosen += [(name, rows, part) for rows, part in ((None, every), (ROWS.get(name), rest)) if part]
    return chosen


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--data", nargs="+", choices=MSVMPACK, default=tuple(MSVMPACK))
    parser.add_argument("--machines", nargs="+", choices=MACHINES, help="these only, even if they are slow")
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="these only")
    parser.add_argument("--limit", type=float, help="seconds for a fit (1200; short form: 40)")
    parser.add_argument("--method-limit", type=float, help="the same for msvmpack (120; short form: 4)")
    parser.add_argument("--all-rows", action="store_true", help="with --full: 60,000 rows for all machines")
    args = parser.parse_args()
    args.limit = args.limit or (1200.0 if args.full else 40.0)
    args.method_limit = args.method_limit or (120.0 if args.full else 4.0)
    report = Report("msvmpack_table2", args)
    heads = (
        "data",
        "machine",
        "method",
        "error",
        "theirs",
        "other",
        "SVs",
        "theirs",
        "other",
        "sec.",
        "theirs",
    )
    widths = (13, 15, 8, 6, 6, 6, 6, 6, 6, 8, 9, 9, 8, 8)
    table = Table((*heads, "primal", "gap / P", "ψ"), widths)
    found = []
    for name, rows, machines in runs(args):
        outcomes = measure(report, load(name, rows, TEST_ROWS.get(name)), machines, args)
        print_rows(table, name, rows, outcomes)
        for (machine, solver), outcome in outcomes.items():
            kept = {"data": name, "rows": rows, "machine": machine, "solver": solver, **asdict(outcome)}
            report.keep("rows", kept)
        found.append((name, rows, outcomes))
    print(
        "\n'other' is BSVM for Weston-Watkins (its bias is regularised), MCSVM for Crammer-Singer\n\nclaims"
    )
    for name, rows, outcomes in found:
        check(report, name, rows, outcomes, args)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
