"""Seconds to the same relative duality gap: our LinearSVC against LIBLINEAR's (C = 1, no intercept).

Two machines: crammer-singer against LIBLINEAR's -s 4, and one-vs-rest with the squared hinge against
scikit-learn's LinearSVC, whose default that is.

Ours stops at the gap it is asked for (gap_tol). LIBLINEAR stops by a rule of its own, so for each gap it gets
its best tolerance: the loosest rung of a ladder (1, 0.5, 0.2, 0.1, … 1e-5) whose model meets the gap, or the
next if that took less CPU (not tried in the short form). The chosen settings then take turns and the best
time counts; everyone is in a process of its own, warmed up, with the data loaded. LIBLINEAR draws another
order in every fit: if the last of its fits just misses the gap, its time stands.

Models are judged here, in float64. Ours is held to the certified gap (P - D) / P from its own dual point.
LIBLINEAR returns weights only: it is held to (P - D*) / D*, with D* the largest dual value known, from a
tight run of ours. That is the easier one (no dual point to be close as well); ours is printed beside it.

LIBLINEAR is liblinear-official in its own environment (make peers); without it scikit-learn's LinearSVC takes
its place, which is the same code with a copy of the data inside its time.

The short form runs some problems at some gaps, --full all of them, and more rungs for the plot: gap against
seconds, one panel per problem as in Blondel et al.'s Figure 1. Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.arena import Arena, Limits, Result, View
from benchmarks.lib.bars import check_ratio, said, seconds
from benchmarks.lib.contenders import LIBLINEAR, LINEAR, LINEAR_OVR, ONE, SAME_CODE, TWO
from benchmarks.lib.linear_data import training_part
from benchmarks.lib.plot import draw_panels
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.scoring import primal

C = 1.0
RUNGS = (1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5)
NO_TOL = 1e-5  # of ours: its own stop rule does not come before the gap
OVR, OVR_TITLE = "squared-one-vs-rest", "one-vs-rest, squared hinge"
OVR_STARTS = {1e-3: 0.1, 1e-4: 0.01}
THREADS_BAR = 1.5  # how many times faster two threads are


@dataclass(frozen=True)
class Entry:
    """A problem: ``bars`` are gap -> how many times faster ours has to be."""

    data: str
    bars: dict[float, float]
    starts: dict[float, float]  # gap -> rung at which the search for LIBLINEAR's best begins
    short: tuple[float, ...] = ()  # gaps of the short form
    named: tuple[float, ...] = (1e-3, 1e-4)  # gaps that are asked for by name
    reference: float = 0.1  # times the tightest gap: what the run that finds the optimum is asked for
    machine: str = "crammer-singer"

    @property
    def title(self) -> str:
        """The data, and the machine unless it is crammer-singer."""
        return self.data if self.machine == "crammer-singer" else f"{self.data}, {OVR_TITLE}"


SUITE = (
    Entry("sector_scale", {1e-3: 8, 1e-4: 8}, {1e-3: 0.02, 1e-4: 5e-3}, short=(1e-3,)),
    Entry("news20_bydate", {1e-3: 4, 1e-4: 4}, {1e-3: 0.02, 1e-4: 0.01}, short=(1e-4,)),
    Entry("news20_libsvm_train", {1e-3: 2.5, 1e-4: 4}, {1e-3: 0.05, 1e-4: 5e-3}),
    Entry(
        "letter",
        {1e-3: 2, 1e-4: 2},
        {1e-3: 0.1, 1e-4: 0.02},
        short=(1e-4,),
    ),
    Entry(
        "mnist",
        {1e-3: 3, 1e-4: 3},
        {1e-3: 0.02, 1e-4: 5e-3},
        named=(1e-3,),
        reference=0.5,
    ),
    *(
        Entry(name, {1e-3: 2, 1e-4: 2}, OVR_STARTS, short=(1e-4,), machine=OVR)
        for name in ("sector_scale", "news20_bydate", "news20_libsvm_train", "letter")
    ),
)


def first_that_meets(error_at: Callable[[float], float | None], gap: float, start: float) -> float | None:
    """The first rung from ``start`` on that meets ``gap``, None if none does.

    ``error_at`` a rung is None if the contender could not be judged there: it was too slow.
    """
    for rung in RUNGS[RUNGS.index(start) :]:
        error = error_at(rung)
        if error is None:
            return None
        if error <= gap:
            return rung
    return None


def loosest(error_at: Callable[[float], float | None], gap: float, start: float) -> float | None:
    """The loosest rung that meets ``gap``, looked for on both sides of ``start``; None if none does."""
    rung = first_that_meets(error_at, gap, start)
    while rung == start and rung != RUNGS[0]:
        start = RUNGS[RUNGS.index(rung) - 1]
        rung = first_that_meets(error_at, gap, start)
    return rung


@dataclass
class Run:
    """One contender at one rung."""

    seconds: float | None
    cpu: float | None
    gap: float | None  # certified, (P - D) / P; None of weights
    error: float | None  # (P - D*) / D*
    absent: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def judged(self) -> float | None:
        """What the contender is held to."""
        return self.error if self.gap is None else self.gap


def settings(name: str, rung: float) -> dict[str, float]:
    """Parameters of a contender at a rung: a gap for ours, else a tolerance."""
    return {"tol": NO_TOL, "gap_tol": rung} if name in (ONE, TWO) else {"tol": rung}


class Ring:
    """An arena around one problem, the optimum as far as it is known, and the runs so far."""

    def __init__(self, arena: Arena, cap: float | None, machine: str = "crammer-singer") -> None:
        self.arena, self.limits, self.machine = arena, Limits(repeats=1, cap=cap), machine
        self.split = arena.views["scaled"].split
        self.best_dual = -np.inf
        self.runs: dict[str, dict[float, Run]] = {name: {} for name in arena.contenders}

    def reference(self, gap: float) -> Run:
        """A tight run of ours, whose dual value everyone's error is taken from."""
        result = self.arena.measure(C, Limits(repeats=1), {ONE: settings(ONE, gap)})[ONE]
        if result.judgement is None:
            raise SystemExit(f"no reference: {result.absent or result.infeasible}")
        self.best_dual = -result.judgement.dual
        return self.judge(result)

    def judge(self, result: Result) -> Run:
        """The last model of a result in float64."""
        found = result.judgement
        if found is not None:
            gap, value = found.gap / found.primal, found.primal
            self.best_dual = max(self.best_dual, -found.dual)
        elif result.weights is not None:
            gap, value = None, primal(result.weights, self.split, C, self.machine)
        else:
            return Run(None, None, None, None, result.absent or result.infeasible)
        error = (value - self.best_dual) / self.best_dual
        return Run(result.best, min(result.cpu, default=None), gap, error, None, result.facts)

    def run(self, name: str, tol: float) -> Run:
        """One fit, or the one before with that tolerance."""
        if tol not in self.runs[name]:
            result = self.arena.measure(C, self.limits, {name: settings(name, tol)})[name]
            run = self.runs[name][tol] = self.judge(result)
            found = run.absent or f"{seconds(run.seconds)} s, {run.judged:.2e}"
            print(f"  {name}, tol {tol:g}: {found}", flush=True)
        return self.runs[name][tol]

    def choose(self, name: str, gap: float, start: float, *, try_next: bool) -> float | None:
        """The loosest rung that meets the gap, or the next if it does with less CPU (order is luck, too)."""
        rung = loosest(lambda tol: self.run(name, tol).judged, gap, start)
        if rung is None or rung == RUNGS[-1] or not try_next:
            return rung
        tighter = RUNGS[RUNGS.index(rung) + 1]
        run, other = self.run(name, rung), self.run(name, tighter)
        less = other.cpu is not None and other.cpu < run.cpu
        return tighter if less and other.judged <= gap else rung


