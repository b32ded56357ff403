"""The policy cache: one current policy per origin, from memory, the store or a fetch.

Each origin has at most one *lookup* at a time, which reads the store and fetches if necessary.
All requests for the origin wait for it. :mod:`.states` has the states and decides the next step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, succeed

from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.holding.concurrency import ConcurrencyLimit
from scrapy_rep.observers.observer import Fetched, Observers
from scrapy_rep.observers.policy_log import PolicyLog
from scrapy_rep.observers.stats import count, observe_duration
from scrapy_rep.policies.fetcher import RobotsTxtFetcher
from scrapy_rep.policies.hops import user_agent_of
from scrapy_rep.policies.memory import MAX_BYTES, bytes_of
from scrapy_rep.policies.reader import PolicyReader
from scrapy_rep.policies.states import FetchWith, UseStored, after_claim
from scrapy_rep.rep.caching.access import access_result
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.caching.freshness import shared_with, update, validators
from scrapy_rep.rep.caching.recently_used import RecentlyUsed
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import MAX_LEASE, CrawlStore, Lease, pause_while, time_of
from scrapy_rep.stores.history import remember
from scrapy_rep.stores.open import open_store_with_breaker
from scrapy_rep.tokens import header_sent_by_default


def steady(clock: Callable[[], float] = time.time) -> Callable[[], float]:
    """A clock like *clock*, in seconds since the epoch, that continues if *clock* is set back.

    Otherwise, a policy would be used for too long.
    """
    monotonic = time.monotonic
    offset = clock() - monotonic()

    def now() -> float:
        # Called for every request: max() would double its time.
        current, least = clock(), offset + monotonic()
        return current if current > least else least  # noqa: FURB136

    return now


@dataclass(slots=True)
class _Lookup:
    """The task that gets the policy of one origin, and the requests that wait for it."""

    waiting: list[Deferred[Policy]]
    #: How many of them have not started it.
    joined: int = 0
    #: Without this reference, the task could be garbage-collected.
    task: Deferred[None] = field(init=False)


class PolicyCache:
    """The policies of one crawl.

    *clock* returns seconds since the epoch and never goes back. *observers* receive each new
    policy. By default, *fetcher* uses the engine of the crawl, and *store* is configured by
    *settings*.
    """

    def __init__(
        self,
        crawler: Crawler,
        settings: RepSettings,
        clock: Callable[[], float],
        limit: ConcurrencyLimit | None = None,
        observers: Observers | None = None,
        *,
        fetcher: RobotsTxtFetcher | None = None,
        store: CrawlStore | None = None,
    ) -> None:
        limit = limit or ConcurrencyLimit.from_crawler(crawler)
        self._crawler = crawler
        self._settings = settings
        self._clock = clock
        self._observers = observers or Observers(crawler)
        self._user_agent = header_sent_by_default(settings, crawler.spider)
        self._log = PolicyLog(crawler, settings, clock)
        self._fetcher = fetcher or RobotsTxtFetcher(
            crawler, settings, limit, self._log, self._observers
        )
        self._store = store or open_store_with_breaker(
            settings.store, settings.max_origins, clock, crawler.spider
        )
        # As long as a fetch may take, including its time in queues.
        self._lease_seconds = min(2 * settings.fetch_timeout, MAX_LEASE)
        # By origin as text, with which usual URLs start.
        self._memory = RecentlyUsed[str, Policy](bytes_of, MAX_BYTES, settings.max_origins)
        self._reader = PolicyReader(crawler, settings, clock(), self._log, self._memory)
        self._lookups: dict[Origin, _Lookup] = {}
        self._is_stopped = False
        limit.on_stop.append(self._stop)
        crawler.signals.connect(self._close, signals.spider_closed)

    # -- for requests -----------------------------------------------------------------

    def peek(self, url: str) -> Policy | None:
        """The policy for *url* if it is in memory, valid and quick to find, else ``None``."""
        end = url.find("/", 8)
        key = url[:end]
        policy = self._memory.get(key)
        # Without a slash, the key would lack the last character.
        if policy is None or end < 0 or policy.until <= self._clock():
            return None
        self._memory.move_to_end(key)
        return policy

    def usable(self, origin: Origin, asking: Request) -> Policy | None:
        """The policy of *origin* in memory, if it is still valid.

        If it is due, it is revalidated in the background on behalf of the request *asking*.
        """
        policy = self._memory.use(str(origin))
        if policy is not None and policy.until <= (now := self._clock()):
            policy = self._reader.renewed(policy, now)
            if policy is not None:
                self._memory.put(str(origin), policy)
        is_due = policy is not None and policy.due
        if is_due and origin not in self._lookups and not self._is_stopped:
            self._start(origin, self._find_out(origin, asking))
        return policy

    def get(self, origin: Origin, asking: Request) -> Deferred[Policy]:
        """The policy of *origin*. If there is no valid one, it is fetched on behalf of *asking*.

        Fails only with :exc:`~scrapy_rep.CrawlStopping`.
        """
        policy = self.usable(origin, asking)
        return self._wait(origin, asking, self._find_out) if policy is None else succeed(policy)

    async def revalidate(self, origin: Origin, asking: Request) -> Policy:
        """Fetch the robots.txt of *origin* now, on behalf of *asking*, and return the policy.

        The request is conditional if a response is stored. The result is in the store when this
        returns, unless the store fails. If a lookup of *origin* is already under way, its policy
        is returned. Raises only :exc:`~scrapy_rep.CrawlStopping`.
        """
        waiter = self._wait(origin, asking, self._fetch_anyway)
        if origin in self._lookups:
            await maybe_deferred_to_future(self._lookups[origin].task)
        return await maybe_deferred_to_future(waiter)

    # -- lookups ----------------------------------------------------------------------

    def _wait(
        self,
        origin: Origin,
        asking: Request,
        find: Callable[[Origin, Request], Coroutine[Any, Any, Policy]],
    ) -> Deferred[Policy]:
        """Wait for the lookup of *origin* that is under way, or for a new one by *find*."""
        waiter: Deferred[Policy] = Deferred()
        lookup = self._lookups.get(origin)
        if lookup is not None:
            lookup.joined += 1
            lookup.waiting.append(waiter)
        elif self._is_stopped:
            waiter.errback(CrawlStopping())
        else:
            self._start(origin, find(origin, asking), waiter)
        return waiter

    def _start(
        self, origin: Origin, finding: Coroutine[Any, Any, Policy], *first: Deferred[Policy]
    ) -> None:
        """Start the lookup of *origin*. *first* waits for its policy."""
        lookup = self._lookups[origin] = _Lookup([*first])
        # A separate task, because the request that started it may be cancelled.
        lookup.task = deferred_from_coro(self._look_up(lookup, origin, finding))

    async def _look_up(
        self, lookup: _Lookup, origin: Origin, finding: Coroutine[Any, Any, Policy]
    ) -> None:
        policy: Policy | None = None
        try:
            policy = await finding
        except CrawlStopping as stopping:
            for waiter in lookup.waiting:
                waiter.errback(stopping)
            lookup.waiting.clear()
        except Exception:
            policy = None if lookup.waiting else self._memory.get(str(origin))
            self._log.on_bug(origin, copy_in_use=policy is not None)
            if policy is not None:
                policy = self._not_due(policy, self._settings.retry_delay)
        finally:
            # In any case, no request may wait forever. A bug must not allow anything.
            if policy is not None or lookup.waiting:
                self._serve(policy or self._reader.refusing(origin, self._clock()))
            del self._lookups[origin]

    async def _find_out(self, origin: Origin, asking: Request) -> Policy:
        """The policy of *origin* from the store, or from a fetch if the store has no valid one."""
        waits = 0
        while True:
            entry = self._newer(origin, await self._store.read(origin), asking)
            policy = await self._reader.read(entry, asking, self._clock())
            if policy is not None:
                if not policy.due:
                    return self._stored(policy)
                # No request waits for a revalidation.
                self._serve(policy)
            if self._is_stopped:
                raise CrawlStopping
            claim = await self._store.claim(origin, self._lease_seconds)
            entry = self._newer(origin, claim.entry, asking)
            policy = await self._reader.read(entry, asking, self._clock())
            step = after_claim(policy, claim.lease, waits)
            if isinstance(step, FetchWith):
                return await self._fetch(origin, entry, asking, step.lease)
            if isinstance(step, UseStored):
                if claim.lease is not None:
                    await self._store.release(claim.lease)
                return self._stored(step.policy)
            count(self._crawler, "robotstxt/lease_wait_count")
            await self._store.wait_for_update(origin, self._lease_seconds)
            waits += 1

    async def _fetch_anyway(self, origin: Origin, asking: Request) -> Policy:
        """The policy of *origin* from a fetch, even if another worker is fetching it."""
        claim = await self._store.claim(origin, self._lease_seconds)
        entry = self._newer(origin, claim.entry, asking)
        return await self._fetch(origin, entry, asking, claim.lease)

    def _newer(
        self, origin: Origin, entry: CacheEntry | None, asking: Request
    ) -> CacheEntry | None:
        """The newer one of *entry*, which is from the store, and the entry in memory."""
        entry = shared_with(entry, user_agent_of(asking) or self._user_agent)
        policy = self._memory.use(str(origin))
        if policy is None or (entry is not None and time_of(entry) >= time_of(policy.entry)):
            return entry
        return policy.entry

    def _stored(self, policy: Policy) -> Policy:
        """Use *policy* from the store; briefly if it is due, because another worker is fetching."""
        if policy.due:
            policy = self._not_due(policy, self._settings.fetch_timeout)
        else:
            self._log.on_stored(policy)
        if policy.origin.refuses:
            self._observers.on_policy(policy, None, 0.0)
        return policy

    def _not_due(self, policy: Policy, seconds: float) -> Policy:
        """*policy* for the next *seconds*, in which it is not revalidated."""
        return replace(policy, until=min(policy.until, self._clock() + seconds), due=False)

    async def _fetch(
        self, origin: Origin, known: CacheEntry | None, asking: Request, lease: Lease | None
    ) -> Policy:
        settings = self._settings
        count(self._crawler, f"{origin.stats}/request_count")
        started = self._clock()
        try:
            result = await self._fetcher.fetch(origin, asking, known)
            now = self._clock()
            access = access_result(result, settings.dialect, settings.status_overrides)
            conditional = bool(validators(known))
            entry = update(known, origin, result, access, now, conditional=conditional)
            entry = remember(known, entry, settings.history)
            self._observers.on_fetch(Fetched(result, access, known, entry, now))
            # Evaluated at the time of the response, so the waiting requests may use it.
            policy = await self._reader.read(entry, asking, now)
            policy = policy or self._reader.refusing(origin, now)
        except Exception:
            if lease is not None:
                await self._store.release(lease)
            raise
        observe_duration(self._crawler, f"{origin.stats}/latency", now - started)
        self._log.on_fetch(policy, known, result, access)
        # Observers count sites, by their robots.txt.
        if origin.refuses:
            self._observers.on_policy(policy, result, now - started)
        count(self._crawler, f"{origin.stats}/coalesced_count", self._lookups[origin].joined)
        # The waiting requests do not need to wait for the store.
        self._serve(policy)
        await self._store.write(entry, lease)
        return policy

    def _serve(self, policy: Policy) -> None:
        """Put *policy* into memory and return it to all requests that wait for it."""
        self._memory.put(str(policy.origin), policy)
        lookup = self._lookups[policy.origin]
        waiting, lookup.waiting, lookup.joined = lookup.waiting, [], 0
        for waiter in waiting:
            waiter.callback(policy)

    # -- the end ----------------------------------------------------------------------

    def _stop(self) -> None:
        # No new lookups and fetches: the engine would refuse them, and that is not an outage.
        self._is_stopped = True

    async def _close(self) -> None:
        self._stop()
        # Fetches that have ended are still written to the store.
        await pause_while(lambda: self._lookups)
        await self._store.close()
