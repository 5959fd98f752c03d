"""Accuracy, and which classes are taken for which."""

from __future__ import annotations

from .certificate import tile
from .charts import figure, rect, words
from .markup import Html, cut, join, label, number, paragraph, tag, whole
from .numbers import count, counted, percent
from .outcome import Outcome
from .palette import LEVELS, level
from .tables import Column, table, text

_MOST_PAIRS = {12: 15, 10**9: 25}  # up to so many classes: as many as fit beside the matrix
_LEAST_SCALE = 0.05  # the strongest colour stands for at least this share, so that few mistakes stay pale
_BESIDE = 12  # letters of names that leave room for a table beside the matrix
_NUMBERED, _NAMED = 30, 60  # up to so many classes cells have numbers, and axes a name per class


def accuracy_tile(outcome: Outcome) -> Html:
    """The accuracy as one of the key numbers."""
    low, high = outcome.interval
    note = join([number(low, percent(low).rstrip("%")), number(high, percent(high))], "–")
    return tile(
        f"Accuracy on {count(outcome.n)} rows", number(outcome.accuracy, percent(outcome.accuracy)), note
    )


def _between(low: float, high: float) -> Html:
    return join([number(low, percent(low)), " to ", number(high, percent(high))])


def accuracy(outcome: Outcome) -> Html:
    """The accuracy in words, with its error bar."""
    low, high = outcome.interval
    wrong = int((~outcome.right).sum())
    parts: list[object] = [
        whole(outcome.n - wrong),
        " of ",
        whole(outcome.n),
        " rows are predicted right: an accuracy of ",
        tag("strong", number(outcome.accuracy, percent(outcome.accuracy))),
        ". If these rows were drawn at random and not trained on, the accuracy on all such data is between ",
        _between(low, high),
        " with a confidence of 95% (Wilson's interval).",
    ]
    known = []
    if len(outcome.unknown):
        names = join([label(name, 30) for name in outcome.unknown[:5].tolist()], ", ")
        more = "" if len(outcome.unknown) <= 5 else f" and {len(outcome.unknown) - 5} more"
        rows = int((~outcome.known).sum())
        known = [
            paragraph(
                f"{count(rows)} rows have labels that the model does not know (",
                names,
                more,
                "). They count as wrong.",
            )
        ]
    return join([paragraph(*parts), *known])


def confusion(outcome: Outcome) -> Html:
    """The heat map of mistakes, and the pairs that are confused most."""
    pairs = _pairs(outcome)
    heading = tag("h3", "Which classes are confused")
    if not pairs:
        return join([heading, paragraph("No row is predicted wrong, so there is nothing to confuse.")])
    short_names = all(len(str(name)) <= _BESIDE for name in outcome.names)
    beside = len(outcome.names) <= _NUMBERED and short_names  # else the table has the whole width
    parts = (_heat_map(outcome), _pair_table(outcome, pairs))
    return join([heading, tag("div", *parts, class_="beside wide-first") if beside else join(parts)])


def _pairs(outcome: Outcome) -> list[tuple[int, int, int]]:
    wrong = [(i, j, c) for (i, j), c in outcome.cells.items() if i != j]
    return sorted(wrong, key=lambda pair: (-pair[2], pair[0], pair[1]))


def _pair_table(outcome: Outcome, pairs: list[tuple[int, int, int]]) -> Html:
    most = next(most for k, most in _MOST_PAIRS.items() if len(outcome.names) <= k)
    rows = [
        (
            label(outcome.names[i], 30),
            label(outcome.names[j], 30),
            whole(c),
            number(c / outcome.rows[i], percent(c / outcome.rows[i])),
        )
        for i, j, c in pairs[:most]
    ]
    columns = [text("Label"), text("Predicted as"), Column("Rows"), Column("Share of label")]
    more = f"; the {most} largest of {count(len(pairs))}" if len(pairs) > most else ""
    return table(f"Most confused pairs{more}", columns, rows, "pairs")


