"""The policy cache without a crawl: its store and its fetches end when the test says."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import pytest
import pytest_twisted
from scrapy import Request, Spider, signals
from scrapy.settings import Settings
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred

from scrapy_rep.engine import Engine
from scrapy_rep.exceptions import CrawlStopping
from scrapy_rep.holding.concurrency import ConcurrencyLimit
from scrapy_rep.observers.observer import Observer, Observers
from scrapy_rep.pages.tdmrep import TdmOrigin
from scrapy_rep.policies.cache import PolicyCache, steady
from scrapy_rep.policies.fetcher import RobotsTxtFetcher
from scrapy_rep.rep.caching.access import Failure, FetchResult
from scrapy_rep.rep.caching.cache_entry import CacheEntry, StoredResponse
from scrapy_rep.rep.dialects import Access
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.policy import Policy
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import Claim, Lease, decode, encode, pause
from scrapy_rep.stores.history import copies_of
from scrapy_rep.stores.memory import MemoryStore
from tests.policy_examples import NOON

ORIGIN = Origin.of("https://example.com/")
ASKING = Request("https://example.com/page")
ALLOW = b"User-agent: *\nDisallow:\n"
REFUSE = b"User-agent: *\nDisallow: /\n"
HOUR = 3600.0
DAY = 24 * HOUR


class Clock:
    now = NOON

    def __call__(self) -> float:
        return self.now


class Fetches(RobotsTxtFetcher):
    """Fetches that end when the test says."""

    def __init__(self) -> None:
        self.known: list[CacheEntry | None] = []
        self.under_way: deque[Deferred[FetchResult]] = deque()

    async def fetch(
        self, origin: Origin, asking: Request, known: CacheEntry | None = None
    ) -> FetchResult:
        self.known.append(known)
        mine: Deferred[FetchResult] = Deferred()
        self.under_way.append(mine)
        return await maybe_deferred_to_future(mine)

    @property
    def count(self) -> int:
        return len(self.known)

    def answer(self, body: bytes = ALLOW, status: int = 200) -> None:
        """The oldest fetch that is under way ends with this."""
        self.under_way.popleft().callback(FetchResult(ORIGIN.robots_url, status, body))

    def fail(self, error: Exception | None = None) -> None:
        if error is not None:
            self.under_way.popleft().errback(error)
            return
        failed = FetchResult(ORIGIN.robots_url, failure=Failure.NO_ANSWER, detail="no answer")
        self.under_way.popleft().callback(failed)


class SlowStore(MemoryStore):
    """A store whose operations the test may hold, and that tells what it was asked."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(1000, clock)
        self.calls: list[str] = []
        self.seconds: list[float] = []
        self.held: dict[str, Deferred[None]] = {}

    def hold(self, name: str) -> Deferred[None]:
        """Hold what is called like that until the Deferred fires."""
        self.held[name] = Deferred()
        return self.held[name]

    async def _called(self, name: str) -> None:
        self.calls.append(name)
        if name in self.held:
            await maybe_deferred_to_future(self.held.pop(name))

    async def read(self, origin: Origin) -> CacheEntry | None:
        await self._called("read")
        return await super().read(origin)

    async def claim(self, origin: Origin, seconds: float) -> Claim:
        await self._called("claim")
        self.seconds.append(seconds)
        return await super().claim(origin, seconds)

    async def write(self, entry: CacheEntry, lease: Lease | None = None) -> None:
        await self._called("write")
        await super().write(entry, lease)

    async def release(self, lease: Lease) -> None:
        await self._called("release")
        await super().release(lease)

    async def wait_for_update(self, origin: Origin, seconds: float, *_: object) -> None:
        self.seconds.append(seconds)
        await self._called("wait")

    async def close(self) -> None:
        self.calls.append("close")

    def put(self, entry: CacheEntry) -> None:
        """Know *entry*, from now on."""
        self._values[entry.origin] = encode(entry)

    def get(self, origin: Origin) -> CacheEntry | None:
        """What is known of *origin*."""
        value = self._values.get(origin)
        return decode(origin, value) if value else None

    @property
    def is_leased(self) -> bool:
        return self._leased(ORIGIN)


