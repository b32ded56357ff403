"""What spiders can ask, and the helpers that are for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_twisted
import scrapy
from scrapy import Request
from scrapy.crawler import Crawler, CrawlerRunner
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from scrapy_rep import (
    Access,
    CrawlStopping,
    Field,
    Reason,
    RepMiddleware,
    RepSitemapSpider,
    RobotsLinkFilter,
    Verdict,
)
from scrapy_rep.cli.servers import Answer, Asked, LoopbackServers, http_response
from scrapy_rep.stores.base import pause
from tests.integration.crawling import RULES, Job, hang, ok, pages, reset, site
from tests.integration.in_process import ScriptedSpider, crawl, robots_count, stat


def middleware_of(spider: scrapy.Spider) -> RepMiddleware:
    middleware = spider.crawler.get_downloader_middleware(RepMiddleware)
    assert middleware is not None
    return middleware


async def run(spider: type[scrapy.Spider], **arguments: Any) -> Crawler:
    """A crawl of *spider* with the add-on."""
    settings = {
        "ADDONS": {"scrapy_rep.Addon": 500},
        "REP_STORE": "memory",
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        **arguments.pop("settings", {}),
    }
    runner = CrawlerRunner(settings)
    crawler = runner.create_crawler(spider)
    await runner.crawl(crawler, **arguments)
    return crawler


# -- questions ----------------------------------------------------------------------

FILE = b"""
User-agent: Scrapy
Disallow: /no
User-agent: Other
Disallow: /other
Crawl-delay: 0.01
Content-Signal: ai-train=no
Sitemap: https://example.com/sitemap.xml
"""


@pytest_twisted.ensureDeferred
async def test_what_may_be_asked_for(servers: LoopbackServers) -> None:
    one = servers.serve(site(ok(FILE)))

    async def script(spider: ScriptedSpider) -> None:
        ask = middleware_of(spider)
        assert await ask.allowed(f"{one.url}/yes")
        verdict = await ask.verdict(f"{one.url}/no")
        assert (verdict.allowed, verdict.reason, verdict.line) == (False, Reason.RULE, 3)
        # What the errback would get.
        assert await spider.ask(f"{one.url}/no") == verdict
        assert await ask.allowed(f"{one.url}/no", "Other")
        assert not await ask.allowed(f"{one.url}/other", ["Nobody", "Other"])
        assert await ask.allowed(f"{one.url}/other", [])
        policy = await ask.policy(f"{one.url}/")
        assert policy.access is Access.SUCCESSFUL
        assert policy.sitemaps == ("https://example.com/sitemap.xml",)
        assert policy.crawl_delay("Other") == 0.01
        assert policy.crawl_delay("Scrapy") is None
        assert policy.robots is not None
        fields = [record.field for record in policy.robots.records_for("Other")]
        assert fields == [Field.CRAWL_DELAY, Field.CONTENT_SIGNAL, Field.SITEMAP]
        with pytest.raises(ValueError, match="is not a valid product token"):
            await ask.allowed(f"{one.url}/", "Example Bot")

    crawler = await crawl(script)
    assert one.targets() == ["/robots.txt"]
    # To ask is not to be refused.
    assert stat(crawler, "robotstxt/forbidden") == 1


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://host:port/", Reason.INVALID_URL),
        ("http:///page", Reason.INVALID_URL),
        ("page", Reason.INVALID_URL),
        ("", Reason.INVALID_URL),
        ("data:,x", Reason.OTHER_SCHEME),
        ("s3://bucket/key", Reason.OTHER_SCHEME),
    ],
)
@pytest_twisted.ensureDeferred
async def test_urls_that_have_no_robots_txt(url: str, reason: Reason) -> None:
    async def script(spider: ScriptedSpider) -> None:
        ask = middleware_of(spider)
        verdict = await ask.verdict(url)
        assert verdict.reason is reason
        assert verdict.allowed is (reason is Reason.OTHER_SCHEME)
        assert await ask.allowed(url) is verdict.allowed
        assert ask.known_verdict(url) == verdict
        with pytest.raises(ValueError, match=r"URL|scheme|host|port"):
            await ask.policy(url)

    await crawl(script)


@pytest_twisted.ensureDeferred
async def test_what_is_known_without_waiting(servers: LoopbackServers) -> None:
    one = servers.serve(site(ok(RULES)))

    async def script(spider: ScriptedSpider) -> None:
        ask = middleware_of(spider)
        assert ask.known_verdict(f"{one.url}/no") is None
        await ask.policy(one.url)
        found = ask.known_verdict(f"{one.url}/no")
        assert found is not None
        assert (found.allowed, found.line) == (False, 2)
        same = one.url.replace("http://", "HTTP://user@")
        for url in (f"{same}/no", f"{one.url}?q", one.url):
            known = ask.known_verdict(url)
            assert known is not None
            assert known.allowed is not url.endswith("/no")

    await crawl(script)
    assert one.targets() == ["/robots.txt"]


@pytest.mark.parametrize("unreachable", ["disallow", "defer", "allow"])
@pytest_twisted.ensureDeferred
async def test_an_origin_that_is_down_is_no_trap(
    servers: LoopbackServers, unreachable: str
) -> None:
    one = servers.serve(site(http_response(503)))

    async def script(spider: ScriptedSpider) -> None:
        verdict = await middleware_of(spider).verdict(f"{one.url}/")
        assert verdict.reason is Reason.UNREACHABLE
        assert verdict.allowed is (unreachable == "allow")
        policy = await middleware_of(spider).policy(f"{one.url}/")
        assert policy.access is Access.UNREACHABLE
        assert (policy.sitemaps, policy.robots) == ((), None)

    await crawl(script, {"REP_UNREACHABLE": unreachable})
    assert robots_count(one) == 1


@pytest_twisted.ensureDeferred
async def test_many_questions_at_once_are_one_fetch(servers: LoopbackServers) -> None:
    one = servers.serve(site(ok(RULES)))

    async def script(spider: ScriptedSpider) -> None:
        ask = middleware_of(spider)
        asked = [ask.allowed(f"{one.url}/{path}") for path in ("yes", "no") * 20]
        pages = [spider.ask(f"{one.url}/yes") for _ in range(3)]
        assert await asyncio.gather(*asked, *pages) == [True, False] * 20 + [200] * 3

    await crawl(script)
    assert robots_count(one) == 1


@pytest_twisted.ensureDeferred
async def test_who_asks_is_told_that_the_crawl_stops(servers: LoopbackServers) -> None:
    down = servers.serve(site(hang))

    async def script(spider: ScriptedSpider) -> None:
        ask = middleware_of(spider)
        verdict = deferred_from_coro(ask.verdict(f"{down.url}/"))
        policy = deferred_from_coro(ask.policy(f"{down.url}/"))
        while not down.asked:
            await pause(0.01)
        assert spider.crawler.engine is not None
        # Which waits for what is under way, this too.
        deferred_from_coro(spider.crawler.engine.close_spider_async(reason="stopped"))
        told = await maybe_deferred_to_future(verdict)
        assert (told.allowed, told.reason) == (False, Reason.UNREACHABLE)
        assert told.detail == "the crawl is stopping"
        with pytest.raises(CrawlStopping):
            await maybe_deferred_to_future(policy)

    await crawl(script)


def test_it_can_be_asked_on_every_loop(servers: LoopbackServers, loop: str) -> None:
    one, down = servers.serve(site(ok())), servers.serve(site(reset))
    questions = [f"{one.url}/yes", f"{one.url}/no", f"{down.url}/"]
    job = Job(
        pages(f"{one.url}/page"),
        loop,
        spider={"consult": questions},
    )
    result = job.run()
    assert [result.outcome(url) for url in questions] == ["allowed", "refused", "refused"]
    assert result.outcomes[questions[2]]["reason"] == "unreachable"
    assert result.outcome(f"{one.url}/page") == "fetched"


class AskingPipeline:
    """Asks about the URL of each item."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> AskingPipeline:
        return cls(crawler)

    async def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        assert self._crawler.spider is not None
        found = await middleware_of(self._crawler.spider).verdict(item["url"])
        item["found"].append(("pipeline", found.allowed))
        return item


