"""One current policy per origin: in memory, from the store, or fetched, once however many ask."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, succeed

from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.holding.concurrency import Places
from scrapy_rep.observers.observer import Observers
from scrapy_rep.observers.stats import count, observe_duration
from scrapy_rep.parsers.chain import CheckedRules, ParserChain
from scrapy_rep.policies.fetcher import RobotsTxtFetcher, user_agent_of
from scrapy_rep.rep.access import Failure, FetchResult, access_result
from scrapy_rep.rep.cache_entry import CacheEntry, Outage
from scrapy_rep.rep.dialects import Access, WhenUnreachable
from scrapy_rep.rep.directives import Directives
from scrapy_rep.rep.freshness import (
    Evaluation,
    Freshness,
    evaluate,
    retry_at,
    shared_with,
    update,
)
from scrapy_rep.rep.policy import Policy, Rules
from scrapy_rep.rep.text import printable
from scrapy_rep.rep.urls import Origin
from scrapy_rep.stores.base import MAX_LEASE, Lease, pause, time_of
from scrapy_rep.stores.open import open_store_with_breaker
from scrapy_rep.tokens import header_sent_by_default

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.settings import RepSettings

logger = logging.getLogger(__name__)

# Scrapy has the signal since 2.18.
_ROBOTS_PARSED = getattr(signals, "robots_parsed", None)

# How an HTML page begins, where a robots.txt was asked for.
_HTML_STARTS = (b"<!doctype html", b"<html", b"<head")

# What policies may take in memory, in octets, by a rough estimate for each: its
# objects, and the index over its rules. What does not fit is in the store.
_ROOM = 20 * 2**20
_TAKES_AT_LEAST = 2_000
_TAKES_PER_OCTET = 5

# How often somebody else's fetch is waited for before we fetch as well.
_WAITS_FOR_OTHERS = 3

# At the end of a crawl, how often there is a look at what is under way, and the
# seconds between two looks.
_LOOKS_AT_END = 20
_LOOK = 0.05


def steady(clock: Callable[[], float] = time.time) -> Callable[[], float]:
    """*clock*, seconds since the epoch, but never going back.

    It goes on with the processor's clock where somebody sets the other one
    back, or a policy would be used for as much longer.
    """
    monotonic = time.monotonic
    offset = clock() - monotonic()

    def now() -> float:
        # Every request asks, and max() would take as long as all of this.
        told, least = clock(), offset + monotonic()
        return told if told > least else least  # noqa: FURB136

    return now


class PolicyCache:
    """Keeps the policies of one crawl; the ones not used for longest go first.

    *clock* gives seconds since the epoch, and does not go back. *observers* are
    told what is learned.
    """

    def __init__(
        self,
        crawler: Crawler,
        settings: RepSettings,
        clock: Callable[[], float],
        places: Places | None = None,
        observers: Observers | None = None,
    ) -> None:
        places = places or Places(crawler)
        self._crawler = crawler
        self._observers = observers or Observers(crawler)
        self._settings = settings
        self._clock = clock
        self._bounds = settings.bounds(started=clock())
        self._user_agent = header_sent_by_default(settings, crawler.spider)
        self._fetcher = RobotsTxtFetcher(crawler, settings, places)
        self._reader = ParserChain(crawler, settings)
        self._store = open_store_with_breaker(
            settings.store, settings.max_origins, clock, crawler.spider
        )
        # By origin, as text: so a URL begins, if nothing about it is unusual.
        self._policies: OrderedDict[str, Policy] = OrderedDict()
        self._taken = 0
        #: Who waits for the flight to an origin that is under way.
        self._waiting: dict[Origin, list[Deferred[Policy]]] = {}
        # Only so that nothing under way is garbage.
        self._flights: set[Deferred[None]] = set()
        self._closed = False
        places.on_stop(self._stop)
        crawler.signals.connect(self._close, signals.spider_closed)

    def peek(self, url: str) -> Policy | None:
        """The policy for *url*, where it is in memory, may be used, and is quick to find."""
        end = url.find("/", 8)
        key = url[:end]
        policy = self._policies.get(key)
        # Without a slash, the key is short of one character.
        if policy is None or end < 0 or policy.until <= self._clock():
            return None
        self._policies.move_to_end(key)
        return policy

    def usable(self, origin: Origin, asking: Request) -> Policy | None:
        """The policy of *origin* in memory, if it may still be used.

        Where it is time to, it is refreshed in the background on behalf of *asking*.
        """
        policy = self._policies.get(str(origin))
        if policy is None or policy.until > self._clock():
            return policy
        evaluation = self._judge(policy.entry)
        access = evaluation.access
        if access is None or (access is Access.SUCCESSFUL and policy.rules is None):
            return None
        rules = policy.rules if access is Access.SUCCESSFUL else None
        policy = self._policy(origin, policy.entry, evaluation, access, rules)
        self._keep(policy)
        if policy.due and origin not in self._waiting:
            self._start_flight(origin, asking, [])
        return policy

    def get(self, origin: Origin, asking: Request) -> Deferred[Policy]:
        """The policy of *origin*, fetched on behalf of *asking* where none can be used.

        Fails only with :exc:`~scrapy_rep.CrawlStopping`.
        """
        policy = self.usable(origin, asking)
        if policy is not None:
            return succeed(policy)
        mine: Deferred[Policy] = Deferred()
        waiting = self._waiting.get(origin)
        if waiting is None:
            self._start_flight(origin, asking, [mine])
        else:
            count(self._crawler, "robotstxt/coalesced_count")
            waiting.append(mine)
        return mine

    async def revalidate(self, origin: Origin, asking: Request) -> Policy:
        """The policy of *origin*, fetched now on behalf of *asking*, whatever is known.

        Conditionally, where a copy is known; when this returns, the store has the
        outcome, if it can be kept. Where a flight to *origin* is under way, the
        policy that it brings. Raises only :exc:`~scrapy_rep.CrawlStopping`.
        """
        mine: Deferred[Policy] = Deferred()
        if origin in self._waiting:
            self._waiting[origin].append(mine)
        else:
            landed: Deferred[None] = Deferred()
            flight = self._start_flight(origin, asking, [mine], anew=True)
            flight.addBoth(landed.callback)
            await maybe_deferred_to_future(landed)
        return await maybe_deferred_to_future(mine)

    # -- flights ------------------------------------------------------------------

    def _start_flight(
        self, origin: Origin, asking: Request, waiting: list[Deferred[Policy]], anew: bool = False
    ) -> Deferred[None]:
        self._waiting[origin] = waiting
        find_out = self._fetch_anew if anew else self._find_out
        # A flight of its own: whoever asked first may be cancelled.
        flight = deferred_from_coro(self._fly(origin, find_out(origin, asking)))
        self._flights.add(flight)
        flight.addBoth(lambda _: self._flights.discard(flight))
        return flight

    async def _fly(self, origin: Origin, finding_out: Coroutine[Any, Any, Policy]) -> None:
        policy: Policy | None = None
        try:
            policy = await finding_out
        except CrawlStopping as stopping:
            # Those who wait have learnt nothing by it.
            waiting, self._waiting[origin] = self._waiting[origin], []
            for waiter in waiting:
                waiter.errback(stopping)
        except Exception:
            # Nothing in there raises. If it does, nothing is allowed by it.
            logger.exception(
                "Failed to get the robots.txt of %(origin)s, its pages are refused for now",
                {"origin": printable(str(origin))},
                extra={"spider": self._crawler.spider},
            )
        finally:
            # However it ends, nobody is left waiting.
            if policy is not None or self._waiting[origin]:
                self._serve(policy or self._refusing(origin))
            del self._waiting[origin]

    async def _find_out(self, origin: Origin, asking: Request) -> Policy:
        """What holds for *origin*: by the store if it can tell, else by a fetch."""
        entry = self._newer(origin, await self._store.read(origin), asking)
        for _ in range(_WAITS_FOR_OTHERS):
            policy = await self._policy_of(origin, entry, asking)
            if policy is not None:
                if not policy.due:
                    return self._as_stored(policy)
                # Nobody waits for a refresh.
                self._serve(policy)
            claim = await self._store.claim(origin, self._lease_time())
            entry = self._newer(origin, claim.entry, asking)
            policy = await self._policy_of(origin, entry, asking)
            if policy is not None and (claim.lease is None or not policy.due):
                # Somebody else has just done it, or is at it.
                if claim.lease is not None:
                    await self._store.release(claim.lease)
                if not policy.due:
                    return self._as_stored(policy)
                until = self._clock() + self._settings.fetch_timeout
                policy = replace(policy, until=min(policy.until, until))
                self._observers.on_policy(policy, None, 0.0)
                return policy
            if claim.lease is not None:
                return await self._fetch(origin, entry, asking, claim.lease)
            await self._store.wait_for_update(origin, self._lease_time())
            if self._closed:
                raise CrawlStopping
            entry = self._newer(origin, await self._store.read(origin), asking)
        return await self._fetch(origin, entry, asking, None)

    async def _fetch_anew(self, origin: Origin, asking: Request) -> Policy:
        """What holds for *origin* by a fetch, even if somebody else is fetching it."""
        claim = await self._store.claim(origin, self._lease_time())
        entry = self._newer(origin, claim.entry, asking)
        return await self._fetch(origin, entry, asking, claim.lease)

    def _as_stored(self, policy: Policy) -> Policy:
        """*policy*, which the store knew and nobody had to fetch."""
        count(self._crawler, "robotstxt/store_count")
        self._observers.on_policy(policy, None, 0.0)
        if policy.access is Access.UNREACHABLE:
            self._log(
                logging.WARNING,
                "%(url)s was unreachable when it was asked last, %(age).0f s ago (%(detail)s): "
                "%(so)s for another %(left).0f s",
                policy.origin,
                age=self._clock() - policy.fetched_at,
                detail=policy.detail,
                so=_REFUSED[policy.when_unreachable],
                left=policy.until - self._clock(),
            )
        return policy

    def _lease_time(self) -> float:
        return min(2 * self._settings.fetch_timeout, MAX_LEASE)

    def _newer(
        self, origin: Origin, stored: CacheEntry | None, asking: Request
    ) -> CacheEntry | None:
        """What is known of *origin*: *stored*, or what is in memory if that is newer.

        What was sent to another User-Agent and varies by it is not known.
        """
        stored = shared_with(stored, user_agent_of(asking) or self._user_agent)
        policy = self._policies.get(str(origin))
        if policy is None or (stored is not None and time_of(stored) >= time_of(policy.entry)):
            return stored
        return policy.entry

    async def _fetch(
        self, origin: Origin, known: CacheEntry | None, asking: Request, lease: Lease | None
    ) -> Policy:
        count(self._crawler, "robotstxt/request_count")
        started = self._clock()
        try:
            result, conditional = await self._fetcher.fetch(origin, asking, known)
        except CrawlStopping:
            if lease is not None:
                await self._store.release(lease)
            raise
        seconds = self._clock() - started
        observe_duration(self._crawler, "robotstxt/latency", seconds)
        access = access_result(result, self._settings.dialect, self._settings.status_overrides)
        now = self._clock()
        entry = update(known, origin, result, access, now, conditional=conditional)
        self._mention(origin, known, entry, access, result)
        # As it was when the answer came: whoever waited for it may use it.
        policy = await self._policy_of(origin, entry, asking, now) or self._refusing(origin)
        self._observers.on_policy(policy, result, seconds)
        # Those who wait need not wait for the store.
        self._serve(policy)
        await self._store.write(entry, lease)
        return policy

    def _mention(
        self,
        origin: Origin,
        known: CacheEntry | None,
        entry: CacheEntry,
        access: Access,
        result: FetchResult,
    ) -> None:
        """Count and log what a fetch has brought."""
        before = known.outage if known else None
        if entry.outage is None:
            confirmed = entry.copy is not None and entry.copy.result is not result
            what = "confirmed_count" if confirmed else f"access_count/{access.value}"
            count(self._crawler, f"robotstxt/{what}")
            if before is not None:
                self._log(logging.INFO, "%(url)s can be reached again", origin)
            return
        count(self._crawler, f"robotstxt/access_count/{access.value}")
        evaluation = self._judge(entry, entry.outage.last_at)
        self._log(
            logging.WARNING if before is None else logging.DEBUG,
            "%(url)s is unreachable (%(detail)s): %(so)s. It is asked again when %(delay).0f s "
            "are over and a page of the origin is asked for",
            origin,
            detail=entry.outage.result.detail,
            so=_SO.get(evaluation.standing) or _REFUSED[self._settings.when_unreachable],
            delay=retry_at(entry.outage, self._bounds) - entry.outage.last_at,
        )

    # -- policies -----------------------------------------------------------------

    def _judge(self, entry: CacheEntry | None, now: float | None = None) -> Evaluation:
        settings = self._settings
        now = self._clock() if now is None else now
        return evaluate(entry, settings.dialect, settings.status_overrides, self._bounds, now)

    async def _policy_of(
        self, origin: Origin, entry: CacheEntry | None, asking: Request, now: float | None = None
    ) -> Policy | None:
        """What *entry* let us do at *now*, ``None`` where a fetch must come first."""
        evaluation = self._judge(entry, now)
        if entry is None or evaluation.access is None:
            return None
        rules: Rules | None = None
        if evaluation.access is Access.SUCCESSFUL and evaluation.copy is not None:
            rules = await self._rules(origin, evaluation.copy.result, asking)
        return self._policy(origin, entry, evaluation, evaluation.access, rules)

    def _policy(
        self,
        origin: Origin,
        entry: CacheEntry,
        evaluation: Evaluation,
        access: Access,
        rules: Rules | None,
    ) -> Policy:
        robots = rules.robots if isinstance(rules, CheckedRules) else None
        return Policy(
            origin=origin,
            access=access,
            dialect=self._settings.dialect,
            rules=rules,
            entry=entry,
            copy=evaluation.copy,
            until=evaluation.until,
            due=evaluation.due,
            when_unreachable=self._settings.when_unreachable,
            robots=robots,
            directives=Directives.of(robots, self._settings.honoured)
            if robots is not None
            else None,
        )

    def _refusing(self, origin: Origin) -> Policy:
        """What holds where we have failed, not the server."""
        failed = FetchResult(origin.robots_url, failure=Failure.NO_ANSWER, detail="internal error")
        now = self._clock()
        return Policy(
            origin=origin,
            access=Access.UNREACHABLE,
            dialect=self._settings.dialect,
            rules=None,
            entry=CacheEntry(origin, outage=Outage(failed, since=now, last_at=now, attempts=1)),
            copy=None,
            until=now + self._settings.retry_delay,
        )

    async def _rules(self, origin: Origin, result: FetchResult, asking: Request) -> Rules:
        before = self._policies.get(str(origin))
        if before and before.rules and before.copy and before.copy.result.body == result.body:
            return before.rules
        rules = self._reader.read(origin, result)
        self._mention_oddities(origin, result)
        await self._tell_parsed(rules, asking)
        return rules

    def _mention_oddities(self, origin: Origin, result: FetchResult) -> None:
        if result.cut or len(result.body) > self._settings.max_size:
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

    # -- memory -------------------------------------------------------------------

    def _serve(self, policy: Policy) -> None:
        """Keep *policy*, and hand it to all who wait for it."""
        self._keep(policy)
        waiting, self._waiting[policy.origin] = self._waiting[policy.origin], []
        for waiter in waiting:
            waiter.callback(policy)

    def _keep(self, policy: Policy) -> None:
        key = str(policy.origin)
        before = self._policies.pop(key, None)
        self._taken += _takes(policy) - (_takes(before) if before else 0)
        self._policies[key] = policy
        while len(self._policies) > self._settings.max_origins or (
            self._taken > _ROOM and len(self._policies) > 1
        ):
            _, oldest = self._policies.popitem(last=False)
            self._taken -= _takes(oldest)

    def _stop(self) -> None:
        # Flights that wait for others ask nobody any more: the engine would refuse,
        # which is no outage.
        self._closed = True

    async def _close(self) -> None:
        self._stop()
        # Those that were at it may write what they have got.
        for _ in range(_LOOKS_AT_END):
            if not self._flights:
                break
            await pause(_LOOK)
        await self._store.close()

    def _log(self, level: int, message: str, origin: Origin, **values: object) -> None:
        values["url"] = printable(origin.robots_url)
        logger.log(level, message, values, extra={"spider": self._crawler.spider})


# What an outage means for the pages of an origin.
_SO = {
    Freshness.OUTAGE: "what was known before goes on being used",
    Freshness.GIVEN_UP: "so it has been for long, and it counts as if there were none",
}
_REFUSED = {
    WhenUnreachable.DISALLOW: "pages of this origin are refused",
    WhenUnreachable.DEFER: "requests for pages of this origin are kept",
    WhenUnreachable.ALLOW: "pages of this origin are let through all the same",
}


def _takes(policy: Policy) -> int:
    """About how many octets *policy* takes in memory."""
    body = policy.copy.result.body if policy.copy else b""
    return _TAKES_AT_LEAST + _TAKES_PER_OCTET * len(body)
