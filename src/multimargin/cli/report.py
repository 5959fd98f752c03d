"""``multimargin report``.

Write an HTML page about MODEL and DATA to OUT (default: the name of MODEL with .html): the certificate, where
the time went, the confusion matrix, and the labels that are most likely wrong. The page needs no network.
"""

from __future__ import annotations

import argparse
import os

from .main import DONE
from .options import add_data_options, add_output_options


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("model", metavar="MODEL", help="a model file")
    parser.add_argument("data", metavar="DATA", help="data with labels, best those of the training")
    parser.add_argument("out", metavar="OUT", nargs="?", help="the page to write")
    add_output_options(parser)
    add_data_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run this command."""
    from . import data as files
    from .fitting import check_target
    from .output import wrote

    out = args.out or f"{os.path.splitext(os.path.basename(args.model))[0]}.html"
    check_target(out, "report", inputs=(args.model, args.data, args.labels))
    model, scaling = files.model_of(args), None
    if hasattr(model, "named_steps"):
        model, scaling = model[-1], model[0].scaling_
    data = files.load_for_model(args, int(model.n_features_in_))
    X, y = data.X, files.needed_labels(data)
    model.report(out, X, y, scaling=scaling)
    wrote(args, out, {"rows": X.shape[0]})
    return DONE
