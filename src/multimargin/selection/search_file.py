r"""A search that is written to a file now and then, so that a killed one can go on.

    multimargin search\n         what it is
    {"format": 1, …}\n           one line of JSON: the problem, facts and scores of the points that are done
    arrays                       float64, little-endian: out-of-fold decision values of the best point
    32 bytes                     SHA-256 of everything before

A point is there if its first fold is done, or if nothing more is to be done for it. A search that goes on
fits the rest. There is nothing executable in the file; ``run/sealed_file.py`` writes it whole or not at all.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..run.fingerprint import differences
from ..run.sealed_file import read_sealed, refuse, write_sealed
from ..system.atomic import prepare
from ..system.warn import warn_user
from .column import FACTS, Point
from .fits import Fold

MAGIC = b"multimargin search\n"
FORMAT = 1


class SearchFile:
    """The file of one search.

    Parameters
    ----------
    path : str or path-like
        The file. If it exists, the search goes on with it.
    every : float
        Seconds between two writes.
    problem : dict
        What is searched, as JSON can hold it; ``ValueError`` if the file has another problem.
    """

    def __init__(self, path: str | os.PathLike[str], every: float, problem: dict[str, Any]) -> None:
        self.path, self.every, self._problem = Path(os.path.realpath(path)), every, problem
        prepare(self.path, "checkpoint")
        self._points = {point.number: point for point in self._read()} if self.path.exists() else {}
        self._last, self._is_saved = time.perf_counter(), True

    @property
    def points(self) -> list[Point]:
        """What is done."""
        return list(self._points.values())

    def add(self, point: Point) -> None:
        """Something is done of a point; it is written now if the last write is long enough ago."""
        self._points[point.number], self._is_saved = point, False
        if time.perf_counter() - self._last >= self.every:
            self.save()

    def save(self) -> None:
        """Write all points. If that fails there is a warning, and the old file stays."""
        if self._is_saved:
            return
        best = self._best()
        arrays = [] if best is None else [np.ascontiguousarray(S, "<f8") for S in best.out_of_fold or []]
        header = {
            "format": FORMAT,
            "facts": FACTS,
            "problem": self._problem,
            "points": [[p.number, p.facts, p.scores, p.dropped, p.bound] for p in self.points],
            "best": None if best is None else best.number,
            "arrays": [list(array.shape) for array in arrays],
        }
        try:
            write_sealed(self.path, [MAGIC, json.dumps(header).encode() + b"\n", *map(_bytes, arrays)])
            self._is_saved = True
        except OSError as error:
            warn_user(
                f"The checkpoint {str(self.path)!r} could not be written: {error}. The search goes on, and "
                "the file stays as it was.",
                RuntimeWarning,
            )
        self._last = time.perf_counter()

    def _best(self) -> Point | None:
        """The point that may be asked for its out-of-fold values: of equal ones the first in the grid."""
        able = [point for point in self.points if point.out_of_fold is not None]
        return max(able, key=lambda point: (point.bound, -point.number), default=None)

    def _read(self) -> list[Point]:
        text, _, content = read_sealed(self.path, MAGIC, "checkpoint of a search").tobytes().partition(b"\n")
        try:
            header = json.loads(text)
            if header["format"] > FORMAT:
                refuse(self.path, f"a later version of multimargin wrote it (format {header['format']})")
            if different := differences(header["problem"], self._problem):
                refuse(self.path, f"it belongs to another search, which differs in {', '.join(different)}")
            points = [_point(*entry) for entry in header["points"]]
            arrays = _arrays(header["arrays"], content)
            for point in points:
                point.out_of_fold = arrays if point.number == header["best"] else None
        except (KeyError, TypeError, IndexError, json.JSONDecodeError) as error:
            refuse(self.path, f"its header is not as it should be ({error})")
        return points


def _point(number: int, facts: list[Any], scores: list[Any], dropped: bool, bound: float) -> Point:
    return Point(number, [tuple(fact) for fact in facts], scores, dropped, bound)


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


def _arrays(shapes: list[list[int]], content: bytes) -> list[np.ndarray]:
    arrays, start = [], 0
    for shape in shapes:
        size = 8 * math.prod(shape)
        if start + size > len(content):
            raise IndexError("there are too few values")
        arrays.append(np.frombuffer(content[start : start + size], "<f8").astype(np.float64).reshape(shape))
        start += size
    return arrays


def describe(
    params: Sequence[dict[str, Any]], folds: Sequence[Fold], metrics: Sequence[str]
) -> dict[str, Any]:
    """What tells one search from another, beside its samples."""
    digest = hashlib.sha256()
    for fold in folds:
        out = np.zeros(len(fold.unit), dtype=bool) if fold.left_out is None else fold.left_out
        for part in (np.packbits(out), fold.test.astype("<i8"), fold.unit.astype("<f8")):
            digest.update(part.tobytes())
    return {
        "the points": [list(map(str, point.items())) for point in params],
        "the folds": digest.hexdigest(),
        "the scores": list(metrics),
    }
