"""Line plots of a benchmark's curves, where matplotlib is installed."""

from __future__ import annotations

from _report import Report


def draw(report: Report, name: str, curves: dict, x_label: str, y_label: str, log: str) -> None:
    """Curves (name -> xs, ys) into ``name``.png beside the report; ``log`` names the logarithmic axes."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(xlabel=x_label, ylabel=y_label)
    for label, (xs, ys) in curves.items():
        axes.plot(xs, ys, marker="." if len(xs) < 20 else None, label=label)
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")
    if len(curves) > 1:
        axes.legend()
    report.path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(report.path.parent / f"{name}.png", dpi=120)
