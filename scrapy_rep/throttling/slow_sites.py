"""Sites that say "slower" by their answers, for all crawls that share the backend.

Here may live: which answers are looked at, and what becomes of the requests that are on their way
to such a site. Here may not live: what delay an answer asks for
(:mod:`scrapy_rep.throttling.backoff`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from scrapy import Request, signals

from scrapy_rep.engine import Engine
from scrapy_rep.observers.stats import count
from scrapy_rep.rep.caching.freshness import retry_after
from scrapy_rep.throttling.backoff import ASK_FOR_LESS, Backoff
from scrapy_rep.throttling.turns import Event

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from scrapy_rep.throttling.pace_log import PaceLog
    from scrapy_rep.throttling.throttle import Throttle, Timer

# Seconds between two looks at what other crawls have learned.
_LOOK = 0.5
_FINE = Backoff()
# Who asks for a delay, where origins stand for their robots.txt.
_ANSWERS = "answers"


@dataclass(eq=False, repr=False)
class SlowSites:
    """Watches the answers of one crawl.

    A request that Scrapy has sent is beyond recall. One that waits in a download slot goes back
    to the scheduler.
    """

    crawler: Crawler
    throttle: Throttle
    log: PaceLog
    #: The longest delay that answers may ask for.
    longest: float
    #: What the scheduler gets for a request.
    give_back: Callable[[Request], Request]
    #: Whether a request is for a robots.txt, whose answers do not count.
    is_fetch: Callable[[Request], object]
    #: What each slow site asks for; never changed, but replaced.
    _known: dict[str, Backoff] = field(default_factory=dict, init=False)
    _timer: Timer | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.crawler.signals.connect(self._answered, signals.response_downloaded)
        self.crawler.signals.connect(self._look, signals.spider_opened)
        self.crawler.signals.connect(self._close, signals.spider_closed)

    def _answered(self, response: Response, request: Request) -> None:
        status = response.status
        asks_for_less = status in ASK_FOR_LESS
        if not (asks_for_less or self._known) or self.is_fetch(request):
            return
        throttle, site = self.throttle, self.throttle.site_of(request)
        headers = (
            (name, value.decode("latin-1"))
            for name in ("retry-after", "date")
            for value in response.headers.getlist(name)
        )
        seconds = retry_after(tuple(headers), time.time())
        now = throttle.clock()
        _, sent_at = throttle.sent.get(request, (site, now))
        asked = throttle.delay(site, but=_ANSWERS)
        known = self._known.get(site, _FINE)
        after = known.after(status, seconds, sent_at, now, asked=asked, longest=self.longest)
        count(self.crawler, "robotstxt/slower_count", asks_for_less)
        if asks_for_less or after is not known:
            # Also to say that it holds still.
            throttle.backend.tell(Event.SLOW, site, after.delay)
        if after is not known:
            header = f" with Retry-After: {seconds:g}" if seconds else ""
            self._change(site, after, f"by answering {status}{header}")
        if after.delay > known.delay:
            self._recall(site, request)

    def _recall(self, site: str, answered: Request) -> None:
        """Have requests that wait in the download slot wait for their turn."""

        def waits(request: Request) -> bool:
            is_here = self.throttle.site_of(request) == site
            return is_here and not request.meta.get("dont_obey_robotstxt")

        for request, result in Engine(self.crawler).take_queued(answered, waits):
            self.throttle.sent.pop(request, None)
            self.throttle.call_later(0, result.callback, self.give_back(request))

    def _look(self) -> None:
        self._timer = self.throttle.call_later(_LOOK, self._look)
        self.throttle.backend.slowed(partial(self._adopt, self._known))

    def _adopt(self, known: dict[str, Backoff], delays: Mapping[str, float]) -> None:
        """All crawls together know of *delays*, as of when this one had *known* so much."""
        if known is not self._known:
            return
        now = self.throttle.clock()
        for site in {*self._known, *delays}:
            delay = delays.get(site, 0.0)
            if delay != self._known.get(site, _FINE).delay:
                self._change(site, Backoff(delay, now), "by what another crawl heard")

    def _change(self, site: str, backoff: Backoff, why: str) -> None:
        known = {**self._known, site: backoff}
        self._known = {each: slow for each, slow in known.items() if slow.delay}
        self.log.answered(site, backoff.delay, why)
        self.throttle.set_delay(site, backoff.delay, _ANSWERS)

    def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
