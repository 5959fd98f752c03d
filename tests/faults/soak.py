"""Fit random machines on random data for an hour, and watch the memory: it must stay flat.

    python tests/faults/soak.py --seconds 3600

Every fit is random in everything: machine, kernel, bias, method, engine, threads, form and size of the data,
and what is done with the model. One in eight is broken off: by a time limit, a callback that raises, data
that are refused or a signal. Models are predicted with, saved, loaded, reported and dropped. What is watched
after garbage collection is the memory that is in use (allocated by malloc and not freed), the blocks that
Python has for its objects, the resident memory, open files, threads and temporary files. The first fifth of
the time is for caches to fill. After that, MOST is what the middle of the last fifth may be above the middle
of the second one: resident memory also grows because blocks of ever new sizes leave gaps between them. Malloc
does not see Python's small objects, and Python does not see what NumPy's arrays and native code hold. Nothing
may be installed in this environment meanwhile: Python would keep another list of its packages.
"""

import argparse
import ctypes
import gc
import os
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from multimargin import KernelSVC, KernelSVCCV, LinearSVC, load

MOST = {"resident": 4 << 20, "used": 1 << 17, "blocks": 200, "files": 0, "threads": 0}  # two in bytes
LOOK = 2.0  # seconds between two looks at the memory
MACHINES = ("crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest")
KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian")


class BrokenOff(Exception):  # noqa: N818  (not an error)
    """What a callback raises."""


def random_data(rng, chance):
    """Samples in one of the forms that fits take, and labels."""
    n, d, m = chance.randrange(10, 250), chance.randrange(2, 40), chance.randrange(2, 8)
    y = np.arange(n) % m
    X = rng.normal(size=(n, d)) + rng.normal(size=(m, d))[y]
    form = chance.randrange(6)
    if form == 1:
        X = X.astype(np.float32)
    elif form == 2:
        X = np.round(3 * X).astype(np.int8)
    elif form == 3:
        X = (X > 0).astype(np.uint8)
    elif form == 4:
        X = sparse.csr_array(np.where(abs(X) > 1, X, 0))
    elif form == 5:
        X = np.asfortranarray(X)
    names = chance.choice((y, y + 0.5, np.array([f"class {k}" for k in y])))
    return X, names


def random_model(chance):
    """An estimator that was not fitted."""
    threads = chance.choice((1, 2))
    C = 10 ** chance.uniform(-2, 2)
    kind = chance.randrange(8)
    if kind == 0:
        machine = chance.choice(("crammer-singer", "weston-watkins", "one-vs-rest"))
        return LinearSVC(machine, C=C, n_threads=threads, max_iter=100)
    if kind == 1:
        return KernelSVCCV(Cs=[0.1, C], gammas=[0.1], cv=2, n_threads=threads)
    machine = chance.choice(MACHINES)
    params = {
        "C": C,
        "n_threads": threads,
        "kernel": chance.choice(KERNELS),
        "gamma": chance.choice((0.02, 0.3)),
    }
    params["bias"] = chance.choice(("auto", "none", "regularized", "free"))
    if machine == "crammer-singer" and params["bias"] != "free":
        params["solver"] = chance.choice(("auto", "auto", "dasmc", "msvmpack"))
    if chance.random() < 0.1:
        params["engine"] = "numpy"
    if chance.random() < 0.2:
        params |= {"cache_size": 0.05, "dtype": "float32"}
    return KernelSVC(machine, max_iter=200, time_limit=2.0, **params)


def break_off(chance, model, X, y):
    """A fit that ends before it is done."""
    way = chance.randrange(4)
    if way == 0 and not isinstance(model, KernelSVCCV):
        model.set_params(time_limit=1e-4).fit(X, y)
    elif way == 1 and not isinstance(model, KernelSVCCV):

        def stop(_):
            raise BrokenOff

        model.set_params(callback=stop).fit(X, y)
    elif way == 2:
        bad = X.toarray() if sparse.issparse(X) else X.astype(float)
        bad[0, 0] = np.nan
        model.fit(bad, y)
    else:
        model.fit(X, y[:-1])


def one(number, folder):
    """Fit once; raises if something is wrong. Whether the fit was done."""
    chance, rng = random.Random(number), np.random.default_rng(number)
    (X, y), model = random_data(rng, chance), random_model(chance)
    try:
        if chance.random() < 0.125:
            break_off(chance, model, X, y)
            return False
        if chance.random() < 0.05 and isinstance(model, KernelSVC):
            path = folder / "fit.checkpoint"
            path.unlink(missing_ok=True)
            model.set_params(checkpoint=(path, 0.0))
        model.fit(X, y)
    except (ValueError, BrokenOff):
        return False
    use(chance, model, X, folder)
    return True


