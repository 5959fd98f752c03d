r"""The file of a checkpoint: written whole or not at all, and refused if a single byte is wrong.

    multimargin checkpoint\n     what it is
    {"format": 1, …}\n           one line of JSON: format, facts, problem, name and shape of each array
    arrays                       int64 and float64, little-endian, one after the other
    32 bytes                     SHA-256 of everything before

There is nothing executable in it. The first line and the checksum at the end are the same in every format, so
that a file of a later version is told from a damaged one. ``sealed_file.py`` writes it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..system.typing import FloatArray, IntArray
from .sealed_file import MADE_UP_ERRORS, read_sealed, refuse, write_sealed

MAGIC = b"multimargin checkpoint\n"
FORMAT = 1
_DTYPES = {"rows": "<i8", "coef": "<f8", "bias": "<f8"}  # the arrays, in the order of the file
_FACTS: dict[str, Any] = {
    "iterations": int,
    "seconds": (int, float),
    "seed": int,
    "solver": str,
    "counts": dict,
}


@dataclass(frozen=True)
class Snapshot:
    """A point on the way of a fit."""

    rows: IntArray  # row numbers of the support vectors in the data, ascending
    coef: FloatArray  # (n_SV, m), their rows of alpha
    bias: FloatArray  # (m,)
    facts: dict[str, Any]  # iterations, seconds, seed, solver, counts
    problem: dict[str, Any]  # see ``fingerprint.py``


# -- write -----------------------------------------------------------------------------------------------
def write(path: Path, state: Snapshot) -> None:
    """Replace the file by one with this state; ``OSError`` if that fails, and then the old file stays."""
    arrays = {name: np.ascontiguousarray(getattr(state, name), dtype) for name, dtype in _DTYPES.items()}
    header = {
        "format": FORMAT,
        "arrays": {name: list(array.shape) for name, array in arrays.items()},
        "facts": state.facts,
        "problem": state.problem,
    }
    parts: list[Any] = [MAGIC, json.dumps(header).encode() + b"\n"]
    write_sealed(path, parts + [array.reshape(-1).view(np.uint8) for array in arrays.values()])


# -- read ------------------------------------------------------------------------------------------------
def read(path: Path) -> Snapshot:
    """Return the state in a file; ``ValueError`` if it is not a complete file of a format known here."""
    body = read_sealed(path, MAGIC, "checkpoint")
    text, _, arrays = body.tobytes().partition(b"\n")
    try:
        header = json.loads(text)
        is_later = header["format"] > FORMAT
    except MADE_UP_ERRORS as error:
        _refuse_header(path, error)
    if is_later:
        refuse(
            path,
            f"a later version of multimargin wrote it (format {header['format']}, and this version reads "
            f"format {FORMAT}); update multimargin to go on with it",
        )
    try:
        _check_facts(header["facts"], header["problem"])
        found = _arrays(header["arrays"], memoryview(arrays))
    except MADE_UP_ERRORS as error:
        _refuse_header(path, error)
    return Snapshot(**found, facts=header["facts"], problem=header["problem"])


def _refuse_header(path: Path, error: Exception) -> NoReturn:
    refuse(path, f"its header is not as it should be ({error})")


class _MalformedError(ValueError):
    """Parts that do not fit their description."""


def _check_facts(facts: dict[str, Any], problem: dict[str, Any]) -> None:
    """Raise unless every fact has its type."""
    for name, kind in _FACTS.items():
        if not isinstance(facts[name], kind) or isinstance(facts[name], bool):
            raise _MalformedError(f"its {name!r} is {facts[name]!r}")
    if min(facts["iterations"], facts["seed"]) < 0 or not math.isfinite(facts["seconds"]):
        raise _MalformedError("its numbers are out of range")
    if not isinstance(problem, dict):
        raise _MalformedError("it does not say what the problem is")


def _arrays(shapes: dict[str, list[int]], content: memoryview) -> dict[str, Any]:
    """Return the arrays of a file by name."""
    arrays, start = {}, 0
    for name, dtype in _DTYPES.items():
        if any(type(length) is not int or length < 0 for length in shapes[name]):
            raise _MalformedError(f"the shape of {name} is {shapes[name]!r}")
        size = 8 * math.prod(shapes[name])
        part = np.frombuffer(content[start : start + size], dtype)
        if 8 * len(part) != size:
            raise _MalformedError(f"there are too few values of {name}")
        arrays[name] = part.astype(dtype[1:]).reshape(shapes[name])  # a copy, in the order of this machine
        start += size
    if start != len(content):
        raise _MalformedError("there are more values than it says")
    rows, coef, bias = arrays.values()
    if coef.ndim != 2 or bias.ndim != 1 or rows.shape != coef.shape[:1] or len(bias) != coef.shape[1]:
        raise _MalformedError("the shapes of its arrays do not fit each other")
    if not (np.isfinite(coef).all() and np.isfinite(bias).all() and (np.diff(rows) > 0).all()):
        raise _MalformedError("its values are not finite or not in order")
    return arrays
