"""Compare two versions of the package: the same answers by the same steps, in the same time.

    python benchmarks/checks/regression.py                  # commit 1067630 against what this Python imports
    python benchmarks/checks/regression.py BASE HEAD        # two commits
    python benchmarks/checks/regression.py --counts         # one fit each, no times: for every day
    python benchmarks/checks/regression.py --base-python P  # P is a Python that has BASE installed

A commit is built once, in an environment of its own (in ``regression`` of this environment's folder, with
this environment's NumPy, SciPy and scikit-learn). Without HEAD the package that this Python imports is
judged; nothing is built for it.

Problems: letter, usps, satimage, isolet and 10,000 rows of mnist by Crammer-Singer's, Weston-Watkins' and the
one-vs-rest machine, and by the binary machine with the largest class (mnist: digit 8) against the rest.
Parameters are those of the other benchmarks. --full adds all other datasets. Without data only
scikit-learn's digits are left.

Bars, for every problem, machine and number of threads:

- the dual objectives agree to 1e-9, relative to their size;
- rounds, updates (steps of all inner solvers), kernel rows and support vectors are equal;
- HEAD converged if BASE did;
- the best time is at most 1.03 of BASE's. Both take turns in fresh pairs of processes; a time that misses
  gets more pairs before it is called a miss. CPU seconds are printed beside it: of one thread they depend
  less on what else the machine does;
- the instructions of a fit to 1,000 of the rows, one thread, are at most 1.03 of BASE's. They are counted
  by perf if the machine has counters, else by valgrind's callgrind.

Exit status 1 if answers or counts differ; with --strict also if times or instructions miss their bar.
"""

from __future__ import annotations

import sys
from argparse import BooleanOptionalAction, Namespace
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.arena import Arena, Limits, Result, View
from benchmarks.lib.bars import seconds
from benchmarks.lib.binary_data import BINARY_SUITE, BinaryEntry, eights, largest_against_rest
from benchmarks.lib.commits import commit_of, installed
from benchmarks.lib.contenders import C_SVC, MACHINES, Contender
from benchmarks.lib.data import FOLDER, load_digits_problem
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.suite import SUITE, Entry
from benchmarks.workers.instructions import count_events, missing_callgrind

BASE = "1067630"
HERE = "this Python's"
COUNTS = ("rounds", "updates", "rows", "support")
DUAL_WITHIN, TIME_BAR = 1e-9, 1.03
TEST_ROWS = 2  # nothing is predicted
FEW_ROWS = 1000  # of the fits whose instructions are counted
MORE_PAIRS = 3  # times as many pairs of processes before a time is called a miss
SHORT = ("letter", "usps", "satimage", "isolet", "mnist 10,000")
BINARY = {
    f"{name}, one class": name
    for name in ("letter", "usps", "satimage", "isolet", "shuttle", "shuttle-scaled")
}
DEFAULT_MACHINES = ("crammer-singer", "weston-watkins", "one-vs-rest", C_SVC.name)
ALL_MACHINES = {**MACHINES, C_SVC.name: C_SVC}
EIGHTS = BinaryEntry("mnist 10,000", lambda test_rows: eights(10_000, test_rows), {}, np.float32)


# -- problems --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Case:
    """One problem: data with the labels and parameters that the machines named get."""

    data: str
    C: float
    view: View
    machines: tuple[str, ...]

    def few_rows(self, rows: int) -> Case:
        """The same with so many rows, evenly spaced: some files are sorted by class."""
        split = self.view.split
        picked = np.linspace(0, split.n - 1, min(rows, split.n)).astype(int)
        few = split._replace(X_train=split.X_train[picked], y_train=split.y_train[picked])
        return replace(self, view=self.view._replace(split=few))


def entries() -> dict[str, list[Entry | BinaryEntry]]:
    """By the dataset's name: the entry of all classes, the one of two, or both."""
    found: dict[str, list[Entry | BinaryEntry]] = {entry.name: [entry] for entry in SUITE}
    found[EIGHTS.name].append(EIGHTS)
    for entry in BINARY_SUITE:
        found.setdefault(BINARY.get(entry.name, entry.name), []).append(entry)
    return found


