"""The largest weights of a linear machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .exhibits import feature_name
from .markup import Html, label, number, paragraph, section, tag
from .numbers import fixed, short
from .subject import Subject
from .tables import Column, table, text

_MOST = 6  # features per class and sign


def weights(subject: Subject) -> Html | None:
    """Features that speak for a class and against it; None if there are no weights."""
    found = subject.weights
    if found is None:
        return None
    names, single = subject.classes.tolist(), found.coef.shape[0] == 1
    rows = []
    for r in range(found.coef.shape[0]):
        row = _dense(found.coef, r)
        order = np.argsort(-np.abs(row), kind="stable")
        up = [j for j in order[: 20 * _MOST].tolist() if row[j] > 0][:_MOST]
        down = [j for j in order[: 20 * _MOST].tolist() if row[j] < 0][:_MOST]
        rows += [
            (
                label(names[1] if single else names[r], 30),
                number(found.intercept[r], fixed(found.intercept[r], 3)),
                _features(subject.feature_names, row, up),
                _features(subject.feature_names, row, down),
            )
        ]
    columns = [text("Class"), Column("Intercept"), text("Raise its score", sorts=False)]
    columns += [text("Lower its score", sorts=False)]
    said = "The score of a class is the sum of its weights times the features, plus the intercept. "
    if single:
        said += f"With two classes there is one score; it is positive for the second class, {names[1]}. "
    said += "Weights can be compared if the features have the same scale."
    table_ = table(
        f"At most {_MOST} features with the largest weights, of each sign", columns, rows, "weights-table"
    )
    return section("weights", "Largest weights", paragraph(said), table_)


def _dense(coef: Any, r: int) -> np.ndarray:
    row = coef[[r]].toarray()[0] if sp.issparse(coef) else coef[r]
    return np.asarray(row, dtype=np.float64)


def _features(names: Sequence[str] | None, row: np.ndarray, which: list[int]) -> Html:
    items = [tag("li", feature_name(names, j), ": ", number(row[j], short(row[j], 3))) for j in which]
    return tag("ul", *items, class_="inline") if items else tag("span", "none")
