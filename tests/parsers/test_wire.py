"""The URLs that servers receive, by download handler."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from scrapy import Request
from scrapy.core.downloader.handlers.http2 import H2DownloadHandler
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.settings import Settings

from scrapy_rep.parsers.wire import TARGETS, is_rewritten, sent_targets, spellings, url_paths
from scrapy_rep.rep.dialects import RFC9309
from scrapy_rep.rep.parsing.urls import path_to_match
from tests.integration.odd_urls import odd_paths

SITE = "https://a.example"


class SomebodyElses(HTTP11DownloadHandler):
    """It may send requests by other means."""


def paths(path: str, **handlers: Any) -> list[str]:
    """What may be sent for *path*, with these download handlers."""
    settings = Settings({"DOWNLOAD_HANDLERS": handlers})
    found = spellings(settings.getwithbase("DOWNLOAD_HANDLERS"), SITE + path)
    assert all(spelling.startswith(f"{SITE}/") for spelling in found)
    return [spelling.removeprefix(SITE) for spelling in found]


def test_the_handler_of_the_scheme_is_asked() -> None:
    assert paths("/secret;") == ["/secret"]
    assert paths("/secret;v=1") == []
    assert paths("/secret;v=1", http=H2DownloadHandler) == []
    assert paths("/secret;v=1", https=H2DownloadHandler) == ["/secret"]


@pytest.mark.parametrize("handler", [SomebodyElses, "no.such.Handler", None])
def test_all_handlers_are_asked_where_it_is_not_one_of_scrapys(handler: Any) -> None:
    # aiohttp, and yarl with it, comes with Scrapy, but not with its oldest version.
    aiohttps = {"/@;v"} if find_spec("yarl") else set()
    assert set(paths("/%40;v", https=handler)) == {"/%40"} | aiohttps


def test_what_cannot_be_sent_has_no_other_spelling() -> None:
    assert paths("/\u00e9;", https=HTTP11DownloadHandler) == []
    assert spellings({}, "no URL;") == ()


def test_schemes_in_capitals_and_spaces_around_a_url_do_not_count() -> None:
    handlers = {"https": HTTP11DownloadHandler}
    assert spellings(handlers, "HTTPS://a.example/secret;v=1") == ()
    assert spellings(handlers, "HTTPS://a.example/secret;") == ("HTTPS://a.example/secret",)
    assert f"{SITE}/a" in spellings({"https": H2DownloadHandler}, f" {SITE}/a;v ")


def test_spellings_are_printable() -> None:
    assert paths("/\u202e a;v=1#top", https=H2DownloadHandler) == ["/%E2%80%AE%20a"]


def test_a_backslash_is_compared_as_one_and_as_a_slash() -> None:
    assert paths("/a\\b;", https=HTTP11DownloadHandler) == ["/a\\b", "/a%5Cb"]


def test_urls_that_do_not_look_so_are_not_rewritten() -> None:
    """The test that a crawl makes for each request misses none that matters."""
    urls = [SITE + path for path in odd_paths(5000)]
    urls += [Request(url).url for url in urls]
    plain = [url for url in urls if not is_rewritten(url)]
    assert len(plain) > 1000
    found = [
        (handler, url, target)
        for handler, targets in TARGETS.items()
        for url in plain
        for target in sent_targets(targets, url)
        for path in url_paths(target)
        if path_to_match(SITE + path, RFC9309) != path_to_match(url, RFC9309)
    ]
    assert found == []
