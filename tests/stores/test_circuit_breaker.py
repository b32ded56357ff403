from __future__ import annotations

import logging
from typing import Any

import pytest
from scrapy import Spider
from twisted.internet.defer import CancelledError

from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.stores.base import Claim, CrawlStore, StoreError
from scrapy_rep.stores.circuit_breaker import CircuitBreaker
from scrapy_rep.stores.memory import MemoryStore
from tests.stores.examples import HOUR, Clock, entry, origin, run

LEASE = 30.0


class Fragile(MemoryStore):
    """Fails while there is something to fail with."""

    trouble: BaseException | None = None
    uses = 0

    def _use(self) -> None:
        self.uses += 1
        if self.trouble is not None:
            raise self.trouble

    async def read(self, origin: Origin) -> CacheEntry | None:
        self._use()
        return await super().read(origin)

    async def claim(self, origin: Origin, seconds: float) -> Claim:
        self._use()
        return await super().claim(origin, seconds)

    async def write(self, entry: CacheEntry, lease: Any = None) -> None:
        self._use()
        await super().write(entry, lease)

    async def release(self, lease: Any) -> None:
        self._use()
        await super().release(lease)

    async def has_lease(self, origin: Origin) -> bool:
        self._use()
        return await super().has_lease(origin)

    async def close(self) -> None:
        self._use()


@pytest.fixture
def fragile(clock: Clock) -> Fragile:
    return Fragile(10, clock)


@pytest.fixture
def store(fragile: Fragile, clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(lambda: fragile, clock)


@pytest.fixture(autouse=True)
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "scrapy_rep")
    return caplog


def levels(log: pytest.LogCaptureFixture) -> list[str]:
    return [record.levelname for record in log.records]


def test_a_store_that_works(
    store: CircuitBreaker, fragile: Fragile, log: pytest.LogCaptureFixture
) -> None:
    lease = run(store.claim(origin(), LEASE)).lease
    assert run(store.claim(origin(), LEASE)).lease is None
    run(store.write(entry(), lease))
    assert run(store.read(origin())) == entry()
    assert run(store.has_lease(origin())) is False
    assert store.works
    assert fragile.uses == 5
    assert levels(log) == []


def test_any_type_of_store(store: CircuitBreaker) -> None:
    # mypy looks whether it is one.
    stores: list[CrawlStore] = [store]
    assert stores


@pytest.mark.parametrize(
    "trouble",
    [StoreError("x: disk full: free some space"), OSError(5, "oh"), KeyError("x"), ValueError()],
)
def test_a_store_that_fails(
    store: CircuitBreaker,
    fragile: Fragile,
    clock: Clock,
    log: pytest.LogCaptureFixture,
    trouble: Exception,
) -> None:
    run(store.write(entry()))
    fragile.trouble = trouble
    assert run(store.read(origin())) is None
    leases = [run(store.claim(origin(), LEASE)).lease for _ in range(3)]
    assert all(lease is not None and lease.until == clock.now + LEASE for lease in leases)
    assert len(set(leases)) == 3
    for lease in leases:
        assert lease is not None
        run(store.release(lease))
        run(store.write(entry(1), lease))
    run(store.wait_for_update(origin(), 60))
    assert not store.works
    assert fragile.uses == 2
    assert levels(log) == ["WARNING"]


def test_each_method_may_be_the_first_to_fail(clock: Clock) -> None:
    def failing() -> CircuitBreaker:
        fragile = Fragile(10, clock)
        run(MemoryStore.write(fragile, entry()))
        fragile.trouble = StoreError("x")
        return CircuitBreaker(lambda: fragile, clock)

    lease = run(failing().claim(origin(), LEASE)).lease
    assert lease is not None
    assert run(failing().read(origin())) is None
    run(failing().write(entry(), lease))
    run(failing().release(lease))
    run(failing().wait_for_update(origin(), 1))
    assert run(failing().has_lease(origin())) is False
    unused = failing()
    run(unused.close())
    assert unused.works
    used = failing()
    run(used.read(origin()))
    run(used.close())


def test_it_is_tried_again_after_a_while(
    store: CircuitBreaker, fragile: Fragile, clock: Clock, log: pytest.LogCaptureFixture
) -> None:
    fragile.trouble = StoreError("locked")
    run(store.write(entry()))
    clock.now += 29
    run(store.write(entry()))
    assert fragile.uses == 1
    clock.now += 1
    run(store.write(entry()))
    run(store.write(entry()))
    assert fragile.uses == 2
    clock.now += 30
    fragile.trouble = None
    run(store.write(entry()))
    assert run(store.read(origin())) == entry()
    assert store.works
    assert levels(log) == ["WARNING", "INFO"]
    fragile.trouble = StoreError("locked")
    run(store.write(entry()))
    assert levels(log) == ["WARNING", "INFO", "WARNING"]


def test_a_clock_set_back_does_not_prolong_the_wait(
    store: CircuitBreaker, fragile: Fragile, clock: Clock
) -> None:
    fragile.trouble = StoreError("locked")
    run(store.read(origin()))
    clock.now -= HOUR
    fragile.trouble = None
    run(store.write(entry()))
    assert store.works


def test_leases_of_its_own_end_no_others(
    store: CircuitBreaker, fragile: Fragile, clock: Clock
) -> None:
    fragile.trouble = StoreError("locked")
    own = run(store.claim(origin(), LEASE)).lease
    fragile.trouble = None
    run(fragile.claim(origin(), 100))
    clock.now += 30
    run(store.write(entry(0, clock.now), own))
    assert run(store.claim(origin(), LEASE)) == Claim(entry(0, clock.now), None)


def test_a_store_that_cannot_be_made(
    fragile: Fragile, clock: Clock, log: pytest.LogCaptureFixture
) -> None:
    made: list[Fragile] = []

    def make() -> Fragile:
        if not made:
            made.append(fragile)
            raise StoreError("/x: not a directory: set REP_STORE to another file")
        return fragile

    store = CircuitBreaker(make, clock)
    assert made == []
    assert run(store.claim(origin(), LEASE)).lease is not None
    run(store.close())
    clock.now += 30
    run(store.write(entry()))
    assert run(fragile.read(origin())) == entry()
    assert levels(log) == ["WARNING", "INFO"]
    assert (
        "Cannot use the robots.txt store: /x: not a directory: set REP_STORE to another file."
        in log.text
    )


def test_the_log_knows_the_spider(
    fragile: Fragile, clock: Clock, log: pytest.LogCaptureFixture
) -> None:
    spider = Spider("x")
    store = CircuitBreaker(lambda: fragile, clock, spider)
    fragile.trouble = OSError("\x1b[2J\n")
    run(store.read(origin()))
    clock.now += 30
    fragile.trouble = None
    run(store.read(origin()))
    assert [vars(record)["spider"] for record in log.records] == [spider, spider]
    assert "\x1b" not in log.text
    assert "\\x1b[2J\\n" in log.text


@pytest.mark.parametrize("end", [KeyboardInterrupt, CancelledError])
def test_the_end_of_the_process_or_of_the_wait_is_no_trouble_of_the_store(
    store: CircuitBreaker, fragile: Fragile, end: type[BaseException]
) -> None:
    fragile.trouble = end()
    with pytest.raises(end):
        run(store.read(origin()))
    assert store.works


def test_a_store_that_does_not_work_is_closed_too(store: CircuitBreaker, fragile: Fragile) -> None:
    fragile.trouble = StoreError("gone")
    assert run(store.read(origin())) is None
    run(store.close())
    assert fragile.uses == 2