def use(chance, model, X, folder):
    scores = model.decision_function(X)
    assert np.isfinite(scores).all(), "scores are not finite"
    assert np.isin(model.predict(X), model.classes_).all()
    best = getattr(model, "best_estimator_", model)
    assert np.isfinite(best.duality_gap_), "the gap is not finite"
    if chance.random() < 0.1:
        model.save(folder / "model.mm")
        back = load(folder / "model.mm", mmap=chance.random() < 0.5)
        np.testing.assert_array_equal(back.decision_function(X), scores)
    if chance.random() < 0.05:
        model.report(folder / "page.html")


class MallocFacts(ctypes.Structure):
    """The mallinfo2 of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks"),
            *("fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def fill_numpy_cache():
    """Let NumPy keep now what it keeps in the end: seven freed blocks of each size below 1 kB, 3.7 MB."""
    held = [np.empty(size, np.uint8) for size in range(1, 1024) for _ in range(8)]
    del held


def fill_string_table():
    """Let Python's table of shared strings have now the size that it has in the end.

    Every name in a path takes a place in it. The places of names that are gone come back when all are taken:
    then the table is made anew for three times the strings that are alive, which doubles it once.
    """
    for number in range(1 << 18):
        sys.intern(f"soak {number}")


def imported_from():
    """When the folders were changed from which Python imports."""
    return {path: os.stat(path).st_mtime_ns for path in sys.path if os.path.isdir(path)}


class Look(NamedTuple):
    """What a process holds at a moment."""

    seconds: float
    fits: float
    resident: float  # bytes
    used: float  # bytes
    blocks: float
    files: float
    threads: float


class Watch:
    """Looks at what a process holds."""

    def __init__(self, seconds):
        self._room = np.zeros((int(seconds / LOOK) + 2, len(Look._fields)))  # must not grow itself
        self._count = 0
        libc = ctypes.CDLL(None)
        self.trim, self.facts = getattr(libc, "malloc_trim", None), getattr(libc, "mallinfo2", None)
        if self.facts is not None:
            self.facts.restype = MallocFacts
        fill_numpy_cache()
        fill_string_table()

    def look(self, seconds, fits):
        gc.collect()
        if self.trim is not None:
            self.trim(0)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        held = [len(os.listdir(f"/proc/self/{what}")) for what in ("fd", "task")]
        facts = MallocFacts() if self.facts is None else self.facts()
        used = facts.uordblks + facts.hblkhd
        size = pages * os.sysconf("SC_PAGE_SIZE")
        found = Look(seconds, fits, size, used, sys.getallocatedblocks(), *held)
        self._room[self._count] = found
        self._count += 1
        return found

    def part(self, first, last):
        """Medians of the looks in that part of the time."""
        looks = self._room[: self._count]
        when = looks[:, 0] / looks[-1, 0]
        return Look(*np.median(looks[(first <= when) & (when <= last)], axis=0))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--first", type=int, default=0, help="number of the first fit")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    watch, number, done, shown, seen = Watch(args.seconds), args.first, 0, 0.0, None
    start, folders = time.monotonic(), imported_from()
    with tempfile.TemporaryDirectory() as name, np.errstate(all="ignore"):
        folder = Path(name)
        while (now := time.monotonic() - start) < args.seconds:
            try:
                done += one(number, folder)
            except BaseException:
                print(f"fit {number} failed: python tests/faults/soak.py --first {number}", flush=True)
                raise
            number += 1
            if seen is None or now - seen.seconds >= LOOK:
                seen = watch.look(now, number - args.first)
            if now - shown > 60:
                shown = now
                used, resident = (size / (1 << 20) for size in (seen.used, seen.resident))
                sizes = f"{used:.2f} and {resident:.1f} MiB, {seen.blocks:,.0f} blocks"
                print(f"{now:6.0f} s: fit {number:,}, {sizes}", flush=True)
        left = [entry for entry in os.listdir(folder) if entry.endswith(".tmp")]
    print(f"{number - args.first:,} fits, {done:,} of them done, in {args.seconds:.0f} s")
    if imported_from() != folders:
        print("something was installed meanwhile, so that Python has more blocks: run it again")
    return report(watch, left)


def report(watch, left):
    """Print what was seen; 1 if something grew."""
    first, last = watch.part(0.2, 0.4), watch.part(0.8, 1)
    print(f"held after {first.fits:,.0f} and {last.fits:,.0f} fits, and growth:")
    grown = {what: getattr(last, what) - getattr(first, what) for what in MOST}
    for what, more in grown.items():
        print(f"{what:8} {getattr(first, what):13,.0f} {getattr(last, what):13,.0f} {more:+11,.0f}")
    print(f"temporary files left: {len(left)}")
    flat = all(more <= MOST[what] for what, more in grown.items())  # not of NaN: no look in a fifth
    return int(not flat or bool(left))


if __name__ == "__main__":
    sys.exit(main())