def cases(names: list[str], machines: list[str]) -> Iterator[Case]:
    """The problems of these datasets that the machines can solve; what has no file here is left out."""
    multiclass = tuple(name for name in machines if name != C_SVC.name)
    for name in names:
        if name == "digits":
            yield from digits_cases(load_digits_problem(), multiclass, C_SVC.name in machines)
            continue
        for entry in entries()[name]:
            own = multiclass if isinstance(entry, Entry) else (C_SVC.name,) * (C_SVC.name in machines)
            if own and (found := loaded(entry)):
                yield Case(name, *found, own)


def loaded(entry: Entry | BinaryEntry) -> tuple[float, View] | None:
    """C and the data; None if there is no file, which is printed."""
    try:
        if isinstance(entry, BinaryEntry):
            return entry.view(TEST_ROWS)
        C, views = entry.views(TEST_ROWS)
        return C, views["scaled"]
    except SystemExit:  # what ends other benchmarks
        return None


def digits_cases(problem, multiclass: tuple[str, ...], binary: bool) -> Iterator[Case]:
    if multiclass:
        yield Case("digits", problem.C, View(problem.splits[0], problem.gamma), multiclass)
    if binary:
        two = largest_against_rest(problem)
        yield Case("digits", two.C, View(two.splits[0], two.gamma), (C_SVC.name,))


def chosen_data(args: Namespace) -> list[str]:
    """Those asked for, or the bar's; digits if there is no data here."""
    if args.data:
        return args.data
    if not FOLDER.is_dir():
        print(f"skipped: {', '.join(SHORT)}: no folder {FOLDER} (set MULTIMARGIN_DATA); digits instead")
        return ["digits"]
    return list(entries()) if args.full else list(SHORT)


# -- versions --------------------------------------------------------------------------------------------
def versions(args: Namespace) -> dict[str, Path | None]:
    """Base and head by name, with their Pythons; None is this one."""
    found: dict[str, Path | None] = {}
    for role, commit, python in (
        ("base", args.base, args.base_python),
        ("head", args.head, args.head_python),
    ):
        if python is not None:
            if not python.exists():
                raise SystemExit(f"no Python {python}")
            found[role] = python.absolute()
        elif commit == HERE:
            found[role] = None
        else:
            found[role] = installed(commit_of(commit))
    return found


def contenders(pythons: dict[str, Path | None], machine: str, solver: str) -> list[Contender]:
    ours = ALL_MACHINES[machine]
    given = ours.options | {"solver": solver}
    return [replace(ours, name=role, interpreter=python, options=given) for role, python in pythons.items()]


# -- answers, counts and times ---------------------------------------------------------------------------
@dataclass(frozen=True)
class Pair:
    """What both versions found on one problem."""

    base: Result
    head: Result

    @property
    def absent(self) -> str | None:
        """Why there is nothing to compare, if so."""
        reasons = [f"{role.name}: {role.absent}" for role in (self.base, self.head) if role.absent]
        return "; ".join(reasons) or None

    @property
    def dual_off(self) -> float:
        """Relative difference of the dual objectives."""
        base, head = self.base.facts["dual"], self.head.facts["dual"]
        return abs(head - base) / max(abs(base), abs(head), np.finfo(float).tiny)

    @property
    def different(self) -> list[str]:
        """Counts that are not equal, as text."""
        both = self.base.facts, self.head.facts
        texts = [
            f"{key} {both[0][key]:,} → {both[1][key]:,}" for key in COUNTS if both[0][key] != both[1][key]
        ]
        return texts + ["HEAD did not converge"] * (both[0]["converged"] and not both[1]["converged"])

    @property
    def same(self) -> bool:
        return self.dual_off <= DUAL_WITHIN and not self.different

    def slower(self, kind: str = "seconds") -> float:
        """HEAD's best time by BASE's; kind is "seconds" or "cpu"."""
        return min(getattr(self.head, kind)) / min(getattr(self.base, kind))

    def joined(self, other: Pair) -> Pair:
        """The same with the times of another pair of processes."""
        for mine, more in ((self.base, other.base), (self.head, other.head)):
            mine.seconds.extend(more.seconds)
            mine.cpu.extend(more.cpu)
        return self


