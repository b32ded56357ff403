"""Which answers slow a site down, and what becomes of its requests, without a crawl."""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, signals
from twisted.internet.defer import Deferred

from scrapy_rep.throttling.throttle import Slowed
from scrapy_rep.throttling.turns import KEPT, Turns
from tests.throttling.crawls import HOST, SITE, Crawl
from tests.throttling.manual import ManualLoop


class Backing(Crawl):
    """A crawl with REP_BACKOFF; at most 60 s."""

    def __init__(
        self,
        loop: ManualLoop | None = None,
        sites: OrderedDict[str, Turns] | None = None,
        **settings: Any,
    ) -> None:
        self.sites: OrderedDict[str, Turns] = OrderedDict() if sites is None else sites
        super().__init__(loop, self.sites, REP_BACKOFF=True, **settings)

    def ask(
        self,
        status: int = 200,
        retry_after: str | None = None,
        path: str = "page",
        after: float = 1.0,
        **options: Any,
    ) -> Request:
        """A request that is sent and answered, *after* so many seconds."""
        request = self.send(path, **options)
        self.loop.advance(after)
        self.answered(request, status, retry_after)
        return request

    def send(self, path: str = "page", **options: Any) -> Request:
        request = Request(f"{SITE}/{path}", **options)
        self.signal(signals.request_reached_downloader, request=request, spider=None)
        return request

    def answered(self, request: Request, status: int = 200, retry_after: str | None = None) -> None:
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        response = self.answer(request, status, headers)
        self.signal(signals.response_downloaded, request=request, response=response, spider=None)
        self.signal(signals.request_left_downloader, request=request, spider=None)

    @property
    def delay(self) -> float:
        return self.throttle.delay(HOST)

    def shared(self) -> float:
        """The delay that all crawls know of."""
        turns = self.sites.get(HOST)
        return turns.slow_at(self.loop.now) if turns else 0.0


@pytest.fixture
def one() -> Backing:
    return Backing()


def test_an_answer_slows_its_site_for_all_crawls(
    one: Backing, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "scrapy_rep.throttling")
    one.ask(429, "7")
    assert (one.delay, one.shared(), one.stat("slower_count")) == (7, 7, 1)
    (line,) = caplog.messages
    assert line == (
        f"{HOST} asks for 7 s between two requests by answering 429 with Retry-After: 7"
    )
    caplog.clear()
    one.ask(503, after=20)
    assert (one.delay, one.shared(), one.stat("slower_count")) == (14, 14, 2)
    assert caplog.messages == [f"{HOST} asks for 14 s between two requests by answering 503"]


def test_a_slow_site_gets_a_line_when_it_holds_a_request(
    one: Backing, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "scrapy_rep.throttling")
    one.ask(429, "7")
    for _ in range(2):
        one.admit(one.policy(""))
    one.loop.advance(1)
    assert caplog.messages == [
        f"{HOST} asks for 7 s between two requests by answering 429 with Retry-After: 7. "
        "Requests held: 2, for 14 s"
    ]


def test_the_setting_bounds_the_delay() -> None:
    one = Backing(REP_BACKOFF_MAX=5)
    one.ask(429, "3600")
    assert (one.delay, one.shared()) == (5, 5)


def test_off_nothing_is_slow() -> None:
    one = Crawl()
    request = Request(f"{SITE}/page")
    response = one.answer(request, 429, {"Retry-After": "7"})
    one.signal(signals.response_downloaded, request=request, response=response, spider=None)
    assert one.throttle.delay(HOST) == 0


def test_fine_answers_make_it_faster_again(one: Backing) -> None:
    one.ask(429, "4")
    for delay in (2, 1, 0, 0):
        one.ask(200, after=100)
        assert (one.delay, one.shared()) == (delay, delay)
    assert one.pacing.asked == {}
    assert one.stat("slower_count") == 1
    # And nothing is remembered of it.
    assert vars(one.slow_sites)["_known"] == {}


def test_fine_answers_of_other_sites_change_nothing(one: Backing) -> None:
    one.ask(429, "4")
    before = list(one.sites)
    request = Request("https://fine.example/")
    response = one.answer(request)
    one.signal(signals.response_downloaded, request=request, response=response, spider=None)
    assert one.delay == 4
    assert list(one.sites) == before


def test_the_answer_to_a_robotstxt_request_says_nothing(one: Backing) -> None:
    one.ask(429, "4", meta={"is_fetch": True})
    assert (one.delay, one.stat("slower_count")) == (0, None)


def test_answers_to_requests_from_before_say_nothing_new(one: Backing) -> None:
    early = [one.send() for _ in range(3)]
    one.loop.advance(1)
    one.answered(early[0], 503)
    one.loop.advance(1)
    one.answered(early[1], 503)
    one.answered(early[2], 200)
    assert one.delay == 1
    # But that it is slow still, all are told.
    assert one.sites[HOST].slow_since == one.loop.now
    assert one.stat("slower_count") == 2


