"""``multimargin demo``: one screen, and a picture if something can show it."""

import importlib
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from sklearn.datasets import load_digits

from multimargin import KernelSVC
from multimargin.cli import demo, demo_picture
from multimargin.cli.main import UsageError, main


@pytest.fixture(scope="module")
def shown():
    return demo.measured()


def test_one_screen_of_text(capsys):
    assert main(["demo", "--no-picture"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80 and err == ""
    assert "KernelSVC converged" in out and "Proved: no such model" in out
    assert any(sign in out for sign in "▀▄█")


def test_what_is_told_is_what_was_measured(capsys):
    assert main(["demo", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    X, y = load_digits(return_X_y=True)
    test = np.arange(len(X)) % 4 == 3
    model = KernelSVC().fit(X[~test].astype(np.uint8), y[~test])
    assert told["KernelSVC"]["accuracy"] == model.score(X[test].astype(np.uint8), y[test]) > 0.98
    assert told["KernelSVC"]["support_vectors"] == len(model.support_)
    assert told["KernelSVC"]["relative_gap"] == pytest.approx(model.duality_gap_ / model.primal_objective_)
    assert told["changed_labels_found"] >= 7  # chance would find 0.07 of them


def test_a_terminal_without_block_elements_gets_plain_signs(shown):
    text = demo.screen(shown, unicode=False)
    text.encode("ascii")
    assert "#" in text


@pytest.mark.parametrize(
    ("encoding", "can"), [("utf-8", True), ("ascii", False), (None, False), ("no such", False)]
)
def test_what_a_terminal_can_print(encoding, can):
    assert demo._can_print("▀", encoding) is can


def test_two_pixels_are_one_character():
    pixels = np.zeros((8, 8))
    pixels[0, 0] = pixels[1, 1] = pixels[0, 2] = pixels[1, 2] = 16
    head, first, *rest = demo.images([demo.Suspect(pixels, 3, 5, True)], unicode=True)
    assert head.startswith("3, or 5?")
    assert first.rstrip() == "▀▄█"
    assert not "".join(rest).strip()


# -- the picture -------------------------------------------------------------------------------------------
def test_the_picture_is_written(tmp_path, shown, capsys):
    path = tmp_path / "demo.png"
    demo_picture.show(shown, str(path))
    assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 20_000
    assert str(path) in capsys.readouterr().out


def test_looser_fits_bracket_the_optimum(shown):
    brackets = shown.brackets([0.1, 0.001])
    assert all(bound <= shown.model.primal_objective_ <= primal * 1.001 for _, primal, bound in brackets)
    loose, tight = (primal - bound for _, primal, bound in brackets)
    assert tight < loose


def test_a_notebook_shows_the_picture(shown, monkeypatch):
    displayed = []
    ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    display = SimpleNamespace(display=displayed.append, Image=lambda data: data)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    where = demo_picture.place(None, off=False)
    assert where == "notebook"
    demo_picture.show(shown, where)
    assert len(displayed) == 1 and displayed[0].startswith(b"\x89PNG")


def test_the_picture_has_every_suspect(shown):
    figure = Figure()
    demo_picture.draw(figure, shown)
    assert len(figure.findobj(AxesImage)) == demo.CHANGED == len(shown.suspects)


@pytest.mark.parametrize(
    ("terminal", "display", "platform", "where"),
    [
        (True, ":0", "linux", "display"),
        (True, "", "linux", "nowhere"),
        (False, ":0", "linux", "nowhere"),
        (True, "", "darwin", "display"),
    ],
)
def test_a_display_is_used_if_a_person_sits_at_it(terminal, display, platform, where, monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert demo_picture.place(None, off=False) == where
    assert demo_picture.place(None, off=True) == "nowhere"


def test_a_window_is_opened_and_waited_for(shown, monkeypatch):
    from matplotlib import pyplot

    opened = []
    monkeypatch.setattr(pyplot, "show", lambda: opened.extend(pyplot.get_fignums()))
    before = set(pyplot.get_fignums())
    demo_picture.show(shown, "display")
    new = set(opened) - before
    assert len(new) == 1
    pyplot.close(new.pop())


def test_without_matplotlib_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(demo_picture, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"multimargin\[plot\]"):
        demo_picture.place("demo.png", off=False)
    monkeypatch.setattr(demo_picture, "_in_notebook", lambda: True)
    assert demo_picture.place(None, off=False) == "nowhere"
    assert "multimargin[plot]" in capsys.readouterr().err


def test_help_imports_neither_numpy_nor_matplotlib():
    module = importlib.import_module("multimargin.cli.demo")
    assert not {"np", "numpy", "pyplot"} & set(vars(module))
