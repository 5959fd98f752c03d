"""Data files and bundled data, as the options say."""

from __future__ import annotations

import argparse
from typing import Any

from .main import UsageError

DEMOS = {"digits": "load_digits", "iris": "load_iris", "wine": "load_wine", "cancer": "load_breast_cancer"}


def load(args: argparse.Namespace, path: str, *, features: int | None = None, team: Any = None) -> Any:
    """The data of a file (a ``Dataset``), of a bundled set, or of one process's part of a file."""
    if path.startswith("demo:"):
        return demo(path, args)
    from .. import datasets

    options = {
        "format": args.format,
        "label": _label(args),
        "n_features": args.features or features,
        "zero_based": True if args.zero_based else False if args.one_based else "auto",
        "dtype": args.type,
        "n_threads": getattr(args, "n_threads", None),
    }
    if team is not None:
        options["comm"] = team
    return datasets.load(path, **options)


def model_of(args: argparse.Namespace, **options: Any) -> Any:
    """The model that a command is about, from its file."""
    from .. import load as load_model
    from ..files.archive import is_model_file

    try:
        return load_model(args.model, **options)
    except ValueError as error:
        if is_model_file(args.data) and not is_model_file(args.model):
            raise ValueError(f"{error} {args.data} is one: MODEL comes before DATA.") from error
        raise


def load_for_model(args: argparse.Namespace, features: int) -> Any:
    """The data that a model of so many features is applied to."""
    try:
        return load(args, args.data, features=features)
    except ValueError as error:
        if "n_features" not in str(error) or args.features:
            raise
        hint = f"{args.model} was trained on {features} features; 'train --features N' leaves room for more"
        raise ValueError(f"{str(error).removesuffix('.')} ({hint}).") from error


def _label(args: argparse.Namespace) -> str | int | bool | None:
    if args.no_labels:
        return False
    given: str | None = getattr(args, "labels", None) or getattr(args, "label", None)
    if given is not None and getattr(args, "labels", None) is None and given.lstrip("-").isdigit():
        return int(given)
    return given


def demo(path: str, args: argparse.Namespace) -> Any:
    """A data set that comes with scikit-learn, in the smallest type that holds it."""
    name = path.partition(":")[2]
    if name not in DEMOS:
        raise UsageError(f"there are no bundled data {name!r}: use demo:{', demo:'.join(DEMOS)}")
    usual: dict[str, Any] = {
        "format": "auto",
        "label": None,
        "labels": None,
        "features": None,
        "type": "auto",
    }
    usual |= {"zero_based": False, "one_based": False}
    for option, value in usual.items():
        if getattr(args, option, value) != value:
            raise UsageError(f"--{option.replace('_', '-')} is about data files, and {path} is none")
    from sklearn import datasets as bundled

    from ..files.dataset import Dataset

    found = getattr(bundled, DEMOS[name])()
    X = found.data.astype("uint8") if name == "digits" else found.data
    y = None if args.no_labels else found.target
    return Dataset(X, y, [str(each) for each in found.feature_names], path)


def save_labels(out: str, labels: Any) -> None:
    """Write labels in NumPy's .npy format, which --labels reads."""
    from pathlib import Path

    import numpy as np

    from ..system.atomic import replacing

    with replacing(Path(out)) as file:
        np.save(file, labels.astype(str) if labels.dtype == object else labels, allow_pickle=False)


def needed_labels(data: Any) -> Any:
    """The labels of data; an error if there are none."""
    if data.y is None:
        raise ValueError(f"{data.source or 'the data'} has no labels: name them by --label or --labels")
    return data.y
