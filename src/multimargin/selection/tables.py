"""Results as text: a table with aligned columns, and the grid of a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def text_table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table as lines of text.

    Examples
    --------
    >>> print(text_table(("C", "score"), [(1.0, 0.95), (10.0, 0.9625)]))
     C   score
     1    0.95
    10  0.9625
    """
    cells = [list(heads)] + [[short(value) for value in row] for row in rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(heads))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join(lines)


def short(value: Any) -> str:
    """A number in four digits, "-" for NaN; text as it is."""
    if isinstance(value, str):
        return value
    return "-" if isinstance(value, float | np.floating) and np.isnan(value) else f"{value:.4g}"


def grid_of(results: dict[str, Any], rows: str, columns: str, score: str) -> tuple[Any, Any, np.ndarray]:
    """The values of two parameters, and the mean scores as an array; the best over all other parameters.

    NaN where no point was finished.
    """
    down, across = (np.unique(np.asarray(results[f"param_{name}"])) for name in (rows, columns))
    table = np.full((len(down), len(across)), np.nan)
    for point, mean in zip(results["params"], results[f"mean_test_{score}"], strict=True):
        at = np.searchsorted(down, point[rows]), np.searchsorted(across, point[columns])
        table[at] = np.fmax(table[at], mean)
    return down, across, table


def grid_table(results: dict[str, Any], rows: str, columns: str, score: str, best: dict[str, Any]) -> str:
    """The grid as text, the best point in brackets; "-" for points that were dropped."""
    down, across, table = grid_of(results, rows, columns, score)
    lines: list[list[Any]] = []
    for value, means in zip(down, table, strict=True):
        cells = [short(float(mean)) for mean in means]
        if value == best[rows]:
            at = int(np.searchsorted(across, best[columns]))
            cells[at] = f"[{cells[at]}]"
        lines.append([short(value), *cells])
    return text_table([f"{rows} \\ {columns}", *map(short, across)], lines)