class Seen(Observer):
    """An observer that keeps what it is told of policies."""

    observes_allowed = False

    def __init__(self) -> None:
        self.policies: list[tuple[Policy, bool]] = []

    def on_policy(self, policy: Policy, result: FetchResult | None, seconds: float) -> None:
        self.policies.append((policy, result is not None))

    def on_decision(self, *_: Any) -> None:
        raise AssertionError


class Crawl:
    """A policy cache, and all around it that a test moves."""

    def __init__(self, **settings: Any) -> None:
        self.clock = Clock()
        self.store = SlowStore(self.clock)
        self.fetches = Fetches()
        self.crawler = get_crawler(Spider, {"REP_STORE": "memory"})
        self.limit = ConcurrencyLimit(Engine(self.crawler))
        self.seen = Seen()
        self.cache = PolicyCache(
            self.crawler,
            RepSettings.read(Settings(settings)),
            self.clock,
            self.limit,
            Observers(self.crawler, [self.seen]),
            fetcher=self.fetches,
            store=self.store,
        )
        self.results: list[Any] = []

    def get(self) -> list[Any]:
        """Ask for the policy; it is in the list when it comes, or what was raised."""
        came: list[Any] = []
        self.cache.get(ORIGIN, ASKING).addBoth(came.append)
        return came

    async def got(self) -> Policy:
        """The policy, where no fetch is needed."""
        came = self.get()
        await settled()
        (policy,) = came
        assert isinstance(policy, Policy)
        return policy

    async def fetched(self, body: bytes = ALLOW) -> Policy:
        """The policy, by a fetch."""
        came = self.get()
        await settled()
        self.fetches.answer(body)
        await settled()
        (policy,) = came
        assert isinstance(policy, Policy)
        return policy

    def state(self) -> str:
        """The state of the origin, by the definitions in policies/states.py."""
        policy = self.cache.peek(ASKING.url)
        in_lookup = ORIGIN in self.cache._lookups  # noqa: SLF001
        if policy is None:
            return ("fetching" if self.fetches.under_way else "loading") if in_lookup else "unknown"
        if policy.access is Access.UNREACHABLE:
            return "unreachable"
        return "revalidating" if in_lookup else "usable"

    def stat(self, name: str) -> Any:
        assert self.crawler.stats is not None
        return self.crawler.stats.get_value(f"robotstxt/{name}")

    def stop(self) -> None:
        for callback in self.limit.on_stop:
            callback()

    def close(self) -> Deferred[Any]:
        return deferred_from_coro(
            self.crawler.signals.send_catch_log_async(
                signals.spider_closed, spider=self.crawler.spider, reason="finished"
            )
        )


def entry(body: bytes = ALLOW, at: float = NOON) -> CacheEntry:
    result = FetchResult(ORIGIN.robots_url, 200, body)
    return CacheEntry(ORIGIN, StoredResponse(result, at, at))


def body_of(policy: Policy) -> bytes:
    assert policy.stored is not None
    return policy.stored.result.body


async def settled() -> None:
    """Let everything happen that can."""
    for _ in range(20):
        await deferred_from_coro(pause(0))


# -- states -----------------------------------------------------------------------


@pytest_twisted.ensureDeferred
async def test_from_unknown_to_usable_and_revalidated() -> None:
    one = Crawl()
    assert one.state() == "unknown"
    reading = one.store.hold("read")
    first = one.get()
    assert one.state() == "loading"
    reading.callback(None)
    await settled()
    assert one.state() == "fetching"
    assert first == []
    one.fetches.answer()
    await settled()
    assert one.state() == "usable"
    assert len(first) == 1
    one.clock.now += 23 * HOUR
    assert (await one.got()) is not first[0]
    await settled()
    assert one.state() == "revalidating"
    one.fetches.answer(REFUSE)
    await settled()
    assert one.state() == "usable"
    assert body_of(await one.got()) == REFUSE
    one.clock.now += DAY
    assert one.state() == "unknown"


