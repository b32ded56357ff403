"""Crawl-delay, Request-rate and Visit-time in real crawls: the gaps are those that servers see."""

from __future__ import annotations

import asyncio
import logging
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler

from scrapy_rep import Reason, RepMiddleware, Verdict
from scrapy_rep.cli.demo.server import Asked, LoopbackServers, Site
from tests.conditions import until
from tests.integration.crawling import PAGE, Job, ok, pages, paths, redirect, site
from tests.integration.test_in_process import (
    HOUR,
    NOON,
    ScriptedSpider,
    crawl,
    robots_count,
    stat,
)

TOLERANCE = 0.02


def asking(record: str, agent: str = "*") -> bytes:
    return ok(f"User-agent: {agent}\n{record}\nDisallow: /no\n".encode())


def gaps(*sites: Site) -> list[float]:
    """The seconds between the requests that *sites* got, all together."""
    times = sorted(asked.at for one in sites for asked in one.asked)
    return [later - earlier for earlier, later in pairwise(times)]


def run(loop: str, urls: list[str], **settings: Any) -> Any:
    result = Job(pages(*urls), loop, settings=settings).run()
    assert {result.outcome(url) for url in urls} == {"fetched"}, result.outcomes
    return result


def slot_of(spider: ScriptedSpider, one: Site | str) -> Any:
    assert spider.crawler.engine is not None
    key = one if isinstance(one, str) else one.host
    return spider.crawler.engine.downloader.slots.get(key)


async def together(spider: ScriptedSpider, urls: list[str], **options: Any) -> list[Any]:
    return await asyncio.gather(*(spider.ask(url, **options) for url in urls))


# -- gaps -------------------------------------------------------------------------


SIXTEEN = {"CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}


THROTTLED = SIXTEEN | {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 60}


@pytest.mark.parametrize("settings", [SIXTEEN, THROTTLED])
def test_requests_leave_the_delay_that_is_asked(
    servers: LoopbackServers, loop: str, settings: dict[str, Any]
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.1")))
    result = run(loop, paths(one, 20), **settings)
    assert len(one.asked) == 21
    assert min(gaps(one)) >= 0.1 - TOLERANCE
    # AutoThrottle would begin with a minute.
    assert max(gaps(one)) < 30
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
    # Some to the second host are still in its slot when those redirected to it come.
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
async def test_what_shares_a_slot_is_as_slow_as_the_slower(servers: LoopbackServers) -> None:
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
async def test_a_slot_that_was_dropped_is_paced_again(servers: LoopbackServers) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.1")))

    async def script(spider: ScriptedSpider) -> None:
        assert spider.crawler.engine is not None
        await together(spider, paths(one, 2))
        before = slot_of(spider, one)
        # As if 130 s had passed: what was used last so long ago, or later, is dropped.
        downloader: Any = spider.crawler.engine.downloader
        downloader._slot_gc(age=60 - 130)  # noqa: SLF001
        assert slot_of(spider, one) is None
        one.asked.clear()
        await together(spider, paths(one, 20))
        assert slot_of(spider, one) is not before

    await crawl(script)
    assert len(gaps(one)) == 19
    assert min(gaps(one)) >= 0.1 - TOLERANCE


@pytest_twisted.ensureDeferred
async def test_of_more_origins_than_are_kept_the_first_is_let_go(
    servers: LoopbackServers,
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.2")))
    same_slot = servers.serve(site(asking("Crawl-delay: 0.05")), host=one.host)
    other, another = (servers.serve(site(asking("Crawl-delay: 0.1"))) for _ in range(2))

    async def script(spider: ScriptedSpider) -> None:
        delays = []
        for asked in (one, same_slot, other, another):
            assert await spider.ask(f"{asked.url}/yes") == 200
            delays.append((slot_of(spider, one).delay, slot_of(spider, one).concurrency))
        # Both are kept; one of the two is; neither is, and the slot is as it was.
        assert delays == [(0.2, 1), (0.2, 1), (0.05, 1), (0.0, 8)]
        # Whoever comes back is asked again, and paced again.
        assert await spider.ask(f"{one.url}/yes") == 200
        assert slot_of(spider, one).delay == 0.2

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
            slot = slot_of(spider, one)
            assert slot.delay == delay
            assert slot.concurrency == (1 if delay else 8)
            spider.clock.now += 25 * HOUR

    await crawl(script)
    targets, times = one.targets(), gaps(one)
    assert robots_count(one) == 4
    # In front of each refresh, and behind it, is the gap of the pace that holds then.
    for number, delay in ((4, 0.1), (8, 0.2), (12, 0.05)):
        assert targets[number] == "/robots.txt"
        assert times[number - 1] >= delay - TOLERANCE
    for start, delay in ((0, 0.1), (4, 0.2), (8, 0.05)):
        assert min(times[start : start + 3]) >= delay - TOLERANCE


@pytest_twisted.ensureDeferred
async def test_never_faster_than_the_project_says(servers: LoopbackServers) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.05")))

    async def script(spider: ScriptedSpider) -> None:
        await together(spider, paths(one, 4))
        assert slot_of(spider, one).delay == 0.15

    await crawl(script, {"DOWNLOAD_SLOTS": {one.host: {"delay": 0.15}}})
    assert min(gaps(one)[1:]) >= 0.15 - TOLERANCE


@pytest_twisted.ensureDeferred
async def test_a_slot_of_the_projects_choice_is_paced(servers: LoopbackServers) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.1")))

    async def script(spider: ScriptedSpider) -> None:
        await together(spider, paths(one, 5), meta={"download_slot": "theirs"})
        assert slot_of(spider, "theirs").delay == 0.1
        # The robots.txt went through that of the host.
        assert slot_of(spider, one).delay == 0

    await crawl(script)
    assert min(gaps(one)[1:]) >= 0.1 - TOLERANCE


@pytest_twisted.ensureDeferred
async def test_who_does_not_obey_is_not_paced(servers: LoopbackServers) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.1")))

    async def script(spider: ScriptedSpider) -> None:
        await spider.ask(f"{one.url}/")
        meta = {"dont_obey_robotstxt": True, "download_slot": "theirs"}
        await spider.ask(f"{one.url}/", meta=meta)
        assert slot_of(spider, "theirs").delay == 0

    await crawl(script)


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
    """What comes of a page, and the delay of its slot, for which the test does not wait."""
    asking = asyncio.ensure_future(spider.ask(f"{one.url}/page", **options))
    while not asking.done():
        if slot := slot_of(spider, one):
            # As if what came last had been long ago.
            slot.lastseen = -1000.0
        await asyncio.sleep(0.005)
    return await asking, slot_of(spider, one).delay


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
        assert len(vars(middleware)["_pacing"].asked[one.url].agents) < 33
        assert slot_of(spider, one).delay == 0.01

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
    (said,) = [record for record in caplog.records if record.name == "scrapy_rep.throttling.pacing"]
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


@pytest_twisted.ensureDeferred
async def test_a_downloader_without_slots_is_left_alone(
    servers: LoopbackServers, caplog: pytest.LogCaptureFixture
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 20")))

    async def script(spider: ScriptedSpider) -> None:
        assert await together(spider, paths(one, 3)) == [200] * 3

    await crawl(script, {"DOWNLOADER": Slotless})
    (warning,) = [
        record for record in caplog.records if record.name == "scrapy_rep.throttling.slots"
    ]
    assert "Slotless has no download slots" in warning.getMessage()


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
                f"disallowed because {one.url}/robots.txt asks for visits at other times "
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
