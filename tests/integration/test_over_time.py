"""Policies over time, as a crawl sees them: lifetimes, refresh, outages. Nothing sleeps for it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from scrapy import Request
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep import Access, Reason, RepMiddleware, Verdict
from scrapy_rep.cli.servers import Answer, Asked, LoopbackServers, Site, http_response
from scrapy_rep.policies.cache import PolicyCache
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.stores.base import pause
from tests.integration.crawling import RULES, ok, redirect, reset, site
from tests.integration.in_process import (
    HOUR,
    NOON,
    Clock,
    ScriptedSpider,
    crawl,
    robots_count,
    stat,
)

DAY = 24 * HOUR
ETAG = ("ETag", '"1"')
MODIFIED = ("Last-Modified", "Mon, 04 Jan 2027 10:00:00 GMT")
ALLOW_ALL = b"User-agent: *\nDisallow:\n"
DOWN = http_response(503)


class Robots:
    """Answers, one after the other, and then the last one again and again."""

    def __init__(self, *answers: Answer | bytes) -> None:
        self.answers = list(answers)

    async def __call__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, bytes):
            writer.write(answer)
        else:
            await answer(asked, writer)


class Held:
    """An answer that is given when the test says so."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.released = threading.Event()

    async def __call__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        while not self.released.is_set():
            await asyncio.sleep(0.01)
        writer.write(self.answer)


def serve(servers: LoopbackServers, *answers: Answer | bytes) -> Site:
    return servers.serve(site(Robots(*answers)))


def conditions(one: Site) -> list[tuple[str | None, str | None]]:
    """If-None-Match and If-Modified-Since of each time that robots.txt was asked for."""
    return [
        (asked.headers.get("if-none-match"), asked.headers.get("if-modified-since"))
        for asked in one.asked
        if asked.target == "/robots.txt"
    ]


def cache_of(spider: ScriptedSpider) -> PolicyCache:
    middleware = spider.crawler.get_downloader_middleware(RepMiddleware)
    assert middleware is not None
    found = vars(middleware)["_policies"]
    assert isinstance(found, PolicyCache)
    return found


def cache_state(spider: ScriptedSpider) -> dict[str, Any]:
    """What the policy cache of the crawl has."""
    return vars(cache_of(spider))


def policy(spider: ScriptedSpider, one: Site) -> Policy:
    found = cache_state(spider)["_memory"][one.url]
    assert isinstance(found, Policy)
    return found


async def flights_over(spider: ScriptedSpider) -> None:
    """Return when nothing is being fetched any more."""
    for _ in range(1000):
        if not cache_state(spider)["_lookups"]:
            return
        await pause(0.01)
    raise AssertionError("a fetch does not end")


async def at(spider: ScriptedSpider, seconds: float, url: str) -> Verdict | int:
    """What comes of *url* so long after noon; when it returns, no fetch is under way."""
    spider.clock.now = NOON + seconds
    answer = await spider.ask(url)
    await flights_over(spider)
    return answer


async def refused(spider: ScriptedSpider, seconds: float, url: str) -> Verdict:
    answer = await at(spider, seconds, url)
    assert isinstance(answer, Verdict)
    return answer


# -- refresh --------------------------------------------------------------------


@pytest_twisted.ensureDeferred
async def test_a_refresh_keeps_nobody_waiting(servers: LoopbackServers) -> None:
    renewed = Held(http_response(304))
    one = serve(servers, ok(RULES, ETAG, MODIFIED), renewed)

    async def script(spider: ScriptedSpider) -> None:
        assert await at(spider, 0, f"{one.url}/yes") == 200
        assert await at(spider, 21.5 * HOUR, f"{one.url}/yes") == 200
        assert robots_count(one) == 1
        spider.clock.now = NOON + 22 * HOUR
        for number in range(5):
            # Answered by the old copy, while the server thinks.
            assert await spider.ask(f"{one.url}/{number}") == 200
            verdict = await spider.ask(f"{one.url}/no")
            assert isinstance(verdict, Verdict)
            assert verdict.age == 22 * HOUR
        renewed.released.set()
        await flights_over(spider)
        assert robots_count(one) == 2
        verdict = await refused(spider, 23 * HOUR, f"{one.url}/no")
        assert verdict.line == 2
        assert verdict.age == HOUR

    crawler = await crawl(script)
    assert conditions(one) == [(None, None), (ETAG[1], MODIFIED[1])]
    assert stat(crawler, "robotstxt/confirmed_count") == 1
    assert stat(crawler, "robotstxt/access_count/successful") == 1
    assert stat(crawler, "robotstxt/request_count") == 2
    assert stat(crawler, "robotstxt/response_status_count/304") == 1


