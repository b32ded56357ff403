"""A download without a crawl: its time, its requests, and its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_twisted
from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred

from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.holding.concurrency import ConcurrencyLimit
from scrapy_rep.observers.observer import Exchange
from scrapy_rep.policies.download import Download, connect_downloads
from scrapy_rep.policies.errors import FetchFailed
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import pause

URL = "https://example.com/robots.txt"


class Clock:
    """The time, and the calls that are to be made later, made when the test says."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.calls: dict[object, tuple[float, Callable[[], Any]]] = {}

    def __call__(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[..., Any], *arguments: object) -> Any:
        key = object()
        self.calls[key] = (delay, partial(call, *arguments))
        return SimpleNamespace(cancel=lambda: self.calls.pop(key, None))

    @property
    def delays(self) -> list[float]:
        return [delay for delay, _ in self.calls.values()]

    def call(self) -> float:
        """Make the only call, and return its delay."""
        ((delay, call),) = self.calls.values()
        self.calls.clear()
        call()
        return delay


class Limit(ConcurrencyLimit):
    """Notes what is released; there is no downloader."""

    def __init__(self) -> None:
        self.notes: list[bool] = []

    @contextmanager
    def released(self) -> Iterator[None]:
        self.notes.append(True)
        yield
        self.notes.append(False)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("scrapy_rep.policies.download.call_later", clock.call_later)
    return clock


@pytest.fixture
def limit() -> Limit:
    return Limit()


@pytest.fixture
def one(clock: Clock, limit: Limit) -> Download:
    settings = RepSettings.read(Settings({"REP_FETCH_TIMEOUT": 15}))
    return Download(get_crawler(), limit, settings, Origin.of(URL), 11.0, clock)


def start(
    one: Download, on_request: Callable[[Request], object], answer: Deferred[Response]
) -> Deferred[Exchange]:
    """Run *one* in an engine that calls *on_request* and has the *answer*."""

    async def download_async(request: Request) -> Response:
        on_request(request)
        return await maybe_deferred_to_future(answer)

    one.crawler.engine = SimpleNamespace(download_async=download_async)  # type: ignore[assignment]
    return deferred_from_coro(one.run(Request(URL)))


async def run(
    one: Download, on_request: Callable[[Request], object] = lambda request: None
) -> Exchange:
    """Run *one* in an engine that calls *on_request* and answers."""
    response, answer = Response(URL), Deferred[Response]()
    answer.callback(response)
    exchange = await start(one, on_request, answer)
    assert exchange.response is response
    return exchange


async def settled() -> None:
    """Let everything happen that can."""
    for _ in range(20):
        await deferred_from_coro(pause(0))


# -- time ---------------------------------------------------------------------------


@pytest_twisted.ensureDeferred
async def test_time_counts_while_a_request_is_under_way(one: Download, clock: Clock) -> None:
    def take(request: Request) -> None:
        # The handler gives up a second later.
        assert request.meta["download_timeout"] == 12
        assert clock.delays == [11]
        clock.now += 4

    clock.now += 100
    await run(one, take)
    assert one.seconds == 7
    assert clock.delays == []
    clock.now += 100
    one.on_left_downloader()
    assert one.seconds == 7
    assert clock.delays == []


@pytest_twisted.ensureDeferred
async def test_a_download_ends_when_its_time_is_over(one: Download, clock: Clock) -> None:
    answer: Deferred[Response] = Deferred()
    running = start(one, lambda request: None, answer)
    await settled()
    assert clock.call() == 11
    with pytest.raises(FetchFailed, match="no answer within 15 s"):
        await running
    await settled()
    # It does not go on in the background.
    assert answer.called


@pytest.mark.parametrize("comes", [True, False])
@pytest_twisted.ensureDeferred
async def test_waiting_for_a_turn_takes_no_time_and_no_concurrency(
    one: Download, clock: Clock, limit: Limit, comes: bool
) -> None:
    turn: Deferred[None] = Deferred()
    one.on_left_downloader()
    clock.now += 2
    waiting = deferred_from_coro(one.wait_for_turn(turn))
    await settled()
    clock.now += 1000
    assert clock.delays == []
    assert limit.notes == [True]
    if comes:
        turn.callback(None)
        await waiting
        assert limit.notes == [True, False]
    else:
        turn.errback(CrawlStopping())
        with pytest.raises(CrawlStopping):
            await waiting
    assert clock.delays == [9]
    clock.now += 3
    one.on_left_downloader()
    assert clock.delays == [6]


@pytest_twisted.ensureDeferred
async def test_no_time_counts_when_it_is_over(one: Download, clock: Clock) -> None:
    one.give_up(CrawlStopping())
    one.on_left_downloader()
    assert clock.delays == []
    with pytest.raises(IgnoreRequest):
        one.admit()


# -- what happens to its requests ---------------------------------------------------


@pytest_twisted.ensureDeferred
async def test_no_more_bytes_than_may_be_read(one: Download) -> None:
    response = Response(URL, headers={"Content-Encoding": ["gzip", "br"]})

    def receive(request: Request) -> None:
        one.on_response(response)
        one.on_bytes(bytes(512_000))
        with pytest.raises(StopDownload) as stopped:
            one.on_bytes(b" ")
        # What there is counts.
        assert not stopped.value.fail

    exchange = await run(one, receive)
    assert (exchange.content_encoding, exchange.is_cut) == (b"gzip,br", True)
    assert response.headers == {}


