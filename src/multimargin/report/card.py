"""A certificate as a card of a few lines, for notebooks.

A notebook may be light or dark whatever the system is. So text has the colour of the page around it, and only
the badge has colours of its own.
"""

from __future__ import annotations

import math

from ..solution import relative_gap
from .certificate import verdict
from .markup import Html, join, number, tag
from .numbers import apart, percent
from .subject import Certificate

_STYLE = Html(
    ".multimargin-card{font:0.9rem/1.5 system-ui,sans-serif;max-width:46rem;margin:.6rem 0;"
    "padding:.6rem .9rem;border:1px solid color-mix(in srgb,currentColor 25%,transparent);border-radius:6px}"
    ".multimargin-card p{margin:.2rem 0}"
    ".multimargin-card .badge{color:#fff;border-radius:4px;padding:.05rem .5rem;margin-right:.4rem;"
    "font-weight:600}"
    ".multimargin-card .good{background:#1f5fa8}.multimargin-card .wrong{background:#b04a0c}"
    ".multimargin-card dl{display:flex;flex-wrap:wrap;gap:.3rem 1.8rem;margin:.4rem 0}"
    ".multimargin-card dt{font-size:.8rem;font-weight:400;opacity:.75}"
    ".multimargin-card dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums}"
)


def card(proof: Certificate) -> Html:
    """What was proved about a fit, in a few lines of HTML that need nothing else."""
    word, said = verdict(proof)
    badge = tag("span", word, class_="badge good" if proof.status.converged else "badge wrong")
    share = relative_gap(proof.gap, proof.primal)
    primal, bound = apart(proof.primal, -proof.dual)
    facts = [
        ("Relative duality gap", number(share, percent(share))),
        ("Objective", number(proof.primal, primal)),
        ("Lower bound", number(-proof.dual, bound)),
        ("Largest violation", number(proof.violation)),
        ("tol", number(proof.tol)),
    ]
    return tag(
        "div",
        tag("style", _STYLE),
        tag("p", badge, said),
        tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts)),
        tag("p", *_meaning(proof, share)),
        class_="multimargin-card",
        role="group",
        aria_label="Certificate of optimality",
    )


def _meaning(proof: Certificate, share: float) -> list[object]:
    if not math.isfinite(share):
        return ["The objective is not positive, so there is no relative gap."]
    claim = "no model of this kind, with these data and parameters, has an objective that is smaller"
    parts: list[object] = [claim, " by more than ", number(share, percent(share)), "."]
    if not proof.semidefinite:
        return [join(["If the kernel is positive semidefinite, which this one is not by its form, ", *parts])]
    return ["Proved in float64: ", *parts]