@pytest_twisted.ensureDeferred
async def test_who_wants_a_refresh_waits_for_the_fetch_that_is_under_way(
    servers: LoopbackServers,
) -> None:
    answer = Held(ok())
    one = serve(servers, answer)

    async def script(spider: ScriptedSpider) -> None:
        page = deferred_from_coro(spider.ask(f"{one.url}/no"))
        while not one.asked:
            await pause(0.01)
        request = Request(f"{one.url}/robots.txt")
        refreshed = deferred_from_coro(cache_of(spider).revalidate(Origin.of(request.url), request))
        answer.released.set()
        assert (await maybe_deferred_to_future(refreshed)).access is Access.SUCCESSFUL
        found = await maybe_deferred_to_future(page)
        assert by_rule(found)

    await crawl(script)
    assert robots_count(one) == 1


@pytest.mark.clause("Google location-4", "RFC 9111 4.3.1-2", "RFC 9111 4.3.3-1")
@pytest_twisted.ensureDeferred
async def test_a_304_renews_for_as_long_as_it_says(servers: LoopbackServers) -> None:
    shorter = http_response(304, headers=[ETAG, ("Cache-Control", "max-age=3600")])
    one = serve(servers, ok(RULES, ETAG), shorter, http_response(304))

    async def script(spider: ScriptedSpider) -> None:
        for hours, fetches in ((0, 1), (22, 2), (22.8, 2), (22.95, 3), (23.8, 3), (23.9, 4)):
            verdict = await refused(spider, hours * HOUR, f"{one.url}/no")
            assert verdict.reason is Reason.RULE
            assert robots_count(one) == fetches

    crawler = await crawl(script)
    assert conditions(one) == [(None, None)] + [(ETAG[1], None)] * 3
    assert stat(crawler, "robotstxt/confirmed_count") == 3


@pytest.mark.clause("RFC 9111 4.3.3-2")
@pytest_twisted.ensureDeferred
async def test_other_rules_replace(servers: LoopbackServers) -> None:
    one = serve(servers, ok(RULES, ETAG), ok(ALLOW_ALL, ("ETag", '"2"')), http_response(304))

    async def script(spider: ScriptedSpider) -> None:
        await refused(spider, 0, f"{one.url}/no")
        await refused(spider, 22 * HOUR, f"{one.url}/no")
        assert await at(spider, 22 * HOUR, f"{one.url}/no") == 200
        assert await at(spider, 44 * HOUR, f"{one.url}/no") == 200

    crawler = await crawl(script)
    assert [etag for etag, _ in conditions(one)] == [None, '"1"', '"2"']
    assert stat(crawler, "robotstxt/access_count/successful") == 2


@pytest.mark.clause("Koster 1996 3.4-2", "RFC 9111 4-3")
@pytest_twisted.ensureDeferred
async def test_past_its_lifetime_a_copy_is_waited_for(servers: LoopbackServers) -> None:
    one = serve(servers, ok(RULES, ETAG), ok(ALLOW_ALL))

    async def script(spider: ScriptedSpider) -> None:
        await refused(spider, 0, f"{one.url}/no")
        assert await at(spider, 24 * HOUR, f"{one.url}/no") == 200

    await crawl(script)
    assert [etag for etag, _ in conditions(one)] == [None, '"1"']


