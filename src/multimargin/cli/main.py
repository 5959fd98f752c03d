"""From arguments to an exit code.

Nothing here imports NumPy. A command's module is imported when the command is asked for, and what the command
needs when it runs, so that ``--help`` and completion answer at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from .interrupts import Interrupts
from .letters import lists_last, translated

DONE, FAILED, USAGE, NOT_CONVERGED, INTERRUPTED = 0, 1, 2, 3, 130

COMMANDS = {
    "demo": "show in one screen what the package does",
    "train": "train a model on a data file",
    "predict": "predict the labels of a data file; accuracy if it has labels",
    "info": "say what a model file holds",
    "cv": "cross-validate one setting",
    "tune": "choose C and gamma by cross-validation, and train the best",
    "convert": "convert a data file to another format",
    "export": "write a model for other programs: LIBSVM, ONNX",
    "report": "write an HTML page about a model and its data",
    "bench": "measure this machine against scikit-learn's SVC",
    "completion": "print the completion script of a shell",
}
_EPILOG = """\
DATA is a file in LIBSVM's format, CSV, TSV, .npy, .npz, Parquet, Arrow, ARFF or MSVMpack's format, perhaps
compressed; - is standard input; demo:digits, demo:iris, demo:wine and demo:cancer are bundled data.

exit codes: 0 done, 1 error, 2 usage, 3 not converged, 130 interrupted
"""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and where the options are explained."""

    def error(self, message: str) -> NoReturn:
        """End with the exit code of wrong usage."""
        self.exit(USAGE, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def top_parser() -> argparse.ArgumentParser:
    """The parser that knows the names of the commands."""
    parser = Parser(
        prog="multimargin",
        description="Exact multiclass kernel SVMs with a certificate of optimality.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the version and end")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, summary in COMMANDS.items():
        commands.add_parser(name, help=summary)
    return parser


def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    module = import_module(f".{command}", __package__)
    parser = Parser(
        prog=f"multimargin {command}",
        description=(module.__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_options(parser)
    parser.add_argument("--debug", action="store_true", help="show where an error came from")
    parser.set_defaults(run=module.run, command=command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given and given[0] in COMMANDS:
        parser = parser_of(given[0])
        try:
            words = translated(given[0], given[1:])
            if given[0] == "tune":
                words = lists_last(words, ("--C", "--gamma"))
        except ValueError as error:
            parser.error(str(error))
        return guarded(parser.parse_intermixed_args(words))
    top = top_parser()
    args = top.parse_args(given)
    if not args.version:
        top.print_help()
        return USAGE
    from importlib.metadata import version

    print(f"multimargin {version('multimargin')}")
    return DONE


def guarded(args: argparse.Namespace) -> int:
    """Run the command; an error is one line on stderr, and a reader that has gone is no error."""
    import warnings

    heard = Interrupts(wanted=not on_ranks(args))
    try:
        with warnings.catch_warnings(), heard:
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            code = int(args.run(args))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to be flushed
        return DONE
    except KeyboardInterrupt:
        say(args.command, "interrupted")
        return INTERRUPTED
    except UsageError as error:
        _tell(args.command, error, str(error))
        return USAGE
    except Exception as error:
        if args.debug:
            raise
        if heard.any:
            say(args.command, "interrupted")
            return INTERRUPTED
        _tell(args.command, error, described(error))
        return FAILED


def _tell(command: str, error: Exception, text: str) -> None:
    """Say an error, but only once if all processes of an MPI run have it."""
    if getattr(error, "raised_on", 0) == 0:
        say(command, f"error: {text}")


def on_ranks(args: argparse.Namespace) -> bool:
    """Whether the options ask for the processes of an MPI run."""
    return getattr(args, "engine", "") == "mpi" or getattr(args, "solver", "") == "pdasmc"


class UsageError(Exception):
    """Options that do not fit each other."""


def described(error: Exception) -> str:
    """An error in one line."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__


def say(command: str, text: str) -> None:
    """Write a line about the command to stderr, whatever has become of it."""
    try:
        sys.stderr.write(f"multimargin {command}: {text}\n")
        sys.stderr.flush()
    except OSError:
        pass


def _show_warning(message: Any, category: Any, filename: Any, lineno: Any, *_: Any) -> None:
    sys.stderr.write(f"multimargin: warning: {message}\n")
