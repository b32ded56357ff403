from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import pytest
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred

from scrapy_rep.stores.base import StoreError
from scrapy_rep.stores.redis_url import parse_url
from scrapy_rep.throttling.fleet import FleetBackend
from scrapy_rep.throttling.redis import GONE_AFTER, LONGEST_WAIT, RedisTurns
from scrapy_rep.throttling.turns import KEPT, Event
from tests.conditions import HANGS, until
from tests.stores.blocking import LoopInThread, SharedClock
from tests.stores.redis_server import RedisServer, stopped

Do = Callable[[Coroutine[Any, Any, None]], None]
SITE = "host.example"
KEY = f"scrapy-rep:turn:{{{SITE}}}"
DELAY = 10.0
#: More than the delay: nobody says here that a turn is held still.
HELD_FOR = 30.0


@pytest.fixture
def do(asyncio_thread: LoopInThread) -> Do:
    return asyncio_thread.run


@pytest.fixture
def clock(fresh_redis: RedisServer) -> SharedClock:
    clock = SharedClock(fresh_redis)
    # There was a request long ago: nobody waits because nothing is known.
    with fresh_redis.client() as client:
        client.set(KEY, f"{round((clock.now - 1e6) * 1000)} 0 0 0 ")
    return clock


@asynccontextmanager
async def worker(server: RedisServer) -> AsyncIterator[RedisTurns]:
    pacing = RedisTurns(parse_url(server.patient_url), SharedClock.LUA, held_for=HELD_FOR)
    try:
        yield pacing
    finally:
        await pacing.close()


def test_one_turn_in_a_delay(fresh_redis: RedisServer, clock: SharedClock, do: Do) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            assert await one.grant(SITE, DELAY) == 0
            await one.tell(Event.OVER, SITE, DELAY)
            # Each is told another time.
            assert await other.grant(SITE, DELAY) == 10
            assert await one.grant(SITE, DELAY) == 20
            clock.now += 9.999
            assert await other.grant(SITE, DELAY) > 0
            clock.now += 0.001
            assert await other.grant(SITE, DELAY) == 0
            assert await one.grant(SITE, DELAY) > 0

    do(scenario())


def test_nobody_is_sent_away_for_long(fresh_redis: RedisServer, clock: SharedClock, do: Do) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one:
            await one.grant(SITE, DELAY)
            waits = [await one.grant(SITE, DELAY) for _ in range(100)]
            assert max(waits) == LONGEST_WAIT
            # A turn that nobody takes is there for whoever asks.
            clock.now += DELAY
            assert await one.grant(SITE, DELAY) == 0

    do(scenario())


