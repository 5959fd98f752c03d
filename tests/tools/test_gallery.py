"""The examples of the gallery run, draw, and show what their text says."""

import runpy
from pathlib import Path

import matplotlib
import numpy as np
import pytest

GALLERY = Path(__file__).resolve().parents[2] / "examples" / "gallery"
EXAMPLES = sorted(GALLERY.glob("plot_*.py"))
pytestmark = pytest.mark.skipif(not EXAMPLES, reason="the package was installed without its examples")


def brackets(found):
    """Every objective is above every bound, and the last pair is the closest."""
    gaps = np.subtract(found["objective"], found["bound"])
    between = min(found["objective"]) >= max(found["bound"])
    return between and gaps.argmin() == len(gaps) - 1 and gaps[0] > 10 * gaps[-1]


def same_optimum(models, within):
    duals = [model.dual_objective_ for model in models]
    return np.ptp(duals) <= within * abs(min(duals))


def rare_class_grows(found):
    counts = {name: (model.predict(found["X"]) == 2).sum() for name, model in found["models"].items()}
    return counts['class_weight="balanced"'] > counts["all rows alike"]


def gives_up_points(found):
    return found["search"].cv_results_["dropped"].any() and found["search"].best_score_ > 0.7


def memory_for_time(found):
    return found["rows"][0] > 2 * found["rows"][-1] and same_optimum(found["models"], 1e-3)


def stream_keeps_up(found):
    last, fit = found["by_batches"][-1], found["by_fits"][-1]
    return last > 0.85 and fit >= last - 0.02


def other_ways(found):
    steps = {name: model.n_iter_ for name, model in found["models"].items()}
    return same_optimum(found["models"].values(), 1e-4) and steps["mcsvm"] > 1000 > steps["dasmc"]


CLAIMS = {
    "plot_certificate": brackets,
    "plot_class_weights": rare_class_grows,
    "plot_grid": gives_up_points,
    "plot_kernels": lambda found: all(model.status_.converged for model in found["models"].values()),
    "plot_linear_weights": lambda found: found["accuracy"] > 0.9,
    "plot_machines": lambda found: len({len(model.support_) for model in found["models"].values()}) > 2,
    "plot_memory": memory_for_time,
    "plot_methods": other_ways,
    "plot_path": lambda found: (found["path"].lower <= found["path"].upper).all(),
    "plot_probabilities": lambda found: max(found["losses"].values()) < np.log(4),
    "plot_stream": stream_keeps_up,
    "plot_wrong_labels": lambda found: found["found"][59] >= 40,
}


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_shows_what_it_says(path):
    matplotlib.use("Agg")
    from matplotlib import pyplot

    try:
        found = runpy.run_path(str(path))
        figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
        assert figures and all(axes.has_data() or not axes.axison for f in figures for axes in f.axes)
        for figure in figures:
            figure.canvas.draw()
        assert CLAIMS[path.stem](found)
    finally:
        pyplot.close("all")


def test_there_are_at_least_ten():
    assert len(EXAMPLES) >= 10
    assert {path.stem for path in EXAMPLES} == set(CLAIMS)