@pytest.mark.clause("RFC 9111 4-1", "RFC 9111 4.3.1-d1")
@pytest_twisted.ensureDeferred
async def test_conditions_are_for_the_url_that_gave_the_copy(servers: LoopbackServers) -> None:
    final = serve(servers, ok(RULES, ETAG, MODIFIED), http_response(304))
    other = serve(servers, ok(ALLOW_ALL, ETAG))
    to_final, to_other = (redirect(f"{there.url}/robots.txt") for there in (final, other))
    one = serve(servers, to_final, to_final, to_other)

    async def script(spider: ScriptedSpider) -> None:
        await refused(spider, 0, f"{one.url}/no")
        await refused(spider, 22 * HOUR, f"{one.url}/no")
        assert policy(spider, one).fetched_at == NOON + 22 * HOUR
        assert await at(spider, 47 * HOUR, f"{one.url}/no") == 200

    await crawl(script)
    assert conditions(one) == [(None, None)] * 3
    assert conditions(final) == [(None, None), (ETAG[1], MODIFIED[1])]
    assert conditions(other) == [(None, None)]


# -- lifetimes ------------------------------------------------------------------

DATE = ("Date", "Fri, 15 Jan 2027 08:00:00 GMT")
IN_TWO_HOURS = ("Expires", "Fri, 15 Jan 2027 10:00:00 GMT")


def says(value: str) -> tuple[str, str]:
    return ("Cache-Control", value)


LIFETIMES: dict[str, tuple[list[tuple[str, str]], dict[str, Any], float]] = {
    "nothing said": ([], {}, DAY),
    "max-age": ([says("public, max-age=3600")], {}, 3600),
    "max-age and Age": ([says("max-age=3600"), ("Age", "600")], {}, 3000),
    "Expires": ([DATE, IN_TWO_HOURS], {}, 7200),
    "max-age before Expires": ([DATE, IN_TWO_HOURS, says("max-age=1000")], {}, 1000),
    "no-store": ([says("no-store")], {}, 300),
    "no-cache": ([says("no-cache, max-age=3600")], {}, 300),
    "min": ([says("max-age=1")], {}, 300),
    "REP_MIN_AGE": ([says("max-age=1")], {"REP_MIN_AGE": 1000}, 1000),
    "max": ([says("max-age=1000000")], {}, DAY),
    "REP_MAX_AGE": ([], {"REP_MAX_AGE": 600}, 600),
    "longer REP_MAX_AGE": ([says("max-age=172800")], {"REP_MAX_AGE": 7 * DAY}, 2 * DAY),
    "google": ([says("max-age=172800")], {"REP_DIALECT": "google"}, 2 * DAY),
    "koster1996": ([], {"REP_DIALECT": "koster1996"}, 7 * DAY),
    "koster1994": ([says("max-age=1")], {"REP_DIALECT": "koster1994"}, 1000 * DAY),
}


@pytest.mark.clause(
    "Google caching-4",
    "Koster 1996 3.4-1",
    "Koster 1996 3.4-5",
    "RFC 9111 3-4",
    "RFC 9111 5.2.2-1",
    "RFC 9309 2.4-2",
)
@pytest.mark.parametrize(
    ("headers", "settings", "lifetime"), LIFETIMES.values(), ids=LIFETIMES.keys()
)
@pytest_twisted.ensureDeferred
async def test_lifetimes(
    servers: LoopbackServers,
    headers: list[tuple[str, str]],
    settings: dict[str, Any],
    lifetime: float,
) -> None:
    one = serve(servers, ok(RULES, ("Content-Type", "text/plain"), *headers))
    refresh = max(min(lifetime * 0.9, lifetime - 30), lifetime / 2)

    async def script(spider: ScriptedSpider) -> None:
        assert await at(spider, 0, f"{one.url}/yes") == 200
        assert await at(spider, refresh - 1, f"{one.url}/yes") == 200
        assert robots_count(one) == 1
        if settings.get("REP_DIALECT") != "koster1994":
            assert policy(spider, one).until == pytest.approx(NOON + refresh)
            assert await at(spider, refresh + 1, f"{one.url}/yes") == 200
            assert robots_count(one) == 2

    await crawl(script, settings)