def test_the_delay_of_the_robotstxt_is_what_is_doubled(one: Backing) -> None:
    one.admit(one.policy("Crawl-delay: 3"))
    one.ask(503)
    assert one.delay == 6
    assert one.pacing.asked == {HOST: {SITE: 3.0, "answers": 6.0}}
    # Back to what it asks for, not further.
    one.ask(200, after=100)
    assert one.pacing.asked == {HOST: {SITE: 3.0}}


def test_the_date_of_the_answer_counts(one: Backing) -> None:
    request = one.send()
    headers = {
        "Retry-After": "Sun, 06 Nov 1994 08:50:07 GMT",
        "Date": "Sun, 06 Nov 1994 08:49:37 GMT",
    }
    response = one.answer(request, 503, headers)
    one.signal(signals.response_downloaded, request=request, response=response, spider=None)
    assert one.delay == 30


# -- requests that wait in the download slot -------------------------------------------------


def test_requests_in_the_queue_of_the_download_slot_go_back(one: Backing) -> None:
    requests = {
        "page": Request(f"{SITE}/2"),
        "other": Request("https://other.example/", meta={"download_slot": HOST}),
        "free": Request(f"{SITE}/3", meta={"dont_obey_robotstxt": True}),
    }
    results: dict[str, Deferred[Any]] = {name: Deferred() for name in requests}
    queue = deque((requests[name], results[name]) for name in requests)
    one.slots[HOST] = SimpleNamespace(queue=queue)
    for request in requests.values():
        one.signal(signals.request_reached_downloader, request=request, spider=None)
    one.ask(200, meta={"download_slot": HOST})
    assert len(queue) == 3
    one.ask(429, "7", meta={"download_slot": HOST})
    assert [request for request, _ in queue] == [requests["other"], requests["free"]]
    # The downloader calls back on the next turn, as always.
    assert not results["page"].called
    one.loop.turn()
    given_back = results["page"].result
    assert isinstance(given_back, Request)
    assert given_back.meta == {"is_back": True}
    # The throttle waits for those that are left, not for that one.
    assert set(one.throttle.sent) == {requests["other"], requests["free"]}
    queue.appendleft((requests["page"], Deferred()))
    # Only where it gets slower.
    one.ask(200, after=100, meta={"download_slot": HOST})
    assert len(queue) == 3


# -- what other crawls hear --------------------------------------------------------------------


@pytest.fixture
def other(one: Backing) -> Backing:
    """Another crawl of this process, which looks what *one* hears."""
    other = Backing(one.loop, one.sites)
    for crawl in (one, other):
        crawl.signal(signals.spider_opened, spider=None)
    return other


def test_another_crawl_hears_it_soon(
    one: Backing, other: Backing, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "scrapy_rep.throttling")
    one.ask(429, "40")
    assert other.delay == 0
    one.loop.advance(0.5)
    assert other.delay == 40
    assert caplog.messages[1:] == [
        f"{HOST} asks for 40 s between two requests by what another crawl heard"
    ]
    assert other.stat("slower_count") is None
    # It adopts that once, and knows it as well as its own.
    one.loop.advance(10)
    assert len(caplog.messages) == 2
    other.ask(200, after=10)
    assert (other.delay, one.delay) == (20, 40)
    one.loop.advance(0.5)
    assert one.delay == 20


def test_what_nobody_has_heard_again_is_over(one: Backing, other: Backing) -> None:
    one.ask(429, "2")
    one.loop.advance(2 + KEPT - 1)
    assert (one.delay, other.delay) == (2, 2)
    one.loop.advance(1)
    assert (one.delay, other.delay) == (0, 0)


def test_an_answer_of_another_crawl_counts_from_when_it_is_heard(
    one: Backing, other: Backing
) -> None:
    before = other.send()
    one.ask(429, "2", after=0)
    one.loop.advance(0.5)
    other.answered(before, 200)
    assert other.delay == 2


def test_what_is_older_than_our_own_answer_is_not_adopted(one: Backing) -> None:
    one.signal(signals.spider_opened, spider=None)
    answers: list[Slowed] = []
    backend: Any = one.throttle.backend
    backend.slowed = answers.append
    one.loop.advance(0.5)
    one.ask(429, "7", after=0)
    # Asked for before, and answered now.
    answers[-1]({})
    assert one.delay == 7
    one.loop.advance(0.5)
    answers[-1]({HOST: 9.0})
    assert one.delay == 9


def test_the_end_of_a_crawl_ends_the_looks(one: Backing) -> None:
    one.signal(signals.spider_opened, spider=None)
    one.loop.advance(3)
    assert len(one.loop.pending) == 1
    one.signal(signals.spider_closed, spider=None, reason="finished")
    assert not one.loop.pending
    # One that has not begun may end, too.
    Backing().signal(signals.spider_closed, spider=None, reason="shutdown")
