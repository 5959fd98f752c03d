"""Memory keeps to its budget: the peak resident size of fits on mnist, each in a process of its own.

10,000 rows: for each method, ``cache_size=100`` needs at most 97 MB more than ``cache_size=3``. With hardly
any cache every kernel row is computed anew, so in the short form these fits end at a time limit. A fit that
is cut short holds fewer support vectors and needs less memory, which makes the claim harder, not easier:
mcsvm and ell-based may fail it by a megabyte for that reason, and belong to --full, which has no limit.

60,000 rows (--full): with ``cache_size=1000`` the peak is at most 1.3 GB above the process before the fit,
which has imported everything, holds the data, and has done a small fit.

Beside SVC, on letter, satimage and usps, each in a process of its own that has imported what it needs, holds
the data, and has fitted nothing yet: at its peak, the process of our fit has at most twice the memory of
SVC's. What each fit adds to its process is printed too. SVC solves one pair of classes at a time, so that
adds little.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from sklearn.base import clone

from multimargin import KernelSVC

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.arena import Arena, Limits
from benchmarks.lib.contenders import CONTENDERS, OURS, SVC
from benchmarks.lib.data import RECIPES, load_stored
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.scoring import EXACT_METHODS, timed_fit
from benchmarks.lib.suite import SUITE
from benchmarks.workers.resident import resident_mb

ROWS, LEAST, BUDGET = 10_000, 3, 100  # MB
ALL_ROWS, LARGE_BUDGET, LARGE_BAR = 60_000, 1000, 1300  # MB
SHORT = ("auto", "dasmc")
PEER_DATA, PEER_BAR = ("letter", "satimage", "usps"), 2.0  # x SVC


def fit_and_report(rows: int, method: str, cache: float, limit: float | None) -> None:
    """In the child: one fit, its peak memory on standard output."""
    split = load_stored("mnist", rows, 2)
    split = split._replace(X_train=np.divide(split.X_train, 255, dtype=np.float32), X_test=None)
    recipe = RECIPES["mnist"]
    model = KernelSVC(
        C=recipe.C, gamma=recipe.gamma, solver=method, cache_size=cache, time_limit=limit, dtype="float32"
    )
    small = slice(0, 200)
    timed_fit(clone(model), split._replace(X_train=split.X_train[small], y_train=split.y_train[small]))
    before = resident_mb("VmRSS")
    model, seconds = timed_fit(model, split)
    last = model.trace_[-1]
    found = {
        "before_mb": before,
        "peak_mb": resident_mb("VmHWM"),
        "seconds": seconds,
        "iterations": model.n_iter_,
        "rows": last.rows,
        "evictions": last.evictions,
        "support": len(model.support_),
        "status": model.status_.name,
    }
    print(json.dumps(found))


class Fits:
    """Fits in processes of their own, printed and kept."""

    def __init__(self, report: Report) -> None:
        self.report = report
        heads = (
            "method",
            "n",
            "cache MB",
            "before MB",
            "peak MB",
            "sec.",
            "rows",
            "evictions",
            "SVs",
            "status",
        )
        self.table = Table(heads, (10, 6, 8, 9, 8, 8, 8, 9, 6, 11))

    def run(self, rows: int, method: str, cache: float, limit: float | None) -> dict:
        command = [sys.executable, __file__, "--child", str(rows), method, str(cache), str(limit or 0)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        self.table.row(
            method,
            rows,
            cache,
            f"{found['before_mb']:.0f}",
            f"{found['peak_mb']:.0f}",
            f"{found['seconds']:.1f}",
            *(found[key] for key in ("rows", "evictions", "support", "status")),
        )
        self.report.keep("fits", {"method": method, "n": rows, "cache_mb": cache, **found})
        return found


def beside_svc(report: Report) -> None:
    """First fits in fresh processes, ours and SVC's."""
    table = Table(("data", "", "before MB", "peak MB", "added MB"), (10, 18, 9, 8, 8))
    ratios = {}
    for entry in (entry for entry in SUITE if entry.name in PEER_DATA):
        C, views = entry.views(1)
        contenders = [CONTENDERS[name] for name in (OURS, SVC)]
        with Arena(views, contenders, threads=2, judged=False, cold=True) as arena:
            found = {name: result.memory for name, result in arena.measure(C, Limits(repeats=1)).items()}
        if not all(found.values()):
            print(f"skipped: this system does not tell the peak memory of fits to {entry.name}")
            continue
        for name, memory in found.items():
            before, peak = memory["before_mb"], memory["peak_mb"]
            table.row(entry.name, name, f"{before:.0f}", f"{peak:.0f}", f"{peak - before:.0f}")
            report.keep("beside_svc", {"data": entry.name, "contender": name, **memory})
        ratios[entry.name] = found[OURS]["peak_mb"] / found[SVC]["peak_mb"]
    print()
    for name, ratio in ratios.items():
        text = f"{name}: at its peak our process has at most {PEER_BAR:g} x the memory of SVC's"
        report.claim(text, ratio <= PEER_BAR, f"{ratio:.2f}")
    print()


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--methods", nargs="+", choices=EXACT_METHODS)
    parser.add_argument("--limit", type=float, default=5, help="seconds with hardly any cache, unless --full")
    parser.add_argument("--child", nargs=4, help="(internal) rows, method, MB, seconds: fit once and report")
    args = parser.parse_args()
    if args.child:
        rows, method, cache, limit = args.child
        fit_and_report(int(rows), method, float(cache), float(limit) or None)
        return 0
    if not sys.platform.startswith("linux"):
        print("skipped: peak memory is read from /proc, which only Linux has")
        return 0
    load_stored("mnist", 1, 1)  # says so and ends if there is no data
    report = Report("memory", args)
    beside_svc(report)
    fits, more = Fits(report), {}
    for method in args.methods or (EXACT_METHODS if args.full else SHORT):
        without = fits.run(ROWS, method, LEAST, None if args.full else args.limit)
        more[method] = fits.run(ROWS, method, BUDGET, None)["peak_mb"] - without["peak_mb"]
    large = fits.run(ALL_ROWS, "auto", LARGE_BUDGET, None) if args.full else None
    print()
    for method, growth in more.items():
        text = f"{method}: {BUDGET} MB of cache need at most {BUDGET - LEAST} MB more than {LEAST} MB"
        report.claim(text, growth <= BUDGET - LEAST, f"{growth:.1f} MB more")
    text = f"{ALL_ROWS:,} rows, {LARGE_BUDGET} MB of cache: the fit adds at most {LARGE_BAR} MB"
    if large is None:
        report.claim(text, None, "needs --full")
    else:
        growth = large["peak_mb"] - large["before_mb"]
        done = large["status"] == "CONVERGED"
        report.claim(text, done and growth <= LARGE_BAR, f"{growth:.0f} MB, {large['status'].lower()}")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