class Ticking(Clock):
    """Time goes by between any two looks."""

    def __call__(self) -> float:
        self.now += 0.5
        return self.now


@pytest.mark.parametrize("status", [200, 503])
@pytest_twisted.ensureDeferred
async def test_what_was_waited_for_is_used_though_its_time_is_over(
    servers: LoopbackServers, status: int
) -> None:
    one = serve(servers, http_response(status, RULES))

    async def script(spider: ScriptedSpider) -> None:
        spider.clock.__class__ = Ticking
        for fetches in (1, 2):
            answer = await spider.ask(f"{one.url}/yes")
            if status == 200:
                assert answer == 200
            else:
                assert isinstance(answer, Verdict)
                assert answer.detail == "status 503"
            await flights_over(spider)
            assert robots_count(one) >= fetches

    short = {"REP_MIN_AGE": 0.01, "REP_MAX_AGE": 0.01}
    await crawl(script, short | {"REP_RETRY_DELAY": 0.01, "REP_RETRY_MAX_DELAY": 0.01})


# -- outages --------------------------------------------------------------------

BACK_OFF = (60, 120, 240, 480, 960, 1920, 3600, 3600)


def warnings(caplog: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("scrapy_rep") and record.levelno == level
    ]


@pytest.mark.clause("RFC 9111 4.2.4-2", "RFC 9111 4.3.3-3", "RFC 9309 2.3.1.4-4", "RFC 9309 2.4-4")
@pytest.mark.parametrize("failure", [DOWN, reset], ids=["503", "reset"])
@pytest_twisted.ensureDeferred
async def test_the_last_copy_is_used_while_there_is_none(
    servers: LoopbackServers, caplog: pytest.LogCaptureFixture, failure: Answer | bytes
) -> None:
    caplog.set_level(logging.INFO, "scrapy_rep")
    failures = [failure] * (1 + len(BACK_OFF))
    one = serve(servers, ok(RULES, ETAG), *failures, http_response(304))

    async def script(spider: ScriptedSpider) -> None:
        assert await at(spider, 0, f"{one.url}/yes") == 200
        # This one waits, for nothing.
        time = 25 * HOUR
        assert (await refused(spider, time, f"{one.url}/no")).reason is Reason.RULE
        assert await at(spider, time, f"{one.url}/yes") == 200
        for number, delay in enumerate(BACK_OFF):
            assert robots_count(one) == 2 + number
            assert await at(spider, time + delay - 1, f"{one.url}/yes") == 200
            assert robots_count(one) == 2 + number
            time += delay
            verdict = await refused(spider, time, f"{one.url}/no")
            assert verdict.reason is Reason.RULE
            assert verdict.age == time
        outage = policy(spider, one).entry.outage
        assert outage is not None
        assert outage.since == NOON + 25 * HOUR
        assert await at(spider, time + HOUR, f"{one.url}/yes") == 200
        assert policy(spider, one).entry.outage is None
        assert (await refused(spider, time + HOUR, f"{one.url}/no")).age == 0

    crawler = await crawl(script)
    attempts = len(failures)
    assert [etag for etag, _ in conditions(one)] == [None] + [ETAG[1]] * (attempts + 1)
    assert stat(crawler, "robotstxt/access_count/unreachable") == attempts
    assert stat(crawler, "robotstxt/confirmed_count") == 1
    assert stat(crawler, "robotstxt/forbidden/unreachable") is None
    (warning,) = warnings(caplog)
    assert warning.startswith("Cannot reach ")
    assert "The cached robots.txt stays in use. Will retry" in warning
    info, _summary = warnings(caplog, logging.INFO)
    assert info.startswith("Reached ")
    assert info.endswith(" again")


