"""Pictures of a search and of a path; they need matplotlib, the extra "plot"."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..system.typing import FloatArray
from .tables import grid_of, short


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install multimargin[plot]") from error
    return pyplot.figure(figsize=size, layout="constrained").add_subplot()


def plot_grid(
    results: dict[str, Any], rows: str, columns: str, score: str, best: dict[str, Any], ax: Any = None
) -> Any:
    """A heat map of mean scores with the chosen point; grey where points were dropped."""
    down, across, table = grid_of(results, rows, columns, score)
    ax = _axes(ax, (1.8 + 0.62 * len(across), 1.4 + 0.5 * len(down)))
    ax.set_facecolor("lightgrey")
    image = ax.imshow(np.ma.masked_invalid(table), origin="lower", aspect="auto", cmap="viridis")
    ax.set_xticks(range(len(across)), [short(value) for value in across], rotation=45, ha="right")
    ax.set_yticks(range(len(down)), [short(value) for value in down])
    ax.set_xlabel(columns)
    ax.set_ylabel(rows)
    at = np.searchsorted(across, best[columns]), np.searchsorted(down, best[rows])
    ax.plot(*at, marker="o", markersize=13, markerfacecolor="none", markeredgecolor="red", markeredgewidth=2)
    dropped = "; grey: dropped" if np.isnan(table).any() else ""
    ax.set_title(f"best {table[at[1], at[0]]:.4f}{dropped}")
    ax.figure.colorbar(image, ax=ax, label=f"mean test {score}")
    return ax


def plot_path(
    Cs: FloatArray, lower: FloatArray, upper: FloatArray, support: FloatArray, ax: Any = None
) -> Any:
    """The bounds of the leave-one-out error and the share of support vectors, over C."""
    ax = _axes(ax, (6.0, 4.0))
    ax.fill_between(Cs, lower, upper, alpha=0.3, label="leave-one-out error is in here")
    ax.plot(Cs, lower, Cs, upper, color="C0")
    ax.plot(Cs, support, "k--", label="share of support vectors")
    ax.set_xscale("log")
    ax.set_xlabel("C")
    ax.set_ylabel("share of the rows")
    ax.set_ylim(0.0, None)
    ax.legend()
    return ax
