"""``multimargin export``.

Write MODEL for another program: OUT.onnx for runtimes of ONNX, OUT.model for LIBSVM's svm-predict.
"""

from __future__ import annotations

import argparse

from .main import DONE


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("model", metavar="MODEL", help="a model file")
    parser.add_argument("out", metavar="OUT", help="the file to write")
    parser.add_argument(
        "--to", choices=("auto", "libsvm", "onnx"), default="auto", help="format (default: by name)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="show nothing but errors")


def run(args: argparse.Namespace) -> int:
    """Run this command."""
    import os

    from .. import load
    from .fitting import check_target

    check_target(args.out, "output file", inputs=(args.model,))
    model, scaling = load(args.model), None
    if hasattr(model, "named_steps"):
        model, scaling = model[-1], model[0].scaling_
    model.export(args.out, args.to, scaling=scaling)
    if not args.quiet:
        print(f"wrote {args.out} ({os.path.getsize(args.out) / 1e6:.2f} MB)")
    return DONE
