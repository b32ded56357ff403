"""A page in headless Chromium, which is watched for whatever it must not do."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, sync_playwright

from scrapy_rep.observers.report.model import CrawlReport
from scrapy_rep.observers.report.page import write_page

#: Makes a page of a report and opens it.
Open = Callable[..., Page]

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if _CHROMIUM is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    with sync_playwright() as playwright:
        # Its sandbox does not work for root, nor in most containers.
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens pages; when the test is over, none of them has complained or asked for anything."""
    troubles: list[str] = []
    contexts = []
    path = tmp_path / "robots.html"

    def watch_request(request: Request) -> None:
        if request.url != path.as_uri() and not request.url.startswith("data:"):
            troubles.append(f"request: {request.url}")

    def open_(report: CrawlReport, *, width: int = 1300, **context_options: object) -> Page:
        write_page(path, report)
        options = {"viewport": {"width": width, "height": 800}, **context_options}
        context = browser.new_context(**options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.on("request", watch_request)
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
        page.goto(path.as_uri())
        return page

    yield open_
    for context in contexts:
        context.close()
    assert troubles == []
