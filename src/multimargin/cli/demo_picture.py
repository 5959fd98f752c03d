"""The picture of ``multimargin demo``, and where it is shown."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any

from .main import UsageError

if TYPE_CHECKING:
    from .demo import Shown

_TOLS = (1.0, 0.1, 0.03, 0.01, 0.001)
_SIZE = (9.0, 5.0)
_HINT = 'A picture needs matplotlib: pip install "multimargin[plot]"'


def place(path: str | None, off: bool) -> str:
    """Where the picture goes: "notebook", "display", "nowhere" or a file."""
    if path is not None:
        if find_spec("matplotlib") is None:
            raise UsageError(_HINT)
        return path
    if off:
        return "nowhere"
    found = "notebook" if _in_notebook() else "display" if _has_display() else "nowhere"
    if found != "nowhere" and find_spec("matplotlib") is None:
        print(_HINT, file=sys.stderr)
        return "nowhere"
    return found


def show(shown: Shown, where: str) -> None:
    """Draw the picture and show it, or write it to a file."""
    if where == "nowhere":
        return
    if where == "display":
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=_SIZE, layout="constrained")
        draw(figure, shown)
        pyplot.show()
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    draw(figure, shown)
    if where == "notebook":
        drawn = BytesIO()
        figure.savefig(drawn, dpi=96)  # a figure is only text in a notebook that has not set matplotlib up
        notebook = import_module("IPython.display")
        notebook.display(notebook.Image(drawn.getvalue()))
    else:
        figure.savefig(where, dpi=150)
        print(f"wrote {where}")


def draw(figure: Any, shown: Shown) -> None:
    """The suspects, and under them certificates and sizes."""
    upper, lower = figure.subfigures(2, 1, height_ratios=(0.6, 1))
    upper.suptitle("The training rows with the least plausible labels (orange: changed on purpose)")
    for axes, suspect in zip(upper.subplots(1, len(shown.suspects)), shown.suspects, strict=True):
        axes.imshow(suspect.pixels, cmap="gray_r")
        axes.set_xticks([])
        axes.set_yticks([])
        colour = "C1" if suspect.changed else "black"
        axes.set_title(f"{suspect.label}, or {suspect.likely}?", color=colour, fontsize=10)
    left, right = lower.subplots(1, 2)
    tols, primal, bound = zip(*shown.brackets(_TOLS), strict=True)
    left.fill_between(tols, bound, primal, alpha=0.3, label="the optimum is in here")
    left.plot(tols, primal, marker=".", label="objective of the model")
    left.plot(tols, bound, marker=".", label="proved lower bound")
    left.set(xscale="log", xlabel="tol", title="What certificates of looser fits say")
    left.invert_xaxis()
    left.legend()
    names = ("KernelSVC", "SVC")
    counts = [shown.told[name]["support_vectors"] for name in names]
    bars = right.barh(["KernelSVC", "scikit-learn SVC"], counts, color=["C0", "C7"])
    right.bar_label(bars, [f"{shown.told[name]['accuracy']:.1%} right" for name in names], padding=4)
    right.set(xlabel="support vectors", xlim=(0, 1.35 * max(counts)), title="Size and accuracy of the models")
    right.invert_yaxis()


def _in_notebook() -> bool:
    """Whether this process draws into a notebook."""
    if "IPython" not in sys.modules:
        return False
    shell = import_module("IPython").get_ipython()
    return getattr(shell, "kernel", None) is not None


def _has_display() -> bool:
    """Whether a person at a terminal has a display beside it."""
    if not sys.stdout.isatty():
        return False
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
