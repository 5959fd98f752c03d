"""Serafini, Zanghirati & Zanni's Tables 1 to 5: the binary machine by VPM and VPDT, beside their figures.

Tables 1 and 2: the whole problem as one block, by their variable projection method and by an interior point
method (theirs is pr_LOQO). mnist: the first N/2 eights and nines, raw pixels, C = 10, σ = 1800; adult: a1a,
a2a and a3a, C = 1, σ² = 10. "solver" is the seconds in the inner solver, "sec." those of the whole fit.

Tables 3 to 5: by blocks of N_sp rows of which N_c are new, with a cache of so many MB. mnist: digit 8 against
the rest, the first 5,000 eights and 35,000 others, and all 60,000; adult: a8a and a9a (theirs have one row
more; a7a is not here).

Theirs ran on an Alpha at 667 MHz. Models are judged here, in float64, to tol = 1e-3, which is what they
stopped at. As in their tables, SV counts the bounded ones (BSV) too.

Claims checked; exit status 1 if one does not hold:
- every model is optimal to 1e-3, with the SVs and BSVs that they print ± 1%;
- one block: VPM is faster at every size, and the more so at the largest than at the smallest;
- VPDT takes at most 100 iterations.

The short form has Tables 1 and 2 and a few rows of the others (some minutes), --full has all (half an hour).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from multimargin import Decomposition, KernelSVC
from multimargin.inner import InnerSolver
from multimargin.inner.box_interior_point import BoxInteriorPoint
from multimargin.inner.variable_projection import VariableProjection
from multimargin.methods import METHODS
from multimargin.working_set import SvmLight

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.binary_data import adult, eights, eights_and_nines
from benchmarks.lib.data import Problem
from benchmarks.lib.printed import DECOMPOSED, ONE_BLOCK, Blocks, Solved
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.scoring import Outcome, compete

TOL = 1e-3
MOST_ITERATIONS = 100  # of VPDT
WITHIN = 0.01  # of their SVs and BSVs
COUNTS = ("SV", "theirs", "BSV", "theirs")
ONE_BLOCK_HEADS = ("inner", "N", "iter.", "theirs", "sec.", "solver", "theirs", *COUNTS)
SIZES = ("N_sp", "N_c", "inner", "MB")
BLOCKS_HEADS = ("data", "method", *SIZES, "iter.", "theirs", "sec.", "theirs", *COUNTS, "rows")
INNER: dict[str, InnerSolver] = {"interior-point": BoxInteriorPoint(), "vpm": VariableProjection()}
ADULT = {1605: "a1a", 2265: "a2a", 3185: "a3a"}
SMALL: dict[str, Callable[[int], Problem]] = {
    "mnist": eights_and_nines,
    "adult": lambda n: adult(ADULT[n], test_rows=2),
}
LARGE: dict[str, Callable[[], Problem]] = {
    "mnist 40,000": lambda: eights(40_000, test_rows=2),
    "mnist 60,000": lambda: eights(60_000, test_rows=2),
    "a8a": lambda: adult("a8a", test_rows=2),
    "a9a": lambda: adult("a9a", test_rows=2),
}
SHORT = {  # rows of Tables 3 to 5 without --full
    "mnist 40,000": [
        Blocks("vpdt", 2600, 1000, "vpm", 350),
        Blocks("vpdt", 3000, 1200, "vpm", 350),
    ],
    "mnist 60,000": [Blocks("vpdt", 3100, 1200, "vpm", 50), Blocks("vpdt", 3100, 1200, "vpm", 450)],
    "a8a": [Blocks("svm-light", 20, 10, "interior-point", 150), Blocks("vpdt", 900, 500, "vpm", 150)],
    "a9a": [Blocks("vpdt", 1300, 850, "vpm", 150)],
}


def run(problem: Problem, model: KernelSVC, repeats: int) -> Outcome:
    (found,) = compete({"": model}, problem.splits[0], repeats, problem.C, problem.gamma).values()
    return found


def machine(problem: Problem, solver: Decomposition, args, **settings) -> KernelSVC:
    return KernelSVC(
        "c-svc",
        C=problem.C,
        gamma=problem.gamma,
        tol=TOL,
        solver=solver,
        time_limit=args.limit,
        n_threads=args.threads,
        **settings,
    )


# -- Tables 1 and 2 --------------------------------------------------------------------------------------
def one_block(inner: InnerSolver, n: int) -> Decomposition:
    """Everyone in the working set, solved to what the stop rule asks for."""
    return Decomposition(SvmLight(n_sp=n, n_c=n), inner, inner_floor=0.9)


def tables_1_and_2(report: Report, args) -> None:
    for data, sizes in ONE_BLOCK.items():
        print(f"\nTable {1 + (data == 'adult')}: {data} as one block")
        table = Table(ONE_BLOCK_HEADS, (15, 5, 6, 6, 8, 8, 8, 6, 6, 6, 6))
        found: dict[int, dict[str, Outcome]] = {}
        for n, printed in sizes.items():
            problem = SMALL[data](n)
            found[n] = {}
            for name, theirs in printed.items():
                model = machine(problem, one_block(INNER[name], problem.splits[0].n), args)
                outcome = found[n][name] = run(problem, model, args.repeats)
                table.row(
                    name,
                    n,
                    outcome.steps,
                    theirs.iterations,
                    f"{outcome.seconds:.3f}",
                    f"{outcome.inner_seconds:.3f}",
                    theirs.seconds,
                    *both_counts(outcome, theirs),
                )
                report.keep("one block", {"data": data, "rows": n, "solver": name, **asdict(outcome)})
        for n, runs in found.items():
            for name, outcome in runs.items():
                check_model(report, f"{data} {n}, {name}", outcome, sizes[n][name])
        check_speed(report, data, found)


def check_speed(report: Report, data: str, found: dict[int, dict[str, Outcome]]) -> None:
    """By the seconds in the solver, the rest being the same for both."""
    ratios = {
        n: runs["interior-point"].inner_seconds / runs["vpm"].inner_seconds for n, runs in found.items()
    }
    for n, ratio in ratios.items():
        report.claim(f"{data} {n}: VPM is faster than the interior point", ratio > 1, f"{ratio:.1f} times")
    theirs = {n: row["interior-point"].seconds / row["vpm"].seconds for n, row in ONE_BLOCK[data].items()}
    least, most = min(ratios), max(ratios)
    both = f"theirs {theirs[least]:.1f} and {theirs[most]:.1f}"
    report.claim(
        f"{data}: the more so at {most:,} than at {least:,} rows",
        ratios[most] > ratios[least],
        f"{ratios[least]:.1f} and {ratios[most]:.1f} times ({both})",
    )


# -- Tables 3 to 5 ---------------------------------------------------------------------------------------
def by_blocks(blocks: Blocks) -> Decomposition:
    """The named method with these sizes and that inner solver."""
    return replace(
        METHODS[blocks.method],
        working_set=SvmLight(n_sp=blocks.n_sp, n_c=blocks.n_c),
        inner=INNER[blocks.inner],
    )


def tables_3_to_5(report: Report, args) -> None:
    print("\nTables 3 to 5: by blocks")
    table = Table(BLOCKS_HEADS, (12, 9, 5, 5, 14, 4, 6, 6, 8, 8, 6, 6, 6, 6, 8))
    found: list[tuple[str, Blocks, Outcome]] = []
    for data in args.data:
        problem = LARGE[data]()
        for blocks in DECOMPOSED[data] if args.full else SHORT[data]:
            theirs = DECOMPOSED[data][blocks]
            outcome = run(
                problem,
                machine(problem, by_blocks(blocks), args, cache_size=float(blocks.cache)),
                args.repeats,
            )
            table.row(
                data,
                *blocks,
                outcome.iterations,
                theirs.iterations,
                f"{outcome.seconds:.2f}",
                theirs.seconds,
                *both_counts(outcome, theirs),
                outcome.rows,
            )
            found.append((data, blocks, outcome))
            report.keep("by blocks", {"data": data, **blocks._asdict(), **asdict(outcome)})
    for data, blocks, outcome in found:
        text = f"{data}, {blocks.method} {blocks.n_sp}/{blocks.n_c}, {blocks.inner}, {blocks.cache} MB"
        check_model(report, text, outcome, DECOMPOSED[data][blocks], args.limit)
        if blocks.method == "vpdt":
            few = f"{text}: at most {MOST_ITERATIONS} iterations"
            report.claim(few, outcome.iterations <= MOST_ITERATIONS, str(outcome.iterations))


def both_counts(outcome: Outcome, theirs: Solved) -> tuple[int, int, int, int]:
    return outcome.support, theirs.support, outcome.bounded, theirs.bounded


def check_model(
    report: Report, text: str, outcome: Outcome, theirs: Solved, limit: float | None = None
) -> None:
    """Optimal, and with as many (bounded) support vectors as they have; a run cut short cannot tell."""
    limited = limit is not None and not outcome.converged and outcome.seconds >= limit
    numbers = f"violation {outcome.psi:.1e}, gap {outcome.gap / outcome.primal:.1e}"
    held = None if limited else outcome.converged and outcome.certified(TOL)
    report.claim(f"{text}: optimal to {TOL:g}", held, numbers)
    for what, ours, printed in (
        ("SV", outcome.support, theirs.support),
        ("BSV", outcome.bounded, theirs.bounded),
    ):
        near = None if limited else abs(ours - printed) <= WITHIN * printed
        report.claim(f"{text}: {printed:,} {what} ± {WITHIN:.0%}", near, f"{ours:,}")


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--data", nargs="+", choices=LARGE, default=tuple(LARGE), help="of Tables 3 to 5")
    parser.add_argument("--tables", nargs="+", choices=("1-2", "3-5"), default=("1-2", "3-5"))
    parser.add_argument("--limit", type=float, help="seconds for a fit (none; short form: 60)")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.limit = args.limit or (None if args.full else 60.0)
    report = Report("vpdt_tables", args)
    if "1-2" in args.tables:
        tables_1_and_2(report, args)
    if "3-5" in args.tables:
        tables_3_to_5(report, args)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
