"""``multimargin train``.

Train a model on DATA and write it to MODEL (default: the name of DATA with .mm, in this directory). Without
options this is Crammer and Singer's machine with an RBF kernel. The result is proved to the tolerance; the
exit code is 3 if it could not be.

  multimargin train letter.libsvm
  multimargin train iris.csv --scale standard -c 10 -g 0.5
  multimargin train news.libsvm.gz --linear
  mpiexec -n 4 multimargin train big.libsvm --engine mpi
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from contextlib import nullcontext
from typing import Any

from .main import DONE, NOT_CONVERGED, UsageError, on_ranks
from .options import (
    FIT_OPTIONS,
    KERNEL_OPTIONS,
    LINEAR_OPTIONS,
    MACHINE_OPTIONS,
    SCALES,
    add_data_options,
    add_output_options,
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("data", metavar="DATA", help="the training data")
    parser.add_argument("model", metavar="MODEL", nargs="?", help="the model file to write")
    add_output_options(parser)
    parser.add_argument("--scale", choices=SCALES, help="scale the features; predict then does the same")
    parser.add_argument("--linear", action="store_true", help="the linear machine, for large sparse data")
    titles = {
        "machine": MACHINE_OPTIONS,
        "kernel": KERNEL_OPTIONS,
        "fit": FIT_OPTIONS,
        "with --linear": LINEAR_OPTIONS,
    }
    for title, options in titles.items():
        group = parser.add_argument_group(title)
        for option in options:
            option.add(group)
    group = parser.add_argument_group("stopping and going on")
    group.add_argument(
        "--checkpoint", metavar="FILE", help="write the state of the fit there, and go on from it"
    )
    group.add_argument("--checkpoint-every", type=float, metavar="SECONDS", help="between two writes (60)")
    group.add_argument(
        "--start", metavar="MODEL", help="start from the model of an earlier fit to the same rows"
    )
    group.add_argument(
        "--keep-interrupted",
        action="store_true",
        help="on Ctrl-C, write the model as it is; the exit code is 130",
    )
    add_data_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run this command."""
    team = _team(args)
    first = team is None or team.rank == 0
    quiet = args.quiet or not first
    from . import data as files
    from .fitting import model_name

    target = args.model or model_name(args.data)
    start = time.perf_counter()
    read = files.load(args, args.data, team=team)
    labels = _every_label(args, read, team)

    def ready() -> tuple[Any, Any, Any]:
        scaling = _scaling(args, read.X, team)
        model = _estimator(args, labels, scaling, team)
        if first:
            _check_targets(args, target)
        return read.X if scaling is None else scaling.apply(read.X), scaling, model

    X, scaling, model = ready() if team is None else team.attempt(ready)
    y = files.needed_labels(read)
    seconds = {"read": time.perf_counter() - start}
    start = time.perf_counter()
    _fit(model, X, y, args, quiet)
    seconds["train"] = time.perf_counter() - start
    rows = X.shape[0] if team is None else int(team.sum(X.shape[0]))
    if not first:
        return _code(model)
    model.save(target, scaling=scaling)
    _tell(args, model, target, rows, seconds)
    return _code(model)


def _team(args: argparse.Namespace) -> Any:
    """The processes of an MPI run; None if there is only this one."""
    if not on_ranks(args):
        return None
    from ..engines import find_engine

    return find_engine("mpi").assemble()


def _scaling(args: argparse.Namespace, X: Any, team: Any) -> Any:
    if args.scale is None:
        return None
    if team is not None and team.size > 1 and args.scale != "unit":
        raise UsageError(
            f"--scale {args.scale} needs all rows in one process: scale the file first, by 'multimargin "
            f"convert --scale {args.scale}', or train in one process"
        )
    from ..datasets import Scaling

    return Scaling.fit(args.scale, X)


def _every_label(args: argparse.Namespace, read: Any, team: Any) -> Any:
    """The labels of this process, or of all of them if options name some; an error if there are none."""
    from . import data as files

    y = files.needed_labels(read)
    if team is None or not hasattr(args, "class_weight"):
        return y
    return [label for part in team.collect(y.tolist()) for label in part]


