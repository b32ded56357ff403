"""The documentation in a browser: nothing of a page is hidden at its right edge."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser

DOCS = Path(__file__).parents[2] / "docs"
NAMES = sorted(
    page.relative_to(DOCS).with_suffix("").as_posix()
    for page in DOCS.rglob("*.rst")
    if "_build" not in page.parts
)
# Elements of the text that are wider than their box, or that reach beyond the window. A box
# that scrolls hides what is beyond its edge, too. Pixels are rounded, hence the 1.
CLIPPED = """() => [...document.querySelectorAll(
    ["pre", "table", "table *", "svg", "img", ".wy-table-responsive", "dt"]
        .map(selector => `.rst-content ${selector}`).join())]
    .filter(element => !element.closest("svg *"))
    .filter(element => {
        const box = element.getBoundingClientRect();
        const style = getComputedStyle(element);
        const hides = element.scrollWidth > element.clientWidth + 1
            && element.clientWidth > 0 && style.overflowX !== "visible";
        return hides || box.right > document.documentElement.clientWidth + 1;
    })
    .map(element => `${element.tagName}: ${element.textContent.trim().slice(0, 60)}`)"""


@pytest.fixture(scope="session")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    build = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-d", str(folder / "trees")]
    subprocess.run([*build, str(DOCS), str(folder / "html")], check=True)
    return folder / "html"


def test_nothing_of_a_page_is_clipped(browser: Browser, html: Path) -> None:
    page = browser.new_page()
    clipped = {}
    for name in NAMES:
        page.goto((html / f"{name}.html").as_uri())
        for width in (1300, 400):
            page.set_viewport_size({"width": width, "height": 800})
            if found := page.evaluate(CLIPPED):
                clipped[name, width] = found
    page.close()
    assert clipped == {}


def test_what_is_clipped_is_found(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.set_content('<div class="rst-content"><pre>short</pre></div>')
    assert page.evaluate(CLIPPED) == []
    wide = f'<pre style="overflow-x: auto">{"wide " * 100}</pre><table><td>{"w" * 500}</table>'
    page.set_content(f'<div class="rst-content">{wide}</div>')
    found = [each.partition(":")[0] for each in page.evaluate(CLIPPED)]
    page.close()
    assert {"PRE", "TABLE"} <= {*found}
