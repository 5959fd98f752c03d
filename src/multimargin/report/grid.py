"""The search over C and gamma: scores as a heat map, and all results as a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..system.typing import FloatArray
from .charts import figure, rect, words
from .markup import Html, join, number, paragraph, section, tag, whole
from .numbers import NONE, fixed, seconds, short
from .palette import LEVELS, level
from .subject import Grid, Subject
from .tables import Column, table, text

_CELL_WIDTH, _CELL_HEIGHT = 74.0, 40.0


def search(subject: Subject) -> Html | None:
    """What the search has found; None if there was none."""
    grid = subject.grid
    if grid is None:
        return None
    results = grid.results
    dropped = int(results["dropped"].sum())
    points, mean = len(results["params"]), results[f"mean_test_{grid.score}"]
    parts: list[object] = [
        whole(points),
        " point was" if points == 1 else " points were",
        " scored in ",
        whole(grid.folds),
        " folds by ",
        grid.metric,
        ". ",
    ]
    if grid.best is not None:
        std = float(results[f"std_test_{grid.score}"][grid.best])
        parts += [
            "The best is ",
            tag("strong", _name(results["params"][grid.best])),
            " with a mean of ",
            number(float(mean[grid.best]), fixed(float(mean[grid.best]), 4)),
            " (standard deviation over the folds ",
            number(std, fixed(std, 4)),
            "). ",
        ]
    if dropped:
        parts += [
            whole(dropped),
            " point was dropped before all its folds were fitted, because it"
            if dropped == 1
            else " points were dropped before all their folds were fitted, because they",
            " could not become the best. A hatched cell names the largest mean that was still possible.",
        ]
    said = [paragraph(*parts)]
    if grid.interrupted:
        said += [
            paragraph("The search was interrupted: points without a score were not reached.", kind="note")
        ]
    return section("search", "Search over the grid", *said, _heat_map(grid), _table(grid))


def _name(params: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {_value(value)}" for name, value in params.items())


def _value(value: Any) -> str:
    return value if isinstance(value, str) else short(float(value), 3)


def _others(point: dict[str, Any]) -> dict[str, Any]:
    """All parameters of a point but C: the points that share them are a row of the map."""
    return {name: value for name, value in point.items() if name != "C"}


def _axes(grid: Grid) -> tuple[list[float], list[dict[str, Any]]]:
    """The costs, and what tells the rows of the map from each other, from the bottom upwards."""
    rows: list[dict[str, Any]] = []
    for point in grid.results["params"]:
        if (others := _others(point)) not in rows:
            rows.append(others)
    if all(list(row) == ["gamma"] for row in rows):
        rows.sort(key=lambda row: float(row["gamma"]))
    return sorted({point["C"] for point in grid.results["params"]}), rows


def _heat_map(grid: Grid) -> Html:
    """C across, gamma and other parameters upwards; blue is better."""
    Cs, rows = _axes(grid)
    labels = [", ".join(map(_value, row.values())) for row in rows]
    mean: FloatArray = np.asarray(grid.results[f"mean_test_{grid.score}"], dtype=float)
    known = mean[np.isfinite(mean)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    left, top = 36.0 + 7.0 * max(8, *map(len, labels)), 12.0
    pattern = tag(
        "pattern",
        tag("rect", width=6, height=6, class_="b0"),
        tag("path", d="M-1 7L7 -1M-1 1L1 -1M5 7L7 5", class_="hatch"),
        id="hatch",
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
    )
    cells, chosen = [], []
    for k, point in enumerate(grid.results["params"]):
        i = len(rows) - 1 - rows.index(_others(point))
        x, y = left + Cs.index(point["C"]) * _CELL_WIDTH, top + i * _CELL_HEIGHT
        cells += _cell(grid, k, float(mean[k]), (low, high), x, y)
        if k == grid.best:
            chosen = [rect(x + 1.5, y + 1.5, _CELL_WIDTH - 5, _CELL_HEIGHT - 5, "chosen")]
    bottom = top + len(rows) * _CELL_HEIGHT
    ticks = [words(left + (k + 0.5) * _CELL_WIDTH - 1, bottom + 16, short(C, 3)) for k, C in enumerate(Cs)]
    for k, label in enumerate(labels):
        y = top + (len(rows) - 0.5 - k) * _CELL_HEIGHT + 3
        ticks += [words(left - 8, y, label, anchor="end")]
    ticks += [words(left + len(Cs) * _CELL_WIDTH / 2, bottom + 34, "C", "tick title")]
    names = ", ".join(rows[0])
    if names:
        middle = (top + bottom) / 2
        ticks += [words(12, middle, names, "tick title", transform=f"rotate(-90 12 {middle:g})")]
    legend = _legend(left, bottom + 48, low, high)
    size = (left + max(len(Cs) * _CELL_WIDTH, 240) + 8, bottom + 86)
    best = "" if grid.best is None else f" The best point is {_name(grid.results['params'][grid.best])}."
    described = f"Heat map of {len(rows)} by {len(Cs)} values, from {short(low)} to {short(high)}.{best}"
    shapes = join([tag("defs", pattern), *cells, *chosen, *ticks, legend])
    note = paragraph("All points are in the table of results below.")
    return figure(
        "grid",
        f"Mean {grid.metric} by {' and '.join(filter(None, ['C', names]))}",
        described,
        shapes,
        size,
        note,
        "matrix" if len(Cs) <= 5 else "matrix large",
    )


def _cell(grid: Grid, k: int, mean: float, ends: tuple[float, float], x: float, y: float) -> list[Html]:
    point, results = grid.results["params"][k], grid.results
    at = (x + _CELL_WIDTH / 2 - 1, y + _CELL_HEIGHT / 2 + 3)
    box = (x, y, _CELL_WIDTH - 2, _CELL_HEIGHT - 2)
    if np.isfinite(mean):
        share = (mean - ends[0]) / ((ends[1] - ends[0]) or 1.0)
        kind = f"b{min(LEVELS - 1, max(1, level(share)))}"
        tip = f"{_name(point)}: {fixed(mean, 4)} ± {fixed(float(results[f'std_test_{grid.score}'][k]), 4)}"
        return [rect(*box, kind, tip), words(*at, fixed(mean, 4), f"on-{kind} inside")]
    bound = float(results["bound_test_score"][k])
    if not results["dropped"][k]:
        return [rect(*box, "frame", f"{_name(point)}: no score"), words(*at, NONE, "tick")]
    tip = f"{_name(point)}: dropped; its mean could reach {fixed(bound, 4)} at most"
    return [rect(*box, "dropped", tip), words(*at, f"≤ {fixed(bound, 3)}", "inside on-b0")]


def _legend(x: float, y: float, low: float, high: float) -> Html:
    parts = [rect(x + 18 * k, y, 18, 9, f"b{k + 1}") for k in range(LEVELS - 1)]
    end = x + 18 * (LEVELS - 1)
    parts += [
        words(x, y + 24, fixed(low, 3), "tick", "start"),
        words(end, y + 24, fixed(high, 3), "tick", "end"),
    ]
    parts += [rect(end + 16, y, 18, 9, "dropped"), words(end + 40, y + 9, "dropped", "tick", "start")]
    return join(parts)


def _table(grid: Grid) -> Html:
    results = grid.results
    params = results["params"]
    columns = [Column("Rank"), Column("C")]
    columns += [
        text(name) if isinstance(value, str) else Column(name) for name, value in _others(params[0]).items()
    ]
    columns += [
        Column("Mean"),
        Column("Std"),
        Column("Folds"),
        Column("Largest gap"),
        Column("Largest violation"),
    ]
    columns += [Column("Time of a fit"), text("State")]
    rows = []
    order = np.argsort(results[f"rank_test_{grid.score}"], kind="stable")
    for k in order.tolist():
        fold_times = np.array([results[f"split{f}_fit_time"][k] for f in range(grid.folds)], dtype=float)
        done = np.isfinite(fold_times)
        converged = all(results[f"split{f}_converged"][k] for f in range(grid.folds) if done[f])
        state = "chosen" if k == grid.best else "dropped" if results["dropped"][k] else "scored"
        state = state if converged else f"{state}, not converged"
        mean, std = (float(results[f"{word}_test_{grid.score}"][k]) for word in ("mean", "std"))
        rows += [
            [
                whole(int(results[f"rank_test_{grid.score}"][k])) if np.isfinite(mean) else NONE,
                number(params[k]["C"]),
                *(v if isinstance(v, str) else number(v) for v in _others(params[k]).values()),
                number(mean, fixed(mean, 4)),
                number(std, fixed(std, 4)),
                f"{int(done.sum())} of {grid.folds}",
                *(_largest(results, name, k, grid.folds) for name in ("duality_gap", "violation")),
                _time(fold_times[done]),
                tag("strong", state) if k == grid.best else state,
            ]
        ]
    return table(
        f"All {len(rows)} points, the best first; score: {grid.metric}", columns, rows, "grid-results"
    )


def _largest(results: Any, name: str, k: int, folds: int) -> object:
    values = np.array([results[f"split{f}_{name}"][k] for f in range(folds)], dtype=float)
    return number(float(np.nanmax(values))) if np.isfinite(values).any() else NONE


def _time(values: FloatArray) -> object:
    return number(float(values.mean()), seconds(float(values.mean()))) if len(values) else NONE