def _check_targets(args: argparse.Namespace, target: str) -> None:
    """Raise before the work if the model or the checkpoint cannot be written, or would destroy a file."""
    from .fitting import check_target

    check_target(target, inputs=(args.data, args.labels))
    if args.checkpoint is not None:
        check_target(args.checkpoint, "checkpoint", inputs=(args.data, args.labels, target, args.start))


def _estimator(args: argparse.Namespace, labels: Any, scaling: Any, team: Any) -> Any:
    """The estimator that the options ask for, not yet fitted."""
    from .fitting import checkpoint_of, make, parameters

    found = parameters(args, labels)
    if team is not None:
        from ..engines import Mpi

        found.parameters["engine"] = Mpi(data="shards")
    more: dict[str, Any] = {"on_interrupt": "keep" if args.keep_interrupted else "raise"}
    checkpoint = checkpoint_of(args)
    if checkpoint is not None:
        if args.linear:
            raise UsageError("--checkpoint is not for --linear")
        more["checkpoint"] = checkpoint
    if args.start is None:
        return make(found, **more)
    return _started(args, found.parameters | more, scaling)


def _started(args: argparse.Namespace, given: dict[str, Any], scaling: Any) -> Any:
    """The model of an earlier fit, with the options of this one."""
    from .. import KernelSVC, LinearSVC, load

    model, before = load(args.start), None
    if hasattr(model, "named_steps"):
        model, before = model[-1], model[0].kind
    model = getattr(model, "best_estimator_", model)
    wanted = LinearSVC if args.linear else KernelSVC
    if not isinstance(model, wanted):
        raise ValueError(
            f"--start {args.start} is a {type(model).__name__}, and a {wanted.__name__} is wanted"
        )
    if before != (None if scaling is None else scaling.kind):
        option = "without --scale" if before is None else f"with --scale {before}"
        raise UsageError(f"--start {args.start} was trained {option}, and so must this model be")
    return model.set_params(**given, warm_start=True)


def _fit(model: Any, X: Any, y: Any, args: argparse.Namespace, quiet: bool) -> None:
    from .display import Display

    display = Display(model.tol, quiet)
    model.callback = display
    with warnings.catch_warnings(record=True) as heard, display if not quiet else nullcontext():
        warnings.simplefilter("always")
        model.fit(X, y)
    model.set_params(callback=None, warm_start=False)
    if not args.linear:
        model.checkpoint = None
    if not isinstance(model.engine, str):
        model.engine = "mpi"
    for warning in heard:
        if str(model.status_) not in str(warning.message):  # the status is told anyway
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _code(model: Any) -> int:
    from ..solution import Status
    from .main import INTERRUPTED

    if model.status_ is Status.INTERRUPTED:
        return INTERRUPTED
    return DONE if model.status_.converged else NOT_CONVERGED


def _tell(args: argparse.Namespace, model: Any, target: str, rows: int, seconds: dict[str, float]) -> None:
    """Say what was found."""
    import os

    from ..estimators.storing import summary
    from .fitting import certificate
    from .output import as_json

    proof = certificate(model)
    size = os.path.getsize(target)
    if args.json:
        told = {"model": target, "bytes": size, "rows": rows, "seconds": seconds}
        print(as_json(told | summary(model) | proof))
        return
    if args.quiet:
        return
    facts = summary(model)
    features = facts["features"]
    kinds = f"{facts['classes']} classes, {features} feature{'' if features == 1 else 's'}"
    vectors = f", {facts['support_vectors']} support vectors" if "support_vectors" in facts else ""
    print(
        f"{rows} rows, {kinds}{vectors}; read in {seconds['read']:.2f} s, trained in {seconds['train']:.2f} s"
    )
    share = proof["relative_gap"]
    bound = "" if share is None else f"; at most {share:.2g} of the objective above the optimum"
    print(f"{model.status_} Violation {proof['violation']:.2g}{bound}")
    print(f"wrote {target} ({size / 1e6:.2f} MB)")
    sys.stdout.flush()
