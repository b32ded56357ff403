"""What goes wrong with Redis, with a real server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from scrapy_rep.stores import redis_client
from scrapy_rep.stores.circuit_breaker import CircuitBreaker
from scrapy_rep.stores.open import open_store_with_breaker, parse_spec
from scrapy_rep.stores.redis import RedisStore
from scrapy_rep.stores.redis_url import parse_url
from scrapy_rep.throttling.redis import RedisTurns
from scrapy_rep.throttling.turns import Event
from tests.integration.certificates import tls_context
from tests.stores.blocking import LoopInThread
from tests.stores.examples import entry, origin
from tests.stores.redis_server import RedisCluster, RedisServer, stopped

LEASE = 30.0
#: The time limit in seconds, where Redis stops answering: more than a busy machine stalls.
LIMIT = 4.0
#: Seconds that no use may take, whatever is the matter with Redis. Less than it takes
#: if somebody waits for the time limit of a patient URL.
STALL = 8.0
#: Seconds that many uses may take, and who waits for news: far less than a time limit
#: for each, and less than a lease.
STALLS = 20.0

Do = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture
def do(asyncio_thread: LoopInThread, caplog: pytest.LogCaptureFixture) -> Do:
    caplog.set_level(logging.INFO, "scrapy_rep")
    return asyncio_thread.run


@asynccontextmanager
async def guarded(url: str) -> AsyncIterator[CircuitBreaker]:
    store = open_store_with_breaker(parse_spec(url), 10)
    assert isinstance(store, CircuitBreaker)
    try:
        yield store
    finally:
        await store.close()


async def in_time(work: Awaitable[Any]) -> Any:
    begun = time.monotonic()
    result = await work
    assert time.monotonic() - begun < STALL
    return result


async def use(store: CircuitBreaker, start: int, *, works: bool) -> None:
    """A crawl with *store* goes on, and no use takes long."""
    for number in range(start, start + 30):
        known = entry(number, round(time.time(), 3))
        lease = (await in_time(store.claim(origin(number), LEASE))).lease
        assert lease is not None
        await in_time(store.write(known, lease))
        assert await in_time(store.read(origin(number))) == (known if works else None)
    assert store.works is works


async def until_it_works(store: CircuitBreaker) -> None:
    deadline = time.monotonic() + 60
    await store.read(origin())
    while not store.works:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
        await in_time(store.read(origin()))


def said(log: pytest.LogCaptureFixture) -> list[str]:
    return [record.levelname for record in log.records]


def test_nobody_listens(has_redis: None, do: Do, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        server = RedisServer()
        async with guarded(server.patient_url) as store:
            await use(store, 0, works=False)
            with server:
                await until_it_works(store)
                await use(store, 100, works=True)

    do(scenario())
    assert said(caplog) == ["WARNING", "INFO"]
    assert "Cannot use the robots.txt store: redis://127.0.0.1:" in caplog.text
    assert "tries the store again in the background" in caplog.text


def test_it_stops_answering(
    own_redis: RedisServer, do: Do, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with guarded(f"{own_redis.url}?socket_timeout={LIMIT}") as store:
            await use(store, 0, works=True)
            with stopped(own_redis):
                begun = time.monotonic()
                await use(store, 100, works=False)
                # One time limit for all, not one for each.
                assert time.monotonic() - begun < STALLS
            await until_it_works(store)
            await use(store, 200, works=True)

    do(scenario())
    assert said(caplog) == ["WARNING", "INFO"]
    assert f"no answer for {LIMIT:g} s" in caplog.text


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_it_goes_while_somebody_waits_for_news(
    own_redis: RedisServer, do: Do, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    async def scenario() -> None:
        url = f"{own_redis.url}?socket_timeout={LIMIT}"
        async with guarded(url) as ours, guarded(url) as theirs:
            await theirs.claim(origin(), LEASE)
            waiting = asyncio.create_task(ours.wait_for_update(origin(), LEASE))
            await asyncio.sleep(0.1)
            own_redis.signal(signal.SIGSTOP if how == "stopped" else signal.SIGKILL)
            await asyncio.wait_for(waiting, STALLS)
            assert not ours.works
            assert (await in_time(ours.claim(origin(), LEASE))).lease is not None

    do(scenario())
    assert said(caplog) == ["WARNING"]


def test_started_again_empty(
    own_redis: RedisServer,
    do: Do,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It is the failure that makes it try again, not the next greeting.
    monkeypatch.setattr(redis_client, "_GREET_EVERY", 3600.0)

    async def scenario() -> None:
        async with guarded(own_redis.patient_url) as store:
            await use(store, 0, works=True)
            own_redis.kill()
            await use(store, 100, works=False)
            own_redis.start()
            await until_it_works(store)
            assert await store.read(origin()) is None
            await use(store, 0, works=True)

    do(scenario())
    assert said(caplog) == ["WARNING", "INFO"]


def test_it_forgets_everything(
    own_redis: RedisServer, do: Do, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with guarded(own_redis.patient_url) as store:
            await use(store, 0, works=True)
            with own_redis.client() as client:
                client.flushall()
                client.script_flush()
            await use(store, 0, works=True)

    do(scenario())
    assert said(caplog) == []


def test_it_hangs_up_on_whoever_is_idle(
    own_redis: RedisServer, do: Do, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with guarded(own_redis.patient_url) as store:
            for start in (0, 100):
                await asyncio.gather(*(store.read(origin(number)) for number in range(50)))
                with own_redis.client() as client:
                    client.execute_command("CLIENT", "KILL", "TYPE", "normal")
                await use(store, start, works=True)

    do(scenario())
    assert said(caplog) == []


def test_a_replica(any_redis: RedisServer, do: Do, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with guarded(any_redis.patient_url) as store:
            await use(store, 0, works=True)
            with any_redis.client() as client:
                client.replicaof("127.0.0.1", "1")
                await use(store, 100, works=False)
                client.replicaof("NO", "ONE")
            await until_it_works(store)

    do(scenario())
    assert said(caplog) == ["WARNING", "INFO"]
    assert "name the master in REP_STORE" in caplog.text


def test_full(any_redis: RedisServer, do: Do, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        url = any_redis.patient_url
        async with guarded(url) as store, guarded(url) as other:
            lease = (await store.claim(origin(), LEASE)).lease
            waiting = asyncio.create_task(other.wait_for_update(origin(), LEASE))
            await asyncio.sleep(0.1)
            with any_redis.client() as client:
                client.config_set("maxmemory", 1)
                # What there is no room for ends the lease all the same.
                await store.write(entry(), lease)
                await asyncio.wait_for(waiting, STALLS)
                await use(store, 100, works=False)
                client.config_set("maxmemory", 0)
            await until_it_works(store)
            await use(store, 100, works=True)

    do(scenario())
    assert said(caplog)[:1] == ["WARNING"]
    assert said(caplog)[-1:] == ["INFO"]
    assert "Redis is full: raise its maxmemory" in caplog.text


def test_a_password(any_redis: RedisServer, do: Do, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        url = any_redis.patient_url
        async with guarded(url.replace("//", "//:superfluous@")) as store:
            await use(store, 0, works=False)
        with any_redis.client() as client:
            client.config_set("requirepass", "secret")
        async with guarded(url) as store:
            await use(store, 0, works=False)
        async with guarded(url.replace("//", "//:secret@")) as store:
            await use(store, 0, works=True)
        async with guarded(url.replace("//", "//:wrong-one@")) as store:
            await use(store, 0, works=False)

    do(scenario())
    assert said(caplog) == ["WARNING"] * 3
    assert "remove the password from REP_STORE" in caplog.text
    assert "add the password to REP_STORE" in caplog.text
    assert "look at the user name and the password in REP_STORE" in caplog.text
    assert "wrong-one" not in caplog.text
    assert "superfluous" not in caplog.text


def documented_rights() -> list[str]:
    """The line of docs/stores.rst that makes a user of Redis, without its first words."""
    text = (Path(__file__).parents[2] / "docs" / "stores.rst").read_text("utf-8")
    lines = text[text.index("ACL SETUSER") :].partition("\n\n")[0].replace("\\\n", " ")
    _, _, user, *rights = lines.split()
    assert user == "crawler"
    return rights


def test_the_documented_rights_suffice(
    any_redis: RedisServer, do: Do, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        with any_redis.client() as client:
            client.execute_command("ACL", "SETUSER", "crawler", *documented_rights())
        url = any_redis.patient_url.replace("//", "//crawler:secret@")
        async with guarded(url) as store:
            await use(store, 0, works=True)
            lease = (await store.claim(origin(99), LEASE)).lease
            assert lease is not None
            await store.wait_for_update(origin(99), 0.1)
            # Past a beat, in which it is renewed.
            await asyncio.sleep(2.5)
            await store.release(lease)
        plain = RedisStore(parse_url(url))
        assert len([found async for found in plain.origins()]) == 30
        assert await plain.delete(origin())
        assert await plain.clear() == 29
        await plain.close()
        turns = RedisTurns(parse_url(url))
        await turns.start()
        assert await turns.grant("a.example", 0.1) > 0
        await turns.tell(Event.OVER, "a.example", 0.1)
        await turns.tell(Event.HELD, "a.example", 0.1)
        await turns.tell(Event.UNUSED, "a.example", 0.1)
        await turns.tell(Event.SLOW, "a.example", 2.0)
        assert await turns.slowed() == {"a.example": 2.0}
        await turns.tell(Event.SLOW, "a.example", 0)
        await turns.close()
        assert turns.workers == 1
        with any_redis.client() as client:
            assert client.zcard("scrapy-rep:workers") == 0

    do(scenario())
    assert said(caplog) == []


@pytest.mark.parametrize("lacks", [False, True])
def test_the_documented_rights_in_a_cluster(
    any_redis_cluster: RedisCluster, do: Do, caplog: pytest.LogCaptureFixture, lacks: bool
) -> None:
    async def scenario() -> None:
        more = ["-cluster"] if lacks else ["+cluster|slots", "+command", "+info"]
        for server in any_redis_cluster.servers:
            with server.client() as client:
                rights = [*documented_rights(), *more]
                client.execute_command("ACL", "SETUSER", "crawler", "reset", *rights)
        url = any_redis_cluster.patient_url.replace("//", "//crawler:secret@")
        async with guarded(url) as store:
            await use(store, 0, works=not lacks)
        if not lacks:
            plain = RedisStore(parse_url(url))
            assert await plain.clear() == 30
            await plain.close()

    do(scenario())
    assert said(caplog) == ["WARNING"] * lacks
    assert ("the rights that docs/stores.rst lists" in caplog.text) is lacks


@pytest.mark.parametrize("lacking", ["-evalsha", "-set", "resetkeys"])
def test_a_user_without_the_rights(
    any_redis: RedisServer, do: Do, caplog: pytest.LogCaptureFixture, lacking: str
) -> None:
    async def scenario() -> None:
        with any_redis.client() as client:
            client.execute_command("ACL", "SETUSER", "crawler", *documented_rights(), lacking)
        async with guarded(any_redis.patient_url.replace("//", "//crawler:secret@")) as store:
            await use(store, 0, works=False)

    do(scenario())
    assert said(caplog) == ["WARNING"]
    assert "the rights that docs/stores.rst lists" in caplog.text


@pytest.mark.parametrize("url", ["redis://HOST", "redis://HOST/3"])
def test_a_cluster_that_is_not_called_one(
    any_redis_cluster: RedisCluster, do: Do, caplog: pytest.LogCaptureFixture, url: str
) -> None:
    async def scenario() -> None:
        place = f"127.0.0.1:{any_redis_cluster.servers[0].port}"
        async with guarded(f"{url.replace('HOST', place)}?socket_timeout=10") as store:
            for number in range(20):
                await store.read(origin(number))
            assert not store.works

    do(scenario())
    assert "this is a Redis Cluster: write redis+cluster://" in caplog.text


def test_a_server_that_is_called_a_cluster(
    any_redis: RedisServer, do: Do, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        url = f"redis+cluster://127.0.0.1:{any_redis.port}?socket_timeout=10"
        async with guarded(url) as store:
            await use(store, 0, works=False)

    do(scenario())
    assert "this is not a Redis Cluster: write redis://" in caplog.text


def test_a_crawl_that_holds_up_the_loop_is_no_fault_of_redis(
    own_redis: RedisServer,
    do: Do,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held_up = 0.0

    async def scenario() -> None:
        nonlocal held_up
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: time.monotonic() + held_up)
        async with guarded(own_redis.patient_url) as store:
            await use(store, 0, works=True)
            for number in range(5):
                reading = asyncio.create_task(store.read(origin(number)))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                # As by a callback that parses a very large page.
                held_up += 100
                assert await reading is not None

    do(scenario())
    assert said(caplog) == []


def test_a_unix_socket(own_redis: RedisServer, do: Do, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with guarded(f"unix://{own_redis.socket}?db=3&prefix=x:&socket_timeout=10") as store:
            await use(store, 0, works=True)
        with own_redis.client(db=3) as client:
            assert client.exists("x:entry:{https://host0.example}")

    do(scenario())
    assert said(caplog) == []


def test_tls(own_redis: RedisServer, do: Do, caplog: pytest.LogCaptureFixture) -> None:
    """Through something that speaks TLS and passes the rest on."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(2**16):
                writer.write(data)
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, questions = await asyncio.open_connection("127.0.0.1", own_redis.port)
        await asyncio.gather(pass_on(reader, questions), pass_on(answers, writer))

    async def scenario() -> None:
        front = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls_context())
        url = f"rediss://127.0.0.1:{front.sockets[0].getsockname()[1]}/0"
        async with guarded(f"{url}?ssl_cert_reqs=none&socket_timeout=10") as store:
            await use(store, 0, works=True)
        # Nobody vouches for this certificate.
        async with guarded(f"{url}?socket_timeout=10") as store:
            await use(store, 100, works=False)
        front.close()

    do(scenario())
    assert said(caplog) == ["WARNING"]
    assert "name the file of the authority that signed the certificate" in caplog.text


