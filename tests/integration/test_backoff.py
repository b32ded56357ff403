"""Sites that say "slower" by their answers, in real crawls: what their servers see."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred, gatherResults

from scrapy_rep.cli.servers import Answer, Asked, LoopbackServers, Site, http_response
from tests.conditions import until
from tests.integration.crawling import PAGE, Job, ok, pages, paths
from tests.integration.fleets import agents, begin_together, job, run, urls_of
from tests.integration.in_process import ScriptedSpider, crawl, stat
from tests.integration.paces import asking, delay_at, together
from tests.stores.redis_server import RedisServer

ON = {"REP_BACKOFF": True}


def busy(
    refuses: Callable[[int], bool],
    status: int = 429,
    retry_after: str | Callable[[], str] = "",
    robots: bytes = ok(b"User-agent: *\nDisallow: /no\n"),
) -> Answer:
    """A site that refuses some of its pages, counted from 1."""
    number = 0

    def refusal() -> bytes:
        after = retry_after if isinstance(retry_after, str) else retry_after()
        return http_response(status, b"", [("Retry-After", after)] if after else [])

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal number
        if asked.target == "/robots.txt":
            writer.write(robots)
            return
        number += 1
        writer.write(refusal() if refuses(number) else PAGE)

    return answer


def page_times(one: Site) -> list[float]:
    return [asked.at for asked in one.asked if asked.target != "/robots.txt"]


def page_gaps(one: Site) -> list[float]:
    return [later - earlier for earlier, later in pairwise(page_times(one))]


def in_seconds() -> str:
    return "2"


def as_a_date() -> str:
    # Of whole seconds: it is 5 to 6 seconds from now, and less when it is read.
    return formatdate(time.time() + 6, usegmt=True)


@pytest.mark.parametrize("retry_after", [in_seconds, as_a_date])
@pytest_twisted.ensureDeferred
async def test_retry_after_is_waited_for(
    servers: LoopbackServers, retry_after: Callable[[], str]
) -> None:
    one = servers.serve(busy(lambda page: page == 3, 429, retry_after))

    async def script(spider: ScriptedSpider) -> None:
        statuses = [await spider.ask(url) for url in paths(one, 5)]
        assert statuses == [200, 200, 429, 200, 200]

    crawler = await crawl(script, ON)
    assert page_gaps(one)[2] >= 2 - 0.005
    assert stat(crawler, "robotstxt/slower_count") == 1


@pytest_twisted.ensureDeferred
async def test_off_is_as_without_us(servers: LoopbackServers) -> None:
    one = servers.serve(busy(lambda page: page == 1, 503, "30"))

    async def script(spider: ScriptedSpider) -> None:
        assert [await spider.ask(url) for url in paths(one, 2)] == [503, 200]
        assert delay_at(spider, one) == 0

    crawler = await crawl(script)
    assert stat(crawler, "robotstxt/slower_count") is None


@pytest_twisted.ensureDeferred
async def test_the_rate_halves_and_recovers(servers: LoopbackServers) -> None:
    one = servers.serve(busy(lambda page: page in (2, 3), 503))

    async def script(spider: ScriptedSpider) -> None:
        delays = []
        for url in paths(one, 6):
            await spider.ask(url)
            delays.append(delay_at(spider, one))
        assert delays == [0, 1, 2, 1, 0, 0]

    await crawl(script, ON)
    for gap, least in zip(page_gaps(one)[1:4], (1, 2, 1), strict=True):
        assert gap >= least - 0.005


# All but the first request wait in the queue of their download slot when the first is answered,
# on a busy machine too: Scrapy makes one to three seconds of it.
QUEUED = {"DOWNLOAD_DELAY": 2}


@pytest_twisted.ensureDeferred
async def test_requests_that_wait_in_a_download_slot_are_held_too(servers: LoopbackServers) -> None:
    one = servers.serve(busy(lambda page: page == 2, 429, "4"))

    async def script(spider: ScriptedSpider) -> None:
        # With a policy at hand, all go to the download slot at once.
        assert await spider.ask(f"{one.url}/first") == 200
        statuses = await together(spider, paths(one, 4))
        assert sorted(statuses) == [200] * 3 + [429]

    await crawl(script, ON | QUEUED)
    # 4 s, and two after a fine answer.
    assert page_gaps(one)[1] >= 4
    assert page_gaps(one)[2] >= 2 - 0.005


def test_requests_that_go_back_to_the_scheduler_are_sent_later(
    servers: LoopbackServers, loop: str
) -> None:
    one = servers.serve(busy(lambda page: page == 2, 429, "4"))
    # With a policy at hand, all go to the download slot at once.
    warm_up = [f"{one.url}/first"]
    result = Job(pages(*paths(one, 6)), loop, settings=QUEUED, warm_up=warm_up).run()
    assert {result.outcome(url) for url in paths(one, 6)} == {"fetched"}
    # Each once, and none before the time.
    assert sorted(asked.target for asked in one.asked[2:]) == [f"/{number}" for number in range(6)]
    assert page_gaps(one)[1] >= 4


@pytest_twisted.ensureDeferred
async def test_requests_that_need_not_obey_are_not_called_back(servers: LoopbackServers) -> None:
    one = servers.serve(busy(lambda page: page == 1, 429, "900"))

    async def script(spider: ScriptedSpider) -> None:
        free = {"dont_obey_robotstxt": True}
        assert sorted(await together(spider, paths(one, 3), meta=free)) == [200, 200, 429]

    crawler = await crawl(script, ON | {"CONCURRENT_REQUESTS_PER_DOMAIN": 1})
    assert stat(crawler, "robotstxt/slower_count") == 1
    assert stat(crawler, "robotstxt/given_back_count") is None


@pytest_twisted.ensureDeferred
async def test_a_robotstxt_that_is_refused_slows_no_pages(servers: LoopbackServers) -> None:
    robots = http_response(429, b"", [("Retry-After", "900")])
    one = servers.serve(busy(lambda page: False, robots=robots))

    async def script(spider: ScriptedSpider) -> None:
        # 429: there is no robots.txt (RFC 9309 §2.3.1.3).
        assert await spider.ask(f"{one.url}/") == 200
        assert delay_at(spider, one) == 0

    await crawl(script, ON)


@pytest_twisted.ensureDeferred
async def test_two_spiders_of_a_process_hear_it_both(servers: LoopbackServers) -> None:
    one = servers.serve(busy(lambda page: page == 1, 429, "2"))
    is_slow: Deferred[None] = Deferred()

    async def first(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{one.url}/first") == 429
        is_slow.callback(None)

    async def second(spider: ScriptedSpider) -> None:
        await until(lambda: is_slow.called)
        # Not by an answer of its own.
        await until(lambda: delay_at(spider, one) == 2)
        assert await spider.ask(f"{one.url}/second") == 200

    await gatherResults([Deferred.fromCoroutine(crawl(each, ON)) for each in (first, second)])
    assert page_gaps(one)[0] >= 2


@pytest.mark.once
@pytest.mark.parametrize("store", ["sqlite", "redis"])
def test_no_worker_comes_before_the_time(
    servers: LoopbackServers,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    loop: str,
    store: str,
) -> None:
    refused: list[int] = []

    def when_both_have_come(page: int) -> bool:
        if len(agents(one)) == 2 and not refused:
            refused.append(page)
            return True
        return False

    paced = asking("Crawl-delay: 0.2")
    one = servers.serve(busy(when_both_have_come, 429, "3", robots=paced))
    url = f"sqlite:///{tmp_path / 'robots.sqlite'}"
    if store == "redis":
        server: RedisServer = request.getfixturevalue("fresh_redis")
        url = server.patient_url
    jobs = [job(n, urls_of([one], n, 6), loop, url) for n in range(2)]
    crawls = run(begin_together(servers, jobs))
    assert len(page_times(one)) == 12
    assert page_gaps(one)[refused[0] - 1] >= 3
    slower = [int(crawl.stats.get("robotstxt/slower_count", 0)) for crawl in crawls]
    assert sorted(slower) == [0, 1]


def test_a_site_that_is_busy_for_good_does_not_keep_a_crawl_from_its_end(
    servers: LoopbackServers, loop: str
) -> None:
    one = servers.serve(busy(lambda page: True, 503))
    settings = {"RETRY_ENABLED": True, "REP_BACKOFF_MAX": 0.1}
    # The witness takes them for answers otherwise.
    urls = [page | {"meta": {"handle_httpstatus_all": False}} for page in pages(*paths(one, 4))]
    result = Job(urls, loop, settings=settings).run()
    # RetryMiddleware counts as always.
    assert len(page_times(one)) == 4 * 3
    assert result.stats["retry/max_reached"] == "4"
    assert {result.outcome(url) for url in paths(one, 4)} == {"failed"}
    assert result.stats["robotstxt/slower_count"] == "12"


@pytest_twisted.ensureDeferred
async def test_people_are_told_once_who_asks_for_what(
    servers: LoopbackServers, caplog: pytest.LogCaptureFixture
) -> None:
    slow = servers.serve(busy(lambda page: False, robots=asking("Crawl-delay: 1.5")))
    full = servers.serve(busy(lambda page: page == 1, 429, "2"))
    quick = servers.serve(busy(lambda page: False, robots=asking("Crawl-delay: 1")))

    async def script(spider: ScriptedSpider) -> None:
        await spider.ask(f"{full.url}/first")
        await together(spider, [*paths(slow, 3), *paths(full, 3), *paths(quick, 2)])

    with caplog.at_level(logging.INFO, "scrapy_rep"):
        crawler = await crawl(script, ON)
    said = [
        record.getMessage()
        for record in caplog.records
        if record.name == "scrapy_rep.throttling.pace_log"
    ]
    assert sorted(line.partition(". ")[0] for line in said) == sorted(
        [
            f'{slow.host} asks for 1.5 s between two requests by "Crawl-delay: 1.5" (line 2) in '
            f"{slow.url}/robots.txt",
            f"{full.host} asks for 2 s between two requests by answering 429 with Retry-After: 2",
        ]
    )
    assert all(". Requests held: " in line for line in said)
    slowest = stat(crawler, "robotstxt/slowest_sites")
    assert {each["site"] for each in slowest} == {slow.host, full.host, quick.host}
    of_slow = next(each for each in slowest if each["site"] == slow.host)
    assert of_slow["requests"] == 3
    (summary,) = (
        record.getMessage()
        for record in caplog.records
        if record.name == "scrapy_rep.observers.summary"
    )
    assert f'  {slow.host}: 3 requests, by "Crawl-delay: 1.5" (line 2)' in summary
    assert of_slow["seconds"] >= 4
