"""Fetches a robots.txt and follows its redirects.

Redirects are followed here, not by Scrapy, to count them, to allow only http and https, and to use
one timeout for all hops. :mod:`.download` does one download, :mod:`.redirects` decides about the
next hop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest
from scrapy.http.request import NO_CALLBACK

from scrapy_rep.engine import Engine
from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.observers.observer import Exchange
from scrapy_rep.observers.stats import count
from scrapy_rep.policies.decompress import decompress
from scrapy_rep.policies.download import Download, connect_downloads
from scrapy_rep.policies.errors import FetchFailed, describe, raised_in
from scrapy_rep.policies.fetch_limiter import FetchLimiter
from scrapy_rep.policies.headers import LOCATION, keep
from scrapy_rep.policies.redirects import may_authenticate, next_hop
from scrapy_rep.rep.caching.access import Failure, FetchResult, Headers
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.caching.freshness import of_lifetime, validators
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_rep.holding.concurrency import ConcurrencyLimit
    from scrapy_rep.observers.observer import Observers
    from scrapy_rep.observers.policy_log import PolicyLog
    from scrapy_rep.settings import RepSettings

#: A longer Content-Encoding header is an error.
MAX_ENCODING = 1024

# Meta keys with credentials for a server.
_CREDENTIALS = ("http_user", "http_pass", "ftp_user", "ftp_password")

# The meta of every robots.txt request. It overrides the meta of the page's request.
_META: dict[str, Any] = {
    "dont_obey_robotstxt": True,
    # The allowed domains are about pages.
    "allow_offsite": True,
    # Redirects are followed here.
    "dont_redirect": True,
    # The policy cache retries, after REP_RETRY_DELAY.
    "dont_retry": True,
    "dont_merge_cookies": True,
    # Scrapy's HTTP cache stores errors too, by default forever.
    "dont_cache": True,
    # _body() checks this.
    "download_fail_on_dataloss": False,
    # No limit here: over DOWNLOAD_MAXSIZE, the whole body is dropped.
    "download_maxsize": 0,
    "download_warnsize": 0,
}


class RobotsTxtFetcher:
    """Fetches robots.txt files for one crawl."""

    def __init__(
        self,
        crawler: Crawler,
        settings: RepSettings,
        concurrency: ConcurrencyLimit,
        log: PolicyLog,
        observers: Observers,
    ) -> None:
        self._crawler = crawler
        self._settings = settings
        self._concurrency = concurrency
        self._log = log
        self._observers = observers
        self._limiter = FetchLimiter(settings.concurrent_requests, settings.max_fetches)
        self._downloads: set[Download] = set()
        concurrency.on_stop.append(self._give_up)
        crawler.signals.connect(self._spider_opened, signals.spider_opened)
        connect_downloads(crawler.signals)

    def _spider_opened(self) -> None:
        # Before this signal, there are no download handlers.
        in_all = Engine(self._crawler).widen_pools(self._settings.max_fetches)
        self._limiter = FetchLimiter(self._settings.concurrent_requests, in_all)

    def _give_up(self) -> None:
        for each in list(self._downloads):
            each.give_up(CrawlStopping())

    async def fetch(
        self, origin: Origin, asking: Request, known: CacheEntry | None = None
    ) -> FetchResult:
        """Fetch the robots.txt of *origin* on behalf of the request *asking*.

        The request is conditional if *known* has a response that can be revalidated. A failure is
        a result too. Raises only :exc:`~scrapy_rep.CrawlStopping`.
        """
        download = Download(self._crawler, self._concurrency, self._settings, origin)
        try:
            async with self._limiter.acquire():
                if self._concurrency.is_closing:
                    raise CrawlStopping
                self._downloads.add(download)
                return await self._follow(download, origin, asking, known)
        except CrawlStopping:
            raise
        except Exception as error:
            detail = self._failed(origin, error)
            return FetchResult(origin.robots_url, failure=Failure.NO_ANSWER, detail=detail)
        finally:
            self._downloads.discard(download)

    def _failed(self, origin: Origin, error: Exception) -> str:
        """Count and log *error*, which ended a fetch, and return its description."""
        if isinstance(error, FetchFailed):
            return printable(str(error))
        if not isinstance(error, IgnoreRequest):
            count(self._crawler, f"{origin.stats}/exception_count/{type(error)}")
        if raised_in(error) is not None:
            self._log.on_exception(origin, error)
        return printable(describe(error))

    async def _follow(
        self, download: Download, origin: Origin, asking: Request, known: CacheEntry | None
    ) -> FetchResult:
        """Request the robots.txt and follow its redirects (RFC 9309 §2.3.1.2)."""
        urls = [origin.robots_url]
        via: list[Headers] = []
        while True:
            request = self._request(urls[-1], origin, asking, known)
            response = await download.run(request)
            exchange = Exchange(request, response, download.encoding, download.is_cut)
            self._observers.on_answer(origin, exchange)
            headers = keep(response.headers.getlist)
            location = headers.first(LOCATION)
            redirect = next_hop(response.status, location, urls, self._settings.max_redirects)
            if redirect is None:
                body, is_cut = self._body(response, download)
                count(self._crawler, f"{origin.stats}/response_count")
                status_count = f"response_status_count/{response.status}"
                count(self._crawler, f"{origin.stats}/{status_count}")
                return FetchResult(
                    urls[-1],
                    response.status,
                    body,
                    redirects=len(urls) - 1,
                    detail=f"status {response.status}",
                    headers=headers.caching,
                    cut=is_cut,
                    via=tuple(via),
                    user_agent=user_agent_of(request),
                )
            count(self._crawler, f"{origin.stats}/redirect_count")
            if redirect.failure is not None:
                return FetchResult(
                    urls[-1],
                    response.status,
                    redirects=len(urls),
                    failure=redirect.failure,
                    detail=f"{len(urls)} redirects, the last one to {printable(redirect.url)}",
                )
            via.append(of_lifetime(headers.caching))
            urls.append(redirect.url)

    def _body(self, response: Response, download: Download) -> tuple[bytes, bool]:
        """The body up to REP_MAX_SIZE, and whether it was longer."""
        # RFC 9309 §2.3.1.3, §2.3.1.4: for other responses, only the status counts, even if their
        # body is broken.
        if not 200 <= response.status < 300:
            return b"", False
        if "dataloss" in response.flags:
            raise FetchFailed("the connection closed before the end of the body")
        if len(download.encoding) > MAX_ENCODING:
            raise FetchFailed(f"the Content-Encoding header has more than {MAX_ENCODING} bytes")
        encodings = download.encoding.decode("latin-1").split(",")
        # One byte more shows whether the body is longer.
        limit = self._settings.max_size + 1
        body = decompress(response.body, encodings, limit, cut=download.is_cut)[:limit]
        return body, download.is_cut or len(body) == limit

    def _request(
        self, url: str, origin: Origin, asking: Request, known: CacheEntry | None
    ) -> Request:
        """The request for one hop.

        It is new for each hop, because Scrapy writes values for one host into the meta, such as
        the download slot.
        """
        meta: dict[str, Any] = {
            key: asking.meta[key] for key in self._settings.fetch_meta_keys if key in asking.meta
        }
        if not may_authenticate(url, origin, meta.get("http_auth_domain")):
            for key in _CREDENTIALS:
                meta.pop(key, None)
        # Compression saves nothing on files of this size, and can be a bomb.
        headers: dict[str, Any] = {"Accept-Encoding": "identity"}
        if known is not None and known.copy is not None and known.copy.result.url == url:
            # Only for the URL of the file, not for redirects. As bytes, because Scrapy would
            # encode text as UTF-8.
            headers |= {name: value.encode("latin-1") for name, value in validators(known)}
        if user_agent := asking.headers.get("User-Agent"):
            headers["User-Agent"] = user_agent
        if "_auth_proxy" in asking.meta and "proxy" in meta:
            # The request is a retry: HttpProxyMiddleware has moved the credentials for the proxy
            # here.
            meta["_auth_proxy"] = asking.meta["_auth_proxy"]
            headers["Proxy-Authorization"] = asking.headers.get("Proxy-Authorization")
        headers |= self._settings.fetch_headers
        return Request(url, headers=headers, meta=meta | _META, callback=NO_CALLBACK, priority=1000)


def user_agent_of(request: Request) -> str:
    """The User-Agent header of *request*; after it was sent, the one that was sent."""
    return (request.headers.get("User-Agent") or b"").decode("utf-8", "replace")
