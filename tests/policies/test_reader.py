"""From a cache entry to the policy, with the settings and parsers of a crawl."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_twisted
from scrapy import Request, Spider
from scrapy.utils.test import get_crawler

from scrapy_rep.observers.policy_log import PolicyLog
from scrapy_rep.policies.memory import PolicyMemory
from scrapy_rep.policies.reader import PolicyReader
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, StoredResponse
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Reason
from scrapy_rep.settings import RepSettings
from tests.policy_examples import NOON

ORIGIN = Origin.of("https://example.com/")


async def read(body: bytes, **settings: Any) -> Policy:
    crawler = get_crawler(Spider, settings)
    read_settings = RepSettings.read(crawler.settings)
    log = PolicyLog(crawler, read_settings, lambda: NOON)
    reader = PolicyReader(crawler, read_settings, lambda: NOON, log, PolicyMemory(10))
    copy = StoredResponse(FetchResult(ORIGIN.robots_url, 200, body), NOON, NOON)
    policy = await reader.read(CacheEntry(ORIGIN, copy), Request(ORIGIN.robots_url))
    assert policy is not None
    return policy


@pytest.mark.parametrize(("path", "sent_as"), [("/secret;", "/secret"), ("/secret", "")])
@pytest_twisted.ensureDeferred
async def test_content_usage_is_about_the_url_that_is_sent(path: str, sent_as: str) -> None:
    # Scrapy's default handler drops empty parameters.
    body = b"User-agent: *\nContent-Usage: /secret$ train-ai=n\n"
    policy = await read(body, REP_PURPOSES=["ai-train"])
    url = f"https://example.com{path}"
    assert policy.allowed(url, "x")
    verdict = policy.objection(url, "x", NOON)
    assert verdict is not None
    assert (verdict.allowed, verdict.reason) == (False, Reason.PURPOSE)
    assert verdict.sent_as == (f"https://example.com{sent_as}" if sent_as else "")
    assert policy.objection("https://example.com/secret;a", "x", NOON) is None
