"""When the client of Redis tries what. The operations here do not need a server."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import warnings
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import capturedLogs

from scrapy_rep.stores import redis_client
from scrapy_rep.stores.base import StoreError
from scrapy_rep.stores.redis_client import RedisClient
from scrapy_rep.stores.redis_url import parse_url
from tests.conditions import wait_until
from tests.stores.blocking import LoopInThread
from tests.stores.redis_server import RedisServer

Do = Callable[[Coroutine[Any, Any, None]], None]
#: Also where a test replaces it.
sleep = asyncio.sleep
#: As long as this, no operation takes on the busiest machine.
PATIENT = "redis://127.0.0.1:1?socket_timeout=100"


@pytest.fixture(autouse=True)
def no_greetings_but_after_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_client, "_GREET_EVERY", 3600.0)


@pytest.fixture
def do(asyncio_thread: LoopInThread) -> Do:
    return asyncio_thread.run


class Server:
    """What a greeting finds: a server that works, or one that does not."""

    def __init__(self, *, works: bool = True) -> None:
        self.works = works
        self.greetings = 0

    async def greet(self, _: Any) -> None:
        self.greetings += 1
        if not self.works:
            raise OSError("nobody there")


async def answer(_: Any) -> str:
    return "answer"


async def fail(_: Any) -> str:
    raise OSError("it broke")


def client_of(server: Server, url: str = PATIENT) -> RedisClient:
    return RedisClient(parse_url(url), server.greet, lambda: 0.0)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the client pauses between two attempts; here it does not."""
    found: list[float] = []

    async def pause(seconds: float) -> None:
        found.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", pause)
    return found


async def enough(pauses: list[float], count: int) -> list[float]:
    """The first *count* pauses, when there have been so many."""
    while len(pauses) < count:
        await sleep(0.001)
    return pauses[:count]


async def until_it_works(client: RedisClient) -> None:
    while True:
        with contextlib.suppress(StoreError):
            assert await client.run(answer) == "answer"
            return
        await sleep(0.001)


def test_pauses_between_attempts_get_longer(do: Do, pauses: list[float]) -> None:
    async def scenario() -> None:
        client = client_of(Server(works=False))
        with pytest.raises(StoreError, match=r"redis://127\.0\.0\.1:1: nobody there"):
            await client.run(answer)
        assert await enough(pauses, 8) == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
        await client.close()

    do(scenario())


@pytest.mark.parametrize(("well", "expected"), [(1e9, [0.1, 0.2, 0.4]), (-1.0, [0.1, 0.1, 0.1])])
def test_the_first_pause_after_it_has_worked_for_long(
    do: Do,
    pauses: list[float],
    monkeypatch: pytest.MonkeyPatch,
    well: float,
    expected: list[float],
) -> None:
    monkeypatch.setattr(redis_client, "_WELL", well)

    async def scenario() -> None:
        client = client_of(Server())
        for count in range(1, 4):
            with pytest.raises(StoreError, match="it broke"):
                await client.run(fail)
            await enough(pauses, count)
            await until_it_works(client)
        assert pauses == expected
        await client.close()

    do(scenario())


def test_all_fail_at_once_until_a_greeting_has_worked(do: Do, pauses: list[float]) -> None:
    async def scenario() -> None:
        server = Server()
        client = client_of(server)
        assert await client.run(answer) == "answer"
        server.works = False
        with pytest.raises(StoreError, match="it broke"):
            await client.run(fail)
        for _ in range(20):
            with pytest.raises(StoreError, match=r"it broke|nobody there"):
                await client.run(answer)
        await enough(pauses, 2)
        server.works = True
        await until_it_works(client)
        greetings = server.greetings
        await sleep(0.01)
        assert server.greetings == greetings
        await client.close()

    do(scenario())


def test_what_fails_late_does_not_make_it_greet_again_and_again(
    do: Do, pauses: list[float]
) -> None:
    async def scenario() -> None:
        late, greeted = asyncio.Event(), asyncio.Event()
        greetings = 0

        async def greet(_: Any) -> None:
            nonlocal greetings
            greetings += 1
            if greetings == 2:
                late.set()
                await greeted.wait()

        async def fail_late(_: Any) -> None:
            await late.wait()
            raise OSError("late")

        client = RedisClient(parse_url(PATIENT), greet, lambda: 0.0)
        await client.ready()
        failing = asyncio.ensure_future(client.run(fail_late))
        await sleep(0)
        with pytest.raises(StoreError, match="it broke"):
            await client.run(fail)
        with pytest.raises(StoreError, match="late"):
            await failing
        greeted.set()
        await until_it_works(client)
        await sleep(0.01)
        assert greetings == 2
        await client.close()

    do(scenario())


