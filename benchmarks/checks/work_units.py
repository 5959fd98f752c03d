"""Are the work units of ``multimargin/inner/work.py`` still true on this machine?

The solvers choose between methods by counting work, never by a clock. This script measures in CPU seconds,
with one thread, what each constant of that table assumes, and prints both:

- the time of one unit of descent, in fits of three machines, and how long the longest single descent takes;
- multiply-adds of the interior point and of the leap that take as long as one unit, and the steps they took;
- for kernel values, by a line through the times of several numbers of features: what a value costs beside its
  features, how much faster integers are, what the first touch of memory costs, and adding a kept value;
- seconds of the longest native calls, which delay Ctrl-C.

Reported, not a bar: the constants decide which way a fit goes, so they do not follow one machine. "off" marks
a ratio of more than 3. Takes about 20 seconds on a quiet core; --full adds a larger fit.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from multimargin import KernelSVC, _core
from multimargin.engines.cpu.layouts import Layout
from multimargin.engines.cpu.leap import _STEP_WORK, Leap
from multimargin.engines.cpu.proximal_newton import ProximalModel, Solved
from multimargin.engines.cpu.solvers import _NATIVE, Solvers
from multimargin.inner import PairDescent, work
from multimargin.inner.undecided_interior_point import _Undecided
from multimargin.kernels import RBF

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.checks.kernel_rows import rows_of, scores_of
from benchmarks.lib.report import Report, Table, options

FEATURES = (16, 64, 256, 1024)
SAMPLES, ROWS = 8192, 128  # ROWS × SAMPLES float32 values are 4 MB
TOUCHED, TOUCHES = 1 << 24, 8  # values: 64 MB, and how many times that
OFF = 3.0
SWEEPS, PAIRS, INTERIOR, LEAP = "sweeps", "pairs", "interior point", "leap"


# -- fits ------------------------------------------------------------------------------------------------
class Spent(NamedTuple):
    """One call of a solver."""

    kind: str
    work: float  # units of descent, or multiply-adds of the others
    steps: int
    seconds: float


@contextmanager
def watched() -> Iterator[list[Spent]]:
    """What solvers spend inside of this context."""
    calls: list[Spent] = []
    steps: list[int] = []  # of the models of one leap
    originals = [
        (owner, name, getattr(owner, name))
        for owner, name in (
            (Solvers, "_sweeps"),
            (_Undecided, "minimise"),
            (ProximalModel, "minimise"),
            (Leap, "take"),
        )
    ]
    sweeps, interior, newton, take = (original for _, _, original in originals)
    pairs = _NATIVE[PairDescent.name]

    def descent(kind: str, original: Callable) -> Callable:
        def call(self: Solvers, *args: Any) -> Any:
            before, start = self.work, process_time()
            found = original(self, *args)
            calls.append(Spent(kind, self.work - before, 1, process_time() - start))
            return found

        return call

    def inside(self: Any, *args: Any) -> int:
        start = process_time()
        count = interior(self, *args)
        calls.append(Spent(INTERIOR, count * interior_step(self), count, process_time() - start))
        return int(count)

    def counted(self: ProximalModel, *args: Any) -> Solved:
        found = newton(self, *args)
        steps.append(found.steps)
        return found

    def leap(self: Leap, *args: Any) -> bool:
        steps.clear()
        step, start = leap_step(self), process_time()
        moved = take(self, *args)
        calls.append(Spent(LEAP, sum(steps) * step, sum(steps), process_time() - start))
        return bool(moved)

    Solvers._sweeps, _NATIVE[PairDescent.name] = descent(SWEEPS, sweeps), descent(PAIRS, pairs)
    _Undecided.minimise, ProximalModel.minimise, Leap.take = inside, counted, leap
    try:
        yield calls
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)
        _NATIVE[PairDescent.name] = pairs


def interior_step(of: _Undecided) -> float:
    """Multiply-adds of one step, as ``InteriorPoint`` counts them."""
    u = np.array([part.stop - part.start for part in of.part], dtype=float)
    return float((u**3).sum() + len(of.C) ** 3 / 3)


def leap_step(leap: Leap) -> float:
    """Multiply-adds of one step, as ``Leap`` counts them."""
    return (leap.work(leap._rank) / (leap._share * work.LEAP_STEPS) - _STEP_WORK) * work.LEAP


def fits(full: bool) -> Iterator[tuple[str, KernelSVC, np.ndarray, np.ndarray]]:
    """Problems on which descents take long, and one method or the other finishes."""
    X, y = load_digits(return_X_y=True)
    X /= 16
    yield "digits, crammer-singer", KernelSVC(C=100, gamma=0.001), X, y
    yield "digits, one-vs-rest", KernelSVC("one-vs-rest", C=100, gamma=0.001), X, y
    yield "digits, c-svc", KernelSVC("c-svc", C=100, gamma=0.001), X, y == 8
    yield "digits, nearly linear", KernelSVC(C=1e4, gamma=1e-4), X, y
    X, y = make_classification(
        4000,
        4,
        n_informative=4,
        n_redundant=0,
        n_classes=6,
        n_clusters_per_class=1,
        flip_y=0.1,
        random_state=0,
    )
    yield "four features", KernelSVC(C=10, gamma=0.01), X, y
    X, y = make_classification(
        3000, 16, n_informative=10, n_classes=10, flip_y=0.1, random_state=0, shuffle=True
    )
    X /= X.std(axis=0)
    yield "ten classes", KernelSVC(C=10, gamma=0.01), X, y
    if full:
        yield "ten classes, C = 100", KernelSVC(C=100, gamma=0.01), X, y


def watch_fits(report: Report, full: bool) -> list[Spent]:
    """Every call of a solver in all fits."""
    table = Table(("fit", "solver", "calls", "steps", "work", "CPU sec.", "ns"), (24, 14, 6, 6, 9, 9, 7))
    everything = []
    for name, model, X, y in fits(full):
        with watched() as calls, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.set_params(n_threads=1).fit(X, y)
        for kind in dict.fromkeys(call.kind for call in calls):
            own = [call for call in calls if call.kind == kind]
            done, seconds = sum(call.work for call in own), sum(call.seconds for call in own)
            steps = sum(call.steps for call in own) if kind in (INTERIOR, LEAP) else ""
            ns = seconds / done * 1e9
            table.row(name, kind, len(own), steps, f"{done:.2e}", f"{seconds:.2f}", f"{ns:.3f}")
            report.keep("fits", {"fit": name, "solver": kind, "work": done, "seconds": seconds})
        everything += calls
    return everything


# -- kernel values ---------------------------------------------------------------------------------------
def best_seconds(call: Callable[[], object], repeats: int) -> float:
    call()
    seconds = []
    for _ in range(repeats):
        start = process_time()
        call()
        seconds.append(process_time() - start)
    return min(seconds)


def line(kind: type, call_of: Callable, repeats: int) -> tuple[float, float]:
    """Nanoseconds of a value: beside its features, and per feature."""
    rng, times = np.random.default_rng(0), []
    for d in FEATURES:
        X = rng.integers(0, 256, (SAMPLES, d)) if kind is np.uint8 else rng.normal(size=(SAMPLES, d))
        X = X.astype(kind)
        layout = Layout.plan(RBF(1.0 / (d * X.var())), X, "auto")
        seconds = best_seconds(call_of(layout.samples(X), layout.spec(0.0)), repeats)
        times.append(seconds / (SAMPLES * ROWS) * 1e9)
    weights = 1 / np.array(times)  # relative errors count
    slope, rest = np.polyfit(FEATURES, times, 1, w=weights)
    return float(rest), float(slope)


def rows_call(samples: Any, spec: Any) -> Callable[[], None]:
    return rows_of(samples, spec, ROWS, np.float32)


def scores_call(samples: Any, spec: Any) -> Callable[[], None]:
    return scores_of(samples, spec, ROWS)


def touch_ns() -> tuple[float, float]:
    """Of one float32 value, least and most: writing fresh memory, less writing the same memory again.

    Pages that the system has at hand are cheap. Those that a virtual machine has to ask its host for are not.
    """
    kept, times = [], []
    for _ in range(TOUCHES):  # all are kept, so that each gets other pages
        start = process_time()
        kept.append(np.empty(TOUCHED, dtype=np.float32))
        kept[-1].fill(1.0)
        middle = process_time()
        kept[-1].fill(2.0)
        times.append((middle - start) - (process_time() - middle))
    return min(times) / TOUCHED * 1e9, max(times) / TOUCHED * 1e9


def read_ns(repeats: int) -> float:
    """Of adding one kept value to the gradient, in the three of 26 classes in which its sample has weight."""
    rng, q, m = np.random.default_rng(0), 4096, 26  # 128 MB of values: more than a cache has
    rows = np.ones((q, SAMPLES), dtype=np.float32)
    delta, G = np.zeros((q, m)), np.zeros((SAMPLES, m))
    delta[np.arange(q)[:, None], rng.integers(m, size=(q, 3))] = 1e-3
    seconds = best_seconds(lambda: _core.update_gradient(G, rows, np.arange(q), delta, 1), repeats)
    return seconds / rows.size * 1e9


# -- the table -------------------------------------------------------------------------------------------
class Measured(NamedTuple):
    """One constant: what the table says, and what it is here."""

    name: str
    says: float
    here: float
    means: str
    at_most: bool = False  # less is as good

    @property
    def off(self) -> bool:
        ratio = self.here / self.says
        return ratio > OFF or (ratio < 1 / OFF and not self.at_most)


def of_methods(calls: list[Spent]) -> Iterator[Measured]:
    def ns(*kinds: str) -> float:
        own = [call for call in calls if call.kind in kinds]
        return sum(call.seconds for call in own) / sum(call.work for call in own) * 1e9

    unit = ns(SWEEPS)
    least = work.LEAST_DESCENT / 1e9
    yield Measured("LEAST_DESCENT", 0.5, least * unit, "seconds of the longest first descent", at_most=True)
    yield Measured("", 0.5, least * ns(PAIRS), "the same of pairs (c-svc)", at_most=True)
    for kind, name in ((INTERIOR, "INTERIOR_POINT"), (LEAP, "LEAP")):
        own = [call for call in calls if call.kind == kind]
        if own:
            steps = np.mean([call.steps for call in own])
            says = getattr(work, name), getattr(work, f"{name}_STEPS")
            yield Measured(name, says[0], unit / ns(kind), "its multiply-adds per unit of descent")
            yield Measured(f"{name}_STEPS", says[1], steps, "steps")


def of_kernel_values(repeats: int) -> Iterator[Measured]:
    with threadpool_limits(1):
        rest, feature = line(np.float32, rows_call, repeats)
        _, integer = line(np.uint8, rows_call, repeats)
        _, score = line(np.float32, scores_call, repeats)
    least, most = touch_ns()
    yield Measured(
        "KERNEL_VALUE", work.KERNEL_VALUE, rest / feature, "a value beside its features, in features"
    )
    yield Measured("INTEGERS", work.INTEGERS, feature / integer, "integer multiplications for one of floats")
    for touch, pages in ((least, "pages at hand"), (most, "the dearest pages")):
        text = f"first touch of a value, in features: {pages}"
        yield Measured("FIRST_TOUCH", work.FIRST_TOUCH, touch / feature, text)
    yield Measured("READ", work.READ, read_ns(repeats) / feature, "adding a kept value, in features")
    seconds = work.KERNEL_ROWS_CALL * feature / 1e9
    yield Measured("KERNEL_ROWS_CALL", 1.0, seconds, "seconds of the longest call for rows", at_most=True)
    seconds = work.SCORES_CALL * score / 1e9
    yield Measured("SCORES_CALL", 1.0, seconds, "seconds of the longest call for scores", at_most=True)


def main() -> int:
    parser = options(__doc__, repeats=5)
    args = parser.parse_args()
    report = Report("work_units", args)
    calls = watch_fits(report, args.full)
    print()
    table = Table(("constant", "in the table", "here", "ratio", "", "meaning"), (22, 12, 10, 6, 3, 54))
    for found in (*of_methods(calls), *of_kernel_values(args.repeats)):
        ratio = found.here / found.says
        off = "off" if found.off else ""
        table.row(found.name, f"{found.says:.4g}", f"{found.here:.4g}", f"{ratio:.2f}", off, found.means)
        report.keep("constants", found._asdict() | {"ratio": ratio})
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
