"""Scores and margins, of all rows and by class."""

from __future__ import annotations

import numpy as np

from ..system.typing import FloatArray
from .charts import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    axes,
    boxes,
    cell_axis,
    cell_scale,
    figure,
    line,
    rect,
)
from .markup import Html, join, label, number, paragraph, tag, whole
from .numbers import count, counted, fixed, percent, short
from .outcome import Outcome
from .scales import Scale
from .tables import Column, drawing, table, text

_BINS = 40
_UNIT_MARGIN = ("crammer-singer", "weston-watkins", "c-svc")  # machines that ask every row for a margin of 1


def margins(outcome: Outcome, machine: str) -> Html:
    """The histogram of margins, and both tables by class."""
    known = outcome.margins[outcome.known]
    heading = tag("h3", "Scores and margins")
    if not len(known):
        return join([heading, paragraph("No row has a label that the model knows, so there are no margins.")])
    asked = machine in _UNIT_MARGIN
    said = (
        "The margin of a row is the score of its own class minus the largest score of another class. It is "
        "negative if the row is predicted wrong"
    )
    said += ", and training asks for a margin of at least 1. " if asked else ". "
    inside = int(((known > 0) & (known < 1)).sum())
    more = (
        f"{count(inside)} rows ({percent(inside / len(known))}) are right with a margin below 1."
        if asked
        else ""
    )
    marks = (0.0, 1.0) if asked else (0.0,)
    return join(
        [
            heading,
            tag(
                "div",
                _histogram(known, marks),
                tag("div", paragraph(said + more), _reading(), class_="prose"),
                class_="beside wide-first",
            ),
            _margin_table(outcome, marks),
            _score_table(outcome),
        ]
    )


def _reading() -> Html:
    return paragraph(
        "In the tables below a box spans the middle half of the rows, its line is the median, and the "
        "whiskers reach from 5% to 95%.",
        kind="note",
    )


def _histogram(values: FloatArray, marks: tuple[float, ...]) -> Html:
    low, high = (float(q) for q in np.quantile(values, (0.001, 0.999)))
    low, high = min(low, -0.1), max(high, 1.1 if len(marks) > 1 else 0.1)
    width = _nice((high - low) / _BINS)
    edges = width * np.arange(np.floor(low / width), np.ceil(high / width) + 1)
    counts, _ = np.histogram(values.clip(edges[0], edges[-1] * (1 - 1e-12)), edges)
    x = Scale(float(edges[0]), float(edges[-1]), LEFT, WIDTH - RIGHT)
    y = Scale(0.0, float(counts.max()), HEIGHT - BOTTOM, TOP)
    parts, rows = [axes(x, y, "margin")], []
    for left, right, number_of_rows in zip(edges[:-1], edges[1:], counts, strict=True):
        centre = (left + right) / 2
        kind = "bar-wrong" if centre < 0 else "bar-near" if centre < marks[-1] else "bar-right"
        tip = f"margin {fixed(left, 2)} to {fixed(right, 2)}: {counted(int(number_of_rows), 'row')}"
        a, b = x(float(left)), x(float(right))
        if number_of_rows:
            parts += [
                rect(
                    a, y(number_of_rows), round(b - a - 0.6, 2), round(y(0) - y(number_of_rows), 2), kind, tip
                )
            ]
        rows += [
            (
                number(float(left), fixed(left, 2)),
                number(float(right), fixed(right, 2)),
                whole(int(number_of_rows)),
            )
        ]
    parts += [line(x(mark), TOP, x(mark), HEIGHT - BOTTOM, "mark") for mark in marks]
    wrong = int((values < 0).sum())
    middle = short(float(np.median(values)))
    described = f"Histogram of {count(len(values))} margins; {count(wrong)} are negative. Median {middle}."
    alternative = table("Rows by margin", [Column("From"), Column("To"), Column("Rows")], rows, "margin-data")
    return figure(
        "margin-histogram", "Margins of all rows", described, join(parts), (WIDTH, HEIGHT), alternative
    )


def _nice(width: float) -> float:
    """The next larger of 1, 2 and 5 times a power of ten: then 0 and 1 are edges."""
    unit = 10.0 ** np.floor(np.log10(width))
    return float(next(k * unit for k in (1, 2, 5, 10) if k * unit >= width))


def _margin_table(outcome: Outcome, marks: tuple[float, ...]) -> Html:
    found = {
        r: outcome.quantiles(outcome.margins[outcome.truth == r])
        for r in range(len(outcome.classes))
        if outcome.rows[r]
    }
    scale = cell_scale(
        min(marks[0], *(q[0] for q in found.values())), max(marks[-1], *(q[4] for q in found.values()))
    )
    rows = []
    for r, name in enumerate(outcome.names):
        right = outcome.cells.get((r, r), 0)
        n, taken = int(outcome.rows[r]), int(outcome.predicted[r])
        if not n and not taken:
            continue
        quantiles = found.get(r)
        rows += [
            (
                label(name, 30),
                whole(n),
                _share(right, n),
                _share(right, taken),
                *(number(quantiles[k], fixed(quantiles[k], 2)) if quantiles else "–" for k in (0, 2)),
                boxes([(quantiles, "own")], scale, marks) if quantiles else "",
            )
        ]
    columns = [
        text("Class"),
        Column("Rows"),
        Column("Recall"),
        Column("Precision"),
        Column("Margin, 5%"),
        Column("Median"),
        drawing(cell_axis(scale, "Margins")),
    ]
    return table("Rows, hits and margins by class", columns, rows, "margins-by-class")


def _share(part: int, total: int) -> object:
    return number(part / total, percent(part / total)) if total else "–"


def _score_table(outcome: Outcome) -> Html:
    """Scores of each class, of its own rows and of the others; for two classes there is one score."""
    scores = outcome.judged.scores
    single = scores.ndim == 1
    rows, found = [], []
    for r in range(len(outcome.classes)):
        own = outcome.truth == r
        column = scores if single else scores[:, r]
        if own.any():
            others = None if single or own.all() else outcome.quantiles(column[~own])
            found += [(r, outcome.quantiles(column[own]), others)]
    low = min(min(own[0], others[0] if others else own[0]) for _, own, others in found)
    high = max(max(own[4], others[4] if others else own[4]) for _, own, others in found)
    scale = cell_scale(min(low, 0.0), max(high, 0.0))
    for r, own, others in found:
        cells: list[object] = [
            label(outcome.names[r], 30),
            *(number(own[k], fixed(own[k], 2)) for k in (0, 2, 4)),
        ]
        if not single:
            cells += [number(others[k], fixed(others[k], 2)) if others else "–" for k in (2, 4)]
        shown = [(own, "own"), *([(others, "others")] if others else [])]
        rows += [[*cells, boxes(shown, scale, (0.0,))]]
    columns = [text("Class"), Column("Own rows, 5%"), Column("Median"), Column("95%")]
    caption = "The score (positive for the second class), of the rows of each class"
    if not single:
        columns += [Column("Other rows, median"), Column("95%")]
        caption = "Score of each class: of its own rows (blue), and of the rows of all other classes (grey)"
    return table(caption, [*columns, drawing(cell_axis(scale, "Scores"))], rows, "scores-by-class")
