"""Debian's Chromium without a window, for tests of pages."""

import json
import shutil
import time
from pathlib import Path

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def start(profile):
    """A driven browser, or a skipped test that says what is missing."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("there is no Chromium with its driver (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options, webdriver.ChromeService(driver))


class Browser:
    """What the tests ask of a browser."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, path, theme="light", width=1280):
        """Show a page as a reader with this system theme and width sees it."""
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        scheme = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.page = Path(path).resolve().as_uri()
        self.driver.get(self.page)
        return self

    def run(self, script, *arguments):
        """What a script returns."""
        return self.driver.execute_script(script, *arguments)

    def errors(self):
        """Everything that the console said."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """Addresses that the page asked for, its own first; the log comes a little later than the page."""
        found, end = [], time.monotonic() + 10
        while self.page not in found and time.monotonic() < end:
            messages = [
                json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
            ]
            sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
            found += [params["request"]["url"] for params in sent if params["documentURL"] == self.page]
        return found

    def value(self, selector):
        """The exact number of the first ``data`` element in what the selector finds."""
        return float(self.run("return document.querySelector(arguments[0]).value", selector))

    def column(self, table, place):
        """The cells of a column: exact numbers, or text."""
        script = """
        const rows = [...document.getElementById(arguments[0]).tBodies[0].rows];
        return rows.map((row) => {
          const cell = row.cells[arguments[1]], exact = cell.querySelector("data");
          return exact ? Number(exact.value) : cell.textContent;
        });"""
        return self.run(script, table, place)

    def press(self, *keys):
        """Press keys, one after the other."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()
