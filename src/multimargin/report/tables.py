"""Tables: captions, headings with a scope, columns that a click sorts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .markup import Html, tag

FOLD = 30  # rows that are shown before a reader asks for all; ``page.css`` has the same number


class Column(NamedTuple):
    """A column of a table."""

    head: object
    numeric: bool = True
    sorts: bool = True
    wide: bool = False  # for a drawing


def text(head: object, sorts: bool = True) -> Column:
    """A column of words."""
    return Column(head, numeric=False, sorts=sorts)


def drawing(head: object) -> Column:
    """A column of drawings, which repeat what other columns say."""
    return Column(head, numeric=False, sorts=False, wide=True)


def table(caption: object, columns: Sequence[Column], rows: Sequence[Sequence[object]], name: str) -> Html:
    """A table whose first column names the rows; a long one is folded."""
    body = [tag("tr", *(_cell(columns, k, cell) for k, cell in enumerate(row))) for row in rows]
    folded = len(rows) > FOLD
    whole = tag(
        "table",
        tag("caption", tag("span", caption)),
        tag("thead", tag("tr", *(_head(column) for column in columns))),
        tag("tbody", *body),
        id=name,
        class_="fold" if folded else None,
    )
    more = f"Show all {len(rows):,} rows"
    button = tag("button", more, type="button", class_="more", aria_expanded="false", aria_controls=name)
    box = tag(
        "div", whole, class_="scroll", tabindex="0", role="region", aria_label=f"Table: {_plain(caption)}"
    )
    return tag("div", box, button if folded else None, class_="table")


def _head(column: Column) -> Html:
    kind = "wide" if column.wide else "number" if column.numeric else None
    if not column.sorts:
        return tag("th", column.head, scope="col", class_=kind)
    button = tag("button", column.head, type="button", class_="sort")
    return tag("th", button, scope="col", class_=kind, aria_sort="none")


def _cell(columns: Sequence[Column], k: int, cell: object) -> Html:
    kind = "wide" if columns[k].wide else "number" if columns[k].numeric else None
    return tag("td", cell, class_=kind) if k else tag("th", cell, scope="row", class_=kind)


def _plain(caption: object) -> str:
    return str(caption).split("<")[0].rstrip(". ")


def pairs(caption: str, rows: Sequence[tuple[object, object]], name: str) -> Html:
    """A table of names and values, without headings that a click sorts."""
    return table(caption, [text("What", sorts=False), text("Value", sorts=False)], rows, name)
