"""The page as text: its structure, its numbers, what it says about what is missing, and what is refused."""

import base64
import errno
import hashlib
import io
import itertools
import os
import pickle
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import binomtest
from sklearn.datasets import load_digits, load_iris

from multimargin import KernelSVC, KernelSVCCV, LinearSVC
from multimargin.datasets import Scaling
from multimargin.report import numbers, palette
from multimargin.report.images import data_address, shape_of_images
from multimargin.report.markup import Html, escape, label, tag
from multimargin.report.outcome import Outcome
from multimargin.report.scales import Scale, decades
from multimargin.report.subject import Judged
from multimargin.system import atomic

VOID = {"meta", "link", "img", "br", "hr"}


class Tree(HTMLParser):
    """Checks the nesting, and collects elements with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.seen.append((name, dict(attributes), list(self.open)))
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def all(self, name):
        return [(attributes, inside) for seen, attributes, inside in self.seen if seen == name]


def text_of(path):
    return path.read_text(encoding="utf-8")


def words_of(page):
    """What a reader reads, with single spaces."""
    body = re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


# -- structure ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", ["digits", "alone", "stopped", "search", "machines", "linear search", "iris", "many"]
)
def test_the_structure_is_sound(pages, name):
    tree = Tree(text_of(pages[name][0]))
    ids = [attributes["id"] for _, attributes, _ in tree.seen if "id" in attributes]
    assert len(ids) == len(set(ids))
    levels = [int(seen[1]) for seen, _, _ in tree.seen if re.fullmatch(r"h[1-6]", seen)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    for landmark in ("header", "nav", "main", "footer"):
        assert len(tree.all(landmark)) == 1
    assert len(tree.all("caption")) == len(tree.all("table"))
    assert all(attributes.get("scope") in ("col", "row") for attributes, _ in tree.all("th"))
    assert all(attributes.get("alt") for attributes, _ in tree.all("img"))
    drawings = [attributes for attributes, _ in tree.all("svg") if attributes.get("role") == "img"]
    for attributes in drawings:
        assert set(attributes["aria-labelledby"].split()) <= set(ids)
    hidden = [attributes for attributes, _ in tree.all("svg") if attributes.get("aria-hidden") == "true"]
    assert len(drawings) + len(hidden) == len(tree.all("svg"))
    assert not any("style" in attributes for _, attributes, _ in tree.seen)
    assert not any(key.startswith("on") for _, attributes, _ in tree.seen for key in attributes)


@pytest.mark.parametrize("name", ["digits", "search", "many"])
def test_the_page_names_nothing_outside(pages, name):
    page = text_of(pages[name][0])
    assert "http:" not in page
    assert "https:" not in page
    tree = Tree(page)
    links = [a["href"] for a, _ in [*tree.all("a"), *tree.all("link")]]
    assert all(link.startswith(("#", "data:,")) for link in links)
    assert all(attributes["src"].startswith("data:image/png;base64,") for attributes, _ in tree.all("img"))


def test_the_policy_allows_the_pages_own_style_and_script_alone(pages):
    page = text_of(pages["digits"][0])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for name in ("style", "script"):
        (content,) = re.findall(rf"<{name}>(.*?)</{name}>", page, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy


def test_phases_take_no_longer_than_the_fit(pages):
    for name, (_, model, *_) in pages.items():
        info = getattr(model, "best_estimator_", model).trace_.info
        if "profile" in info:
            assert sum(info["profile"].values()) <= info["seconds"] * (1 + 1e-9), name


def test_one_row_is_not_several(flowers, tmp_path):
    X, y = flowers
    model = KernelSVC(C=10).fit(X, y)
    wrong = np.flatnonzero(model.predict(X) != y)[:1]
    chosen = np.concatenate([wrong, np.flatnonzero(model.predict(X) == y)])
    text = model.report(tmp_path / "one.html", X[chosen], y[chosen]).read_text(encoding="utf-8")
    assert "The row with the most negative margin" in text


def test_one_suspect_is_not_several(tmp_path):
    X = np.repeat([[0.0], [10.0]], 10, axis=0)
    y = np.repeat([0, 1], 10)
    y[3] = 1
    model = KernelSVC(gamma=0.1).fit(X, y)
    assert (model._support_loss > model.tol).sum() == 1
    text = model.report(tmp_path / "one.html").read_text(encoding="utf-8")
    assert "This training row has the largest loss" in text


def test_names_are_escaped():
    assert escape("<b>&\"'") == "&lt;b&gt;&amp;&quot;&#x27;"
    assert escape(Html("<b>")) == "<b>"
    assert tag("p", "<", title='"><script>') == '<p title="&quot;&gt;&lt;script&gt;">&lt;</p>'
    assert "\ud800" not in escape("a\ud800\x00b")
    assert len(label("x" * 1000)) < 120


def test_the_package_is_imported_without_its_pages():
    code = (
        "import sys, multimargin; assert not [m for m in sys.modules if m.startswith('multimargin.report')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- numbers --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1e-3, "0.001"),
        (189.26323, "189.3"),
        (-0.00048, "−4.8\u202f×\u202f10⁻⁴"),
        (123456.7, "123,457"),
        (1.5e9, "1.5\u202f×\u202f10⁹"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
        (999.96, "1,000"),
    ],
)
def test_numbers_have_four_digits(value, text):
    assert numbers.short(value) == text


def test_numbers_that_differ_look_different():
    assert numbers.apart(163.6926, 163.6762) == ("163.69", "163.68")
    assert numbers.apart(5.0, 5.0) == ("5", "5")


def test_other_numbers():
    assert numbers.percent(0.00999999) == "1.0%"
    assert numbers.fixed(-0.0001, 2) == "0.00"
    assert numbers.seconds(3725) == "1 h 2 min"
    assert numbers.size(999) == "999 bytes"
    assert numbers.size(2_340_000_000) == "2.34 GB"


def test_scales_have_round_ticks():
    assert [text for _, text in Scale(0, 0.9, 0, 100).ticks(5)] == ["0", "0.2", "0.4", "0.6", "0.8"]
    assert decades([3e-4, 20.0]) == (1e-4, 100.0)
    assert [value for value, _ in Scale(1e-4, 1e2, 0, 1, log=True).ticks(4)] == [1e-4, 1e-2, 1.0, 1e2]
    assert Scale(0, 10, 100, 0)(-5) == 100
    assert Scale(2, 2, 0, 1).ticks() == [(2, "2")]


def outcome(y, predicted, scores=None, classes=(0, 1, 2)):
    predicted = np.asarray(predicted)
    scores = np.eye(len(classes))[predicted] if scores is None else scores
    return Outcome(Judged(None, np.asarray(y), scores, predicted, 0.0), np.asarray(classes))


@pytest.mark.parametrize(("right", "n"), [(0, 7), (7, 7), (3, 7), (950, 1000)])
def test_the_error_bar_is_wilsons(right, n):
    found = outcome([0] * n, [0] * right + [1] * (n - right)).interval
    expected = binomtest(right, n).proportion_ci(0.95, method="wilson")
    assert found == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_margins_and_labels_that_the_model_does_not_know():
    scores = np.array([[3.0, 1.0, 2.5], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    found = outcome([0, 2, 7], [0, 1, 2], scores)
    np.testing.assert_allclose(found.margins, [0.5, -0.5, np.nan])
    assert found.names == [0, 1, 2, 7]
    assert found.cells == {(0, 0): 1, (2, 1): 1, (3, 2): 1}
    assert found.accuracy == pytest.approx(1 / 3)
    two = outcome([0, 1, 1], [0, 0, 1], np.array([-2.0, -1.0, 3.0]), classes=(0, 1))
    np.testing.assert_allclose(two.margins, [2.0, -1.0, 3.0])


@pytest.mark.parametrize("dark", [False, True])
def test_colours_are_readable_and_their_steps_even(dark):
    colours = dict(re.findall(r"--([\w-]+):(#\w{6})", palette.variables(dark)))
    for name in ("ink", "muted", "accent", "wrong", "good"):
        assert palette.contrast(colours[name], colours["paper"]) >= 4.5
        assert palette.contrast(colours[name], colours["raised"]) >= 4.5
    for name in "bo":
        ramp = [colours[f"{name}{k}"] for k in range(palette.LEVELS)]
        light = np.array([palette.luminance(colour) for colour in ramp]) ** (1 / 3)
        assert (np.diff(light) > 0).all() == dark
        assert np.ptp(np.abs(np.diff(light))) < 0.03
        for k, colour in enumerate(ramp):
            assert palette.contrast(colours[f"on-{name}{k}"], colour) >= 4.5


# -- images ---------------------------------------------------------------------------------------------
def test_images_are_told_from_tables():
    digits, rng = load_digits().data, np.random.default_rng(0)
    assert shape_of_images(digits, "auto") == (8, 8)
    assert shape_of_images(sparse.csr_array(digits), "auto") == (8, 8)
    assert shape_of_images(digits, None) is None
    assert shape_of_images(digits, (4, 16)) == (4, 16)
    assert shape_of_images(digits[:, rng.permutation(64)], "auto") is None
    assert shape_of_images(rng.normal(size=(300, 64)), "auto") is None
    assert shape_of_images(rng.normal(size=(300, 1)) * np.ones(64), "auto") is None
    assert shape_of_images(np.zeros((300, 64)), "auto") is None
    assert shape_of_images(digits[:, :36], "auto") is None
    assert shape_of_images(np.array(["a", "b"], dtype=object), "auto") is None


@pytest.mark.parametrize("shape", [(3, 5), (2, 4, 3)])
def test_images_are_png_files(shape):
    image = pytest.importorskip("matplotlib.image")
    row = np.linspace(-1.0, 1.0, int(np.prod(shape)))
    address = data_address(row, shape, -1.0, 1.0)
    content = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    read = image.imread(io.BytesIO(content), format="png")
    np.testing.assert_allclose(read.ravel(), (row + 1) / 2, atol=1 / 255)


def test_a_method_that_stops_by_another_measure_does_not_contradict_itself(digit_data, tmp_path):
    X, _, y, _ = digit_data
    model = KernelSVC(solver="dasmc", tol=0.1).fit(X, y)
    assert model.status_.converged
    page = said(model, tmp_path)
    assert ("This method stopped by another measure" in page) == (model.violation_ > model.tol)
    assert "not reached" not in page


# -- what is missing is said ----------------------------------------------------------------------------
@pytest.fixture
def flowers():
    return load_iris(return_X_y=True)


def said(model, tmp_path, *data, **options):
    return words_of(text_of(model.report(tmp_path / "page.html", *data, **options)))


def test_a_model_alone_says_that_no_data_were_given(digit_model, tmp_path):
    page = said(digit_model, tmp_path)
    assert "No data were given to judge the model on" in page
    assert "Accuracy" not in page


def test_a_stored_linear_model_says_what_was_not_stored(flowers, tmp_path):
    model = pickle.loads(pickle.dumps(LinearSVC(C=10).fit(*flowers)))
    page = said(model, tmp_path, *flowers)
    assert "The model has no trace" in page
    assert "stored without its dual" in page
    assert "Duality gap" in page


def test_a_stream_has_no_certificate(flowers, tmp_path):
    model = LinearSVC().partial_fit(*flowers, classes=[0, 1, 2])
    page = said(model, tmp_path, *flowers)
    assert "would need all rows again" in page
    assert "Duality gap" not in page
    assert "Largest weights" in page


def test_one_vs_rest_knows_no_classes_of_its_support(flowers, tmp_path):
    page = said(LinearSVC("one-vs-rest").fit(*flowers), tmp_path)
    assert re.search(r"The model has [\d,]+ support vectors\. Their classes are not known", page)


def test_a_search_without_a_model(flowers, tmp_path):
    search = KernelSVCCV(Cs=[1, 10], gammas=[0.1], refit=False).fit(*flowers)
    page = said(search, tmp_path)
    assert "refit=False" in page
    assert "Search over the grid" in page
    with pytest.raises(ValueError, match="refit=False"):
        search.report(tmp_path / "page.html", *flowers)


def test_kernel_values_have_no_rows_to_show(flowers, tmp_path):
    X, y = flowers
    model = KernelSVC(kernel="precomputed").fit(X @ X.T, y)
    page = said(model, tmp_path, X @ X.T, y)
    assert "The rows themselves are not in the model" in page
    assert "positive semidefinite" in page
    assert "unusual features" not in page


def test_strings_and_other_objects_are_shown_as_they_are(tmp_path):
    texts = ["aab", "aba<b>", "bcc", "ccb", "aaa", "bbc"] * 3

    def kernel(a, b):
        return np.array([[sum(x.count(c) * z.count(c) for c in "abc") for z in b] for x in a], dtype=float)

    model = KernelSVC(kernel=kernel, C=0.01).fit(texts, [0, 1, 1, 0, 1, 0] * 3)
    page = text_of(model.report(tmp_path / "page.html", texts, [0, 1, 1, 0, 1, 0] * 3))
    assert "aba&lt;b&gt;" in page
    assert "<b>" not in page


@pytest.mark.parametrize(
    "machine", ["crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest", "c-svc"]
)
def test_every_machine_and_two_classes(machine, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = KernelSVC(machine, C=0.5).fit(X[50:], y[50:])
    page = said(model, tmp_path, X[50:], y[50:])
    assert f"{machine} machine" in page
    assert "positive for the second class" in page
    Tree(text_of(tmp_path / "page.html"))


def test_sparse_data_and_feature_names(text, tmp_path):
    X, y = text
    page = said(KernelSVC(kernel="linear", C=0.05).fit(X, y), tmp_path, X, y)
    assert "Largest features" in page
    assert "sparse" in page
    sparsified = LinearSVC().fit(X, y).sparsify()
    assert "Raise its score" in said(sparsified, tmp_path, X, y)


def test_labels_that_the_model_does_not_know_count_as_wrong(flowers, tmp_path):
    X, y = flowers
    model = KernelSVC().fit(X[y < 2], y[y < 2])
    page = said(model, tmp_path, X, y)
    assert "50 rows have labels that the model does not know" in page
    assert model.score(X, y) <= 100 / 150
    only = said(model, tmp_path, X[y == 2], y[y == 2])
    assert "No row has a label that the model knows" in only


def test_a_perfect_model_has_nothing_to_confuse(flowers, tmp_path):
    X, y = flowers
    model = KernelSVC(C=1e4, gamma=10.0).fit(X, y)
    page = said(model, tmp_path, X, y)
    assert "No row is predicted wrong" in page


@pytest.mark.parametrize(("kind", "shown"), [("minmax", "before"), ("standard", "before"), ("unit", "after")])
def test_rows_of_a_scaled_model_are_shown_as_the_reader_knows_them(kind, shown, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.integers(100, 200, (60, 3)), np.arange(60) % 2  # labels that nothing can predict
    scaling = Scaling.fit(kind, X)
    model = KernelSVC(C=0.1).fit(scaling.apply(X), y)
    page = said(model, tmp_path, X, y, scaling=scaling)
    assert f"{kind}; " in page and f"shown {shown} it" in page
    assert f"accuracy of {100 * model.score(scaling.apply(X), y):.2f}%" in page
    mistakes, suspects = page[page.index("The worst mistakes") :].split("Suspect labels")[:2]
    for part in [mistakes, suspects] if kind != "unit" else [mistakes]:
        values = [float(value) for value in re.findall(r"feature \d : ([^ ]+)", part)]
        assert len(values) > 20
        assert all(100 <= value < 200 and value == round(value) for value in values)


def test_several_scores_of_a_search(flowers, tmp_path):
    search = KernelSVCCV(Cs=[1, 10], kernel="linear", scoring=["accuracy", "f1_macro"], refit="f1_macro")
    page = said(search.fit(*flowers), tmp_path)
    assert "by f1 macro" in page


def test_a_large_page_of_images_stays_small(digit_model, digit_data, tmp_path):
    path = digit_model.report(tmp_path / "page.html", digit_data[1], digit_data[3])
    assert path.stat().st_size < 150_000


# -- the file -------------------------------------------------------------------------------------------
def test_the_path_is_returned_and_the_file_replaced(digit_model, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    assert digit_model.report(str(path)) == path
    assert text_of(path).startswith("<!DOCTYPE html>")
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_full_disk_leaves_the_old_page(digit_model, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        digit_model.report(path)
    assert text_of(path) == "old"
    assert os.listdir(tmp_path) == ["page.html"]


def test_what_cannot_be_done_is_refused(digit_model, digit_data, tmp_path):
    _, X, _, y = digit_data
    path = tmp_path / "page.html"
    cases = [
        ((X, None), {}, "belong together"),
        ((None, y), {}, "belong together"),
        ((X, y[:-1]), {}, "inconsistent numbers"),
        ((X[:, 1:], y), {}, "features"),
        ((X, y.astype(str)), {}, "labels y are text"),
        ((X, y), {"image_shape": (3, 4)}, "image_shape must be"),
        ((X, y), {"image_shape": "square"}, "image_shape must be"),
        ((X, y), {"image_shape": (8.0, 8.0)}, "image_shape must be"),
    ]
    for data, options, message in cases:
        with pytest.raises(ValueError, match=message):
            digit_model.report(path, *data, **options)
    with pytest.raises(FileNotFoundError, match="report"):
        digit_model.report(tmp_path / "missing" / "page.html")
    with pytest.raises(ValueError, match="not fitted"):
        KernelSVC().report(path)
    assert os.listdir(tmp_path) == []
