"""Seconds and size of a report, beside the seconds of the scores that it shows.

Models of digits, letter and mnist (5,000 rows, as bytes) are judged on their test rows. Scores and reports
take turns. Claims: a page of mnist is below 2 MB; beyond the scores a page takes at most half a second.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.data import load_digits_problem, load_stored
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.turns import take_turns
from multimargin import KernelSVC

MOST_BYTES, MOST_SECONDS = 2_000_000, 0.5
STORED = {"letter": (10.0, 0.05, None), "mnist": (10.0, 0.02 / 255**2, 5000)}


def problems():
    """(name, model, split) of every data set."""
    digits = load_digits_problem()
    split = digits.splits[0]
    yield "digits", KernelSVC(C=digits.C, gamma=digits.gamma), split
    for name, (C, gamma, rows) in STORED.items():
        yield name, KernelSVC(C=C, gamma=gamma), load_stored(name, rows)


def main() -> int:
    args = options(__doc__, repeats=5).parse_args()
    report = Report("pages", args, words=("PASS", "MISS"))
    table = Table(("data", "judged", "SVs", "scores", "report", "beyond", "kB"), (10, 7, 7, 8, 8, 8, 6))
    with tempfile.TemporaryDirectory() as folder:
        for name, model, split in problems():
            model.fit(split.X_train, split.y_train)
            path = Path(folder) / f"{name}.html"

            def once(what: str, model=model, split=split, path=path) -> float:
                start = time.perf_counter()
                if what == "scores":
                    model.decision_function(split.X_test)
                else:
                    model.report(path, split.X_test, split.y_test)
                return time.perf_counter() - start

            once("report")  # imports, and the layout of the support vectors
            times = {
                what: min(of) for what, of in take_turns(["scores", "report"], once, args.repeats)[0].items()
            }
            beyond, size = times["report"] - times["scores"], path.stat().st_size
            shown = (f"{value:.3f}" for value in (times["scores"], times["report"], beyond))
            table.row(name, len(split.y_test), len(model.support_), *shown, size // 1000)
            report.keep("pages", {"data": name, "beyond": beyond, "bytes": size, **times})
            report.claim(f"{name}: the page beyond the scores", beyond <= MOST_SECONDS, f"{beyond:.3f} s")
            report.claim(f"{name}: the size of the page", size <= MOST_BYTES, f"{size // 1000} kB")
    return report.finish()


if __name__ == "__main__":
    raise SystemExit(main())
