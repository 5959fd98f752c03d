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
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ..run.fingerprint import differences
from ..run.sealed_file import MADE_UP_ERRORS, read_sealed, refuse, write_sealed
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
        What is searched, from ``describe``; ``ValueError`` if the file has another problem.
    shapes : sequence of tuple
        The shape of the decision values of each fold.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        every: float,
        problem: dict[str, Any],
        shapes: Sequence[tuple[int, int]],
    ) -> None:
        self.path, self.every, self._problem = Path(os.path.realpath(path)), every, problem
        self._shapes = list(shapes)
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
            is_later, theirs = header["format"] > FORMAT, header["problem"]
        except MADE_UP_ERRORS as error:
            self._refuse_header(error)
        if is_later:
            refuse(self.path, f"a later version of multimargin wrote it (format {header['format']})")
        if not isinstance(theirs, dict) or (different := differences(theirs, self._problem)):
            what = ", ".join(different) if isinstance(theirs, dict) else "all"
            refuse(self.path, f"it belongs to another search, which differs in {what}")
        try:
            points = [self._point(*entry) for entry in header["points"]]
            if len({point.number for point in points}) < len(points):
                raise ValueError("a point is there twice")
            arrays = self._arrays(header["arrays"], content)
            for point in points:
                point.out_of_fold = arrays if point.number == header["best"] else None
        except MADE_UP_ERRORS as error:
            self._refuse_header(error)
        return points

    def _refuse_header(self, error: Exception) -> NoReturn:
        refuse(self.path, f"its header is not as it should be ({error})")

    def _point(
        self, number: int, facts: list[Any], scores: list[dict[str, float]], dropped: bool, bound: float
    ) -> Point:
        """A point that the file has; ``ValueError`` if it is none of this search."""
        metrics = self._problem["the scores"]
        right = type(number) is int and 0 <= number < len(self._problem["the points"])
        right = right and type(dropped) is bool and _is_number(bound)
        right = right and len(facts) == len(scores) and 0 < len(scores) <= len(self._shapes)
        right = right and all(len(fact) == len(FACTS) and all(map(_is_number, fact)) for fact in facts)
        right = right and all(sorted(score) == sorted(metrics) for score in scores)
        if not right or not all(_is_number(value) for score in scores for value in score.values()):
            raise ValueError(f"point {number!r} is none of this search")
        return Point(number, [tuple(fact) for fact in facts], scores, dropped, bound)

    def _arrays(self, shapes: list[list[int]], content: bytes) -> list[np.ndarray]:
        """The decision values of the last folds, or of all."""
        expected = [list(shape) for shape in self._shapes[len(self._shapes) - len(shapes) :]]
        if shapes != expected or len(content) != 8 * sum(map(math.prod, expected)):
            raise ValueError("its decision values are not those of this search")
        arrays, start = [], 0
        for shape in expected:
            count = math.prod(shape)
            values = np.frombuffer(content, "<f8", count, start).astype(np.float64)
            if not np.isfinite(values).all():
                raise ValueError("its decision values are not finite")
            arrays.append(values.reshape(shape))
            start += 8 * count
        return arrays


def _is_number(value: object) -> bool:
    """Whether JSON's value is one that float64 has, or NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isnan(value) or abs(value) <= sys.float_info.max or math.isinf(value)


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


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
