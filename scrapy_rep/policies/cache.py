"""The policy cache: one current policy per origin, from memory, the store or a fetch.

Each origin has at most one *lookup* at a time, which reads the store and fetches if necessary.
All requests for the origin wait for it. :mod:`.states` decides its next step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, fail, succeed

from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.holding.concurrency import ConcurrencyLimit
from scrapy_rep.observers.observer import Fetched, Observers
from scrapy_rep.observers.policy_log import PolicyLog
from scrapy_rep.observers.stats import count, observe_duration
from scrapy_rep.policies.fetcher import RobotsTxtFetcher
from scrapy_rep.policies.hops import user_agent_of
from scrapy_rep.policies.memory import PolicyMemory
from scrapy_rep.policies.reader import PolicyReader
from scrapy_rep.policies.states import FetchWith, State, UseStored, after_claim, state_of
from scrapy_rep.rep.caching.access import FetchResult, access_result
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.caching.freshness import shared_with, update, validators
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import MAX_LEASE, CrawlStore, Lease, pause, time_of
from scrapy_rep.stores.history import remember
from scrapy_rep.stores.open import open_store_with_breaker
from scrapy_rep.tokens import header_sent_by_default

# At the end of a crawl, the most times to check for lookups, and the seconds between two checks.
_LOOKS_AT_END = 20
_LOOK = 0.05


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
    """The task that gets the policy of one origin: ``LOADING`` or ``FETCHING``."""

    state: State = State.LOADING
    #: The requests that wait for it, and how many of them have not started it.
    waiting: list[Deferred[Policy]] = field(default_factory=list)
    joined: int = 0
    #: Without this reference, the task could be garbage-collected.
    task: Deferred[None] | None = None

    def take_waiting(self) -> list[Deferred[Policy]]:
        """Return the waiting requests and remove them."""
        waiting, self.waiting, self.joined = self.waiting, [], 0
        return waiting


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
        self._memory = PolicyMemory(settings.max_origins)
        self._reader = PolicyReader(crawler, settings, clock, self._log, self._memory)
        self._by_key = self._memory.by_key
        self._lookups: dict[Origin, _Lookup] = {}
        self._is_stopped = False
        limit.on_stop.append(self._stop)
        crawler.signals.connect(self._close, signals.spider_closed)

    # -- for requests -----------------------------------------------------------------

    def peek(self, url: str) -> Policy | None:
        """The policy for *url* if it is in memory, valid and quick to find, else ``None``."""
        end = url.find("/", 8)
        key = url[:end]
        policy = self._by_key.get(key)
        # Without a slash, the key would lack the last character.
        if policy is None or end < 0 or policy.until <= self._clock():
            return None
        self._by_key.move_to_end(key)
        return policy

    def state(self, origin: Origin) -> State:
        """The state of *origin*."""
        lookup = self._lookups.get(origin)
        return state_of(self._current(origin), lookup.state if lookup else None)

    def usable(self, origin: Origin, asking: Request) -> Policy | None:
        """The policy of *origin* in memory, if it is still valid.

        If it is due, it is revalidated in the background on behalf of the request *asking*.
        """
        policy = self._current(origin)
        is_due = policy is not None and policy.due
        if is_due and self.state(origin) is State.USABLE and not self._is_stopped:
            self._start(origin, self._find_out(origin, asking))
        return policy

    def get(self, origin: Origin, asking: Request) -> Deferred[Policy]:
        """The policy of *origin*. If there is no valid one, it is fetched on behalf of *asking*.

        Fails only with :exc:`~scrapy_rep.CrawlStopping`.
        """
        policy = self.usable(origin, asking)
        if policy is not None:
            return succeed(policy)
        if origin in self._lookups:
            return self._join(origin)
        if self._is_stopped:
            return fail(CrawlStopping())
        first: Deferred[Policy] = Deferred()
        self._start(origin, self._find_out(origin, asking), first)
        return first

    async def revalidate(self, origin: Origin, asking: Request) -> Policy:
        """Fetch the robots.txt of *origin* now, on behalf of *asking*, and return the policy.

        The request is conditional if a response is stored. The result is in the store when this
        returns, unless the store fails. If a lookup of *origin* is already under way, its policy
        is returned. Raises only :exc:`~scrapy_rep.CrawlStopping`.
        """
        if origin in self._lookups:
            return await maybe_deferred_to_future(self._join(origin))
        if self._is_stopped:
            raise CrawlStopping
        first: Deferred[Policy] = Deferred()
        finding_out = self._fetch_anyway(origin, asking)
        await maybe_deferred_to_future(self._start(origin, finding_out, first))
        return await maybe_deferred_to_future(first)

    def _current(self, origin: Origin) -> Policy | None:
        """The policy in memory, if it is valid now."""
        policy = self._memory.get(origin)
        if policy is None or policy.until > self._clock():
            return policy
        policy = self._reader.renewed(policy)
        if policy is not None:
            self._memory.put(policy)
        return policy

    # -- lookups ----------------------------------------------------------------------

    def _start(
        self, origin: Origin, finding_out: Coroutine[Any, Any, Policy], *first: Deferred[Policy]
    ) -> Deferred[None]:
        """Start the lookup of *origin*, and return its end. *first* waits for its policy."""
        lookup = self._lookups[origin] = _Lookup(waiting=[*first])
        # A separate task, because the request that started it may be cancelled.
        lookup.task = deferred_from_coro(self._look_up(lookup, origin, finding_out))
        return lookup.task

    def _join(self, origin: Origin) -> Deferred[Policy]:
        """Wait for the lookup of *origin* that is under way."""
        lookup = self._lookups[origin]
        lookup.joined += 1
        lookup.waiting.append(Deferred())
        return lookup.waiting[-1]

    async def _look_up(
        self, lookup: _Lookup, origin: Origin, finding_out: Coroutine[Any, Any, Policy]
    ) -> None:
        policy: Policy | None = None
        try:
            policy = await finding_out
        except CrawlStopping as stopping:
            for waiter in lookup.take_waiting():
                waiter.errback(stopping)
        except Exception:
            self._log.on_bug(origin)
        finally:
            # In any case, no request may wait forever. A bug must not allow anything.
            if policy is not None or lookup.waiting:
                self._serve(policy or self._reader.refusing(origin))
            del self._lookups[origin]

    async def _find_out(self, origin: Origin, asking: Request) -> Policy:
        """The policy of *origin* from the store, or from a fetch if the store has no valid one."""
        waits = 0
        while True:
            entry = self._newer(origin, await self._store.read(origin), asking)
            policy = await self._reader.read(entry, asking)
            if policy is not None and not policy.due:
                return self._stored(policy)
            if policy is not None:
                # No request waits for a revalidation.
                self._serve(policy)
            if self._is_stopped:
                raise CrawlStopping
            claim = await self._store.claim(origin, self._lease_seconds)
            entry = self._newer(origin, claim.entry, asking)
            step = after_claim(await self._reader.read(entry, asking), claim.lease, waits)
            if isinstance(step, FetchWith):
                return await self._fetch(origin, entry, asking, step.lease)
            if isinstance(step, UseStored):
                if step.release is not None:
                    await self._store.release(step.release)
                return self._stored(step.policy, briefly=step.briefly)
            count(self._crawler, "robotstxt/lease_wait_count")
            await self._store.wait_for_update(origin, self._lease_seconds)
            waits += 1

    async def _fetch_anyway(self, origin: Origin, asking: Request) -> Policy:
        """The policy of *origin* from a fetch, even if another worker is fetching it."""
        claim = await self._store.claim(origin, self._lease_seconds)
        entry = self._newer(origin, claim.entry, asking)
        return await self._fetch(origin, entry, asking, claim.lease)

    def _stored(self, policy: Policy, *, briefly: bool = False) -> Policy:
        """Use *policy* from the store; *briefly* if another worker is revalidating it."""
        if briefly:
            until = self._clock() + self._settings.fetch_timeout
            policy = replace(policy, until=min(policy.until, until), due=False)
        else:
            self._log.on_stored(policy)
        self._tell(policy, None, 0.0)
        return policy

    def _newer(
        self, origin: Origin, entry: CacheEntry | None, asking: Request
    ) -> CacheEntry | None:
        """The newer one of *entry*, which is from the store, and the entry in memory."""
        entry = shared_with(entry, user_agent_of(asking) or self._user_agent)
        policy = self._memory.get(origin)
        if policy is None or (entry is not None and time_of(entry) >= time_of(policy.entry)):
            return entry
        return policy.entry

    async def _fetch(
        self, origin: Origin, known: CacheEntry | None, asking: Request, lease: Lease | None
    ) -> Policy:
        lookup, settings = self._lookups[origin], self._settings
        lookup.state = State.FETCHING
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
            policy = await self._reader.read(entry, asking, now) or self._reader.refusing(origin)
        except Exception:
            if lease is not None:
                await self._store.release(lease)
            raise
        observe_duration(self._crawler, f"{origin.stats}/latency", now - started)
        self._log.on_fetch(policy, known, result, access)
        self._tell(policy, result, now - started)
        count(self._crawler, f"{origin.stats}/coalesced_count", lookup.joined)
        # The waiting requests do not need to wait for the store.
        self._serve(policy)
        await self._store.write(entry, lease)
        return policy

    def _tell(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        # Observers count sites, by their robots.txt.
        if policy.origin.refuses:
            self._observers.on_policy(policy, result, seconds)

    def _serve(self, policy: Policy) -> None:
        """Put *policy* into memory and return it to all requests that wait for it."""
        self._memory.put(policy)
        for waiter in self._lookups[policy.origin].take_waiting():
            waiter.callback(policy)

    # -- the end ----------------------------------------------------------------------

    def _stop(self) -> None:
        # No new lookups and fetches: the engine would refuse them, and that is not an outage.
        self._is_stopped = True

    async def _close(self) -> None:
        self._stop()
        # Fetches that have ended are still written to the store.
        for _ in range(_LOOKS_AT_END):
            if not self._lookups:
                break
            await pause(_LOOK)
        await self._store.close()