def test_it_hangs_up_before_it_connects_again(do: Do, pauses: list[float]) -> None:
    async def scenario() -> None:
        client, closed = client_of(Server()), []

        async def watch(redis: Any) -> None:
            close = redis.aclose

            async def aclose() -> None:
                closed.append(list(pauses))
                await close()

            redis.aclose = aclose

        await client.run(watch)
        with pytest.raises(StoreError, match="it broke"):
            await client.run(fail)
        await until_it_works(client)
        assert closed == [[]]
        await client.close()
        assert closed == [[], [0.1]]

    do(scenario())


def test_the_first_operations_wait_for_the_first_greeting(do: Do) -> None:
    async def scenario() -> None:
        greeted = asyncio.Event()
        client = RedisClient(parse_url(PATIENT), lambda _: greeted.wait(), lambda: 0.0)
        doing = [asyncio.ensure_future(client.run(answer)) for _ in range(20)]
        ready = asyncio.ensure_future(client.ready())
        await asyncio.wait(doing, timeout=0.01)
        assert not any(each.done() for each in [*doing, ready])
        greeted.set()
        assert await asyncio.gather(*doing) == ["answer"] * 20
        await ready
        await client.close()

    do(scenario())


def test_no_more_than_some_at_once(do: Do) -> None:
    async def scenario() -> None:
        under_way = most = 0

        async def look(_: Any) -> None:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            under_way -= 1

        client = client_of(Server())
        await asyncio.gather(*(client.run(look) for _ in range(50)))
        assert most == 8
        await client.close()

    do(scenario())


def test_a_limit_of_its_own(do: Do) -> None:
    async def scenario() -> None:
        client = client_of(Server(), "redis://127.0.0.1:1?socket_timeout=0.01")
        # The client may be slow, but not the operation.
        with pytest.raises(StoreError, match=r"no answer for 0\.01 s|no connection so far"):
            await client.run(lambda _: asyncio.Event().wait())
        await client.close()
        assert not client.is_open
        patient = client_of(Server(), "redis://127.0.0.1:1?socket_timeout=100")
        with pytest.raises(StoreError, match=r"no answer for 0\.02 s"):
            await patient.run(lambda _: asyncio.Event().wait(), 0.02)
        await patient.close()

    do(scenario())


def test_closing_ends_all_and_the_next_use_opens_it_again(do: Do) -> None:
    async def scenario() -> None:
        server = Server()
        client = client_of(server)
        for count in (1, 2):
            assert not client.is_open
            await client.run(answer)
            assert client.is_open
            assert server.greetings == count
            await client.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    do(scenario())


def test_closing_ends_the_wait_for_the_first_greeting(do: Do) -> None:
    async def scenario() -> None:
        client = RedisClient(parse_url(PATIENT), lambda _: asyncio.Event().wait(), lambda: 0.0)
        waiting = [asyncio.ensure_future(client.run(answer)) for _ in range(20)]
        waiting.append(asyncio.ensure_future(client.ready()))  # type: ignore[arg-type]
        await sleep(0)
        await client.close()
        for each in waiting:
            with pytest.raises(StoreError, match="it was closed"):
                await each
        assert asyncio.all_tasks() == {asyncio.current_task()}

    do(scenario())


def test_an_operation_that_fails_after_its_time_is_not_mentioned(do: Do) -> None:
    async def fail_late(_: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("it broke")

    async def scenario() -> None:
        mentioned: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, said: mentioned.append(said))
        client = client_of(Server())
        with pytest.raises(StoreError, match="no answer for"):
            await client.run(fail_late, 0.01)
        await client.close()
        gc.collect()
        assert mentioned == []

    do(scenario())


@pytest.mark.parametrize(
    ("samples", "ahead"),
    [
        # The way there and back is as long.
        ([(105.0, 0.0, 10.0)], 100.0),
        # The faster the answer, the better.
        ([(105.0, 0.0, 10.0), (120.0, 20.0, 21.0)], 99.5),
        ([(120.0, 20.0, 21.0), (135.0, 30.0, 40.0)], 99.5),
        # But clocks drift.
        ([(120.0, 20.0, 21.0), (20_105.0, 20_000.0, 20_010.0)], 100.0),
        # Ours has been set back meanwhile.
        ([(120.0, 20.0, 21.0), (130.0, 40.0, 30.0)], 99.5),
    ],
)
def test_how_far_the_clocks_are_apart(
    samples: list[tuple[float, float, float]], ahead: float
) -> None:
    client = client_of(Server())
    for now, before, after in samples:
        client._note_time(now, before, after)  # noqa: SLF001
    assert client.ahead == ahead