@pytest_twisted.ensureDeferred
async def test_a_failed_refresh_is_noticed_by_nobody(servers: LoopbackServers) -> None:
    one = serve(servers, ok(), DOWN, DOWN, ok(ALLOW_ALL))

    async def script(spider: ScriptedSpider) -> None:
        for seconds in (0, 22 * HOUR, 22 * HOUR + 60):
            assert (await refused(spider, seconds, f"{one.url}/no")).line == 2
        assert await at(spider, 22 * HOUR + 170, f"{one.url}/yes") == 200
        assert robots_count(one) == 3
        # Asked by the old copy, which brings the new one.
        assert (await refused(spider, 22 * HOUR + 180, f"{one.url}/no")).line == 2
        assert await at(spider, 22 * HOUR + 180, f"{one.url}/no") == 200

    await crawl(script)


@pytest.mark.clause("RFC 9110 10.2.3-1")
@pytest.mark.parametrize(("header", "delay"), [("600", 600), ("5", 60), ("9999999", DAY)])
@pytest_twisted.ensureDeferred
async def test_retry_after(servers: LoopbackServers, header: str, delay: float) -> None:
    one = serve(servers, http_response(503, headers=[("Retry-After", header)]), ok())

    async def script(spider: ScriptedSpider) -> None:
        for seconds in (0, delay - 1):
            verdict = await refused(spider, seconds, f"{one.url}/yes")
            assert verdict.reason is Reason.UNREACHABLE
            assert robots_count(one) == 1
        assert await at(spider, delay, f"{one.url}/yes") == 200

    await crawl(script)


@pytest.mark.clause("RFC 9309 2.3.1.4-1", "RFC 9309 2.3.1.4-3")
@pytest_twisted.ensureDeferred
async def test_without_a_copy_all_is_refused_and_after_the_grace_allowed(
    servers: LoopbackServers, caplog: pytest.LogCaptureFixture
) -> None:
    one = serve(servers, *[DOWN] * 27, ok())

    async def script(spider: ScriptedSpider) -> None:
        for hour in range(25):
            verdict = await refused(spider, hour * HOUR, f"{one.url}/yes")
            assert verdict.reason is Reason.UNREACHABLE
        for _ in range(2):
            # By then, it has been down for more than a day.
            assert await at(spider, 25 * HOUR, f"{one.url}/no") == 200
            url = f"{one.url}/no"
            verdict = policy(spider, one).verdict(url, "Scrapy", spider.clock.now)
            assert verdict.reason is Reason.UNAVAILABLE
        assert await at(spider, 26 * HOUR, f"{one.url}/no") == 200
        assert robots_count(one) == 27
        # This request brings the file.
        assert await at(spider, 27 * HOUR, f"{one.url}/no") == 200
        assert (await refused(spider, 27 * HOUR, f"{one.url}/no")).reason is Reason.RULE

    crawler = await crawl(script, {"REP_UNREACHABLE_GRACE": DAY})
    assert stat(crawler, "robotstxt/access_count/unreachable") == 27
    assert len(warnings(caplog)) == 1
    assert "All pages of this origin are refused" in warnings(caplog)[0]


@pytest.mark.clause("RFC 9309 2.3.1.4-d2")
@pytest_twisted.ensureDeferred
async def test_time_in_which_nobody_asked_is_no_outage(servers: LoopbackServers) -> None:
    one = serve(servers, DOWN)

    async def script(spider: ScriptedSpider) -> None:
        for days in (0, 29):
            verdict = await refused(spider, days * DAY, f"{one.url}/yes")
            assert verdict.reason is Reason.UNREACHABLE

    await crawl(script)


@pytest_twisted.ensureDeferred
async def test_unreachable_may_be_allowed(
    servers: LoopbackServers, caplog: pytest.LogCaptureFixture
) -> None:
    one = serve(servers, DOWN, ok())

    async def script(spider: ScriptedSpider) -> None:
        assert await at(spider, 0, f"{one.url}/no") == 200
        assert await at(spider, 59, f"{one.url}/no") == 200
        assert robots_count(one) == 1
        assert (await refused(spider, 60, f"{one.url}/no")).reason is Reason.RULE

    crawler = await crawl(script, {"REP_UNREACHABLE": "allow"})
    assert stat(crawler, "robotstxt/access_count/unreachable") == 1
    assert "All pages of this origin are allowed (REP_UNREACHABLE)" in warnings(caplog)[0]


