"""The kernel cache keeps to its budget: peak resident memory on 10,000 rows of mnist.

Every fit runs in a process of its own, which reports the largest resident size it ever had. Claim checked,
for each method: ``cache_size=100`` needs at most 100 MB more than ``cache_size=0``.

Fits without cache compute every kernel row anew, so in the short form they end at a time limit. A fit that
is cut short holds fewer support vectors and needs less memory, which makes the claim harder, not easier:
mcsvm and ell-based may fail it by a megabyte for that reason, and belong to --full, which has no limit.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
from _data import load
from _report import Report, Table, options
from _scoring import timed_fit

from multimargin import KernelSVC
from multimargin.methods import METHODS

ROWS, BUDGET = 10_000, 100  # MB
SHORT = ("auto", "dasmc")


def fit_and_report(method: str, cache: float, limit: float | None) -> None:
    """In the child: one fit, its peak memory on standard output."""
    import resource

    problem = load("mnist", ROWS, 1)
    split = problem.splits[0]
    split = split._replace(X_train=split.X_train.astype(np.float32))
    model = KernelSVC(
        C=problem.C, gamma=problem.gamma, solver=method, cache_size=cache, time_limit=limit, dtype="float32"
    )
    model, seconds = timed_fit(model, split)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    last = model.trace_[-1]
    found = {
        "peak_mb": peak / 2**20 if sys.platform == "darwin" else peak / 2**10,
        "seconds": seconds,
        "iterations": model.n_iter_,
        "rows": last.rows,
        "evictions": last.evictions,
        "support": len(model.support_),
        "status": model.status_.name,
    }
    print(json.dumps(found))


def in_a_process(method: str, cache: float, limit: float | None) -> dict:
    command = [sys.executable, __file__, "--child", method, str(cache), str(limit or 0)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--methods", nargs="+", choices=METHODS)
    parser.add_argument("--limit", type=float, default=20, help="seconds without cache, unless --full")
    parser.add_argument("--child", nargs=3, help="(internal) method, MB, seconds: fit once and report")
    args = parser.parse_args()
    if args.child:
        method, cache, limit = args.child
        fit_and_report(method, float(cache), float(limit) or None)
        return 0
    if sys.platform == "win32":
        print("skipped: peak memory is read with the resource module, which Windows does not have")
        return 0
    load("mnist", 1, 1)  # says so and ends where there is no data
    report = Report("memory", args)
    heads = ("method", "cache MB", "peak MB", "sec.", "rows", "evictions", "SVs", "status")
    table = Table(heads, (10, 8, 8, 8, 8, 9, 6, 11))
    peaks = {}
    methods = args.methods or (tuple(METHODS) if args.full else SHORT)
    for method in methods:
        for cache in (0, BUDGET):
            found = in_a_process(method, cache, None if cache or args.full else args.limit)
            peaks[method, cache] = found["peak_mb"]
            table.row(
                method,
                cache,
                f"{found['peak_mb']:.0f}",
                f"{found['seconds']:.1f}",
                *(found[key] for key in ("rows", "evictions", "support", "status")),
            )
            report.keep("fits", {"method": method, "cache_mb": cache, **found})
    print()
    for method in methods:
        more = peaks[method, BUDGET] - peaks[method, 0]
        report.claim(
            f"{method}: {BUDGET} MB of cache need at most {BUDGET} MB more",
            more <= BUDGET,
            f"{more:.1f} MB more ({peaks[method, 0]:.1f} to {peaks[method, BUDGET]:.1f})",
        )
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
