"""From a cache entry to the policy, with the settings and parsers of a crawl."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import pytest_twisted
from scrapy import Request, Spider, signals
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.test import get_crawler

from scrapy_rep.observers.policy_log import PolicyLog
from scrapy_rep.pages.tdmrep import TdmFile, TdmOrigin
from scrapy_rep.policies.reader import PolicyReader
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, StoredResponse
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.rules.verdict import Reason
from scrapy_rep.settings import RepSettings
from tests.policy_examples import NOON, unreachable

ORIGIN = Origin.of("https://example.com/")
PAGE = "https://example.com/page"
BODY = b"User-agent: *\nDisallow: /page\n"


class Crawl:
    """What a crawl with *settings* has to read entries."""

    def __init__(self, **settings: Any) -> None:
        self.crawler = crawler = get_crawler(Spider, settings)
        read_settings = RepSettings.read(crawler.settings)
        log = PolicyLog(crawler, read_settings, lambda: NOON)
        self.memory: dict[str, Policy] = {}
        self.reader = PolicyReader(crawler, read_settings, NOON, log, self.memory)

    async def read(self, body: bytes, status: int = 200, *, cut: bool = False) -> Policy:
        asking = Request(ORIGIN.robots_url)
        policy = await self.reader.read(entry(body, status, cut=cut), asking, NOON)
        assert policy is not None
        self.memory[str(ORIGIN)] = policy
        return policy


def entry(body: bytes, status: int = 200, *, cut: bool = False) -> CacheEntry:
    result = FetchResult(ORIGIN.robots_url, status, body, cut=cut)
    return CacheEntry(ORIGIN, StoredResponse(result, NOON, NOON))


@pytest_twisted.ensureDeferred
async def test_the_same_file_is_not_read_again() -> None:
    crawl = Crawl()
    first = await crawl.read(BODY)
    assert (await crawl.read(BODY)).rules is first.rules
    assert (await crawl.read(BODY + b"#")).rules is not first.rules


@pytest_twisted.ensureDeferred
async def test_a_file_that_is_cut_is_another_one() -> None:
    crawl = Crawl()
    body = BODY.rstrip()
    assert not (await crawl.read(body)).allowed(PAGE, "x")
    # Its last line may have been longer.
    assert (await crawl.read(body, cut=True)).allowed(PAGE, "x")


@pytest_twisted.ensureDeferred
async def test_each_file_that_is_parsed_is_looked_at_once() -> None:
    crawl = Crawl()
    for _ in range(2):
        await crawl.read(b"<html>")
    assert crawl.crawler.stats is not None
    assert crawl.crawler.stats.get_value("robotstxt/html_count") == 1


@pytest_twisted.ensureDeferred
async def test_the_body_of_an_error_is_not_parsed() -> None:
    """Else people would be told that the robots.txt is an HTML page."""
    crawl = Crawl()
    assert (await crawl.read(b"<html>", 404)).rules is None
    assert crawl.crawler.stats is not None
    assert crawl.crawler.stats.get_value("robotstxt/html_count") is None


@pytest.mark.parametrize(("overrides", "allowed"), [({}, True), ({404: "disallow"}, False)])
@pytest_twisted.ensureDeferred
async def test_a_status_means_what_the_settings_say(
    overrides: dict[int, str], allowed: bool
) -> None:
    policy = await Crawl(REP_STATUS_OVERRIDES=overrides).read(b"", 404)
    assert policy.allowed(PAGE, "x") is allowed


@pytest_twisted.ensureDeferred
async def test_a_tdm_file_is_no_robots_txt() -> None:
    origin = TdmOrigin.beside(ORIGIN)
    result = FetchResult(origin.robots_url, 200, b"[]")
    stored = CacheEntry(origin, StoredResponse(result, NOON, NOON))
    policy = await Crawl().reader.read(stored, Request(PAGE), NOON)
    assert policy is not None
    assert isinstance(policy.rules, TdmFile)


@pytest_twisted.ensureDeferred
async def test_rules_hold_only_while_there_is_a_file() -> None:
    crawl = Crawl()
    policy = await crawl.read(BODY)
    assert crawl.reader.renewed(policy, NOON) == policy
    gone = crawl.reader.renewed(replace(policy, entry=entry(b"", 404)), NOON)
    assert gone is not None
    assert (gone.access, gone.rules) == (Access.UNAVAILABLE, None)
    assert gone.allowed(PAGE, "x")


def test_our_own_failure_refuses_whatever_the_settings_say() -> None:
    policy = Crawl(REP_UNREACHABLE="allow").reader.refusing(ORIGIN, NOON)
    assert not policy.allowed(PAGE, "x")
    assert policy.until == NOON + 60


@pytest_twisted.ensureDeferred
async def test_a_policy_without_rules_is_not_renewed_to_one_with_a_file() -> None:
    crawl = Crawl()
    policy = await crawl.read(BODY)
    assert crawl.reader.renewed(replace(policy, rules=None), NOON) is None


@pytest.mark.parametrize(("setting", "allowed"), [("allow", True), ("disallow", False)])
@pytest_twisted.ensureDeferred
async def test_an_outage_means_what_the_settings_say(setting: str, allowed: bool) -> None:
    crawl = Crawl(REP_UNREACHABLE=setting)
    policy = await crawl.reader.read(unreachable().entry, Request(PAGE), NOON)
    assert policy is not None
    assert policy.access is Access.UNREACHABLE
    assert policy.allowed(PAGE, "x") is allowed


@pytest.mark.skipif(not hasattr(signals, "robots_parsed"), reason="Scrapy has it since 2.18")
@pytest_twisted.ensureDeferred
async def test_each_file_that_is_parsed_is_signalled_with_the_request() -> None:
    crawl = Crawl()
    seen: list[tuple[Any, Request]] = []

    def on_parsed(robotparser: Any, request: Request) -> None:
        seen.append((robotparser, request))

    crawl.crawler.signals.connect(on_parsed, signals.robots_parsed)
    for _ in range(2):
        await deferred_from_coro(crawl.read(BODY))
    ((parser, request),) = seen
    assert not parser.allowed(PAGE, "x")
    assert request.url == ORIGIN.robots_url


@pytest.mark.parametrize(("path", "sent_as"), [("/secret;", "/secret"), ("/secret", "")])
@pytest_twisted.ensureDeferred
async def test_content_usage_is_about_the_url_that_is_sent(path: str, sent_as: str) -> None:
    # Scrapy's default handler drops empty parameters.
    body = b"User-agent: *\nContent-Usage: /secret$ train-ai=n\n"
    policy = await Crawl(REP_PURPOSES=["ai-train"]).read(body)
    url = f"https://example.com{path}"
    assert policy.allowed(url, "x")
    verdict = policy.objection(url, "x", NOON)
    assert verdict is not None
    assert (verdict.allowed, verdict.reason) == (False, Reason.PURPOSE)
    assert verdict.sent_as == (f"https://example.com{sent_as}" if sent_as else "")
    assert policy.objection("https://example.com/secret;a", "x", NOON) is None