def _heat_map(outcome: Outcome) -> Html:
    """Labels downwards, predictions across. Mistakes are coloured by their share of the label's rows."""
    names, m, k = outcome.names, len(outcome.classes), len(outcome.names)
    cell = 42.0 if k <= 12 else 24.0 if k <= _NUMBERED else 12.0 if k <= _NAMED else max(1.5, 660 / k)
    short_names = [cut(name, 12) for name in names]
    longest = max(map(len, short_names)) if k <= _NAMED else len(count(k))
    left = 30.0 + 6.6 * longest
    tilted = longest * 7 > cell - 2 and k <= _NAMED
    top = 26.0 + (6.6 * longest if tilted else 14.0)
    largest = max(_LEAST_SCALE, *(c / outcome.rows[i] for i, _, c in _pairs(outcome)))
    parts = [rect(left, top, m * cell, k * cell, "frame")]
    for (i, j), c in outcome.cells.items():
        share = c / outcome.rows[i]
        kind = "right" if i == j else f"o{level(share / largest)}"
        tip = (
            f"label {cut(names[i], 30)}, predicted {cut(names[j], 30)}: {counted(c, 'row')}, {percent(share)}"
        )
        parts += [rect(left + j * cell, top + i * cell, cell, cell, kind, tip)]
        if k <= _NUMBERED:
            at = (left + (j + 0.5) * cell, top + (i + 0.5) * cell + 4)
            small = " small" if cell < 30 else ""
            parts += [words(*at, count(c), f"{'on-right' if i == j else 'on-' + kind}{small} inside")]
    parts += _names(short_names, m, cell, left, top, tilted)
    parts += [words(left + m * cell / 2, 12, "predicted", "tick title")]
    middle = top + k * cell / 2
    parts += [words(12, middle, "label", "tick title", transform=f"rotate(-90 12 {middle:g})")]
    parts += [_legend(left, top + k * cell + 16, largest)]
    size = (max(left + m * cell, left + 280) + 8, top + k * cell + 52)
    described = (
        f"Heat map of {count(k)} labels and {count(m)} predicted classes. The diagonal is what was right. "
        "The table beside it has the cells with most mistakes."
    )
    return figure(
        "confusion",
        "Confusion matrix",
        described,
        join(parts),
        size,
        _as_table(outcome),
        "matrix" if k <= 12 else "matrix large",
    )


def _names(names: list[str], m: int, cell: float, left: float, top: float, tilted: bool) -> list[Html]:
    """The classes along both axes, or their numbers if there are too many."""
    k = len(names)
    shown = range(k)
    if k > _NAMED:
        step = next(s for s in (10, 20, 50, 100, 200, 500, 1000, 10**9) if k / s <= 14)
        shown, names = range(0, k, step), [count(i) for i in range(k)]
    parts = []
    for i in shown:
        y = top + (i + 0.5) * cell + 4
        parts += [words(left - 6, y, names[i], "tick name", "end")]
        if i >= m:
            continue
        x = left + (i + 0.5) * cell
        if tilted:
            turn = f"rotate(-90 {x + 4:g} {top - 6:g})"
            parts += [words(x + 4, top - 6, names[i], "tick name", "start", transform=turn)]
        else:
            parts += [words(x, top - 6, names[i], "tick name")]
    return parts


def _legend(x: float, y: float, largest: float) -> Html:
    """The scale of the mistakes."""
    parts = [rect(x + 18 * k, y, 18, 9, f"o{k + 1}") for k in range(LEVELS - 1)]
    end = x + 18 * (LEVELS - 1)
    parts += [words(x, y + 24, "0", "tick", "start"), words(end, y + 24, percent(largest), "tick", "end")]
    parts += [words(end + 10, y + 9, "wrong, share of label", "tick", "start")]
    parts += [rect(end + 10, y + 15, 9, 9, "right"), words(end + 24, y + 24, "right", "tick", "start")]
    return join(parts)


def _as_table(outcome: Outcome) -> Html:
    """The matrix if it is small, else its cells."""
    names, m = outcome.names, len(outcome.classes)
    if len(names) <= _NUMBERED:
        columns = [text("Label", sorts=False), *(Column(label(name, 20), sorts=False) for name in names[:m])]
        rows: list[list[object]] = [
            [label(name, 20), *(whole(outcome.cells.get((i, j), 0)) for j in range(m))]
            for i, name in enumerate(names)
        ]
        return table("Rows of each label by predicted class", columns, rows, "confusion-data")
    right = [
        (label(name, 20), whole(outcome.cells.get((i, i), 0)), whole(outcome.rows[i]))
        for i, name in enumerate(names)
    ]
    columns = [text("Label"), Column("Right"), Column("Rows")]
    return table("Rows of each label that are predicted right", columns, right, "confusion-data")
