"""One current policy per origin: in memory, from the store, or fetched, once however many ask.

:mod:`.states` says in which states an origin can be, and decides what comes next. Here may
live: who waits, and the one *lookup* per origin that asks the store and the server. Here may
not live: the decisions, how an entry is read (:mod:`.reader`), what is kept in memory
(:mod:`.memory`), and what is logged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred, fail, succeed

from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.holding.concurrency import ConcurrencyLimit
from scrapy_rep.observers.observer import Observers
from scrapy_rep.observers.policy_log import PolicyLog
from scrapy_rep.observers.stats import count, observe_duration
from scrapy_rep.policies.fetcher import RobotsTxtFetcher, user_agent_of
from scrapy_rep.policies.memory import PolicyMemory
from scrapy_rep.policies.reader import PolicyReader
from scrapy_rep.policies.states import (
    FetchWith,
    State,
    UseStored,
    after_claim,
    lease_seconds,
    state_of,
)
from scrapy_rep.rep.caching.access import FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.caching.freshness import shared_with, update, validators
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.stores.base import Lease, Store, pause, time_of
from scrapy_rep.stores.history import remember
from scrapy_rep.stores.open import open_store_with_breaker
from scrapy_rep.tokens import header_sent_by_default

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from scrapy_rep.settings import RepSettings

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


@dataclass(slots=True)
class _Lookup:
    """The one task that finds out about an origin."""

    #: The request that has started it, unless that does not wait.
    first: Deferred[Policy] | None
    #: All requests that wait for it.
    waiting: list[Deferred[Policy]]
    #: ``LOADING`` or ``FETCHING``.
    state: State = State.LOADING
    #: Only so that it is not garbage.
    task: Deferred[None] | None = None

    def take_waiting(self) -> list[Deferred[Policy]]:
        """Those that wait, who then wait no longer."""
        waiting, self.waiting = self.waiting, []
        return waiting


class PolicyCache:
    """The policies of one crawl.

    *clock* gives seconds since the epoch, and does not go back. *observers* are told what is
    learned. By default, *fetcher* fetches through the crawl's engine, and *store* is that of
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
        store: Store | None = None,
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
        if store is None:
            store = open_store_with_breaker(
                settings.store, settings.max_origins, clock, crawler.spider
            )
        self._store = store
        self._lease_seconds = lease_seconds(settings.fetch_timeout)
        self._memory = PolicyMemory(settings.max_origins)
        self._reader = PolicyReader(crawler, settings, clock, self._log, self._memory)
        self._by_key = self._memory.by_key
        self._lookups: dict[Origin, _Lookup] = {}
        self._is_stopped = False
        limit.on_stop(self._stop)
        crawler.signals.connect(self._close, signals.spider_closed)

    # -- for requests -----------------------------------------------------------------

    def peek(self, url: str) -> Policy | None:
        """The policy for *url*, where it is in memory, may be used, and is quick to find."""
        end = url.find("/", 8)
        key = url[:end]
        policy = self._by_key.get(key)
        # Without a slash, the key is short of one character.
        if policy is None or end < 0 or policy.until <= self._clock():
            return None
        self._by_key.move_to_end(key)
        return policy

    def state(self, origin: Origin) -> State:
        """The state of *origin*."""
        lookup = self._lookups.get(origin)
        return state_of(self._current(origin), lookup.state if lookup else None)

    def usable(self, origin: Origin, asking: Request) -> Policy | None:
        """The policy of *origin* in memory, if it may still be used.

        Where it is time to, it is revalidated in the background on behalf of *asking*.
        """
        policy = self._current(origin)
        is_due = policy is not None and policy.due
        if is_due and self.state(origin) is State.USABLE and not self._is_stopped:
            self._start(origin, asking, None)
        return policy

    def get(self, origin: Origin, asking: Request) -> Deferred[Policy]:
        """The policy of *origin*, fetched on behalf of *asking* where none can be used.

        Fails only with :exc:`~scrapy_rep.CrawlStopping`.
        """
        policy = self.usable(origin, asking)
        if policy is not None:
            return succeed(policy)
        if self.state(origin) is not State.UNKNOWN:
            return self._join(origin)
        if self._is_stopped:
            return fail(CrawlStopping())
        first: Deferred[Policy] = Deferred()
        self._start(origin, asking, first)
        return first

    async def revalidate(self, origin: Origin, asking: Request) -> Policy:
        """The policy of *origin*, fetched now on behalf of *asking*, whatever is known.

        Conditionally, where a copy is known; when this returns, the store has the
        outcome, if it can be kept. Where a lookup of *origin* is under way, the
        policy that it brings. Raises only :exc:`~scrapy_rep.CrawlStopping`.
        """
        if origin in self._lookups:
            return await maybe_deferred_to_future(self._join(origin))
        if self._is_stopped:
            raise CrawlStopping
        first: Deferred[Policy] = Deferred()
        self._lookups[origin] = _Lookup(first, [first])
        await self._look_up(origin, self._fetch_anyway(origin, asking))
        return await maybe_deferred_to_future(first)

    def _current(self, origin: Origin) -> Policy | None:
        """The policy in memory, if it may be used now."""
        policy = self._memory.get(origin)
        if policy is None or policy.until > self._clock():
            return policy
        policy = self._reader.renewed(policy)
        if policy is not None:
            self._memory.put(policy)
        return policy

    def _join(self, origin: Origin) -> Deferred[Policy]:
        """What the lookup of *origin* that is under way brings."""
        mine: Deferred[Policy] = Deferred()
        self._lookups[origin].waiting.append(mine)
        return mine

    # -- lookups ----------------------------------------------------------------------

    def _start(self, origin: Origin, asking: Request, first: Deferred[Policy] | None) -> None:
        """Start the lookup of *origin*, for which *first* waits, if it is not ``None``."""
        lookup = _Lookup(first, [] if first is None else [first])
        self._lookups[origin] = lookup
        # A task of its own: the request that asked first may be cancelled.
        lookup.task = deferred_from_coro(self._look_up(origin, self._find_out(origin, asking)))

    async def _look_up(self, origin: Origin, finding_out: Coroutine[Any, Any, Policy]) -> None:
        lookup = self._lookups[origin]
        policy: Policy | None = None
        try:
            policy = await finding_out
        except CrawlStopping as stopping:
            # The requests that wait have learned nothing by it.
            for waiter in lookup.take_waiting():
                waiter.errback(stopping)
        except Exception:
            # Nothing in there raises. If it does, nothing is allowed by it.
            self._log.on_bug(origin)
        finally:
            # However it ends, no request is left waiting.
            if policy is not None or lookup.waiting:
                self._serve(policy or self._reader.refusing(origin))
            del self._lookups[origin]

    async def _find_out(self, origin: Origin, asking: Request) -> Policy:
        """What holds for *origin*: by the store if it can tell, else by a fetch."""
        waits = 0
        while True:
            entry = self._newer(origin, await self._store.read(origin), asking)
            policy = await self._reader.read(entry, asking)
            if policy is not None:
                if not policy.due:
                    return self._stored(policy)
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
            await self._store.wait_for_update(origin, self._lease_seconds)
            waits += 1

    async def _fetch_anyway(self, origin: Origin, asking: Request) -> Policy:
        """What holds for *origin* by a fetch, even if somebody else is fetching it."""
        claim = await self._store.claim(origin, self._lease_seconds)
        entry = self._newer(origin, claim.entry, asking)
        return await self._fetch(origin, entry, asking, claim.lease)

    def _stored(self, policy: Policy, *, briefly: bool = False) -> Policy:
        """*policy*, which the store knew; *briefly* while somebody else fetches it again."""
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
        """What is known of *origin*: *entry*, the store's, or that in memory if it is newer.

        What was sent to another User-Agent and varies by it is not known.
        """
        entry = shared_with(entry, user_agent_of(asking) or self._user_agent)
        policy = self._memory.get(origin)
        if policy is None or (entry is not None and time_of(entry) >= time_of(policy.entry)):
            return entry
        return policy.entry

    async def _fetch(
        self, origin: Origin, known: CacheEntry | None, asking: Request, lease: Lease | None
    ) -> Policy:
        lookup = self._lookups[origin]
        lookup.state = State.FETCHING
        count(self._crawler, f"{origin.stats}/request_count")
        started = self._clock()
        try:
            result = await self._fetcher.fetch(origin, asking, known)
            now = self._clock()
            access = self._reader.access(result)
            conditional = bool(validators(known))
            entry = update(known, origin, result, access, now, conditional=conditional)
            entry = remember(known, entry, self._settings.history)
            self._observers.on_fetch(result, access, known, entry, now)
            # As it was when the answer came: the requests that waited for it may use it.
            policy = await self._reader.read(entry, asking, now) or self._reader.refusing(origin)
        except Exception:
            if lease is not None:
                await self._store.release(lease)
            raise
        observe_duration(self._crawler, f"{origin.stats}/latency", now - started)
        self._log.on_fetch(policy, known, result, access)
        self._tell(policy, result, now - started)
        coalesced = sum(waiter is not lookup.first for waiter in lookup.waiting)
        count(self._crawler, f"{origin.stats}/coalesced_count", coalesced)
        # The requests that wait need not wait for the store.
        self._serve(policy)
        await self._store.write(entry, lease)
        return policy

    def _tell(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        # Observers count sites, by their robots.txt.
        if policy.origin.refuses:
            self._observers.on_policy(policy, result, seconds)

    def _serve(self, policy: Policy) -> None:
        """Keep *policy*, and hand it to all requests that wait for it."""
        self._memory.put(policy)
        for waiter in self._lookups[policy.origin].take_waiting():
            waiter.callback(policy)

    # -- the end ----------------------------------------------------------------------

    def _stop(self) -> None:
        # No lookup starts or goes on to a fetch any more: the engine would refuse, which
        # is not an outage.
        self._is_stopped = True

    async def _close(self) -> None:
        self._stop()
        # What has been fetched is still written.
        for _ in range(_LOOKS_AT_END):
            if not self._lookups:
                break
            await pause(_LOOK)
        await self._store.close()