class AskingSpider(scrapy.Spider):
    """Asks wherever a spider can."""

    name = "asking"
    first: str
    second: str
    found: list[tuple[str, bool]]

    async def start(self) -> AsyncIterator[Request]:
        self.found.append(("start", await middleware_of(self).allowed(f"{self.first}/yes")))
        yield Request(f"{self.first}/yes")

    async def parse(self, response: Response) -> AsyncIterator[Any]:
        # Of another origin, which nobody has been to.
        self.found.append(("callback", await middleware_of(self).allowed(f"{self.second}/no")))
        yield {"url": f"{self.second}/yes", "found": self.found}


@pytest_twisted.ensureDeferred
async def test_it_can_be_asked_everywhere(servers: LoopbackServers) -> None:
    one, two = servers.serve(site(ok())), servers.serve(site(ok()))
    found: list[tuple[str, bool]] = []
    settings = {"ITEM_PIPELINES": {AskingPipeline: 100}, "CONCURRENT_REQUESTS": 1}
    await run(AskingSpider, settings=settings, first=one.url, second=two.url, found=found)
    assert found == [("start", True), ("callback", False), ("pipeline", True)]
    assert two.targets() == ["/robots.txt"]


@pytest_twisted.ensureDeferred
async def test_a_token_of_a_request_that_is_none_arrives_at_the_errback(
    servers: LoopbackServers,
) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        for _ in range(2):
            with pytest.raises(ValueError, match=r"request\.meta\['robots_agent_tokens'\]"):
                await spider.ask(f"{one.url}/yes", meta={"robots_agent_tokens": "Example Bot"})
            assert await spider.ask(f"{one.url}/yes") == 200

    await crawl(script)
    assert one.targets() == ["/robots.txt", "/yes", "/yes"]


