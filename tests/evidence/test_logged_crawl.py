"""The crawl that wrote a log: its decisions come about as they did."""

from __future__ import annotations

import pytest
from scrapy.settings import BaseSettings

from scrapy_rep.evidence.logged_crawl import LoggedCrawl
from scrapy_rep.evidence.recorder import DECIDING
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, StoredResponse
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.settings import DEFAULTS
from tests.policy_examples import NOON

ORIGIN = Origin.of("https://example.com/")


HANDLER = "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"
LOGGED = {
    **{name: DEFAULTS[name] for name in DECIDING},
    "ROBOTSTXT_PARSER": None,
    "REP_FALLBACK_PARSER": None,
    "DOWNLOAD_HANDLERS": {"https": HANDLER},
}


def entry(body: bytes) -> CacheEntry:
    """A file that was fetched at NOON."""
    stored = StoredResponse(FetchResult(ORIGIN.robots_url, 200, body), NOON, NOON)
    return CacheEntry(ORIGIN, stored)


def test_content_usage_is_about_the_url_that_was_sent() -> None:
    crawl = LoggedCrawl({**LOGGED, "REP_PURPOSES": ["ai-train"]}, NOON, BaseSettings())
    known = entry(b"User-agent: *\nContent-Usage: /secret$ train-ai=n\n")
    policy = crawl.policy(known, crawl.evaluate(known, NOON))
    # Scrapy's default handler drops empty parameters.
    verdict = policy.objection("https://example.com/secret;", "x", NOON)
    assert verdict is not None
    assert verdict.sent_as == "https://example.com/secret"


@pytest.mark.parametrize(("started", "is_used"), [(NOON - 1, True), (NOON + 1, False)])
def test_a_file_without_a_lifetime_holds_for_one_crawl(started: float, is_used: bool) -> None:
    crawl = LoggedCrawl({**LOGGED, "REP_DIALECT": "koster1994"}, started, BaseSettings())
    access = crawl.evaluate(entry(b""), NOON + 2).access
    assert access is (Access.SUCCESSFUL if is_used else None)