@pytest_twisted.ensureDeferred
async def test_unreachable_until_the_next_attempt() -> None:
    one = Crawl()
    came = one.get()
    await settled()
    one.fetches.fail()
    await settled()
    assert one.state() == "unreachable"
    assert came[0].access is Access.UNREACHABLE
    one.clock.now += 59
    assert (await one.got()) is came[0]
    assert one.state() == "unreachable"
    one.clock.now += 1
    assert one.state() == "unknown"
    assert (await one.fetched()).access is Access.SUCCESSFUL


# -- who waits ----------------------------------------------------------------------


@pytest_twisted.ensureDeferred
async def test_one_fetch_however_many_ask() -> None:
    one = Crawl()
    came = [one.get() for _ in range(5)]
    await settled()
    assert one.fetches.count == 1
    one.fetches.answer()
    await settled()
    assert [len(each) for each in came] == [1] * 5
    assert len({id(each[0]) for each in came}) == 1
    # All but the one that has started it.
    assert one.stat("coalesced_count") == 4


@pytest_twisted.ensureDeferred
async def test_waits_for_the_store_are_not_counted_as_waits_for_a_fetch() -> None:
    one = Crawl()
    one.store.put(entry())
    reading = one.store.hold("read")
    came = [one.get() for _ in range(5)]
    reading.callback(None)
    await settled()
    assert [len(each) for each in came] == [1] * 5
    assert one.stat("coalesced_count") is None
    assert one.stat("store_count") == 1


@pytest_twisted.ensureDeferred
async def test_requests_that_got_a_due_policy_are_not_counted_as_waits_for_a_fetch() -> None:
    one = Crawl()
    one.store.put(entry())
    one.clock.now += 23 * HOUR
    reading = one.store.hold("read")
    came = [one.get() for _ in range(3)]
    reading.callback(None)
    await settled()
    assert [len(each) for each in came] == [1] * 3
    one.fetches.answer()
    await settled()
    assert one.stat("coalesced_count") is None


@pytest_twisted.ensureDeferred
async def test_no_request_waits_for_a_slow_store_to_write() -> None:
    one = Crawl()
    writing = one.store.hold("write")
    came = one.get()
    await settled()
    one.fetches.answer()
    await settled()
    assert one.store.calls[-1] == "write"
    assert len(came) == 1
    assert len(one.get()) == 1
    writing.callback(None)
    await settled()
    assert one.store.get(ORIGIN) is not None


@pytest_twisted.ensureDeferred
async def test_no_request_waits_for_a_revalidation_and_there_is_one_at_a_time() -> None:
    one = Crawl()
    await one.fetched()
    one.clock.now += 23 * HOUR
    for _ in range(3):
        assert body_of(await one.got()) == ALLOW
    assert one.fetches.count == 2
    writing = one.store.hold("write")
    one.fetches.answer()
    await settled()
    one.clock.now += 22 * HOUR
    # Due again, while the last answer is on its way to the store.
    assert len(one.get()) == 1
    await settled()
    assert one.fetches.count == 2
    writing.callback(None)
    await settled()
    assert len(one.get()) == 1
    await settled()
    assert one.fetches.count == 3
    one.fetches.answer()
    await settled()


@pytest_twisted.ensureDeferred
async def test_a_due_policy_of_the_store_is_used_while_it_is_revalidated() -> None:
    one = Crawl()
    one.store.put(entry())
    one.clock.now += 23 * HOUR
    claiming = one.store.hold("claim")
    came = one.get()
    await settled()
    assert body_of(came[0]) == ALLOW
    assert one.state() == "revalidating"
    claiming.callback(None)
    await settled()
    one.fetches.answer(REFUSE)
    await settled()
    assert body_of(await one.got()) == REFUSE


@pytest_twisted.ensureDeferred
async def test_a_request_that_no_longer_waits_does_not_end_the_fetch() -> None:
    one = Crawl()
    cancelled = one.cache.get(ORIGIN, ASKING)
    cancelled.addErrback(lambda _: None)
    came = one.get()
    cancelled.cancel()
    await settled()
    one.fetches.answer()
    await settled()
    assert len(came) == 1
    assert one.state() == "usable"


