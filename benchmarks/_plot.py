"""Plots of a benchmark's curves and bars, where matplotlib is installed."""

from __future__ import annotations

from typing import Any

from _report import Report


def draw(report: Report, name: str, curves: dict, x_label: str, y_label: str, log: str) -> None:
    """Curves (name -> xs, ys) into ``name``.png beside the report; ``log`` names the logarithmic axes."""
    figure, axes = _axes(xlabel=x_label, ylabel=y_label)
    if axes is None:
        return
    for label, (xs, ys) in curves.items():
        axes.plot(xs, ys, marker="." if len(xs) < 20 else None, label=label)
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")
    if len(curves) > 1:
        axes.legend()
    _save(figure, report, name)


def draw_bars(report: Report, name: str, groups: dict[str, dict[str, float]], y_label: str) -> None:
    """One group of bars a key (label -> height), logarithmic, into ``name``.png beside the report."""
    labels = list(dict.fromkeys(label for heights in groups.values() for label in heights))
    figure, axes = _axes((2 + 1.2 * len(groups), 5), ylabel=y_label, yscale="log")
    if axes is None or not labels:
        return
    width = 0.8 / max(len(heights) for heights in groups.values())
    for k, label in enumerate(labels):
        places, values = [], []
        for group, heights in enumerate(groups.values()):
            if label in heights:
                places.append(group + width * (list(heights).index(label) - (len(heights) - 1) / 2))
                values.append(heights[label])
        axes.bar(places, values, width, label=label, color=f"C{k}", hatch="//" if k >= 10 else None)
    axes.set_xticks(range(len(groups)), groups, rotation=30, ha="right")
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    _save(figure, report, name)


def _axes(size: tuple[float, float] = (6, 4), **settings: Any) -> tuple[Any, Any]:
    """A figure and its axes, None and None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None, None
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.add_subplot(**settings)


def _save(figure: Any, report: Report, name: str) -> None:
    report.path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(report.path.parent / f"{name}.png", dpi=120)
