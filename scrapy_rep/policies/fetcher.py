"""One robots.txt download through the crawler's engine.

Through ``engine.download_async`` and never around it: proxies, handlers, stats
and throttling keep working. Every middleware sees the request; none may change
what it means.

Bodies are cut while they stream, redirects followed here (which counts them,
and asks nothing but http and https), compression undone within the size limit,
and the time on the wire bounded over all hops.

Fetches take no places from pages (:mod:`scrapy_rep.holding.concurrency`), and go before them in
the queue of their download slot.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urljoin, urlsplit

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure as TwistedFailure
from w3lib.url import safe_url_string

from scrapy_rep.engine import Engine
from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.observers.stats import count
from scrapy_rep.policies.decompress import BrokenBody, decompress
from scrapy_rep.policies.fetch_limiter import FetchLimiter
from scrapy_rep.rep.access import Failure, FetchResult, Headers
from scrapy_rep.rep.cache_entry import CacheEntry
from scrapy_rep.rep.freshness import KEPT_HEADERS, of_lifetime, validators
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.urls import InvalidURL, Origin

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_rep.holding.concurrency import Places
    from scrapy_rep.settings import RepSettings

# Where the signals of the engine find the download that a request is for.
_DOWNLOAD = "rep_download"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Meta keys that say who we are to a server; nothing for another origin to see.
_CREDENTIALS = ("http_user", "http_pass", "ftp_user", "ftp_password")
# Seconds between looks at whether a request has left its slot's queue.
_QUEUE_POLL = 0.25
# Seconds after which a handler gives up what nobody waits for any more.
_HANDLER_GRACE = 1.0


class RobotsTxtFetcher:
    """Downloads robots.txt files for one crawl."""

    def __init__(self, crawler: Crawler, settings: RepSettings, places: Places) -> None:
        self._crawler = crawler
        self._settings = settings
        self._places = places
        self._gate = FetchLimiter(settings.concurrent_requests, settings.max_fetches)
        self._downloads: set[_Download] = set()
        places.on_stop(self._give_up)
        crawler.signals.connect(self._spider_opened, signals.spider_opened)
        crawler.signals.connect(_request_reached_downloader, signals.request_reached_downloader)
        crawler.signals.connect(_request_left_downloader, signals.request_left_downloader)
        crawler.signals.connect(_bytes_received, signals.bytes_received)
        crawler.signals.connect(_response_downloaded, signals.response_downloaded)

    async def fetch(
        self, origin: Origin, asking: Request, known: CacheEntry | None = None
    ) -> tuple[FetchResult, bool]:
        """The robots.txt of *origin*, on behalf of the request *asking*.

        And whether it was asked for only if it is no longer what is *known*.
        Whatever goes wrong is a result, too. Raises only :exc:`CrawlStopping`.
        """
        try:
            async with self._gate.passage():
                if self._places.is_closing:
                    raise CrawlStopping
                return await self._follow(origin, asking, known)
        except CrawlStopping:
            raise
        except _Expired:
            detail = f"no answer within {self._settings.fetch_timeout:g} s"
        except Exception as error:
            detail = printable(f"{type(error).__name__}: {_said(error)}")
            if not isinstance(error, IgnoreRequest):
                count(self._crawler, f"robotstxt/exception_count/{type(error)}")
        return FetchResult(origin.robots_url, failure=Failure.NO_ANSWER, detail=detail), False

    def _spider_opened(self) -> None:
        self._gate.in_all = Engine(self._crawler).widen_pools(self._settings.max_fetches)

    def _give_up(self) -> None:
        for download in list(self._downloads):
            download.give_up(CrawlStopping())

    async def _follow(
        self, origin: Origin, asking: Request, known: CacheEntry | None
    ) -> tuple[FetchResult, bool]:
        """Ask, and ask where a redirect leads, and so on (RFC 9309 §2.3.1.2)."""
        hops = [origin.robots_url]
        via: list[Headers] = []
        budget = self._settings.fetch_timeout
        while True:
            download = _Download(self._crawler, self._places, self._settings.max_size, budget)
            # Redirects on the way know no such file.
            conditions = _conditions(known, hops[-1])
            request = self._request(hops[-1], origin, asking, conditions)
            self._downloads.add(download)
            try:
                response = await download.run(request)
            finally:
                self._downloads.discard(download)
            budget -= download.seconds
            location = _location(response, hops[-1])
            if location is None:
                result = self._result(response, download, hops)
                return replace(result, via=tuple(via), user_agent=user_agent_of(request)), bool(
                    conditions
                )
            count(self._crawler, "robotstxt/redirect_count")
            via.append(of_lifetime(tuple(_kept_headers(response))))
            failure = self._why_not_follow(location, hops)
            hops.append(location)
            if failure is not None:
                detail = f"{len(hops) - 1} redirects, the last one to {printable(location)}"
                redirects = len(hops) - 1
                result = FetchResult(hops[-2], response.status, b"", redirects, failure, detail)
                return result, False

    def _why_not_follow(self, location: str, hops: list[str]) -> Failure | None:
        if urlsplit(location).scheme not in ("http", "https"):
            return Failure.REDIRECT_TO_OTHER_SCHEME
        if location in hops or len(hops) > self._settings.max_redirects:
            return Failure.TOO_MANY_REDIRECTS
        return None

    def _result(self, response: Response, download: _Download, hops: list[str]) -> FetchResult:
        count(self._crawler, "robotstxt/response_count")
        count(self._crawler, f"robotstxt/response_status_count/{response.status}")
        body = b""
        cut = False
        # RFC 9309 §2.3.1.3, §2.3.1.4: of other answers, the status says all;
        # that their body is broken changes nothing.
        if 200 <= response.status < 300:
            if "dataloss" in response.flags:
                raise BrokenBody("the connection ended before the body did")
            # One octet more than is read of it says that there is more.
            limit = self._settings.max_size + 1
            body = decompress(response.body, download.encodings, limit, cut=download.cut)[:limit]
            cut = download.cut or len(body) == limit
        return FetchResult(
            hops[-1],
            response.status,
            body,
            redirects=len(hops) - 1,
            detail=f"status {response.status}",
            headers=tuple(_kept_headers(response)),
            cut=cut,
        )

    def _request(
        self, url: str, origin: Origin, asking: Request, conditions: dict[str, bytes]
    ) -> Request:
        """The request for one hop.

        Built fresh each time: Scrapy writes into meta what is true of one host
        only, such as the download slot.
        """
        meta: dict[str, Any] = {
            key: asking.meta[key] for key in self._settings.fetch_meta_keys if key in asking.meta
        }
        if Origin.of(url) != origin and not meta.get("http_auth_domain"):
            for key in _CREDENTIALS:
                meta.pop(key, None)
        # Compression saves nothing on files of this size, and can be a bomb.
        headers: dict[str, Any] = {"Accept-Encoding": "identity", **conditions}
        if user_agent := asking.headers.get("User-Agent"):
            headers["User-Agent"] = user_agent
        if "_auth_proxy" in asking.meta and "proxy" in meta:
            # HttpProxyMiddleware has been at a request that is tried again,
            # and moved the proxy's credentials here.
            meta["_auth_proxy"] = asking.meta["_auth_proxy"]
            headers["Proxy-Authorization"] = asking.headers.get("Proxy-Authorization")
        meta |= {
            "dont_obey_robotstxt": True,
            # The allowed domains are about pages.
            "allow_offsite": True,
            # Followed in _follow().
            "dont_redirect": True,
            # Asked again by the policy cache, when it is time.
            "dont_retry": True,
            "dont_merge_cookies": True,
            # Scrapy's HTTP cache keeps outages, too, and by default for good.
            "dont_cache": True,
            # Noticed in _result(), where it matters.
            "download_fail_on_dataloss": False,
            # No limit here: over DOWNLOAD_MAXSIZE, the whole body is dropped.
            "download_maxsize": 0,
            "download_warnsize": 0,
        }
        return Request(url, headers=headers, meta=meta, callback=NO_CALLBACK, priority=1000)


def _conditions(known: CacheEntry | None, url: str) -> dict[str, bytes]:
    """Headers that ask for *url* only if it is no longer what is *known* of it."""
    if known is None or known.copy is None or known.copy.result.url != url:
        return {}
    # As octets: Scrapy would write what is not ASCII in UTF-8.
    return {name: value.encode("latin-1") for name, value in validators(known)}


def _kept_headers(response: Response) -> Iterator[tuple[str, str]]:
    """The headers that HTTP caching is about, a pair for each line."""
    for name in sorted(KEPT_HEADERS):
        for value in response.headers.getlist(name):
            yield name, value.decode("latin-1")


def user_agent_of(request: Request) -> str:
    """The User-Agent that *request* brings: once it was sent, the one that it was sent with."""
    return (request.headers.get("User-Agent") or b"").decode("utf-8", "replace")


def _location(response: Response, url: str) -> str | None:
    """Where *response*, to *url*, redirects to; ``None`` where it does not.

    Without userinfo and fragment. Any scheme, but if http or https, a URL that
    can be asked.
    """
    value = response.headers.get("Location")
    if response.status not in _REDIRECTS or not value:
        return None
    try:
        location = urldefrag(urljoin(url, safe_url_string(value)))[0]
        parts = urlsplit(location)
        if parts.scheme not in ("http", "https"):
            return location
        origin = Origin.of(location)
    except (InvalidURL, ValueError):
        return None
    return f"{origin}{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"


# -- one download ---------------------------------------------------------------


class _Expired(Exception):
    """The time for a fetch is over."""


class _Download:
    """One hop's download: cut at a size, given up after a time on the wire.

    Time in the queue of a download slot does not count: with a DOWNLOAD_DELAY
    of 20 s, a host would be unreachable for no fault of its own.
    """

    def __init__(self, crawler: Crawler, places: Places, limit: int, seconds: float) -> None:
        self._crawler = crawler
        self._places = places
        # From when the downloader has it until it leaves: never longer than it has a
        # place, or a page too many could be asked for in between.
        self._loan = ExitStack()
        self._limit = limit
        self._received = 0
        self._budget = seconds
        self._given_up = False
        self._started = time.monotonic()
        self._outcome: Deferred[Response] = Deferred()
        self._engine: Deferred[Response] | None = None
        self._timer: CallLaterResult | None = None
        #: The Content-Encoding that the body came with.
        self.encodings: list[str] = []
        #: Whether the body is only the start of what was sent.
        self.cut = False
        #: How long it took, once it is over.
        self.seconds = 0.0

    async def run(self, request: Request) -> Response:
        """Download *request*. Raises what the engine raises, or :exc:`_Expired`."""
        if self._budget <= 0:
            raise _Expired
        assert self._crawler.engine is not None
        request.meta[_DOWNLOAD] = self
        # Later than ours, so that one of the two decides, whatever the handler.
        request.meta["download_timeout"] = self._budget + _HANDLER_GRACE
        self._timer = call_later(self._budget, self._expire)
        self._engine = deferred_from_coro(self._crawler.engine.download_async(request))
        self._engine.addBoth(self._finish)
        try:
            return await maybe_deferred_to_future(self._outcome)
        except StopDownload:
            raise _Expired from None
        finally:
            self._loan.close()
            self._timer.cancel()
            self.seconds = time.monotonic() - self._started

    def _finish(self, result: Any) -> None:
        if not self._outcome.called:
            self._outcome.callback(result)

    def _expire(self) -> None:
        self.give_up(_Expired())

    def give_up(self, why: Exception) -> None:
        """Wait no longer, but have :meth:`run` raise *why*."""
        self._given_up = True
        self._loan.close()
        self._finish(TwistedFailure(why))  # type: ignore[no-untyped-call]
        assert self._engine is not None
        self._engine.cancel()

    def stop_clock(self) -> None:
        """Count no time until the request has reached the downloader."""
        assert self._timer is not None
        self._timer.cancel()

    def reached_downloader(self, request: Request) -> None:
        """*request* has been put into the queue of its download slot.

        More than once, where a middleware wants it to be asked again.
        """
        self._received = 0
        self.cut = False
        self.encodings = []
        self._loan.close()
        if not self._given_up:
            self._loan.enter_context(self._places.lend())
        assert self._timer is not None
        self._timer.cancel()
        self._timer = call_later(0, self._look_whether_queued, request)

    def _look_whether_queued(self, request: Request) -> None:
        engine = Engine(self._crawler)
        if engine.queue_position(request) is None:
            self._started = time.monotonic()
            self._timer = call_later(self._budget, self._expire)
            return
        # Before the pages of its host, which may wait for it, or for hours.
        engine.move_to_front(request)
        self._timer = call_later(_QUEUE_POLL, self._look_whether_queued, request)

    def left_downloader(self) -> None:
        """It is about to be over."""
        self._loan.close()

    def bytes_received(self, count: int) -> None:
        """*count* more octets of the body are there.

        Raises :exc:`~scrapy.exceptions.StopDownload` when they are enough, or
        nobody waits for them any more.
        """
        if self._given_up:
            raise StopDownload(fail=True)
        self._received += count
        if self._received > self._limit:
            self.cut = True
            raise StopDownload(fail=False)

    def downloaded(self, response: Response) -> None:
        """*response* is there, and no middleware has seen it yet.

        HttpCompressionMiddleware undoes what this header says without a limit
        that would leave us a body; without the header, it leaves it to us.
        """
        values = response.headers.getlist("Content-Encoding")
        response.headers.pop("Content-Encoding", None)
        for value in values:
            self.encodings += value.decode("latin-1").split(",")


def _said(error: Exception) -> str:
    """What *error* says. Of several at once, Twisted would show how Python writes them."""
    failures = getattr(error.__cause__ or error, "reasons", ())
    said = "; ".join(f"{type(each.value).__name__}: {each.value}" for each in failures)
    return said or str(error)


def is_fetch(request: Request) -> bool:
    """Whether *request* is one of ours, for a robots.txt."""
    return _DOWNLOAD in request.meta


def stop_clock(request: Request) -> None:
    """Let *request*, one of ours, wait before it goes on: no time counts until it has."""
    if download := _download_of(request):
        download.stop_clock()


def _download_of(request: Request) -> _Download | None:
    return request.meta.get(_DOWNLOAD)


def _request_reached_downloader(request: Request) -> None:
    if download := _download_of(request):
        download.reached_downloader(request)


def _request_left_downloader(request: Request) -> None:
    if download := _download_of(request):
        download.left_downloader()


def _bytes_received(data: bytes, request: Request) -> None:
    if download := _download_of(request):
        download.bytes_received(len(data))


def _response_downloaded(response: Response, request: Request) -> None:
    if download := _download_of(request):
        download.downloaded(response)
