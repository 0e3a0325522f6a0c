"""The report in a real browser: it draws, fits, obeys the theme, and asks the network for nothing.

These tests need Chromium and its driver (`apt-get install chromium chromium-driver`). With CI=true
they fail without them, because a report that nobody has seen in a browser is not tested; on a
user's own machine `make test` leaves them out and says so.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from mindpulse import open_run
from mindpulse.report.collect import collect
from mindpulse.report.html import write_html
from mindpulse.report.words import Words
from mindpulse.rules.load import load_rules
from synthetic import write_cured_run, write_run

pytestmark = pytest.mark.browser

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
WIDTHS = (400, 800, 1600)


def program(*names: str) -> str:
    for name in names:
        if found := shutil.which(name):
            return found
    missing = f"{names[0]} is missing; install it with: apt-get install chromium chromium-driver"
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    options = Options()
    options.binary_location = program("chromium", "chromium-browser", "google-chrome")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(program("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    runs = {
        "healthy": write_run(folder / "healthy"),
        "cured": write_cured_run(folder / "cured"),
        "poisoned": write_run(folder / "poisoned", fault="nan-batch"),
    }
    made = {}
    for name, run in runs.items():
        data = collect(open_run(run), load_rules())
        for lang in ("en", "zh"):
            made[f"{name}-{lang}"] = folder / f"{name}-{lang}.html"
            made[f"{name}-{lang}"].write_text(write_html(data, Words(lang), 0.0, "0.1.0"), "utf-8")
    return made


def show(browser: webdriver.Chrome, page: Path, width: int = 1200, theme: str = "light") -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get(page.as_uri())


def script(browser: webdriver.Chrome, code: str) -> object:
    return browser.execute_script(code)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("name", ["healthy-en", "cured-zh", "poisoned-en"])
@pytest.mark.parametrize("width", WIDTHS)
def test_fits_the_window_without_errors(browser, pages, name: str, width: int) -> None:
    browser.get_log("browser")
    show(browser, pages[name], width)
    assert script(browser, "return document.documentElement.scrollWidth") <= width
    assert browser.get_log("browser") == []
    cut = """return [...document.querySelectorAll('h1,h2,h3,.facts dd,.pill,.legend li,.ring')]
        .filter(e => !e.closest('.scroll') && e.getBoundingClientRect().right > innerWidth + 1)
        .map(e => e.textContent)"""
    assert script(browser, cut) == []


def test_asks_for_nothing_but_itself(browser, pages) -> None:
    browser.get_log("performance")
    show(browser, pages["cured-en"])
    sent = [e["message"] for e in browser.get_log("performance")]
    asked = [m for m in sent if '"Network.requestWillBeSent"' in m]
    assert len([m for m in asked if '"url":"data:image/png' not in m]) == 1
    blocked = """return fetch('https://example.com').then(() => 'sent', () => 'blocked')"""
    assert script(browser, blocked) == "blocked"


def test_every_picture_is_decoded_and_every_line_drawn(browser, pages) -> None:
    show(browser, pages["cured-en"])
    sizes = "return [...document.images].map(i => [i.complete, i.naturalWidth, i.naturalHeight])"
    found = script(browser, sizes)
    assert len(found) > 16
    assert all(complete and width and height for complete, width, height in found)
    lengths = "return [...document.querySelectorAll('path.line')].map(p => p.getTotalLength())"
    assert len(script(browser, lengths)) == 4
    assert min(script(browser, lengths)) > 500


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["healthy-en", "cured-en", "poisoned-en"])
def test_texts_stand_out_from_their_ground(browser, pages, theme: str, name: str) -> None:
    """WCAG 2.2 AA: 4.5 to 1 for text."""
    show(browser, pages[name], theme=theme)
    weak = script(browser, CONTRAST)
    assert weak == []


CONTRAST = """
const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const parse = text => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const ground = e => {
  for (; e; e = e.parentElement) {
    const colour = parse(getComputedStyle(e).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const weak = new Set();
for (const e of document.body.querySelectorAll('*')) {
  const text = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  if (!text || e.closest('svg, script, .skip')) continue;
  const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
  if ((a + 0.05) / (b + 0.05) < 4.5) weak.add(`${e.className || e.tagName}: ${e.textContent}`);
}
return [...weak];
"""


def test_dark_and_light_differ(browser, pages) -> None:
    grounds = []
    for theme in ("light", "dark"):
        show(browser, pages["healthy-en"], theme=theme)
        grounds.append(script(browser, "return getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[1]


def test_the_first_screen_answers(browser, pages) -> None:
    show(browser, pages["cured-en"], width=1600)
    visible = """const box = document.querySelector(arguments[0]).getBoundingClientRect();
        return box.top >= 0 && box.bottom <= innerHeight"""
    for part in (".state", ".ring", ".finding dl", ".finding ol", ".facts"):
        assert browser.execute_script(visible, part), part


def test_a_pointer_and_the_arrow_keys_read_the_curve(browser, pages) -> None:
    show(browser, pages["poisoned-en"])
    plot = browser.find_element(By.CSS_SELECTOR, ".lead .plot")
    script(browser, "document.querySelector('.lead .plot').focus()")
    readout = browser.find_element(By.CSS_SELECTOR, ".lead .readout")
    assert readout.text == "300: NaN"
    plot.send_keys(Keys.HOME)
    assert readout.text.startswith("1: ")
    plot.send_keys(Keys.ARROW_RIGHT)
    assert readout.text.startswith("2: ")
    webdriver.ActionChains(browser).move_to_element(plot).perform()
    step = int(readout.text.split(":")[0])
    assert abs(step - 150) <= 2


def test_complete_without_scripts(browser, pages) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(browser, pages["cured-en"])
        assert browser.find_element(By.CSS_SELECTOR, ".state").text == "Recovered"
        assert browser.find_elements(By.CSS_SELECTOR, ".lead path.line")
        assert not browser.find_elements(By.CSS_SELECTOR, ".readout")
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_prints_on_paper(browser, pages) -> None:
    show(browser, pages["cured-en"], theme="dark")
    paper = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(paper["data"]) > 50_000
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    ground = script(browser, "return getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_headings_and_landmarks_lead_through_the_page(browser, pages) -> None:
    show(browser, pages["cured-en"])
    levels = "return [...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])"
    found = script(browser, levels)
    assert found[0] == 1
    assert found.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(found))
    targets = (
        "return [...document.querySelectorAll('a')].every(a => document.querySelector(a.hash))"
    )
    assert script(browser, targets)
    unnamed = """return [...document.querySelectorAll('svg[role=img]')]
        .filter(s => !s.querySelector('desc')?.textContent).length"""
    assert script(browser, unnamed) == 0


def test_a_page_that_renews_itself(browser, tmp_path) -> None:
    """The dashboard of the editor: the file is written anew, the browser loads it by itself."""
    run, page = write_run(tmp_path / "run", steps=40, snapshots=False), tmp_path / "page.html"

    def write() -> None:
        data = collect(open_run(run), load_rules())
        page.write_text(write_html(data, Words("en"), 0.0, "0.1.0", renew_s=1.0), "utf-8")

    write()
    show(browser, page)
    browser.get_log("browser")  # what earlier tests left
    before = browser.find_element(By.TAG_NAME, "main").text
    write_run(run, steps=90, snapshots=False)
    write()
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            after = browser.find_element(By.TAG_NAME, "main").text
        except WebDriverException:  # between two pages
            continue
        if after != before:
            break
        time.sleep(0.1)
    assert "90" in after
    assert after != before
    assert not [e for e in browser.get_log("browser") if e["level"] == "SEVERE"]
    browser.get("about:blank")
