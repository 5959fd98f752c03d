"""How the fit went: gap, violation and dual over the seconds, and where these went."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from ..solution import TraceRow
from .charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Point, axes, bar, course, figure, line, words
from .markup import Html, details, join, number, paragraph, section, tag, whole
from .numbers import percent, seconds, short
from .scales import Scale, decades
from .subject import Certificate, Subject
from .tables import Column, drawing, table, text

MOST_POINTS, MOST_ROWS = 240, 24  # of a line, of its table
_LATE = 0.75  # share of the time after which a single measurement says no more than the certificate
_PHASES = {
    "kernel rows": "Computing kernel rows",
    "inner": "Solving the subproblems of working sets",
    "gradient": "Updating the gradient after steps",
    "selection": "Choosing working sets",
    "memory": "Converting, copying and allocating",
    "proof": "Proving the result in float64",
    "messages": "Fetching samples of other processes",
    "leap": "Steps with low-rank models of the kernel",
    "loop": "The outer loop, which is Python",
    "other": "Everything else",
}


def course_of_fit(subject: Subject) -> Html:
    """The charts of the trace, or why there are none."""
    trace = subject.trace
    if trace is None or not len(trace):
        return section("course", "Course of the fit", paragraph(subject.missing["trace"]))
    chosen = _thinned(len(trace))
    rows = [trace.row(k) for k in chosen]
    before = [trace.row(k - 1).seconds if k else 0.0 for k in chosen]
    total = float(str(trace.info.get("seconds", rows[-1].seconds)))
    end = total if total >= rows[-1].seconds else rows[-1].seconds
    unit, factor = ("ms", 1e3) if end < 1 else ("s", 1.0)
    x = Scale(0.0, factor * end or 1.0, LEFT, WIDTH - RIGHT)
    proof = subject.certificate
    charts = [
        _chart("violation", "Largest violation", rows, before, proof, x, (unit, factor), end),
        _chart("gap", "Duality gap", rows, before, proof, x, (unit, factor), end),
        _dual_chart(rows, proof, x, (unit, factor), end),
    ]
    said = [
        "One point per ",
        "pass over the data. " if subject.kernel is None else "outer iteration. ",
        whole(trace.iterations),
        " in all",
        f", of which {len(rows)} are shown. " if len(rows) < len(trace) else ". ",
        "The ring is the certificate at the end. The dual is drawn as its distance from \u2212P, the bound "
        "that the primal P of the certificate gives, so that a logarithmic scale can show it.",
    ]
    return section(
        "course",
        "Course of the fit",
        paragraph(*said),
        tag("div", *charts, class_="charts"),
        _phases(subject, total),
    )


def _thinned(n: int) -> list[int]:
    """Places of at most ``MOST_POINTS`` rows: the first and the last, and even steps between."""
    return sorted(set(np.linspace(0, n - 1, min(n, MOST_POINTS)).round().astype(int).tolist()))


def _chart(
    name: str,
    title: str,
    rows: list[TraceRow],
    before: list[float],
    proof: Certificate | None,
    x: Scale,
    unit: tuple[str, float],
    end: float,
) -> Html:
    """A positive column of the trace on a logarithmic scale, at the seconds ``before`` each step."""
    pairs = [(t, getattr(row, name)) for t, row in zip(before, rows, strict=True)]
    final = None if proof is None else (end, getattr(proof, name))
    tol = proof.tol if proof is not None and name == "violation" else None
    return _logarithmic(name, title, pairs, final, x, unit, tol)


def _dual_chart(
    rows: list[TraceRow], proof: Certificate | None, x: Scale, unit: tuple[str, float], end: float
) -> Html:
    """How far the dual is above its lower bound, which is minus the primal; the last distance is the gap."""
    if proof is None:
        pairs = [(row.seconds, row.dual - rows[-1].dual) for row in rows]
        return _logarithmic("dual", "Dual above its last value", pairs, None, x, unit, None)
    pairs = [(row.seconds, row.dual + proof.primal) for row in rows]
    title = "Dual above \u2212P"
    return _logarithmic("dual", title, pairs, (end, proof.dual + proof.primal), x, unit, None)


def _logarithmic(
    name: str,
    title: str,
    pairs: list[tuple[float, float]],
    final: tuple[float, float] | None,
    x: Scale,
    unit: tuple[str, float],
    tol: float | None,
) -> Html:
    known = [(t, value) for t, value in pairs if math.isfinite(value) and value > 0]
    ends = [final] if final is not None and math.isfinite(final[1]) and final[1] > 0 else []
    values = [value for _, value in [*known, *ends]] + ([tol] if tol else [])
    rows = [
        *((t, value, "on the way") for t, value in _sampled(pairs)),
        *((t, v, "certificate") for t, v in ends),
    ]
    alternative = _alternative(f"course-{name}-data", title, rows)
    if len(known) + len(ends) < 2 or (len(known) == 1 and ends and known[0][0] >= _LATE * ends[0][0]):
        said = "There is nothing to draw: it was measured at most once before the end."
        return tag(
            "div",
            tag("p", title, class_="caption"),
            paragraph(said, kind="note"),
            details("Data as a table", alternative),
        )
    y = Scale(*decades(values), HEIGHT - BOTTOM, TOP, log=True)

    def point(t: float, value: float) -> Point:
        return Point(unit[1] * t, value, f"{title}: {short(value)} after {seconds(t)}")

    last = point(*ends[0]) if ends else None
    parts = [axes(x, y, "milliseconds" if unit[0] == "ms" else "seconds")]
    if tol:
        parts += [line(LEFT, y(tol), WIDTH - RIGHT, y(tol), "limit")]
        parts += [words(LEFT + 5, y(tol) - 5, "tol", "tick", "start")]
    parts += [course([point(t, value) for t, value in known], last, x, y)]
    described = f"{title} on a logarithmic scale: {short(known[0][1]) if known else 'not measured'} at first"
    described += f", {short(final[1])} in the certificate." if final is not None else "."
    return figure(f"course-{name}", title, described, join(parts), (WIDTH, HEIGHT), alternative)


def _sampled(pairs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    places = np.linspace(0, len(pairs) - 1, min(len(pairs), MOST_ROWS)).round().astype(int)
    return [pairs[k] for k in sorted(set(places.tolist()))]


def _alternative(name: str, title: str, rows: list[tuple[float, float, str]]) -> Html:
    columns = [Column("Seconds"), Column(title), text("Which")]
    cells = [(number(t), number(value), which) for t, value, which in rows]
    return table(f"{title} over time", columns, cells, name)


def _phases(subject: Subject, total: float) -> Html:
    """A table of the phases, the longest first."""
    heading = tag("h3", "Where the time went")
    assert subject.trace is not None
    info = subject.trace.info
    if "profile" not in info:
        said = "The seconds of each phase are not recorded by this solver: it spent "
        return join([heading, paragraph(said, number(total, seconds(total)), " in all.")])
    spent = dict(cast("dict[str, float]", info["profile"]))
    spent["other"] = max(0.0, total - sum(spent.values()))
    ordered = sorted(((name, value) for name, value in spent.items() if value > 0), key=lambda item: -item[1])
    largest = ordered[0][1] / total if ordered and total else 1.0
    rows = [
        (
            _PHASES.get(name, name),
            number(value, seconds(value)),
            number(value / total, percent(value / total)),
            bar([(value / total / largest, "fill")]),
        )
        for name, value in ordered
    ]
    columns = [text("Phase"), Column("Time"), Column("Share"), drawing("Share, as a bar")]
    caption = join(["Seconds of each phase; ", number(total, seconds(total)), " in all"])
    return join([heading, table(caption, columns, rows, "phases")])