@pytest_twisted.ensureDeferred
async def test_who_revalidates_waits_for_the_store_and_fetches_whatever_is_known() -> None:
    one = Crawl()
    await one.fetched()
    writing = one.store.hold("write")
    came: list[Policy] = []
    deferred_from_coro(one.cache.revalidate(ORIGIN, ASKING)).addCallback(came.append)
    await settled()
    one.fetches.answer(REFUSE)
    await settled()
    assert one.fetches.count == 2
    assert came == []
    writing.callback(None)
    await settled()
    assert body_of(came[0]) == REFUSE


@pytest_twisted.ensureDeferred
async def test_who_revalidates_waits_for_the_lookup_that_is_under_way() -> None:
    one = Crawl()
    first = one.get()
    came: list[Policy] = []
    deferred_from_coro(one.cache.revalidate(ORIGIN, ASKING)).addCallback(came.append)
    await settled()
    assert one.fetches.count == 1
    one.fetches.answer()
    await settled()
    assert came == first
    assert len(came) == 1


@pytest_twisted.ensureDeferred
async def test_a_304_confirms_what_is_known() -> None:
    one = Crawl()
    known = entry()
    assert known.stored is not None
    result = replace(known.stored.result, headers=(("etag", '"1"'),))
    one.store.put(replace(known, stored=replace(known.stored, result=result)))
    one.clock.now += DAY
    came = one.get()
    await settled()
    one.fetches.answer(b"", status=304)
    await settled()
    assert body_of(came[0]) == ALLOW
    assert came[0].fetched_at == NOON + DAY


@pytest.mark.parametrize(("user_agent", "fetches"), [("A", 0), ("B", 1), (None, 1)])
@pytest_twisted.ensureDeferred
async def test_an_answer_that_varies_holds_for_the_user_agent_of_the_request(
    user_agent: str | None, fetches: int
) -> None:
    one = Crawl()
    known = entry()
    assert known.stored is not None
    result = replace(known.stored.result, headers=(("vary", "User-Agent"),), user_agent="A")
    one.store.put(replace(known, stored=replace(known.stored, result=result)))
    headers = {"User-Agent": user_agent} if user_agent else None
    one.cache.get(ORIGIN, Request(ASKING.url, headers=headers))
    await settled()
    assert one.fetches.count == fetches
    for _ in range(fetches):
        one.fetches.answer()
    await settled()


# -- time -------------------------------------------------------------------------


def test_time_goes_on_when_the_clock_is_set_back() -> None:
    clock = Clock()
    now = steady(clock)
    assert now() >= NOON
    clock.now += HOUR
    assert now() == NOON + HOUR
    clock.now -= DAY
    assert now() >= NOON
    assert now() < NOON + HOUR


@pytest_twisted.ensureDeferred
async def test_a_lifetime_counts_from_the_end_of_the_answer() -> None:
    one = Crawl(REP_MAX_AGE=100)
    came = one.get()
    await settled()
    one.clock.now += 99
    one.fetches.answer()
    await settled()
    (policy,) = came
    assert policy.fetched_at == NOON + 99
    one.clock.now += 49
    assert (await one.got()) is policy
    one.clock.now += 50
    assert body_of(await one.got()) == ALLOW
    await settled()
    one.clock.now += 1
    assert one.state() == "fetching"
    one.fetches.answer()
    await settled()


@pytest_twisted.ensureDeferred
async def test_requests_that_waited_for_a_short_lived_policy_get_it() -> None:
    one = Crawl(REP_MAX_AGE=1)

    def be_slow(*_: Any) -> None:
        one.clock.now += 2

    one.seen.on_fetch = be_slow  # type: ignore[assignment, method-assign]
    assert (await one.fetched()).access is Access.SUCCESSFUL


@pytest_twisted.ensureDeferred
async def test_an_outage_counts_from_its_end() -> None:
    one = Crawl()
    came = one.get()
    await settled()
    one.clock.now += 15
    one.fetches.fail()
    await settled()
    assert came[0].until == NOON + 15 + 60


@pytest_twisted.ensureDeferred
async def test_observers_are_told_of_each_new_policy() -> None:
    one = Crawl()
    one.store.put(entry())
    stored = await one.got()
    assert one.seen.policies == [(stored, False)]
    one.clock.now += DAY
    fetched = await one.fetched()
    assert one.seen.policies == [(stored, False), (fetched, True)]