def contenders(machine: str) -> dict[str, Any]:
    """Ours and LIBLINEAR, or what stands for it."""
    if machine == OVR:
        return dict(LINEAR_OVR)
    chosen, reason = dict(LINEAR), LINEAR[LIBLINEAR].missing()
    if reason is not None:
        print(f"LIBLINEAR: {reason}; {SAME_CODE.name} takes its place, which is the same code")
        del chosen[LIBLINEAR]
        chosen[SAME_CODE.name] = SAME_CODE
    return chosen


def search(ring: Ring, entry: Entry, gap: float, args) -> dict[str, float]:
    """The tolerance of everyone who can meet the gap; with --full all looser rungs are run too."""
    tols: dict[str, float] = {}
    for name in ring.arena.contenders:
        if name in (ONE, TWO):
            tol = gap if (ring.run(name, gap).judged or math.inf) <= gap else None
        else:
            tol = ring.choose(name, gap, entry.starts[gap], try_next=not args.short)
        if tol is None:
            reasons = [run.absent for run in ring.runs[name].values() if run.absent]
            print(f"  {name} does not meet {gap:g}: {ring.arena.absent.get(name) or reasons}")
            continue
        tols[name] = tol
        for rung in RUNGS[1 : RUNGS.index(tol)] if args.full else ():
            ring.run(name, rung)
    return tols