# -- purposes -----------------------------------------------------------------------

SIGNALS = b"""
User-agent: *
Content-Signal: search=yes, ai-train=no
Content-Usage: /archive/ search=n
Disallow: /no
"""


@pytest.mark.parametrize(
    ("purposes", "refused"),
    [
        ([], {"no": 5}),
        (["search"], {"no": 5, "archive/1": 4}),
        (["ai-train"], {"no": 5, "yes": 3, "archive/1": 3}),
        (["search", "train-ai"], {"no": 5, "archive/1": 4}),
        (["ai-input"], {"no": 5}),
    ],
)
@pytest_twisted.ensureDeferred
async def test_purposes(
    servers: LoopbackServers, purposes: list[str], refused: dict[str, int]
) -> None:
    one = servers.serve(site(ok(SIGNALS)))

    async def script(spider: ScriptedSpider) -> None:
        found = {}
        # The second time, the policy is at hand.
        for path in ["yes", "no", "archive/1"] * 2:
            answer = await spider.ask(f"{one.url}/{path}")
            verdict = await middleware_of(spider).verdict(f"{one.url}/{path}")
            assert verdict.allowed is (answer == 200)
            if isinstance(answer, Verdict):
                found[path] = answer.line
                assert answer == verdict
                assert answer.reason is (Reason.RULE if path == "no" else Reason.PURPOSE)
        assert found == refused
        assert await spider.ask(f"{one.url}/robots.txt") == 200

    crawler = await crawl(script, {"REP_PURPOSES": purposes})
    count = stat(crawler, "robotstxt/forbidden/purpose")
    assert count == (2 * (len(refused) - 1) or None)


@pytest.mark.parametrize(("declared", "refused"), [("full", True), ("reference", False)])
@pytest_twisted.ensureDeferred
async def test_a_crawl_that_shows_more_than_its_site_allows_is_refused(
    servers: LoopbackServers, declared: str, refused: bool
) -> None:
    body = b"User-agent: *\nContent-Signal: /a search=yes, use=reference\n"
    one = servers.serve(site(ok(body)))

    async def script(spider: ScriptedSpider) -> None:
        for _ in range(2):
            answer = await spider.ask(f"{one.url}/a")
            assert isinstance(answer, Verdict) is refused
            if isinstance(answer, Verdict):
                assert (answer.reason, answer.line) == (Reason.PURPOSE, 2)
            assert await spider.ask(f"{one.url}/b") == 200

    await crawl(script, {"REP_CONTENT_USE": declared})


# -- links --------------------------------------------------------------------------


def page_with(*links: str) -> bytes:
    body = "".join(f'<a href="{link}">a link</a>' for link in links)
    return http_response(200, body.encode(), [("Content-Type", "text/html")])


def linking(page: bytes) -> Answer:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(ok() if asked.target == "/robots.txt" else page)

    return answer


NOFOLLOW_PAGE = b"<a href='/a'>a</a><a href='/b' rel='nofollow'>b</a>"


class LinkSpider(CrawlSpider):
    name = "links"
    rules = (Rule(LinkExtractor(), process_links="without_refused", follow=False),)
    kept: list[str]

    def without_refused(self, links: Any) -> list[Any]:
        kept = RobotsLinkFilter(self.crawler)(links)
        self.kept += [link.url for link in kept]
        return kept


@pytest_twisted.ensureDeferred
async def test_refused_links_are_dropped(servers: LoopbackServers) -> None:
    new = servers.serve(site(ok()))
    one = servers.serve(linking(page_with("/yes", "/no/1", "/no/2", f"{new.url}/no")))
    kept: list[str] = []
    crawler = await run(LinkSpider, start_urls=[f"{one.url}/"], kept=kept)
    # Nothing is known of the other origin: it is not asked about for the filter's sake.
    assert kept == [f"{one.url}/yes", f"{new.url}/no"]
    assert stat(crawler, "robotstxt/dropped_link_count") == 2
    assert stat(crawler, "robotstxt/forbidden") == 1
    assert new.targets() == ["/robots.txt"]


