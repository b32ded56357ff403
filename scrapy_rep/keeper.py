"""One current policy per origin: kept in memory, fetched once however many ask."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep.fetcher import RobotsTxtFetcher
from scrapy_rep.reading import CheckedRules, RulesReader
from scrapy_rep.rep.access import Failure, FetchResult, access_result
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.policy import Policy
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.urls import Origin
from scrapy_rep.stats import count

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.settings import RepSettings

logger = logging.getLogger(__name__)

# Scrapy has the signal since 2.18.
_ROBOTS_PARSED = getattr(signals, "robots_parsed", None)

# How an HTML page begins, where a robots.txt was asked for.
_HTML_STARTS = (b"<!doctype html", b"<html", b"<head")


class PolicyKeeper:
    """Keeps the policies of one crawl; the ones not used for longest go first.

    *clock* gives seconds since the epoch.
    """

    def __init__(
        self, crawler: Crawler, settings: RepSettings, clock: Callable[[], float] = time.time
    ) -> None:
        self._crawler = crawler
        self._settings = settings
        self._clock = clock
        self._fetcher = RobotsTxtFetcher(crawler, settings)
        self._reader = RulesReader(crawler, settings)
        self._policies: OrderedDict[Origin, Policy] = OrderedDict()
        #: Who waits for the flight to an origin that is under way.
        self._waiting: dict[Origin, list[Deferred[Policy]]] = {}
        # Only so that nothing under way is garbage.
        self._flights: set[Deferred[None]] = set()

    def current(self, origin: Origin) -> Policy | None:
        """The policy of *origin*, if there is one that may still be used."""
        policy = self._policies.get(origin)
        if policy is None or policy.fresh_until <= self._clock():
            return None
        self._policies.move_to_end(origin)
        return policy

    async def obtain(self, origin: Origin, asking: Request) -> Policy:
        """The policy of *origin*, fetched on behalf of *asking* where none is current.

        Raises nothing.
        """
        policy = self.current(origin)
        if policy is not None:
            return policy
        waiting = self._waiting.get(origin)
        mine: Deferred[Policy] = Deferred()
        if waiting is not None:
            waiting.append(mine)
        else:
            self._waiting[origin] = [mine]
            # A flight of its own: whoever asked first may be cancelled.
            flight = deferred_from_coro(self._fly(origin, asking))
            self._flights.add(flight)
            flight.addBoth(lambda _: self._flights.discard(flight))
        return await maybe_deferred_to_future(mine)

    async def _fly(self, origin: Origin, asking: Request) -> None:
        policy: Policy | None = None
        try:
            count(self._crawler, "robotstxt/request_count")
            result = await self._fetcher.fetch(origin, asking)
            policy = await self._land(origin, result, asking)
        except Exception:
            # Nothing in there raises. If it does, nothing is allowed by it.
            logger.exception(
                "Failed to get the robots.txt of %(origin)s, its pages are refused for now",
                {"origin": printable(str(origin))},
                extra={"spider": self._crawler.spider},
            )
        finally:
            # However it ends, nobody is left waiting.
            if policy is None:
                policy = self._refusing(origin)
            self._keep(policy)
            for waiter in self._waiting.pop(origin):
                waiter.callback(policy)

    async def _land(self, origin: Origin, result: FetchResult, asking: Request) -> Policy:
        access = access_result(result, self._settings.dialect, self._settings.status_overrides)
        count(self._crawler, f"robotstxt/access_count/{access.value}")
        rules: CheckedRules | None = None
        if access is Access.SUCCESSFUL:
            rules = self._reader.read(origin, result.body)
            self._mention_oddities(origin, result, rules)
            await self._tell_parsed(rules, asking)
        elif access is Access.UNREACHABLE:
            self._log(
                logging.WARNING,
                "%(url)s is unreachable (%(detail)s): pages of this origin are refused; "
                "it is asked again when %(delay)g s are over and a page is asked for",
                origin,
                detail=result.detail,
                delay=self._settings.retry_delay,
            )
        return self._policy(origin, result, access, rules)

    def _refusing(self, origin: Origin) -> Policy:
        """What holds where we have failed, not the server."""
        failed = FetchResult(origin.robots_url, failure=Failure.NO_ANSWER, detail="internal error")
        return self._policy(origin, failed, Access.UNREACHABLE, None)

    def _policy(
        self, origin: Origin, result: FetchResult, access: Access, rules: CheckedRules | None
    ) -> Policy:
        now = self._clock()
        unreachable = access is Access.UNREACHABLE
        lifetime = self._settings.retry_delay if unreachable else self._settings.max_age
        return Policy(
            origin=origin,
            access=access,
            dialect=self._settings.dialect,
            rules=rules,
            url=result.url,
            status=result.status,
            fetched_at=now,
            fresh_until=now + lifetime,
            detail=result.detail,
        )

    def _mention_oddities(self, origin: Origin, result: FetchResult, rules: CheckedRules) -> None:
        if len(result.body) > self._settings.max_size:
            count(self._crawler, "robotstxt/truncated_count")
            self._log(
                logging.INFO,
                "%(url)s has more than %(size)d octets; the rest is ignored (REP_MAX_SIZE)",
                origin,
                size=self._settings.max_size,
            )
        if result.body.lstrip()[:20].lower().startswith(_HTML_STARTS):
            count(self._crawler, "robotstxt/html_count")
            self._log(
                logging.WARNING,
                "%(url)s is answered with an HTML page; lines in it that are no rules are ignored",
                origin,
            )

    async def _tell_parsed(self, rules: CheckedRules, asking: Request) -> None:
        if _ROBOTS_PARSED is not None and rules.robot_parser is not None:
            await self._crawler.signals.send_catch_log_async(
                _ROBOTS_PARSED, robotparser=rules.robot_parser, request=asking
            )

    def _keep(self, policy: Policy) -> None:
        self._policies[policy.origin] = policy
        self._policies.move_to_end(policy.origin)
        while len(self._policies) > self._settings.max_origins:
            self._policies.popitem(last=False)

    def _log(self, level: int, message: str, origin: Origin, **values: object) -> None:
        values["url"] = printable(origin.robots_url)
        logger.log(level, message, values, extra={"spider": self._crawler.spider})
