"""The certificate in words."""

from __future__ import annotations

import math

from ..solution import relative_gap
from .markup import Html, join, number, paragraph, section, tag
from .numbers import apart, percent, seconds
from .subject import Certificate, Subject
from .tables import table, text


def certificate(subject: Subject) -> Html:
    """What was proved about the fit."""
    proof = subject.certificate
    if proof is None:
        return section("certificate", "Certificate", paragraph(subject.missing["certificate"]))
    return section(
        "certificate",
        "Certificate",
        tag("div", tag("div", *_words(proof), class_="prose"), _table(proof), class_="beside"),
    )


def verdict(proof: Certificate) -> tuple[str, str]:
    """Whether a fit converged, in a word or two, and the status as a sentence."""
    said = str(proof.status).removeprefix("converged: ")
    return "Converged" if proof.status.converged else "Not converged", said[0].upper() + said[1:]


def _words(proof: Certificate) -> list[Html]:
    share = relative_gap(proof.gap, proof.primal)
    primal, bound = apart(proof.primal, -proof.dual)
    kind = "status good" if proof.status.converged else "status wrong"
    word, said = verdict(proof)
    parts = [paragraph(tag("strong", f"{word}."), " ", said, kind=kind)]
    parts += [
        paragraph(
            "A fit looks for the model with the smallest objective: a penalty on large weights plus C "
            "times the losses of the training rows. This model's objective, the primal, is ",
            number(proof.primal, primal),
            ". The fit has also found a lower bound, from the dual: ",
            tag("strong", "no model of this kind, with these data and parameters, has an objective below "),
            number(-proof.dual, bound),
            ".",
        ),
        paragraph(*_distance(proof, share)),
        paragraph(
            "The optimality condition of a training row is met exactly at the optimum. Here the worst row "
            "misses it by ",
            number(proof.violation, _digits(proof.violation)),
            " in units of the margin; ",
            _tolerance(proof),
        ),
    ]
    if not proof.semidefinite:
        parts += [
            paragraph(
                "The lower bound is a proof if the kernel is positive semidefinite, which this kernel is "
                "not by its form. If it is not, read the gap as a measure of progress.",
                kind="note",
            )
        ]
    parts += [
        paragraph(
            "The gap says how well the training problem was solved. It does not say how well the model "
            "predicts new data: only data that were not trained on tell that.",
            kind="note",
        )
    ]
    return parts


def _distance(proof: Certificate, share: float) -> list[object]:
    """What the gap says."""
    if not math.isfinite(share):
        end = ". The primal is not positive, so there is no relative gap."
        return ["The difference, the duality gap, is ", number(proof.gap), end]
    meaning = (
        "More training would change little."
        if share <= 1e-2
        else "A better model of the training data may exist: the fit has not come close enough to exclude it."
    )
    return [
        "The difference, the duality gap, is ",
        number(proof.gap),
        ". So no model can have an objective that is smaller by more than ",
        tag("strong", number(share, percent(share))),
        ". ",
        meaning,
    ]


def _tolerance(proof: Certificate) -> Html:
    tolerance = number(proof.tol, _digits(proof.tol))
    if proof.violation <= proof.tol:
        return join(["tol asks for at most ", tolerance, "."])
    if proof.status.converged:
        return join(["tol is ", tolerance, ". This method stopped by another measure than the worst row."])
    return join(["tol asks for at most ", tolerance, ", which is not reached."])


def _digits(value: float) -> str | None:
    return None if value else "0"


def _table(proof: Certificate) -> Html:
    rows = [
        ("Status", proof.status.name.lower().replace("_", " ")),
        ("Primal objective", number(proof.primal, apart(proof.primal, -proof.dual)[0])),
        ("Dual objective (minimised)", number(proof.dual, apart(-proof.primal, proof.dual)[1])),
        ("Duality gap", number(proof.gap)),
        ("Relative gap", number(share := relative_gap(proof.gap, proof.primal), percent(share))),
        ("Largest violation", number(proof.violation)),
        ("tol", number(proof.tol)),
    ]
    columns = [text("Quantity", sorts=False), text("Value", sorts=False)]
    return table("The certificate in numbers, computed in float64", columns, rows, "certificate-table")


def key_numbers(subject: Subject, judged: Html | None) -> Html:
    """The few numbers at the top of the page."""
    tiles = []
    proof = subject.certificate
    if proof is not None:
        tiles += [
            tile("Fit", tag("span", verdict(proof)[0], class_="good" if proof.status.converged else "wrong"))
        ]
        share = relative_gap(proof.gap, proof.primal)
        if math.isfinite(share):
            tiles += [tile("Relative duality gap", number(share, percent(share)))]
    if judged is not None:
        tiles = [*tiles[:1], judged, *tiles[1:]]
    if subject.support is not None:
        total = int(subject.support.total.sum())
        tiles += [tile("Support vectors", number(total))]
    if subject.trace is not None and "seconds" in subject.trace.info:
        spent = float(str(subject.trace.info["seconds"]))
        tiles += [tile("Time of the fit", number(spent, seconds(spent)))]
    return tag("dl", *tiles, class_="key")


def tile(name: str, value: object, note: object = None) -> Html:
    """One of the key numbers."""
    return tag("div", tag("dt", name), tag("dd", value), tag("dd", note, class_="note") if note else None)
