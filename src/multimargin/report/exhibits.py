"""Single rows of data: as images if they are images, else by their most unusual features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .images import data_address, dense_rows, pixel_range, shape_of_images
from .markup import Html, cut, join, label, tag
from .numbers import count, short
from .tables import Column, table, text

_FEATURES = 4  # that are named per row
_LOOKED_AT = 2000  # rows that say what is usual


@dataclass(frozen=True)
class Exhibit:
    """A row and what is said about it."""

    row: int  # its number
    at: int  # its place in the samples
    facts: Sequence[tuple[str, Html]]


class Showcase:
    """Shows rows of one set of samples."""

    def __init__(
        self, samples: Any, names: Sequence[str] | None, asked: tuple[int, ...] | str | None
    ) -> None:
        self._samples, self._names = samples, names
        self.shape = shape_of_images(samples, asked)

    def show(self, exhibits: Sequence[Exhibit], caption: str, name: str) -> Html:
        """A gallery of images, or a table."""
        if self.shape is not None:
            return self._gallery(exhibits, caption)
        columns = [Column("Row"), *(text(head) for head, _ in exhibits[0].facts)]
        shown = self._content([exhibit.at for exhibit in exhibits])
        if shown is not None:
            columns += [text(shown[0], sorts=False)]
        rows: list[list[object]] = [
            [
                tag("data", count(exhibit.row), value=exhibit.row),
                *(value for _, value in exhibit.facts),
                *([shown[1][k]] if shown is not None else []),
            ]
            for k, exhibit in enumerate(exhibits)
        ]
        return table(caption, columns, rows, name)

    def _gallery(self, exhibits: Sequence[Exhibit], caption: str) -> Html:
        assert self.shape is not None
        low, high = pixel_range(self._samples)
        rows = dense_rows(self._samples, [exhibit.at for exhibit in exhibits])
        items = []
        for exhibit, row in zip(exhibits, rows, strict=True):
            picture = tag(
                "img",
                src=data_address(row, self.shape, low, high),
                alt=f"Row {count(exhibit.row)} as an image",
                width=96,
                height=96,
            )
            facts = [tag("div", tag("dt", head), tag("dd", value)) for head, value in exhibit.facts]
            title = tag(
                "div", tag("dt", "Row"), tag("dd", tag("data", count(exhibit.row), value=exhibit.row))
            )
            items += [tag("li", picture, tag("dl", title, *facts))]
        return join([tag("p", caption, class_="caption"), tag("ol", *items, class_="gallery")])

    def _content(self, places: list[int]) -> tuple[str, list[Html]] | None:
        """The head of a column and its cells: the largest or most unusual features, or the object itself."""
        samples = self._samples
        if samples is None:
            return None
        if getattr(samples, "ndim", 1) != 2 or samples.dtype.kind not in "biuf":
            return "Sample", [label(cut(repr(samples[k]), 120), 120) for k in places]
        if sp.issparse(samples):
            return "Largest features", [self._largest(samples[[k]]) for k in places]
        looked = np.linspace(0, len(samples) - 1, min(_LOOKED_AT, len(samples))).astype(int)
        usual = dense_rows(samples, looked)
        spread = usual.std(axis=0)
        scaled = (dense_rows(samples, places) - usual.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
        values = dense_rows(samples, places)
        return "Most unusual features", [self._unusual(z, row) for z, row in zip(scaled, values, strict=True)]

    def _unusual(self, scaled: np.ndarray, row: np.ndarray) -> Html:
        order = np.argsort(-np.abs(scaled), kind="stable")[:_FEATURES]
        return _listed([(self.feature(j), short(row[j], 3)) for j in order.tolist() if scaled[j]])

    def _largest(self, row: Any) -> Html:
        values = sp.csr_array(row)
        order = np.argsort(-np.abs(values.data), kind="stable")[:_FEATURES]
        return _listed(
            [(self.feature(int(values.indices[j])), short(float(values.data[j]), 3)) for j in order]
        )

    def feature(self, j: int) -> Html:
        """The name of a feature."""
        return feature_name(self._names, j)


def feature_name(names: Sequence[str] | None, j: int) -> Html:
    """The name of a feature, or its number."""
    return tag("span", f"feature {j}") if names is None else label(names[j], 30)


def _listed(pairs: Sequence[tuple[Html, str]]) -> Html:
    items = [tag("li", name, ": ", tag("span", value, class_="value")) for name, value in pairs]
    return tag("ul", *items, class_="inline") if items else tag("span", "–")
