"""How fast requests to an origin may follow each other: Crawl-delay and Request-rate.

:class:`Pacing` knows what origins ask for, and connects Scrapy's signals to the
:class:`~scrapy_rep.throttling.throttle.Throttle`, which keeps the delay.
"""

from __future__ import annotations

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
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.settings import PacedBy
from scrapy_rep.throttling.memory import PROCESS, MemoryBackend
from scrapy_rep.throttling.pace_log import PaceLog
from scrapy_rep.throttling.throttle import Backend, Throttle

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.rep.directives.directives import Directives
    from scrapy_rep.rep.policy import Policy
    from scrapy_rep.settings import RepSettings

# How many different agents of one origin are remembered; then they are learnt anew.
_MAX_AGENTS = 32


@dataclass(slots=True)
class _Asked:
    """What an origin asks of all agents that it was visited by."""

    directives: Directives | None = None
    agents: set[tuple[str, ...]] = field(default_factory=set)
    #: The delay that was last mentioned in the log.
    mentioned: float = 0.0

    def wanted(self, directives: Directives, agents: tuple[str, ...], now: float) -> float:
        """The delay that is asked for now. Agents share the origin, so the slowest decides."""
        if self.directives is not directives or len(self.agents) >= _MAX_AGENTS:
            self.directives = directives
            self.agents.clear()
        self.agents.add(agents)
        return max(directives.pace(each).delay(now) for each in self.agents)


class Pacing:
    """What origins ask for, and who keeps it.

    *clock* gives seconds since the epoch, which Request-rate may depend on. Origins of one
    host share one site of the throttle: http and https, and all ports. The longest of their
    delays holds for all of them.
    """

    def __init__(self, crawler: Crawler, settings: RepSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        connect = crawler.signals.connect
        # Before the backend does: it is told what ends with the crawl.
        connect(self._close, signals.spider_closed)
        engine = Engine(crawler)
        self.throttle = throttle = Throttle(
            _backend(crawler, settings),
            site_of=_site_of,
            clock=time.monotonic,
            call_later=call_later,
            is_active=engine.is_active,
            hears_all=lambda: engine.reports_sent_requests,
            # No delay is longer.
            remember=max(settings.crawl_delay_max, settings.backoff_max),
            max_sites=settings.max_origins,
        )
        # From the start: what is under way when a site is throttled counts, too.
        connect(throttle.reached, signals.request_reached_downloader)
        connect(throttle.left, signals.request_left_downloader)
        connect(throttle.may_be_gone, signals.response_received)
        self.has_turn = throttle.has_turn
        #: The delays of each site that is paced; empty where there is none.
        self.asked = throttle.asked
        #: What the origins ask for; the one that was not asked for longest first.
        self._origins: OrderedDict[Origin, _Asked] = OrderedDict()
        self.log = PaceLog(crawler, throttle)

    def admit(
        self, policy: Policy, request: Request, agents: tuple[str, ...]
    ) -> Deferred[None] | None:
        """Pace *request*, which *policy* lets *agents* make.

        Returns ``None`` if it may go on now, or what fires when it may. Cancel that if it
        does not wait any more.
        """
        asked = self._origins.pop(policy.origin, None)
        if asked is not None or policy.directives is not None:
            self._ask(policy, agents, asked or _Asked())
        is_components = request.callback is NO_CALLBACK
        turn = self.throttle.admit(request, request.priority, is_components=is_components)
        if turn is not None:
            self.log.held(_site_of(request))
        return turn

    def admit_fetch(self, request: Request) -> Deferred[None] | None:
        """Pace *request*, for a robots.txt, as :meth:`admit` does; it goes first."""
        return self.throttle.admit(request, request.priority, is_fetch=True)

    def _ask(self, policy: Policy, agents: tuple[str, ...], asked: _Asked) -> None:
        origin, now = policy.origin, self._clock()
        wanted = asked.wanted(policy.directives, agents, now) if policy.directives else 0.0
        delay = min(wanted, self._settings.crawl_delay_max)
        if wanted:
            self._origins[origin] = asked
            self._forget_idle()
            is_new = not asked.mentioned
            if is_new and self._settings.pacing is PacedBy.FLEET:
                # Another crawl may have fetched it.
                self.throttle.note(origin.host, max(now - policy.fetched_at, 0.0))
            if wanted != asked.mentioned:
                self.log.asked(policy, agents, wanted, delay, is_new=is_new)
                asked.mentioned = wanted
        self.throttle.set_delay(origin.host, delay, str(origin))

    def _forget_idle(self) -> None:
        """Forget the origin that was not asked for longest, if they are too many."""
        if len(self._origins) <= self._settings.max_origins:
            return
        # Who waits goes on in order: such sites stay, and are as many as requests may wait.
        for origin in islice(self._origins, len(self._origins) - 1):
            if not self.throttle.is_in_use(origin.host):
                del self._origins[origin]
                self.throttle.set_delay(origin.host, 0.0, str(origin))
                return

    def _close(self) -> None:
        self.throttle.close()
        self.log.close()


def _site_of(request: Request) -> str:
    """The host of *request*, whatever download slot it names."""
    return urlparse_cached(request).hostname or ""


def _backend(crawler: Crawler, settings: RepSettings) -> Backend:
    if settings.pacing is PacedBy.LOCAL or settings.store.in_memory:
        sites = OrderedDict() if settings.pacing is PacedBy.LOCAL else PROCESS
        return MemoryBackend(time.monotonic, sites)
    # Not every crawl needs what these import.
    from scrapy_rep.throttling.fleet import FleetBackend

    if settings.store.redis is None:
        from scrapy_rep.throttling.sqlite import SqliteTurns

        return FleetBackend(crawler, SqliteTurns(settings.store.file), time.monotonic)
    from scrapy_rep.throttling.redis import RedisTurns

    store = RedisTurns(settings.store.redis)
    return FleetBackend(crawler, store, time.monotonic, settings.fleet_size or 0)
