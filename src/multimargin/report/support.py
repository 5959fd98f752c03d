"""Support vectors by class."""

from __future__ import annotations

from .charts import bar
from .markup import Html, join, label, number, paragraph, section, tag, whole
from .numbers import percent
from .subject import Subject
from .tables import Column, drawing, table, text


def support(subject: Subject) -> Html:
    """How many rows of each class the model is made of."""
    found = subject.support
    if found is None:
        return section("support", "Support vectors", paragraph(subject.missing["support"]))
    total, rows = int(found.total.sum()), found.rows
    said: list[object] = ["The model is made of ", whole(total), " training rows"]
    if rows is not None:
        said += [" out of ", whole(int(rows.sum())), f", {percent(total / int(rows.sum()))}"]
    said += [": only these have a part in its scores. "]
    if found.bounded is not None:
        said += [
            "A bounded one has reached the largest weight that its cost allows, so it lies inside the "
            "margin or on the wrong side. A free one lies on the margin. Many bounded ones mean noisy "
            "labels, classes that overlap, or a small C."
        ]
    legend = None
    if found.bounded is not None:
        words = [tag("span", word, class_=f"key-{word}") for word in ("free", "bounded")]
        legend = tag("p", *words, class_="legend")
    parts = [paragraph(*said)]
    if found.bounded is None and "bounded" in subject.missing:
        parts += [paragraph(subject.missing["bounded"], kind="note")]
    return section("support", "Support vectors", *parts, join([legend, _table(subject)]))


def _table(subject: Subject) -> Html:
    assert subject.support is not None
    found = subject.support
    largest = max(1, int(found.total.max()))
    columns = [text("Class"), Column("Support vectors")]
    columns += [Column("Free"), Column("Bounded")] if found.bounded is not None else []
    columns += [Column("Training rows"), Column("Share")] if found.rows is not None else []
    rows = []
    for r, name in enumerate(subject.classes.tolist()):
        n = int(found.total[r])
        cells: list[object] = [label(name, 30), whole(n)]
        shares = [(n / largest, "fill")]
        if found.bounded is not None:
            bounded = int(found.bounded[r])
            cells += [whole(n - bounded), whole(bounded)]
            shares = [((n - bounded) / largest, "fill"), (bounded / largest, "fill-wrong")]
        if found.rows is not None:
            given = int(found.rows[r])
            cells += [whole(given), number(n / given, percent(n / given)) if given else "–"]
        rows += [[*cells, bar(shares)]]
    return table(
        "Support vectors of each class", [*columns, drawing("Number, as a bar")], rows, "support-table"
    )
