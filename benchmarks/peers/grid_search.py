"""A grid of C and γ with five folds: KernelSVCCV against GridSearchCV(SVC), on the same folds.

The papers' grid has C = 2⁻² … 2¹² and γ = 2⁻¹⁰ … 2⁴. The short form takes every fourth value of both, and
2,000 rows of letter; --full takes all 15 x 15 points (satimage, 5,000 rows of letter), 6 x 6 points on 5,000
rows of mnist, and 10 x 10 points on all of letter, without SVC (liquidSVM's grid of one-vs-all machines,
which certifies nothing, took 88 s on two cores). --data takes one of them.

Claims: every fit is certified; the best score is at least SVC's, less a tie; and KernelSVCCV is so many times
as fast as SVC with two processes, with exact dropping and with the 2% drop. It runs with two threads and with
two processes (n_jobs), and the faster one counts; --ways takes one of them, --drops one of the rules.
--over-ours adds GridSearchCV over KernelSVC (claim: KernelSVCCV is 5 times as fast).

--every k fits both peers at every k-th C and every k-th γ only, and takes their seconds per point for those
of the whole grid; --svc seconds score takes what an earlier run has printed. CPU seconds are printed for
whoever runs in this process alone: on a busy machine --threads 1 --ways threads compares those.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from multimargin import KernelSVC, KernelSVCCV

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.data import load, to_unit_range
from benchmarks.lib.report import Report, Table, options


class Grid(NamedTuple):
    """A data set with its rows, the exponents of its grid, and bars: times as fast as SVC."""

    data: str
    rows: int | None
    costs: range
    gammas: range
    exact: float | None  # None if SVC is not asked
    share: float | None  # with the 2% drop


FULL = (
    Grid("satimage", None, range(-2, 13), range(-10, 5), 5.0, 15.0),
    Grid("letter", 5000, range(-2, 13), range(-10, 5), 3.0, 10.0),
    Grid("mnist", 5000, range(-2, 10, 2), range(-9, -3), 20.0, None),
    Grid("letter", None, range(10), range(-5, 5), None, None),
)
SHORT = (
    Grid("satimage", None, range(-2, 13, 4), range(-10, 5, 4), 5.0, 15.0),
    Grid("letter", 2000, range(-2, 13, 4), range(-10, 5, 4), 3.0, 10.0),
)
SHARE = 0.02
OVER_OURS = 5.0


class Spent(NamedTuple):
    """Seconds of a search, and CPU seconds of this process."""

    seconds: float
    cpu: float

    def cells(self, alone: bool, part: float = 1.0) -> tuple[str, str]:
        return f"{self.seconds / part:.2f}", f"{self.cpu / part:.2f}" if alone else ""


def timed(search, X, y):
    begin = time.perf_counter(), time.process_time()
    search.fit(X, y)
    return search, Spent(time.perf_counter() - begin[0], time.process_time() - begin[1])


def unproved(search) -> int:
    """Fits of the search that were not certified."""
    found = search.cv_results_
    fitted = [~np.isnan(found[f"split{k}_fit_time"]) for k in range(search.n_splits_)]
    proved = [found[f"split{k}_converged"] for k in range(search.n_splits_)]
    return int((np.array(fitted) & ~np.array(proved)).sum())


def points(grid: Grid, X) -> tuple[list[float], list[float]]:
    """The costs and the gammas of a grid; of all of letter around "scale", as liquidSVM's."""
    if grid.exact is not None:
        return [2.0**k for k in grid.costs], [2.0**k for k in grid.gammas]
    scale = 1 / (X.shape[1] * X.var())
    return list(np.geomspace(0.1, 1e4, len(grid.costs))), [scale * 2.0**k for k in grid.gammas]


def sample(grid: Grid, X, every: int) -> tuple[dict[str, list[float]], float]:
    """Every k-th C and γ, and which part of the grid that is."""
    Cs, gammas = points(grid, X)
    some = {"C": Cs[::every], "gamma": gammas[::every]}
    return some, len(some["C"]) * len(some["gamma"]) / (len(Cs) * len(gammas))


def over_ours(report: Report, table: Table, grid: Grid, X, y, cv, seconds: float, args) -> None:
    """GridSearchCV over KernelSVC, against the seconds of KernelSVCCV with exact dropping."""
    some, part = sample(grid, X, args.every)
    search = GridSearchCV(KernelSVC(n_threads=args.threads), some, cv=cv, refit=False)
    search, theirs = timed(search, X, y)
    facts = *theirs.cells(True, part), f"{search.best_score_:.4f}", "", ""
    name = "GridSearchCV(KernelSVC)" + ("" if part == 1 else f" x {part:.2f}")
    table.row(grid.data, len(y), "", name, *facts)
    ratio = theirs.seconds / part / seconds
    text = f"{grid.data}: at least {OVER_OURS:g} times as fast as GridSearchCV(KernelSVC)"
    report.claim(text, ratio >= OVER_OURS, f"{ratio:.2f}")


