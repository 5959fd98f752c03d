"""What ``cv`` and ``tune`` share: the options of a search, and the search itself."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from .main import UsageError
from .options import SCALES, SEARCH_OPTIONS, add_data_options, add_output_options


def add_search_options(parser: argparse.ArgumentParser, without: tuple[str, ...] = ()) -> None:
    """Add the options of a cross-validation."""
    add_output_options(parser)
    parser.add_argument("--folds", type=int, default=5, metavar="N", help="number of folds (default 5)")
    parser.add_argument("--scoring", metavar="NAME", help="scikit-learn's name of a score (default accuracy)")
    parser.add_argument(
        "--shuffle", action="store_true", help="shuffle the rows before they are split; see --seed"
    )
    parser.add_argument("--scale", choices=SCALES, help="scale the features, by all rows")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="kernels that are fitted at the same time (default 1)"
    )
    parser.add_argument("--checkpoint", metavar="FILE", help="write finished fits there, and go on from it")
    parser.add_argument("--linear", action="store_true", help="the linear machine, for large sparse data")
    group = parser.add_argument_group("machine")
    for option in SEARCH_OPTIONS:
        if option.parameter not in without:
            option.add(group)
    add_data_options(parser)


def search_of(args: argparse.Namespace, labels: Any, Cs: Any, gammas: Any, refit: bool, **more: Any) -> Any:
    """The search that the options ask for."""
    from sklearn.model_selection import StratifiedKFold

    from .. import KernelSVCCV, LinearSVCCV
    from .fitting import parameters

    if args.folds < 2:
        raise UsageError(f"--folds must be at least 2, got {args.folds}")
    given = parameters(args, labels, SEARCH_OPTIONS).parameters
    seed = given.get("random_state")
    cv = StratifiedKFold(args.folds, shuffle=True, random_state=seed or 0) if args.shuffle else args.folds
    with_gamma = given.get("kernel", "rbf") in ("rbf", "poly", "sigmoid", "laplacian")
    for name in ("C", "gamma"):
        given.pop(name, None)
    if not args.linear:
        given["gammas"] = gammas if with_gamma else None
    return (LinearSVCCV if args.linear else KernelSVCCV)(
        Cs=Cs,
        cv=cv,
        scoring=args.scoring,
        refit=refit,
        n_jobs=args.jobs,
        checkpoint=args.checkpoint,
        verbose=0 if args.quiet else 1 if sys.stderr.isatty() else 2,
        **given,
        **more,
    )
