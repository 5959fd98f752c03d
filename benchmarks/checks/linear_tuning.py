"""What each number of LinearSVC's Tuning is worth: the same fit with that number smaller and larger.

Each number is tried on one problem that it matters for, with one goal: a relative duality gap or a violation
(C = 1, no intercept, one thread unless the number is about threads). Visits are samples visited over their
number; visits and proofs are the same on every machine. Seconds are the best of the repeats.

    python benchmarks/checks/linear_tuning.py relax late      # these numbers only

Reported, not a bar. No case here shows few_passes (the papers' protocol), parallel_row and most_threads (more
than two cores and 48 classes), nor idle_share, gap_stricter, progress and most_proofs (they matter only after
passes without updates or failed proofs, which are rare).
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from multimargin import LinearSVC
from multimargin.linear.descent import LinearFit
from multimargin.linear.tuning import Tuning

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.linear_data import training_part
from benchmarks.lib.report import Report, Table, options

GAP, FINE_GAP = {"gap_tol": 1e-3, "tol": 1e-5}, {"gap_tol": 1e-4, "tol": 1e-5}
TOL, FINE_TOL = {"tol": 1e-3}, {"tol": 1e-4}


class Case(NamedTuple):
    """A number's other values, and the fit that shows what they do."""

    values: tuple[float, ...]
    data: str
    goal: dict[str, float]
    n_threads: int = 1


CASES = {
    "many_classes": Case((0,), "sector_scale", GAP),
    "single_tol": Case((1.0,), "news20_bydate", FINE_TOL),
    "parallel_work": Case((math.inf,), "sector_scale", GAP, 2),
    "thread_classes": Case((8, 200), "news20_bydate", GAP, 2),
    "threads_share": Case((0.0, 0.99), "sector_scale", FINE_GAP, 2),
    "relax": Case((1.0, 1.6), "sector_scale", GAP),
    "near": Case((1e-9, 3.0), "letter", GAP),
    "settle": Case((0.3, 1.0), "letter", GAP),
    "early_passes": Case((0, 20), "sector_scale", GAP),
    "early": Case((0.0, 0.6), "news20_bydate", TOL),
    "late": Case((0.5, 2.0), "news20_bydate", FINE_GAP),
    "few_updates": Case((0.0, 0.2), "sector_scale", FINE_GAP),
    "least_share": Case((0.01, 0.5), "news20_bydate", TOL),
    "fall": Case((0.01, 0.5), "letter", GAP),
    "most_active": Case((10, 200), "letter", FINE_GAP),
    "aim": Case((0.7, 1.0), "news20_bydate", TOL),
    "stricter": Case((0.5, 0.95), "sector_scale", TOL),
    "gap_aim": Case((0.7, 1.0), "sector_scale", GAP),
    "measure_every": Case((1, 20), "news20_bydate", TOL),
    "left_share": Case((0.3, 1.0), "sector_scale", GAP),
    "left_growth": Case((1.02, 2.0), "letter", FINE_GAP),
    "sample": Case((512, 10**9), "letter", FINE_GAP),
}


def fitted(case: Case, tuning: Tuning, repeats: int) -> tuple[float, int, float]:
    """(Visits over samples, proofs, seconds) of a case."""
    split, proofs, seconds = training_part(case.data), 0, math.inf
    LinearSVC._tuning, prove = tuning, LinearFit.prove

    def counted(fit: LinearFit):
        nonlocal proofs
        proofs += 1
        return prove(fit)

    LinearFit.prove = counted
    try:
        for _ in range(repeats):
            model = LinearSVC(fit_intercept=False, n_threads=case.n_threads, max_iter=-1, **case.goal)
            start = perf_counter()
            model.fit(split.X_train, split.y_train)
            seconds = min(seconds, perf_counter() - start)
    finally:
        LinearSVC._tuning, LinearFit.prove = Tuning(), prove
    return model.trace_["working_set"].sum() / split.n, proofs // repeats, seconds


def main() -> int:
    parser = options(__doc__, repeats=3)
    parser.add_argument("numbers", nargs="*", metavar="number", help=f"of {', '.join(CASES)}; all if none")
    args = parser.parse_args()
    report = Report("linear_tuning", args)
    table = Table(("number", "value", "data", "goal", "visits", "proofs", "sec."), (14, 9, 13, 12, 7, 6, 6))
    for name in args.numbers or CASES:
        case = CASES[name]
        goal = " ".join(f"{key.removesuffix('_tol')} {value:g}" for key, value in list(case.goal.items())[:1])
        for value in sorted({getattr(Tuning(), name), *case.values}):
            visits, proofs, seconds = fitted(case, Tuning(**{name: value}), args.repeats)
            shown = f"{value:g}" + ("" if value in case.values else " *")
            table.row(name, shown, case.data, goal, f"{visits:.1f}", proofs, f"{seconds:.3f}")
            report.keep("results", {"number": name, "value": value, "visits": visits, "seconds": seconds})
    print("* the value in use")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