# -- closing while operations are under way, with a real server -----------------------


async def close_under_way(
    server: RedisServer, started: Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]
) -> None:
    """Close the client while 8 operations are under way and others wait; all of them end."""
    client = RedisClient(parse_url(server.patient_url), lambda redis: redis.ping(), lambda: 0.0)
    doing = [started(client.run(lambda redis: redis.blpop("list"))) for _ in range(20)]
    with server.client() as redis:
        while redis.info("clients")["blocked_clients"] < 8:
            await started(client.ready())
        closing = started(client.close())
        with contextlib.suppress(StoreError):
            while True:
                await started(client.ready())
        redis.rpush("list", *range(8))
    await closing
    assert not client.is_open
    results = []
    for each in doing:
        try:
            results.append((await each)[1].decode())
        except StoreError as error:
            results.append(str(error).partition(": ")[2])
    assert sorted(results[:8]) == list("01234567")
    assert results[8:] == ["it was closed"] * 12


def test_closing_ends_all_operations(fresh_redis: RedisServer, do: Do) -> None:
    async def scenario() -> None:
        await asyncio.wait_for(close_under_way(fresh_redis, asyncio.ensure_future), 20)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    do(scenario())


@pytest_twisted.ensureDeferred  # type: ignore[untyped-decorator]
async def test_closing_ends_all_operations_in_a_thread(fresh_redis: RedisServer) -> None:
    from twisted.internet import reactor

    doing = Deferred.fromCoroutine(close_under_way(fresh_redis, Deferred.fromCoroutine))
    await doing.addTimeout(20, reactor)


# -- where there is no task of asyncio ------------------------------------------------


@pytest_twisted.ensureDeferred  # type: ignore[untyped-decorator]
async def test_in_a_thread() -> None:
    client = client_of(Server())
    assert await client.run(answer) == "answer"
    with pytest.raises(StoreError, match="it broke"):
        await client.run(fail)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        await client.close()
        assert "scrapy-rep-redis" not in {thread.name for thread in threading.enumerate()}
        del client
        gc.collect()
    # Such as of a loop that was not closed.
    assert [str(warning.message) for warning in caught] == []


@pytest_twisted.ensureDeferred  # type: ignore[untyped-decorator]
async def test_waiting_for_a_thread_can_be_given_up() -> None:
    client = client_of(Server())
    assert await client.run(answer) == "answer"
    began: Deferred[None] = Deferred()
    ended: list[str] = []

    async def wait(_: Any) -> None:
        from twisted.internet import reactor

        reactor.callFromThread(began.callback, None)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    with capturedLogs() as events:
        doing = Deferred.fromCoroutine(client.run(wait))
        await began
        doing.cancel()
        with pytest.raises(CancelledError):
            await doing
        # What is done after it, in the same thread, is done.
        assert await client.run(answer) == "answer"
        assert ended == ["cancelled"]
        await client.close()
        del doing
        gc.collect()
    # Such as of an answer that nobody waits for any more.
    assert [event for event in events if "log_failure" in event] == []


@pytest_twisted.ensureDeferred  # type: ignore[untyped-decorator]
async def test_an_operation_that_begins_when_another_one_has_ended_by_closing() -> None:
    client = RedisClient(parse_url(PATIENT), lambda _: asyncio.Event().wait(), lambda: 0.0)

    async def again() -> None:
        with pytest.raises(StoreError, match="it was closed"):
            await client.run(answer)
        await client.run(answer)

    doing = Deferred.fromCoroutine(again())
    closing = Deferred.fromCoroutine(client.close())
    loop = client._thread._loop  # type: ignore[union-attr] # noqa: SLF001
    # The thread has closed it before anybody here knows.
    wait_until(lambda: client._settled.is_set() and not asyncio.all_tasks(loop))  # noqa: SLF001
    await closing
    with pytest.raises(StoreError, match="it was closed"):
        await doing


def test_a_redis_that_works_is_greeted_again_and_again(
    do: Do, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_client, "_GREET_EVERY", 0.001)
    server = Server()

    async def greeted() -> None:
        while server.greetings < 5:
            await sleep(0.001)

    async def scenario() -> None:
        client = client_of(server)
        await client.ready()
        await asyncio.wait_for(greeted(), 30)
        await client.close()

    do(scenario())


def test_connections_that_do_not_close_hold_up_nobody(do: Do) -> None:
    async def scenario() -> None:
        client = client_of(Server(), "redis://127.0.0.1:1?socket_timeout=0.1")
        await client.ready()
        client._redis.aclose = asyncio.Event().wait  # noqa: SLF001
        await asyncio.wait_for(client.close(), 30)

    do(scenario())
