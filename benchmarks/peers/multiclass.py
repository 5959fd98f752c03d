"""Seconds of a whole fit against other people's programs and against the floor, on the same data in one run.

Everyone is in a process of its own, warmed up by a small fit, with the same C, γ and tol = 1e-3; contenders
take turns and the best time counts. "stored" is the data as the file has it (uint8 pixels with γ scaled, or
CSR); peers get the dense form, which is the faster for them, and those with a kernel cache 2 GB of it.
Models are judged here: accuracy on the test rows for all; violation, primal, dual and gap in float64 from
the coefficients for the Crammer-Singer machines. A peer that cannot run here is skipped, with a reason.

If there is a bar for first fits, these are measured too: every fit in a fresh process that has imported its
package and loaded the data, and has fitted nothing yet.

"The floor" is one float32 product and exp for every kernel value between the final support vectors and all
training rows, with as many threads, and nothing else (lib/floor.py).

In the short form a peer's fit is stopped at --cap seconds, which can hold a bar ("below ...") but not miss
it; LIBSVM, kernlab and the linear machines stay out if they are slow, and mnist with 60,000 rows needs
--full. Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.arena import Arena, Limits, Result, View, race
from benchmarks.lib.bars import check_certified, check_ratio, said, seconds
from benchmarks.lib.contenders import CONTENDERS, OURS, STORED, SVC, Contender
from benchmarks.lib.floor import Floor
from benchmarks.lib.plot import draw_bars
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.suite import FLOOR, SUITE, Entry

HEADS = ("contender", "machine", "sec.", "median", "spread", "CPU", "pred.", "acc.", "SVs", "ψ", "gap / P")
COUNTS = ("rows", "updates", "rounds")
WIDTHS = (22, 21, 8, 8, 6, 8, 8, 6, 6, 8, 8, 8, 9, 6)
SHORT_TEST_ROWS = 2000


def chosen(
    entry: Entry, n: int, names: list[str] | None, full: bool
) -> tuple[list[Contender], dict[str, str]]:
    """Who takes part, and why the others do not."""
    taking_part, left_out = [], {}
    for contender in CONTENDERS.values():
        if (names and contender.name not in names) or (contender.name == STORED and entry.stored is None):
            continue
        if not full and not names and n > contender.short_rows:
            left_out[contender.name] = f"more than {contender.short_rows:,} rows: --full"
        else:
            taking_part.append(contender)
    return taking_part, left_out


def measure(entry: Entry, report: Report, args) -> dict[str, Result]:
    """Everyone's result on one problem, printed; the floor is one of them."""
    C, views = entry.views(None if args.full else SHORT_TEST_ROWS)
    n = views["scaled"].split.n
    contenders, left_out = chosen(entry, n, args.contenders, args.full)
    limits = Limits(args.repeats, args.patience, args.cap, at_least=1.0, threads=args.threads)
    print(f"\n{entry.name}: {n:,} rows, {views['scaled'].split.X_train.shape[1]} features, C = {C:g}")
    results = race(views, C, contenders, limits)
    ours = next((results[name] for name in (OURS, STORED) if name in results), None)
    if ours is not None and ours.coefficients is not None:
        results[FLOOR] = floor(views["scaled"], ours, args.threads)
    table = Table((*HEADS, *COUNTS), WIDTHS)
    for result in results.values():
        if result.seconds or result.slower_than:
            table.row(*row(result))
        else:
            left_out[result.name] = str(result.absent)
        report.keep("results", {"data": entry.name, **result.record()})
    for name, reason in left_out.items():
        print(f"  skipped {name}: {reason}")
    for result in results.values():
        if result.infeasible:
            print(f"  {result.name} could not be judged: {result.infeasible}")
    return results


def floor(view: View, ours: Result, threads: int) -> Result:
    """Kernel values between the support vectors and all training rows."""
    X = view.split.X_train
    took = Floor(X[ours.coefficients.support_], X, view.gamma, threads).best()
    return Result(FLOOR, [took], facts={"support": len(ours.coefficients.support_)})


def row(result: Result) -> list[str]:
    """A contender's line in the table."""
    found, facts = result.judgement, result.facts
    machine = CONTENDERS[result.name].machine if result.name in CONTENDERS else "product + exp"
    return [
        result.name,
        machine,
        said(result),
        seconds(result.median),
        "" if result.spread is None else f"{result.spread:.0%}",
        seconds(min(result.cpu, default=None)),
        seconds(result.predict_seconds),
        "" if result.accuracy is None else f"{result.accuracy:.2f}",
        str(facts.get("support", "")),
        f"{found.psi:.1e}" if found else "",
        f"{found.gap / found.primal:.1e}" if found else "",
        *(str(facts.get(count, "")) for count in COUNTS),
    ]


def check(report: Report, entry: Entry, results: dict[str, Result]) -> None:
    """The bars of one problem, for the scaled and for the stored data."""
    for name, bars in ((OURS, entry.bars), (STORED, entry.stored)):
        if name not in results:
            continue
        text = entry.name if name == OURS else f"{entry.name}, stored"
        check_certified(report, text, results[name])
        for other, bar in bars.items():
            if other in results:
                check_ratio(report, text, results[name], results[other], bar)
        if results[name].disagreeing is not None:
            report.claim(
                f"{text}: predict gives the labels of its coefficients",
                results[name].disagreeing == 0,
                f"{results[name].disagreeing} test rows differ",
            )


def check_first_fits(report: Report, entry: Entry, args) -> None:
    """The bars of first fits: every fit in a fresh process, which has imported and loaded the data before."""
    C, views = entry.views(SHORT_TEST_ROWS)
    names = [name for name in (OURS, STORED, SVC) if name != STORED or entry.stored is not None]
    limits = Limits(args.repeats, args.patience, args.cap, at_least=0.0, threads=args.threads)
    with Arena(views, [CONTENDERS[name] for name in names], args.threads, cold=True) as arena:
        results = arena.measure(C, limits)
    for name in names[:-1]:
        text = f"{entry.name}, first fit" if name == OURS else f"{entry.name}, stored, first fit"
        check_certified(report, text, results[name])
        check_ratio(report, text, results[name], results[SVC], entry.cold[SVC])
        report.keep("first fits", {"data": entry.name, **results[name].record()})


def main() -> int:
    parser = options(__doc__, repeats=3)
    parser.add_argument(
        "--data", nargs="+", choices=[entry.name for entry in SUITE], help="these problems only"
    )
    parser.add_argument(
        "--contenders", nargs="+", choices=CONTENDERS, help="these only, wherever they are slow"
    )
    parser.add_argument("--cap", type=float, help="seconds for a fit or a prediction (none; short form: 30)")
    parser.add_argument(
        "--patience", type=float, help="seconds after which a fit is not repeated (60; short form: 5)"
    )
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if not args.full:
        args.cap, args.patience = args.cap or 30.0, args.patience or 5.0
    args.patience = args.patience or 60.0
    report = Report("multiclass", args, words=("PASS", "MISS"))
    entries = [e for e in SUITE if (e.name in args.data if args.data else args.full or not e.full)]
    groups = {}
    for entry in entries:
        results = measure(entry, report, args)
        check(report, entry, results)
        if entry.cold is not None and not args.contenders:
            check_first_fits(report, entry, args)
        groups[entry.name] = {result.name: result.best for result in results.values() if result.seconds}
    draw_bars(report, "multiclass", groups, "seconds")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
