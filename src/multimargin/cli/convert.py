"""``multimargin convert``.

Convert DATA to the format of OUT, which the end of its name says, or --to. Bundled data are a source too.

  multimargin convert demo:digits digits.libsvm
  multimargin convert table.csv table.npz --label species
  multimargin convert digits.libsvm train.libsvm.gz --rows 0:1400
  multimargin convert digits.libsvm digits.npy --labels-to digits.labels.npy
"""

from __future__ import annotations

import argparse
from typing import Any

from .main import DONE, UsageError
from .options import FORMATS, SCALES, add_data_options, add_output_options


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("data", metavar="DATA", help="the data")
    parser.add_argument("out", metavar="OUT", help="the file to write; - is standard output")
    parser.add_argument("--to", choices=FORMATS, default="auto", help="format of OUT (default: by its name)")
    parser.add_argument(
        "--rows", metavar="FIRST:END", help="only these rows, counted from 0, as Python slices"
    )
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="shuffle the rows first, with this seed")
    parser.add_argument("--scale", choices=SCALES, help="scale the features, by all rows")
    parser.add_argument(
        "--labels-to", metavar="FILE", help="write the labels to an .npy file of their own, as .npy data need"
    )
    add_output_options(parser)
    parser.add_argument("--threads", dest="n_threads", type=int, metavar="N", help="threads that read text")
    add_data_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run this command."""
    import numpy as np

    from .. import datasets
    from . import data as files
    from .fitting import check_target

    rows = _slice(args.rows)
    for target in (args.out, args.labels_to):
        if target not in ("-", None):
            check_target(target, "output file", inputs=(args.data, args.labels))
    if args.labels_to is not None and args.labels_to == args.out:
        raise UsageError("--labels-to and OUT are the same file")
    data = files.load(args, args.data)
    X, y = data.X, data.y
    if args.scale is not None:
        X = datasets.Scaling.fit(args.scale, X).apply(X)
    if args.shuffle is not None:
        order = np.random.default_rng(args.shuffle).permutation(X.shape[0])
        X, y = X[order], None if y is None else y[order]
    X, y = X[rows], None if y is None else y[rows]
    if args.labels_to is not None:
        files.needed_labels(data)
        files.save_labels(args.labels_to, y)
    apart = y if args.labels_to is None else None
    datasets.save(args.out, X, apart, format=args.to, feature_names=data.feature_names)
    _tell(args, X, y)
    return DONE


def _tell(args: argparse.Namespace, X: Any, y: Any) -> None:
    """Say what was written; on standard error if the data themselves are on standard output."""
    import sys

    import numpy as np

    from .output import as_json

    classes, sparse = None if y is None else len(np.unique(y)), hasattr(X, "indptr")
    if args.json:
        told = {"out": args.out, "rows": X.shape[0], "features": X.shape[1], "type": X.dtype.name}
        out = sys.stderr if args.out == "-" else sys.stdout
        out.write(as_json(told | {"sparse": sparse, "classes": classes}) + "\n")
    elif not args.quiet:
        kind = "sparse " if sparse else ""
        said = "no labels" if classes is None else f"{classes} classes"
        sys.stderr.write(f"{X.shape[0]} rows, {X.shape[1]} features ({kind}{X.dtype}), {said}\n")


def _slice(text: str | None) -> slice:
    """Rows as FIRST:END."""
    if text is None:
        return slice(None)
    try:
        first, end = (int(part) if part else None for part in text.split(":"))
    except ValueError:
        raise UsageError(f"--rows must be FIRST:END, such as 0:1000 or 1000:, got {text!r}") from None
    return slice(first, end)
