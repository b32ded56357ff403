"""How fast requests to an origin may follow each other: Crawl-delay and Request-rate.

:class:`Pacing` knows what origins ask for. That it is kept is the work of
:class:`~scrapy_rep.throttling.slots.SlotPacer`.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scrapy import Request
from twisted.internet.defer import Deferred

from scrapy_rep.holding.concurrency import Places
from scrapy_rep.observers.stats import count
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.urls import Origin
from scrapy_rep.throttling.slots import SlotPacer

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.rep.directives import Directives
    from scrapy_rep.rep.policy import Policy
    from scrapy_rep.settings import RepSettings

logger = logging.getLogger(__name__)

# How many different agents of one origin are remembered; then they are learnt anew.
_MAX_AGENTS = 32


@dataclass(slots=True)
class Asked:
    """What an origin asks of all agents that it was visited by."""

    directives: Directives
    #: What was last said in the log of what it asks for.
    mentioned: float
    agents: set[tuple[str, ...]] = field(default_factory=set)

    def delay(self, now: float) -> float:
        """Agents share the origin, so the slowest decides."""
        return max(self.directives.pace(agents).delay(now) for agents in self.agents)


class Pacing:
    """What origins ask for, and what is done about it.

    *clock* gives seconds since the epoch, which Request-rate may depend on.
    """

    def __init__(
        self,
        crawler: Crawler,
        settings: RepSettings,
        clock: Callable[[], float],
        places: Places,
    ) -> None:
        self._crawler = crawler
        self._settings = settings
        self._clock = clock
        self._pacer = SlotPacer(crawler, settings, places)
        #: What origins ask for that are paced.
        self.asked: OrderedDict[str, Asked] = OrderedDict()

    def admit(
        self, policy: Policy, request: Request, agents: tuple[str, ...]
    ) -> Deferred[None] | None:
        """Pace *request*, which *policy* lets *agents* make.

        Returns what has to be awaited before it goes on, if anything has: see
        :meth:`.SlotPacer.keep`.
        """
        origin = str(policy.origin)
        before = self.asked.pop(origin, None)
        if policy.directives is not None:
            asked = before
            if asked is None or asked.directives is not policy.directives:
                asked = Asked(policy.directives, before.mentioned if before else 0.0)
            elif len(asked.agents) >= _MAX_AGENTS:
                asked.agents.clear()
            asked.agents.add(agents)
            wanted = asked.delay(self._clock())
            if wanted:
                self._remember(origin, asked)
                delay = min(wanted, self._settings.crawl_delay_max)
                if before is None:
                    count(self._crawler, "robotstxt/paced_count")
                if wanted != asked.mentioned:
                    asked.mentioned = wanted
                    self._mention(policy.origin, wanted, delay)
                return self._pacer.keep(origin, delay, request)
        if before is not None:
            self._pacer.release(origin)
        return None

    def admit_fetch(self, request: Request) -> Deferred[None] | None:
        """Pace *request* for a robots.txt that is known; as :meth:`admit`."""
        if not self.asked:
            return None
        origin = str(Origin.of(request.url))
        return self._pacer.keep_fetch(origin, request) if origin in self.asked else None

    def has_turn(self, request: Request) -> bool:
        """Whether *request*, which has waited for its turn, may go on; else pace it again."""
        return self._pacer.has_turn(request)

    def _remember(self, origin: str, asked: Asked) -> None:
        self.asked[origin] = asked
        if len(self.asked) > self._settings.max_origins:
            self._pacer.release(self.asked.popitem(last=False)[0])

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
