"""Options that several commands have: which data, which machine, what is shown.

Names and choices are written out here, because help must not wait for the modules that know them. A test
compares them with the estimators.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

MACHINES = ("crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest", "c-svc")
KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian", "precomputed")
SOLVERS = ("auto", "dasmc", "pdasmc", "ell-based", "mcsvm", "msvmpack", "svm-light", "vpdt")
ENGINES = ("auto", "cpu", "cuda", "numpy", "mpi")
FORMATS = ("auto", "libsvm", "csv", "tsv", "npy", "npz", "parquet", "arrow", "msvmpack", "arff")
SCALES = ("minmax", "standard", "unit")
SUBPROBLEMS = ("auto", "sort", "pivot", "bisection", "fixed-point", "smo", "frank-wolfe")

KERNEL, LINEAR, BOTH = ("kernel",), ("linear",), ("kernel", "linear")


@dataclass(frozen=True)
class Option:
    """One parameter of an estimator as an option."""

    flag: str
    parameter: str
    help: str
    type: Callable[[str], Any] = str
    choices: Sequence[str] | None = None
    of: tuple[str, ...] = BOTH  # the estimators that have it
    metavar: str | None = None
    value: Any = None  # of an option without an argument

    def add(self, parser: Any) -> None:
        """Add it to a parser; what is not given is left out of the result."""
        options: dict[str, Any] = {"dest": self.parameter, "help": self.help, "default": argparse.SUPPRESS}
        if self.value is not None:
            parser.add_argument(self.flag, action="store_const", const=self.value, **options)
        elif self.parameter == "class_weight":
            parser.add_argument(self.flag, action="append", metavar=self.metavar, **options)
        else:
            options |= {"type": self.type, "choices": self.choices}
            parser.add_argument(self.flag, metavar=None if self.choices else self.metavar, **options)


def number_or(*words: str, kind: Callable[[str], Any] = float) -> Callable[[str], Any]:
    """A type of option: a number, or one of some words."""

    def read(text: str) -> Any:
        if text in words:
            return text
        try:
            return kind(text)
        except ValueError:
            number = "a number" if kind is float else "a whole number"
            allowed = " or ".join([number, *map(repr, words)])
            raise argparse.ArgumentTypeError(f"{text!r} is not {allowed}") from None

    return read


_N = "N"
MACHINE_OPTIONS = [
    Option("--machine", "machine", "the multiclass machine (default crammer-singer)", choices=MACHINES),
    Option("--C", "C", "cost of a margin error (default 1); also -c", float, metavar=_N),
    Option("--tol", "tol", "largest violation allowed (default 0.001); also -e", float, metavar=_N),
    Option(
        "--class-weight",
        "class_weight",
        "factor of C for a class, or 'balanced'; may be given again; also -wLABEL WEIGHT",
        metavar="LABEL=WEIGHT",
    ),
    Option("--threads", "n_threads", "threads (default: every core)", int, metavar=_N),
    Option("--seed", "random_state", "seed of the order of samples", int, metavar=_N),
]
KERNEL_OPTIONS = [
    Option("--kernel", "kernel", "kernel (default rbf); also -t 0 to 4", choices=KERNELS, of=KERNEL),
    Option("--degree", "degree", "degree of poly (default 3); also -d", int, of=KERNEL, metavar=_N),
    Option(
        "--gamma",
        "gamma",
        "coefficient of the kernel, 'scale' (default) or 'auto'; also -g",
        number_or("scale", "auto"),
        of=KERNEL,
        metavar=_N,
    ),
    Option("--coef0", "coef0", "constant of poly and sigmoid; also -r", float, of=KERNEL, metavar=_N),
    Option("--bias", "bias", "kind of bias", choices=("auto", "none", "regularized", "free"), of=KERNEL),
    Option(
        "--cache-size",
        "cache_size",
        "MB for kernel values (default: half of the free memory); also -m",
        number_or("auto"),
        of=KERNEL,
        metavar="MB",
    ),
]
FIT_OPTIONS = [
    Option("--solver", "solver", "named method (default auto)", choices=SOLVERS, of=KERNEL),
    Option(
        "--working-set-size",
        "working_set_size",
        "samples per step",
        number_or("auto", kind=int),
        of=KERNEL,
        metavar=_N,
    ),
    Option("--max-iter", "max_iter", "most iterations; of a linear machine passes", int, metavar=_N),
    Option("--time-limit", "time_limit", "most seconds of training", float, metavar="SECONDS"),
    Option("--engine", "engine", "where to compute (default auto)", choices=ENGINES),
    Option("--precision", "dtype", "of kernel values or weights", choices=("auto", "float32", "float64")),
    Option("--no-shrinking", "shrinking", "look at all samples in every step", value=False),
]
LINEAR_OPTIONS = [
    Option("--loss", "loss", "of a margin error", choices=("hinge", "squared_hinge"), of=LINEAR),
    Option("--subproblem", "subproblem", "solver of one sample's problem", choices=SUBPROBLEMS, of=LINEAR),
    Option("--tau", "tau", "tolerance of bisection and smo", float, of=LINEAR, metavar=_N),
    Option("--gap-tol", "gap_tol", "relative duality gap that ends the fit", float, of=LINEAR, metavar=_N),
    Option("--no-intercept", "fit_intercept", "without intercepts", value=False, of=LINEAR),
    Option("--intercept-scaling", "intercept_scaling", "constant feature", float, of=LINEAR, metavar=_N),
    Option("--no-shuffle", "shuffle", "visit samples in their order", value=False, of=LINEAR),
    Option("--keep-dual", "keep_dual", "store the dual in the model", value=True, of=LINEAR),
]
_PASSES = Option("--max-iter", "max_iter", "most passes over the data", int, of=LINEAR, metavar=_N)
_OF_LINEAR_SEARCHES = ("loss", "fit_intercept", "intercept_scaling")
SEARCH_OPTIONS = [
    *MACHINE_OPTIONS,
    *KERNEL_OPTIONS,
    _PASSES,
    *(option for option in LINEAR_OPTIONS if option.parameter in _OF_LINEAR_SEARCHES),
]
ALL_OPTIONS = [*MACHINE_OPTIONS, *KERNEL_OPTIONS, *FIT_OPTIONS, *LINEAR_OPTIONS]


@dataclass
class Chosen:
    """What the options of an estimator say."""

    linear: bool
    parameters: dict[str, Any] = field(default_factory=dict)


def chosen(args: argparse.Namespace, known: Sequence[Option] = ALL_OPTIONS) -> Chosen:
    """The parameters that were given; ``UsageError`` for those of the other estimator."""
    from .main import UsageError

    linear = bool(getattr(args, "linear", False))
    kind, other = ("linear", "a kernel machine") if linear else ("kernel", "a linear machine: add --linear")
    result = Chosen(linear)
    for option in known:
        if not hasattr(args, option.parameter):
            continue
        if kind not in option.of:
            hint = f"{option.flag} is for {other}" if not linear else f"{option.flag} is not for --linear"
            raise UsageError(hint)
        result.parameters[option.parameter] = getattr(args, option.parameter)
    return result


def add_data_options(parser: Any, labels: bool = True) -> None:
    """Add what can be said about a data file."""
    group = parser.add_argument_group("data")
    group.add_argument(
        "--format", choices=FORMATS, default="auto", help="format (default: by name or content)"
    )
    if labels:
        group.add_argument("--label", metavar="COLUMN", help="column of the labels, by name or number from 0")
        group.add_argument("--labels", metavar="FILE", help=".npy file with the labels, of .npy data")
    group.add_argument("--no-labels", action="store_true", help="the file has no labels")
    group.add_argument("--features", type=int, metavar="N", help="number of features, for LIBSVM's format")
    based = group.add_mutually_exclusive_group()
    based.add_argument("--zero-based", action="store_true", help="indices count from 0, in LIBSVM's format")
    based.add_argument("--one-based", action="store_true", help="indices count from 1")
    group.add_argument(
        "--type", metavar="DTYPE", default="auto", help="of values: uint8, float32, ... (default auto)"
    )


def add_output_options(parser: Any) -> None:
    """Add what is shown, and how."""
    parser.add_argument("-q", "--quiet", action="store_true", help="show nothing but errors")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
