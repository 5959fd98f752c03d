"""The page: its parts in order, its style and script, and the policy that forbids all outside loading."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime
from importlib.metadata import version
from importlib.resources import files

from .certificate import certificate, key_numbers
from .confusion import accuracy, accuracy_tile, confusion
from .course import course_of_fit
from .grid import search
from .margins import margins
from .markup import Html, join, paragraph, section, tag
from .numbers import count
from .outcome import Outcome
from .palette import css
from .rows import mistakes, suspects
from .settings import settings
from .subject import Subject
from .support import support
from .weights import weights

_SECTIONS = {
    "certificate": "Certificate",
    "judged": "Judged on data",
    "search": "Search",
    "suspects": "Suspect labels",
    "support": "Support vectors",
    "weights": "Weights",
    "course": "Course of the fit",
    "settings": "Parameters and data",
}


def page(subject: Subject) -> str:
    """The whole page as text."""
    outcome = None if subject.judged is None else Outcome(subject.judged, subject.classes)
    parts: dict[str, Html | None] = {
        "certificate": certificate(subject),
        "judged": _judged(subject, outcome),
        "search": search(subject),
        "suspects": suspects(subject),
        "support": support(subject),
        "weights": weights(subject),
        "course": course_of_fit(subject),
        "settings": settings(subject),
    }
    tile = None if outcome is None else accuracy_tile(outcome)
    shown = {name: part for name, part in parts.items() if part is not None}
    body = join(
        [
            tag("a", "Skip to the report", href="#main", class_="skip"),
            _header(subject),
            tag("nav", _contents(list(shown)), aria_label="Contents"),
            tag("main", key_numbers(subject, tile), *shown.values(), id="main", tabindex="-1"),
            _footer(),
            tag("div", id="tip", role="presentation", hidden=True),
            tag("div", id="said", class_="unseen", role="status"),
        ]
    )
    return _document(subject.title, body)


def _judged(subject: Subject, outcome: Outcome | None) -> Html:
    title = _SECTIONS["judged"]
    if outcome is None:
        return section("judged", title, paragraph(subject.missing["judged"]))
    parts = (
        accuracy(outcome),
        confusion(outcome),
        margins(outcome, subject.machine),
        mistakes(outcome, subject),
    )
    return section("judged", title, *parts)


def _header(subject: Subject) -> Html:
    kernel = "linear weights" if subject.kernel is None else f"{subject.kernel} kernel"
    line = f"{subject.name} · {subject.machine} machine · {kernel} · {count(len(subject.classes))} classes"
    switch = tag("button", "Dark theme", type="button", id="theme", hidden=True)
    words = tag("div", tag("h1", tag("bdi", subject.title)), paragraph(line, kind="under"))
    return tag("header", words, switch)


def _contents(names: list[str]) -> Html:
    return tag("ul", *(tag("li", tag("a", _SECTIONS[name], href=f"#{name}")) for name in names))


def _footer() -> Html:
    made = datetime.now().astimezone()
    time = tag(
        "time", made.strftime("%d %B %Y, %H:%M").lstrip("0"), datetime=made.isoformat(timespec="seconds")
    )
    return tag("footer", paragraph(f"Written by multimargin {version('multimargin')} on ", time, "."))


def _document(title: str, body: Html) -> str:
    style, script = css() + _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    head = join(
        [
            tag("meta", charset="utf-8"),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", name="referrer", content="no-referrer"),
            tag("link", rel="icon", href="data:,"),
            tag("title", title),
            Html(f"<style>{style}</style>"),
        ],
        "\n",
    )
    end = f"<body>\n{body}\n<script>{script}</script>\n</body>"
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n{end}\n</html>\n'


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    """What the policy allows: this content and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
