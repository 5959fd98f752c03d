"""Interrupt every phase at random moments: it raises KeyboardInterrupt or ends, and leaves nothing half done.

    python tests/faults/signals.py                  # 100 signals for each phase
    python tests/faults/signals.py fit save --signals 10

After each signal the same work must give the usual bits, files must be whole, and BLAS must have its threads
back. Signals whose handler returns must change nothing at all.
"""

import argparse
import hashlib
import io
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import threadpoolctl
from sklearn.datasets import load_digits

from multimargin import KernelSVC, KernelSVCCV, LinearSVC, datasets, load

X, Y = load_digits(return_X_y=True)
X, Y = X[:300] / 16.0, Y[:300]


class Phases:
    """Work of every kind; each returns bytes."""

    def __init__(self, folder):
        self.folder, self.model = folder, KernelSVC(n_threads=1).fit(X, Y)
        self.text = io.BytesIO()
        datasets.save(self.text, np.tile(X, (20, 1)), np.tile(Y, 20), format="csv")

    def fit(self):
        return KernelSVC(C=4.0, gamma=0.05, n_threads=2).fit(X, Y).dual_coef_.tobytes()

    def loop(self):
        return KernelSVC(C=4.0, solver="dasmc", n_threads=1).fit(X[:150], Y[:150]).dual_coef_.tobytes()

    def reference(self):
        return KernelSVC(engine="numpy").fit(X[:40], Y[:40]).dual_coef_.tobytes()

    def linear(self):
        return LinearSVC(n_threads=2).fit(X, Y).coef_.tobytes()

    def search(self):
        found = KernelSVCCV(Cs=[0.1, 1.0], gammas=[0.05], cv=2, n_threads=1).fit(X[:150], Y[:150])
        return found.cv_results_["mean_test_score"].tobytes()

    def predict(self):
        return self.model.decision_function(np.tile(X, (20, 1))).tobytes()

    def read(self):
        found = datasets.load(io.BytesIO(self.text.getvalue()), format="csv", n_threads=2)
        return found.X.tobytes() + found.y.tobytes()

    def save(self):
        self.model.save(self.folder / "model.mm")
        return load(self.folder / "model.mm").dual_coef_.tobytes()

    def report(self):
        return self.model.report(self.folder / "page.html", X, Y).name.encode()

    def checkpoint(self):
        path = self.folder / "fit.checkpoint"
        given = {"C": 4.0, "solver": "dasmc", "n_threads": 1, "checkpoint": (path, 0.0)}
        try:
            return KernelSVC(**given).fit(X[:80], Y[:80]).status_.name.encode()
        finally:
            path.unlink(missing_ok=True)


PHASES = [name for name in vars(Phases) if not name.startswith("_")]


def digest(work):
    return hashlib.sha256(work()).hexdigest()


def blas_threads():
    return [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]


def alarm(seconds, handler):
    """A signal after so many seconds; 0 for none."""
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def interrupted(work, after):
    """Whether the work was interrupted after so many seconds."""
    try:
        alarm(after, signal.default_int_handler)  # on a busy machine the signal may come before the next line
        work()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return False


def torment(name, phases, signals, chance):
    """Interrupt a phase so many times; how many interrupts were heard."""
    work, threads = getattr(phases, name), blas_threads()
    usual = digest(work)
    begin = time.perf_counter()
    work()
    longest, heard = time.perf_counter() - begin, 0
    for number in range(signals):
        heard += interrupted(work, 1e-4 + chance.random() * longest)
        assert blas_threads() == threads, f"{name}: BLAS has other threads after signal {number}"
        left = [entry for entry in os.listdir(phases.folder) if entry.endswith(".tmp")]
        assert not left, f"{name}: left behind after signal {number}: {left}"
    assert digest(work) == usual, f"{name}: other bits after interrupts"
    looked = []
    for _ in range(max(signals // 10, 1)):
        alarm(1e-4 + chance.random() * longest, lambda *_: looked.append(1))
        assert digest(work) == usual, f"{name}: other bits because of a signal that was handled"
        signal.setitimer(signal.ITIMER_REAL, 0)
    return heard, len(looked)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("phases", nargs="*", help="which phases; all by default")
    parser.add_argument("--signals", type=int, default=100, help="for each phase")
    args = parser.parse_args()
    signals, chance = args.signals, random.Random(0)
    warnings.simplefilter("ignore")
    heard_at_all = 0
    with tempfile.TemporaryDirectory() as folder:
        phases = Phases(Path(folder))
        for name in args.phases or PHASES:
            heard, handled = torment(name, phases, signals, chance)
            heard_at_all += heard
            print(
                f"{name:<12} {heard:4d} of {signals} interrupts heard, {handled} others handled; "
                "the usual bits after",
                flush=True,
            )
    assert heard_at_all > 0


if __name__ == "__main__":
    sys.exit(main())
