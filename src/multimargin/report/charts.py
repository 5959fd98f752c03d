"""Drawings: SVG with a title, a description and, beside it, the same facts as a table."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from .markup import Html, details, join, tag
from .numbers import fixed
from .scales import Scale

WIDTH, HEIGHT = 340, 216  # of a small drawing: readable on a phone, three in a row on a desk
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 40


def figure(
    name: str,
    title: str,
    described: str,
    shapes: Html,
    size: tuple[float, float],
    alternative: Html,
    kind: str = "",
) -> Html:
    """A drawing with its heading, and its data as a table on demand."""
    drawn = tag(
        "svg",
        tag("title", title, id=f"{name}-t"),
        tag("desc", described, id=f"{name}-d"),
        shapes,
        viewBox=f"0 0 {size[0]:g} {size[1]:g}",
        width=f"{size[0]:g}",
        height=f"{size[1]:g}",
        role="img",
        aria_labelledby=f"{name}-t {name}-d",
    )
    heading = tag("figcaption", title)
    if kind:
        drawn = tag(
            "div", drawn, class_="scroll", tabindex="0", role="region", aria_label=f"Drawing: {title}"
        )
    return tag(
        "figure", heading, drawn, details("Data as a table", alternative), class_=kind or None, id=name
    )


def words(
    x: float, y: float, text: object, kind: str = "tick", anchor: str = "middle", **more: object
) -> Html:
    """Text in a drawing."""
    anchored = None if anchor == "start" else anchor
    return tag("text", text, x=f"{x:g}", y=f"{y:g}", class_=kind, text_anchor=anchored, **more)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    """A straight line."""
    return tag("line", x1=f"{x1:g}", y1=f"{y1:g}", x2=f"{x2:g}", y2=f"{y2:g}", class_=kind)


def rect(x: float, y: float, width: float, height: float, kind: str, tip: str | None = None) -> Html:
    """A rectangle; ``tip`` is shown when the pointer is on it."""
    return tag(
        "rect", x=f"{x:g}", y=f"{y:g}", width=f"{width:g}", height=f"{height:g}", class_=kind, data_tip=tip
    )


def axes(x: Scale, y: Scale, x_title: str) -> Html:
    """Ticks, faint horizontal lines, and the title of the horizontal axis."""
    parts = []
    for value, text in y.ticks(5):
        parts += [line(LEFT, y(value), WIDTH - RIGHT, y(value), "grid")]
        parts += [words(LEFT - 7, y(value) + 4, text, anchor="end")]
    bottom = HEIGHT - BOTTOM
    for value, text in x.ticks(5):
        parts += [line(x(value), bottom, x(value), bottom + 4, "axis"), words(x(value), bottom + 17, text)]
    parts += [line(LEFT, bottom, WIDTH - RIGHT, bottom, "axis")]
    parts += [words((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, x_title, "tick title")]
    return join(parts)


@dataclass(frozen=True)
class Point:
    """A point of a line, with what is said about it."""

    x: float
    y: float
    tip: str


def course(points: Sequence[Point], last: Point | None, x: Scale, y: Scale) -> Html:
    """A line through points, and a last point that stands out."""
    ends = [*points, *([last] if last is not None else [])]
    path = "".join(f"{'L' if k else 'M'}{x(p.x):g} {y(p.y):g}" for k, p in enumerate(ends))
    dots = [tag("circle", cx=x(p.x), cy=y(p.y), r=2.2, class_="dot") for p in points if len(points) <= 60]
    hits = [tag("circle", cx=x(p.x), cy=y(p.y), r=8, class_="hit", data_tip=p.tip) for p in ends]
    if last is not None:
        dots += [tag("circle", cx=x(last.x), cy=y(last.y), r=4.5, class_="last")]
    return join([tag("path", d=path, class_="line"), *dots, *hits])


# -- drawings in the cells of a table ---------------------------------------------------------------------
def bar(shares: Sequence[tuple[float, str]]) -> Html:
    """Bars one after the other, as shares of the width of a cell."""
    starts = itertools.accumulate((share for share, _ in shares), initial=0.0)
    parts = [
        rect(round(100 * start, 2), 0, round(100 * share, 2), 10, kind)
        for start, (share, kind) in zip(starts, shares, strict=False)
        if share > 0
    ]
    return _cell(join(parts), 10)


def boxes(shown: Sequence[tuple[Sequence[float], str]], scale: Scale, marks: Sequence[float] = ()) -> Html:
    """One box below the other: from 25% to 75%, whiskers from 5% to 95%, and a line at the median."""
    parts = [line(scale(value), 0, scale(value), 16, "mark") for value in marks]
    height = 16 / len(shown)
    for k, (quantiles, kind) in enumerate(shown):
        low, first, median, third, high = (scale(value) for value in quantiles)
        top, thick = height * k, 0.62 * height
        middle = top + height / 2
        parts += [line(low, middle, high, middle, f"whisker {kind}")]
        parts += [rect(first, middle - thick / 2, round(max(third - first, 0.3), 2), thick, f"box {kind}")]
        parts += [line(median, top + 0.1 * height, median, top + 0.9 * height, f"median {kind}")]
    return _cell(join(parts), 16)


def cell_scale(low: float, high: float) -> Scale:
    """The scale of drawings in one column of a table."""
    return Scale(low, high, 1.0, 99.0)


def cell_axis(scale: Scale, title: str) -> Html:
    """The head of a column of such drawings: the title and the ends of the scale."""
    ends = tag("span", tag("span", fixed(scale.low, 2)), tag("span", fixed(scale.high, 2)), class_="ends")
    return join([tag("span", title), ends])


def _cell(shapes: Html, height: int) -> Html:
    return tag(
        "svg",
        shapes,
        viewBox=f"0 0 100 {height}",
        preserveAspectRatio="none",
        class_="cell",
        aria_hidden="true",
    )
