"""``multimargin cv``.

Cross-validate one setting of C and gamma on DATA. Every fold is solved to the same tolerance as by train, and
the folds share their kernel values.

  multimargin cv iris.csv -c 10 -g 0.1 --folds 10
"""

from __future__ import annotations

import argparse

from .main import DONE, NOT_CONVERGED
from .searching import add_search_options, search_of


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("data", metavar="DATA", help="the data")
    add_search_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run this command."""
    import numpy as np

    from . import data as files
    from .fitting import check_target
    from .output import as_json

    read = files.load(args, args.data)
    X, y = read.X, files.needed_labels(read)
    if args.scale is not None:
        from ..datasets import Scaling

        X = Scaling.fit(args.scale, X).apply(X)
    if args.checkpoint is not None:
        check_target(args.checkpoint, "checkpoint", inputs=(args.data, args.labels))
    C, gamma = getattr(args, "C", 1.0), getattr(args, "gamma", "scale")
    search = search_of(args, y, [C], [gamma], False, drop=None).fit(X, y)
    table = search.cv_results_
    folds = range(search.n_splits_)
    scores = np.array([table[f"split{k}_test_score"][0] for k in folds])
    told = {
        "score": args.scoring or "accuracy",
        "mean": float(scores.mean()),
        "std": float(scores.std()),
        "folds": scores,
        "duality_gaps": [table[f"split{k}_duality_gap"][0] for k in folds],
        "converged": all(bool(table[f"split{k}_converged"][0]) for k in folds),
        "seconds": float(sum(table[f"split{k}_fit_time"][0] for k in folds)),
        "params": table["params"][0],
    }
    if args.json:
        print(as_json(told))
    elif not args.quiet:
        listed = " ".join(f"{score:.4f}" for score in scores)
        print(f"{told['score']} {told['mean']:.4f} ± {told['std']:.4f} ({listed}) in {told['seconds']:.2f} s")
    return DONE if told["converged"] else NOT_CONVERGED