def count(case: Case, pythons, threads: int, solver: str) -> dict[str, Pair]:
    """One fit by every machine, in one pair of processes."""
    both = contenders(pythons, case.machines[0], solver)
    with Arena({"scaled": case.view}, both, threads, judged=False) as arena:
        return {name: Pair(**arena.measure(case.C, Limits(1), machine=name)) for name in case.machines}


def timed(case: Case, both: list[Contender], threads: int, args: Namespace) -> Pair:
    """Several pairs of fresh processes, in which fits take turns."""
    pair = None
    for done in range(MORE_PAIRS * args.pairs):
        if pair and (pair.absent or (done >= args.pairs and pair.slower() <= TIME_BAR)):
            break
        limits = Limits(args.repeats, patience=20, at_least=args.at_least)
        with Arena({"scaled": case.view}, both[:: (-1) ** done], threads, judged=False) as arena:
            found = Pair(**arena.measure(case.C, limits))
        pair = pair.joined(found) if pair else found
    return pair


HEADS = ("data, machine, threads", "dual off", *COUNTS, "sec. base", "head", "ratio", "CPU ratio", "")
WIDTHS = (38, 8, 7, 10, 7, 7, 9, 8, 6, 9, 12)


def show(table: Table, name: str, pair: Pair, args: Namespace) -> None:
    counts = [f"{pair.head.facts[key]:,}" for key in COUNTS]
    times = ("", "", "", "")
    if not args.counts:
        best = seconds(pair.base.best), seconds(pair.head.best)
        times = (*best, f"{pair.slower():.3f}", f"{pair.slower('cpu'):.3f}")
    verdict = "PASS" if pair.same else "MISS"
    if not args.counts and pair.slower() > TIME_BAR:
        verdict += ", slower"
    table.row(name, f"{pair.dual_off:.0e}", *counts, *times, verdict)


def compare(report: Report, table: Table, case: Case, pythons, args: Namespace) -> list[tuple[str, Pair]]:
    """Every machine and number of threads on one problem."""
    found = []
    for threads in args.threads:
        counted = count(case, pythons, threads, args.solver) if args.counts else {}
        for machine in case.machines:
            name = f"{case.data}, {machine}, {threads}"
            pair = counted.get(machine) or timed(
                case, contenders(pythons, machine, args.solver), threads, args
            )
            for result in (pair.base, pair.head):
                report.keep("results", {"problem": name, **result.record()})
            if pair.absent:
                table.row(name, *[""] * (len(HEADS) - 2), "not run")
            else:
                show(table, name, pair, args)
            found.append((name, pair))
    return found


# -- instructions ----------------------------------------------------------------------------------------
def count_instructions(report: Report, case: Case, pythons, args: Namespace) -> list[tuple[str, int, int]]:
    """Of a fit to a few rows, one thread, by every machine."""
    callgrind = count_events(lambda: None) is None
    few, found = case.few_rows(FEW_ROWS), []
    both = contenders(pythons, case.machines[0], args.solver)
    with Arena({"scaled": few.view}, both, 1, judged=False, callgrind=callgrind) as arena:
        for machine in case.machines:
            name = f"{case.data}, {machine}"
            if arena.absent:
                print(f"{name}: not counted: {arena.absent}")
                continue
            counts = [arena.instructions(role, few.C, machine=machine) for role in pythons]
            report.keep("instructions", {"problem": name, "base": counts[0], "head": counts[1]})
            found.append((name, *counts))
    return found


def instructions(report: Report, problems: list[Case], pythons, args: Namespace) -> None:
    reason = missing_callgrind() if count_events(lambda: None) is None else None
    text = f"instructions of {FEW_ROWS} rows at most {TIME_BAR} x base's"
    if reason:
        report.claim(text, None, f"perf has no counters here, and {reason}")
        return
    print()
    table = Table((f"{FEW_ROWS} rows, 1 thread", "base, 10⁶", "head, 10⁶", "ratio", ""), (38, 12, 12, 7, 5))
    found = []
    for case in problems:
        for name, base, head in count_instructions(report, case, pythons, args):
            verdict = "PASS" if head <= TIME_BAR * base else "MISS"
            table.row(name, f"{base / 1e6:,.1f}", f"{head / 1e6:,.1f}", f"{head / base:.4f}", verdict)
            found.append((name, head / base))
    bound(report, text, found, args)


