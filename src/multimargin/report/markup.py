"""HTML that is put together from parts. Text is escaped unless it is ``Html`` already."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable

from . import numbers

LONGEST = 80  # characters of a name that are shown
_VOID = frozenset({"meta", "link", "img", "br", "hr"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Html(str):
    """Text that is HTML."""

    __slots__ = ()


def escape(text: object) -> Html:
    """Any text as HTML; characters that cannot be shown are replaced by a sign that says so."""
    return text if isinstance(text, Html) else Html(html.escape(_CONTROL.sub("\ufffd", str(text))))


def tag(element: str, *children: object, **attributes: object) -> Html:
    """An element. ``class_`` is the attribute class, ``data_x`` is data-x; None and False leave one out.

    Examples
    --------
    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    said = "".join(
        f" {_attribute(name)}" + ("" if value is True else f'="{escape(str(value))}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if element in _VOID:
        return Html(f"<{element}{said}>")
    return Html(f"<{element}{said}>{join(children)}</{element}>")


def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def join(parts: Iterable[object], separator: str = "") -> Html:
    """Parts one after the other."""
    return Html(separator.join(escape(part) for part in parts if part is not None))


def cut(name: object, longest: int = LONGEST) -> str:
    """A name that may be too long."""
    text = str(name)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def label(name: object, longest: int = LONGEST) -> Html:
    """A user's name for something, isolated from the direction of the text around it."""
    return tag("bdi", cut(name, longest))


def number(value: float, text: str | None = None) -> Html:
    """A number as a reader sees it, with its exact value for programs."""
    value = float(value)
    shown = numbers.short(value) if text is None else text
    return tag("data", shown, value=repr(value)) if math.isfinite(value) else tag("span", shown)


def whole(value: int) -> Html:
    """A whole number as a reader sees it, with its exact value for programs."""
    return tag("data", numbers.count(int(value)), value=int(value))


def section(name: str, title: str, *parts: object) -> Html:
    """A part of the page with a heading of its own."""
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, *parts, id=name, aria_labelledby=f"{name}-title")


def paragraph(*parts: object, kind: str | None = None) -> Html:
    """A paragraph."""
    return tag("p", *parts, class_=kind)


def details(summary: str, *parts: object) -> Html:
    """What is shown on demand."""
    return tag("details", tag("summary", summary), *parts)