@pytest_twisted.ensureDeferred
async def test_observers_are_not_told_of_other_files() -> None:
    one = Crawl()
    came: list[Any] = []
    one.cache.get(TdmOrigin.beside(ORIGIN), ASKING).addCallback(came.append)
    await settled()
    one.fetches.answer(b"[]")
    await settled()
    assert len(came) == 1
    assert one.seen.policies == []


@pytest_twisted.ensureDeferred
async def test_nor_of_other_files_in_the_store() -> None:
    one = Crawl()
    came: list[Any] = []
    other = TdmOrigin.beside(ORIGIN)
    result = FetchResult(other.robots_url, 200, b"[]")
    one.store.put(CacheEntry(other, StoredResponse(result, NOON, NOON)))
    one.cache.get(other, ASKING).addCallback(came.append)
    await settled()
    assert len(came) == 1
    assert one.fetches.count == 0
    assert one.seen.policies == []


# -- leases -----------------------------------------------------------------------


@pytest.mark.parametrize(("timeout", "seconds"), [(20, 40), (1801, 3600)])
@pytest_twisted.ensureDeferred
async def test_a_lease_lasts_as_long_as_a_fetch_may_and_ends_with_it(
    timeout: float, seconds: float
) -> None:
    one = Crawl(REP_FETCH_TIMEOUT=timeout)
    one.get()
    await settled()
    assert one.store.seconds == [seconds]
    assert one.store.is_leased
    one.fetches.answer()
    await settled()
    assert not one.store.is_leased
    assert "release" not in one.store.calls


@pytest_twisted.ensureDeferred
async def test_a_lease_that_is_not_needed_is_given_back() -> None:
    one = Crawl()
    claiming = one.store.hold("claim")
    came = one.get()
    await settled()
    # Somebody else has fetched it since it was looked for.
    one.store.put(entry())
    claiming.callback(None)
    await settled()
    assert len(came) == 1
    assert one.fetches.count == 0
    assert one.store.calls == ["read", "claim", "release"]
    assert not one.store.is_leased


@pytest_twisted.ensureDeferred
async def test_a_lease_is_given_back_when_the_crawl_stops_before_the_answer() -> None:
    one = Crawl()
    came = one.get()
    await settled()
    one.fetches.fail(CrawlStopping())
    await settled()
    assert isinstance(came[0].value, CrawlStopping)
    assert not one.store.is_leased
    assert one.store.get(ORIGIN) is None
    assert one.state() == "unknown"


@pytest_twisted.ensureDeferred
async def test_a_lease_is_given_back_after_a_bug_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    one = Crawl()
    came = one.get()
    await settled()
    one.fetches.fail(RuntimeError("a bug"))
    await settled()
    assert came[0].access is Access.UNREACHABLE
    assert not one.store.is_leased
    assert "All pages of this origin are refused until the next attempt." in caplog.text


@pytest_twisted.ensureDeferred
async def test_a_bug_of_ours_in_a_revalidation_leaves_the_policy_in_use(
    caplog: pytest.LogCaptureFixture,
) -> None:
    one = Crawl()
    await one.fetched()
    one.clock.now += 23 * HOUR
    await one.got()
    await settled()
    one.fetches.fail(RuntimeError("a bug"))
    await settled()
    policy = one.cache.peek(ASKING.url)
    assert policy is not None
    assert body_of(policy) == ALLOW
    assert not one.store.is_leased
    assert "The cached robots.txt stays in use." in caplog.text
    assert "refused" not in caplog.text
    # REP_RETRY_DELAY: not with each request.
    for seconds, fetches in ((0, 2), (59, 2), (1, 3)):
        one.clock.now += seconds
        assert body_of(await one.got()) == ALLOW
        await settled()
        assert one.fetches.count == fetches
    one.fetches.answer()


@pytest_twisted.ensureDeferred
async def test_somebody_elses_fetch_is_waited_for_three_times() -> None:
    one = Crawl(REP_FETCH_TIMEOUT=20)
    await MemoryStore.claim(one.store, ORIGIN, 1000)
    came = one.get()
    await settled()
    assert one.store.calls == ["read", "claim", "wait"] * 3 + ["read", "claim"]
    assert one.stat("lease_wait_count") == 3
    # No longer than the other one's fetch may take.
    assert set(one.store.seconds) == {40}
    assert one.fetches.count == 1
    one.fetches.answer()
    await settled()
    assert len(came) == 1
    # The lease is that of somebody else.
    assert one.store.is_leased


