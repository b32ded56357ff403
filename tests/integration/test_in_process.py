"""Crawls in this process, in pytest-twisted's asyncio reactor: time injected, objects at hand."""

from __future__ import annotations

import re
from asyncio import StreamWriter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from scrapy import Request, signals
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep import Reason, RepRobotParser, Verdict
from scrapy_rep.cli.servers import Asked, LoopbackServers, http_response
from scrapy_rep.policies.fetcher import RobotsTxtFetcher
from tests.integration.crawling import RULES, hang, ok, site
from tests.integration.in_process import (
    HOUR,
    NOON,
    Clock,
    ScriptedSpider,
    beside,
    crawl,
    robots_count,
    stat,
)
from tests.integration.middlewares import AsksAgain, Breaks, KeepsAway

MIDDLEWARES = "tests.integration.middlewares"


@pytest_twisted.ensureDeferred
async def test_the_exception_carries_the_verdict(servers: LoopbackServers) -> None:
    one = servers.serve(site(ok(b"User-agent: Scrapy\nUser-agent: other\nDisallow: /no\n")))

    async def script(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{one.url}/yes") == 200
        spider.clock.now += 90
        verdict = await spider.ask(f"{one.url}/no/2")
        assert isinstance(verdict, Verdict)
        assert verdict.reason is Reason.RULE
        assert verdict.line == 3
        assert [agent.name for agent in verdict.group] == ["Scrapy"]
        assert str(verdict.origin) == one.url
        assert verdict.age == 90

    crawler = await crawl(script)
    assert stat(crawler, "robotstxt/forbidden/rule") == 1


@pytest.mark.clause("Google status-7")
@pytest_twisted.ensureDeferred
async def test_an_unreachable_origin_is_asked_again_when_its_time_has_come(
    servers: LoopbackServers,
) -> None:
    answers = [http_response(503), ok(RULES)]

    async def robots(asked: Any, writer: Any) -> None:
        writer.write(answers.pop(0))

    one = servers.serve(site(robots))

    async def script(spider: ScriptedSpider) -> None:
        for later in (0, 59.5):
            spider.clock.now = NOON + later
            verdict = await spider.ask(f"{one.url}/yes")
            assert isinstance(verdict, Verdict)
            assert verdict.reason is Reason.UNREACHABLE
        assert robots_count(one) == 1
        spider.clock.now = NOON + 60
        assert await spider.ask(f"{one.url}/yes") == 200
        assert robots_count(one) == 2

    await crawl(script)


@pytest.mark.clause("RFC 9309 2.4-1")
@pytest_twisted.ensureDeferred
async def test_a_copy_is_used_for_a_day(servers: LoopbackServers) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        for hours, fetches in ((0, 1), (21.5, 1), (24, 2), (45.5, 2)):
            spider.clock.now = NOON + hours * HOUR
            assert await spider.ask(f"{one.url}/yes") == 200
            assert robots_count(one) == fetches

    await crawl(script)


@pytest_twisted.ensureDeferred
async def test_of_more_origins_than_are_kept_the_first_is_asked_again(
    servers: LoopbackServers,
) -> None:
    first, second, third = (servers.serve(site(ok())) for _ in range(3))

    async def script(spider: ScriptedSpider) -> None:
        for one in (first, second, second, third, third):
            assert await spider.ask(f"{one.url}/yes") == 200
        assert [robots_count(one) for one in (first, second, third)] == [1, 1, 1]
        assert await spider.ask(f"{first.url}/yes") == 200
        assert [robots_count(one) for one in (first, second, third)] == [2, 1, 1]

    await crawl(script, {"REP_MAX_ORIGINS": 2})


@pytest_twisted.ensureDeferred
async def test_nobody_is_left_waiting_when_who_asked_first_is_cancelled(
    servers: LoopbackServers,
) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        cancelled = deferred_from_coro(spider.ask(f"{one.url}/first"))
        second = deferred_from_coro(spider.ask(f"{one.url}/yes"))
        cancelled.addErrback(lambda failure: None)
        cancelled.cancel()
        assert await maybe_deferred_to_future(second) == 200

    await crawl(script)
    assert one.targets() == ["/robots.txt", "/yes"]


@pytest_twisted.ensureDeferred
async def test_robots_parsed_is_sent_with_our_parser(servers: LoopbackServers) -> None:
    one = servers.serve(site(ok(b"User-agent: *\nCrawl-delay: 7\n")))
    parsed: list[tuple[float | None, str]] = []

    def note(robotparser: RepRobotParser, request: Request) -> None:
        parsed.append((robotparser.crawl_delay("Scrapy"), request.url))

    # New in Scrapy 2.18. Before, nobody sends and nobody hears it.
    signal = getattr(signals, "robots_parsed", None)

    async def script(spider: ScriptedSpider) -> None:
        if signal is not None:
            spider.crawler.signals.connect(note, signal)
        assert await spider.ask(f"{one.url}/yes") == 200

    await crawl(script)
    assert parsed == ([] if signal is None else [(7.0, f"{one.url}/yes")])


STATUSES: dict[str, tuple[int, dict[str, Any], Reason | int]] = {
    "429": (429, {}, 200),
    "429, google": (429, {"REP_DIALECT": "google"}, Reason.UNREACHABLE),
    "403, disallow": (403, {"REP_STATUS_OVERRIDES": {403: "disallow"}}, Reason.DISALLOWED),
    "429, unreachable": (
        429,
        {"REP_STATUS_OVERRIDES": {"429": "unreachable"}},
        Reason.UNREACHABLE,
    ),
    "503, allow": (503, {"REP_STATUS_OVERRIDES": {503: "allow"}}, 200),
}


@pytest.mark.clause("Google introduction-1", "Google status-6", "Koster 1996 3-1")
@pytest.mark.parametrize(("status", "settings", "expected"), STATUSES.values(), ids=STATUSES.keys())
@pytest_twisted.ensureDeferred
async def test_dialect_and_overrides_decide_about_a_status(
    servers: LoopbackServers, status: int, settings: dict[str, Any], expected: Reason | int
) -> None:
    one = servers.serve(site(http_response(status)))

    async def script(spider: ScriptedSpider) -> None:
        answer = await spider.ask(f"{one.url}/yes")
        assert (answer.reason if isinstance(answer, Verdict) else answer) == expected

    await crawl(script, settings)


GROUPS = b"""
User-agent: News
Disallow: /news
User-agent: Example
Disallow: /example
User-agent: Scrapy
Disallow: /scrapy
User-agent: *
Disallow: /all
"""

WHO: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = {
    "Scrapy's own User-Agent": ({}, {}, {}, "scrapy"),
    "USER_AGENT": ({"USER_AGENT": "Example/1.0 (+https://example.com)"}, {}, {}, "example"),
    "DEFAULT_REQUEST_HEADERS": (
        {"DEFAULT_REQUEST_HEADERS": {"user-agent": "News/1"}, "USER_AGENT": "Example/1"},
        {},
        {},
        "news",
    ),
    "spider.user_agent": ({"USER_AGENT": "News/1"}, {"user_agent": "Example/1"}, {}, "example"),
    "the request's header": ({}, {}, {"headers": {"User-Agent": "Example/3"}}, "example"),
    "a Mozilla-style header": (
        {"USER_AGENT": "Mozilla/5.0 (compatible; Example/0.1; https://example.com)"},
        {},
        {},
        "example",
    ),
    "a browser's header": ({"USER_AGENT": "Mozilla/5.0 (X11; Linux) Gecko"}, {}, {}, "all"),
    "ROBOTSTXT_USER_AGENT": ({"ROBOTSTXT_USER_AGENT": "Example"}, {}, {}, "example"),
    "REP_AGENT_TOKENS": (
        {"REP_AGENT_TOKENS": ["Example-News", "News"], "ROBOTSTXT_USER_AGENT": "Example"},
        {},
        {},
        "news",
    ),
    "spider.robots_agent_tokens": (
        {"REP_AGENT_TOKENS": "News"},
        {"robots_agent_tokens": ["Example", "News"]},
        {},
        "example",
    ),
    "meta robots_agent_tokens": (
        {},
        {"robots_agent_tokens": "Example"},
        {"meta": {"robots_agent_tokens": ["News", "Example"]}},
        "news",
    ),
    "a token of no group": ({"REP_AGENT_TOKENS": "Somebody"}, {}, {}, "all"),
}


@pytest.mark.clause("Koster 1996 3.2.1-4", "RFC 9309 2.2.1-3")
@pytest.mark.parametrize(
    ("settings", "attributes", "request_options", "group"), WHO.values(), ids=WHO.keys()
)
@pytest_twisted.ensureDeferred
async def test_who_we_are_decides_about_the_group(
    servers: LoopbackServers,
    settings: dict[str, Any],
    attributes: dict[str, Any],
    request_options: dict[str, Any],
    group: str,
) -> None:
    one = servers.serve(site(ok(GROUPS)))

    async def script(spider: ScriptedSpider) -> None:
        refused = [
            path
            for path in ("news", "example", "scrapy", "all")
            if isinstance(await spider.ask(f"{one.url}/{path}", **request_options), Verdict)
        ]
        assert refused == [group]

    await crawl(script, settings, **attributes)


@pytest_twisted.ensureDeferred
async def test_two_crawls_in_one_process_keep_to_themselves(servers: LoopbackServers) -> None:
    one = servers.serve(site(ok(GROUPS)))

    def script_for(path: str) -> Callable[[ScriptedSpider], Awaitable[None]]:
        async def script(spider: ScriptedSpider) -> None:
            assert isinstance(await spider.ask(f"{one.url}/{path}"), Verdict)
            assert await spider.ask(f"{one.url}/all") == 200

        return script

    first = Deferred.fromCoroutine(crawl(script_for("news"), robots_agent_tokens="News"))
    second = Deferred.fromCoroutine(crawl(script_for("example"), robots_agent_tokens="Example"))
    for crawler in (await first, await second):
        assert stat(crawler, "robotstxt/forbidden") == 1
        assert stat(crawler, "robotstxt/request_count") == 1


@pytest.mark.clause("Google caching-3")
@pytest_twisted.ensureDeferred
async def test_crawls_in_one_process_share_a_store_and_not_their_tokens(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    one = servers.serve(site(ok(GROUPS)))
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}

    def script_for(path: str) -> Callable[[ScriptedSpider], Awaitable[None]]:
        async def script(spider: ScriptedSpider) -> None:
            assert isinstance(await spider.ask(f"{one.url}/{path}"), Verdict)
            assert await spider.ask(f"{one.url}/all") == 200

        return script

    first = Deferred.fromCoroutine(crawl(script_for("news"), settings, robots_agent_tokens="News"))
    second = Deferred.fromCoroutine(
        crawl(script_for("example"), settings, robots_agent_tokens="Example")
    )
    for crawler in (await first, await second):
        assert stat(crawler, "robotstxt/forbidden") == 1
    assert robots_count(one) == 1


@pytest.mark.clause("RFC 9309 2.2.2-10")
@pytest_twisted.ensureDeferred
async def test_robots_txt_itself_needs_no_robots_txt(servers: LoopbackServers) -> None:
    one = servers.serve(site(ok(b"User-agent: *\nDisallow: /\n")))

    async def script(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{one.url}/robots.txt") == 200
        assert isinstance(await spider.ask(f"{one.url}/yes"), Verdict)
        assert await spider.ask(f"{one.url}/robots.txt") == 200

    crawler = await crawl(script)
    assert one.targets() == ["/robots.txt"] * 3
    assert stat(crawler, "robotstxt/request_count") == 1


@pytest_twisted.ensureDeferred
async def test_a_server_that_is_too_slow_is_unreachable(servers: LoopbackServers) -> None:
    one = servers.serve(site(hang))

    async def script(spider: ScriptedSpider) -> None:
        verdict = await spider.ask(f"{one.url}/yes")
        assert isinstance(verdict, Verdict)
        assert "no answer within 0.5 s" in str(verdict)

    crawler = await crawl(script, {"REP_FETCH_TIMEOUT": 0.5})
    assert stat(crawler, "robotstxt/forbidden/unreachable") == 1


@pytest_twisted.ensureDeferred
async def test_a_middleware_may_ask_again(servers: LoopbackServers) -> None:
    # Each is within the limit, both together are not; a cut would lose the last line.
    body = b"User-agent: *\n" + b"Disallow: /no\n" * 21_000 + b"Disallow: /end\n"
    answers = [http_response(503, body), ok(body)]

    async def robots(asked: Any, writer: Any) -> None:
        writer.write(answers.pop(0))

    one = servers.serve(site(robots))

    async def script(spider: ScriptedSpider) -> None:
        assert isinstance(await spider.ask(f"{one.url}/end"), Verdict)
        assert await spider.ask(f"{one.url}/yes") == 200

    crawler = await crawl(script, beside(AsksAgain))
    assert robots_count(one) == 2
    assert stat(crawler, "robotstxt/truncated_count") is None


@pytest.mark.parametrize("middleware", [KeepsAway, Breaks])
@pytest_twisted.ensureDeferred
async def test_a_middleware_that_spoils_the_fetch_allows_nothing(
    servers: LoopbackServers, middleware: type
) -> None:
    one = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        verdict = await spider.ask(f"{one.url}/yes")
        assert isinstance(verdict, Verdict)
        assert verdict.reason is Reason.UNREACHABLE
        # The line of the middleware that raised it.
        detail = re.sub(r"line \d+", "line N", verdict.detail)
        assert detail in (
            f"IgnoreRequest (in {MIDDLEWARES}.process_request, line N): keep away",
            f"ZeroDivisionError (in {MIDDLEWARES}.process_response, line N): a bug of the project",
        )

    await crawl(script, beside(middleware))


@pytest.mark.parametrize("url", ["http:///page", "https://:80/"])
@pytest_twisted.ensureDeferred
async def test_a_request_without_an_origin_is_refused(url: str) -> None:
    async def script(spider: ScriptedSpider) -> None:
        verdict = await spider.ask(url)
        assert isinstance(verdict, Verdict)
        assert verdict.reason is Reason.INVALID_URL

    crawler = await crawl(script)
    assert stat(crawler, "robotstxt/forbidden/invalid-url") == 1
    assert stat(crawler, "robotstxt/request_count") is None


@pytest_twisted.ensureDeferred
async def test_a_bug_of_ours_refuses_and_is_logged_and_not_for_good(
    servers: LoopbackServers, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = servers.serve(site(ok()))

    async def fail(*_: Any) -> None:
        raise RuntimeError("a bug")

    async def script(spider: ScriptedSpider) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(RobotsTxtFetcher, "fetch", fail)
            for _ in range(2):
                verdict = await spider.ask(f"{one.url}/yes")
                assert isinstance(verdict, Verdict)
                assert (verdict.reason, verdict.detail) == (Reason.UNREACHABLE, "internal error")
        # REP_RETRY_DELAY
        spider.clock.now += 60
        assert await spider.ask(f"{one.url}/yes") == 200

    await crawl(script)
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert [record.getMessage() for record in errors] == [
        f"Cannot get {one.url}/robots.txt because of a bug in scrapy-rep. All pages of this "
        "origin are refused until the next attempt. Please report this traceback."
    ]
    assert errors[0].exc_info is not None
    assert one.targets() == ["/robots.txt", "/yes"]


@pytest_twisted.ensureDeferred
async def test_a_page_that_is_tried_again_keeps_its_proxy_and_password(
    servers: LoopbackServers,
) -> None:
    clocks: list[Clock] = []
    pages = [http_response(503), http_response(200)]

    async def answer(asked: Asked, writer: StreamWriter) -> None:
        if asked.target.endswith("/robots.txt"):
            writer.write(ok())
        else:
            # So that what is known is too old when the page is tried again.
            clocks[0].now += 25 * HOUR
            writer.write(pages.pop(0))

    proxy = servers.serve(answer)

    async def script(spider: ScriptedSpider) -> None:
        clocks.append(spider.clock)
        with_password = proxy.url.replace("://", "://user:secret@")
        assert await spider.ask("http://one.example/yes", meta={"proxy": with_password}) == 200

    await crawl(script, {"RETRY_ENABLED": True})
    assert proxy.targets() == ["http://one.example/robots.txt", "http://one.example/yes"] * 2
    credentials = [asked.headers.get("proxy-authorization") for asked in proxy.asked]
    assert credentials == ["Basic dXNlcjpzZWNyZXQ="] * 4
