"""Parameters of the estimator, data and types."""

from __future__ import annotations

from typing import Any

from .markup import Html, cut, details, join, label, paragraph, section, tag
from .subject import Subject
from .tables import pairs, table, text


def settings(subject: Subject) -> Html:
    """What the model was made with, and of what."""
    changed = [
        (name, value)
        for name, value in subject.params.items()
        if not _same(value, subject.defaults.get(name))
    ]
    kept = [
        (name, value) for name, value in subject.params.items() if _same(value, subject.defaults.get(name))
    ]
    columns = [text("Parameter", sorts=False), text("Value", sorts=False), text("Default", sorts=False)]
    rows = [(tag("code", name), _value(value), _value(subject.defaults.get(name))) for name, value in changed]
    parts: list[Html] = [tag("h3", "Parameters")]
    if rows:
        parts += [table("Parameters that differ from their defaults", columns, rows, "changed")]
    else:
        parts += [paragraph("All parameters have their defaults.")]
    if kept:
        rest = [(tag("code", name), _value(value)) for name, value in kept]
        parts += [
            details(
                f"{len(kept)} parameters at their defaults",
                pairs("Parameters at their defaults", rest, "kept"),
            )
        ]
    facts = [(name, label(value, 160)) for name, value in subject.facts]
    return section(
        "settings",
        "Parameters, data and types",
        tag(
            "div",
            tag("div", join(parts)),
            tag("div", tag("h3", "Data and types"), pairs("What was trained, and how", facts, "facts")),
            class_="beside",
        ),
    )


def _same(value: Any, default: Any) -> bool:
    try:
        return bool(type(value) is type(default) and value == default) or value is default
    except (TypeError, ValueError):  # arrays
        return False


def _value(value: Any) -> Html:
    return tag("code", label(cut(repr(value), 120), 120))
