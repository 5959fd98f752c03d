"""Kill processes that write files at random moments: the file is the old one or the new one, and never torn.

    python tests/faults/kills.py                 # 1,000 kills, shared out among the writers
    python tests/faults/kills.py save report --kills 40

A process that has imported everything forks one child per kill. The child writes the same file again and
again: two models in turn by `save`, two reports in turn by `report`, or the checkpoint of a fit or of a
search after every round. After each kill the file must be one of the two, bit by bit, or a checkpoint that is
not behind the last one. A kill that leaves a temporary file hit a child while it was writing; the next child
must remove what it left.
"""

import argparse
import os
import random
import re
import select
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from multimargin import KernelSVC, KernelSVCCV
from multimargin.run.checkpoint_file import read
from multimargin.run.sealed_file import read_sealed
from multimargin.selection.search_file import MAGIC

X, Y = load_digits(return_X_y=True)
X, Y = X[:150] / 16.0, Y[:150]
LONGEST = 0.03  # seconds from the first write of a child to its end
OF_SEARCH = 0.5  # from its start


class Whole:
    """A writer of two files in turn."""

    longest = LONGEST

    def __init__(self, path, name):
        models = [KernelSVC(C=C, n_threads=1).fit(X, Y) for C in (0.5, 5.0)]
        self.path, self.seen = path, set()
        self.write = [getattr(model, name) for model in models]
        self.contents = [self.content(write) for write in self.write]
        assert self.contents[0] != self.contents[1]

    def content(self, write):
        write(self.path)
        return self.read()

    def read(self):
        """What is in the file, without the time at which a report was written."""
        return re.sub(rb"<time .*?</time>", b"", self.path.read_bytes())

    def child(self, say):
        for turn in range(1 << 30):
            self.write[turn % 2](self.path)
            say()

    def check(self):
        """Raise unless the file is one of the two."""
        found = self.read()
        assert found in self.contents, f"a torn file of {len(found)} bytes"
        self.seen.add(self.contents.index(found))

    def finish(self):
        assert self.seen == {0, 1}, "one of the two files was never seen"
        self.write[0](self.path)


class Fit:
    """A fit with a checkpoint, which goes on after every kill."""

    longest = LONGEST

    def __init__(self, path, machine="crammer-singer", bias="none"):
        self.path, self.iterations = path, 0
        binary = machine == "c-svc"
        self.y = Y % 2 if binary else Y
        self.slow = {"solver": "svm-light"} if binary else {"solver": "dasmc", "working_set_size": 4}
        self.given = {"machine": machine, "bias": bias, "C": 10.0, "tol": 1e-5, "n_threads": 1}

    def model(self, **params):
        return KernelSVC(**self.given, **params)

    def child(self, say):
        def each_round(_):
            say()  # what it returns would stop the fit

        self.model(**self.slow, checkpoint=(self.path, 0.0), callback=each_round).fit(X, self.y)

    def check(self):
        if not self.path.exists():
            assert self.iterations == 0, "the checkpoint is lost"
            return
        now = read(self.path).facts["iterations"]
        assert now >= self.iterations, "the checkpoint went back"
        self.iterations = now

    def finish(self):
        assert self.iterations > 0, "no child got on"
        model = self.model(checkpoint=self.path).fit(X, self.y)
        whole = self.model().fit(X, self.y)
        assert model.status_.name == "CONVERGED"
        assert model.n_iter_ >= self.iterations, "the fit began anew"
        bound = model.duality_gap_ + whole.duality_gap_ + 1e-9
        assert abs(model.dual_objective_ - whole.dual_objective_) <= bound, "another solution"


class Search:
    """A search with a checkpoint; it begins anew when it is done."""

    longest = OF_SEARCH

    def __init__(self, path):
        self.path = path

    def search(self, checkpoint=None):
        grid = {"Cs": np.geomspace(0.1, 10, 8), "gammas": [0.01, 0.1], "cv": 2, "drop": None}
        return KernelSVCCV(**grid, n_threads=1, checkpoint=checkpoint).fit(X[:60], Y[:60])

    def child(self, say):
        say()
        while True:
            self.search((self.path, 0.0))
            self.path.unlink()

    def check(self):
        if self.path.exists():
            read_sealed(self.path, MAGIC, "checkpoint of a search")  # ValueError if it is torn

    def finish(self):
        found, whole = self.search(self.path), self.search()
        assert found.best_params_ == whole.best_params_
        np.testing.assert_array_equal(*(done.cv_results_["mean_test_score"] for done in (found, whole)))


WRITERS = {
    "save": lambda path: Whole(path, "save"),
    "report": lambda path: Whole(path, "report"),
    "checkpoint of a fit": Fit,
    "checkpoint, free bias": lambda path: Fit(path, bias="free"),
    "checkpoint, c-svc": lambda path: Fit(path, "c-svc", "auto"),
    "checkpoint, msvm2": lambda path: Fit(path, "msvm2"),
    "checkpoint of a search": Search,
}


def kill_one(writer, chance, at_start):
    """Start a child and kill it. Whether it was heard to fail."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        try:
            writer.child(lambda: os.write(theirs, b"."))
        except BaseException as error:
            os.write(theirs, b"!")
            sys.stderr.write(f"{error!r}\n")
        os._exit(0)
    os.close(theirs)
    if not at_start:
        select.select([ours], [], [], 60.0)
    time.sleep(chance.random() * writer.longest)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    failed = False
    while part := os.read(ours, 65536):
        failed = failed or b"!" in part
    os.close(ours)
    return failed


def kill(name, kills, folder):
    """Kill a writer so many times; how many kills hit a write."""
    path = folder / "file"
    writer, chance, hit = WRITERS[name](path), random.Random(name), 0
    for number in range(kills):
        assert not kill_one(writer, chance, at_start=number % 5 == 0), "a child failed"
        left = [entry for entry in os.listdir(folder) if entry != path.name]
        assert len(left) <= 1, f"what earlier ones left was not removed: {left}"
        hit += len(left)
        writer.check()
    writer.finish()
    assert os.listdir(folder) == [path.name], "temporary files are left"
    return hit


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("writers", nargs="*", help="which writers; all by default")
    parser.add_argument("--kills", type=int, default=1000, help="in all")
    args = parser.parse_args()
    warnings.simplefilter("error")  # that a checkpoint could not be written is a warning
    warnings.filterwarnings("ignore", "This process.*is multi-threaded", DeprecationWarning)
    names = args.writers or list(WRITERS)
    for number, name in enumerate(names):
        kills = args.kills // len(names) + (number < args.kills % len(names))
        with tempfile.TemporaryDirectory() as folder:
            hit = kill(name, kills, Path(folder))
        print(f"{name:<24} {kills:5d} kills, {hit:4d} of them during a write; torn or lost: 0", flush=True)


if __name__ == "__main__":
    main()