@pytest.mark.clause("RFC 9309 2.4-d1")
@pytest_twisted.ensureDeferred
async def test_that_there_is_none_does_not_outlive_its_lifetime(servers: LoopbackServers) -> None:
    one = serve(servers, http_response(404), DOWN)

    async def script(spider: ScriptedSpider) -> None:
        for hours in (0, 22, 23.9):
            assert await at(spider, hours * HOUR, f"{one.url}/no") == 200
        # RFC 9309 §2.4 is about a cached robots.txt; this is none.
        verdict = await refused(spider, 24 * HOUR, f"{one.url}/no")
        assert verdict.reason is Reason.UNREACHABLE

    crawler = await crawl(script)
    assert conditions(one)[1] == (None, None)
    assert stat(crawler, "robotstxt/access_count/unavailable") == 1


@pytest_twisted.ensureDeferred
async def test_status_overrides(servers: LoopbackServers) -> None:
    one = serve(servers, ok(), DOWN, http_response(404))

    async def script(spider: ScriptedSpider) -> None:
        await refused(spider, 0, f"{one.url}/no")
        assert await at(spider, DAY, f"{one.url}/no") == 200
        # It waits no longer than for any other answer.
        assert await at(spider, DAY + HOUR, f"{one.url}/no") == 200
        assert robots_count(one) == 2
        verdict = await refused(spider, 2 * DAY, f"{one.url}/yes")
        assert verdict.reason is Reason.DISALLOWED

    overrides = {503: "allow", 404: "disallow"}
    crawler = await crawl(script, {"REP_STATUS_OVERRIDES": overrides})
    for access in ("successful", "unavailable", "disallowed"):
        assert stat(crawler, f"robotstxt/access_count/{access}") == 1
    assert stat(crawler, "robotstxt/access_count/unreachable") is None


# -- from crawl to crawl --------------------------------------------------------


def in_file(directory: Path) -> dict[str, Any]:
    return {"REP_STORE": f"sqlite:///{directory}/robots.sqlite"}


async def ask_at(
    seconds: float,
    url: str,
    check: Callable[[Verdict | int], bool],
    settings: dict[str, Any],
) -> Any:
    """A crawl that asks for one page; its crawler."""

    async def script(spider: ScriptedSpider) -> None:
        assert check(await at(spider, seconds, url))

    return await crawl(script, settings)


def by_rule(answer: Verdict | int) -> bool:
    return isinstance(answer, Verdict) and answer.reason is Reason.RULE


def unreachable(answer: Verdict | int) -> bool:
    return isinstance(answer, Verdict) and answer.reason is Reason.UNREACHABLE


