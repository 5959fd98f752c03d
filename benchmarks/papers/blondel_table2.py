"""Blondel, Fujino & Ueda's Table II: accuracy and time after 1, 3 and 5 passes, for five methods.

Protocol: 10 stratified splits (4/5 to train on), C = 1, linear kernel, no intercept, Algorithm 1 with every
pass over all samples in random order; bisection with τ = 1e-3. The short form has 2 splits.

What differs from the paper:
- News20 is J. Rennie's word counts of the "bydate" version, train and test together: 18,774 rows and 61,188
  words (theirs: 18,846 and 130,088). "log" is log(1 + count), "idf" that times log(n / rows with the word);
  rows have length one. They do not say how they prepared theirs: "log" is one to two points below theirs,
  "idf" 7 points above after one pass and 1 point after five.
- Our "smo" repeats its pair steps until the sample's problem is solved, so it is one of the exact methods
  here; theirs stops early. "frank-wolfe" makes one step of exact length, as theirs.
- Seconds are of the whole fit: beside the passes that is one measurement of the gap and the final proof in
  float64, worth about two passes. "pass" is the time of one pass alone, from the trace of the longest fit.

Claims checked; exit status 1 if one does not hold:
- after one pass, the better of sort and pivot is best, or equal: its mean accuracy is not below any other's
  by more than the standard deviation, over the splits, of the difference on the same split;
- a pass of any method takes at most 15% longer than a pass of any other (methods take turns; the median over
  the splits). In the paper's own table frank-wolfe is up to 20% faster than sort.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.linear_data import TEXT, all_rows, stratified_splits
from benchmarks.lib.passes import EXACT, METHODS, algorithm1, pass_seconds
from benchmarks.lib.printed import TABLE_II
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.scoring import Split, accuracy, timed_fit
from benchmarks.lib.turns import take_turns

PASSES = (1, 3, 5)
SPREAD = 1.15


def measure(splits: list[Split], repeats: int) -> dict[tuple[str, int], dict[str, np.ndarray]]:
    """(method, passes) -> accuracies, seconds of a fit and of a pass, one for each split."""
    found: dict[tuple[str, int], dict[str, list]] = {
        (method, passes): {"accuracy": [], "seconds": [], "pass": []}
        for passes in PASSES
        for method in METHODS
    }
    for split in splits:
        for passes in PASSES:
            fits: dict[str, list] = {method: [] for method in METHODS}

            def fit(method: str, split=split, passes=passes, fits=fits) -> float:
                model, seconds = timed_fit(algorithm1(method, passes), split)
                fits[method].append(model)
                return seconds

            seconds, _ = take_turns(METHODS, fit, repeats)
            for method, models in fits.items():
                cell = found[method, passes]
                cell["accuracy"].append(accuracy(models[0].predict(split.X_test), split.y_test))
                cell["seconds"].append(min(seconds[method]))
                if passes > 1:
                    cell["pass"].append(min(map(pass_seconds, models)))
    return {key: {name: np.array(values) for name, values in cell.items()} for key, cell in found.items()}


def print_rows(name: str, text: str, found: dict) -> None:
    table = Table(
        ("data", "text", "passes", "method", "acc.", "±", "paper", "±", "sec.", "paper", "pass, ms"),
        (8, 8, 6, 12, 6, 5, 6, 5, 8, 6, 9),
    )
    for passes in PASSES:
        for method in METHODS:
            cell, printed = found[method, passes], TABLE_II[name][passes][method]
            table.row(
                name,
                text,
                passes,
                method,
                f"{cell['accuracy'].mean():.2f}",
                f"{cell['accuracy'].std():.2f}",
                f"{printed.accuracy:.2f}",
                f"{printed.accuracy_std:.2f}",
                f"{median(cell['seconds']):.3f}",
                f"{printed.seconds:.2f}",
                f"{1e3 * median(cell['pass']):.1f}" if passes > 1 else "",
            )


def check(report: Report, text: str, found: dict) -> None:
    best = max(EXACT, key=lambda method: found[method, 1]["accuracy"].mean())
    ahead = {
        method: found[best, 1]["accuracy"] - found[method, 1]["accuracy"]
        for method in METHODS
        if method not in EXACT
    }
    report.claim(
        f"{text}: after one pass an exact method is best or equal in accuracy",
        all(difference.mean() >= -difference.std() for difference in ahead.values()),
        f"{best} is ahead of "
        + ", ".join(f"{method} by {d.mean():.2f} ± {d.std():.2f}" for method, d in ahead.items()),
    )
    longest = max(PASSES)
    times = {method: median(found[method, longest]["pass"]) for method in METHODS}
    slowest, fastest = max(times, key=times.__getitem__), min(times, key=times.__getitem__)
    ratio = times[slowest] / times[fastest]
    report.claim(
        f"{text}: a pass of one method takes at most {SPREAD - 1:.0%} longer than of another",
        ratio <= SPREAD,
        f"{slowest} takes {ratio:.2f} times as long as {fastest}",
    )


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--data", nargs="+", choices=TABLE_II, default=[*TABLE_II])
    parser.add_argument("--text", nargs="+", choices=TEXT, help="preparations of News20 (log; --full: all)")
    parser.add_argument("--splits", type=int, help="10; short form: 2")
    args = parser.parse_args()
    report = Report("blondel_table2", args)
    checks = {}
    for name in args.data:
        texts = (args.text or (TEXT if args.full else ["log"])) if name == "News20" else ["tf-idf"]
        for text in texts:
            X, y = all_rows(name, text)
            found = measure(stratified_splits(X, y, args.splits or (10 if args.full else 2)), args.repeats)
            print_rows(name, text, found)
            for (method, passes), cell in found.items():
                report.keep("rows", {"data": name, "text": text, "method": method, "passes": passes} | cell)
            checks[f"{name}, {text}"] = found
    print("\nclaims")
    for text, found in checks.items():
        check(report, text, found)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
