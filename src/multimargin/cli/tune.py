"""``multimargin tune``.

Choose C and gamma by cross-validation, train the best on all rows of DATA, and write it to MODEL with
probabilities. --C and --gamma take several values; without them a grid around the usual ones is tried.

  multimargin tune letter.libsvm --C 1 10 100 --gamma 0.1 1 10
  multimargin tune news.libsvm.gz --linear --checkpoint news.search
"""

from __future__ import annotations

import argparse
from typing import Any

from .main import DONE, NOT_CONVERGED, UsageError
from .options import number_or
from .searching import add_search_options, search_of

CALIBRATIONS = ("temperature", "sigmoid", "isotonic")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("data", metavar="DATA", help="the data")
    parser.add_argument("model", metavar="MODEL", nargs="?", help="the model file to write")
    add_search_options(parser, without=("C", "gamma"))
    parser.add_argument(
        "--calibration",
        choices=CALIBRATIONS,
        default="temperature",
        help="how scores become probabilities (default temperature)",
    )
    group = parser.add_argument_group("grid")
    group.add_argument("--C", dest="Cs", type=float, nargs="+", metavar="N", help="costs to try; also -c")
    group.add_argument(
        "--gamma",
        dest="gammas",
        type=number_or("scale", "auto"),
        nargs="+",
        metavar="N",
        help="coefficients of the kernel to try; also -g",
    )
    group.add_argument(
        "--all-points", action="store_true", help="finish points that cannot be the best any more"
    )


def run(args: argparse.Namespace) -> int:
    """Run this command."""
    from . import data as files
    from .fitting import check_target, model_name

    target = args.model or model_name(args.data)
    read = files.load(args, args.data)
    X, y = read.X, files.needed_labels(read)
    scaling = None
    if args.scale is not None:
        from ..datasets import Scaling

        scaling = Scaling.fit(args.scale, X)
        X = scaling.apply(X)
    check_target(target, inputs=(args.data, args.labels))
    if args.checkpoint is not None:
        check_target(args.checkpoint, "checkpoint", inputs=(args.data, args.labels, target))
    if args.linear and args.gammas is not None:
        raise UsageError("--gamma is not for --linear")
    more: dict[str, Any] = {"drop": None} if args.all_points else {}
    more["calibration"] = args.calibration
    usual = 7 if args.linear else 5
    search = search_of(args, y, args.Cs or usual, args.gammas, True, **more).fit(X, y)
    search.set_params(verbose=0, checkpoint=None)
    search.save(target, scaling=scaling)
    _tell(args, search, target)
    return DONE if search.best_estimator_.status_.converged else NOT_CONVERGED


def _tell(args: argparse.Namespace, search: Any, target: str) -> None:
    from .fitting import certificate
    from .output import as_json

    table = search.cv_results_
    best = search.best_estimator_
    told = {
        "model": target,
        "score": args.scoring or "accuracy",
        "best_score": search.best_score_,
        "best_params": search.best_params_,
        "temperature": search.temperature_,
        "points": [
            params | {"mean": mean, "dropped": bool(dropped)}
            for params, mean, dropped in zip(
                table["params"], table["mean_test_score"].tolist(), table["dropped"].tolist(), strict=True
            )
        ],
    } | certificate(best)
    vectors = ""
    if hasattr(best, "support_"):
        told["support_vectors"] = len(best.support_)
        vectors = f"{len(best.support_)} support vectors, "
    if args.json:
        print(as_json(told))
    elif not args.quiet:
        for point in told["points"]:
            named = "  ".join(f"{name} {point[name]:<10.4g}" for name in search.best_params_)
            print(f"{named}  {'dropped' if point['dropped'] else format(point['mean'], '.4f')}")
        chosen = ", ".join(f"{name} {value:.6g}" for name, value in search.best_params_.items())
        print(f"best: {chosen}; {told['score']} {search.best_score_:.4f}")
        print(f"wrote {target}: {vectors}{best.status_}")
