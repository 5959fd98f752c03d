"""Tables and pictures of a search; the papers' protocol."""

import sys

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from multimargin import KernelSVCCV, LinearSVCCV, papers_protocol
from multimargin.selection.tables import grid_of, text_table

GRID = {"Cs": [10.0, 0.1, 1.0], "gammas": [0.2, 0.01], "cv": 3}


@pytest.fixture(scope="module")
def overlap():
    return make_blobs(200, centers=3, n_features=3, cluster_std=3.0, random_state=1)


def test_table_of_a_grid(overlap):
    search = KernelSVCCV(**GRID, drop=None).fit(*overlap)
    lines = search.summary().splitlines()
    assert lines[0].split() == ["gamma", "\\", "C", "0.1", "1", "10"]
    assert [line.split()[0] for line in lines[1:]] == ["0.01", "0.2"]
    assert search.summary().count("[") == 1
    assert f"[{search.best_score_:.4g}]" in search.summary()
    down, across, means = grid_of(search.cv_results_, "gamma", "C", "score")
    for point, mean in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        assert means[list(down).index(point["gamma"]), list(across).index(point["C"])] == mean


def test_dropped_points_and_other_parameters(overlap):
    X, y = overlap
    dropped = KernelSVCCV(Cs=[1e-4, 1.0], gammas=[1e-4, 0.1], drop=0.0).fit(X, y)
    assert "-" in dropped.summary().split()
    both = KernelSVCCV(["crammer-singer", "msvm2"], Cs=[0.1, 1.0], kernel="linear", drop=None).fit(X, y)
    assert both.summary().splitlines()[1].split()[0] == "crammer-singer"
    linear = LinearSVCCV(Cs=[0.1, 1.0], drop=None).fit(X, y)
    assert len(linear.summary().splitlines()) == 3
    several = KernelSVCCV(**GRID, scoring=["accuracy", "f1_macro"], refit="f1_macro").fit(X, y)
    assert f"[{several.best_score_:.4g}]" in several.summary()
    with pytest.raises(AttributeError, match="refit=False"):
        KernelSVCCV(**GRID, scoring=["accuracy"], refit=False).fit(X, y).summary()


def test_text_table():
    assert text_table(("a", "long name"), [(1.0, np.nan), (1000.0, 2)]).splitlines() == [
        "   a  long name",
        "   1          -",
        "1000          2",
    ]


def test_picture_of_a_grid(overlap, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    search = KernelSVCCV(**GRID).fit(*overlap)
    ax = search.plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("C", "gamma")
    x, y = (float(data[0]) for data in ax.lines[0].get_data())
    assert [0.1, 1.0, 10.0][int(x)] == search.best_params_["C"]
    assert [0.01, 0.2][int(y)] == search.best_params_["gamma"]
    ax.figure.savefig(tmp_path / "grid.png")
    assert (tmp_path / "grid.png").stat().st_size > 5000
    assert search.plot(ax) is ax


def test_pictures_name_the_extra(overlap, monkeypatch):
    search = KernelSVCCV(**GRID).fit(*overlap)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"multimargin\[plot\]"):
        search.plot()


# -- the papers' protocol --------------------------------------------------------------------------------
def test_the_papers_grid(overlap):
    X, y = overlap
    search = papers_protocol(X, y, n_threads=1)
    table = search.cv_results_
    assert len(table["params"]) == 225
    betas = np.unique(1 / np.asarray(table["param_C"], dtype=float))
    np.testing.assert_array_equal(betas, 2.0 ** np.arange(-12, 3))
    np.testing.assert_array_equal(np.unique(np.asarray(table["param_gamma"])), 2.0 ** np.arange(-10, 5))
    assert search.n_splits_ == 1
    assert search.best_score_ == np.nanmax(table["mean_test_score"])
    assert (search.best_score_ * 60) % 1 == pytest.approx(0, abs=1e-9)  # 30% of 200 rows


def test_many_rows_are_sampled(overlap):
    X, y = overlap
    options = {"Cs": [1.0], "gammas": [0.1], "most_rows": 150, "sampled_rows": 100}
    search = papers_protocol(X, y, **options)
    assert search.best_estimator_.shape_fit_ == (100, 3)
    again = papers_protocol(X.tolist(), y.tolist(), **options)
    assert again.best_score_ == search.best_score_
    other = papers_protocol(X, y, **options, random_state=1)
    assert not np.array_equal(other.best_estimator_.support_vectors_, search.best_estimator_.support_vectors_)