@pytest.mark.clause("RFC 9309 2.4-1")
@pytest_twisted.ensureDeferred
async def test_another_crawl_goes_on_with_the_copy(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    one = serve(servers, ok(RULES, ETAG), http_response(304))
    url, settings = f"{one.url}/no", in_file(tmp_path)
    first = await ask_at(0, url, by_rule, settings)
    assert stat(first, "robotstxt/store_count") is None
    second = await ask_at(20 * HOUR, url, by_rule, settings)
    assert stat(second, "robotstxt/store_count") == 1
    assert stat(second, "robotstxt/request_count") is None
    third = await ask_at(22 * HOUR, url, by_rule, settings)
    assert stat(third, "robotstxt/confirmed_count") == 1
    fourth = await ask_at(43 * HOUR, url, by_rule, settings)
    assert stat(fourth, "robotstxt/store_count") == 1
    assert conditions(one) == [(None, None), (ETAG[1], None)]


@pytest_twisted.ensureDeferred
async def test_an_outage_goes_on(servers: LoopbackServers, tmp_path: Path) -> None:
    one = serve(servers, ok(), *[DOWN] * 3, ok(ALLOW_ALL))
    url, settings = f"{one.url}/no", in_file(tmp_path)
    await ask_at(0, url, by_rule, settings)
    for seconds, fetches in ((0, 2), (59, 2), (60, 3), (179, 3), (180, 4), (419, 4)):
        await ask_at(DAY + seconds, url, by_rule, settings)
        assert robots_count(one) == fetches
    assert stat(await ask_at(DAY + 420, url, by_rule, settings), "robotstxt/request_count") == 1
    await ask_at(DAY + 420, url, lambda answer: answer == 200, settings)
    assert robots_count(one) == 5


@pytest_twisted.ensureDeferred
async def test_a_crawl_that_finds_an_outage_in_the_store_says_so(
    servers: LoopbackServers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = serve(servers, DOWN)
    settings = in_file(tmp_path)
    await ask_at(0, f"{one.url}/no", unreachable, settings)
    caplog.clear()
    await ask_at(20, f"{one.url}/no", unreachable, settings)
    assert robots_count(one) == 1
    (warning,) = warnings(caplog)
    assert "Could not reach" in warning
    assert "20 s ago (status 503)" in warning
    assert "refused. Will retry on the next request after 40 s" in warning


@pytest_twisted.ensureDeferred
async def test_an_answer_that_varies_by_user_agent_is_not_shared_with_another_one(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    one = serve(servers, ok(RULES, ("Vary", "User-Agent")))
    first, other = (
        in_file(tmp_path) | {"USER_AGENT": name, "REP_AGENT_TOKENS": "x"} for name in ("A", "B")
    )
    counts = []
    for settings in (first, first, other, other, first):
        await ask_at(0, f"{one.url}/no", by_rule, settings)
        counts.append(robots_count(one))
    assert counts == [1, 1, 2, 2, 3]


@pytest_twisted.ensureDeferred
async def test_other_answers_are_shared_by_all_user_agents(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    one = serve(servers, ok(RULES, ("Vary", "Accept-Encoding")))
    for name in ("A", "B"):
        settings = in_file(tmp_path) | {"USER_AGENT": name, "REP_AGENT_TOKENS": "x"}
        await ask_at(0, f"{one.url}/no", by_rule, settings)
    assert robots_count(one) == 1


@pytest_twisted.ensureDeferred
async def test_a_redirect_that_is_stale_is_followed_again(
    servers: LoopbackServers, tmp_path: Path
) -> None:
    target = serve(servers, ok(RULES, ("Cache-Control", "max-age=86400")))
    location = ("Location", f"{target.url}/robots.txt")
    one = serve(servers, http_response(301, b"", [location, ("Cache-Control", "max-age=3600")]))
    for seconds in (0, 0.8 * HOUR, 1.1 * HOUR):
        await ask_at(seconds, f"{one.url}/no", by_rule, in_file(tmp_path))
    assert robots_count(one) == robots_count(target) == 2


@pytest_twisted.ensureDeferred
async def test_the_grace_goes_on(servers: LoopbackServers, tmp_path: Path) -> None:
    one = serve(servers, DOWN)
    settings = in_file(tmp_path) | {"REP_UNREACHABLE_GRACE": DAY}
    for hours in (0, 12, 24):
        await ask_at(hours * HOUR, f"{one.url}/no", unreachable, settings)
    await ask_at(25 * HOUR, f"{one.url}/no", lambda answer: answer == 200, settings)
    assert robots_count(one) == 4


@pytest_twisted.ensureDeferred
async def test_two_at_once_in_one_process(servers: LoopbackServers, tmp_path: Path) -> None:
    """The one that holds no lease waits for the other, and asks nobody."""
    answer = Held(ok())
    one = serve(servers, answer)

    crawls = [
        Deferred.fromCoroutine(ask_at(0, f"{one.url}/no", by_rule, in_file(tmp_path)))
        for _ in range(2)
    ]

    async def release() -> None:
        while not robots_count(one):
            await pause(0.01)
        await pause(0.1)
        answer.released.set()

    await deferred_from_coro(release())
    counts = [stat(await crawler, "robotstxt/store_count") or 0 for crawler in crawls]
    assert robots_count(one) == 1
    assert sorted(counts) == [0, 1]