@pytest_twisted.ensureDeferred
async def test_what_somebody_else_has_fetched_is_used() -> None:
    one = Crawl()
    lease = (await MemoryStore.claim(one.store, ORIGIN, 1000)).lease
    waiting = one.store.hold("wait")
    came = one.get()
    await settled()
    await MemoryStore.write(one.store, entry(REFUSE), lease)
    waiting.callback(None)
    await settled()
    assert body_of(came[0]) == REFUSE
    assert one.fetches.count == 0
    assert one.stat("store_count") == 1


@pytest_twisted.ensureDeferred
async def test_what_somebody_else_revalidates_is_used_for_as_long_as_a_fetch_may_take() -> None:
    one = Crawl(REP_FETCH_TIMEOUT=20)
    one.store.put(entry())
    one.clock.now += 23 * HOUR
    lease = (await MemoryStore.claim(one.store, ORIGIN, 1000)).lease
    policy = await one.got()
    await settled()
    assert policy.due
    assert one.fetches.count == 0
    assert one.stat("store_count") is None
    await MemoryStore.write(one.store, entry(REFUSE, one.clock.now), lease)
    one.clock.now += 19
    assert body_of(await one.got()) == ALLOW
    one.clock.now += 1
    assert body_of(await one.got()) == ALLOW
    # Looked for again, in the background.
    assert body_of(await one.got()) == REFUSE
    assert one.fetches.count == 0


@pytest_twisted.ensureDeferred
async def test_what_somebody_else_revalidates_is_not_used_beyond_its_lifetime() -> None:
    one = Crawl(REP_FETCH_TIMEOUT=20)
    one.store.put(entry())
    one.clock.now += DAY - 10
    await MemoryStore.claim(one.store, ORIGIN, 1000)
    await one.got()
    await settled()
    assert one.state() == "usable"
    one.clock.now += 10
    assert one.state() == "unknown"


# -- memory and store ---------------------------------------------------------------


@pytest_twisted.ensureDeferred
async def test_newer_memory_beats_an_older_store() -> None:
    one = Crawl()
    await one.fetched(REFUSE)
    older = entry(ALLOW, NOON - 10)
    one.store.put(older)
    one.clock.now += DAY - 1
    # In the background, the store is read again.
    assert body_of(await one.got()) == REFUSE
    assert one.fetches.known[-1] is not None
    assert one.fetches.known[-1] == entry(REFUSE)
    one.fetches.answer()
    await settled()


@pytest_twisted.ensureDeferred
async def test_a_newer_store_beats_older_memory() -> None:
    one = Crawl()
    await one.fetched(REFUSE)
    one.clock.now += 23 * HOUR
    one.store.put(entry(ALLOW, one.clock.now))
    await one.got()
    assert body_of(await one.got()) == ALLOW
    assert one.fetches.count == 1


@pytest.mark.parametrize(("history", "bodies"), [(0, []), (1, [ALLOW])])
@pytest_twisted.ensureDeferred
async def test_the_store_gets_earlier_copies(history: int, bodies: list[bytes]) -> None:
    one = Crawl(REP_HISTORY=history)
    await one.fetched()
    one.clock.now += DAY
    await one.fetched(REFUSE)
    entry = one.store.get(ORIGIN)
    assert entry is not None
    assert [stored.result.body for stored in copies_of(entry)] == [REFUSE, *bodies]


@pytest_twisted.ensureDeferred
async def test_peek_finds_what_may_be_used() -> None:
    one = Crawl()
    assert one.cache.peek(ASKING.url) is None
    policy = await one.fetched()
    assert one.cache.peek(ASKING.url) is policy
    assert one.cache.peek("https://example.com") is None
    # Without a slash, it is not of the origin that it starts with.
    assert one.cache.peek("https://example.comm") is None
    assert one.cache.peek("https://other.example/page") is None
    one.clock.now = policy.until
    assert one.cache.peek(ASKING.url) is None


