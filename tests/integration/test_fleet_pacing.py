"""Crawl-delay over several workers: crawls in processes of their own, and one Redis.

The gaps are those that servers see.
"""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from pathlib import Path

import pytest
import pytest_twisted

from scrapy_rep.cli.servers import Asked, LoopbackServers
from tests.conditions import wait_until
from tests.integration.crawling import Job, ok, pages, site
from tests.integration.fleets import (
    agents,
    all_fetched_once,
    begin_together,
    job,
    run,
    turn,
    urls_of,
)
from tests.integration.in_process import ScriptedSpider, stat
from tests.integration.in_process import crawl as crawl_here
from tests.integration.paces import TOLERANCE, asking, gaps
from tests.integration.sharing import total
from tests.stores.redis_server import RedisServer

# Each crawl is a process, and they tell the same on every Python and Scrapy.
pytestmark = pytest.mark.once


def test_the_delay_holds_for_all_workers(
    servers: LoopbackServers, fresh_redis: RedisServer, loop: str
) -> None:
    slow = [servers.serve(site(asking("Crawl-delay: 0.5"))) for _ in range(3)]
    others = [servers.serve(site(ok())) for _ in range(3)]
    store = fresh_redis.patient_url
    jobs = [job(n, urls_of([*slow, *others], n, 4), loop, store) for n in range(3)]
    crawls = run(jobs)
    all_fetched_once([*slow, *others], jobs, crawls)
    for one in slow:
        assert len(gaps(one)) == 12
        assert min(gaps(one)) >= 0.5 - TOLERANCE
    # Redis hears nothing of sites that ask for nothing.
    with fresh_redis.client() as client:
        turns = {key.decode() for key in client.keys("scrapy-rep:turn:*")}
    assert turns == {turn(one) for one in slow}
    assert total(crawls, "turn_count") == 36
    assert total(crawls, "turn_alone_count") == 0
    # Nobody asks all the time.
    assert total(crawls, "turn_asked_count") <= 36 * 10
    assert [crawl.our_log() for crawl in crawls] == [[]] * 3


