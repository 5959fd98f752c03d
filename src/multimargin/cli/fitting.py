"""From options to a fitted estimator: what ``train`` does, apart from files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .main import UsageError
from .options import ALL_OPTIONS, Chosen, chosen


def make(found: Chosen, **more: Any) -> Any:
    """The estimator that the options ask for."""
    from .. import KernelSVC, LinearSVC

    return (LinearSVC if found.linear else KernelSVC)(**found.parameters, **more)


def weights_of(given: list[str], labels: Any) -> Any:
    """``class_weight`` from words: 'balanced', or LABEL=WEIGHT for some of the labels."""
    import numpy as np

    if given == ["balanced"]:
        return "balanced"
    known = {str(label): label for label in np.unique(labels).tolist()}
    known |= {
        str(int(label)): label for label in known.values() if isinstance(label, float) and label % 1 == 0
    }
    weights = {}
    for word in given:
        name, sign, number = word.rpartition("=")
        if not sign:
            raise UsageError(f"--class-weight must be 'balanced' or LABEL=WEIGHT, got {word!r}")
        if name not in known:
            raise ValueError(f"--class-weight {word}: there is no class {name!r}, only {', '.join(known)}")
        try:
            weights[known[name]] = float(number)
        except ValueError:
            raise UsageError(f"--class-weight {word}: {number!r} is not a number") from None
    return weights


def parameters(args: argparse.Namespace, labels: Any, options: Any = ALL_OPTIONS) -> Chosen:
    """The parameters that were given, with class weights by the labels there are."""
    found = chosen(args, options)
    if "class_weight" in found.parameters:
        found.parameters["class_weight"] = weights_of(found.parameters["class_weight"], labels)
    return found


def checkpoint_of(args: argparse.Namespace) -> Any:
    """The parameter ``checkpoint``: a path, perhaps with seconds."""
    if args.checkpoint is None:
        if args.checkpoint_every is not None:
            raise UsageError("--checkpoint-every needs --checkpoint FILE")
        return None
    return args.checkpoint if args.checkpoint_every is None else (args.checkpoint, args.checkpoint_every)


def model_name(data: str) -> str:
    """The name of a model file that goes with a data file, in the current directory."""
    if data == "-":
        return "model.mm"
    name = os.path.basename(data.replace("demo:", ""))
    return f"{name.split('.')[0] or name}.mm"


def check_target(target: str, what: str = "model file", inputs: Iterable[str | None] = ()) -> None:
    """Raise before the work rather than after it if its result cannot be written, or would destroy a file.

    What the command reads is not overwritten. A model file takes the place of a model file only, and a report
    that of an HTML page: a second data file in the place of MODEL stays what it is.
    """
    from ..files.archive import is_model_file
    from ..system.atomic import prepare

    path = Path(target)
    for given in inputs:
        if given is not None and _is_same(path, Path(given)):
            raise UsageError(f"{target} is another file of this command: the {what} needs a name of its own")
    looks_right = {"model file": is_model_file, "report": _is_page}.get(what)
    if looks_right is not None and path.is_file() and path.stat().st_size and not looks_right(path):
        raise ValueError(
            f"{target} exists and is no {what}, so it is not overwritten: give another name, or remove it"
        )
    if what == "model file" or not path.exists() or path.is_file():  # others may be devices and pipes
        prepare(path, what)


def _is_page(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(64).lstrip().lower().startswith(b"<!doctype html")


def _is_same(one: Path, other: Path) -> bool:
    """Whether two names are of one file, which may not exist yet; devices and pipes are no files here."""
    if one.is_file() and other.is_file():
        return os.path.samefile(one, other)
    return not one.exists() and os.path.realpath(one) == os.path.realpath(other)


def certificate(model: Any) -> dict[str, Any]:
    """How good a fit is, by its own proof."""
    names = ("violation_", "primal_objective_", "dual_objective_", "duality_gap_", "n_iter_")
    found = {name.rstrip("_"): getattr(model, name) for name in names if hasattr(model, name)}
    primal = float(found.get("primal_objective", 0.0))
    found["relative_gap"] = found["duality_gap"] / primal if primal > 0 else None
    return {"status": model.status_.name.lower(), "converged": bool(model.status_.converged)} | found
