"""The grid of a search: which costs and kernel coefficients, and the folds that each point is fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from ..kernels import Kernel
from ..selection.fits import Fold
from ..system.typing import Data, FloatArray
from .base import Rows
from .costs import class_factors, sample_costs
from .validation import check_integer, check_number

WITH_GAMMA = ("rbf", "poly", "sigmoid", "laplacian")
_DEFAULT_GAMMAS, _FACTOR = 3, 4.0  # values around "scale", and the factor between two of them
_LEAST_C, _MOST_C = 0.1, 1000.0  # of a number of costs


def cost_values(Cs: Any, least: float = _LEAST_C, most: float = _MOST_C) -> list[float]:
    """The costs in the order in which they were given; a number k stands for k from ``least`` to ``most``."""
    if isinstance(Cs, Integral):
        check_integer("Cs", Cs, 1)
        return [float(C) for C in np.geomspace(least, most, int(Cs))]
    return _numbers("Cs", Cs)


def values_of(name: str, given: Any) -> list[Any]:
    """The values of a parameter that may be a list; a value alone stands for a list of one."""
    values = list(given) if isinstance(given, list | tuple | np.ndarray) else [given]
    if not values:
        raise ValueError(f"{name} must have at least one value.")
    if len(set(values)) < len(values):
        raise ValueError(f"{name} must not have a value twice, got {values!r}.")
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def check_gammas(gammas: Any, kernel: Any) -> None:
    """Raise unless ``gammas`` are values for this kernel, or None."""
    if gammas is None:
        return
    if not (isinstance(kernel, str) and kernel in WITH_GAMMA):
        raise ValueError(
            f"gammas are for kernel={' or '.join(map(repr, WITH_GAMMA))}; kernel={kernel!r} has none to "
            "choose: leave them out."
        )
    if isinstance(gammas, Integral):
        check_integer("gammas", gammas, 1)
    else:
        _numbers("gammas", gammas, words=("scale", "auto"))


def gamma_values(gammas: Any, kernel: Kernel, X: Data, weight: FloatArray | None) -> list[float]:
    """The coefficients as numbers: "scale" and "auto" from all training rows."""

    def number(gamma: Any) -> float:
        return float(replace(kernel, gamma=gamma).resolve(X, weight).gamma)  # type: ignore[call-arg, attr-defined]

    if gammas is None or isinstance(gammas, Integral):
        count = _DEFAULT_GAMMAS if gammas is None else int(gammas)
        middle = number("scale")
        return [middle * _FACTOR ** (k - count // 2) for k in range(count)]
    return [number(gamma) for gamma in _numbers("gammas", gammas, words=("scale", "auto"))]


def _numbers(name: str, values: Any, words: tuple[str, ...] = ()) -> list[Any]:
    """A list of numbers > 0, or of some words, which has no value twice."""
    given = [values] if isinstance(values, str | float | int) else list(values)
    if not given:
        raise ValueError(f"{name} must have at least one value.")
    for value in given:
        if value not in words:
            check_number(name, value)
    if len(set(given)) < len(given):
        raise ValueError(f"{name} must not have a value twice, got {given!r}.")
    return [value if value in words else float(value) for value in given]


class FoldMaker:
    """Folds of the training rows of positive weight, with the costs of each.

    Class weights "balanced" are those of the rows that train a fold, as if it were fitted alone.
    """

    def __init__(self, rows: Rows, class_weight: Any, n: int, Cs: Sequence[float]) -> None:
        self.rows, self.class_weight, self.n, self.Cs = rows, class_weight, n, Cs

    def folds(self, cv: Any, X: Any, y: np.ndarray, groups: Any) -> list[Fold]:
        """The folds of a scikit-learn splitter, a number of folds, or pairs (train, test) of row numbers."""
        splits = list(check_cv(cv, y, classifier=True).split(X, y, groups))
        if not splits:
            raise ValueError("cv gives no split: at least one is needed.")
        return [self._fold(k, *split) for k, split in enumerate(splits)]

    def whole(self) -> Fold:
        """All rows, none of which is tested."""
        return Fold(None, np.empty(0, dtype=np.int64), self._unit(np.ones(len(self.rows.y), dtype=bool)))

    def factors(self, train: np.ndarray) -> FloatArray:
        """The factor of C of each class, if the rows of this mask train."""
        rows = self.rows
        return class_factors(self.class_weight, rows.labels, rows.y[train], rows.weight[train])

    def _fold(self, k: int, train: Any, test: Any) -> Fold:
        kept, y = self.rows.kept, self.rows.y
        train, test = (np.isin(kept, np.arange(self.n)[part]) for part in (train, test))
        present = np.unique(y[train])
        if len(present) < 2:
            raise ValueError(
                f"Split {k} trains on rows of {len(present)} class: {self.rows.labels[present].tolist()}. At "
                "least 2 classes are needed in every training set."
            )
        if not test.any():
            raise ValueError(f"Split {k} has no test row of positive weight.")
        return Fold(None if train.all() else ~train, np.flatnonzero(test), self._unit(train))

    def _unit(self, train: np.ndarray) -> FloatArray:
        y, weight, factors = self.rows.y, self.rows.weight, self.factors(train)
        for C in (min(self.Cs), max(self.Cs)):  # raises if float64 cannot hold them
            sample_costs(C, factors, y, weight)
        return sample_costs(1.0, factors, y, weight)