@pytest_twisted.ensureDeferred
async def test_other_workers_leave_the_delay_after_who_does_not_obey(
    servers: LoopbackServers, fresh_redis: RedisServer
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.5")))

    async def first(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{one.url}/1") == 200
        assert await spider.ask(f"{one.url}/free", meta={"dont_obey_robotstxt": True}) == 200

    async def second(spider: ScriptedSpider) -> None:
        assert await spider.ask(f"{one.url}/2") == 200

    settings = {"REP_STORE": fresh_redis.patient_url}
    crawlers = [await crawl_here(script, settings) for script in (first, second)]
    assert one.targets() == ["/robots.txt", "/1", "/free", "/2"]
    assert gaps(one)[-1] >= 0.5 - TOLERANCE
    # It had none of its own.
    assert [stat(crawler, "robotstxt/turn_count") for crawler in crawlers] == [1, 1]


def test_the_delay_holds_while_redis_is_gone_and_when_it_comes_back_empty(
    servers: LoopbackServers, own_redis: RedisServer, loop: str
) -> None:
    # In its slot, a worker of a busy machine is late, and the next one is not: by less than
    # half of a delay that is as long as this one.
    delay, workers = 2.5, 3

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.target == "/robots.txt":
            # The others come while it is fetched, or one would have few pages left by then.
            await asyncio.sleep(3)
        await site(asking(f"Crawl-delay: {delay}"))(asked, writer)

    one = servers.serve(answer)
    store = own_redis.patient_url
    jobs = begin_together(
        servers, [job(n, urls_of([one], n, 6), loop, store) for n in range(workers)]
    )
    outage: list[float] = []

    def kill_and_start() -> None:
        wait_until(lambda: len(agents(one)) == workers)
        # The last one has been heard of when another one has had its turn.
        before = len(one.asked)
        wait_until(lambda: len(one.asked) > before)
        own_redis.kill()
        outage.append(time.monotonic())
        before = len(one.asked)
        # Nobody stands still meanwhile. The turn of the first may be one that Redis has granted.
        wait_until(lambda: len(agents(one, since=before + 1)) == workers)
        outage.append(time.monotonic())
        own_redis.start()

    crawls = run(jobs, (0.0, kill_and_start))
    all_fetched_once([one], jobs, crawls)
    times = [asked.at for asked in one.asked]
    assert min(later - earlier for earlier, later in pairwise(times)) >= delay / 2
    # Together, they were no faster than one worker may be.
    began, ended = outage
    assert len([at for at in times if began < at < ended]) <= (ended - began) / delay + 2
    assert total(crawls, "turn_alone_count") >= 3
    for crawl in crawls:
        warned, *back = (line for line in crawl.our_log() if "throttling.fleet" in line)
        assert "Redis does not grant turns" in warned
        assert f"(workers: {workers})" in warned
        # None for a worker whose last request was during the outage.
        assert back in ([], ["INFO scrapy_rep.throttling.fleet Redis grants turns again"])
        assert float(crawl.stats["robotstxt/turn_outage_seconds"]) > 0
        assert crawl.stats["robotstxt/turn_workers_max"] == str(workers)


def test_without_a_redis_from_the_start_a_setting_says_how_many_workers_there_are(
    servers: LoopbackServers, own_redis: RedisServer, loop: str
) -> None:
    own_redis.kill()
    one = servers.serve(site(asking("Crawl-delay: 0.2")))
    store = own_redis.patient_url
    alone = job(0, urls_of([one], 0, 5), loop, store, REP_FLEET_SIZE=1)
    (crawl,) = run([alone])
    all_fetched_once([one], [alone], [crawl])
    assert min(gaps(one)) >= 0.2 - TOLERANCE
    assert total([crawl], "turn_alone_count") == 5


@pytest.mark.parametrize("trouble", ["gone", "password", "full", "read-only"])
def test_a_worker_that_has_never_reached_redis_waits(
    servers: LoopbackServers, own_redis: RedisServer, loop: str, trouble: str
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.2")))
    free = servers.serve(site(ok()))
    seen: list[int] = []

    def help_it() -> None:
        wait_until(lambda: "/0/0" in free.targets() and "/robots.txt" in one.targets())
        # Far more than the delay.
        time.sleep(3)
        seen.append(len(one.targets()))
        own_redis.kill()
        own_redis.start()

    if trouble == "gone":
        own_redis.kill()
    else:
        with own_redis.client() as client:
            if trouble == "password":
                client.config_set("requirepass", "secret")
            elif trouble == "full":
                client.config_set("maxmemory", 1)
            else:
                client.replicaof("127.0.0.1", "1")
    waiting = job(0, urls_of([one, free], 0, 3), loop, own_redis.patient_url)
    (crawl,) = run([waiting], (0.0, help_it))
    all_fetched_once([one, free], [waiting], [crawl])
    # Its robots.txt, and no page; a site without a delay is none of Redis' business.
    assert seen == [1]
    assert min(gaps(one)) >= 0.2 - TOLERANCE
    assert any("the number of workers is not known" in line for line in crawl.our_log())
    assert total([crawl], "turn_alone_count") == 0


def test_refreshes_take_turns_too(
    servers: LoopbackServers, fresh_redis: RedisServer, loop: str
) -> None:
    body = b"User-agent: *\nCrawl-delay: 0.3\nDisallow: /no\n"
    one = servers.serve(site(ok(body, ("Cache-Control", "max-age=2"))))
    store = fresh_redis.patient_url
    # One that begins when the copy of the other has expired fetches its own, and knows of no
    # delay before.
    jobs = [job(n, urls_of([one], n, 10), loop, store, REP_MIN_AGE=1) for n in range(2)]
    jobs = begin_together(servers, jobs)
    crawls = run(jobs)
    all_fetched_once([one], jobs, crawls)
    assert one.targets().count("/robots.txt") >= 3
    assert min(gaps(one)) >= 0.3 - TOLERANCE


def test_each_worker_by_itself(
    servers: LoopbackServers, fresh_redis: RedisServer, loop: str
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.3")))
    store = fresh_redis.patient_url
    urls = urls_of([one], 0, 3)
    (crawl,) = run([job(0, urls, loop, store, REP_PACING="local")])
    assert min(gaps(one)) >= 0.3 - TOLERANCE
    assert total([crawl], "turn_asked_count") == 0
    with fresh_redis.client() as client:
        assert client.keys("scrapy-rep:turn:*") == []
        assert client.keys("scrapy-rep:workers") == []


def test_the_turns_of_a_site_are_the_same_in_all_download_slots(
    servers: LoopbackServers, fresh_redis: RedisServer, loop: str
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.3")))
    store = fresh_redis.patient_url
    jobs = [job(n, urls_of([one], n, 3), loop, store) for n in range(2)]
    for number, other in enumerate(jobs):
        for page in other.pages:
            page["meta"] = {"download_slot": f"theirs {number}"}
    crawls = run(jobs)
    all_fetched_once([one], jobs, crawls)
    assert min(gaps(one)) >= 0.3 - TOLERANCE
    with fresh_redis.client() as client:
        assert client.keys("scrapy-rep:turn:*") == [turn(one).encode()]


def test_what_never_reaches_the_downloader_holds_up_nobody(
    servers: LoopbackServers, fresh_redis: RedisServer, loop: str, tmp_path: Path
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 0.2")))
    store = fresh_redis.patient_url
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    urls = urls_of([one], 0, 2)
    for _ in range(2):
        (crawl,) = run([job(0, urls, loop, store, **cache)])
        assert [crawl.outcome(url) for url in urls] == ["fetched"] * 2
    # All from the cache by now, and the turns are given back.
    assert sorted(one.targets()) == ["/0/0", "/0/1", "/robots.txt"]
    with fresh_redis.client() as client:
        *_, till, holder = client.get(turn(one)).split(b" ")
    assert (till, holder) == (b"0", b"")


def test_a_stop_loses_nothing(
    servers: LoopbackServers, fresh_redis: RedisServer, tmp_path: Path, loop: str
) -> None:
    one = servers.serve(site(asking("Crawl-delay: 30")))
    settings = {"JOBDIR": str(tmp_path / "job"), "REP_STORE": fresh_redis.patient_url}
    spider = {"stop_at": 10, "stop_by": "SIGINT", "stop_stat": "robotstxt/waiting_count"}
    urls = urls_of([one], 0, 10)
    stopped = Job(pages(*urls), loop, settings=settings, spider=spider).run()
    assert stopped.outcomes == {}
    assert 0 < stopped.seconds_to_close < 20
    again = Job([], loop, settings=settings | {"REP_CRAWL_DELAY": False}).run()
    assert [again.outcome(url) for url in urls] == ["fetched"] * 10
