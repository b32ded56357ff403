"""How fast requests to an origin may follow each other: Crawl-delay and Request-rate.

:class:`Pacing` knows what origins ask for, and tells the throttle what Scrapy does. That
the delay is kept is the work of :class:`~scrapy_rep.throttling.throttle.Throttle`.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import call_later
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.defer import Deferred

from scrapy_rep.engine import Engine
from scrapy_rep.observers.stats import count
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import PacedBy
from scrapy_rep.throttling.memory import MemoryBackend
from scrapy_rep.throttling.throttle import Throttle

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.rep.directives.directives import Directives
    from scrapy_rep.rep.policy import Policy
    from scrapy_rep.settings import RepSettings
    from scrapy_rep.throttling.backend import Backend

logger = logging.getLogger(__name__)

# How many different agents of one origin are remembered; then they are learnt anew.
_MAX_AGENTS = 32


@dataclass(slots=True)
class Asked:
    """What an origin asks of all agents that it was visited by."""

    #: Where the origin is throttled.
    site: str
    directives: Directives
    #: The delay that was last mentioned in the log.
    mentioned: float = 0.0
    #: The delay that is kept for it.
    delay: float = 0.0
    agents: set[tuple[str, ...]] = field(default_factory=set)

    def wanted(self, now: float) -> float:
        """Agents share the origin, so the slowest decides."""
        return max(self.directives.pace(agents).delay(now) for agents in self.agents)


class Pacing:
    """What origins ask for, and who keeps it.

    *clock* gives seconds since the epoch, which Request-rate may depend on. Origins of one
    host share one site of the throttle: http and https, and all ports. The longest of their
    delays holds for all of them.
    """

    def __init__(
        self,
        crawler: Crawler,
        settings: RepSettings,
        clock: Callable[[], float],
    ) -> None:
        self._crawler = crawler
        self._settings = settings
        self._clock = clock
        engine = Engine(crawler)
        self.throttle = Throttle(
            _backend(crawler, settings),
            clock=time.monotonic,
            call_later=call_later,
            is_active=engine.is_active,
            hears_all=lambda: engine.reports_sent_requests,
            # No delay is longer.
            remember=settings.crawl_delay_max,
            max_sites=settings.max_origins,
        )
        #: What origins ask for that are paced; the one that was not asked for longest first.
        self.asked: OrderedDict[str, Asked] = OrderedDict()
        #: Those of each site.
        self._origins: dict[str, set[str]] = {}
        # From the start: what is under way when a site is throttled counts, too.
        connect = crawler.signals.connect
        connect(self._reached, signals.request_reached_downloader)
        connect(self._left, signals.request_left_downloader)
        connect(self._received, signals.response_received)
        connect(self.throttle.close, signals.spider_closed)

    def admit(
        self, policy: Policy, request: Request, agents: tuple[str, ...]
    ) -> Deferred[None] | None:
        """Pace *request*, which *policy* lets *agents* make.

        Returns ``None`` if it may go on now, or what fires when it may. Cancel that if it
        does not wait any more.
        """
        site = _site(request)
        origin = str(policy.origin)
        before = self.asked.pop(origin, None)
        if policy.directives is not None:
            asked = before
            if asked is None or asked.directives is not policy.directives:
                asked = Asked(site, policy.directives, before.mentioned if before else 0.0)
            elif len(asked.agents) >= _MAX_AGENTS:
                asked.agents.clear()
            asked.agents.add(agents)
            wanted = asked.wanted(self._clock())
            if wanted:
                self._remember(origin, asked, wanted)
                if before is None:
                    count(self._crawler, "robotstxt/paced_count")
                if wanted != asked.mentioned:
                    asked.mentioned = wanted
                    self._mention(policy.origin, wanted, asked.delay)
            elif before is not None:
                self._forget(origin, before)
        elif before is not None:
            self._forget(origin, before)
        is_components = request.callback is NO_CALLBACK
        return self.throttle.admit(site, request, request.priority, is_components=is_components)

    def admit_fetch(self, request: Request) -> Deferred[None] | None:
        """Pace *request*, for a robots.txt, as :meth:`admit` does; it goes first."""
        if not self.asked:
            return None
        return self.throttle.admit(_site(request), request, request.priority, is_fetch=True)

    def has_turn(self, request: Request) -> bool:
        """Whether *request*, which has waited for its turn, goes on now; else admit it again."""
        return self.throttle.has_turn(_site(request), request)

    # -- what origins ask for -------------------------------------------------------

    def _remember(self, origin: str, asked: Asked, wanted: float) -> None:
        asked.delay = min(wanted, self._settings.crawl_delay_max)
        self.asked[origin] = asked
        self._origins.setdefault(asked.site, set()).add(origin)
        self._set_delay(asked.site)
        if len(self.asked) <= self._settings.max_origins:
            return
        # Who waits goes on in order: such sites stay, and are as many as requests may wait.
        idle = (
            other
            for other in self.asked
            if other != origin and not self.throttle.is_in_use(self.asked[other].site)
        )
        if (first := next(idle, None)) is not None:
            self._forget(first, self.asked.pop(first))

    def _forget(self, origin: str, asked: Asked) -> None:
        origins = self._origins[asked.site]
        origins.discard(origin)
        self._set_delay(asked.site)
        if not origins:
            del self._origins[asked.site]

    def _set_delay(self, site: str) -> None:
        origins = self._origins[site]
        delay = max((self.asked[origin].delay for origin in origins), default=0.0)
        self.throttle.set_delay(site, delay)

    def _mention(self, origin: Origin, wanted: float, delay: float) -> None:
        capped = delay < wanted
        if capped:
            count(self._crawler, "robotstxt/paced_capped_count")
        logger.log(
            logging.INFO if capped else logging.DEBUG,
            "%(url)s asks for %(wanted)g s between two requests, and gets %(delay)g s%(because)s",
            {
                "url": printable(origin.robots_url),
                "wanted": wanted,
                "delay": delay,
                "because": " (REP_CRAWL_DELAY_MAX)" if capped else "",
            },
            extra={"spider": self._crawler.spider},
        )

    # -- what Scrapy does -------------------------------------------------------------

    def _reached(self, request: Request) -> None:
        self.throttle.reached(_site(request), request)

    def _left(self, request: Request) -> None:
        self.throttle.left(_site(request), request)

    def _received(self, request: Request) -> None:
        if self.asked:
            self.throttle.may_be_gone(_site(request), request)


def _site(request: Request) -> str:
    """The host of *request*, whatever download slot it names."""
    return urlparse_cached(request).hostname or ""


def _backend(crawler: Crawler, settings: RepSettings) -> Backend:
    if settings.pacing is not PacedBy.FLEET:
        return MemoryBackend()
    # With a store in Redis alone. Other settings are refused.
    assert settings.store.redis is not None
    from scrapy_rep.throttling.fleet import FleetBackend
    from scrapy_rep.throttling.redis import RedisTurns

    return FleetBackend(crawler, RedisTurns(settings.store.redis), time.monotonic)