@pytest.mark.once
def test_sentinel_fails_over(
    has_redis: None, tmp_path: Path, do: Do, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        with RedisServer() as master, RedisServer() as replica:
            with replica.client() as client:
                client.replicaof("127.0.0.1", str(master.port))
                while client.info("replication")["master_link_status"] != "up":
                    await asyncio.sleep(0.05)
            with RedisServer.sentinel(tmp_path, "main", master.port) as sentinel:
                with sentinel.client() as client:
                    while client.sentinel_master("main")["num-slaves"] != 1:
                        await asyncio.sleep(0.1)
                url = f"redis+sentinel://127.0.0.1:1,127.0.0.1:{sentinel.port}/main/2"
                async with guarded(f"{url}?socket_timeout=10") as store:
                    await use(store, 0, works=True)
                    with replica.client(db=2) as client:
                        while not client.exists("scrapy-rep:entry:{https://host29.example}"):
                            await asyncio.sleep(0.05)
                    master.kill()
                    await use(store, 100, works=False)
                    with sentinel.client() as client:
                        client.sentinel_set("main", "down-after-milliseconds", 500)
                    await until_it_works(store)
                    # What the replica knows is known.
                    assert await store.read(origin(0)) is not None
                    await use(store, 200, works=True)

    do(scenario())
    assert said(caplog) == ["WARNING", "INFO"]
