"""Fetches without a crawl: what their requests have, and how they end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_twisted
from scrapy import Request, Spider, signals
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred, fail

from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.holding.concurrency import ConcurrencyLimit
from scrapy_rep.observers.observer import Observers
from scrapy_rep.observers.policy_log import PolicyLog
from scrapy_rep.policies.download import Download, download_of
from scrapy_rep.policies.fetcher import RobotsTxtFetcher
from scrapy_rep.rep.caching.access import Failure, FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, StoredResponse
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import pause
from tests.policy_examples import NOON

URL = "https://example.com/robots.txt"
OTHER = "https://www.example.com/robots.txt"
ORIGIN = Origin.of(URL)
FILE = Response(URL, 200, body=b"file")
MOVED = Response(URL, 301, headers={"Location": OTHER})
AGAIN = Response(OTHER, 302, headers={"Location": URL})


class Limit(ConcurrencyLimit):
    """The crawl stops when the test says."""

    def __init__(self) -> None:
        self.on_stop: list[Callable[[], None]] = []

    is_closing = False


class Crawl:
    """A fetcher of a crawl whose engine returns *answers*, or raises them."""

    def __init__(self, *answers: Response | Exception | Deferred[Response], **settings: Any):
        self.answers = list(answers)
        self.requests: list[Request] = []
        self.crawler = get_crawler(Spider, settings)
        engine = SimpleNamespace(download_async=self._download_async)
        self.crawler.engine = engine  # type: ignore[assignment]
        self.limit = Limit()
        read = RepSettings.read(self.crawler.settings)
        log = PolicyLog(self.crawler, read, lambda: NOON)
        observers = Observers(self.crawler)
        self.fetcher = RobotsTxtFetcher(self.crawler, read, self.limit, log, observers)

    async def _download_async(self, request: Request) -> Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return await maybe_deferred_to_future(answer) if isinstance(answer, Deferred) else answer

    async def fetch(
        self, asking: Request | None = None, known: CacheEntry | None = None
    ) -> FetchResult:
        asking = asking or Request("https://example.com/page")
        return await deferred_from_coro(self.fetcher.fetch(ORIGIN, asking, known))

    @property
    def stats(self) -> dict[str, Any]:
        assert self.crawler.stats is not None
        return {
            key.removeprefix("robotstxt/"): value
            for key, value in self.crawler.stats.get_stats().items()
        }


# -- how they end -------------------------------------------------------------------


@pytest_twisted.ensureDeferred
async def test_a_file_after_a_redirect_is_counted() -> None:
    crawl = Crawl(MOVED, FILE)
    result = await crawl.fetch()
    assert (result.url, result.body, result.redirects) == (OTHER, b"file", 1)
    assert [request.url for request in crawl.requests] == [URL, OTHER]
    counted = {"redirect_count": 1, "response_count": 1, "response_status_count/200": 1}
    assert crawl.stats == counted


@pytest_twisted.ensureDeferred
async def test_redirects_without_end_are_counted_and_no_response() -> None:
    crawl = Crawl(MOVED, AGAIN)
    result = await crawl.fetch()
    assert result.failure is Failure.TOO_MANY_REDIRECTS
    assert crawl.stats == {"redirect_count": 2}


@pytest_twisted.ensureDeferred
async def test_a_body_that_is_lost_is_no_answer() -> None:
    crawl = Crawl(Response(URL, flags=["dataloss"]))
    result = await crawl.fetch()
    assert result.failure is Failure.NO_ANSWER
    assert result.detail == "the connection closed before the end of the body"
    assert crawl.stats == {}


@pytest_twisted.ensureDeferred
async def test_exceptions_are_counted_but_for_requests_that_are_ignored() -> None:
    crawl = Crawl(OSError("no \x1b route"), IgnoreRequest("not wanted"))
    results = [await crawl.fetch() for _ in range(2)]
    assert [each.failure for each in results] == [Failure.NO_ANSWER] * 2
    # This file is neither Scrapy's nor ours, so each has a place.
    assert [each.detail.partition(" ")[0] for each in results] == ["OSError", "IgnoreRequest"]
    assert results[0].detail.endswith(r"no \x1b route")
    assert crawl.stats == {"exception_count/<class 'OSError'>": 1}


@pytest_twisted.ensureDeferred
async def test_what_code_of_a_project_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "scrapy_rep.observers.policy_log")
    await Crawl(OSError("no route")).fetch()
    assert "raised an exception" in caplog.text
    caplog.clear()
    crawl = Crawl()

    def refused(request: Request) -> Awaitable[Response]:
        return maybe_deferred_to_future(fail(OSError("refused")))

    # As from the network: only code of Scrapy, Twisted and Python is involved.
    crawl.crawler.engine = SimpleNamespace(download_async=refused)  # type: ignore[assignment]
    assert (await crawl.fetch()).detail == "OSError: refused"
    assert caplog.text == ""


@pytest_twisted.ensureDeferred
async def test_one_timeout_is_for_all_hops(monkeypatch: pytest.MonkeyPatch) -> None:
    times = count(step=4)
    with_clock = partial(Download, clock=lambda: next(times))
    monkeypatch.setattr("scrapy_rep.policies.fetcher.Download", with_clock)
    crawl = Crawl(MOVED, FILE, REP_FETCH_TIMEOUT=15)
    await crawl.fetch()
    first, second = [request.meta["download_timeout"] for request in crawl.requests]
    assert first == 16
    assert second < 15


# -- a stop -------------------------------------------------------------------------


@pytest_twisted.ensureDeferred
async def test_no_fetch_starts_when_the_crawl_is_about_to_stop() -> None:
    crawl = Crawl(FILE)
    crawl.limit.is_closing = True
    with pytest.raises(CrawlStopping):
        await crawl.fetch()
    assert crawl.requests == []


@pytest_twisted.ensureDeferred
async def test_a_stop_ends_the_fetches_that_are_under_way() -> None:
    answering: Deferred[Response] = Deferred()
    crawl = Crawl(answering)
    came: list[Any] = []
    fetching = deferred_from_coro(crawl.fetcher.fetch(ORIGIN, Request(URL)))
    fetching.addErrback(lambda failure: came.append(failure.value))
    await deferred_from_coro(_a_moment())
    assert crawl.requests
    for callback in crawl.limit.on_stop:
        callback()
    await deferred_from_coro(_a_moment())
    assert [type(each) for each in came] == [CrawlStopping]
    # It does not go on in the background, nor is it remembered.
    assert answering.called
    assert crawl.fetcher._downloads == {}  # noqa: SLF001


@pytest_twisted.ensureDeferred
async def test_a_stop_ends_a_fetch_between_two_hops() -> None:
    crawl = Crawl(MOVED, FILE)
    # As when the crawl is about to stop as soon as the first answer is there.
    crawl.fetcher.observers.on_answer = lambda *_: setattr(  # type: ignore[method-assign]
        crawl.limit, "is_closing", True
    )
    with pytest.raises(CrawlStopping):
        await crawl.fetch()
    assert [request.url for request in crawl.requests] == [URL]


async def _a_moment() -> None:
    for _ in range(20):
        await pause(0)


# -- what their requests have ---------------------------------------------------------


@pytest_twisted.ensureDeferred
async def test_no_setting_changes_what_requests_are() -> None:
    fixed = {
        "dont_obey_robotstxt": True,
        "allow_offsite": True,
        "dont_redirect": True,
        "dont_retry": True,
        "dont_merge_cookies": True,
        "dont_cache": True,
        "download_fail_on_dataloss": False,
        "download_maxsize": 0,
        "download_warnsize": 0,
    }
    crawl = Crawl(FILE, REP_FETCH_META_KEYS=[*fixed, "proxy", "cookiejar"])
    meta = {**dict.fromkeys(fixed, 7), "proxy": "http://p", "download_slot": "a", "cookiejar": 1}
    await crawl.fetch(Request(URL, meta=meta))
    (request,) = crawl.requests
    assert request.callback is NO_CALLBACK
    assert request.priority == 1000
    assert download_of(request) is not None
    assert request.meta.items() >= fixed.items()
    assert (request.meta["proxy"], request.meta["cookiejar"]) == ("http://p", 1)
    assert "download_slot" not in request.meta
    assert request.headers["Accept-Encoding"] == b"identity"


@pytest.mark.parametrize("domain", [None, "example.com"])
@pytest_twisted.ensureDeferred
async def test_credentials_go_to_the_origin_alone_or_its_domain(domain: str | None) -> None:
    keys = {"http_user", "http_pass", "ftp_user", "ftp_password"}
    crawl = Crawl(MOVED, FILE, REP_FETCH_META_KEYS=[*keys, "http_auth_domain"])
    meta = {**dict.fromkeys(keys, "secret"), "http_auth_domain": domain}
    await crawl.fetch(Request(URL, meta=meta))
    first, second = crawl.requests
    assert keys <= first.meta.keys()
    assert keys & second.meta.keys() == (keys if domain else set())


@pytest_twisted.ensureDeferred
async def test_only_the_url_of_the_file_is_asked_for_conditionally() -> None:
    headers = (("etag", '"\xe9"'),)
    stored = StoredResponse(FetchResult(OTHER, 200, b"file", headers=headers), NOON, NOON)
    crawl = Crawl(MOVED, FILE)
    await crawl.fetch(known=CacheEntry(ORIGIN, stored))
    sent = [request.headers.get("If-None-Match") for request in crawl.requests]
    assert sent == [None, b'"\xe9"']


@pytest_twisted.ensureDeferred
async def test_the_user_agent_is_that_of_the_page() -> None:
    crawl = Crawl(FILE)
    result = await crawl.fetch(Request(URL, headers={"User-Agent": "A/1"}))
    assert crawl.requests[0].headers["User-Agent"] == b"A/1"
    assert result.user_agent == "A/1"


@pytest_twisted.ensureDeferred
async def test_headers_of_the_settings_come_last() -> None:
    settings = {"REP_FETCH_HEADERS": {"From": "me@example.com", "User-Agent": "B/2"}}
    crawl = Crawl(FILE, **settings)
    await crawl.fetch(Request(URL, headers={"User-Agent": "A/1"}))
    headers = crawl.requests[0].headers
    assert (headers["From"], headers["User-Agent"]) == (b"me@example.com", b"B/2")


@pytest.mark.parametrize("keys", [["proxy"], []])
@pytest_twisted.ensureDeferred
async def test_credentials_of_a_proxy_go_with_the_proxy(keys: list[str]) -> None:
    crawl = Crawl(FILE, REP_FETCH_META_KEYS=keys)
    meta = {"proxy": "http://p", "_auth_proxy": "http://p"}
    await crawl.fetch(Request(URL, meta=meta, headers={"Proxy-Authorization": "Basic x"}))
    (request,) = crawl.requests
    assert request.headers.get("Proxy-Authorization") == (b"Basic x" if keys else None)
    assert ("_auth_proxy" in request.meta) is bool(keys)


# -- how many -------------------------------------------------------------------------


@pytest_twisted.ensureDeferred
async def test_fetches_take_half_of_the_connections_of_a_handler_with_a_limit() -> None:
    answering: list[Deferred[Response]] = [Deferred() for _ in range(4)]
    crawl = Crawl(*answering, CONCURRENT_REQUESTS=10, REP_MAX_FETCHES=10)
    handler = SimpleNamespace(_pool_size_total=4)
    handlers = SimpleNamespace(_get_handler=lambda scheme: handler)
    engine: Any = crawl.crawler.engine
    engine.downloader = SimpleNamespace(handlers=handlers)
    crawl.crawler.signals.send_catch_log(signals.spider_opened, spider=None)
    fetches = [deferred_from_coro(crawl.fetcher.fetch(ORIGIN, Request(URL))) for _ in range(4)]
    await deferred_from_coro(_a_moment())
    assert len(crawl.requests) == 2
    for each in answering:
        each.callback(FILE)
        await deferred_from_coro(_a_moment())
    assert len(crawl.requests) == 4
    assert all(fetch.called for fetch in fetches)
