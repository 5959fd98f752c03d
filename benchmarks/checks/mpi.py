"""Several processes (engine="mpi"): the same optimum, the bytes of the model, efficiency and the joint cache.

Optimum: mnist (10,000 rows), letter, connect4 (10,000 rows) and a9a (c-svc by "auto" and by "vpdt"), each by
one process and by 1 to 4 ranks. Models are judged here in float64. Claims: every one certified; gap and dual
as one process has them; accuracy within two test rows.

Bytes: "pdasmc" on mnist. Claims: bytes received per rank and outer iteration are those of the model
(lib/traffic.py) ± 10%; they do not depend on n (5,000, 10,000 and 20,000 rows); Niu & Yuan's Algorithm 6
needs at least 20 times as many, by its formula with the inner iterations that were made, and measured
(scheme="columns"). The largest message of an iteration is as large at 20,000 rows as at 5,000, and the
largest of the whole fit has fewer than n × m numbers.

Efficiency: mnist (20,000 rows, or --rows), "auto" and "pdasmc": one process with one thread against two ranks
with one thread each, taking turns. Claim: T1 / (2 T2) is at least 0.85, by wall seconds and by CPU seconds of
the slower rank. It is made for the first fit of a process, which touches its memory for the first time, and
for later ones.

Joint cache: "pdasmc" with a cache for a third of the support vectors' rows. Claim: two ranks together compute
fewer kernel values than one process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from multimargin.engines import Mpi
from multimargin.methods import METHODS

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.binary_data import against_rest
from benchmarks.lib.data import Problem, load
from benchmarks.lib.ranks import Ranks, TeamFit, mpiexec
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.scoring import Judgement, judge
from benchmarks.lib.traffic import REAL, Iteration, Shape, by_columns, by_rows, iterations_of, row_bytes
from benchmarks.lib.turns import take_turns

TOL = 1e-3
RANKS = (1, 2, 3, 4)
BYTES_OFF = 0.10  # of the model
LESS_THAN_COLUMNS = 20
MORE_GAP, SMALL_GAP = (
    1.25,
    1e-5,
)  # models that meet one tolerance: times the gap, or so much of the primal more
EFFICIENCY = 0.85
FITS, LATER = ("first", "later"), 2  # which fits of a process; how many later ones
SIZES = (5_000, 10_000, 20_000)
CACHED = 1 / 3  # of the support vectors' rows
ITEM = 4  # bytes of a kernel value
RULE = METHODS["pdasmc"].working_set
PARTS = ("optimum", "bytes", "efficiency", "cache")


@dataclass(frozen=True)
class Case:
    name: str
    data: str
    rows: int | None
    machine: str = "crammer-singer"
    solver: str = "auto"


CASES = (
    Case("mnist 10,000", "mnist", 10_000),
    Case("letter", "letter", None),
    Case("connect4 10,000", "connect4", 10_000),
    Case("a9a, c-svc", "a9a", None, "c-svc"),
    Case("a9a, c-svc, vpdt", "a9a", None, "c-svc", "vpdt"),
)


def prepared(name: str, rows: int | None, test_rows: int | None = None) -> Problem:
    """The problem; dense rows in float32, a9a's label 1 against the rest."""
    problem = load(name, rows, test_rows)
    if name == "a9a":
        problem = against_rest(problem, [1])
    splits = tuple(s if issparse(s.X_train) else s.astype(np.float32) for s in problem.splits)
    return Problem(problem.name, problem.C, problem.gamma, splits)


def parameters(problem: Problem, solver: str, **more: Any) -> dict[str, Any]:
    return {"C": problem.C, "gamma": problem.gamma, "tol": TOL, "solver": solver} | more


