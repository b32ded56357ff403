"""Fetches a robots.txt and follows its redirects, with a limit on the number of fetches.

Redirects are followed here, not by Scrapy, to count them, to allow only http and https, and to use
one timeout for all hops. :mod:`.download` does one download, :mod:`.hops` decides about the next.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import DeferredSemaphore

from scrapy_rep.engine import Engine
from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.holding.concurrency import ConcurrencyLimit
from scrapy_rep.observers.observer import Observers
from scrapy_rep.observers.policy_log import PolicyLog
from scrapy_rep.observers.stats import count
from scrapy_rep.policies.download import Download, connect_downloads
from scrapy_rep.policies.errors import FetchFailed, describe, raised_in
from scrapy_rep.policies.hops import Hops, may_authenticate
from scrapy_rep.rep.caching.access import Failure, FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.caching.freshness import validators
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import RepSettings

# A fetch that takes more seconds than this is slow.
_SOON = 0.25
# Meta keys with credentials for a server.
_CREDENTIALS = ("http_user", "http_pass", "ftp_user", "ftp_password")
# The meta of every robots.txt request. It overrides the meta of the page's request.
_META: dict[str, Any] = {
    "dont_obey_robotstxt": True,
    "allow_offsite": True,  # The allowed domains are about pages.
    "dont_redirect": True,  # Redirects are followed here.
    "dont_retry": True,  # The policy cache retries, after REP_RETRY_DELAY.
    "dont_merge_cookies": True,
    "dont_cache": True,  # Scrapy's HTTP cache stores errors too, by default forever.
    "download_fail_on_dataloss": False,  # Hops check this.
    "download_maxsize": 0,  # No limit here: over DOWNLOAD_MAXSIZE, the whole body is dropped.
    "download_warnsize": 0,
}


class FetchLimiter:
    """Allows *at_once* fetches that are not slow, and *in_all* including the slow ones.

    A slow fetch costs almost nothing. So hosts that do not answer do not block the others.
    """

    def __init__(self, at_once: int, in_all: int) -> None:
        # CONCURRENT_REQUESTS = 0, or less, means no limit.
        self._at_once = DeferredSemaphore(at_once if at_once > 0 else in_all)
        self._in_all = DeferredSemaphore(in_all)

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[None]:
        """Wait until the fetch in this context may run. First come, first served."""
        with ExitStack() as running, ExitStack() as quick:
            await maybe_deferred_to_future(self._in_all.acquire())
            running.callback(self._in_all.release)
            await maybe_deferred_to_future(self._at_once.acquire())
            quick.callback(self._at_once.release)
            timer = call_later(_SOON, quick.close)
            running.callback(timer.cancel)
            yield


@dataclass(eq=False, repr=False)
class RobotsTxtFetcher:
    """Fetches robots.txt files for one crawl."""

    crawler: Crawler
    settings: RepSettings
    concurrency: ConcurrencyLimit
    log: PolicyLog
    observers: Observers

    def __post_init__(self) -> None:
        # By origin. The policy cache has one fetch of each at a time.
        self._downloads: dict[Origin, Download] = {}
        self._limiter = FetchLimiter(self.settings.concurrent_requests, self.settings.max_fetches)
        self.concurrency.on_stop.append(self._give_up)
        self.crawler.signals.connect(self._spider_opened, signals.spider_opened)
        connect_downloads(self.crawler.signals)

    def _spider_opened(self) -> None:
        # Before this signal, there are no download handlers.
        in_all = Engine(self.crawler).widen_pools(self.settings.max_fetches)
        self._limiter = FetchLimiter(self.settings.concurrent_requests, in_all)

    def _give_up(self) -> None:
        for download in list(self._downloads.values()):
            download.give_up(CrawlStopping())

    async def fetch(
        self, origin: Origin, asking: Request, known: CacheEntry | None = None
    ) -> FetchResult:
        """Fetch the robots.txt of *origin* on behalf of the request *asking*.

        The request is conditional if *known* has a response that can be revalidated. A failure is
        a result too. Raises only :exc:`~scrapy_rep.CrawlStopping`.
        """
        try:
            async with self._limiter.acquire():
                return await self._send(origin, asking, known)
        except CrawlStopping:
            raise
        except Exception as error:
            if not isinstance(error, FetchFailed | IgnoreRequest):
                count(self.crawler, f"{origin.stats}/exception_count/{type(error)}")
            if raised_in(error) is not None:
                self.log.on_exception(origin, error)
            detail = printable(describe(error))
            return FetchResult(origin.robots_url, failure=Failure.NO_ANSWER, detail=detail)
        finally:
            self._downloads.pop(origin, None)

    async def _send(self, origin: Origin, asking: Request, known: CacheEntry | None) -> FetchResult:
        settings = self.settings
        hops = Hops([origin.robots_url], settings.max_redirects, settings.max_size)
        seconds, result = settings.fetch_timeout, None
        while result is None:
            if self.concurrency.is_closing:
                raise CrawlStopping
            download = Download(self.crawler, self.concurrency, settings, origin, seconds)
            self._downloads[origin] = download
            request = self._request(hops.urls[-1], origin, asking, known)
            exchange = await download.run(request)
            seconds = download.seconds
            self.observers.on_answer(origin, exchange)
            result = hops.add(exchange)
            if result is None or result.failure is not None:
                count(self.crawler, f"{origin.stats}/redirect_count")
        if result.failure is None:
            count(self.crawler, f"{origin.stats}/response_count")
            count(self.crawler, f"{origin.stats}/response_status_count/{result.status}")
        return result

    def _request(
        self, url: str, origin: Origin, asking: Request, known: CacheEntry | None
    ) -> Request:
        """A new request for each hop: Scrapy writes values for one host into the meta."""
        meta = {key: asking.meta[key] for key in self.settings.fetch_meta_keys & asking.meta.keys()}
        if not may_authenticate(url, origin, meta.get("http_auth_domain")):
            meta = {key: value for key, value in meta.items() if key not in _CREDENTIALS}
        # Compression saves nothing on files of this size, and can be a bomb.
        headers: dict[str, Any] = {"Accept-Encoding": "identity"}
        if known is not None and known.stored is not None and known.stored.result.url == url:
            # Not for redirects. As bytes, because Scrapy would encode text as UTF-8.
            headers |= {name: value.encode("latin-1") for name, value in validators(known)}
        if user_agent := asking.headers.get("User-Agent"):
            headers["User-Agent"] = user_agent
        if "_auth_proxy" in asking.meta and "proxy" in meta:
            # In a retry, HttpProxyMiddleware has moved the credentials for the proxy here.
            meta["_auth_proxy"] = asking.meta["_auth_proxy"]
            headers["Proxy-Authorization"] = asking.headers.get("Proxy-Authorization")
        headers |= self.settings.fetch_headers
        return Request(url, headers=headers, meta=meta | _META, callback=NO_CALLBACK, priority=1000)
