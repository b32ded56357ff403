"""Sites that say "slower" by their answers, for all crawls that share the backend.

Here may live: which answers are looked at, and what becomes of the requests that are on their way
to such a site. Here may not live: what delay an answer asks for
(:mod:`scrapy_rep.throttling.backoff`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from scrapy import Request, signals
from scrapy.utils.asyncio import call_later
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep.engine import Engine
from scrapy_rep.observers.stats import count
from scrapy_rep.rep.caching.freshness import retry_after
from scrapy_rep.throttling.backoff import ASK_FOR_LESS, Answer, Backoff

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_rep.throttling.backend import Backend
    from scrapy_rep.throttling.throttle import Throttle, Timer

# Seconds between two looks at what other crawls have learned.
_LOOK = 0.5
_FINE = Backoff()


class SetDelay(Protocol):
    """Keeps a delay of a site that its answers ask for; 0 for none any more."""

    def __call__(self, site: str, delay: float, why: str) -> None:
        """*why* is for people."""


class SlowSites:
    """Watches the answers of one crawl, but for those to robots.txt requests (*is_fetch*).

    A request that Scrapy has sent is beyond recall. One that waits in a download slot goes back
    to the scheduler, as *give_back* makes it. *asked* is the delay that robots.txt asks for,
    *longest* bounds what answers ask for.
    """

    def __init__(
        self,
        crawler: Crawler,
        backend: Backend,
        throttle: Throttle,
        longest: float,
        *,
        asked: Callable[[str], float],
        set_delay: SetDelay,
        give_back: Callable[[Request], Request],
        is_fetch: Callable[[Request], bool],
    ) -> None:
        self._crawler = crawler
        self._engine = Engine(crawler)
        self._backend = backend
        self._throttle = throttle
        self._longest = longest
        self._asked = asked
        self._set_delay = set_delay
        self._give_back = give_back
        self._is_fetch = is_fetch
        self._known: dict[str, Backoff] = {}
        self._changes = 0
        self._timer: Timer | None = None
        crawler.signals.connect(self._answered, signals.response_downloaded)
        crawler.signals.connect(self._look, signals.spider_opened)
        crawler.signals.connect(self._close, signals.spider_closed)

    # -- answers of this crawl --------------------------------------------------------

    def _answered(self, response: Response, request: Request) -> None:
        asks_for_less = response.status in ASK_FOR_LESS
        if not (asks_for_less or self._known) or self._is_fetch(request):
            return
        site = site_of(request)
        known = self._known.get(site, _FINE)
        headers = (
            (name, value.decode("latin-1"))
            for name in ("retry-after", "date")
            for value in response.headers.getlist(name)
        )
        seconds = retry_after(tuple(headers), time.time())
        now = time.monotonic()
        answer = Answer(response.status, seconds, self._throttle.sent_at(site, request), now)
        after = known.after(answer, self._asked(site), self._longest)
        if asks_for_less:
            count(self._crawler, "robotstxt/slower_count")
        if asks_for_less or after is not known:
            # Also to say that it holds still.
            self._backend.slow(site, after.delay)
        if after is known:
            return
        header = f" with Retry-After: {seconds:g}" if seconds else ""
        self._change(site, after, f"by answering {response.status}{header}")
        if after.delay > known.delay:
            self._recall(site, request)

    def _recall(self, site: str, answered: Request) -> None:
        """Have requests that wait in the download slot wait for their turn."""

        def waits(request: Request) -> bool:
            return site_of(request) == site and not request.meta.get("dont_obey_robotstxt")

        for request, result in self._engine.take_queued(answered, waits):
            self._throttle.unsent(site, request)
            call_later(0, result.callback, self._give_back(request))

    # -- answers of others --------------------------------------------------------------

    def _look(self) -> None:
        self._timer = call_later(_LOOK, self._look)
        self._backend.slowed(partial(self._adopt, self._changes))

    def _adopt(self, changes: int, delays: Mapping[str, float]) -> None:
        """All crawls together know of *delays*, as of when there had been so many *changes*."""
        if changes != self._changes:
            return
        for site in {*self._known, *delays}:
            delay = delays.get(site, 0.0)
            if delay != self._known.get(site, _FINE).delay:
                self._change(site, Backoff(delay, time.monotonic()), "by what another crawl heard")

    def _change(self, site: str, backoff: Backoff, why: str) -> None:
        self._changes += 1
        if backoff.delay:
            self._known[site] = backoff
        else:
            del self._known[site]
        self._set_delay(site, backoff.delay, why)

    def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def site_of(request: Request) -> str:
    """The host of *request*, whatever download slot it names."""
    return urlparse_cached(request).hostname or ""
