"""Adversarial fits, judged in 80-bit arithmetic: whatever the data, a certificate is true or there is none.

Data far from the origin, with one huge value, with columns or rows of very different size, tiny, huge,
repeated, constant, or with extreme weights, for every machine, kernel and kind of bias. A fit runs in a
process that is killed if it takes too long. Kernel values, scores and optimality conditions are computed
again from the model's coefficients alone, by true differences in extended precision.

Every fit must be one of
    right     converged, and the violation is at most tol;
    honest    a ConvergenceWarning, and the violation and the gap are about as reported, or it says that
              float64 cannot prove them;
    refused   a ValueError or a TypeError.
Claims: no fit is wrong (says more than is true, or predicts other labels than its coefficients), none
crashes, none hangs. --full takes every combination of data and model instead of a sample of them.
"""

from __future__ import annotations

import itertools
import multiprocessing
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.exact import judge
from benchmarks.lib.report import Report, options
from multimargin import KernelSVC, LinearSVC

LIMIT = 30.0  # seconds for one fit and its judgement
TIME_LIMIT = 10.0  # what the fit itself is told
SAMPLE = 400  # combinations of the short form
Rows = tuple[Any, np.ndarray, np.ndarray | None]  # X, y, sample weights


def blobs(n: int, m: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % m
    return rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(m, d))[y], y


def changed(change: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray, np.ndarray], Rows]:
    return lambda X, y: (change(X), y, None)