def svc(table: Table, grid: Grid, X, y, cv, args) -> tuple[float, float]:
    """Seconds of GridSearchCV(SVC), and its best score; of some points if not all are asked for."""
    some, part = sample(grid, X, args.every)
    if args.svc is not None:
        return args.svc[0], args.svc[1]
    peer = GridSearchCV(SVC(cache_size=2000), some, cv=cv, n_jobs=args.threads, refit=False)
    peer, spent = timed(peer, X, y)
    name = "GridSearchCV(SVC)" + ("" if part == 1 else f" x {part:.2f}")
    size = f"{len(grid.costs)} x {len(grid.gammas)}"
    cells = spent.cells(args.threads == 1, part)
    table.row(grid.data, len(y), size, name, *cells, f"{peer.best_score_:.4f}", "", "")
    return spent.seconds / part, peer.best_score_


def ours(table: Table, grid: Grid, X, y, cv, drop, args):
    """The fastest search of KernelSVCCV, and its seconds."""
    Cs, gammas = points(grid, X)
    found = []
    for way in args.ways:
        setting = (
            {"n_threads": args.threads} if way == "threads" else {"n_threads": 1, "n_jobs": args.threads}
        )
        search = KernelSVCCV(Cs=Cs, gammas=gammas, cv=cv, drop=drop, refit=False, **setting)
        search, spent = timed(search, X, y)
        dropped, left = int(search.cv_results_["dropped"].sum()), unproved(search)
        facts = *spent.cells(way == "threads"), f"{search.best_score_:.4f}", dropped, left
        table.row(grid.data, len(y), f"{len(Cs)} x {len(gammas)}", f"ours, drop {drop}, {way}", *facts)
        found.append((spent.seconds, search))
    seconds, search = min(found, key=lambda pair: pair[0])
    return search, seconds


def run(report: Report, table: Table, grid: Grid, args) -> None:
    scale = None if grid.data == "mnist" else to_unit_range
    split = load(grid.data, grid.rows, 10, scale).splits[0]
    X, y = split.X_train, split.y_train
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    theirs = svc(table, grid, X, y, cv, args) if grid.exact is not None else None
    for drop, bar in (("exact", grid.exact), (SHARE, grid.share)):
        if str(drop) not in args.drops or (bar is None and (drop != "exact" or theirs is not None)):
            continue
        search, seconds = ours(table, grid, X, y, cv, drop, args)
        kept = {"data": grid.data, "drop": str(drop), "ours": seconds}
        report.keep("grids", kept | ({} if theirs is None else {"svc": theirs[0]}))
        text, left = f"{grid.data}, {len(y):,} rows, drop {drop}", unproved(search)
        report.claim(f"{text}: every fit certified", left == 0, f"{left} are not; {seconds:.1f} s")
        rows = sum(np.nansum(search.cv_results_[f"split{k}_kernel_rows"]) for k in range(search.n_splits_))
        print(
            f"            {int(rows):,} kernel rows computed, of {len(search.cv_results_['params'])} fits x 5"
        )
        if theirs is None or bar is None:
            continue
        ratio, score = theirs[0] / seconds, search.best_score_ - theirs[1]
        report.claim(f"{text}: at least {bar:g} times as fast as SVC", ratio >= bar, f"{ratio:.2f}")
        report.claim(f"{text}: the best score is SVC's or better", score >= -1 / len(y), f"{score:+.4f}")
        if drop == "exact" and args.over_ours:
            over_ours(report, table, grid, X, y, cv, seconds, args)


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--over-ours", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="of the values of C and of γ, for SVC")
    parser.add_argument("--svc", type=float, nargs=2, metavar=("SECONDS", "SCORE"), help="SVC's, of one grid")
    parser.add_argument("--ways", nargs="+", choices=("threads", "jobs"), default=["threads", "jobs"])
    parser.add_argument("--drops", nargs="+", choices=("exact", str(SHARE)), default=["exact", str(SHARE)])
    parser.add_argument("--data", choices=("satimage", "letter", "mnist", "all of letter"))
    args = parser.parse_args()
    report = Report("grid_search", args, words=("PASS", "MISS"))
    heads = ("data", "n", "grid", "search", "seconds", "CPU s", "best score", "dropped", "unproved")
    table = Table(heads, (10, 7, 8, 30, 9, 9, 11, 8, 9))
    for grid in FULL if args.full else SHORT:
        name = "all of letter" if grid.exact is None else grid.data
        if args.data in (None, name):
            run(report, table, grid, args)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
