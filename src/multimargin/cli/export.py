"""``multimargin export``.

Write MODEL for another program: OUT.onnx for runtimes of ONNX, OUT.model for LIBSVM's svm-predict.
"""

from __future__ import annotations

import argparse

from .main import DONE
from .options import add_output_options


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("model", metavar="MODEL", help="a model file")
    parser.add_argument("out", metavar="OUT", help="the file to write")
    parser.add_argument(
        "--to", choices=("auto", "libsvm", "onnx"), default="auto", help="format (default: by name)"
    )
    add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run this command."""
    from .. import load
    from .fitting import check_target
    from .output import wrote

    check_target(args.out, "output file", inputs=(args.model,))
    model, scaling = load(args.model), None
    if hasattr(model, "named_steps"):
        model, scaling = model[-1], model[0].scaling_
    model.export(args.out, args.to, scaling=scaling)
    wrote(args, args.out)
    return DONE
