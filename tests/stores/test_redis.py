"""The store in Redis, where it is more than what every store is."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.stores import redis_client
from scrapy_rep.stores.base import KEPT_FOR, StoreError, encode, time_of
from scrapy_rep.stores.redis import LEASE_KEPT_FOR, MAX_VALUE, RedisStore
from scrapy_rep.stores.redis_url import parse_url
from scrapy_rep.throttling.redis import RedisTurns
from scrapy_rep.throttling.turns import Event
from tests.conditions import until
from tests.stores.blocking import LoopInThread
from tests.stores.examples import HOUR, entry, origin, outage
from tests.stores.redis_server import RedisCluster, RedisServer

ROOT = Path(__file__).parents[2]
LEASE = 30.0
KEY = "scrapy-rep:entry:{https://host0.example}"
LEASE_KEY = "scrapy-rep:lease:{https://host0.example}"
#: Seconds after which a lease would be in force still, and who waited has come back.
SOON = 20.0

Test = Callable[[RedisStore, RedisStore], Awaitable[None]]


@asynccontextmanager
async def store_in(
    server: RedisServer, options: str = "", clock: Callable[[], float] = time.time
) -> AsyncIterator[RedisStore]:
    store = RedisStore(parse_url(server.patient_url + options), clock)
    try:
        yield store
    finally:
        await store.close()


def now_facts(number: int = 0) -> CacheEntry:
    return entry(number, round(time.time(), 3))


@pytest.fixture
def do(asyncio_thread: LoopInThread) -> Callable[[Coroutine[Any, Any, None]], None]:
    return asyncio_thread.run


@pytest.fixture
def client(fresh_redis: RedisServer) -> Redis:
    return fresh_redis.client()


Do = Callable[[Coroutine[Any, Any, None]], None]


# -- what is in Redis -----------------------------------------------------------


def test_all_keys_end_by_themselves(fresh_redis: RedisServer, client: Redis, do: Do) -> None:
    async def scenario() -> None:
        async with store_in(fresh_redis) as store:
            await store.write(now_facts(0))
            await store.write(
                outage(1, at=time.time() - 10 * 86400, since=time.time() - 20 * 86400)
            )
            await store.claim(origin(2), LEASE)

    do(scenario())
    left = {key: client.pttl(key) / 1000 for key in client.scan_iter()}
    assert left[KEY.encode()] == pytest.approx(KEPT_FOR, abs=60)
    assert left[KEY.replace("host0", "host1").encode()] == pytest.approx(
        KEPT_FOR - 10 * 86400, abs=60
    )
    assert left[LEASE_KEY.replace("host0", "host2").encode()] <= LEASE_KEPT_FOR
    assert all(seconds > 0 for seconds in left.values())


def test_the_same_claim_again_is_granted_again(fresh_redis: RedisServer, do: Do) -> None:
    """The connection broke before the answer came, and the script is run again."""

    async def scenario() -> None:
        async with store_in(fresh_redis) as store:
            lease = (await store.claim(origin(), LEASE)).lease
            assert lease is not None
            assert await store._take(lease) == (None, True)  # noqa: SLF001
            other = replace(lease, token="ab")
            assert await store._take(other) == (None, False)  # noqa: SLF001

    do(scenario())


def test_an_origin_takes_little(fresh_redis: RedisServer, client: Redis, do: Do) -> None:
    async def scenario() -> None:
        async with store_in(fresh_redis) as store:
            await store.write(now_facts())

    do(scenario())
    assert (client.memory_usage(KEY) or 0) in range(200, 600)


def test_known_origins_take_one_operation(
    fresh_redis: RedisServer, client: Redis, do: Do, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only the first one.
    monkeypatch.setattr(redis_client, "_GREET_EVERY", 3600.0)

    async def scenario() -> None:
        async with store_in(fresh_redis) as store:
            for number in range(10):
                await store.write(now_facts(number))
            # Redis gets to know a script when it is used first.
            await store.read(origin())
            client.config_resetstat()
            for number in range(10):
                assert await store.read(origin(number)) is not None
            stats = client.info("commandstats")
            assert stats["cmdstat_evalsha"]["calls"] == 10
            # What the script does, and what we have just asked.
            of_scripts = {"cmdstat_evalsha", "cmdstat_get", "cmdstat_strlen", "cmdstat_time"}
            assert set(stats) <= of_scripts | {"cmdstat_config|resetstat", "cmdstat_config"}

    do(scenario())


def test_projects_do_not_see_each_other(fresh_redis: RedisServer, client: Redis, do: Do) -> None:
    async def scenario() -> None:
        async with (
            store_in(fresh_redis, "&prefix=a*:") as one,
            store_in(fresh_redis, "&prefix=ab:") as other,
        ):
            await one.write(now_facts())
            assert await other.read(origin()) is None
            assert (await one.claim(origin(), LEASE)).lease is not None
            assert (await other.claim(origin(), LEASE)).lease is not None
            await other.write(now_facts(0))
            await other.write(now_facts(1))
            assert [found async for found in one.origins()] == [origin()]
            # Whatever a prefix would mean as a pattern.
            assert await one.clear() == 1
            assert await other.read(origin(1)) is not None

    client.set("queue", "of another program")
    do(scenario())
    assert client.get("queue") == b"of another program"


def test_more_origins_than_a_page(fresh_redis: RedisServer, do: Do) -> None:
    async def scenario() -> None:
        async with store_in(fresh_redis) as store:
            for start in range(0, 2500, 50):
                await asyncio.gather(
                    *(store.write(now_facts(number)) for number in range(start, start + 50))
                )
            found = [found async for found in store.origins()]
            assert len(found) == len(set(found)) == 2500
            assert await store.clear() == 2500

    do(scenario())


# -- leases -----------------------------------------------------------------------


@pytest.mark.parametrize("end", ["write", "release"])
def test_who_waits_goes_on_when_the_fetch_has_ended(
    fresh_redis: RedisServer, do: Do, end: str
) -> None:
    async def scenario() -> None:
        async with store_in(fresh_redis) as ours, store_in(fresh_redis) as theirs:
            lease = (await theirs.claim(origin(), LEASE)).lease
            assert lease is not None
            waiting = [asyncio.create_task(ours.wait_for_update(origin(), LEASE)) for _ in range(9)]
            # Nobody fetches this one.
            await asyncio.wait_for(ours.wait_for_update(origin(1), LEASE), SOON)
            assert not any(each.done() for each in waiting)
            await (theirs.write(now_facts(), lease) if end == "write" else theirs.release(lease))
            await asyncio.wait_for(asyncio.gather(*waiting), SOON)
            known = await ours.read(origin())
            assert (known is not None) == (end == "write")

    do(scenario())


def test_waiting_can_be_given_up(
    fresh_redis: RedisServer, do: Do, recwarn: pytest.WarningsRecorder
) -> None:
    async def scenario() -> None:
        async with store_in(fresh_redis) as store:
            await store.claim(origin(), LEASE)
            waiting = asyncio.create_task(store.wait_for_update(origin(), LEASE))
            await asyncio.sleep(0.02)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await store.read(origin())

    # What tests before this one have left open is none of it.
    gc.collect()
    recwarn.clear()
    do(scenario())
    gc.collect()
    # Such as of a coroutine that was never awaited.
    assert [str(warning.message) for warning in recwarn] == []


def test_a_lease_is_renewed_while_its_holder_lives(
    fresh_redis: RedisServer, client: Redis, do: Do
) -> None:
    async def scenario() -> None:
        async with store_in(fresh_redis) as ours, store_in(fresh_redis) as theirs:
            lease = (await theirs.claim(origin(), LEASE)).lease
            for _ in range(3):
                # It is there for long, until the next beat says that it ends sooner.
                value = client.get(LEASE_KEY)
                assert isinstance(value, bytes)
                till, token = value.decode().split()
                client.set(LEASE_KEY, f"{till} {token}", px=60_000)
                await until(lambda: client.pttl(LEASE_KEY) <= LEASE_KEPT_FOR * 1000)
            assert (await ours.claim(origin(), LEASE)).lease is None
            assert lease is not None
            await theirs.release(lease)
            assert (await ours.claim(origin(), LEASE)).lease is not None

    do(scenario())


def test_no_lease_is_renewed_for_longer_than_was_asked_for(
    fresh_redis: RedisServer, client: Redis, do: Do
) -> None:
    async def scenario() -> None:
        async with store_in(fresh_redis) as store:
            await store.claim(origin(), 2.5)
            await asyncio.wait_for(store.wait_for_update(origin(), LEASE), SOON)
            assert client.get(LEASE_KEY) is None

    do(scenario())


def test_the_lease_of_a_holder_that_was_killed_expires_soon(
    fresh_redis: RedisServer, do: Do
) -> None:
    code = (
        "import asyncio, os, signal, sys\n"
        "from scrapy_rep.stores.redis import RedisStore\n"
        "from scrapy_rep.stores.redis_url import parse_url\n"
        "from tests.stores.examples import origin\n"
        "async def claim():\n"
        "    claim = await RedisStore(parse_url(sys.argv[1])).claim(origin(), 3600)\n"
        "    print(claim.lease is not None, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(claim())\n"
    )
    holder = subprocess.run(
        [sys.executable, "-c", code, fresh_redis.patient_url],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert holder.stdout == b"True\n", holder.stderr

    async def scenario() -> None:
        async with store_in(fresh_redis) as ours:
            await asyncio.wait_for(ours.wait_for_update(origin(), 3600), SOON)
            assert (await ours.claim(origin(), LEASE)).lease is not None

    do(scenario())


# -- clocks -----------------------------------------------------------------------


@pytest.mark.parametrize("off", [-HOUR, HOUR, 0.2])
def test_a_worker_whose_clock_is_off(fresh_redis: RedisServer, do: Do, off: float) -> None:
    async def scenario() -> None:
        # They stand still, as for workers to whom Redis answers at once: what comes
        # late says little of the time.
        now = time.time()
        wrong = now + off
        async with (
            store_in(fresh_redis, clock=lambda: now) as ours,
            store_in(fresh_redis, clock=lambda: wrong) as theirs,
        ):
            await theirs.write(entry(0, wrong))
            read = await ours.read(origin())
            assert read is not None
            assert time_of(read) == pytest.approx(now, abs=60)
            await ours.write(entry(1, now))
            read = await theirs.read(origin(1))
            assert read is not None
            assert time_of(read) == pytest.approx(wrong, abs=60)
            # So is since when, and when it was last asked in vain.
            await theirs.write(outage(3, wrong, wrong - HOUR))
            read = await ours.read(origin(3))
            assert read is not None
            assert read.outage is not None
            assert read.outage.last_at == pytest.approx(now, abs=60)
            assert read.outage.last_at - read.outage.since == pytest.approx(HOUR)
            # Leases are nobody's clock's business.
            lease = (await theirs.claim(origin(2), LEASE)).lease
            assert lease is not None
            assert lease.until == wrong + LEASE
            assert (await ours.claim(origin(2), LEASE)).lease is None
            await theirs.release(lease)
            assert (await ours.claim(origin(2), LEASE)).lease is not None

    do(scenario())


def test_what_is_right_within_a_second_is_not_touched(fresh_redis: RedisServer, do: Do) -> None:
    async def scenario() -> None:
        async with store_in(fresh_redis) as store:
            known = entry(0, time.time())
            await store.write(known)
            assert await store.read(origin()) == known

    do(scenario())


def test_a_clock_that_is_put_right(fresh_redis: RedisServer, do: Do) -> None:
    async def scenario() -> None:
        # It stands still: an answer that comes late says little of the time.
        right = time.time()
        now = right + HOUR
        async with store_in(fresh_redis, clock=lambda: now) as store:
            await store.write(entry(0, now))
            now = right
            await store.read(origin(1))
            read = await store.read(origin())
            assert read is not None
            assert time_of(read) == pytest.approx(right, abs=60)

    do(scenario())


# -- what cannot be read ------------------------------------------------------------


def valid(known: CacheEntry) -> bytes:
    return b"%d %b" % (round(time_of(known) * 1000), encode(known))


ODD_VALUES: dict[str, Callable[[Redis, str], object]] = {
    "text": lambda client, key: client.set(key, "text"),
    "pickle": lambda client, key: client.set(key, b"1 cos\nsystem\n(S'touch /tmp/owned'\ntR."),
    "other version": lambda client, key: client.set(key, b"1 rep2" + bytes(50)),
    "no time": lambda client, key: client.set(key, encode(now_facts())),
    "far future": lambda client, key: client.set(key, b"9" * 25 + b" junk"),
    "about another": lambda client, key: client.set(key, valid(now_facts(1))),
    "a list": lambda client, key: client.rpush(key, "a", "b"),
    "a hash": lambda client, key: client.hset(key, "a", "b"),
    "a set": lambda client, key: client.sadd(key, "a"),
    "a stream": lambda client, key: client.xadd(key, {"a": "b"}),
    "huge": lambda client, key: client.setrange(key, MAX_VALUE, "x"),
    "very huge": lambda client, key: client.setrange(key, 200_000_000, "x"),
    "bomb": lambda client, key: client.set(key, b"1 rep1" + bytes(MAX_VALUE - 6)),
}


@pytest.mark.parametrize("kind", ODD_VALUES)
def test_values_that_cannot_be_read(
    fresh_redis: RedisServer,
    client: Redis,
    do: Do,
    caplog: pytest.LogCaptureFixture,
    kind: str,
) -> None:
    async def scenario() -> None:
        async with store_in(fresh_redis) as store:
            for number in range(2):
                ODD_VALUES[kind](client, KEY.replace("host0", f"host{number}"))
            if kind == "about another":
                client.set(KEY.replace("host0", "host1"), valid(now_facts(0)))
            ODD_VALUES[kind](client, LEASE_KEY)
            sent = client.info("stats")["total_net_output_bytes"]
            assert await store.read(origin(0)) is None
            claim = await store.claim(origin(0), LEASE)
            assert claim.entry is None
            assert claim.lease is not None
            assert await store.read(origin(1)) is None
            sent = client.info("stats")["total_net_output_bytes"] - sent
            assert sent < (100_000 if kind != "bomb" else 4 * MAX_VALUE)
            # What is fetched takes its place.
            new = now_facts()
            await store.write(new, claim.lease)
            assert await store.read(origin(0)) == new
            assert (await store.claim(origin(0), LEASE)).lease is not None

    do(scenario())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert (
        "Cannot read the entry of https://host0.example in Redis, prefix scrapy-rep: ("
        in caplog.text
    )
    client.flushall()


def test_keys_that_are_none(fresh_redis: RedisServer, client: Redis, do: Do) -> None:
    async def scenario() -> None:
        async with store_in(fresh_redis) as store:
            await store.write(now_facts())
            for name in (b"\xff\x00", b"junk", b"ftp://", b"https://host0.example/path"):
                client.set(b"scrapy-rep:entry:{" + name + b"}", "x")
            assert [found async for found in store.origins()] == [origin()]

    do(scenario())


@pytest.mark.parametrize(
    "lease", ["junk", "1 2", "x y", "0 99999999999999 aa", "99999999999999 aa"]
)
def test_leases_that_are_none(fresh_redis: RedisServer, client: Redis, do: Do, lease: str) -> None:
    async def scenario() -> None:
        async with store_in(fresh_redis) as store:
            client.set(LEASE_KEY, lease)
            await store.wait_for_update(origin(), 60)
            assert (await store.claim(origin(), LEASE)).lease is not None

    do(scenario())


def test_too_large_for_redis(fresh_redis: RedisServer, client: Redis, do: Do) -> None:
    async def scenario() -> None:
        async with store_in(fresh_redis) as store:
            lease = (await store.claim(origin(), LEASE)).lease
            body = random.Random(1).randbytes(MAX_VALUE)
            for holds in (lease, None):
                await store.write(entry(0, time.time(), body), holds)
                assert await store.read(origin()) is None
            assert (await store.claim(origin(), LEASE)).lease is not None

    do(scenario())


def test_errors_say_what_to_do(asyncio_thread: LoopInThread) -> None:
    async def scenario() -> None:
        store = RedisStore(parse_url("redis://:secret@127.0.0.1:1/0"))
        try:
            with pytest.raises(StoreError, match=r"redis://127\.0\.0\.1:1/0: .*") as caught:
                await store.read(origin())
            assert "secret" not in str(caught.value)
        finally:
            await store.close()

    asyncio_thread.run(scenario())


# -- a cluster ---------------------------------------------------------------------


def test_a_cluster(any_redis_cluster: RedisCluster, do: Do) -> None:
    url = parse_url(any_redis_cluster.patient_url)

    async def scenario() -> None:
        ours, theirs = (RedisStore(url) for _ in range(2))
        for number in range(60):
            known = now_facts(number)
            lease = (await ours.claim(origin(number), LEASE)).lease
            assert lease is not None
            assert (await theirs.claim(origin(number), LEASE)).lease is None
            await ours.write(known, lease)
            assert await theirs.read(origin(number)) == known
        assert {found async for found in theirs.origins()} == set(map(origin, range(60)))
        assert await theirs.delete(origin(3))
        assert await theirs.clear() == 59
        assert [found async for found in ours.origins()] == []
        await ours.close()
        await theirs.close()

    do(scenario())
    # Each server had its part.
    sizes = [server.client().info("commandstats") for server in any_redis_cluster.servers]
    assert all(stats["cmdstat_evalsha"]["calls"] > 10 for stats in sizes)


def test_turns_in_a_cluster(any_redis_cluster: RedisCluster, do: Do) -> None:
    url = parse_url(any_redis_cluster.patient_url)

    async def scenario() -> None:
        one, other = RedisTurns(url), RedisTurns(url)
        await one.start()
        await other.start()
        assert other.workers == 2
        for site in (f"host{number}.example" for number in range(20)):
            await one.tell(Event.SENT, site, 0.001)
            await asyncio.sleep(0.002)
            assert await one.grant(site, 0.001) == 0
            assert await other.grant(site, 60) == 60
            await one.tell(Event.OVER, site, 60)
        await one.close()
        await other.close()

    do(scenario())