def race(ring: Ring, entry: Entry, gap: float, tols: dict[str, float], report: Report, args) -> None:
    """The chosen settings, taking turns; bars."""
    limits = Limits(args.repeats, args.patience, args.cap, at_least=2.0)
    results = ring.arena.measure(C, limits, {name: settings(name, tol) for name, tol in tols.items()})
    table = Table(
        (f"{entry.title} to {gap:g}", "tol", "sec.", "median", "CPU", "gap", "P error", "passes", "updates"),
        (32, 7, 8, 8, 8, 9, 9, 7, 10),
    )
    for name in ring.arena.contenders:
        if name not in results:
            results[name] = Result(name, absent=f"does not meet {gap:g}", slower_than=args.cap)
            continue
        result, run = results[name], ring.judge(results[name])
        table.row(
            name,
            f"{tols[name]:g}",
            said(result),
            seconds(result.median),
            seconds(min(result.cpu, default=None)),
            "" if run.gap is None else f"{run.gap:.2e}",
            "" if run.error is None else f"{run.error:.2e}",
            *(run.facts.get(key, "") for key in ("rounds", "updates")),
        )
        report.keep(
            "results",
            {
                "data": entry.data,
                "machine": entry.machine,
                "target": gap,
                "tol": tols[name],
                "gap": run.gap,
                "error": run.error,
                **result.record(),
            },
        )
        if run.judged is not None and name in (ONE, TWO):
            text = f"{entry.title}: {name} is within {gap:g}, recomputed in float64"
            report.claim(text, run.judged <= gap, f"{run.judged:.2e}")
    text = f"{entry.title} to {gap:g}"
    peer = next(result for name, result in results.items() if name not in (ONE, TWO))
    check_ratio(report, f"{text}, one thread", results[ONE], peer, 1 / entry.bars[gap])
    if TWO in results:
        check_ratio(report, f"{text}, two threads", results[TWO], results[ONE], 1 / THREADS_BAR)


def measure(entry: Entry, gaps: tuple[float, ...], report: Report, args) -> dict[str, tuple[list, list]]:
    """One problem at some gaps; the curves of its plot."""
    split = training_part(entry.data, args.rows).astype(args.dtype)
    print(f"\n{entry.title}: {split.n:,} rows, {split.X_train.shape[1]:,} features")
    with Arena({"scaled": View(split, None)}, contenders(entry.machine).values(), threads=2) as arena:
        ring = Ring(arena, args.cap, entry.machine)
        reference = ring.reference(entry.reference * min(gaps))
        print(f"  the optimum is known to {reference.gap:.1e} (a certified run of ours)")
        for gap in gaps:
            race(ring, entry, gap, search(ring, entry, gap, args), report, args)
    curves: dict[str, tuple[list, list]] = {}
    for name, runs in ring.runs.items():
        points = sorted((run.seconds, run.judged, tol) for tol, run in runs.items() if run.seconds)
        report.keep("curves", {"data": entry.title, "contender": name, "seconds_judged_tol": points})
        kind = "certified gap" if name in (ONE, TWO) else "primal error"
        curves[f"{name}, {kind}"] = [point[0] for point in points], [point[1] for point in points]
    return curves


def main() -> int:
    parser = options(__doc__, repeats=3)
    names = sorted({entry.data for entry in SUITE})
    parser.add_argument("--data", nargs="+", choices=names, help="these problems only, at both gaps")
    parser.add_argument("--machine", choices=("crammer-singer", OVR), help="this machine only")
    parser.add_argument("--gaps", nargs="+", type=float, choices=(1e-3, 1e-4), help="these gaps only")
    parser.add_argument("--rows", type=int, help="the first rows only")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float64", help="of the data")
    parser.add_argument("--cap", type=float, help="seconds after which a fit is stopped (short form: 20)")
    parser.add_argument("--patience", type=float, default=20.0, help="who is slower is timed once")
    args = parser.parse_args()
    args.short = not (args.full or args.data)
    if args.short:
        args.cap, args.repeats = args.cap or 20.0, min(args.repeats, 2)
    report = Report("linear", args, words=("PASS", "MISS"))
    panels = {}
    for entry in SUITE:
        if (args.data and entry.data not in args.data) or args.machine not in (None, entry.machine):
            continue
        gaps = tuple(entry.bars) if args.full else entry.named if args.data else entry.short
        gaps = tuple(gap for gap in gaps if not args.gaps or gap in args.gaps)
        if gaps:
            panels[entry.title] = measure(entry, gaps, report, args)
    draw_panels(report, "linear_gap", panels, "seconds", "relative gap", log="xy")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
