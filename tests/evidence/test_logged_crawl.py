"""The crawl that wrote a log: its decisions come about as they did."""

from __future__ import annotations

from scrapy.settings import BaseSettings

from scrapy_rep.evidence.logged_crawl import LoggedCrawl
from scrapy_rep.evidence.recorder import DECIDING
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, StoredResponse
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.settings import DEFAULTS
from tests.policy_examples import NOON

ORIGIN = Origin.of("https://example.com/")


def test_content_usage_is_about_the_url_that_was_sent() -> None:
    handler = "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"
    logged = {
        **{name: DEFAULTS[name] for name in DECIDING},
        "REP_PURPOSES": ["ai-train"],
        "ROBOTSTXT_PARSER": None,
        "REP_FALLBACK_PARSER": None,
        "DOWNLOAD_HANDLERS": {"https": handler},
    }
    crawl = LoggedCrawl(logged, NOON, BaseSettings())
    body = b"User-agent: *\nContent-Usage: /secret$ train-ai=n\n"
    stored = StoredResponse(FetchResult(ORIGIN.robots_url, 200, body), NOON, NOON)
    entry = CacheEntry(ORIGIN, stored)
    policy = crawl.policy(entry, crawl.evaluate(entry, NOON))
    # Scrapy's default handler drops empty parameters.
    verdict = policy.objection("https://example.com/secret;", "x", NOON)
    assert verdict is not None
    assert verdict.sent_as == "https://example.com/secret"
