"""Memory and throughput of one pass over 1,000,000 rows with 262,144 features, 40 non-zeros each, 50 classes.

Data is synthetic: CSR, float32 values and int32 indices. A row has one feature from each of 40 ranges whose
widths grow so that a feature's frequency falls like 1 / (rank + const), as words' do; values are log counts
in rows of length one; labels are the best class of a random linear model, and one in ten is random.

Each fit (max_iter=1, no intercept) runs in a process of its own, which has loaded the data and done a small
fit before. What the fit adds is the process's largest size (VmHWM) after it minus its size (VmRSS) before it;
the weights are coef_, m times features in float64. Claims on memory:
- the fit adds at most 1.5 times the data (its CSR arrays) plus the weights;
- the harder one, with the data itself counted in: it adds at most half the data plus the weights. The short
  form cannot tell, because there the data is small beside the weights, of which the fit has a float32 copy.

Throughput is non-zeros times classes per second, of the whole fit and of the pass with the measurement of the
gap that follows it (without the final proof in float64). The floor is what memory alone takes: every
non-zero's m float32 weights (padded to the layout's multiple of 8) copied once, in the data's own order, into
a block that stays in the processor's cache (NumPy's take), on one thread. A pass has to read them once to
score a row and, if it updates, to read and write them again, while the processor's cache still has them;
the samples themselves, 8 bytes per non-zero, are not in the floor. Reported, not a bar.

--machine takes another machine. The claims are of crammer-singer alone: the others have up to one dual value
per row and class.

The short form has 100,000 rows. Exit status 1 if a claim does not hold.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from multimargin import LinearSVC

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.checks.memory import resident_mb
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.scoring import timed_fit
from benchmarks.workers.storage import Split, few_rows

ROWS, SHORT_ROWS, FEATURES, STORED, CLASSES = 1_000_000, 100_000, 262_144, 40, 50
FALL = 8.0  # the most frequent feature is e^FALL times as frequent as the rarest
SHARE = 1.5  # of the data
LANES = 8  # classes are padded to a multiple of this
BLOCK = 1024  # rows of weights copied at a time
FILES = ("data", "indices", "indptr", "y")
SQUARED = "squared-"
MACHINES = ("crammer-singer", "weston-watkins", "one-vs-rest", f"{SQUARED}one-vs-rest")


def synthetic(
    rows: int, features: int = FEATURES, stored: int = STORED, m: int = CLASSES, seed: int = 0
) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of ``stored`` sorted, distinct features, and their labels."""
    random = np.random.default_rng(seed)
    edges = np.expm1(np.linspace(0, FALL, stored + 1)) / np.expm1(FALL) * (features - stored)
    edges = edges.astype(np.int32) + np.arange(stored + 1, dtype=np.int32)  # every range has a feature
    indices = random.integers(edges[:-1], edges[1:], size=(rows, stored), dtype=np.int32)
    values = np.log1p(random.geometric(0.5, size=(rows, stored))).astype(np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    indptr = np.arange(0, rows * stored + 1, stored, dtype=np.int32)
    X = sp.csr_array((values.ravel(), indices.ravel(), indptr), shape=(rows, features))
    planted = random.normal(size=(features, m)).astype(np.float32)
    step = 10_000  # rows whose scores are held at a time
    y = np.concatenate([(X[k : k + step] @ planted).argmax(axis=1) for k in range(0, rows, step)])
    wrong = random.random(rows) < 0.1
    y[wrong] = random.integers(0, m, size=wrong.sum())
    return X, y


def floor_seconds(indices: np.ndarray, features: int, m: int) -> float:
    """Every non-zero's weights copied once into a block that stays in the processor's cache."""
    weights = np.ones((features, -(-m // LANES) * LANES), dtype=np.float32)
    block = np.empty((BLOCK, weights.shape[1]), dtype=np.float32)
    start = perf_counter()
    for first in range(0, len(indices) - BLOCK + 1, BLOCK):
        np.take(weights, indices[first : first + BLOCK], axis=0, out=block, mode="clip")
    return perf_counter() - start


def fit_and_report(folder: Path, features: int, threads: int, machine: str) -> None:
    """In the child: one pass, its peak memory and seconds on standard output."""
    data, indices, indptr, y = (np.load(folder / f"{name}.npy") for name in FILES)
    X = sp.csr_array((data, indices, indptr), shape=(len(y), features))
    X.has_canonical_format = True  # says what is true, so that nobody has to look
    squared = machine.startswith(SQUARED)
    plain = LinearSVC(machine.removeprefix(SQUARED), loss="squared_hinge" if squared else "hinge")
    model = plain.set_params(max_iter=1, fit_intercept=False, n_threads=threads)
    timed_fit(clone(model), few_rows(Split(X[:5000], y[:5000], X[:2], y[:2]), 60))
    before = resident_mb("VmRSS")
    model, seconds = timed_fit(model, Split(X, y, None, None))
    found = {
        "before_mb": before,
        "peak_mb": resident_mb("VmHWM"),
        "seconds": seconds,
        "pass_seconds": float(model.trace_[0].seconds),
        "updates": int(model.trace_[0].inner),
        "dual_values": int(model.dual_coef_.nnz),
        "coef_mb": model.coef_.nbytes / 1e6,
        "data_mb": sum(part.nbytes for part in (data, indices, indptr)) / 1e6,
        "gap": model.duality_gap_ / model.primal_objective_,
        "floor_seconds": floor_seconds(indices, features, len(model.classes_)),
    }
    print(json.dumps(found))


def run(folder: Path, features: int, threads: int, machine: str = MACHINES[0]) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", str(folder), str(features), str(threads), machine]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def show(report: Report, table: Table, rows: int, threads: int, found: dict[str, Any]) -> None:
    work = rows * STORED * CLASSES / 1e9
    table.row(
        f"{rows:,}",
        threads,
        f"{found['data_mb']:.0f}",
        f"{found['coef_mb']:.0f}",
        f"{found['peak_mb'] - found['before_mb']:.0f}",
        f"{found['seconds']:.2f}",
        f"{found['pass_seconds']:.2f}",
        f"{work / found['seconds']:.2f}",
        f"{work / found['pass_seconds']:.2f}",
        f"{work / found['floor_seconds']:.2f}",
        f"{found['updates'] / rows:.0%}",
        f"{found['dual_values'] / rows:.1f}",
    )
    report.keep("fits", {"rows": rows, "threads": threads, **found})


def check(report: Report, rows: int, threads: int, machine: str, found: dict[str, Any]) -> None:
    judged = rows >= ROWS and machine == MACHINES[0]
    added, data = found["peak_mb"] - found["before_mb"], found["data_mb"]
    for text, share in (("the fit adds", SHARE), ("with the data counted in, the fit adds", SHARE - 1)):
        bar = share * data + found["coef_mb"]
        report.claim(
            f"{threads} thread(s): {text} at most {share:g} times the data plus the weights",
            added <= bar if judged else None,
            f"{added:.0f} MB, at most {bar:.0f} MB",
        )


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, help=f"{ROWS:,}; short form: {SHORT_ROWS:,}")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--machine", choices=MACHINES, default=MACHINES[0])
    parser.add_argument("--child", nargs=4, help="(internal) folder, features, threads, machine: fit once")
    args = parser.parse_args()
    if args.child:
        folder, features, threads, machine = args.child
        fit_and_report(Path(folder), int(features), int(threads), machine)
        return 0
    if not sys.platform.startswith("linux"):
        print("skipped: peak memory is read from /proc, which only Linux has")
        return 0
    report = Report("linear_scale", args)
    rows = args.rows or (ROWS if args.full else SHORT_ROWS)
    heads = ("rows", "threads", "data MB", "coef_ MB", "added MB", "fit s", "pass s", "fit G/s", "pass G/s")
    table = Table((*heads, "floor G/s", "updated", "dual / row"), (10, 7, 7, 8, 8, 7, 7, 7, 8, 9, 7, 10))
    with tempfile.TemporaryDirectory(prefix="multimargin-bench-") as folder:
        X, y = synthetic(rows)
        for name, part in zip(FILES, (X.data, X.indices, X.indptr, y), strict=True):
            np.save(Path(folder) / f"{name}.npy", part)
        del X, y
        results = {threads: run(Path(folder), FEATURES, threads, args.machine) for threads in args.threads}
    for threads, found in results.items():
        show(report, table, rows, threads, found)
    print()
    for threads, found in results.items():
        check(report, rows, threads, args.machine, found)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