def test_a_turn_is_held_until_its_request_is_over(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            assert await one.grant(SITE, DELAY) == 0
            clock.now += 14
            # It may be over now, and not before.
            assert await other.grant(SITE, DELAY) == 10
            await one.tell(Event.OVER, SITE, DELAY)
            clock.now += 4
            assert await other.grant(SITE, DELAY, again=True) == pytest.approx(6)
            clock.now += 6
            assert await other.grant(SITE, DELAY, again=True) == 0
            # What is not ours is not ours to give back.
            await one.tell(Event.OVER, SITE, DELAY)
            clock.now += DELAY
            assert await one.grant(SITE, DELAY) > 0
            # Who asks has none under way.
            assert await other.grant(SITE, DELAY) == 0

    do(scenario())


def test_an_unused_turn_is_there_at_once(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            assert await one.grant(SITE, DELAY) == 0
            clock.now += 4
            assert await other.grant(SITE, DELAY) == 10
            await one.tell(Event.UNUSED, SITE, DELAY)
            assert await other.grant(SITE, DELAY) == 0
            # It is not that of the first any more: this changes nothing.
            await one.tell(Event.UNUSED, SITE, DELAY)
            clock.now += DELAY
            assert await one.grant(SITE, DELAY) > 0
            await other.tell(Event.UNUSED, SITE, DELAY)
            assert await one.grant(SITE, DELAY) == 0

    do(scenario())


def test_a_turn_that_was_lost_is_not_given_back(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            assert await one.grant(SITE, DELAY) == 0
            clock.now += 3
            # Who asks has no turn.
            assert await one.grant(SITE, DELAY) == 7
            await one.tell(Event.UNUSED, SITE, DELAY)
            assert await other.grant(SITE, DELAY) > 0

    do(scenario())


def test_an_unused_turn_does_not_shorten_a_longer_delay(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            assert await one.grant(SITE, 1.0) == 0
            await one.tell(Event.OVER, SITE, 1.0)
            clock.now += 1
            assert await one.grant(SITE, 1.0) == 0
            await one.tell(Event.UNUSED, SITE, 1.0)
            assert await other.grant(SITE, DELAY) == DELAY - 1

    do(scenario())


def test_what_is_sent_during_an_unused_turn_counts(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            assert await one.grant(SITE, DELAY) == 0
            clock.now += 3
            await other.tell(Event.SENT, SITE, DELAY)
            await one.tell(Event.HELD, SITE, DELAY)
            await one.tell(Event.UNUSED, SITE, DELAY)
            assert await other.grant(SITE, DELAY) == DELAY

    do(scenario())


def test_a_turn_that_is_held_still_is_waited_for(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            assert await one.grant(SITE, DELAY) == 0
            for _ in range(10):
                clock.now += HELD_FOR - 1
                # Of somebody who does not hold it, this changes nothing.
                await other.tell(Event.HELD, SITE, DELAY)
                await one.tell(Event.HELD, SITE, DELAY)
                assert await other.grant(SITE, DELAY) > 0
            await one.tell(Event.UNUSED, SITE, DELAY)
            assert await other.grant(SITE, DELAY) == 0
            await other.tell(Event.OVER, SITE, DELAY)
            clock.now += DELAY
            assert await one.grant(SITE, DELAY) == 0
            # It is held from the last time that this was said.
            await one.tell(Event.HELD, SITE, DELAY)
            clock.now += HELD_FOR
            assert await other.grant(SITE, DELAY) == 0

    do(scenario())


def test_who_was_told_to_ask_goes_first(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            assert await one.grant(SITE, DELAY) == 0
            await one.tell(Event.OVER, SITE, DELAY)
            assert await one.grant(SITE, DELAY) == 10
            assert await other.grant(SITE, DELAY) == 20
            clock.now += 8
            # A little early, as when the request before took a while.
            assert await one.grant(SITE, DELAY, again=True) == 2
            assert await one.grant(SITE, DELAY) == 22

    do(scenario())


def test_while_a_turn_is_held_all_are_told_another_time(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            assert await one.grant(SITE, DELAY) == 0
            waits = [await other.grant(SITE, DELAY, again=True) for _ in range(3)]
            assert waits == [10, 20, 30]

    do(scenario())


def test_who_asks_while_a_turn_is_held_does_not_wait_for_all_who_asked_before(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            assert await one.grant(SITE, DELAY) == 0
            for _ in range(20):
                await other.grant(SITE, DELAY)
            clock.now += 30
            await one.tell(Event.HELD, SITE, DELAY)
            assert await other.grant(SITE, DELAY) == LONGEST_WAIT + DELAY - 30

    do(scenario())


def test_a_worker_that_dies_holds_a_turn_for_a_while(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            assert await one.grant(SITE, DELAY) == 0
            clock.now += HELD_FOR - 0.001
            await other.tell(Event.HELD, SITE, DELAY)
            assert await other.grant(SITE, DELAY) > 0
            clock.now += 0.001
            assert await other.grant(SITE, DELAY) == 0

    do(scenario())


def test_a_worker_that_dies_may_have_sent_its_request_when_it_was_heard_of_last(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            assert await one.grant(SITE, 50.0) == 0
            clock.now += 20
            await one.tell(Event.HELD, SITE, 50.0)
            clock.now += HELD_FOR
            assert await other.grant(SITE, 50.0, again=True) == 50 - HELD_FOR

    do(scenario())


def test_what_is_sent_without_a_turn_counts(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            await one.tell(Event.SENT, SITE, DELAY)
            clock.now += 4
            assert await other.grant(SITE, DELAY) == 6
            clock.now += 6
            assert await other.grant(SITE, DELAY) == 0
            # Whose turn it is keeps it.
            await one.tell(Event.SENT, SITE, DELAY)
            clock.now += DELAY
            assert await one.grant(SITE, DELAY) > 0
            await other.tell(Event.OVER, SITE, DELAY)
            clock.now += DELAY
            assert await one.grant(SITE, DELAY) == 0

    do(scenario())


def test_the_rate_changes(fresh_redis: RedisServer, clock: SharedClock, do: Do) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one:
            assert await one.grant(SITE, 1.0) == 0
            await one.tell(Event.OVER, SITE, 1.0)
            clock.now += 5
            # It counts from the last request, by the delay that holds now.
            assert await one.grant(SITE, DELAY) == 5
            clock.now += 5
            assert await one.grant(SITE, DELAY) == 0
            await one.tell(Event.OVER, SITE, DELAY)
            clock.now += 2
            assert await one.grant(SITE, 1.0) == 0

    do(scenario())


def test_redis_has_forgotten(fresh_redis: RedisServer, clock: SharedClock, do: Do) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one:
            assert await one.grant(SITE, DELAY) == 0
            clock.now += 3
            with fresh_redis.client() as client:
                client.delete(KEY)
            # Somebody may have sent a request just before.
            assert await one.grant(SITE, DELAY) == 10
            clock.now += 10
            assert await one.grant(SITE, DELAY) == 0

    do(scenario())


def test_what_redis_has_not_been_told(fresh_redis: RedisServer, clock: SharedClock, do: Do) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one:
            assert await one.grant(SITE, DELAY, since=4) == 6
            clock.now += 6
            assert await one.grant(SITE, DELAY, since=10) == 0
            assert await one.grant(SITE, DELAY, since=100) == 10

    do(scenario())


def test_the_clock_of_redis_is_set_back(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one:
            assert await one.grant(SITE, DELAY) == 0
            clock.now -= 3600
            assert 0 < await one.grant(SITE, DELAY) <= LONGEST_WAIT
            clock.now += DELAY
            assert await one.grant(SITE, DELAY) == 0

    do(scenario())


@pytest.mark.parametrize(
    "junk",
    [
        "x",
        "9" * 30 + " 1 1 1 ",
        " ".join(["9" * 20] * 5),
        "-1 -1 -1 -1 a",
        "nan inf 1 1 ",
        "y" * 100_000,
        None,
    ],
)
def test_what_is_not_ours(
    fresh_redis: RedisServer, clock: SharedClock, do: Do, junk: str | None
) -> None:
    async def scenario() -> None:
        with fresh_redis.client() as client:
            for key in (KEY, "scrapy-rep:workers", "scrapy-rep:slow"):
                client.delete(key)
                if junk is None:
                    client.rpush(key, "a")
                else:
                    client.set(key, junk)
        async with worker(fresh_redis) as one:
            assert 0 < await one.grant(SITE, DELAY) <= LONGEST_WAIT
            clock.now += DELAY
            assert await one.grant(SITE, DELAY) == 0
            assert one.workers == 1
            assert await one.slowed() == {}
            await one.tell(Event.SLOW, SITE, 5.0)
            assert await one.slowed() == {SITE: 5.0}

    do(scenario())


def test_keys_end_by_themselves(fresh_redis: RedisServer, clock: SharedClock, do: Do) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one:
            await one.grant(SITE, DELAY)
            with fresh_redis.client() as client:
                assert 60_000 < client.pttl(KEY) <= 70_000
                assert client.pttl("scrapy-rep:workers") > 0
                # That of all slow sites ends with the last one.
                for site, delay in ((SITE, 1000.0), ("other.example", 1.0)):
                    await one.tell(Event.SLOW, site, delay)
                assert 0 < client.pttl(f"scrapy-rep:slow:{{{SITE}}}") <= 1_060_000
                assert 1_000_000 < client.pttl("scrapy-rep:slow") <= 1_060_000

    do(scenario())


def test_workers_are_counted(fresh_redis: RedisServer, clock: SharedClock, do: Do) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one:
            assert one.workers == 0
            await one.start()
            assert (one.workers, one.rank) == (1, 0)
            async with worker(fresh_redis) as other, worker(fresh_redis) as third:
                await other.start()
                assert other.workers == 2
                await third.start()
                assert third.workers == 3
                # The others hear of it within two seconds, and all agree on the order.
                everyone = [one, other, third]
                await until(lambda: all(each.workers == 3 for each in everyone))
                assert sorted(each.rank or 0 for each in everyone) == [0, 1, 2]
            # Those who left do not count, nor does who is not heard of.
            async with worker(fresh_redis) as other:
                await other.start()
                assert other.workers == 2
            clock.now += GONE_AFTER + 1
            async with worker(fresh_redis) as other:
                await other.start()
                assert other.workers == 1

    do(scenario())


def test_workers_from_before_the_clock_was_set_back_do_not_count(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        with fresh_redis.client() as client:
            client.zadd("scrapy-rep:workers", {"gone": round((clock.now + 3600) * 1000)})
        async with worker(fresh_redis) as one:
            await one.start()
            assert one.workers == 1

    do(scenario())


def test_a_worker_that_leaves_while_it_is_counted_does_not_count(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        one = RedisTurns(parse_url(fresh_redis.patient_url), SharedClock.LUA)
        await one.start()
        leaving = asyncio.ensure_future(one.close())
        await asyncio.sleep(0)
        # As every two seconds; on another connection, so perhaps after the worker has left.
        counted = vars(one)["_client"].run(one._beat)  # noqa: SLF001
        await asyncio.gather(leaving, counted, return_exceptions=True)
        with fresh_redis.client() as client:
            assert client.zcard("scrapy-rep:workers") == 0

    do(scenario())


def test_the_end_of_a_turn_may_be_told_late(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            assert await one.grant(SITE, DELAY) == 0
            clock.now += 5
            await one.tell(Event.OVER, SITE, DELAY, ago=2)
            assert await other.grant(SITE, DELAY) == 8
            clock.now += 8
            assert await other.grant(SITE, DELAY) == 0
            await other.tell(Event.OVER, SITE, DELAY)
            # What was before that changes nothing.
            await one.tell(Event.SENT, SITE, DELAY, ago=3)
            assert await one.grant(SITE, DELAY, again=True) == DELAY

    do(scenario())


def test_whether_a_turn_is_held_is_known(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            await one.grant(SITE, DELAY)
            await other.grant(SITE, DELAY)
            assert (one.is_held, other.is_held) == (False, True)
            await one.tell(Event.OVER, SITE, DELAY)
            await other.grant(SITE, DELAY)
            assert not other.is_held

    do(scenario())


def test_the_time_by_the_clock_of_redis(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            await one.start()
            await other.start()
            # However long the answers took.
            for each in (one, other):
                assert time.monotonic() + each.ahead == pytest.approx(clock.now, abs=60)

    do(scenario())


def test_redis_is_gone(own_redis: RedisServer, do: Do) -> None:
    async def scenario() -> None:
        one, other = (RedisTurns(parse_url(own_redis.patient_url)) for _ in range(2))
        try:
            await one.start()
            await other.start()
            own_redis.kill()
            for _ in range(20):
                with pytest.raises(StoreError):
                    await other.grant(SITE, DELAY)
            # What it knew last.
            assert other.workers == 2
            own_redis.start()
            deadline = time.monotonic() + 60
            while True:
                try:
                    assert await other.grant(SITE, DELAY) > 0
                    break
                except StoreError:
                    assert time.monotonic() < deadline
                    await asyncio.sleep(0.05)
        finally:
            await one.close()
            await other.close()

    do(scenario())


def test_the_end_of_a_turn_that_redis_did_not_hear_is_told_again(
    own_redis: RedisServer, do: Do
) -> None:
    """A worker whose Redis was silent when its turn ended holds up nobody."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        # More than a busy machine stalls.
        url = parse_url(f"{own_redis.url}?socket_timeout=3")
        # Far longer than this test takes: nothing but the worker ends its turn.
        one, other = (RedisTurns(url, held_for=600) for _ in range(2))
        backend = FleetBackend(
            get_crawler(settings_dict={"EXTENSIONS_BASE": {}}),
            one,
            time.monotonic,
            call_later=loop.call_later,
            start=lambda work: Deferred.fromFuture(loop.create_task(work)),
        )
        await ready(one)
        await ready(other)
        await one.tell(Event.SENT, SITE, 0.01)
        await asyncio.sleep(0.1)
        granted: asyncio.Future[float] = loop.create_future()
        backend.ask(SITE, 0.01, inf, again=False, answer=granted.set_result)
        assert await granted == 0
        assert await other.grant(SITE, 0.01) > 0
        assert other.is_held
        with stopped(own_redis):
            # What is sent first, it hears when it goes on.
            with pytest.raises(StoreError):
                await one.tell(Event.SENT, "other.example", 0.01)
            backend.tell(Event.OVER, SITE, 0.01)
            await until(lambda: vars(backend).get("_failed_at") is not None)
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(StoreError):
                if await other.grant(SITE, 0.01) == 0:
                    break
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)
        # It may have been heard without an answer. Then it is told once more.
        await until(lambda: not vars(backend)["_news"] and not vars(backend)["_under_way"])
        await one.close()
        await other.close()

    do(scenario())


async def ready(turns: RedisTurns) -> None:
    """Return when *turns* has reached its Redis, which may be slow."""
    deadline = time.monotonic() + 60
    while not turns.workers:
        assert time.monotonic() < deadline
        with contextlib.suppress(StoreError):
            await turns.start()
        await asyncio.sleep(0.05)


WORKER = """
import asyncio, json, sys, time
from scrapy_rep.throttling.fleet import FleetBackend
from scrapy_rep.throttling.redis import RedisTurns
from scrapy_rep.throttling.turns import Event
from scrapy_rep.stores.redis_url import parse_url

async def work(url, delay, each):
    pacing, turns = RedisTurns(parse_url(url)), []
    await pacing.start()
    async def use(site):
        had = 0
        while had < each:
            before = time.monotonic()
            wait = await pacing.grant(site, delay)
            if wait == 0:
                had += 1
                turns.append((site, before, time.monotonic()))
                await pacing.tell(Event.OVER, site, delay)
            await asyncio.sleep(wait)
    await asyncio.gather(*(use(f"site{n}") for n in (1, 2) for _ in range(2)))
    await pacing.close()
    print(json.dumps(turns))

asyncio.run(work(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
"""


@pytest.mark.once
def test_many_processes(own_redis: RedisServer) -> None:
    delay, each = 0.1, 4
    root = Path(__file__).parents[2]
    workers = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                WORKER,
                own_redis.patient_url,
                *map(str, (delay, each)),
            ],
            env=os.environ | {"PYTHONPATH": str(root)},
            stdout=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    turns = [turn for one in workers for turn in json.loads(one.communicate(timeout=HANGS)[0])]
    assert [one.returncode for one in workers] == [0] * 4
    for site in ("site1", "site2"):
        times = sorted((before, after) for name, before, after in turns if name == site)
        # Of four workers, in two tasks each.
        assert len(times) == 4 * 2 * each
        # Each was granted at some time between the two.
        gaps = [after - before for (before, _), (_, after) in pairwise(times)]
        assert min(gaps) >= delay - 0.001
        assert len(times) <= (times[-1][1] - times[0][0]) / delay + 1


def test_slow_sites_are_known_to_all_for_a_time(
    fresh_redis: RedisServer, clock: SharedClock, do: Do
) -> None:
    async def scenario() -> None:
        async with worker(fresh_redis) as one, worker(fresh_redis) as other:
            assert await other.slowed() == {}
            await one.tell(Event.SLOW, SITE, 3.5)
            await one.tell(Event.SLOW, "other.example", 16.0)
            assert await other.slowed() == {SITE: 3.5, "other.example": 16.0}
            await other.tell(Event.SLOW, "other.example", 0.0)
            assert await one.slowed() == {SITE: 3.5}
            # Also to a worker that has not heard of it yet.
            await one.tell(Event.SENT, SITE, 0.2)
            assert await other.grant(SITE, 0.2) == 3.5
            clock.now += 3.5 + KEPT - 0.001
            assert await one.slowed() == {SITE: 3.5}
            clock.now += 0.002
            assert await one.slowed() == {}

    do(scenario())
