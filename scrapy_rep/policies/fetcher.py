"""A whole robots.txt fetch: its redirects, and how it ended.

Redirects are followed here, which counts them and asks nothing but http and https, within one
budget of time for all hops. Here may not live: one download (:mod:`.download`), the decision
about the next hop (:mod:`.redirects`), what the result means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest
from scrapy.http.request import NO_CALLBACK

from scrapy_rep.engine import Engine
from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.observers.stats import count
from scrapy_rep.policies import download
from scrapy_rep.policies.decompress import BrokenBody
from scrapy_rep.policies.download import Budget, Download, Exchange, Expired, TooManyRequests
from scrapy_rep.policies.errors import describe, raised_in
from scrapy_rep.policies.fetch_limiter import FetchLimiter
from scrapy_rep.policies.headers import LOCATION, KeptHeaders, keep
from scrapy_rep.policies.redirects import GiveUp, is_downgrade, may_authenticate, next_hop
from scrapy_rep.rep.caching.access import Failure, FetchResult, Headers
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.caching.freshness import of_lifetime, validators
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.text import printable

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_rep.holding.concurrency import ConcurrencyLimit
    from scrapy_rep.observers.policy_log import PolicyLog
    from scrapy_rep.settings import RepSettings

# Meta keys that say who we are to a server.
_CREDENTIALS = ("http_user", "http_pass", "ftp_user", "ftp_password")

# What holds for every request for a robots.txt, whatever the page's says.
_META: dict[str, Any] = {
    "dont_obey_robotstxt": True,
    # The allowed domains are about pages.
    "allow_offsite": True,
    # Redirects are followed here.
    "dont_redirect": True,
    # The policy cache asks again, when it is time.
    "dont_retry": True,
    "dont_merge_cookies": True,
    # Scrapy's HTTP cache keeps outages, too, and by default for good.
    "dont_cache": True,
    # Noticed in _body(), where it matters.
    "download_fail_on_dataloss": False,
    # No limit here: over DOWNLOAD_MAXSIZE, the whole body is dropped.
    "download_maxsize": 0,
    "download_warnsize": 0,
}


class Fetched(NamedTuple):
    """How a fetch ended.

    *conditional*: whether it asked for the file only if it is no longer what was known.
    *exchanges* are all requests that got an answer.
    """

    result: FetchResult
    conditional: bool
    exchanges: Sequence[Exchange] = ()


class RobotsTxtFetcher:
    """Fetches robots.txt files for one crawl."""

    def __init__(
        self, crawler: Crawler, settings: RepSettings, concurrency: ConcurrencyLimit, log: PolicyLog
    ) -> None:
        self._crawler = crawler
        self._settings = settings
        self._concurrency = concurrency
        self._log = log
        self._limiter = FetchLimiter(settings.concurrent_requests, settings.max_fetches)
        self._downloads: set[Download] = set()
        concurrency.on_stop(self._give_up)
        crawler.signals.connect(self._spider_opened, signals.spider_opened)
        download.connect(crawler.signals)

    async def fetch(
        self, origin: Origin, asking: Request, known: CacheEntry | None = None
    ) -> Fetched:
        """The robots.txt of *origin*, on behalf of the request *asking*.

        Conditionally, if *known* is a copy that can be confirmed. Whatever goes wrong is a
        result, too. Raises only :exc:`~scrapy_rep.CrawlStopping`.
        """
        exchanges: list[Exchange] = []
        try:
            async with self._limiter.acquire():
                if self._concurrency.is_closing:
                    raise CrawlStopping
                return await self._follow(origin, asking, known, exchanges)
        except CrawlStopping:
            raise
        except Exception as error:
            detail = self._failed(origin, error)
        failed = FetchResult(origin.robots_url, failure=Failure.NO_ANSWER, detail=detail)
        return Fetched(failed, False, exchanges)

    def _failed(self, origin: Origin, error: Exception) -> str:
        """Count and log *error*, with which a fetch ended; what to tell people of it."""
        if isinstance(error, Expired):
            return f"no answer within {self._settings.fetch_timeout:g} s"
        if not isinstance(error, IgnoreRequest):
            count(self._crawler, f"robotstxt/exception_count/{type(error)}")
        if isinstance(error, (BrokenBody, TooManyRequests)):
            return printable(str(error))
        if raised_in(error) is not None:
            self._log.on_exception(origin, error)
        return printable(describe(error))

    def _spider_opened(self) -> None:
        self._limiter.in_all = Engine(self._crawler).widen_pools(self._settings.max_fetches)

    def _give_up(self) -> None:
        for each in list(self._downloads):
            each.give_up(CrawlStopping())

    async def _follow(
        self,
        origin: Origin,
        asking: Request,
        known: CacheEntry | None,
        exchanges: list[Exchange],
    ) -> Fetched:
        """Ask, and ask where a redirect leads, and so on (RFC 9309 §2.3.1.2).

        Each answer is added to *exchanges*.
        """
        hops = [origin.robots_url]
        via: list[Headers] = []
        budget = Budget(self._settings.fetch_timeout)
        while True:
            # Redirects on the way know no such file.
            conditions = _conditions(known, hops[-1])
            hop = Download(
                self._crawler,
                self._concurrency,
                self._settings.max_size,
                budget,
                in_plain_text=is_downgrade(hops[-1], origin),
            )
            request = self._request(hops[-1], origin, asking, conditions)
            response = await self._run(hop, request)
            exchanges.append(Exchange(request, response, hop.content_encoding, hop.is_cut))
            headers = keep(response.headers.getlist)
            step = next_hop(
                response.status, headers.first(LOCATION), hops, self._settings.max_redirects
            )
            if step is None:
                result = self._result(response, headers, self._body(response, hop), hops)
                result = replace(result, via=tuple(via), user_agent=user_agent_of(request))
                return Fetched(result, bool(conditions), exchanges)
            count(self._crawler, "robotstxt/redirect_count")
            via.append(of_lifetime(headers.caching))
            if isinstance(step, GiveUp):
                result = self._result(response, headers, (b"", False), hops, step)
                return Fetched(result, False, exchanges)
            hops.append(step.url)

    async def _run(self, hop: Download, request: Request) -> Response:
        self._downloads.add(hop)
        try:
            return await hop.run(request)
        finally:
            self._downloads.discard(hop)

    def _body(self, response: Response, hop: Download) -> tuple[bytes, bool]:
        """The body as far as it is read, and whether there was more of it."""
        # RFC 9309 §2.3.1.3, §2.3.1.4: of other answers, the status says all;
        # that their body is broken changes nothing.
        if not 200 <= response.status < 300:
            return b"", False
        if "dataloss" in response.flags:
            raise BrokenBody("the connection ended before the body did")
        # One byte more than is read of it says that there is more.
        limit = self._settings.max_size + 1
        body = hop.decoded(response.body, limit)
        return body, hop.is_cut or len(body) == limit

    def _result(
        self,
        response: Response,
        headers: KeptHeaders,
        body: tuple[bytes, bool],
        hops: Sequence[str],
        given_up: GiveUp | None = None,
    ) -> FetchResult:
        """How a fetch ended whose last answer is *response*."""
        if given_up is None:
            redirects = len(hops) - 1
            detail = f"status {response.status}"
            count(self._crawler, "robotstxt/response_count")
            count(self._crawler, f"robotstxt/response_status_count/{response.status}")
        else:
            redirects = len(hops)
            detail = f"{redirects} redirects, the last one to {printable(given_up.url)}"
        return FetchResult(
            hops[-1],
            response.status,
            body[0],
            redirects,
            failure=given_up.failure if given_up else None,
            detail=detail,
            headers=headers.caching if given_up is None else (),
            cut=body[1],
        )

    # -- requests -------------------------------------------------------------------

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
        if not may_authenticate(url, origin, meta.get("http_auth_domain")):
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
        return Request(url, headers=headers, meta=meta | _META, callback=NO_CALLBACK, priority=1000)


def _conditions(known: CacheEntry | None, url: str) -> dict[str, bytes]:
    """Headers that ask for *url* only if it is no longer what is *known* of it."""
    if known is None or known.copy is None or known.copy.result.url != url:
        return {}
    # As bytes: Scrapy would write what is not ASCII in UTF-8.
    return {name: value.encode("latin-1") for name, value in validators(known)}


def user_agent_of(request: Request) -> str:
    """The User-Agent that *request* brings: once it was sent, the one that it was sent with."""
    return (request.headers.get("User-Agent") or b"").decode("utf-8", "replace")
