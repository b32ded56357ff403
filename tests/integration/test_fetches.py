"""Fetches of robots.txt in a crawl: what bounds them, and what has no part in them."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from scrapy import Request
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep import Verdict
from scrapy_rep.cli.servers import Answer, Asked, LoopbackServers, Site, http_response
from scrapy_rep.policies.cache import PolicyCache
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import pause
from tests.conditions import until
from tests.integration.certificates import tls_context
from tests.integration.crawling import PAGE, RULES, Job, hang, ok, pages, redirect, site
from tests.integration.handlers import HANDLERS
from tests.integration.in_process import (
    ScriptedSpider,
    beside,
    crawl,
    robots_count,
)
from tests.integration.middlewares import AsksAgain, Breaks

MEGABYTE = 1_000_000


# -- how many at once ----------------------------------------------------------------


class Crowd:
    """Sites whose robots.txt is answered when as many are asked as may be, and a bit later."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.under_way = 0
        self.peak = 0

    async def __call__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        self.under_way += 1
        self.peak = max(self.peak, self.under_way)
        await until(lambda: self.peak >= self.most)
        # Time for those that are too many.
        await asyncio.sleep(0.3)
        self.under_way -= 1
        writer.write(ok())


def test_rep_max_fetches_holds(servers: LoopbackServers, loop: str) -> None:
    crowd = Crowd(3)
    urls = [f"{servers.serve(site(crowd)).url}/yes" for _ in range(9)]
    result = Job(pages(*urls), loop, {"REP_MAX_FETCHES": 3, "REP_FETCH_TIMEOUT": 60}).run()
    assert {result.outcome(url) for url in urls} == {"fetched"}
    assert crowd.peak == 3


@pytest_twisted.ensureDeferred
async def test_concurrent_requests_without_a_limit(servers: LoopbackServers) -> None:
    one = servers.serve(site(ok()))

    # Older versions of Scrapy then take nothing from the scheduler.
    async def script(spider: ScriptedSpider) -> None:
        answers: list[Verdict | int] = []
        deferred_from_coro(spider.ask(f"{one.url}/no")).addCallback(answers.append)
        for _ in range(6000):
            if answers:
                break
            await pause(0.01)
        assert isinstance(answers[0], Verdict)

    await crawl(script, {"CONCURRENT_REQUESTS": 0})
    assert one.targets() == ["/robots.txt"]


@pytest.mark.parametrize("by", ["close_spider", "SIGINT"])
def test_a_queued_fetch_does_not_start_after_a_stop(
    servers: LoopbackServers, loop: str, by: str
) -> None:
    sites = [servers.serve(hang) for _ in range(3)]
    spider = {"stop_at": 3, "stop_stat": "robotstxt/request_count", "stop_by": by}
    settings = {"REP_MAX_FETCHES": 1, "REP_FETCH_TIMEOUT": 60}
    Job(pages(*(f"{one.url}/yes" for one in sites)), loop, settings, spider=spider).run()
    assert [one.targets() for one in sites] == [["/robots.txt"], [], []]


# -- credentials ---------------------------------------------------------------------


def authorizations(one: Site) -> list[str | None]:
    """Of each time that *one* was asked for a robots.txt."""
    return [asked.headers.get("authorization") for asked in one.asked if "robots" in asked.target]


SECRET = "Basic dXNlcjpzZWNyZXQ="
IN_META = {"http_user": "user", "http_pass": "secret"}
SCHEMES = {
    "other port": (False, False),
    "to https": (False, True),
    "from https": (True, False),
}


@pytest.mark.parametrize(("first", "second"), SCHEMES.values(), ids=SCHEMES.keys())
def test_credentials_do_not_follow_to_another_origin_of_the_same_host(
    servers: LoopbackServers, loop: str, first: bool, second: bool
) -> None:
    other = servers.serve(site(ok()), tls=tls_context() if second else None)
    answer = site(redirect(f"{other.url}/robots.txt"))
    one = servers.serve(answer, host=other.host, tls=tls_context() if first else None)
    Job(pages(f"{one.url}/yes", **IN_META), loop).run()
    robots, page = one.asked
    # Scrapy knows these meta keys since 2.17; before, there is nothing to pass on.
    assert robots.headers.get("authorization") == page.headers.get("authorization")
    assert authorizations(other) == [None]


def downgrading(servers: LoopbackServers) -> tuple[Site, Site]:
    """A site with https whose robots.txt is redirected to http, and where to."""
    plain = servers.serve(site(ok()))
    answer = site(redirect(f"{plain.url}/robots.txt"))
    return servers.serve(answer, host=plain.host, tls=tls_context()), plain


