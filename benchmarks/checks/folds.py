"""Five folds at one (C, γ): what they cost beside one fit, and which kernel values they need.

mnist (10,000 rows) and letter, with the papers' C and γ. Claims: five folds take at most twice the time of
one fit of KernelSVC (3.0 with MSVMpack's shared cache, Didiot & Lauer's Table 3); every fit is certified; the
accuracy in each fold is that of a fit to the fold alone, except for ties within the tolerance; and where
kernel rows are kept, no more are computed than there are samples. Beside it: five folds and the fit to all
rows, which is then made first, and from which they start; and the six fits, each alone. --full adds satimage
and usps.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold

from multimargin import KernelSVC, KernelSVCCV

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.data import load
from benchmarks.lib.report import Report, Table, options

ROWS = {"mnist": 10_000, "letter": None, "satimage": None, "usps": None}
SHORT = ("mnist", "letter")
BAR = 2.0  # fits
TIES = 0.002  # share of the rows whose labels may differ: they lie between two classes


def best_of(repeats: int, run):
    """The result of the fastest run, and its seconds."""
    found = []
    for _ in range(repeats):
        begin = time.perf_counter()
        result = run()
        found.append((time.perf_counter() - begin, result))
    seconds, result = min(found, key=lambda pair: pair[0])
    return result, seconds


def folds_alone(model, X, y, cv):
    """Five fits, each alone; their accuracies and the seconds of all."""
    begin, scores = time.perf_counter(), []
    for train, test in cv.split(X, y):
        scores.append(model.fit(X[train], y[train]).score(X[test], y[test]))
    return np.array(scores), time.perf_counter() - begin


def run(report: Report, table: Table, data: str, repeats: int, threads: int) -> None:
    problem = load(data, ROWS[data], 10)
    X, y = problem.splits[0].X_train, problem.splits[0].y_train
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    model = KernelSVC(C=problem.C, gamma=problem.gamma, n_threads=threads)
    search = KernelSVCCV(Cs=[problem.C], gammas=[problem.gamma], cv=cv, n_threads=threads)
    model.fit(X[:500], y[:500])  # threads and pages are warm
    _, one = best_of(repeats, lambda: model.fit(X, y))
    _, folds = best_of(repeats, lambda: search.set_params(refit=False).fit(X, y))
    _, total = best_of(repeats, lambda: search.set_params(refit=True).fit(X, y))
    alone, cold = folds_alone(model, X, y, cv)
    found = search.cv_results_
    parts = {name: [found[f"split{k}_{name}"][0] for k in range(5)] for name in ("converged", "kernel_rows")}
    scores = np.array([found[f"split{k}_test_score"][0] for k in range(5)])
    rows = search.best_estimator_.trace_[-1].rows + int(np.sum(parts["kernel_rows"]))
    kept = search.best_estimator_.trace_.info["cache_rows"] != 0
    times = one, folds, total, one + cold
    table.row(data, len(y), *(f"{seconds:.3f}" for seconds in times), f"{total / one:.2f}", rows)
    keys = ("data", "n", "one", "folds", "total", "alone", "rows")
    report.keep("folds", dict(zip(keys, (data, len(y), *times, rows), strict=True)))
    report.claim(
        f"{data}: five folds take at most {BAR:g} fits",
        folds <= BAR * one,
        f"{folds / one:.2f} ({folds:.3g} s, {one:.3g} s)",
    )
    report.claim(f"{data}: every fit certified", all(parts["converged"]), f"{sum(parts['converged'])} of 5")
    apart = float(np.abs(scores - alone).max())
    report.claim(f"{data}: the accuracies of fits alone", apart <= TIES, f"at most {apart:.2g} apart")
    report.claim(
        f"{data}: no more kernel rows than samples are computed",
        rows <= len(y) if kept else None,
        f"{rows:,} rows of {len(y):,}" + ("" if kept else "; computing is cheaper than keeping here"),
    )


def main() -> int:
    parser = options(__doc__, repeats=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    report = Report("folds", args, words=("PASS", "MISS"))
    heads = ("data", "n", "one fit s", "5 folds s", "fit + 5 folds s", "six alone s", "fits", "kernel rows")
    table = Table(heads, (10, 7, 10, 10, 16, 12, 6, 12))
    for data in ROWS if args.full else SHORT:
        run(report, table, data, args.repeats, args.threads)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
