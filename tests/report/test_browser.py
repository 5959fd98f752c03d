"""The page in a real browser: nothing fails, nothing is loaded, the numbers are the model's."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from multimargin import KernelSVC
from multimargin.report.markup import cut

NAMES = ("digits", "alone", "stopped", "search", "iris", "many")
THEMES = ("light", "dark")
HOSTILE = ["</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "<!--", "&amp;\x01 \u202e"]


@pytest.fixture(scope="module")
def keys():
    return pytest.importorskip("selenium.webdriver.common.keys", reason="selenium is not installed").Keys


@pytest.mark.parametrize("name", NAMES)
def test_nothing_fails_and_nothing_is_loaded(browser, pages, name):
    path = pages[name][0]
    browser.open(path)
    browser.run("window.scrollTo(0, document.body.scrollHeight)")
    assert browser.errors() == []
    outside = [url for url in browser.requests() if not url.startswith("data:")]
    assert outside == [path.resolve().as_uri()]


def test_the_policy_forbids_what_a_page_could_load(browser, pages):
    browser.open(pages["alone"][0])
    script = """
    const done = arguments[0];
    const image = new Image();
    image.onerror = () => fetch("https://example.org/").then(() => done("loaded"), () => done("refused"));
    image.onload = () => done("loaded");
    image.src = "https://example.org/a.png";"""
    assert browser.driver.execute_async_script(script) == "refused"
    said = browser.errors()
    assert len(said) >= 2
    assert all("Content Security Policy" in line or "Failed to fetch" in line for line in said)


# -- numbers --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["digits", "stopped", "iris", "search"])
def test_the_certificate_is_the_models(browser, pages, name):
    path, model, *_ = pages[name]
    model = getattr(model, "best_estimator_", model)
    browser.open(path)
    shown = browser.column("certificate-table", 1)
    expected = [
        model.primal_objective_,
        model.dual_objective_,
        model.duality_gap_,
        model.duality_gap_ / model.primal_objective_,
        model.violation_,
        model.tol,
    ]
    assert shown[0] == model.status_.name.lower().replace("_", " ")
    assert shown[1:] == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("name", ["digits", "stopped", "iris", "search"])
def test_accuracy_and_confusion_are_those_of_predict(browser, pages, name):
    path, model, X, y = pages[name]
    browser.open(path)
    assert browser.value("dl.key div:nth-child(2) dd data") == model.score(X, y)
    matrix = confusion_matrix(y, model.predict(X), labels=model.classes_)
    shown = [browser.column("confusion-data", k + 1) for k in range(len(model.classes_))]
    assert np.array_equal(np.array(shown).T, matrix)


def test_the_support_vectors_are_the_models(browser, pages):
    path, model, *_ = pages["digits"]
    browser.open(path)
    total, free, bounded = (browser.column("support-table", k) for k in (1, 2, 3))
    assert total == model.n_support_.tolist()
    assert np.add(free, bounded).tolist() == total
    labels = model._labels[np.searchsorted(model._kept, model.support_)]
    at_bound = model.dual_coef_[np.arange(len(labels)), labels] >= (1 - 1e-8) * model.C
    assert bounded == np.bincount(labels[at_bound], minlength=10).tolist()


def test_the_suspects_are_the_models(browser, pages):
    path, model, *_ = pages["digits"]
    browser.open(path)
    rows = "return [...document.querySelectorAll('#suspects li')].map(e => +e.querySelector('data').value)"
    assert browser.run(rows) == model.suspects(16).tolist()
    sizes = browser.run("return [...document.querySelectorAll('.gallery img')].map(e => e.naturalWidth)")
    assert set(sizes) == {8}


def test_the_results_of_the_search_are_in_the_page(browser, pages):
    path, search, *_ = pages["search"]
    browser.open(path)
    order = np.argsort(search.cv_results_["rank_test_score"], kind="stable")
    assert browser.column("grid-results", 1) == search.cv_results_["param_C"][order].tolist()
    means = search.cv_results_["mean_test_score"][order]
    shown = [np.nan if isinstance(cell, str) else cell for cell in browser.column("grid-results", 3)]
    np.testing.assert_array_equal(shown, means)
    states = browser.column("grid-results", -1 + 10)
    assert states.count("chosen") == 1
    assert sum("dropped" in state for state in states) == search.cv_results_["dropped"].sum()
    assert browser.run("return document.querySelectorAll('#grid .chosen').length") == 1


def test_the_largest_weights_are_the_models(browser, pages):
    path, model, *_ = pages["iris"]
    browser.open(path)
    shown = browser.run(
        "return [...document.querySelectorAll('#weights-table tbody tr')]"
        ".map((row) => [...row.querySelectorAll('ul data')].map((exact) => Number(exact.value)))"
    )
    for row, weights in zip(shown, model.coef_, strict=True):
        assert sorted(row) == sorted(weights[weights != 0].tolist())


# -- what a reader does ---------------------------------------------------------------------------------
def test_a_click_sorts_and_another_one_turns_the_order(browser, pages):
    browser.open(pages["digits"][0])
    head = "#support-table th:nth-child(2)"
    before = browser.column("support-table", 1)
    for order, expected in (("descending", sorted(before)[::-1]), ("ascending", sorted(before))):
        browser.run(f"document.querySelector('{head} button').click()")
        assert browser.column("support-table", 1) == expected
        assert browser.run(f"return document.querySelector('{head}').getAttribute('aria-sort')") == order
        assert order in browser.run("return document.getElementById('said').textContent")
    browser.run("document.querySelector('#support-table th button').click()")
    assert browser.column("support-table", 0) == [str(k) for k in range(10)]
    assert browser.run(f"return document.querySelector('{head}').getAttribute('aria-sort')") == "none"


def test_cells_without_a_number_are_sorted_last(browser, pages):
    browser.open(pages["search"][0])
    for _ in range(2):
        browser.run("document.querySelectorAll('#grid-results th button')[3].click()")
        kinds = [isinstance(cell, str) for cell in browser.column("grid-results", 3)]
        assert kinds == sorted(kinds)
        assert any(kinds)


@pytest.mark.parametrize("theme", THEMES)
def test_the_theme_is_the_systems_until_the_reader_switches(browser, pages, theme):
    browser.open(pages["alone"][0], theme)

    def is_dark():
        colour = browser.run("return getComputedStyle(document.documentElement).backgroundColor")
        return sum(int(part) for part in colour[4:-1].split(",")) < 300

    other = "Light theme" if theme == "dark" else "Dark theme"
    assert is_dark() == (theme == "dark")
    assert browser.run("return document.getElementById('theme').textContent") == other
    browser.run("document.getElementById('theme').click()")
    assert is_dark() != (theme == "dark")
    assert browser.run("return document.getElementById('theme').textContent") != other
    assert browser.errors() == []


def test_the_keyboard_reaches_everything(browser, pages, keys):
    browser.open(pages["digits"][0])
    browser.press(keys.TAB)
    assert browser.run("return document.activeElement.className") == "skip"
    assert browser.run("return document.activeElement.getBoundingClientRect().top") >= 0
    browser.press(keys.ENTER)
    assert browser.run("return location.hash") == "#main"
    browser.open(pages["digits"][0])
    browser.press(keys.TAB, keys.TAB, keys.ENTER)  # the switch
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    browser.run("document.querySelector('#pairs th button').focus()")
    outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    browser.press(keys.SPACE)
    assert browser.run("return document.querySelector('#pairs th').getAttribute('aria-sort')") == "ascending"
    browser.run("document.querySelector('details summary').focus()")
    browser.press(keys.ENTER)
    assert browser.run("return document.querySelector('details').open")


def test_a_pointer_on_a_mark_says_what_it_stands_for(browser, pages):
    browser.open(pages["digits"][0])
    mark = browser.run(
        "const mark = document.querySelector('#confusion rect[data-tip]');"
        "mark.scrollIntoView({block: 'center', behavior: 'instant'}); return mark"
    )
    from selenium.webdriver import ActionChains

    ActionChains(browser.driver).move_to_element(mark).perform()
    assert not browser.run("return document.getElementById('tip').hidden")
    assert "label 0, predicted 0: 37 rows" in browser.run("return document.getElementById('tip').textContent")


def test_long_tables_are_folded_until_asked(browser, pages):
    browser.open(pages["many"][0])
    shown = (
        "return [...document.querySelectorAll('#support-table tbody tr')].filter(r => r.offsetHeight).length"
    )
    assert browser.run(shown) == 30
    browser.run("document.querySelector('[aria-controls=support-table]').click()")
    assert browser.run(shown) == 120


def test_paper_is_light_and_shows_what_is_open(browser, pages):
    browser.open(pages["digits"][0], "dark")
    browser.run("document.querySelector('details').open = true")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = "return [...document.querySelectorAll('details')].filter((part) => part.offsetHeight).length"
    assert browser.run(shown) == 1
    colour = browser.run("return getComputedStyle(document.documentElement).backgroundColor")
    assert colour == "rgb(253, 253, 252)"
    assert browser.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [320, 390, 800, 1280])
def test_no_page_is_wider_than_the_window(browser, pages, name, width):
    browser.open(pages[name][0], width=width)
    assert browser.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", ["many", "search"])
@pytest.mark.parametrize("width", [320, 390])
def test_captions_can_be_read_without_scrolling(browser, pages, name, width):
    """Of tables that are wider than a phone."""
    browser.open(pages[name][0], width=width)
    script = """
    const captions = [...document.querySelectorAll("caption > span")].map(e => e.getBoundingClientRect());
    return captions.filter(box => box.width).map(box => [box.left, box.right]);"""
    found = browser.run(script)
    assert len(found) > 3
    assert all(left >= 0 and right <= width for left, right in found)
    wide = "return [...document.querySelectorAll('.scroll')].some(e => e.scrollWidth > e.clientWidth)"
    assert browser.run(wide)


@pytest.mark.parametrize("width", [320, 390])
def test_features_of_rows_are_not_squeezed_into_a_narrow_column(browser, pages, width):
    browser.open(pages["iris"][0], width=width)
    lists = "#mistakes td > ul.inline"
    assert browser.run(f"return document.querySelectorAll('{lists}').length") > 0
    script = "return [...document.querySelectorAll(arguments[0])].map(e => e.getBoundingClientRect().width)"
    assert min(browser.run(script, lists)) >= 120


def test_features_of_rows_with_short_labels_fit_on_a_phone(browser, pages):
    browser.open(pages["many"][0], width=390)
    script = """
    const table = document.querySelector("#mistakes"), box = table.closest(".scroll");
    return [table.querySelectorAll("td > ul.inline").length, box.scrollWidth - box.clientWidth];"""
    rows, hidden = browser.run(script)
    assert rows > 0
    assert hidden <= 0


def test_without_scripts_the_page_is_complete(browser, pages):
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(pages["many"][0])
        from selenium.webdriver.common.by import By

        rows = browser.driver.find_elements(By.CSS_SELECTOR, "#support-table tbody tr")
        assert sum(row.size["height"] > 0 for row in rows[:40]) == 40
        assert not browser.driver.find_element(By.ID, "theme").is_displayed()
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


# -- everybody ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "theme", "width"),
    [
        ("digits", "light", 1280),
        ("digits", "dark", 390),
        ("alone", "light", 390),
        ("stopped", "dark", 1280),
        ("search", "dark", 1280),
        ("iris", "light", 1280),
    ],
)
def test_axe_finds_nothing(browser, pages, name, theme, width):
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    library = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    browser.open(pages[name][0], theme, width)
    browser.run("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    browser.run(library)
    found = browser.driver.execute_async_script("axe.run().then(arguments[0])")
    broken = [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]]
    assert broken == []
    assert len(found["passes"]) > 20


def test_hostile_names_do_nothing(browser, tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 4)), np.array(HOSTILE)[np.arange(80) % 4]
    X[np.arange(80), np.arange(80) % 4] += 1.5
    frame = pandas.DataFrame(X, columns=[f"{name}{k}" for k, name in enumerate(HOSTILE)])
    model = KernelSVC(kernel="linear").fit(frame, y)
    path = model.report(tmp_path / "hostile<b>.html", frame, y, title=HOSTILE[0])
    browser.open(path)
    assert browser.errors() == []
    assert browser.run("return document.querySelectorAll('script').length") == 1
    assert browser.run("return document.querySelectorAll('img').length") == 0
    assert browser.run("return document.querySelector('h1').textContent") == HOSTILE[0]
    shown = browser.column("support-table", 0)
    assert shown == [cut(name, 30).replace("\x01", "\ufffd") for name in model.classes_]