def test_credentials_never_follow_from_https_to_http_whatever_their_domain(
    servers: LoopbackServers, loop: str
) -> None:
    secure, plain = downgrading(servers)
    # Scrapy compares it with host and port.
    meta = IN_META | {"http_auth_domain": f"{plain.host}:{plain.port}"}
    result = Job(pages(f"{secure.url}/no", **meta), loop).run()
    assert result.outcome(f"{secure.url}/no") == "refused"
    assert authorizations(plain) == [None]


def test_credentials_of_a_spider_for_all_sites_do_not_follow_from_https_to_http(
    servers: LoopbackServers, loop: str
) -> None:
    secure, plain = downgrading(servers)
    spider = IN_META | {"http_auth_domain": None}
    result = Job(pages(f"{secure.url}/no"), loop, spider=spider).run()
    assert result.outcome(f"{secure.url}/no") == "refused"
    assert authorizations(secure) == [SECRET]
    assert authorizations(plain) == [None]


def test_credentials_of_a_spider_follow_within_their_domain(
    servers: LoopbackServers, loop: str
) -> None:
    other = servers.serve(site(ok()))
    one = servers.serve(site(redirect(f"{other.url}/robots.txt")))
    spider = IN_META | {"http_auth_domain": None}
    Job(pages(f"{one.url}/yes"), loop, spider=spider).run()
    assert authorizations(one) == authorizations(other) == [SECRET]


# -- what has no part in it ------------------------------------------------------------


def test_the_http_cache_has_no_part_in_it(
    servers: LoopbackServers, loop: str, tmp_path: Path
) -> None:
    one = servers.serve(site(ok()))
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    for _ in range(2):
        result = Job(pages(f"{one.url}/yes", f"{one.url}/no"), loop, settings).run()
        assert result.outcome(f"{one.url}/yes") == "fetched"
        assert result.outcome(f"{one.url}/no") == "refused"
    # The page of the second crawl was in that cache.
    assert one.targets() == ["/robots.txt", "/yes", "/robots.txt"]


def test_cookies_have_no_part_in_it(servers: LoopbackServers, loop: str) -> None:
    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        kind = "robots" if asked.target == "/robots.txt" else "page"
        body = RULES if kind == "robots" else b"<html>a page</html>"
        writer.write(ok(body, ("Content-Type", "text/html"), ("Set-Cookie", f"{kind}=1; Path=/")))

    first = servers.serve(answer)
    # Cookies know no ports.
    second = servers.serve(answer, host=first.host)
    Job(pages(f"{second.url}/yes"), loop, warm_up=[f"{first.url}/yes"]).run()
    cookies = [asked.headers.get("cookie") for asked in (*first.asked, *second.asked)]
    assert cookies == [None, None, None, "page=1"]


def test_fetch_headers_are_added_and_left_out_for_robots_txt_alone(
    servers: LoopbackServers, loop: str
) -> None:
    one = servers.serve(site(ok()))
    headers = {"Accept-Encoding": None, "X-Region": "eu", "Accept-Language": "fr"}
    Job(pages(f"{one.url}/yes"), loop, {"REP_FETCH_HEADERS": headers}).run()
    robots, page = one.asked
    assert "accept-encoding" not in robots.headers
    assert robots.headers["x-region"] == "eu"
    assert robots.headers["accept-language"] == "fr"
    assert "accept-encoding" in page.headers
    assert "x-region" not in page.headers
    assert page.headers["accept-language"] == "en"


