"""The rows to look at: training labels in doubt, and the worst mistakes on the judged data."""

from __future__ import annotations

import numpy as np

from .exhibits import Exhibit, Showcase
from .markup import Html, join, label, number, paragraph, section, tag
from .numbers import fixed, percent
from .outcome import Outcome
from .subject import Subject, Suspect

MOST = 16


def suspects(subject: Subject) -> Html:
    """Training rows whose labels are most likely wrong."""
    if subject.suspects is None:
        return section("suspects", "Suspect labels", paragraph(subject.missing["suspects"]))
    least = 0.0 if subject.certificate is None else subject.certificate.tol
    worst = [suspect for suspect in subject.suspects if suspect.loss > least]
    if not worst:
        said = "No training row has a loss above tol, so no label is in doubt."
        return section("suspects", "Suspect labels", paragraph(said))
    said = (
        "This training row has the largest loss: the model would rather give it another label. Look at it "
        "before you trust or mend the label. "
        if len(worst) == 1
        else "These training rows have the largest losses: the model would rather give them another label. "
        "Look at them before you trust or mend the labels. "
    )
    said += (
        "The dual solution spreads every row over the classes: these shares are not probabilities, but they "
        "name the classes that the row is confused with."
    )
    parts: list[object] = [paragraph(said)]
    if subject.samples is None:
        parts += [paragraph(subject.missing["samples"], kind="note")]
    showcase = Showcase(subject.samples, subject.feature_names, subject.image_shape)
    exhibits = [Exhibit(s.row, s.at, _doubts(s, subject.classes)) for s in worst]
    parts += [
        showcase.show(exhibits, f"{_rows(len(worst), 'training row')} with the largest loss", "suspect-rows")
    ]
    return section("suspects", "Suspect labels", *parts)


def _doubts(suspect: Suspect, classes: np.ndarray) -> list[tuple[str, Html]]:
    order = np.argsort(-suspect.distribution, kind="stable")
    shares = [
        tag(
            "span",
            label(classes[r], 24),
            " ",
            tag("span", percent_of(suspect.distribution[r]), class_="value"),
            class_="share",
        )
        for r in order[:2].tolist()
        if suspect.distribution[r] >= 0.005
    ]
    return [
        ("Label", label(classes[suspect.label], 24)),
        ("Dual", join(shares, ", ")),
        ("Loss", number(suspect.loss, fixed(suspect.loss, 2))),
    ]


def percent_of(share: float) -> str:
    """A share without decimals."""
    return f"{100 * share:.0f}%"


def mistakes(outcome: Outcome, subject: Subject) -> Html:
    """The rows of the judged data with the most negative margins."""
    heading = tag("h3", "The worst mistakes")
    wrong = np.flatnonzero(~outcome.right & outcome.known)
    if not len(wrong):
        return join([heading, paragraph("No row with a label that the model knows is predicted wrong.")])
    worst = wrong[np.argsort(outcome.margins[wrong], kind="stable")[:MOST]].tolist()
    exhibits = [
        Exhibit(
            i,
            i,
            [
                ("Label", label(outcome.names[int(outcome.truth[i])], 24)),
                ("Predicted", label(outcome.names[int(outcome.judged.predicted[i])], 24)),
                ("Margin", number(outcome.margins[i], fixed(outcome.margins[i], 2))),
            ],
        )
        for i in worst
    ]
    samples = outcome.judged.X if subject.samples is not None or subject.weights is not None else None
    showcase = Showcase(samples, subject.feature_names, subject.image_shape)
    share = percent(len(wrong) / outcome.n)
    said = (
        f"The rows of the data given that are farthest on the wrong side; {len(wrong):,} ({share}) are wrong."
    )
    caption = f"{_rows(len(worst), 'row')} with the most negative margin"
    return join([heading, paragraph(said), showcase.show(exhibits, caption, "mistakes")])


def _rows(count: int, name: str) -> str:
    return f"The {name}" if count == 1 else f"The {count} {name}s"
