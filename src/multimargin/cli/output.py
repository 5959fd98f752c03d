"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Mapping
from typing import Any

_MOST_CLASSES = 20  # of a confusion table


def as_json(value: Any) -> str:
    """A value as JSON; numbers that JSON does not have are null."""
    return json.dumps(plain(value), allow_nan=False, ensure_ascii=False)


def plain(value: Any) -> Any:
    """Arrays, NumPy's numbers and the like as what JSON has."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def wrote(args: argparse.Namespace, out: str, more: Mapping[str, Any] | None = None) -> None:
    """Say that a file was written, in the form that was asked for."""
    size = os.path.getsize(out)
    if args.json:
        print(as_json({"out": out, "bytes": size, **(more or {})}))
    elif not args.quiet:
        print(f"wrote {out} ({size / 1e6:.2f} MB)")


def facts(rows: dict[str, Any]) -> str:
    """Names and values, one per line."""
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())


def confusion(labels: list[str], counts: Any) -> str:
    """A table: true labels in rows, predicted ones in columns; large tables as their largest errors."""
    if len(labels) > _MOST_CLASSES:
        return _largest_errors(labels, counts)
    width = max(max(map(len, labels)), len(str(int(counts.max()))), 4)
    first = max(width, len("true"))
    lines = [" ".join([f"{'true':<{first}}", *(f"{label:>{width}}" for label in labels)])]
    for label, row in zip(labels, counts, strict=True):
        cells = (f"{int(count) or '.':>{width}}" for count in row)
        lines.append(" ".join([f"{label:<{first}}", *cells]))
    return "\n".join(lines)


def _largest_errors(labels: list[str], counts: Any) -> str:
    errors = [
        (int(counts[i, j]), labels[i], labels[j])
        for i in range(len(labels))
        for j in range(len(labels))
        if i != j and counts[i, j]
    ]
    lines = [
        f"{count:6d}  {true} predicted as {said}" for count, true, said in sorted(errors, reverse=True)[:20]
    ]
    return "\n".join(["the most frequent errors:", *lines]) if lines else "no errors"
