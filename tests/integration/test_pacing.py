"""Crawl-delay, Request-rate and Visit-time in real crawls: the gaps are those that servers see."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_twisted
from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler

from scrapy_rep import Origin, Reason, RepMiddleware, Verdict
from scrapy_rep.cli.servers import Asked, LoopbackServers, Site, http_response
from scrapy_rep.throttling.throttle import Throttle
from tests.conditions import until
from tests.integration.certificates import tls_context
from tests.integration.crawling import PAGE, Job, ok, pages, paths, redirect, site
from tests.integration.in_process import (
    HOUR,
    NOON,
    ScriptedSpider,
    crawl,
    robots_count,
    stat,
)
from tests.integration.paces import TOLERANCE, asking, delay_at, gaps, throttle_of, together


def run(loop: str, urls: list[str], **settings: Any) -> Any:
    result = Job(pages(*urls), loop, settings=settings).run()
    assert {result.outcome(url) for url in urls} == {"fetched"}, result.outcomes
    return result


# -- gaps -------------------------------------------------------------------------


SIXTEEN = {"CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}


# Scrapy's own delays come on top, whatever they are.
AUTOTHROTTLED = SIXTEEN | {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.3}
RANDOM = SIXTEEN | {"DOWNLOAD_DELAY": 0.1}


@pytest.mark.parametrize("settings", [SIXTEEN, AUTOTHROTTLED, RANDOM])
def test_requests_leave_the_delay_that_is_asked(
    servers: LoopbackServers, loop: str, settings: dict[str, Any]
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.1")))
    result = run(loop, paths(one, 20), **settings)
    assert len(one.asked) == 21
    assert min(gaps(one)) >= 0.1 - TOLERANCE
    assert result.stats["robotstxt/paced_count"] == "1"
    # Nothing of ours is left for requests to inherit.
    assert [outcome["meta"] for outcome in result.outcomes.values()] == [[]] * 20


def test_redirects_between_two_hosts_keep_the_pace_of_both(
    servers: LoopbackServers, loop: str
) -> None:
    two = servers.serve(site(asking("Crawl-delay: 0.15")))

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target == "/robots.txt":
            writer.write(asking("Crawl-delay: 0.1"))
        elif asked.target.endswith("/direct"):
            writer.write(PAGE)
        else:
            writer.write(redirect(f"{two.url}{asked.target}"))

    one = servers.serve(answer)
    # Some to the second host still wait when those redirected to it come.
    job = [*pages(*paths(one, 6)), *pages(*(f"{url}/direct" for url in paths(two, 12)))]
    # The witness takes redirects for answers otherwise.
    job = [page | {"meta": {"handle_httpstatus_all": False}} for page in job]
    result = Job(job, loop).run()
    assert {outcome["outcome"] for outcome in result.outcomes.values()} == {"fetched"}
    assert len(one.asked) == 7
    assert len(two.asked) == 19
    assert min(gaps(one)) >= 0.1 - TOLERANCE
    assert min(gaps(two)) >= 0.15 - TOLERANCE


@pytest_twisted.ensureDeferred
async def test_origins_of_a_host_are_as_slow_as_the_slowest(servers: LoopbackServers) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.05")))
    two = servers.serve(site(asking("Crawl-delay: 0.15")), host=one.host)

    async def script(spider: ScriptedSpider) -> None:
        await together(spider, [f"{one.url}/", f"{two.url}/"])
        one.asked.clear()
        two.asked.clear()
        await together(spider, [*paths(one, 5), *paths(two, 5)])

    await crawl(script)
    assert len(gaps(one, two)) == 9
    assert min(gaps(one, two)) >= 0.15 - TOLERANCE


@pytest_twisted.ensureDeferred
async def test_of_more_origins_than_are_remembered_the_first_is_forgotten(
    servers: LoopbackServers,
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.2")))
    same_host = servers.serve(site(asking("Crawl-delay: 0.05")), host=one.host)
    other, another = (servers.serve(site(asking("Crawl-delay: 0.1"))) for _ in range(2))

    async def script(spider: ScriptedSpider) -> None:
        delays = []
        for asked in (one, same_host, other, another):
            assert await spider.ask(f"{asked.url}/yes") == 200
            delays.append(delay_at(spider, one))
        # Both are remembered; one of the two is; neither is.
        assert delays == [0.2, 0.2, 0.05, 0.0]
        # Whoever comes back is asked again, and paced again.
        assert await spider.ask(f"{one.url}/yes") == 200
        assert delay_at(spider, one) == 0.2

    await crawl(script, {"REP_MAX_ORIGINS": 2})
    assert robots_count(one) == 2


@pytest_twisted.ensureDeferred
async def test_a_refresh_keeps_the_pace_and_may_change_it(servers: LoopbackServers) -> None:
    answers = [asking("Crawl-delay: 0.1"), asking("Crawl-delay: 0.2"), asking("Crawl-delay: 0.05")]

    async def robots(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(answers.pop(0) if answers else asking("# nothing"))

    one = servers.serve(site(robots))

    async def script(spider: ScriptedSpider) -> None:
        for delay in (0.1, 0.2, 0.05, 0.0):
            await together(spider, paths(one, 3))
            assert delay_at(spider, one) == delay
            spider.clock.now += 25 * HOUR

    # Scrapy would make of its own delay one between half of it and one and a half.
    await crawl(script, {"DOWNLOAD_DELAY": 0.05})
    targets, times = one.targets(), gaps(one)
    assert robots_count(one) == 4
    # In front of each refresh, and behind it, is the gap of the pace that holds then.
    for number, delay in ((4, 0.1), (8, 0.2), (12, 0.05)):
        assert targets[number] == "/robots.txt"
        assert times[number - 1] >= delay - TOLERANCE
    for start, delay in ((0, 0.1), (4, 0.2), (8, 0.05)):
        assert min(times[start : start + 3]) >= delay - TOLERANCE


@pytest_twisted.ensureDeferred
async def test_http_and_https_of_a_host_share_the_longest_delay(servers: LoopbackServers) -> None:
    plain = servers.serve(site(asking("Crawl-delay: 0.05")))
    secure = servers.serve(site(ok()), host=plain.host, tls=tls_context())
    slow = servers.serve(site(asking("Crawl-delay: 0.2")), host=plain.host, tls=tls_context())

    async def script(spider: ScriptedSpider) -> None:
        await together(spider, [f"{one.url}/" for one in (plain, secure, slow)])
        for one in (plain, secure, slow):
            one.asked.clear()
        await together(spider, [*paths(plain, 4), *paths(secure, 4), *paths(slow, 4)])

    await crawl(script)
    assert len(gaps(plain, secure, slow)) == 11
    assert min(gaps(plain, secure, slow)) >= 0.2 - TOLERANCE


@pytest_twisted.ensureDeferred
async def test_the_robotstxt_of_another_port_takes_a_turn(servers: LoopbackServers) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.2")))
    others = [servers.serve(site(ok()), host=one.host) for _ in range(4)]

    async def script(spider: ScriptedSpider) -> None:
        await spider.ask(f"{one.url}/")
        await together(spider, [f"{other.url}/" for other in others])

    await crawl(script)
    assert len(gaps(one, *others)) == 9
    assert min(gaps(one, *others)) >= 0.2 - TOLERANCE


def test_retries_keep_the_pace(servers: LoopbackServers, loop: str) -> None:
    seen: set[str] = set()

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target == "/robots.txt":
            writer.write(asking("Crawl-delay: 0.1"))
        elif asked.target in seen:
            writer.write(PAGE)
        else:
            seen.add(asked.target)
            writer.write(http_response(503))

    one = servers.serve(answer)
    run(loop, paths(one, 6), RETRY_ENABLED=True, REP_BACKOFF=False)
    assert len(one.asked) == 13
    assert min(gaps(one)) >= 0.1 - TOLERANCE


@pytest_twisted.ensureDeferred
async def test_requests_inherit_nothing_through_meta(servers: LoopbackServers) -> None:
    paced, other = (servers.serve(site(asking(record))) for record in ("Crawl-delay: 0.05", "#"))
    metas: list[dict[str, Any]] = []

    async def script(spider: ScriptedSpider) -> None:
        assert spider.crawler.engine is not None
        for one in (other, paced, paced):
            request = Request(f"{one.url}/")
            await spider.crawler.engine.download_async(request)
            metas.append(dict(request.meta))

    await crawl(script, {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.1})
    assert [sorted(meta) for meta in metas] == [sorted(metas[0])] * 3
    assert "autothrottle_dont_adjust_delay" not in metas[0]


# Without Scrapy's random variation; the older name is for older versions.
OF_THE_PROJECT = {"delay": 0.5, "jitter": 0, "randomize_delay": False}


@pytest_twisted.ensureDeferred
async def test_a_longer_delay_of_the_project_stays_in_effect(servers: LoopbackServers) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.05")))
    began = time.monotonic()

    async def script(spider: ScriptedSpider) -> None:
        await together(spider, paths(one, 2))

    await crawl(script, {"DOWNLOAD_SLOTS": {one.host: OF_THE_PROJECT}})
    # Scrapy counts from the start of a download, which is before the server sees it.
    assert one.asked[-1].at - began >= 2 * 0.5 - TOLERANCE


@pytest_twisted.ensureDeferred
async def test_a_longer_delay_that_an_extension_sets_stays_in_effect(
    servers: LoopbackServers,
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.05")))

    async def script(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{one.url}/first") == 200
        assert spider.crawler.engine is not None
        slot = spider.crawler.engine.downloader.slots[one.host]
        slot.delay = 0.7
        last = slot.lastseen
        await together(spider, paths(one, 2))
        assert slot.delay == 0.7
        assert slot.lastseen - last >= 2 * 0.7 - TOLERANCE

    await crawl(script, {"DOWNLOAD_SLOTS": {one.host: OF_THE_PROJECT}})


@pytest_twisted.ensureDeferred
async def test_download_slots_are_left_alone(servers: LoopbackServers) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.05")))

    async def script(spider: ScriptedSpider) -> None:
        await together(spider, paths(one, 4))
        assert spider.crawler.engine is not None
        slot = spider.crawler.engine.downloader.slots[one.host]
        assert (slot.delay, slot.concurrency) == (0.0, 8)

    await crawl(script)
    assert min(gaps(one)) >= 0.05 - TOLERANCE


@pytest_twisted.ensureDeferred
async def test_several_download_slots_of_a_site_share_its_delay(servers: LoopbackServers) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.1")))

    async def script(spider: ScriptedSpider) -> None:
        slots = (spider.ask(url, meta={"download_slot": url[-1:]}) for url in paths(one, 6))
        assert await asyncio.gather(*slots) == [200] * 6

    await crawl(script)
    assert len(gaps(one)) == 6
    assert min(gaps(one)) >= 0.1 - TOLERANCE


@pytest_twisted.ensureDeferred
async def test_sites_that_share_a_download_slot_are_paced_each_for_itself(
    servers: LoopbackServers,
) -> None:
    slow = servers.serve(site(asking("Crawl-delay: 30")))
    fast = servers.serve(site(ok()))

    async def script(spider: ScriptedSpider) -> None:
        theirs = {"download_slot": "theirs"}
        waiting = asyncio.ensure_future(spider.ask(f"{slow.url}/", meta=theirs))
        await until(lambda: throttle_of(spider).is_in_use(slow.host))
        for url in paths(fast, 3):
            assert await spider.ask(url, meta=theirs) == 200
        assert slow.targets() == ["/robots.txt"]
        lift_delay(throttle_of(spider), slow.host)
        assert await waiting == 200

    await crawl(script)


@pytest_twisted.ensureDeferred
async def test_who_does_not_obey_is_not_held_but_counts_as_sent(servers: LoopbackServers) -> None:
    one = servers.serve(site(asking("Crawl-delay: 1.5")))

    async def script(spider: ScriptedSpider) -> None:
        await spider.ask(f"{one.url}/1")
        # All at once, and none waits for its turn.
        free = [f"{one.url}/free/{number}" for number in range(3)]
        asked = asyncio.ensure_future(spider.ask(f"{one.url}/2"))
        await together(spider, free, meta={"dont_obey_robotstxt": True})
        assert [target for target in one.targets() if target == "/2"] == []
        assert await asked == 200

    await crawl(script)
    assert one.targets()[-1] == "/2"
    assert gaps(one)[-1] >= 1.5 - TOLERANCE


@pytest_twisted.ensureDeferred
async def test_requests_under_way_count_when_a_site_begins_to_ask(servers: LoopbackServers) -> None:
    answers = [asking("# nothing"), asking("Crawl-delay: 0.3")]

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target == "/robots.txt":
            writer.write(answers.pop(0))
            return
        if asked.target == "/slow":
            await asyncio.sleep(0.5)
        writer.write(PAGE)

    one = servers.serve(answer)

    async def script(spider: ScriptedSpider) -> None:
        await spider.ask(f"{one.url}/1")
        slow = asyncio.ensure_future(spider.ask(f"{one.url}/slow"))
        await until(lambda: "/slow" in one.targets())
        spider.clock.now += 25 * HOUR
        assert await spider.ask(f"{one.url}/2") == 200
        assert slow.done()

    await crawl(script)
    assert one.targets() == ["/robots.txt", "/1", "/slow", "/robots.txt", "/2"]
    at = {asked.target: asked.at for asked in one.asked}
    # The slow page took half a second, and the delay counts from its end.
    assert at["/2"] - at["/slow"] >= 0.8 - TOLERANCE


# -- what is asked, and of whom -----------------------------------------------------

# The clock of the tests stands at 08:00 UTC.
ASKED: dict[str, tuple[str, dict[str, Any], float]] = {
    "Crawl-delay": ("Crawl-delay: 5", {}, 5.0),
    "Crawl-delay off": ("Crawl-delay: 5", {"REP_CRAWL_DELAY": False}, 0.0),
    "Crawl-delay capped": ("Crawl-delay: 100", {}, 60.0),
    "Crawl-delay capped elsewhere": ("Crawl-delay: 100", {"REP_CRAWL_DELAY_MAX": 7}, 7.0),
    "Crawl-delay of nothing": ("Crawl-delay: 0", {}, 0.0),
    "Crawl-delay that is none": ("Crawl-delay: soon", {}, 0.0),
    "Request-rate": ("Request-rate: 2/5s", {}, 2.5),
    "Request-rate off": ("Request-rate: 1/5s", {"REP_REQUEST_RATE": False}, 0.0),
    "Request-rate capped": ("Request-rate: 1/1d", {}, 60.0),
    "Request-rate at this time": ("Request-rate: 1/5 0700-0859", {}, 5.0),
    "Request-rate at another time": ("Request-rate: 1/5 0900-1000", {}, 0.0),
    "both": ("Crawl-delay: 3\nRequest-rate: 1/5", {}, 5.0),
    "nothing": ("Sitemap: https://example.com/crawl-delay.xml", {}, 0.0),
    "another parser": (
        "Crawl-delay: 5",
        {"ROBOTSTXT_PARSER": "scrapy.robotstxt.PythonRobotParser"},
        5.0,
    ),
}


@pytest.mark.parametrize(("record", "settings", "delay"), ASKED.values(), ids=ASKED.keys())
@pytest_twisted.ensureDeferred
async def test_what_is_asked(
    servers: LoopbackServers, record: str, settings: dict[str, Any], delay: float
) -> None:
    one = servers.serve(site(asking(record)))

    async def script(spider: ScriptedSpider) -> None:
        status, found = await without_delay(spider, one)
        assert (status, found) == (200, delay)

    crawler = await crawl(script, settings)
    assert stat(crawler, "robotstxt/paced_count") == (1 if delay else None)


async def without_delay(spider: ScriptedSpider, one: Site, **options: Any) -> tuple[Any, float]:
    """What comes of a page, and the delay of its site, for which the test does not wait."""
    asking = asyncio.ensure_future(spider.ask(f"{one.url}/page", **options))
    throttle = throttle_of(spider)
    await until(lambda: asking.done() or throttle.is_in_use(one.host))
    delay = throttle.delay(one.host)
    lift_delay(throttle, one.host)
    return await asking, delay


def lift_delay(throttle: Throttle, site: str) -> None:
    """Forget what origins of *site* ask for, so that requests that wait for their turn continue."""
    for origin in list(throttle.asked.get(site, {})):
        throttle.set_delay(site, 0, origin)


@pytest.mark.parametrize(
    ("tokens", "delay"),
    [
        ("News", 3.0),
        (["News", "Example"], 3.0),
        (["Example", "News"], 5.0),
        # A group of our own without a delay: that for everyone is not ours.
        ("Quick", 0.0),
        ("Somebody", 7.0),
    ],
)
@pytest_twisted.ensureDeferred
async def test_the_group_that_is_about_us_decides(
    servers: LoopbackServers, tokens: Any, delay: float
) -> None:
    groups = {"News": "Crawl-delay: 3", "Example": "Crawl-delay: 5", "Quick": "Disallow: /no"}
    lines = [f"User-agent: {name}\n{record}\nAllow: /" for name, record in groups.items()]
    body = "\n".join([*lines, "User-agent: *", "Crawl-delay: 7", "Allow: /"])
    one = servers.serve(site(ok(body.encode())))

    async def script(spider: ScriptedSpider) -> None:
        meta = {"robots_agent_tokens": tokens}
        assert await without_delay(spider, one, meta=meta) == (200, delay)

    await crawl(script)


@pytest_twisted.ensureDeferred
async def test_many_agents_take_little_room(servers: LoopbackServers) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.01")))

    async def script(spider: ScriptedSpider) -> None:
        for number in range(1, 40):
            tokens = {"robots_agent_tokens": number * "a"}
            assert await spider.ask(f"{one.url}/yes", meta=tokens) == 200
        middleware = spider.crawler.get_downloader_middleware(RepMiddleware)
        pacing = vars(middleware)["_pacing"]
        assert len(vars(pacing)["_origins"][Origin.of(one.url)].agents) < 33
        assert delay_at(spider, one) == 0.01

    await crawl(script)


@pytest_twisted.ensureDeferred
async def test_of_two_agents_the_slower_decides(servers: LoopbackServers) -> None:
    body = b"User-agent: A\nCrawl-delay: 3\nAllow: /\nUser-agent: B\nCrawl-delay: 5\nAllow: /\n"
    one = servers.serve(site(ok(body)))

    async def script(spider: ScriptedSpider) -> None:
        for tokens, delay in (("A", 3.0), ("B", 5.0), ("A", 5.0)):
            meta = {"robots_agent_tokens": tokens}
            assert await without_delay(spider, one, meta=meta) == (200, delay)

    await crawl(script)


@pytest_twisted.ensureDeferred
async def test_what_is_capped_is_said_once(
    servers: LoopbackServers, caplog: pytest.LogCaptureFixture
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 100")))
    two = servers.serve(site(asking("Crawl-delay: 0.04")))

    async def script(spider: ScriptedSpider) -> None:
        for _ in range(3):
            await spider.ask(f"{one.url}/")
            await spider.ask(f"{two.url}/")
            spider.clock.now += 25 * HOUR

    with caplog.at_level(logging.INFO, "scrapy_rep"):
        crawler = await crawl(script, {"REP_CRAWL_DELAY_MAX": 0.05})
    (said,) = [
        record for record in caplog.records if record.name == "scrapy_rep.throttling.pace_log"
    ]
    assert said.levelno == logging.INFO
    assert said.getMessage() == (
        f"{one.url}/robots.txt asks for 100 s between two requests, and gets 0.05 s "
        "(REP_CRAWL_DELAY_MAX)"
    )
    assert stat(crawler, "robotstxt/paced_count") == 2
    assert stat(crawler, "robotstxt/paced_capped_count") == 1


class Slotless:
    """A downloader of a project's own, which knows no slots."""

    def __init__(self, crawler: Crawler) -> None:
        self._theirs = Downloader(crawler)
        self.middleware = self._theirs.middleware
        self.active = self._theirs.active
        self.fetch = self._theirs.fetch
        self.needs_backout = self._theirs.needs_backout
        self.close = self._theirs.close


