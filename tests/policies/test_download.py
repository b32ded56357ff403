"""A download without a crawl: its time, and its end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_twisted
from scrapy import Request
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.test import get_crawler

from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.holding.concurrency import ConcurrencyLimit
from scrapy_rep.policies.download import Download
from scrapy_rep.policies.errors import FetchFailed
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.settings import RepSettings

URL = "https://example.com/robots.txt"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Limit(ConcurrencyLimit):
    """Notes what is released; there is no downloader."""

    def __init__(self) -> None:
        self.notes: list[bool] = []

    @contextmanager
    def released(self) -> Iterator[None]:
        self.notes.append(True)
        yield
        self.notes.append(False)


def download(clock: Clock, limit: ConcurrencyLimit | None = None) -> Download:
    crawler = get_crawler()
    settings = RepSettings.read(Settings({"REP_FETCH_TIMEOUT": 15}))
    return Download(crawler, limit or Limit(), settings, Origin.of(URL), clock)


async def run(one: Download, on_request: Callable[[Request], None]) -> Request:
    """Run *one* in an engine that calls *on_request* and has the answer."""
    response = Response(URL)

    async def download_async(request: Request) -> Response:
        on_request(request)
        return response

    one.crawler.engine = SimpleNamespace(download_async=download_async)  # type: ignore[assignment]
    request = Request(URL)
    assert await deferred_from_coro(one.run(request)) is response
    return request


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
async def test_time_counts_again_after_a_turn_that_did_not_come() -> None:
    clock = Clock()
    one = download(clock)
    with pytest.raises(CrawlStopping), one.clock_stopped():
        raise CrawlStopping
    clock.now += 3
    assert one.seconds_left == 12
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


# -- what happens to its requests ---------------------------------------------------


@pytest_twisted.ensureDeferred
async def test_no_more_bytes_than_may_be_read() -> None:
    one = download(Clock())
    one.on_bytes(512_000)
    assert not one.is_cut
    with pytest.raises(StopDownload) as stopped:
        one.on_bytes(1)
    # What there is counts.
    assert not stopped.value.fail
    assert one.is_cut


@pytest_twisted.ensureDeferred
async def test_a_repeated_request_begins_anew() -> None:
    one = download(Clock())
    with pytest.raises(StopDownload):
        one.on_bytes(512_001)
    response = Response(URL, headers={"Content-Encoding": ["gzip", "br"]})
    one.on_response(response)
    assert one.encoding == b"gzip,br"
    assert response.headers == {}
    one.on_queued(Request(URL))
    assert not one.is_cut
    assert one.encoding == b""
    one.on_bytes(512_000)
    one.stop_clock()


@pytest_twisted.ensureDeferred
async def test_what_a_middleware_answers_is_not_encoded_as_the_answer_before() -> None:
    one = download(Clock())
    one.on_response(Response(URL, 301, headers={"Content-Encoding": "gzip"}))
    with pytest.raises(StopDownload):
        one.on_bytes(512_001)
    await run(one, lambda request: None)
    assert (one.encoding, one.is_cut) == (b"", False)


@pytest_twisted.ensureDeferred
async def test_the_rest_of_what_was_given_up_is_not_received() -> None:
    one = download(Clock())
    one.give_up(CrawlStopping())
    with pytest.raises(StopDownload) as stopped:
        one.on_bytes(1)
    assert stopped.value.fail


@pytest.mark.parametrize(("url", "sent"), [(URL, b"secret"), (URL.replace("https", "http"), None)])
@pytest_twisted.ensureDeferred
async def test_credentials_do_not_go_from_https_to_http(url: str, sent: bytes | None) -> None:
    one = download(Clock())
    request = Request(url, headers={"Authorization": "secret"})
    one.on_queued(request)
    assert request.headers.get("Authorization") == sent
    one.stop_clock()


@pytest_twisted.ensureDeferred
async def test_time_counts_from_when_a_request_leaves_the_queue_or_the_downloader() -> None:
    clock = Clock()
    one = download(clock)
    one.start_clock()
    one.on_queued(Request(URL))
    clock.now += 10
    assert one.seconds_left == 15
    one.on_left_downloader()
    clock.now += 1
    assert one.seconds_left == 14
    one.stop_clock()


@pytest_twisted.ensureDeferred
async def test_concurrency_is_released_while_the_downloader_has_a_request() -> None:
    limit = Limit()
    one = download(Clock(), limit)
    one.on_queued(Request(URL))
    assert limit.notes == [True]
    one.on_left_downloader()
    assert limit.notes == [True, False]
    one.on_queued(Request(URL))
    one.give_up(CrawlStopping())
    assert limit.notes == [True, False] * 2
    one.stop_clock()


@pytest_twisted.ensureDeferred
async def test_nothing_is_released_and_no_time_counts_after_the_answer() -> None:
    clock, limit = Clock(), Limit()
    one = download(clock, limit)
    request = await run(one, one.on_queued)
    assert limit.notes == [True, False]
    clock.now += 10
    assert one.seconds_left == 15
    # The handler gives up a second later.
    assert request.meta["download_timeout"] == 16
    await run(one, lambda request: None)
    clock.now += 10
    assert one.seconds_left == 15


@pytest.mark.parametrize("method", ["admit", "on_queued"])
@pytest_twisted.ensureDeferred
async def test_each_hop_may_have_five_requests(method: str) -> None:
    one = download(Clock())

    def call(times: int) -> None:
        for _ in range(times):
            one.admit() if method == "admit" else one.on_queued(Request(URL))

    for _ in range(2):
        await run(one, lambda request: call(5))
    with pytest.raises(FetchFailed, match="repeats the request more than 4 times"):
        await run(one, lambda request: call(6))


@pytest_twisted.ensureDeferred
async def test_a_request_is_moved_to_the_front_until_it_leaves_the_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[float, Callable[[], object]]] = []

    def call_later(delay: float, call: Callable[..., object], *arguments: object) -> Any:
        calls.append((delay, lambda: call(*arguments)))
        return SimpleNamespace(cancel=calls.clear)

    monkeypatch.setattr("scrapy_rep.policies.download.call_later", call_later)
    clock = Clock()
    one = download(clock)
    page, mine = (Request(URL, meta={"download_slot": "a"}) for _ in range(2))
    queue = deque([(page, None), (mine, None)])
    downloader = SimpleNamespace(slots={"a": SimpleNamespace(queue=queue)})
    one.crawler.engine = SimpleNamespace(downloader=downloader)  # type: ignore[assignment]
    one.on_queued(mine)
    for delay in (0, 0.25):
        ((then, look),) = calls
        assert then == delay
        calls.clear()
        queue.rotate()
        look()
        clock.now += 10
        assert queue[0][0] is mine
        assert one.seconds_left == 15
    queue.popleft()
    calls.pop()[1]()
    clock.now += 1
    assert one.seconds_left == 14
    # What is left is the time limit.
    assert [delay for delay, _ in calls] == [15]
    one.stop_clock()
    assert calls == []
