"""Crawls in processes of their own, and one Redis."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_rep.cli.servers import LoopbackServers, Site
from tests.conditions import HANGS
from tests.integration.crawling import RULES, Crawl, Job, ok, pages, site
from tests.integration.sharing import conditional, crawl, fetches, total
from tests.stores.redis_server import RedisServer

ROOT = Path(__file__).parents[2]
HOSTS = 40


@pytest.mark.clause("Google caching-3")
def test_two_crawls_of_the_same_hosts(
    servers: LoopbackServers, fresh_redis: RedisServer, loop: str
) -> None:
    sites = [servers.serve(conditional(("even", "odd")[one % 2])) for one in range(HOSTS)]
    store = fresh_redis.patient_url
    both = crawl(sites, loop, store, processes=2)
    assert fetches(sites) == [1] * HOSTS
    assert total(both, "request_count") == HOSTS
    assert total(both, "store_count") == HOSTS
    with fresh_redis.client() as client:
        client.config_resetstat()
        began = time.monotonic()
        (third,) = crawl(sites, loop, store)
        seconds = time.monotonic() - began
        calls = client.info("commandstats")["cmdstat_evalsha"]["calls"]
    assert fetches(sites) == [1] * HOSTS
    assert total([third], "store_count") == HOSTS
    # One for each origin, whatever its number of pages. And those by the time: each two seconds
    # one to say hello and one to be counted as a worker, and four to hear of slow sites.
    assert HOSTS + 2 <= calls <= HOSTS + 10 + 3 * seconds


@pytest.mark.once
def test_two_dialects_judge_the_same_facts(
    servers: LoopbackServers, fresh_redis: RedisServer, loop: str
) -> None:
    refusing = servers.serve(site(ok(b"go away").replace(b"200", b"403", 1)))
    settings = {"REP_STORE": fresh_redis.patient_url}
    asked = pages(f"{refusing.url}/page")
    first = Job(asked, loop, settings=settings).run()
    assert first.outcome(f"{refusing.url}/page") == "fetched"
    other = Job(asked, loop, settings=settings | {"REP_DIALECT": "koster1996"}).run()
    # RFC 9309: 4xx allows all; Koster's draft of 1996: 403 refuses all.
    assert other.outcome(f"{refusing.url}/page") == "refused"
    assert fetches([refusing]) == [1]


@pytest.mark.once
@pytest.mark.parametrize("off", ["ahead", "behind"])
def test_a_worker_whose_clock_is_an_hour_off(
    servers: LoopbackServers, fresh_redis: RedisServer, loop: str, off: str
) -> None:
    sites = [servers.serve(site(ok(RULES, ("Cache-Control", "max-age=1800")))) for _ in range(10)]
    right = {"REP_STORE": fresh_redis.patient_url}
    ours = "scrapy_rep.RepMiddleware"
    wrong = right | {
        "DOWNLOADER_MIDDLEWARES": {
            ours: None,
            "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
            f"tests.integration.middlewares.HourOff{off.capitalize()}": 100,
        }
    }
    asked = pages(*(f"{one.url}/{page}" for one in sites for page in ("yes", "no")))
    for settings in (wrong, right):
        result = Job(asked, loop, settings=settings).run()
        assert result.our_log() == []
        for one in sites:
            assert result.outcome(f"{one.url}/yes") == "fetched"
            assert result.outcome(f"{one.url}/no") == "refused"
        # What is good for half an hour is so by everybody's clock.
        assert fetches(sites) == [1] * 10


@pytest.mark.once
def test_two_projects_share_a_server_and_nothing_else(
    servers: LoopbackServers, fresh_redis: RedisServer, loop: str
) -> None:
    sites = [servers.serve(site(ok())) for _ in range(5)]
    asked = pages(*(f"{one.url}/page" for one in sites))
    for fetched, prefix in enumerate(("shop:", "news:", "shop:"), start=1):
        store = f"{fresh_redis.patient_url}&prefix={prefix}"
        Job(asked, loop, settings={"REP_STORE": store}).run()
        assert fetches(sites) == [min(fetched, 2)] * 5


def during(crawl: Callable[[], Crawl], *steps: tuple[float, Callable[[], Any]]) -> Crawl:
    """*crawl*, and each of *steps* so many seconds after it has begun."""
    timers = [threading.Timer(after, step) for after, step in steps]
    for timer in timers:
        timer.start()
    try:
        return crawl()
    finally:
        for timer in timers:
            timer.join()


def paced(sites: list[Site], each: int, store: str, loop: str) -> Job:
    """A crawl that takes some seconds: *each* page of a site has a turn of its own."""
    urls = [f"{one.url}/{page}" for page in range(each) for one in sites]
    settings = {"REP_STORE": store, "DOWNLOAD_DELAY": 0.4, "RANDOMIZE_DOWNLOAD_DELAY": False}
    return Job(pages(*urls), loop, settings=settings)


def test_redis_goes_and_comes_back_empty(
    servers: LoopbackServers, own_redis: RedisServer, loop: str
) -> None:
    sites = [servers.serve(site(ok())) for _ in range(40)]
    late = [servers.serve(site(ok())) for _ in range(40)]
    job = paced(sites, 12, own_redis.url, loop)
    job.pages.extend(
        pages(*(f"{one.url}/no" for one in sites), *(f"{one.url}/yes" for one in late))
    )
    result = during(
        job.run,
        (2.0, lambda: own_redis.signal(signal.SIGSTOP)),
        (4.0, own_redis.kill),
        (5.0, own_redis.start),
    )
    # All requests are accounted for, and none was decided otherwise.
    assert len(result.outcomes) == len(job.pages)
    for url in result.outcomes:
        assert result.outcome(url) == ("refused" if url.endswith("/no") else "fetched")
    assert all(count <= 2 for count in fetches([*sites, *late]))
    assert all("scrapy_rep.stores.circuit_breaker" in line for line in result.our_log())
    # Each change is said once. A machine that is very busy is a Redis that does not
    # work now and then.
    levels = [line.split()[0] for line in result.our_log()]
    assert levels == (["WARNING", "INFO"] * len(levels))[: len(levels)]
    # 1,000 requests and more would say it otherwise.
    assert len(levels) <= 60


@pytest.mark.once
def test_the_example(has_redis: None) -> None:
    done = subprocess.run(
        [sys.executable, "run.py", "--workers", "3", "--origins", "12", "--pages", "4"],
        cwd=ROOT / "examples" / "fleet",
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    totals = dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines())
    assert totals == {
        "workers that ended well": "3",
        "origins": "12",
        "robots.txt fetches": "12",
        "pages fetched": "48",
        "pages fetched more than once": "0",
        "pages fetched although refused": "0",
        "requests left in the queue": "0",
    }