class Silent(Slotless):
    """One that tells nobody what it sends, either."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        send = self._theirs.signals.send_catch_log

        def send_others(signal: object, **named: Any) -> Any:
            said = (signals.request_reached_downloader, signals.request_left_downloader)
            return [] if signal in said else send(signal, **named)

        manager: Any = SimpleNamespace(send_catch_log=send_others)
        self._theirs.signals = manager


@pytest.mark.parametrize("downloader", [Slotless, Silent])
@pytest_twisted.ensureDeferred
async def test_any_downloader_is_paced(servers: LoopbackServers, downloader: type) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.2")))

    async def script(spider: ScriptedSpider) -> None:
        assert await together(spider, paths(one, 4)) == [200] * 4

    await crawl(script, {"DOWNLOADER": downloader})
    # Of one that is silent, nobody knows when it fetched the robots.txt.
    assert min(gaps(one)[1:]) >= 0.2 - TOLERANCE


# -- times of the day ---------------------------------------------------------------


def window(begins_in: int, ends_in: int, now: float) -> str:
    """A Visit-time, by seconds from *now*."""
    times = (time.gmtime(now + seconds) for seconds in (begins_in, ends_in))
    return "Visit-time: " + "-".join(f"{at.tm_hour:02}{at.tm_min:02}" for at in times)


@pytest.mark.parametrize(
    ("visit_time", "record", "outcome"),
    [
        ("refuse", "Visit-time: 0900-1000", Reason.VISIT_TIME),
        ("refuse", "Visit-time: 0700-0800", 200),
        ("refuse", "Visit-time: 0900-1000\nVisit-time: 0700-0900", 200),
        ("off", "Visit-time: 0900-1000", 200),
        # It opens later than requests are kept.
        ("wait", "Visit-time: 0901-1000", Reason.VISIT_TIME),
        ("wait", "Visit-time: 0700-0800", 200),
    ],
)
@pytest_twisted.ensureDeferred
async def test_visits_at_other_times(
    servers: LoopbackServers, visit_time: str, record: str, outcome: Any
) -> None:
    one = servers.serve(site(asking(record)))

    async def script(spider: ScriptedSpider) -> None:
        for _ in range(2):
            answer = await spider.ask(f"{one.url}/")
            assert (answer.reason if isinstance(answer, Verdict) else answer) == outcome
            verdict = await spider.ask(f"{one.url}/no")
            assert isinstance(verdict, Verdict)
            assert verdict.reason is Reason.RULE
        assert await spider.ask(f"{one.url}/robots.txt") == 200
        if isinstance(answer, Verdict):
            assert str(answer) == (
                f"disallowed because {one.url}/robots.txt allows visits only at other times "
                f"({record.partition(' ')[2][:2]}:{record[-7:-5]}-10:00 UTC)"
            )

    crawler = await crawl(script, {"REP_VISIT_TIME": visit_time})
    refused = stat(crawler, "robotstxt/forbidden/visit-time")
    assert refused == (2 if outcome is Reason.VISIT_TIME else None)
    assert stat(crawler, "robotstxt/kept_count") is None


@pytest_twisted.ensureDeferred
async def test_no_more_wait_than_may(servers: LoopbackServers) -> None:
    one = servers.serve(site(asking("Visit-time: 0900-1000")))

    async def script(spider: ScriptedSpider) -> None:
        spider.clock.now = NOON + HOUR - 0.3
        asked = asyncio.gather(*(spider.ask(url) for url in paths(one, 5)))
        await until(lambda: stat(spider.crawler, "robotstxt/waiting_max") == 1)
        await asyncio.sleep(0.1)
        spider.clock.now += 0.3
        # Others wait on the places that they have, and none is refused.
        assert await asked == [200] * 5

    crawler = await crawl(script, {"REP_VISIT_TIME": "wait", "REP_MAX_WAITING": 2})
    assert stat(crawler, "robotstxt/waiting_max") == 1


@pytest_twisted.ensureDeferred
async def test_requests_are_kept_until_the_site_opens(servers: LoopbackServers) -> None:
    one = servers.serve(site(asking("Visit-time: 0900-1000")))

    async def script(spider: ScriptedSpider) -> None:
        # Half a second before.
        spider.clock.now = NOON + HOUR - 0.5
        asked = asyncio.gather(spider.ask(f"{one.url}/1"), spider.ask(f"{one.url}/no"))
        await until(lambda: stat(spider.crawler, "robotstxt/kept_count") == 1)
        await asyncio.sleep(0.1)
        assert one.targets() == ["/robots.txt"]
        spider.clock.now += 0.5
        status, refused = await asked
        assert status == 200
        assert isinstance(refused, Verdict)
        assert refused.reason is Reason.RULE

    crawler = await crawl(script, {"REP_VISIT_TIME": "wait"})
    assert stat(crawler, "robotstxt/kept_count") == 1


def test_a_stop_loses_nothing(servers: LoopbackServers, tmp_path: Path, loop: str) -> None:
    one = servers.serve(site(asking(window(1800, 7200, time.time()))))
    settings = {"JOBDIR": str(tmp_path / "job"), "REP_VISIT_TIME": "wait"}
    spider = {"stop_at": 10, "stop_by": "SIGINT"}
    stopped = Job(pages(*paths(one, 10)), loop, settings=settings, spider=spider).run()
    assert stopped.outcomes == {}
    assert 0 < stopped.seconds_to_close < 20
    again = Job([], loop, settings=settings | {"REP_VISIT_TIME": "off"}).run()
    assert [again.outcome(url) for url in paths(one, 10)] == ["fetched"] * 10
    assert sorted(set(one.targets())) == sorted(["/robots.txt", *(f"/{n}" for n in range(10))])