@pytest_twisted.ensureDeferred
async def test_peek_finds_what_may_be_used_on() -> None:
    one = Crawl()
    policy = await one.fetched()
    one.clock.now = policy.until
    one.stop()
    assert one.cache.peek(ASKING.url) is None
    policy = await one.got()
    assert policy.due
    assert one.cache.peek(ASKING.url) is policy


@pytest.mark.parametrize("by", ["peek", "usable"])
@pytest_twisted.ensureDeferred
async def test_what_was_used_last_stays(by: str) -> None:
    one = Crawl(REP_MAX_ORIGINS=2)
    await one.fetched()
    for name in ("second", "third"):
        if by == "peek":
            assert one.cache.peek(ASKING.url) is not None
        else:
            assert one.cache.usable(ORIGIN, ASKING) is not None
        one.cache.get(Origin.of(f"https://{name}.example/"), ASKING)
        await settled()
        one.fetches.answer()
        await settled()
    assert one.cache.peek(ASKING.url) is not None
    assert one.cache.peek("https://second.example/") is None
    assert one.cache.peek("https://third.example/") is not None


@pytest_twisted.ensureDeferred
async def test_policies_in_memory_have_a_bound_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    # A policy takes 2,000, its URL and five times its file.
    monkeypatch.setattr("scrapy_rep.policies.cache.MAX_BYTES", 5000)
    one = Crawl()
    for number in range(3):
        one.cache.get(Origin.of(f"https://{number}.example/"), ASKING)
        await settled()
        one.fetches.answer(b"")
        await settled()
    found = [one.cache.peek(f"https://{number}.example/") is not None for number in range(3)]
    assert found == [False, True, True]


# -- the end ------------------------------------------------------------------------


@pytest_twisted.ensureDeferred
async def test_no_lookup_starts_after_a_stop() -> None:
    one = Crawl()
    one.stop()
    came = one.get()
    await settled()
    assert isinstance(came[0].value, CrawlStopping)
    with pytest.raises(CrawlStopping):
        await one.cache.revalidate(ORIGIN, ASKING)
    assert one.store.calls == []
    assert one.state() == "unknown"


@pytest_twisted.ensureDeferred
async def test_nothing_is_revalidated_after_a_stop() -> None:
    one = Crawl()
    await one.fetched()
    one.store.calls.clear()
    one.clock.now += 23 * HOUR
    one.stop()
    assert body_of(await one.got()) == ALLOW
    await settled()
    assert one.store.calls == []
    assert one.fetches.count == 1
    assert one.state() == "usable"


@pytest_twisted.ensureDeferred
async def test_no_lookup_starts_after_the_end() -> None:
    one = Crawl()
    await one.close()
    assert isinstance(one.get()[0].value, CrawlStopping)


@pytest.mark.parametrize("step", ["read", "wait"])
@pytest_twisted.ensureDeferred
async def test_a_lookup_that_is_loading_does_not_go_on_to_a_fetch_after_a_stop(step: str) -> None:
    one = Crawl()
    await MemoryStore.claim(one.store, ORIGIN, 1000)
    held = one.store.hold(step)
    came = one.get()
    await settled()
    one.stop()
    held.callback(None)
    await settled()
    assert isinstance(came[0].value, CrawlStopping)
    assert one.fetches.count == 0
    assert one.store.calls.count("claim") == (step == "wait")


@pytest_twisted.ensureDeferred
async def test_a_close_waits_for_writes() -> None:
    one = Crawl()
    writing = one.store.hold("write")
    one.get()
    await settled()
    one.fetches.answer()
    await settled()
    closed = one.close()
    await settled()
    assert "close" not in one.store.calls
    writing.callback(None)
    await closed
    assert one.store.calls[-1] == "close"
    assert one.store.get(ORIGIN) is not None


@pytest_twisted.ensureDeferred
async def test_a_close_does_not_wait_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_rep.stores.base._LOOK_AT_END", 0.0)
    one = Crawl()
    writing = one.store.hold("write")
    one.get()
    await settled()
    one.fetches.answer()
    await settled()
    await one.close()
    assert one.store.calls[-1] == "close"
    writing.callback(None)
    await settled()
