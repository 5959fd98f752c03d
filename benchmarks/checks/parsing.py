"""Seconds to read LIBSVM text, against scikit-learn's load_svmlight_file and against the floor.

Files are made from the papers' data: bytes (mnist), decimals (isolet), sparse counts (news20), 17 digits
(random numbers, also if the data are not there). The floor is the time to copy the file's bytes, which the
system has in memory, through a small buffer: what no parser can do without. All take turns. Claims: ours with
two threads is at least 5 times as fast as scikit-learn, and reads the same numbers. CSV and writing are timed
too.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.data import FOLDER
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.turns import take_turns
from benchmarks.workers.storage import read_matrix
from multimargin.datasets import load, save

BAR = 5.0
OURS, OURS_ONE, SKLEARN, FLOOR = "ours", "ours, 1 thread", "scikit-learn", "floor"
CSV, SAVED = "csv", "written"
STORED = ("mnist", "isolet", "news20_libsvm_train")


def problems(rows: int | None) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Names, samples and labels."""
    for name in STORED:
        path = FOLDER / f"{name}.npz"
        if not path.is_file():
            print(f"skipped: no {path.name} in {FOLDER} (set MULTIMARGIN_DATA to the folder that has it)")
            continue
        stored = np.load(path)
        X = read_matrix(stored, "X_train")[:rows]
        yield name, X * float(stored["scale"]) if "scale" in stored else X, stored["y_train"][:rows]
    rng = np.random.default_rng(0)
    count = min(rows or 20_000, 20_000)
    yield "random", rng.normal(size=(count, 200)), rng.integers(0, 9, count)


def reading(path: Path) -> float:
    """Seconds to read the bytes of a file that is in the system's memory."""
    start = perf_counter()
    buffer = bytearray(1 << 20)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return perf_counter() - start


def measure(path: Path, X: Any, y: np.ndarray, args: Any) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Wall seconds of each, and the least CPU seconds."""
    table = path.with_suffix(".csv")
    dense = X.shape[1] < 1000
    if dense:
        save(table, X, y)
    work = {
        OURS: lambda: load(path, n_threads=args.threads),
        OURS_ONE: lambda: load(path, n_threads=1),
        SKLEARN: lambda: load_svmlight_file(str(path)),
        FLOOR: lambda: reading(path),
        SAVED: lambda: save(path.with_name("again.libsvm"), X, y),
        **({CSV: lambda: load(table, n_threads=args.threads)} if dense else {}),
    }
    cpu = dict.fromkeys(work, float("inf"))

    def once(name: str) -> float:
        start, started = perf_counter(), process_time()
        work[name]()
        cpu[name] = min(cpu[name], process_time() - started)
        return perf_counter() - start

    return take_turns(work, once, args.repeats)[0], cpu


def same_numbers(path: Path) -> bool:
    """Whether scikit-learn and ours read the same."""
    expected, labels = load_svmlight_file(str(path))
    X, y = load(path)
    return (sp.csr_array(X) != sp.csr_array(expected)).nnz == 0 and np.array_equal(y, labels)


def main() -> int:
    parser = options(__doc__, repeats=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, help="at most so many rows of each")
    args = parser.parse_args()
    report = Report("parsing", args, words=("PASS", "MISS"))
    names = (OURS, OURS_ONE, SKLEARN, FLOOR, CSV, SAVED)
    table = Table(("file", "MB", *names, "MB/s", "ratio"), (20, 6, 8, 14, 12, 8, 8, 8, 6, 6))
    with tempfile.TemporaryDirectory() as folder:
        for name, X, y in problems(args.rows):
            path = Path(folder) / f"{name}.libsvm"
            save(path, X, y)
            seconds, cpu = measure(path, X, y, args)
            best = {key: min(values) for key, values in seconds.items()}
            size, ratio = path.stat().st_size / 1e6, best[SKLEARN] / best[OURS]
            cells = [f"{best[key]:.4f}" if key in best else "" for key in names]
            table.row(name, f"{size:.1f}", *cells, f"{size / best[OURS]:.0f}", f"{ratio:.1f}")
            text = f"{name}, {args.threads} threads: at least {BAR:g} times as fast as scikit-learn"
            numbers = f"{ratio:.1f} ({best[OURS]:.3g} s, {best[SKLEARN]:.3g} s; floor {best[FLOOR]:.3g} s)"
            report.claim(text, ratio >= BAR, numbers)
            same = same_numbers(path)
            report.claim(f"{name}: the numbers of scikit-learn", same, "all" if same else "some differ")
            report.keep("results", {"name": name, "megabytes": size, "seconds": seconds, "cpu": cpu})
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