@pytest_twisted.ensureDeferred
async def test_a_repeated_request_begins_anew(one: Download) -> None:
    def repeat(request: Request) -> None:
        one.on_response(Response(URL, headers={"Content-Encoding": "gzip"}))
        with pytest.raises(StopDownload):
            one.on_bytes(bytes(512_001))
        one.on_queued(request)
        one.on_bytes(bytes(512_000))

    exchange = await run(one, repeat)
    assert (exchange.content_encoding, exchange.is_cut) == (b"", False)


@pytest_twisted.ensureDeferred
async def test_the_rest_of_what_was_given_up_is_not_received(one: Download) -> None:
    one.give_up(CrawlStopping())
    with pytest.raises(StopDownload) as stopped:
        one.on_bytes(b" ")
    assert stopped.value.fail


@pytest.mark.parametrize(("url", "sent"), [(URL, b"secret"), (URL.replace("https", "http"), None)])
def test_credentials_do_not_go_from_https_to_http(
    one: Download, url: str, sent: bytes | None
) -> None:
    request = Request(url, headers={"Authorization": "secret"})
    one.on_queued(request)
    assert request.headers.get("Authorization") == sent


def test_time_counts_from_when_a_request_leaves_the_downloader(one: Download, clock: Clock) -> None:
    one.on_left_downloader()
    clock.now += 2
    one.on_queued(Request(URL))
    clock.now += 10
    one.on_left_downloader()
    assert clock.delays == [9]
    clock.now += 1
    one.on_left_downloader()
    assert clock.delays == [8]


@pytest_twisted.ensureDeferred
async def test_concurrency_is_released_while_the_downloader_has_a_request(
    one: Download, limit: Limit
) -> None:
    one.on_queued(Request(URL))
    assert limit.notes == [True]
    one.on_left_downloader()
    assert limit.notes == [True, False]
    # It has no more than one.
    for _ in range(2):
        one.on_queued(Request(URL))
    assert limit.notes == [True, False, True, False, True]
    await run(one)
    assert limit.notes == [True, False] * 3


@pytest_twisted.ensureDeferred
async def test_a_download_that_is_given_up_reacquires_its_concurrency(
    one: Download, limit: Limit
) -> None:
    running = start(one, one.on_queued, Deferred())
    await settled()
    assert limit.notes == [True]
    one.give_up(CrawlStopping())
    with pytest.raises(CrawlStopping):
        await running
    assert limit.notes == [True, False]


@pytest.mark.parametrize("method", ["admit", "on_queued"])
@pytest_twisted.ensureDeferred
async def test_each_hop_may_have_five_requests(one: Download, limit: Limit, method: str) -> None:
    def call(times: int) -> None:
        for _ in range(times):
            one.admit() if method == "admit" else one.on_queued(Request(URL))

    call(5)
    with pytest.raises(FetchFailed, match="repeats the request more than 4 times"):
        await run(one, lambda request: call(1))
    assert limit.notes == ([True, False] * 5 if method == "on_queued" else [])


def test_a_request_is_moved_to_the_front_until_it_leaves_the_queue(
    one: Download, clock: Clock
) -> None:
    page, mine = (Request(URL, meta={"download_slot": "a"}) for _ in range(2))
    queue = deque([(page, None), (mine, None)])
    downloader = SimpleNamespace(slots={"a": SimpleNamespace(queue=queue)})
    one.crawler.engine = SimpleNamespace(downloader=downloader)  # type: ignore[assignment]
    one.on_queued(mine)
    for delay in (0, 0.25):
        queue.rotate()
        assert clock.call() == delay
        clock.now += 10
        assert queue[0][0] is mine
    queue.popleft()
    clock.call()
    # What is left is the time limit.
    assert clock.delays == [11]


def test_signals_about_its_requests_reach_a_download(one: Download, limit: Limit) -> None:
    connect_downloads(one.crawler.signals)
    send = one.crawler.signals.send_catch_log
    mine, page = Request(URL, meta={"rep_download": one}), Request(URL)
    for request in (page, mine):
        send(signals.request_reached_downloader, request=request, spider=None)
    assert limit.notes == [True]
    for request in (page, mine):
        send(signals.request_left_downloader, request=request, spider=None)
    assert limit.notes == [True, False]
    responses = [Response(URL, headers={"Content-Encoding": "br"}) for _ in range(2)]
    for request, response in zip((page, mine), responses, strict=True):
        send(signals.response_downloaded, response=response, request=request, spider=None)
    assert [response.headers.get("Content-Encoding") for response in responses] == [b"br", None]
    many = bytes(512_001)
    stop = {"spider": None, "dont_log": StopDownload}
    ((_, other),) = send(signals.bytes_received, data=many, request=page, **stop)
    ((_, stopped),) = send(signals.bytes_received, data=many, request=mine, **stop)
    assert other is None
    assert isinstance(stopped.value, StopDownload)
