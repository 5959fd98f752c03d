"""The command line: seconds of --help and of predict, and the size of a model of bytes.

mnist is a .npy file of bytes. The model is trained by ``multimargin train`` on 10,000 rows, with --full on
all 60,000. ``multimargin predict`` labels the 10,000 test rows. Its floor is the seconds that loading takes,
and one float32 product and exp for every kernel value (lib/floor.py). Both take turns. A process
that only imports what predict imports is measured too, and subtracted: Python, NumPy, SciPy and scikit-learn
take that time, whatever the command does.

The same rows as float32, which take 3 bytes more per value, are trained on with the same cache.

Claims: --help below 150 ms; predict at most 1.3 times the floor; the model file at most 1.1 times its support
vectors as bytes plus its coefficients; peak memory of training on bytes below that on float32 by at least the
difference of the two files.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.data import load_stored
from benchmarks.lib.floor import Floor
from benchmarks.lib.report import Report, Table, options
from benchmarks.lib.turns import take_turns
from multimargin import datasets, load

HELP, PREDICT, SIZE = 0.150, 1.3, 1.1
ROWS, GAMMA, COST = 10_000, 0.02 / 255**2, 10.0
CACHE = "200"  # MB of kernel rows when memory is compared
COMMAND = [sys.executable, "-m", "multimargin"]
IMPORTS = "from multimargin import load, datasets"


def seconds_of(*command: str) -> float:
    start = perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return perf_counter() - start


def peak_of(*command: str) -> int:
    """Peak memory of a process, in bytes."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise RuntimeError(f"{command} failed")
    process.returncode = 0
    return usage.ru_maxrss * 1024


def write_data(folder: Path, rows: int | None) -> None:
    split = load_stored("mnist", rows)
    for name, X, y in (("train", split.X_train, split.y_train), ("test", split.X_test, split.y_test)):
        np.save(folder / f"{name}.npy", np.ascontiguousarray(X, dtype=np.uint8))
        np.save(folder / f"{name}-labels.npy", y)
    np.save(folder / "train32.npy", split.X_train.astype(np.float32))


def predict_turns(folder: Path, threads: int, repeats: int) -> dict[str, float]:
    """The best seconds of the command, of its imports, of loading, and of the floor."""
    model, test = str(folder / "mnist.mm"), str(folder / "test.npy")
    labels = ["--labels", str(folder / "test-labels.npy"), "--threads", str(threads)]
    loaded, data = load(model), datasets.load(test)
    kernel = loaded._kernel
    rows, support = (np.asarray(part, dtype=np.float32) for part in (data.X, loaded._support))
    floor = Floor(rows, support, float(kernel.gamma), threads)

    def once(what: str) -> float:
        if what == "predict":
            return seconds_of(*COMMAND, "predict", model, test, str(folder / "out.txt"), "-q", *labels)
        if what == "imports":
            return seconds_of(sys.executable, "-c", IMPORTS + "; load; datasets.load")
        if what == "product and exp":
            return floor.once()
        start = perf_counter()
        load(model)
        datasets.load(test, label=str(folder / "test-labels.npy"))
        return perf_counter() - start

    turns = take_turns(["predict", "imports", "load", "product and exp"], once, repeats)[0]
    return {what: min(of) for what, of in turns.items()}


def compare_memory(folder: Path, report: Report, threads: int) -> None:
    """Train on bytes and on float32 with the same small cache."""
    peaks, sizes = {}, {}
    for name in ("train", "train32"):
        file = folder / f"{name}.npy"
        rest = ["--labels", str(folder / "train-labels.npy"), "-c", str(COST), "-g", repr(GAMMA)]
        rest += ["--cache-size", CACHE, "--threads", str(threads), "-q"]
        peaks[name] = peak_of(*COMMAND, "train", str(file), str(folder / "other.mm"), *rest)
        sizes[name] = os.path.getsize(file)
    saved, expected = peaks["train32"] - peaks["train"], sizes["train32"] - sizes["train"]
    numbers = (
        f"{peaks['train'] >> 20} MB and {peaks['train32'] >> 20} MB; files differ by {expected >> 20} MB"
    )
    report.claim("training on bytes saves at least the bytes of the file", saved >= expected, numbers)


def main() -> int:
    parser = options(__doc__, repeats=3)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    report = Report("command_line", args, words=("PASS", "MISS"))
    asked = min(seconds_of(*COMMAND, "--help") for _ in range(10))
    report.claim("multimargin --help", asked <= HELP, f"{1000 * asked:.0f} ms")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder, None if args.full else ROWS)
        train = [*COMMAND, "train", str(folder / "train.npy"), str(folder / "mnist.mm")]
        train += ["--labels", str(folder / "train-labels.npy"), "-c", str(COST), "-g", repr(GAMMA)]
        spent = seconds_of(*train, "--threads", str(args.threads), "-q")
        model = load(folder / "mnist.mm")
        size = os.path.getsize(folder / "mnist.mm")
        least = model._support.nbytes + model.dual_coef_.nbytes
        print(f"trained in {spent:.1f} s: {len(model.support_)} support vectors of {model._support.dtype}")
        report.claim("size of the model file", size <= SIZE * least, f"{size / least:.4f} ({size} bytes)")
        compare_memory(folder, report, args.threads)
        times = predict_turns(folder, args.threads, args.repeats)
    table = Table(tuple(times), (10, 10, 10, 16))
    table.row(*(f"{value:.3f}" for value in times.values()))
    report.keep("seconds", times)
    floor = times["load"] + times["product and exp"]
    ratio = (times["predict"] - times["imports"]) / floor
    whole = times["predict"] / (floor + times["imports"])
    report.claim("predict without imports / floor", ratio <= PREDICT, f"{ratio:.3f}")
    report.claim("predict / (imports + floor)", whole <= PREDICT, f"{whole:.3f}")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