# -- bars ------------------------------------------------------------------------------------------------
def bound(report: Report, text: str, ratios: list[tuple[str, float]], args: Namespace) -> None:
    """Claim that no ratio is above the bar; a miss counts with --strict only."""
    if not ratios:
        return
    over = [f"{name} {ratio:.3f}" for name, ratio in ratios if ratio > TIME_BAR]
    largest = max(ratio for _, ratio in ratios)
    mean = np.exp(np.mean(np.log([ratio for _, ratio in ratios])))
    numbers = f"{len(ratios) - len(over)} of {len(ratios)}, mean {mean:.3f}, largest {largest:.3f}"
    if over and not args.strict:
        print(f"  MISS      {text}: {numbers}: {'; '.join(over)}; counts as a failure with --strict")
        report.keep("missed", {"claim": text, "numbers": over})
    else:
        report.claim(text, not over, ": ".join([numbers, *over]))


def check(report: Report, found: list[tuple[str, Pair]], args: Namespace) -> None:
    """The bars over all problems."""
    compared = [(name, pair) for name, pair in found if not pair.absent]
    for name, pair in found:
        if pair.absent:  # a machine that neither version has is no regression
            report.claim(f"{name}: both fit it", None if pair.base.absent else False, pair.absent)
    print()
    off = [f"{name} {pair.dual_off:.1e}" for name, pair in compared if pair.dual_off > DUAL_WITHIN]
    largest = max((pair.dual_off for _, pair in compared), default=0.0)
    numbers = "; ".join(off) or f"{len(compared)} of {len(compared)}, largest difference {largest:.1e}"
    report.claim(f"duals agree to {DUAL_WITHIN:g}", not off, numbers)
    different = [f"{name}: {', '.join(pair.different)}" for name, pair in compared if pair.different]
    numbers = "; ".join(different) or f"{len(compared)} of {len(compared)}"
    report.claim("rounds, updates, kernel rows and support vectors are equal", not different, numbers)
    if not args.counts:
        ratios = [(name, pair.slower()) for name, pair in compared]
        bound(report, f"seconds at most {TIME_BAR} x base's", ratios, args)


def say_versions(found: list[tuple[str, Pair]]) -> None:
    """Where both packages lie; two versions of NumPy would not be expected to agree to the last bit."""
    facts = [pair for _, pair in found if not pair.absent][:1]
    for pair in facts:
        for role in (pair.base, pair.head):
            print(f"{role.name}: {Path(role.facts['package']).parent}, NumPy {role.facts['numpy']}")


def parsed() -> Namespace:
    parser = options(__doc__, repeats=3)
    parser.add_argument(
        "base", metavar="BASE", nargs="?", default=BASE, help=f"commit to compare with ({BASE})"
    )
    parser.add_argument("head", metavar="HEAD", nargs="?", default=HERE, help="commit to judge")
    parser.add_argument("--base-python", type=Path, help="an interpreter that has BASE installed")
    parser.add_argument("--head-python", type=Path, help="an interpreter that has HEAD installed")
    parser.add_argument("--data", nargs="+", choices=["digits", *entries()], help="these problems only")
    parser.add_argument("--machines", nargs="+", choices=ALL_MACHINES, default=DEFAULT_MACHINES)
    parser.add_argument("--solver", default="auto", help="a method's name (auto)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--counts", action="store_true", help="answers and counts only, by one fit each")
    parser.add_argument("--pairs", type=int, default=2, help="pairs of processes for every time (2)")
    parser.add_argument("--at-least", type=float, default=1.0, help="seconds of fits in a pair of processes")
    parser.add_argument("--instructions", action=BooleanOptionalAction, help="count them (not with --counts)")
    parser.add_argument("--strict", action="store_true", help="times and instructions can fail it, too")
    args = parser.parse_args()
    args.instructions = not args.counts if args.instructions is None else args.instructions
    return args


def main() -> int:
    args = parsed()
    report = Report("regression", args, words=("PASS", "MISS"))
    names, pythons = chosen_data(args), versions(args)
    table = Table(HEADS, WIDTHS)
    found = []
    for case in cases(names, args.machines):
        found += compare(report, table, case, pythons, args)
    say_versions(found)
    check(report, found, args)
    if args.instructions:
        instructions(report, list(cases(names, args.machines)), pythons, args)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
