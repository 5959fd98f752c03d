"""``multimargin bench``.

Measure this machine: train on DATA (default: the bundled digits), by turns with scikit-learn's SVC. Times and
the accuracy on every fourth row, which is left out, are compared. For two classes both solve the same
problem. With more, SVC trains one machine per pair of classes instead.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from .main import DONE, NOT_CONVERGED
from .options import add_data_options, add_output_options, number_or


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("data", metavar="DATA", nargs="?", default="demo:digits", help="the data")
    parser.add_argument("--C", type=float, default=1.0, metavar="N", help="cost (default 1); also -c")
    parser.add_argument(
        "--gamma",
        type=number_or("scale", "auto"),
        default="scale",
        metavar="N",
        help="of the RBF kernel; also -g",
    )
    parser.add_argument("--tol", type=float, default=1e-3, metavar="N", help="tolerance of both; also -e")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="fits of each (default 3)")
    parser.add_argument("--threads", dest="n_threads", type=int, metavar="N", help="our threads; SVC has one")
    add_output_options(parser)
    add_data_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run this command."""
    import numpy as np

    from . import data as files
    from .output import as_json

    read = files.load(args, args.data)
    X, y = read.X, files.needed_labels(read)
    test = np.arange(X.shape[0]) % 4 == 3
    told = measured(args, X[~test], y[~test], X[test], y[test])
    if args.json:
        print(as_json(told))
    elif not args.quiet:
        _tell(told)
    return DONE if told["multimargin"]["converged"] else NOT_CONVERGED


def measured(args: argparse.Namespace, X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    """Fits of both by turns, and what they reached."""
    import numpy as np
    from sklearn.svm import SVC

    from .. import KernelSVC
    from .fitting import certificate

    machine = "c-svc" if len(np.unique(y)) == 2 else "crammer-singer"
    ours = KernelSVC(machine, args.C, gamma=args.gamma, tol=args.tol, n_threads=args.n_threads)
    theirs = SVC(C=args.C, gamma=args.gamma, tol=args.tol)
    seconds: dict[str, list[float]] = {"multimargin": [], "SVC": []}
    for _ in range(max(args.repeats, 1)):
        for name, model in (("multimargin", ours), ("SVC", theirs)):
            start = time.perf_counter()
            model.fit(X, y)
            seconds[name].append(time.perf_counter() - start)
    told: dict[str, Any] = {"rows": X.shape[0], "features": X.shape[1], "classes": len(ours.classes_)}
    for name, model in (("multimargin", ours), ("SVC", theirs)):
        told[name] = {
            "seconds": min(seconds[name]),
            "all_seconds": seconds[name],
            "accuracy": model.score(X_test, y_test),
            "support_vectors": len(model.support_),
        }
    told["multimargin"] |= {"machine": machine} | certificate(ours)
    told["ratio"] = told["SVC"]["seconds"] / told["multimargin"]["seconds"]
    return told


def _tell(told: dict[str, Any]) -> None:
    print(f"{told['rows']} rows, {told['features']} features, {told['classes']} classes; the best of each")
    for name in ("multimargin", "SVC"):
        found = told[name]
        print(
            f"{name:<12} {found['seconds']:9.4f} s  accuracy {found['accuracy']:.4f}  "
            f"{found['support_vectors']} support vectors"
        )
    ours = told["multimargin"]
    share = ours["relative_gap"]
    bound = "" if share is None else f", at most {share:.2g} of the objective above the optimum"
    print(f"SVC takes {told['ratio']:.2f} times as long")
    print(f"proof of {ours['machine']}: violation {ours['violation']:.2g}{bound}")
