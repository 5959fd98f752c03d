"""The papers' datasets, prepared as their tables need them.

Files are looked for in ``../shared/data`` beside the repository, or in ``$MULTIMARGIN_DATA``; a benchmark
whose data is not there says so and ends with status 0. RBF kernel everywhere, C = 1/β in Niu & Yuan's terms.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold

from benchmarks.workers.storage import Split, read_matrix

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("MULTIMARGIN_DATA", ROOT.parent / "shared" / "data"))


@dataclass(frozen=True)
class Problem:
    """A dataset with its parameters; more than one split means cross-validation."""

    name: str
    C: float
    gamma: float
    splits: tuple[Split, ...]

    @property
    def n(self) -> float:
        """Training rows, the mean over the splits."""
        return sum(split.n for split in self.splits) / len(self.splits)


def as_is(train, test):
    return train, test


def over(divisor: float) -> Callable:
    return lambda train, test: (train / divisor, test / divisor)


def to_unit_range(train, test):
    """Every feature to [-1, 1] by the training rows' smallest and largest value."""
    low, high = train.min(axis=0), train.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    return 2 * (train - low) / span - 1, 2 * (test - low) / span - 1


def of_length_one(train, test):
    """From [-1, 1] to [0, 1], then every row to length one."""
    return tuple((X + 1) / np.linalg.norm(X + 1, axis=1, keepdims=True) for X in (train, test))


def standardised(train, test):
    """Every feature to mean 0 and variance 1 by the training rows."""
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    return (train - mean) / deviation, (test - mean) / deviation


@dataclass(frozen=True)
class Recipe:
    C: float
    gamma: float
    scale: Callable
    folds: int = 0
    file: str | None = None  # if the name is not the file's
    train: int | None = None  # of a file without test part: the rows before, and the ones from here on


RECIPES = {
    # Niu & Yuan, Table 1. Scalings that reproduce their accuracies; shuttle needs its raw values.
    "vowel": Recipe(2, 8, to_unit_range),
    "glass": Recipe(16, 2, to_unit_range, folds=5),
    "satimage": Recipe(4, 4, to_unit_range),
    "shuttle": Recipe(8, 2**-9, as_is),
    "mnist": Recipe(4, 2**-5, over(255)),
    "isolet": Recipe(256, 2**-6, as_is),
    "letter": Recipe(8, 4, over(15)),
    # Didiot & Lauer, Table 1: RBF with σ = 1 (γ = 1/2), for mnist 1000 on raw pixels.
    "ImageSeg": Recipe(10, 0.5, standardised, file="segment"),
    "USPS_500": Recipe(10, 0.5, of_length_one, file="usps"),
    "MNIST": Recipe(1, 0.5e-6, as_is, file="mnist"),
    "Letter": Recipe(1, 0.5, to_unit_range, file="letter"),
    # Serafini, Zanghirati & Zanni, Section 3: RBF with σ = 1800 on raw pixels; a9a below is theirs too.
    "mnist-raw": Recipe(10, 0.5 / 1800**2, as_is, file="mnist"),
    # Beyond the papers.
    "usps": Recipe(10, 1 / 128, as_is),
    "segment": Recipe(256, 2**-4, to_unit_range),
    "connect4": Recipe(2, 2**-4, as_is, train=20_000),
    "a9a": Recipe(1, 0.05, as_is),
    "shuttle-scaled": Recipe(128, 32, to_unit_range, file="shuttle"),
}


def load(
    name: str, rows: int | None = None, test_rows: int | None = None, scale: Callable | None = None
) -> Problem:
    """The named problem, cut to its first ``rows`` and ``test_rows``; ``scale`` replaces its own scaling."""
    recipe = RECIPES[name]
    splits = []
    for X_train, y_train, X_test, y_test in _parts(recipe, read_stored(recipe.file or name), rows, test_rows):
        X_train, X_test = (scale or recipe.scale)(X_train, X_test)
        splits.append(Split(X_train, y_train, X_test, y_test))
    return Problem(name, recipe.C, recipe.gamma, tuple(splits))


def load_digits_problem() -> Problem:
    """scikit-learn's digits: X / 16, 1,198 of them in a fixed random order to train on."""
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))  # the order of a published optimum
    X, y = digits.data[order] / 16, digits.target[order]
    return Problem("digits", 10.0, 0.05, (Split(X[:1198], y[:1198], X[1198:], y[1198:]),))


def load_stored(name: str, rows: int | None = None, test_rows: int | None = None) -> Split:
    """The rows as the file has them, integers unscaled."""
    stored = read_stored(RECIPES[name].file or name)
    return Split(
        read_matrix(stored, "X_train")[:rows],
        stored["y_train"][:rows].astype(int),
        read_matrix(stored, "X_test")[:test_rows],
        stored["y_test"][:test_rows].astype(int),
    )


def _parts(recipe: Recipe, stored: Any, rows: int | None, test_rows: int | None) -> list[tuple]:
    """(X_train, y_train, X_test, y_test), as real numbers, of every split."""
    factor = float(stored["scale"]) if "scale" in stored else 1.0
    X, y = read_matrix(stored, "X_train") * factor, stored["y_train"].astype(int)
    if recipe.folds:
        X, y = X[:rows], y[:rows]
        folds = StratifiedKFold(recipe.folds, shuffle=True, random_state=0).split(X, y)
        return [(X[a], y[a], X[b], y[b]) for a, b in folds]
    if recipe.train is not None:
        last = None if test_rows is None else recipe.train + test_rows
        return [
            (
                X[: recipe.train][:rows],
                y[: recipe.train][:rows],
                X[recipe.train : last],
                y[recipe.train : last],
            )
        ]
    X_test, y_test = read_matrix(stored, "X_test")[:test_rows] * factor, stored["y_test"][:test_rows]
    return [(X[:rows], y[:rows], X_test, y_test.astype(int))]


def read_stored(name: str) -> Any:
    """The opened file of that name; without one the benchmark says so and ends."""
    path = FOLDER / f"{name}.npz"
    if not path.is_file():
        print(f"skipped: no {path.name} in {FOLDER} (set MULTIMARGIN_DATA to the folder that has it)")
        raise SystemExit(0)
    return np.load(path)
