"""The binary machine with a free bias: seconds of a whole fit against scikit-learn's SVC and
scikit-learn-intelex's, which solve the same problem.

Everyone is in a process of its own, warmed up, with the same rows, C, γ and tol = 1e-3 (theirs bounds twice
the violation that ours does), peers with 2 GB of kernel cache. Contenders take turns, the best time counts,
and all models are judged here, in float64: the duals must agree to 1e-4. Bars are for seconds; the ratio of
CPU seconds, of all threads, says more if others use the machine.

- a9a, mnist 8 against the rest (60,000 rows, raw pixels) and connect4, won against the rest (20,000 rows): at
  least 8 times faster than SVC and twice as fast as intelex's;
- letter, A to M against N to Z: twice as fast as SVC;
- one class (the largest) against the rest on every other dataset over 2,000 rows: never slower than SVC.

In the short form a peer is stopped as soon as its bar is held ("below ..."), and its dual then cannot be
compared; a fit of more than --patience seconds is not repeated. Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.arena import Arena, Limits, Result
from benchmarks.lib.bars import check_certified, check_ratio, said, seconds
from benchmarks.lib.binary_data import BINARY_SUITE, BinaryEntry
from benchmarks.lib.contenders import BINARY, C_SVC
from benchmarks.lib.plot import draw_bars
from benchmarks.lib.report import Report, Table, options

DUAL_WITHIN = 1e-4  # relative
ENOUGH = 1.5  # the short form stops a peer after so many times the seconds that hold its bar
SHORT_TEST_ROWS = 2000
HEADS = (
    "contender",
    "sec.",
    "ratio",
    "spread",
    "CPU",
    "ratio",
    "acc.",
    "SVs",
    "BSVs",
    "dual",
    "ψ",
    "gap / P",
)
COUNTS = ("rows", "updates", "rounds")
WIDTHS = (18, 8, 7, 6, 8, 7, 6, 6, 6, 13, 8, 8, 7, 9, 6)


def measure(entry: BinaryEntry, report: Report, args) -> dict[str, Result]:
    """Everyone's result on one problem, printed."""
    C, view = entry.view(None if args.full else SHORT_TEST_ROWS)
    contenders = [BINARY[name] for name in args.contenders]
    share = view.split.y_train.mean()
    print(
        f"\n{entry.name}: {view.split.n:,} rows, {view.split.X_train.shape[1]:,} features, "
        f"{share:.1%} in the class, C = {C:g}, γ = {view.gamma:.3g}"
    )
    with Arena({"scaled": view}, contenders, args.threads) as arena:
        cap = args.cap if args.full else stop_at(arena, C, entry, args)
        limits = Limits(args.repeats, args.patience, cap, at_least=0.5, threads=args.threads)
        results = arena.measure(C, limits)
    table = Table((*HEADS, *COUNTS), WIDTHS)
    for result in results.values():
        table.row(*row(result, results))
        report.keep("results", {"data": entry.name, **result.record()})
    for result in results.values():
        if result.infeasible:
            print(f"  {result.name} could not be judged: {result.infeasible}")
    return results


def stop_at(arena: Arena, C: float, entry: BinaryEntry, args) -> float | None:
    """Seconds after which every peer has held its bar, by one fit of ours."""
    if C_SVC.name not in args.contenders:
        return args.cap
    limits = Limits(1, cap=args.cap, threads=args.threads)
    ours = arena.measure(C, limits, own={C_SVC.name: {}})[C_SVC.name]
    if ours.best is None:
        return args.cap
    enough = round(max(2.0, ENOUGH * ours.best / min(entry.bars.values())), 1)
    return enough if args.cap is None else min(enough, args.cap)


def row(result: Result, results: dict[str, Result]) -> list[str]:
    found, facts = result.judgement, result.facts
    judged = [""] * 6 if found is None else [
        f"{found.accuracy:.2f}",
        str(found.support),
        str(found.bounded),
        f"{found.dual:.4f}",
        f"{found.psi:.1e}",
        f"{found.gap / found.primal:.1e}",
    ]  # fmt: skip
    return [
        result.name,
        said(result),
        times(result.seconds, results, "seconds"),
        "" if result.spread is None else f"{result.spread:.0%}",
        seconds(min(result.cpu, default=None)),
        times(result.cpu, results, "cpu"),
        *judged,
        *(str(facts.get(count, "")) for count in COUNTS),
    ]


def times(values: list[float], results: dict[str, Result], kind: str) -> str:
    """The best of these over our best."""
    ours = getattr(results[C_SVC.name], kind) if C_SVC.name in results else []
    return f"{min(values) / min(ours):.1f} x" if values and ours else ""


def check(report: Report, entry: BinaryEntry, results: dict[str, Result]) -> None:
    """The bars of one problem."""
    ours = results.get(C_SVC.name)
    if ours is None:
        return
    check_certified(report, entry.name, ours)
    for name, peer in results.items():
        if name in entry.bars:
            check_ratio(report, entry.name, ours, peer, entry.bars[name])
        if name != C_SVC.name:
            check_dual(report, entry.name, ours, peer)


def check_dual(report: Report, text: str, ours: Result, peer: Result) -> None:
    text = f"{text}: the dual of {peer.name} to {DUAL_WITHIN:g}"
    if ours.judgement is None or peer.judgement is None:
        why = next(str(r.infeasible or r.absent) for r in (ours, peer) if r.judgement is None)
        report.claim(text, None, why)
        return
    off = (ours.judgement.dual - peer.judgement.dual) / abs(peer.judgement.dual)
    report.claim(text, abs(off) <= DUAL_WITHIN, f"{off:+.1e}")


def main() -> int:
    names = [entry.name for entry in BINARY_SUITE]
    parser = options(__doc__, repeats=3)
    parser.add_argument("--data", nargs="+", choices=names, default=names, help="these problems only")
    parser.add_argument("--contenders", nargs="+", choices=BINARY, default=tuple(BINARY), help="these only")
    parser.add_argument("--cap", type=float, help="seconds for a fit (none; short form: 120)")
    parser.add_argument("--patience", type=float, default=5, help="seconds after which a fit is not repeated")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.cap = args.cap or (None if args.full else 120.0)
    report = Report("binary", args, words=("PASS", "MISS"))
    groups = {}
    for entry in BINARY_SUITE:
        if entry.name in args.data:
            results = measure(entry, report, args)
            check(report, entry, results)
            groups[entry.name] = {result.name: result.best for result in results.values() if result.seconds}
    draw_bars(report, "binary", groups, "seconds")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
