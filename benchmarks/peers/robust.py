"""Ours against scikit-learn's SVC on data that nobody tuned for.

scikit-learn's bundled sets, 200 classes, 40% wrong labels, 100,000 rows, rare classes, repeated rows, more
features than rows, sparse text-like rows, unscaled features. γ = 1 / (d var X), C as below. Claims: every
model is certified, and none takes more than 1.2 times SVC's seconds. --full is no longer than the short form.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler, normalize

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.lib.arena import Limits, View, race
from benchmarks.lib.bars import check_certified, check_ratio, said
from benchmarks.lib.contenders import CONTENDERS, OURS, SVC
from benchmarks.lib.data import Split
from benchmarks.lib.plot import draw_bars
from benchmarks.lib.report import Report, Table, options

BAR = 1.2
TESTED = 5000  # rows kept for testing, or a quarter if that is less


class Rows(NamedTuple):
    X: Any
    y: np.ndarray


def bundled(load: Callable, *, standardise: bool = True) -> Rows:
    X, y = load(return_X_y=True)
    return Rows(StandardScaler().fit_transform(X) if standardise else X, y)


def blobs(n: int, d: int, classes: int, spread: float) -> Rows:
    X, y = datasets.make_blobs(n, d, centers=classes, cluster_std=spread, random_state=0)
    return Rows(X, y)


def noisy(share: float) -> Rows:
    """A share of the labels replaced by other ones."""
    X, y = blobs(4000, 10, 5, 4.0)
    rng = np.random.default_rng(0)
    wrong = rng.random(len(y)) < share
    return Rows(X, np.where(wrong, (y + rng.integers(1, 5, len(y))) % 5, y))


def imbalanced() -> Rows:
    X, y = datasets.make_classification(
        10_000, 15, n_informative=10, n_classes=4, weights=[0.95, 0.03, 0.015, 0.005], random_state=0
    )
    return Rows(X, y)


def repeated() -> Rows:
    """600 different rows, each five times."""
    X, y = blobs(600, 10, 4, 4.0)
    return Rows(np.repeat(X, 5, axis=0), np.repeat(y, 5))


def text_like() -> Rows:
    """Word counts by Zipf, each class with favourite words of its own; rows of unit length."""
    rng = np.random.default_rng(0)
    n, d, classes, words = 3000, 10_000, 20, 60
    popular = 1 / np.arange(1, d + 1)
    y = rng.integers(0, classes, n)
    common = rng.choice(d, (n, words), p=popular / popular.sum())
    own = (y[:, None] * 97 + rng.geometric(0.02, (n, words // 4))) % d
    columns = np.hstack([common, own])
    parts = (np.ones(columns.size), (np.repeat(np.arange(n), columns.shape[1]), columns.ravel()))
    return Rows(normalize(sp.coo_matrix(parts, shape=(n, d)).tocsr()), y)


def unscaled() -> Rows:
    """Features whose units differ by eight orders of magnitude."""
    X, y = blobs(3000, 9, 5, 3.0)
    return Rows(X * 10.0 ** np.arange(-4, 5), y)


CASES: dict[str, tuple[float, Callable[[], Rows]]] = {  # name -> C and the rows
    "iris": (1, lambda: bundled(datasets.load_iris)),
    "wine": (1, lambda: bundled(datasets.load_wine)),
    "wine, unscaled": (10, lambda: bundled(datasets.load_wine, standardise=False)),
    "breast cancer": (1, lambda: bundled(datasets.load_breast_cancer)),
    "breast cancer, unscaled": (10, lambda: bundled(datasets.load_breast_cancer, standardise=False)),
    "digits": (10, lambda: bundled(datasets.load_digits, standardise=False)),
    "200 classes": (10, lambda: blobs(8000, 20, 200, 2.0)),
    "40% wrong labels": (1, lambda: noisy(0.4)),
    "100,000 rows": (1, lambda: blobs(100_000 + TESTED, 20, 5, 7.0)),
    "rare classes": (10, imbalanced),
    "repeated rows": (10, repeated),
    "5,000 features": (1, lambda: blobs(250, 5000, 5, 30.0)),
    "text, CSR": (1, text_like),
    "units of 1e-4 to 1e4": (10, unscaled),
}


def view(rows: Rows) -> View:
    """The rows split; γ as scikit-learn's "scale"."""
    X_train, X_test, y_train, y_test = train_test_split(
        *rows, test_size=min(TESTED, len(rows.y) // 4), random_state=0, stratify=rows.y
    )
    mean = X_train.mean()
    square = X_train.multiply(X_train).mean() if sp.issparse(X_train) else np.square(X_train).mean()
    return View(Split(X_train, y_train, X_test, y_test), float(1 / (X_train.shape[1] * (square - mean**2))))


def main() -> int:
    parser = options(__doc__, repeats=3)
    parser.add_argument("--data", nargs="+", choices=CASES, help="these only")
    parser.add_argument("--cap", type=float, default=120, help="seconds for a fit of SVC")
    args = parser.parse_args()
    report = Report("robust", args, words=("PASS", "MISS"))
    table = Table(
        (
            "data",
            "rows",
            "classes",
            "ours",
            "SVC",
            "ratio",
            "acc.",
            "SVC's",
            "SVs",
            "SVC's",
            "ψ",
            "rows",
            "rounds",
        ),
        (24, 7, 7, 8, 8, 6, 6, 6, 6, 6, 8, 6, 6),
    )
    groups, found = {}, {}
    for name, (C, make) in CASES.items():
        if args.data and name not in args.data:
            continue
        data = view(make())
        limits = Limits(args.repeats, patience=3, cap=args.cap, at_least=0.5)
        results = race({"scaled": data}, C, [CONTENDERS[OURS], CONTENDERS[SVC]], limits)
        ours, peer = found[name] = results[OURS], results[SVC]
        table.row(
            name,
            data.split.n,
            len(np.unique(data.split.y_train)),
            said(ours),
            said(peer),
            f"{ours.best / peer.best:.2f}" if ours.best and peer.best else "",
            *("" if result.accuracy is None else f"{result.accuracy:.2f}" for result in (ours, peer)),
            *(result.facts.get("support", "") for result in (ours, peer)),
            f"{ours.judgement.psi:.1e}" if ours.judgement else "",
            *(ours.facts.get(count, "") for count in ("rows", "rounds")),
        )
        for result in results.values():
            report.keep("results", {"data": name, "C": C, "gamma": data.gamma, **result.record()})
        groups[name] = {result.name: result.best for result in results.values() if result.seconds}
    print()
    for name, (ours, peer) in found.items():
        check_certified(report, name, ours)
        check_ratio(report, name, ours, peer, BAR)
    draw_bars(report, "robust", groups, "seconds")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