@pytest.mark.parametrize(
    ("settings", "dropped"),
    [
        ({"REP_PAGE_RULES": "obey"}, 1),
        ({"REP_PAGE_RULES": "obey", "REP_NOFOLLOW": ["ugc"]}, None),
        ({"REP_PAGE_RULES": "annotate"}, None),
    ],
)
@pytest_twisted.ensureDeferred
async def test_nofollow_links_are_dropped(
    servers: LoopbackServers, settings: dict[str, Any], dropped: int | None
) -> None:
    one = servers.serve(linking(http_response(200, NOFOLLOW_PAGE, [("Content-Type", "text/html")])))
    kept: list[str] = []
    crawler = await run(LinkSpider, settings=settings, start_urls=[f"{one.url}/"], kept=kept)
    assert kept == [f"{one.url}/a", *([] if dropped else [f"{one.url}/b"])]
    assert stat(crawler, "robotstxt/page_rules/not_followed_count") == dropped


@pytest_twisted.ensureDeferred
async def test_links_that_are_refused_for_now_are_kept(servers: LoopbackServers) -> None:
    down = servers.serve(site(http_response(503)))
    closed = servers.serve(site(ok(b"User-agent: *\nVisit-time: 0900-1000\nDisallow: /no\n")))

    async def script(spider: ScriptedSpider) -> None:
        for one in (down, closed):
            await middleware_of(spider).policy(f"{one.url}/")
        urls = [f"{down.url}/", f"{closed.url}/", f"{closed.url}/no", "s3://bucket/key"]
        links = [scrapy.link.Link(url) for url in urls]
        assert RobotsLinkFilter(spider.crawler)(links) == [links[0], links[1], links[3]]

    await crawl(script, {"REP_VISIT_TIME": "refuse"})


@pytest_twisted.ensureDeferred
async def test_without_the_middleware_all_links_are_kept(servers: LoopbackServers) -> None:
    one = servers.serve(linking(page_with("/yes", "/no")))
    kept: list[str] = []
    settings = {"ROBOTSTXT_OBEY": False}
    await run(LinkSpider, settings=settings, start_urls=[f"{one.url}/"], kept=kept)
    assert kept == [f"{one.url}/yes", f"{one.url}/no"]


# -- sitemaps -----------------------------------------------------------------------

SITEMAP = """<?xml version="1.0"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{}</loc></url></urlset>"""


class MapSpider(RepSitemapSpider):
    name = "sitemaps"
    fetched: list[str]

    def parse(self, response: Response) -> Iterator[Any]:
        self.fetched.append(response.url)
        yield from ()


def mapped(robots: bytes) -> Answer:
    """A site whose robots.txt has the body *robots*, with a page in each sitemap."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target == "/robots.txt":
            writer.write(robots)
        elif asked.target.endswith(".xml"):
            url = f"http://{asked.headers['host']}{asked.target.removesuffix('.xml')}"
            xml = [("Content-Type", "application/xml")]
            writer.write(http_response(200, SITEMAP.format(url).encode(), xml))
        else:
            writer.write(page_with())

    return answer


@pytest.mark.clause("Google sitemap-6")
@pytest.mark.parametrize("obey", [True, False])
@pytest_twisted.ensureDeferred
async def test_sitemaps_come_from_the_same_fetch(servers: LoopbackServers, obey: bool) -> None:
    lines = [b"User-agent: *", b"Disallow: /no", b"Sitemap: /one.xml", b"Sitemap: /no.xml"]
    if obey:
        # Scrapy's own spider does not expect such.
        lines += [b"Sitemap: http://[", b"Sitemap: javascript:0"]
    one = servers.serve(mapped(ok(b"\n".join(lines))))
    fetched: list[str] = []
    urls = [f"{one.url}/robots.txt", f"{one.url}/two.xml"]
    settings = {"ROBOTSTXT_OBEY": obey}
    await run(MapSpider, settings=settings, sitemap_urls=urls, fetched=fetched)
    expected = [f"{one.url}/one", f"{one.url}/two"] + [f"{one.url}/no"] * (not obey)
    assert sorted(fetched) == sorted(expected)
    assert robots_count(one) == 1


@pytest_twisted.ensureDeferred
async def test_sitemaps_that_cannot_be_known(
    servers: LoopbackServers, caplog: pytest.LogCaptureFixture
) -> None:
    one = servers.serve(mapped(http_response(503)))
    none = servers.serve(mapped(http_response(404)))
    urls = [f"{one.url}/robots.txt", f"{none.url}/robots.txt"]
    await run(MapSpider, sitemap_urls=urls, fetched=[])
    (warning,) = [record for record in caplog.records if record.name == "scrapy_rep.spiders"]
    assert "(status 503). Its sitemaps are not used." in warning.getMessage()
    assert one.targets() == none.targets() == ["/robots.txt"]
