"""``multimargin info``.

Say what MODEL holds: the machine, its certificate, the classes, and in which type its support vectors are
stored.
"""

from __future__ import annotations

import argparse
from typing import Any

from .main import DONE


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("model", metavar="MODEL", help="a model file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Run this command."""
    from .. import load
    from ..files import archive
    from .output import as_json, facts

    model = load(args.model, mmap=True)  # with all checks
    document, _, size = archive.read(args.model, mmap=True, check=False)
    told = collected(model, document, size)
    print(as_json(told) if args.json else facts(_for_people(told)))
    return DONE


def collected(model: Any, document: dict[str, Any], size: int) -> dict[str, Any]:
    """What there is to say about a model."""
    from ..estimators.storing import summary

    last = model[-1] if hasattr(model, "named_steps") else model
    told: dict[str, Any] = {
        "estimator": document["estimator"],
        "format_version": document["version"],
        "written_by": document["written_by"]["multimargin"],
        "bytes": size,
    }
    told |= summary(last)
    told["labels"] = last.classes_
    best = getattr(last, "best_estimator_", last)
    trace = getattr(best, "trace_", None)
    if trace is not None and "kernel_form" in trace.info:
        told["kernel_form"] = trace.info["kernel_form"]
    if hasattr(best, "_rows_fitted"):
        told["training_rows"] = best._rows_fitted
    if hasattr(best, "n_support_"):
        told["support_vectors_by_class"] = best.n_support_
    if hasattr(last, "best_params_"):
        told["best_params"] = last.best_params_
    told["scaling"] = None if model is last else model[0].kind
    told["parameters"] = {
        name: value for name, value in last.get_params(deep=False).items() if not hasattr(value, "fit")
    }
    return told


def _for_people(told: dict[str, Any]) -> dict[str, Any]:
    from ..solution import Status

    rows = dict(told)
    parameters = rows.pop("parameters")
    given = ", ".join(f"{name}={value}" for name, value in parameters.items() if value is not None)
    labels = [str(label) for label in rows["labels"].tolist()]
    rows["labels"] = " ".join(labels[:20]) + (" ..." if len(labels) > 20 else "")
    if "support_vectors_by_class" in rows:
        rows["support_vectors_by_class"] = " ".join(map(str, rows["support_vectors_by_class"].tolist()[:20]))
    if "status" in rows:
        rows["status"] = Status[rows["status"]]
    for name, value in rows.items():
        if isinstance(value, float):
            rows[name] = f"{value:.4g}"
    if "best_params" in rows:
        rows["best_params"] = ", ".join(f"{name}={value}" for name, value in rows["best_params"].items())
    rows["size"] = f"{rows.pop('bytes') / 1e6:.3f} MB"
    rows["scaling"] = rows["scaling"] or "none"
    return {name.replace("_", " "): value for name, value in rows.items()} | {"parameters": given}
