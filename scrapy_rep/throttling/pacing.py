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
from itertools import islice
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
class _Asked:
    """What an origin asks of all agents that it was visited by."""

    site: str
    directives: Directives | None = None
    agents: set[tuple[str, ...]] = field(default_factory=set)
    #: The delay that was last mentioned in the log.
    mentioned: float = 0.0


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
        #: The delay of each origin of each site that is paced.
        self.asked: dict[str, dict[str, float]] = {}
        #: What the origins ask for; the one that was not asked for longest first.
        self._origins: OrderedDict[Origin, _Asked] = OrderedDict()
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
        asked = self._origins.pop(policy.origin, None) or _Asked(site)
        wanted = self._wanted(asked, policy.directives, agents)
        self._set_delay(site, policy.origin, wanted)
        if wanted:
            self._origins[policy.origin] = asked
            self._forget_idle()
            if wanted != asked.mentioned:
                self._mention(policy.origin, asked, wanted)
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

    def _wanted(
        self, asked: _Asked, directives: Directives | None, agents: tuple[str, ...]
    ) -> float:
        """The delay that an origin asks for now. Agents share it, so the slowest decides."""
        if directives is None:
            return 0.0
        if asked.directives is not directives or len(asked.agents) >= _MAX_AGENTS:
            asked.directives = directives
            asked.agents.clear()
        asked.agents.add(agents)
        now = self._clock()
        return max(directives.pace(each).delay(now) for each in asked.agents)

    def _set_delay(self, site: str, origin: Origin, wanted: float) -> None:
        delays = self.asked.setdefault(site, {})
        delays.pop(str(origin), None)
        if wanted:
            delays[str(origin)] = min(wanted, self._settings.crawl_delay_max)
        if not delays:
            del self.asked[site]
        self.throttle.set_delay(site, max(delays.values(), default=0.0))

    def _forget_idle(self) -> None:
        """Forget an origin if they are too many: the one that was not asked for longest.

        Who waits goes on in order: such sites stay, and are as many as requests may wait.
        """
        if len(self._origins) <= self._settings.max_origins:
            return
        for origin in islice(self._origins, len(self._origins) - 1):
            site = self._origins[origin].site
            if not self.throttle.is_in_use(site):
                del self._origins[origin]
                self._set_delay(site, origin, 0.0)
                return

    def _mention(self, origin: Origin, asked: _Asked, wanted: float) -> None:
        if not asked.mentioned:
            count(self._crawler, "robotstxt/paced_count")
        asked.mentioned = wanted
        delay = min(wanted, self._settings.crawl_delay_max)
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
