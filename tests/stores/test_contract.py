"""What is true of every store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import pytest_twisted
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.stores.base import MAX_BODIES, MAX_LEASE, CrawlStore, Lease, Store
from scrapy_rep.stores.circuit_breaker import CircuitBreaker
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.sqlite import SqliteStore
from tests.stores.blocking import BlockingStore, LoopInThread, SharedClock, redis_store
from tests.stores.examples import DAY, HOUR, Clock, entry, origin, outage, run, run_all
from tests.stores.redis_server import RedisServer

LEASE = 30.0

#: Those that can be listed and emptied.
can_be_listed = pytest.mark.parametrize("kind", ["memory", "sqlite", "redis"])


@pytest.fixture(params=["memory", "sqlite", "guarded", "redis"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def clock(kind: str, request: pytest.FixtureRequest) -> Clock:
    if kind != "redis":
        return Clock()
    return SharedClock(request.getfixturevalue("fresh_redis"))


@pytest.fixture
def store(
    kind: str, clock: Clock, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[CrawlStore]:
    if isinstance(clock, SharedClock):
        server: RedisServer = request.getfixturevalue("fresh_redis")
        with LoopInThread() as loop:
            blocking = BlockingStore(redis_store(server, clock), loop)
            yield blocking
            run(blocking.close())
        return
    kinds: dict[str, Callable[[], CrawlStore]] = {
        "memory": lambda: MemoryStore(1000, clock),
        "sqlite": lambda: SqliteStore(tmp_path / "x.sqlite", clock),
        "guarded": lambda: CircuitBreaker(lambda: SqliteStore(tmp_path / "x.sqlite", clock), clock),
    }
    store = kinds[kind]()
    yield store
    run(store.close())


def lease_on(store: Store, number: int = 0, seconds: float = LEASE) -> Lease:
    lease = run(store.claim(origin(number), seconds)).lease
    assert lease is not None
    return lease


def test_nothing_is_known_at_first(store: Store) -> None:
    assert run(store.read(origin())) is None


@can_be_listed
def test_nothing_is_there_at_first(store: Store) -> None:
    assert run_all(store.origins()) == []
    assert run(store.delete(origin())) is False
    assert run(store.clear()) == 0


def test_what_is_written_is_read(store: Store) -> None:
    run(store.write(entry(1)))
    run(store.write(outage(2)))
    assert run(store.read(origin(1))) == entry(1)
    assert run(store.read(origin(2))) == outage(2)
    assert run(store.read(origin(3))) is None


def test_a_claim_gives_facts_and_lease(store: Store, clock: Clock) -> None:
    run(store.write(entry()))
    claim = run(store.claim(origin(), LEASE))
    assert claim.entry == entry()
    assert claim.lease is not None
    assert claim.lease.origin == origin()
    assert claim.lease.until == clock.now + LEASE


def test_one_lease_at_a_time(store: Store) -> None:
    lease_on(store)
    again = run(store.claim(origin(), LEASE))
    assert again.lease is None
    assert lease_on(store, 1) is not None


def test_facts_come_without_a_lease_too(store: Store) -> None:
    run(store.write(entry()))
    lease_on(store)
    assert run(store.claim(origin(), LEASE)).entry == entry()


def test_writing_ends_the_lease(store: Store) -> None:
    run(store.write(entry(), lease_on(store)))
    assert run(store.claim(origin(), LEASE)).entry == entry()


def test_release_ends_the_lease(store: Store) -> None:
    run(store.release(lease_on(store)))
    assert lease_on(store) is not None
    assert run(store.read(origin())) is None


def test_a_lease_expires(store: Store, clock: Clock) -> None:
    first = lease_on(store)
    clock.now += LEASE - 1
    assert run(store.claim(origin(), LEASE)).lease is None
    clock.now += 1
    second = lease_on(store)
    assert second.token != first.token


def test_no_lease_is_for_ever(store: Store, clock: Clock) -> None:
    assert lease_on(store, seconds=10 * DAY).until == clock.now + MAX_LEASE
    assert run(store.claim(origin(), LEASE)).lease is None


def test_the_clock_is_set_back_an_hour(store: Store, clock: Clock) -> None:
    run(store.write(entry(1, clock.now), lease_on(store, 1)))
    lease_on(store)
    clock.now -= HOUR
    assert lease_on(store) is not None
    # Nor does what came later by the wrong clock bar what comes now.
    run(store.write(entry(1, clock.now, b"new")))
    assert run(store.read(origin(1))) == entry(1, clock.now, b"new")


def test_the_clock_is_set_back_while_somebody_fetches(store: Store, clock: Clock) -> None:
    run(store.write(entry(0, clock.now)))
    lease = lease_on(store)
    clock.now -= HOUR
    run(store.write(entry(0, clock.now, b"new"), lease))
    assert run(store.read(origin())) == entry(0, clock.now, b"new")


def test_whoever_is_late_does_not_end_the_lease_of_another(store: Store, clock: Clock) -> None:
    late = lease_on(store)
    clock.now += LEASE
    lease_on(store)
    run(store.release(late))
    assert run(store.claim(origin(), LEASE)).lease is None
    run(store.write(entry(0, clock.now), late))
    claim = run(store.claim(origin(), LEASE))
    assert claim.lease is None
    # Still news: nobody has anything newer.
    assert claim.entry == entry(0, clock.now)


def test_whoever_is_late_does_not_replace_what_is_newer(store: Store, clock: Clock) -> None:
    late, then = lease_on(store), clock.now
    clock.now += LEASE
    run(store.write(entry(0, clock.now, b"new"), lease_on(store)))
    run(store.write(entry(0, then, b"old"), late))
    run(store.write(entry(0, then, b"old")))
    assert run(store.read(origin())) == entry(0, clock.now, b"new")


def test_a_holder_replaces_whatever_is_there(store: Store, clock: Clock) -> None:
    run(store.write(entry(0, clock.now)))
    older = entry(0, clock.now - 5, b"by its clock")
    run(store.write(older, lease_on(store)))
    assert run(store.read(origin())) == older


def test_too_large_ends_the_lease_all_the_same(store: Store) -> None:
    run(store.write(entry(body=bytes(MAX_BODIES + 1)), lease_on(store)))
    claim = run(store.claim(origin(), LEASE))
    assert claim.entry is None
    assert claim.lease is not None


def test_too_large_ends_what_was_known(store: Store) -> None:
    run(store.write(entry()))
    run(store.write(entry(body=bytes(MAX_BODIES + 1))))
    assert run(store.read(origin())) is None


@can_be_listed
def test_origins_delete_clear(store: Store) -> None:
    for number in range(5):
        run(store.write(entry(number)))
    assert set(run_all(store.origins())) == set(map(origin, range(5)))
    assert run(store.delete(origin(3))) is True
    assert run(store.delete(origin(3))) is False
    assert len(run_all(store.origins())) == 4
    assert run(store.clear()) == 4
    assert run_all(store.origins()) == []


@can_be_listed
def test_leases_outlive_a_clearing(store: Store) -> None:
    lease = lease_on(store)
    run(store.delete(origin()))
    run(store.clear())
    assert run(store.claim(origin(), LEASE)).lease is None
    run(store.write(entry(), lease))
    assert run(store.read(origin())) == entry()


@pytest.mark.parametrize("host", ["\ud800.example", "a" * 70 + "é", "nul\0.example", "x" * 5000])
def test_odd_hosts(store: Store, host: str) -> None:
    odd = Origin("http", host, 80)
    claim = run(store.claim(odd, LEASE))
    assert claim.lease is not None
    run(store.write(entry(), claim.lease))
    run(store.release(claim.lease))
    assert run(store.read(odd)) is None


def test_no_news_to_wait_for(store: Store, clock: Clock) -> None:
    run(store.wait_for_update(origin(), 10, clock.pause))
    assert clock.pauses == 0


def test_news_do_not_take_longer_than_the_lease(store: Store, clock: Clock) -> None:
    lease = lease_on(store)
    run(store.wait_for_update(origin(), 100, clock.pause))
    assert lease.until <= clock.now < lease.until + 1


def test_news_take_the_time_that_was_asked_for_at_most(store: Store, clock: Clock) -> None:
    begun = clock.now
    lease_on(store)
    run(store.wait_for_update(origin(), 5, clock.pause))
    assert clock.now - begun == pytest.approx(5)


def test_a_closed_store_can_be_used_again(store: Store) -> None:
    run(store.write(entry()))
    run(store.close())
    assert run(store.read(origin())) == entry()


@pytest_twisted.ensureDeferred  # type: ignore[untyped-decorator]
async def test_news_in_an_event_loop(tmp_path: Path) -> None:
    async def wait() -> None:
        ours, theirs = SqliteStore(tmp_path / "x.sqlite"), SqliteStore(tmp_path / "x.sqlite")
        lease = (await theirs.claim(origin(), 60)).lease
        assert lease is not None
        call_later(0.2, lambda: deferred_from_coro(theirs.write(entry(), lease)))
        await ours.wait_for_update(origin(), 60)
        assert await ours.read(origin()) == entry()
        await ours.close()
        await theirs.close()

    await deferred_from_coro(wait())


@pytest_twisted.ensureDeferred  # type: ignore[untyped-decorator]
async def test_waiting_for_news_can_be_cancelled(tmp_path: Path) -> None:
    async def wait() -> None:
        store = SqliteStore(tmp_path / "x.sqlite")
        guarded = CircuitBreaker(lambda: store)
        await guarded.claim(origin(), 60)
        waiting = deferred_from_coro(guarded.wait_for_update(origin(), 60))
        waiting.addErrback(lambda failure: None)
        call_later(0.1, waiting.cancel)
        await maybe_deferred_to_future(waiting)
        # Which is no fault of the store.
        assert guarded.works
        await guarded.close()

    await deferred_from_coro(wait())
