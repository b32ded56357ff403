"""A download without a crawl: its time, and its end."""

from __future__ import annotations

import pytest
import pytest_twisted
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.holding.concurrency import ConcurrencyLimit
from scrapy_rep.policies.download import Download
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.settings import RepSettings

URL = "https://example.com/robots.txt"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def download(clock: Clock) -> Download:
    crawler = get_crawler()
    limit = ConcurrencyLimit.from_crawler(crawler)
    settings = RepSettings.read(Settings({"REP_FETCH_TIMEOUT": 15}))
    return Download(crawler, limit, settings, Origin.of(URL), clock)


@pytest_twisted.ensureDeferred
async def test_time_runs_down_only_while_the_clock_is_on() -> None:
    clock = Clock()
    one = download(clock)
    clock.now += 100
    assert one.seconds_left == 15
    one.start_clock()
    clock.now += 4
    assert one.seconds_left == 11
    one.stop_clock()
    clock.now += 100
    assert one.seconds_left == 11


@pytest_twisted.ensureDeferred
async def test_time_does_not_start_anew() -> None:
    clock = Clock()
    one = download(clock)
    for _ in range(5):
        one.start_clock()
        clock.now += 4
        one.start_clock()
        one.stop_clock()
        one.stop_clock()
    assert one.seconds_left == -5


@pytest_twisted.ensureDeferred
async def test_time_until_a_turn_does_not_count() -> None:
    clock = Clock()
    one = download(clock)
    one.start_clock()
    clock.now += 2
    with one.clock_stopped():
        clock.now += 1000
    clock.now += 3
    assert one.seconds_left == 10
    one.stop_clock()


@pytest_twisted.ensureDeferred
async def test_no_time_counts_when_it_is_over() -> None:
    clock = Clock()
    one = download(clock)
    one.give_up(CrawlStopping())
    one.start_clock()
    clock.now += 1
    assert one.seconds_left == 15


@pytest_twisted.ensureDeferred
async def test_what_was_given_up_between_two_hops_does_not_go_on() -> None:
    one = download(Clock())
    one.give_up(CrawlStopping())
    request = Request(URL)
    with pytest.raises(CrawlStopping):
        await one.run(request)
    assert request.meta == {}
    with pytest.raises(IgnoreRequest):
        one.admit()
