"""How long the page of a report takes: to be made, and to open in headless Chromium.

5,000 origins with 70 lines of robots.txt each. Time on the clock, for that is what people
wait for.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, Page, sync_playwright
from scrapy.settings import Settings

from benchmarks._tables import Table, arguments, figure, machine, publish
from scrapy_rep.observers.report.file import read_file
from scrapy_rep.observers.report.model import (
    CrawlReport,
    Decisions,
    Event,
    OriginReport,
    RefusedURL,
)
from scrapy_rep.observers.report.page import write_page
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.settings import RepSettings

_ORIGINS = 5_000
_ROUNDS = 5
#: Seconds in which the page must be open.
_LIMIT = 2.0
_BODY = b"User-agent: *\n" + b"".join(
    b"Disallow: /directory-%03d/pages-that-are-not-for-robots/\n" % n for n in range(69)
)
# Until what was asked for is on the screen.
_PAINTED = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"


def _origin(number: int, settings: RepSettings) -> OriginReport:
    name = f"https://www.host{number}.example"
    decided = {(line, False): number for line in range(2, 12)}
    return OriginReport(
        origin=name,
        access="successful",
        status=200,
        details=(("URL", f"{name}/robots.txt"), ("last answer", "status 200")),
        file=read_file(FetchResult(name, 200, _BODY), settings, decided),
        decisions=Decisions(1_000, 10 * number),
        refused_urls=[
            RefusedURL(f"{name}/directory-{n:03}/page.html", n + 2, f"Disallow: /directory-{n:03}/")
            for n in range(10)
        ],
        refused_url_count=10,
        fetch_count=1,
        events=[Event(1_800_000_000.0, "status 200", 0.2)],
        event_count=1,
    )


def report() -> CrawlReport:
    """A report about all origins."""
    settings = RepSettings.read(Settings())
    origins = tuple(_origin(number, settings) for number in range(_ORIGINS))
    refused = sum(10 * number for number in range(_ORIGINS))
    return CrawlReport(
        "Crawl of the spider benchmark",
        1_800_003_600.0,
        origins,
        began_at=1_800_000_000.0,
        decisions=Decisions(1_000 * _ORIGINS, refused),
        refusals=(("rule", refused),),
    )


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _visit(browser: Browser, url: str) -> dict[str, float]:
    """Seconds of what people do with the page."""
    page: Page = browser.new_page(viewport={"width": 1300, "height": 900})

    def do(script: str) -> Callable[[], object]:
        return lambda: page.evaluate(f"() => {{ {script}; return {_PAINTED}; }}")

    sort = "document.querySelectorAll('#origins > thead button')[4].click()"
    name = "const name = document.querySelector('#filter-name'); name.value = 'host42'; "
    spent = {
        "open it": _seconds(lambda: (page.goto(url), page.evaluate(_PAINTED))),
        "sort it": _seconds(do(sort)),
        "filter it": _seconds(do(name + "name.dispatchEvent(new Event('input', {bubbles: true}))")),
        "open an origin": _seconds(do("document.querySelector('.open').click()")),
    }
    page.close()
    return spent


def main() -> None:
    """Write the table."""
    options = arguments(__doc__).parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("There is no Chromium here: apt-get install chromium")
    started = time.perf_counter()
    made = report()
    spent = {"read the files": time.perf_counter() - started}
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        path = Path(directory, "robots.html")
        spent["write the page"] = _seconds(lambda: write_page(path, made))
        megabytes = path.stat().st_size / 1e6
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        visits = [_visit(browser, path.as_uri()) for _ in range(_ROUNDS)]
        version = browser.version
        browser.close()
    spent |= {what: median(visit[what] for visit in visits) for what in visits[0]}
    rows = tuple((what, figure(seconds)) for what, seconds in spent.items())
    note = (
        f"{_ORIGINS:,} origins, a page of {megabytes:.0f} MB, Chromium {version}. "
        f"It must open in {_LIMIT:.0f} s."
    )
    publish(
        options.rst, Table("The page of a report", ("what", "s"), rows, (machine("jinja2"), note))
    )
    sys.exit(spent["open it"] > _LIMIT)


if __name__ == "__main__":
    main()