# -- the same optimum --------------------------------------------------------------------------------------
class Judge:
    """Judges each model once: several numbers of ranks may well give the same one."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self._known = problem, {}

    def __call__(self, fit: TeamFit) -> Judgement:
        model = fit.model
        key = model.support_.tobytes(), model.dual_coef_.tobytes(), np.asarray(model.intercept_).tobytes()
        if key not in self._known:
            problem = self.problem
            self._known[key], _ = judge(model, problem.splits[0], problem.C, problem.gamma)
        return self._known[key]


def optimum(report: Report, names: list[str]) -> None:
    print("\nThe same optimum")
    table = Table(
        ("problem", "ranks", "sec.", "CPU", "rounds", "rows", "SVs", "acc.", "ψ", "dual", "gap / P"),
        (18, 9, 7, 7, 7, 7, 7, 6, 8, 14, 9),
    )
    for case in (case for case in CASES if case.name in names):
        problem = prepared(case.data, case.rows)
        judged, found = Judge(problem), {}
        with Ranks(problem.splits[0]) as ranks:
            for count in (0, *RANKS):  # 0: one process without MPI
                own = {"engine": "cpu"} if count == 0 else {}
                fit = ranks.fit(
                    max(1, count), machine=case.machine, **own, **parameters(problem, case.solver)
                )
                value = found[count] = judged(fit)
                table.row(
                    case.name,
                    count or "process",
                    f"{fit['seconds']:.2f}",
                    f"{fit.most('cpu'):.2f}",
                    fit["iterations"],
                    fit["rows"],
                    value.support,
                    f"{value.accuracy:.2f}",
                    f"{value.psi:.1e}",
                    f"{value.dual:.6f}",
                    f"{value.gap / value.primal:.2e}",
                )
                kept = {"problem": case.name, "ranks": count, "converged": fit["converged"]}
                report.keep("optimum", kept | asdict(value))
        check_optimum(report, case.name, found, len(problem.splits[0].y_test))


def check_optimum(report: Report, name: str, found: dict[int, Judgement], test_rows: int) -> None:
    """Every number of ranks against one process, which has number 0."""
    one, teams = found[0], [found[count] for count in found if count]
    worst = max(value.psi for value in found.values())
    report.claim(
        f"{name}: 1 to {max(found)} ranks optimal to {TOL:g}",
        all(value.certified(TOL) for value in found.values()),
        f"largest violation {worst:.2e}",
    )
    gap = max(value.gap / value.primal for value in teams)
    apart = max(abs(value.dual - one.dual) for value in teams)
    report.claim(
        f"{name}: gap at most {MORE_GAP} x, dual within the gap of one process's",
        gap <= max(MORE_GAP * one.gap / one.primal, one.gap / one.primal + SMALL_GAP)
        and apart <= max(one.gap, *(value.gap for value in teams)),
        f"gap / P {gap:.2e} and {one.gap / one.primal:.2e}, duals {apart / abs(one.dual):.1e} apart",
    )
    rows = max(abs(value.accuracy - one.accuracy) for value in teams) * test_rows / 100
    report.claim(f"{name}: accuracy within 2 test rows", round(rows) <= 2, f"{rows:.0f} of {test_rows:,}")


# -- bytes of an iteration ---------------------------------------------------------------------------------
def shape_of(problem: Problem) -> Shape:
    X = problem.splits[0].X_train
    classes = len(np.unique(problem.splits[0].y_train))
    return Shape(X.shape[0], classes, row_bytes(X, problem.gamma)[0], RULE.n_new)


def mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def bytes_per_iteration(report: Report, sizes: list[int], count: int, columns_rows: int) -> None:
    print(f"\nBytes received per rank in an outer iteration of pdasmc, mnist, {count} ranks")
    table = Table(
        (
            "rows",
            "iter.",
            "mean",
            "model",
            "ratio",
            "most",
            "new rows",
            "without X",
            "largest message",
            "in all",
        ),
        (8, 6, 9, 9, 6, 9, 8, 9, 15, 11),
    )
    found: dict[int, tuple[Shape, list[Iteration]]] = {}
    for n in sizes:
        problem = prepared("mnist", n, 2)
        with Ranks(problem.splits[0]) as ranks:
            fit = ranks.fit(count, **parameters(problem, "pdasmc"))
        shape, its = shape_of(problem), iterations_of(fit["rounds"], RULE.q)
        found[n] = shape, its
        measured, model = mean(it.received for it in its), mean(by_rows(shape, count, it) for it in its)
        table.row(
            f"{n:,}",
            len(its),
            f"{measured:,.0f}",
            f"{model:,.0f}",
            f"{measured / model:.3f}",
            f"{max(it.received for it in its):,.0f}",
            f"{mean(it.fresh for it in its):.1f}",
            f"{without_rows(shape, its):,.0f}",
            f"{max(it.largest for it in its):,.0f}",
            f"{fit['received']:,}",
        )
        report.keep("bytes", {"rows": n, "ranks": count, "mean": measured, "model": model})
        report.claim(
            f"{n:,} rows: bytes of the model ± {BYTES_OFF:.0%}",
            abs(measured / model - 1) <= BYTES_OFF,
            f"{measured:,.0f} and {model:,.0f}",
        )
        check_largest(report, f"{n:,} rows, pdasmc", fit, shape)
    check_independence(report, found)
    columns(report, columns_rows)


def check_largest(report: Report, text: str, fit: TeamFit, shape: Shape) -> None:
    """Of the whole fit: its set-up, its last block and its proof too."""
    largest, all_numbers = fit.most("largest"), REAL * shape.n * shape.m
    report.claim(
        f"{text}: no message of n × m numbers in the whole fit",
        largest < all_numbers,
        f"largest {largest:,} bytes ({fit['largest_verb']}), n × m are {all_numbers:,}",
    )


def without_rows(shape: Shape, its: list[Iteration]) -> float:
    """The mean without rows of X, which every rank sees once."""
    return mean(it.received - it.fresh * shape.row for it in its)


def check_independence(report: Report, found: dict[int, tuple[Shape, list[Iteration]]]) -> None:
    if len(found) < 2:
        return
    names = " / ".join(f"{n:,}" for n in found)
    values = {
        "most bytes of an iteration": [max(it.received for it in its) for _, its in found.values()],
        "mean bytes beside new rows of X": [without_rows(*one) for one in found.values()],
        "largest message": [max(it.largest for it in its) for _, its in found.values()],
    }
    for what, each in values.items():
        report.claim(
            f"{what}: independent of n ({names} rows)",
            max(each) <= (1 + BYTES_OFF) * min(each),
            " / ".join(f"{value:,.0f}" for value in each),
        )


def columns(report: Report, n: int) -> None:
    """Algorithm 6: by its formula on the same iterations, and measured."""
    problem, count = prepared("mnist", n, 2), max(RANKS)
    with Ranks(problem.splits[0]) as ranks:
        ours = ranks.fit(count, **parameters(problem, "pdasmc"))
        engine = Mpi(data="same", scheme="columns")
        theirs = ranks.fit(count, engine=engine, **parameters(problem, "pdasmc"))
    shape, its = shape_of(problem), iterations_of(ours["rounds"], RULE.q)
    mine = mean(it.received for it in its)
    found = {
        "by its formula": mean(by_columns(shape, count, it) for it in its),
        "measured": mean(it.received for it in iterations_of(theirs["rounds"], RULE.q)),
    }
    for how, bytes_ in found.items():
        report.claim(
            f"{n:,} rows, {count} ranks: {LESS_THAN_COLUMNS} times fewer bytes than Algorithm 6, {how}",
            bytes_ >= LESS_THAN_COLUMNS * mine,
            f"{bytes_ / mine:.1f} times ({bytes_:,.0f} and {mine:,.0f} per iteration)",
        )
        report.keep("columns", {"rows": n, "ranks": count, "how": how, "theirs": bytes_, "ours": mine})


# -- efficiency --------------------------------------------------------------------------------------------
TEAMS: dict[str, tuple[int, dict[str, Any]]] = {
    "one process": (1, {"engine": "cpu"}),
    "1 rank": (1, {}),
    "2 ranks": (2, {}),
}


def efficiency(report: Report, n: int, repeats: int) -> None:
    print(f"\nTwo ranks of one thread against one process of one thread, mnist {n:,}")
    heads = (
        "solver",
        "who",
        "fit",
        "wall",
        "CPU",
        "without waits",
        "rounds",
        "rows",
        "largest phases (CPU seconds)",
    )
    table = Table(heads, (8, 11, 6, 7, 7, 13, 6, 7, 76))
    problem = prepared("mnist", n, 2)
    with Ranks(problem.splits[0]) as ranks:
        for solver in ("auto", "pdasmc"):
            fits: dict[str, dict[str, list[TeamFit]]] = {
                which: {name: [] for name in TEAMS} for which in FITS
            }

            def turn(name: str, solver: str = solver, fits: dict = fits) -> float:
                count, own = TEAMS[name]
                first, *later = ranks.fits(count, LATER + 1, **own, **parameters(problem, solver))
                fits["first"][name].append(first)
                fits["later"][name].extend(later)
                return float(first["seconds"])

            take_turns(TEAMS, turn, repeats)
            for which, name in product(FITS, TEAMS):
                made = fits[which][name]
                best = min(made, key=lambda fit: fit.most("cpu"))
                phases = sorted(best["profile"].items(), key=lambda phase: -phase[1])[:5]
                table.row(
                    solver,
                    name,
                    which,
                    f"{min(fit['seconds'] for fit in made):.2f}",
                    f"{best.most('cpu'):.2f}",
                    f"{best.work:.2f}",
                    best["iterations"],
                    best["rows"],
                    ", ".join(f"{phase} {value:.2f}" for phase, value in phases),
                )
            for which, made in fits.items():
                check_efficiency(report, f"mnist {n:,}, {solver}, {which} fit", made)
            check_largest(report, f"{n:,} rows, {solver}", fits["first"]["2 ranks"][0], shape_of(problem))


def check_efficiency(report: Report, text: str, fits: dict[str, list[TeamFit]]) -> None:
    measures = {
        "CPU seconds": lambda fit: fit.most("cpu"),
        "CPU seconds without waits": lambda fit: fit.work,
        "wall seconds": lambda fit: fit["seconds"],
    }
    for what, value in measures.items():
        one, two = (min(map(value, fits[name])) for name in ("one process", "2 ranks"))
        share = one / (2 * two)
        report.claim(
            f"{text}: efficiency of 2 ranks at least {EFFICIENCY}, by {what}",
            share >= EFFICIENCY,
            f"{share:.2f} ({one:.2f} s and {two:.2f} s)",
        )
        report.keep("efficiency", {"run": text, "measure": what, "one": one, "two": two, "share": share})


# -- the joint cache ---------------------------------------------------------------------------------------
def joint_cache(report: Report, n: int) -> None:
    print(f"\nJoint cache, mnist {n:,}, pdasmc")
    problem = prepared("mnist", n, 2)
    heads = ("who", "cached rows", "rounds", "rows", "row values", "block values", "proof values", "in all")
    table = Table(heads, (11, 11, 6, 8, 14, 14, 14, 14))
    totals = {}
    with Ranks(problem.splits[0]) as ranks:
        support = len(ranks.fit(1, engine="cpu", **parameters(problem, "auto")).model.support_)
        cache = support * CACHED * n * ITEM / 1e6
        for name in ("one process", "2 ranks"):
            count, own = TEAMS[name]
            fit = ranks.fit(count, **own, **parameters(problem, "pdasmc", cache_size=cache))
            parts = [int(fit.total(key)) for key in ("row_values", "block_values", "proof_values")]
            totals[name] = sum(parts)
            table.row(
                name,
                fit["info"]["cache_rows"],
                fit["iterations"],
                fit["rows"],
                *(f"{value:,}" for value in (*parts, sum(parts))),
            )
            report.keep("joint cache", {"who": name, "cache_mb": cache, "values": parts})
    one, two = totals["one process"], totals["2 ranks"]
    report.claim(
        f"{cache:.0f} MB of cache each, {support:,} support vectors: two ranks compute fewer kernel values",
        two < one,
        f"{two:,} against {one:,} ({two / one:.2f})",
    )


def main() -> int:
    parser = options(__doc__, repeats=3)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rows", type=int, default=20_000, help="of the efficiency (20,000)")
    parser.add_argument("--cases", nargs="+", choices=[case.name for case in CASES], help="of the optimum")
    args = parser.parse_args()
    report = Report("mpi", args, words=("PASS", "MISS"))
    mpiexec()
    if "optimum" in args.parts:
        optimum(report, args.cases or [case.name for case in CASES])
    if "bytes" in args.parts:
        bytes_per_iteration(report, list(SIZES), 2, 60_000 if args.full else 20_000)
    if "efficiency" in args.parts:
        efficiency(report, args.rows, args.repeats)
    if "cache" in args.parts:
        joint_cache(report, 10_000)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