def with_value(at: tuple[int, int], value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(X: np.ndarray) -> np.ndarray:
        X[at] = value
        return X

    return change


def half_shifted(X: np.ndarray, by: float) -> np.ndarray:
    X[: len(X) // 2] += by
    return X


def weighted(value: float) -> Callable[[np.ndarray, np.ndarray], Rows]:
    def change(X: np.ndarray, y: np.ndarray) -> Rows:
        weight = np.ones(len(y))
        weight[3] = value
        return X, y, weight

    return change


def without_a_class(X: np.ndarray, y: np.ndarray) -> Rows:
    weight = np.ones(len(y))
    if y.max() > 1:
        weight[y == 1] = 0.0
    return X, y, weight


SIZES = {
    "60x3, 2 classes": (60, 2, 3),
    "150x4, 3 classes": (150, 3, 4),
    "150x40, 3 classes": (150, 3, 40),
    "90x5, 9 classes": (90, 9, 5),
}
CHANGES: dict[str, Callable[[np.ndarray, np.ndarray], Rows]] = {
    "as they are": changed(lambda X: X),
    "float32": changed(lambda X: X.astype("f4")),
    "CSR": changed(sp.csr_matrix),
    "one value 1e12": changed(with_value((0, 0), 1e12)),
    "one value 1e18": changed(with_value((0, 0), 1e18)),
    "offset 1e4, float32": changed(lambda X: (X + 1e4).astype("f4")),
    "offset 1e7": changed(lambda X: X + 1e7),
    "offset 1e7, CSR": changed(lambda X: sp.csr_matrix(X + 1e7)),
    "offset 1e8, CSR": changed(lambda X: sp.csr_matrix(X + 1e8)),
    "offset 1e4, CSR float32": changed(lambda X: sp.csr_matrix((X + 1e4).astype("f4"))),
    "half offset 1e7": changed(lambda X: half_shifted(X, 1e7)),
    "half offset 1e4, float32": changed(lambda X: half_shifted(X, 1e4).astype("f4")),
    "columns 1e-6 to 1e6": changed(lambda X: X * np.logspace(-6, 6, X.shape[1])),
    "times 1e7": changed(lambda X: X * 1e7),
    "times 1e-8": changed(lambda X: X * 1e-8),
    "times 1e-20, float32": changed(lambda X: (X * 1e-20).astype("f4")),
    "times 1e20, float32": changed(lambda X: (X * 1e20).astype("f4")),
    "times 1e-160": changed(lambda X: X * 1e-160),
    "times 1e200": changed(lambda X: X * 1e200),
    "pixels, uint16": changed(lambda X: np.clip(8000 * X + 30000, 0, 65535).astype(np.uint16)),
    "all zero": changed(np.zeros_like),
    "all rows equal": changed(lambda X: np.ones_like(X) * X[:1]),
    "rows twice, labels differ": lambda X, y: (np.repeat(X[::2], 2, axis=0), y, None),
    "weight 1e-15": weighted(1e-15),
    "weight 1e-300": weighted(1e-300),
    "weight 1e15": weighted(1e15),
    "weight 1e300": weighted(1e300),
    "a class of weight 0": without_a_class,
}
MACHINES = ("crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest", "c-svc")
KERNELS: dict[str, dict[str, Any]] = {
    "rbf": {"kernel": "rbf"},
    "rbf, 1/d": {"kernel": "rbf", "gamma": "auto"},
    "rbf, 1e-9": {"kernel": "rbf", "gamma": 1e-9},
    "laplacian": {"kernel": "laplacian"},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly"},
    "poly, 1e-9": {"kernel": "poly", "gamma": 1e-9, "coef0": 1.0},
    "sigmoid": {"kernel": "sigmoid"},
}
COSTS = (1e-9, 1.0, 1e5, 1e9)
BIASES = ("auto", "none", "free")
ENGINES = ("cpu", "numpy")


class Case(NamedTuple):
    """One fit: keys of the tables above, and the parameters of the model."""

    size: str
    change: str
    model: str  # "KernelSVC" or "LinearSVC"
    params: dict[str, Any]

    def __str__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        return f"{self.size}; {self.change}; {self.model}({said})"


def cases(full: bool, seed: int) -> Iterator[Case]:
    """All combinations that make sense, or a random sample of them."""
    found = []
    for size, change in itertools.product(SIZES, CHANGES):
        two = SIZES[size][1] == 2
        for C in COSTS:
            found.append(Case(size, change, "LinearSVC", {"C": C}))
        for machine, kernel, C, bias, engine in itertools.product(MACHINES, KERNELS, COSTS, BIASES, ENGINES):
            if (machine == "c-svc") > two or (machine == "c-svc" and bias != "auto"):
                continue
            if engine == "numpy" and (bias == "free" or SIZES[size][0] > 90):
                continue
            params = {"machine": machine, **KERNELS[kernel], "C": C, "bias": bias, "engine": engine}
            found.append(Case(size, change, "KernelSVC", params))
    if full:
        return iter(found)
    rng = np.random.default_rng(seed)
    return (found[k] for k in sorted(rng.choice(len(found), SAMPLE, replace=False)))


def verdict(case: Case) -> tuple[str, str]:
    """Fit and judge: one of the words of the module's head, or "WRONG", and what was found."""
    X, y, weight = CHANGES[case.change](*blobs(*SIZES[case.size]))
    make = KernelSVC if case.model == "KernelSVC" else LinearSVC
    model = make(**case.params, time_limit=TIME_LIMIT)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = perf_counter()
        try:
            model.fit(X, y, weight)
        except (ValueError, TypeError) as error:
            return "refused", str(error)
        took = perf_counter() - start
    warnings_ = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    if any("cannot prove" in text for text in warnings_):
        return "honest", "not proved in float64"
    warned = bool(warnings_)
    found = judge(model, X, y, weight)
    wrong = found.wrong(model)
    if took > 1.5 * TIME_LIMIT:
        wrong.append(f"took {took:.0f} s for a limit of {TIME_LIMIT:g} s")
    if warned == model.status_.converged:
        wrong.append("warned though converged" if warned else "did not warn")
    if wrong:
        return "WRONG", "; ".join(wrong)
    return ("honest", f"{model.status_.name} at {found.violation:.2g}") if warned else ("right", "")


def serve(pipe: Connection) -> None:
    """In the child: judge cases until told to stop."""
    np.seterr(all="ignore")
    while (case := pipe.recv()) is not None:
        try:
            pipe.send(verdict(case))
        except Exception as error:  # whatever it is, it is a finding
            pipe.send(("CRASH", f"{type(error).__name__}: {error}"))


class Judge:
    """A child process that judges cases; another one if it dies or hangs."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def _start(self) -> None:
        self._pipe, theirs = self._context.Pipe()
        self._child = self._context.Process(target=serve, args=(theirs,), daemon=True)
        self._child.start()
        theirs.close()
        self._first = True

    def __call__(self, case: Case) -> tuple[str, str]:
        self._pipe.send(case)
        patience, self._first = LIMIT + (60 if self._first else 0), False  # imports come on top
        try:
            if self._pipe.poll(patience):
                return self._pipe.recv()
            found = "HANG", f"not done after {LIMIT:g} s"
        except EOFError:
            found = "CRASH", "the process died"
        self._child.kill()
        self._start()
        return found

    def close(self) -> None:
        self._pipe.send(None)
        self._child.join()


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the sample of combinations")
    parser.add_argument("--only", help="only cases whose description has this text")
    args = parser.parse_args()
    report = Report("hard_data", args, words=("PASS", "MISS"))
    judge_case, counts = Judge(), Counter()
    for case in cases(args.full, args.seed):
        if args.only and args.only not in str(case):
            continue
        word, detail = judge_case(case)
        counts[word] += 1
        report.keep("cases", {"case": str(case), "verdict": word, "detail": detail})
        if word.isupper():
            print(f"{word:8} {case}\n         {detail}", flush=True)
    judge_case.close()
    said = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    report.claim("no fit is wrong, crashes or hangs", not any(word.isupper() for word in counts), said)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