def test_download_maxsize_has_no_part_in_it(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(site(ok(b"# a long comment\n" * 100 + RULES)))
    settings = {"DOWNLOAD_MAXSIZE": 1000, "DOWNLOAD_WARNSIZE": 100}
    urls = [f"{one.url}/yes", f"{one.url}/no"]
    result = Job(pages(*urls), loop, settings).run()
    assert [result.outcome(url) for url in urls] == ["fetched", "refused"]
    assert result.our_log() == []


def test_retries_have_no_part_in_it(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(site(http_response(503)))
    result = Job(pages(f"{one.url}/yes"), loop, {"RETRY_ENABLED": True, "RETRY_TIMES": 2}).run()
    assert result.outcome(f"{one.url}/yes") == "refused"
    assert one.targets() == ["/robots.txt"]


# -- time ------------------------------------------------------------------------------


def hops(number: int, seconds: float) -> Answer:
    """So many redirects, each after some *seconds*, and then rules."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        hop = int(asked.target.partition("?")[2] or 0)
        await asyncio.sleep(seconds)
        writer.write(redirect(f"/robots.txt?{hop + 1}") if hop < number else ok())

    return answer


@pytest_twisted.ensureDeferred
async def test_the_time_limit_is_for_all_redirects_together(servers: LoopbackServers) -> None:
    one = servers.serve(hops(4, 0.4))

    async def script(spider: ScriptedSpider) -> None:
        verdict = await spider.ask(f"{one.url}/yes")
        assert isinstance(verdict, Verdict)
        assert verdict.detail == "no answer within 1 s"

    await crawl(script, {"REP_FETCH_TIMEOUT": 1})


def test_time_until_the_turn_at_a_throttled_site_does_not_count(
    servers: LoopbackServers, loop: str
) -> None:
    rules = b"User-agent: *\nCrawl-delay: 4\nDisallow: /no\n"
    first = servers.serve(site(ok(rules)))
    # A site is throttled by its host.
    second = servers.serve(site(ok(rules)), host=first.host)
    settings = {"REP_FETCH_TIMEOUT": 3}
    result = Job(pages(f"{second.url}/yes"), loop, settings, warm_up=[f"{first.url}/yes"]).run()
    assert result.outcome(f"{second.url}/yes") == "fetched"
    assert second.asked[0].at - first.asked[-1].at > 3


class WaitsAndAsksAgain:
    """Repeats each answer that it gets for a robots.txt, after a while."""

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        if not request.url.endswith("/robots.txt"):
            return response
        await pause(0.3)
        return request.replace(dont_filter=True)


@pytest_twisted.ensureDeferred
async def test_the_time_limit_holds_whatever_a_middleware_does(servers: LoopbackServers) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        verdict = await spider.ask(f"{one.url}/yes")
        assert isinstance(verdict, Verdict)
        assert verdict.detail == "no answer within 0.7 s"

    await crawl(script, beside(WaitsAndAsksAgain) | {"REP_FETCH_TIMEOUT": 0.7})
    assert robots_count(one) < 5


# -- other middlewares -------------------------------------------------------------------


def test_five_requests_for_one_hop_are_enough(servers: LoopbackServers, loop: str) -> None:
    one = servers.serve(site(http_response(503)))
    middlewares = {f"{AsksAgain.__module__}.{AsksAgain.__qualname__}": 895}
    settings = {"DOWNLOADER_MIDDLEWARES": middlewares, "REP_FETCH_TIMEOUT": 100}
    result = Job(pages(f"{one.url}/yes"), loop, settings).run()
    assert result.outcome(f"{one.url}/yes") == "refused"
    outcome = result.outcomes[f"{one.url}/yes"]
    assert outcome["reason"] == "unreachable"
    assert "(a middleware repeats the request more than 4 times)" in outcome["text"]
    assert one.targets() == ["/robots.txt"] * 5
    assert result.stats["robotstxt/request_count"] == "1"


@pytest_twisted.ensureDeferred
async def test_five_requests_are_enough_without_our_middleware(servers: LoopbackServers) -> None:
    """As the commands fetch, in projects that do not obey."""
    one = servers.serve(site(http_response(503)))

    async def script(spider: ScriptedSpider) -> None:
        settings = RepSettings.read(spider.crawler.settings)
        cache = PolicyCache(spider.crawler, settings, spider.clock)
        request = Request(f"{one.url}/robots.txt")
        policy = await cache.revalidate(Origin.of(request.url), request)
        assert policy.detail == "a middleware repeats the request more than 4 times"

    settings = {"ROBOTSTXT_OBEY": False, "DOWNLOADER_MIDDLEWARES": {AsksAgain: 895}}
    await crawl(script, settings | {"REP_FETCH_TIMEOUT": 100})
    # The sixth may be on its way when it is noticed.
    assert robots_count(one) <= 6


@pytest_twisted.ensureDeferred
async def test_each_hop_has_five_requests(servers: LoopbackServers) -> None:
    left = {"/robots.txt": 4, "/other": 4}

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target not in left:
            writer.write(PAGE)
        elif left[asked.target]:
            left[asked.target] -= 1
            writer.write(http_response(503))
        else:
            writer.write(redirect("/other") if asked.target == "/robots.txt" else ok())

    one = servers.serve(answer)

    async def script(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{one.url}/yes") == 200
        assert isinstance(await spider.ask(f"{one.url}/no"), Verdict)

    await crawl(script, beside(AsksAgain) | {"REP_FETCH_TIMEOUT": 100})
    assert one.targets() == ["/robots.txt"] * 5 + ["/other"] * 5 + ["/yes"]


class AsksInstead:
    """Puts another request in place of each, before it is sent."""

    def process_request(self, request: Request) -> Request | None:
        return request.replace(dont_filter=True) if "/robots.txt" in request.url else None


@pytest_twisted.ensureDeferred
async def test_requests_that_are_never_sent_count_too(servers: LoopbackServers) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        verdict = await spider.ask(f"{one.url}/yes")
        assert isinstance(verdict, Verdict)
        assert verdict.detail == "a middleware repeats the request more than 4 times"

    await crawl(script, beside(AsksInstead) | {"REP_FETCH_TIMEOUT": 100})
    assert one.asked == []


@pytest_twisted.ensureDeferred
async def test_an_exception_of_a_middleware_is_named_and_its_traceback_is_at_debug(
    servers: LoopbackServers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "scrapy_rep")
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        assert isinstance(await spider.ask(f"{one.url}/yes"), Verdict)

    await crawl(script, beside(Breaks))
    ours = [record for record in caplog.records if record.name.startswith("scrapy_rep")]
    (warning,) = [record for record in ours if record.levelno == logging.WARNING]
    assert "ZeroDivisionError (in tests.integration.middlewares.process_response" in (
        warning.getMessage()
    )
    assert not warning.exc_info
    (debug,) = [record for record in ours if record.exc_info]
    assert debug.levelno == logging.DEBUG
    assert one.url in debug.getMessage()
    assert debug.exc_info is not None
    assert isinstance(debug.exc_info[1], ZeroDivisionError)


# -- headers -----------------------------------------------------------------------------


def with_lines(line: str, megabytes: float) -> bytes:
    """Rules with so many megabytes of the same header."""
    lines = [line] * int(megabytes * MEGABYTE / len(line))
    head = ["HTTP/1.1 200 OK", f"Content-Length: {len(RULES)}", "Connection: close", *lines]
    return "\r\n".join([*head, "", ""]).encode() + RULES


HEADERS = {
    "Cache-Control": "Cache-Control: " + "max-age=60, " * 1200,
    "ETag": 'ETag: "' + "e" * 15_000 + '"',
    "other": "X-Other: " + "x" * 15_000,
}


@pytest.mark.once
@pytest.mark.parametrize("line", HEADERS.values(), ids=HEADERS.keys())
def test_long_headers_of_many_sites_do_not_fill_the_memory(
    servers: LoopbackServers, loop: str, line: str
) -> None:
    answer = site(with_lines(line, 2))
    urls = [f"{servers.serve(answer).url}/yes" for _ in range(40)]
    ordinary = servers.serve(site(ok()))
    # A download handler has each answer in memory a few times while it receives it: that
    # should be a small part of the growth.
    settings = {"REP_FETCH_TIMEOUT": 90, "REP_MAX_FETCHES": 4}
    result = Job(pages(*urls), loop, settings, warm_up=[f"{ordinary.url}/yes"]).run()
    assert {result.outcome(url) for url in urls} == {"fetched"}
    assert result.memory_growth < 60 * MEGABYTE


def test_a_content_encoding_that_is_too_long_is_not_undone(
    servers: LoopbackServers, loop: str
) -> None:
    one = servers.serve(site(with_lines("Content-Encoding: " + "identity, " * 300, 0.01)))
    result = Job(pages(f"{one.url}/yes"), loop).run()
    assert result.outcome(f"{one.url}/yes") == "refused"
    assert (
        "the Content-Encoding header has more than 1024 bytes"
        in result.outcomes[f"{one.url}/yes"]["text"]
    )


async def endless_headers(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Headers, one after the other, for good."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-Other: " + b"x" * 1000 + b"\r\n")
        await writer.drain()
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("handler", HANDLERS)
def test_endless_headers_end_with_the_time(servers: LoopbackServers, handler: str) -> None:
    one = servers.serve(site(endless_headers))
    other = servers.serve(site(ok()))
    settings: dict[str, Any] = {
        "DOWNLOAD_HANDLERS": {"http": handler},
        # Enough for the other one, beside a thousand headers in each second.
        "REP_FETCH_TIMEOUT": 8,
    }
    result = Job(pages(f"{one.url}/yes", f"{other.url}/yes"), "asyncio", settings).run()
    assert result.outcome(f"{one.url}/yes") == "refused"
    assert result.outcomes[f"{one.url}/yes"]["reason"] == "unreachable"
    assert result.outcome(f"{other.url}/yes") == "fetched"
    assert result.memory_growth < 100 * MEGABYTE
