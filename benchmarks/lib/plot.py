"""Plots of a benchmark's curves and bars, if matplotlib is installed."""

from __future__ import annotations

from typing import Any

from benchmarks.lib.report import Report


def draw(report: Report, name: str, curves: dict, x_label: str, y_label: str, log: str) -> None:
    """Curves (name -> xs, ys) into ``name``.png beside the report; ``log`` names the logarithmic axes."""
    draw_panels(report, name, {"": curves}, x_label, y_label, log)


def draw_panels(
    report: Report, name: str, panels: dict[str, dict], x_label: str, y_label: str, log: str
) -> None:
    """Panels (title -> curves) side by side, else as ``draw``."""
    figure = _figure((1 + 5 * len(panels), 4))
    if figure is None:
        return
    for k, (title, curves) in enumerate(panels.items()):
        axes = figure.add_subplot(1, len(panels), k + 1, xlabel=x_label, ylabel=y_label, title=title)
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
    figure = _figure((2 + 1.2 * len(groups), 5))
    if figure is None or not labels:
        return
    axes = figure.add_subplot(ylabel=y_label, yscale="log")
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


def _figure(size: tuple[float, float]) -> Any:
    """An empty one, None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    return Figure(figsize=size, layout="constrained")


def _save(figure: Any, report: Report, name: str) -> None:
    report.path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(report.path.parent / f"{name}.png", dpi=120)
