"""A connection to Redis that a crawl can rely on not to keep it waiting.

Here may live: time limits, what happens when Redis is gone, Redis' clock, and on which event
loop all that runs. Here may not live: what is asked of Redis.

redis-py needs asyncio. Where Scrapy runs on asyncio, so does the client; where it
runs on another reactor, the client has a thread with an event loop of its own.
"""

from __future__ import annotations

import asyncio
import re
import threading
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from hashlib import sha1
from typing import Any, TypeVar

from redis.exceptions import NoScriptError
from twisted.internet.defer import Deferred, maybeDeferred

from scrapy_rep.rep.text import printable

from .base import StoreError
from .redis_url import RedisUrl

_T = TypeVar("_T")

#: The Lua that gives the time by Redis' own clock, in milliseconds since the epoch.
SERVER_TIME = """
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
"""
#: The Lua that reads a value: false for none, '' for one that is of another type or
#: too long. So no script fails by what somebody has put there, or is slow by it.
TEXT = """
local function text(key, limit)
  local size = redis.pcall('STRLEN', key)
  if type(size) ~= 'number' or size > limit then return '' end
  return redis.call('GET', key)
end
"""

# Operations at the same time, and so connections.
_AT_ONCE = 8
# Seconds to the first attempt to connect again; it doubles, up to the last one.
_FIRST_DELAY = 0.1
_LONGEST_DELAY = 5.0
# Seconds that Redis must have worked for before the first delay holds again.
_WELL = 30.0
# A new connection takes several round trips.
_CONNECTING = 4
# Seconds between two greetings while Redis works.
_GREET_EVERY = 2.0
# Into how many pieces a time limit is cut.
_PIECES = 5
# How much worse an answer may be than the best one, to say more of Redis' clock: so many
# seconds for each second between them.
_DRIFT = 0.001

# What a person can do, by what is part of the error: the class that redis-py makes of a code,
# or the words of Redis 6, Redis 7 or Valkey.
_ADVICE = {
    "'maxmemory'": "Redis is full: raise its maxmemory, or let it evict with maxmemory-policy "
    "volatile-lru",
    "read only replica": "name the master in REP_STORE, or the sentinels (redis+sentinel://…)",
    "MISCONF": "Redis cannot write to its disk",
    "NOREPLICAS": "Redis does not write while so few replicas are connected",
    "without any password": "remove the password from REP_STORE: Redis has none",
    "uthentication required": "add the password to REP_STORE: redis://:password@host",
    "username-password|invalid password": "look at the user name and the password in REP_STORE",
    "o permission|user executing the script": "give this user of Redis the rights that "
    "docs/stores.rst lists",
    "CERTIFICATE_VERIFY_FAILED": "name the file of the authority that signed the certificate: "
    "rediss://…?ssl_ca_certs=/path, and the host as in the certificate",
    "WRONG_VERSION_NUMBER|record layer failure": "this port does not speak TLS: write redis:// "
    "for rediss://",
    "MovedError|MOVED |cluster mode": "this is a Redis Cluster: write redis+cluster://host:port "
    "for redis://…",
    "ClusterDownError": "the Redis Cluster does not serve all keys: see CLUSTER INFO",
    "Cluster mode is not enabled|cluster support disabled": "this is not a Redis Cluster: write "
    "redis:// for redis+cluster://",
}

_Operation = Callable[[Any], Awaitable[_T]]


def milliseconds(seconds: float) -> int:
    """As scripts have times."""
    return round(seconds * 1000)


class RedisClient:
    """Runs operations on the Redis of *url*; each within its time limit.

    *greet* is an operation that works where all others do. It is done first and every two
    seconds. When any operation fails, all fail at once, without being tried, until *greet* has
    worked in the background. So nobody waits for a Redis that is known to be gone. *clock* gives
    seconds. All methods raise :exc:`~.base.StoreError` alone.
    """

    def __init__(
        self, url: RedisUrl, greet: _Operation[object], clock: Callable[[], float]
    ) -> None:
        self._url = url
        self._greet = greet
        self._clock = clock
        #: The client of redis-py; ``None`` while this one is closed.
        self._redis: Any = None
        #: What Redis' clock is ahead of ours, in seconds.
        self.ahead = 0.0
        #: By how much that may be wrong, and when it was found out.
        self._error, self._noted_at = float("inf"), 0.0

    @property
    def is_open(self) -> bool:
        """Whether it has been used, and not been closed since."""
        return self._redis is not None

    async def run(self, operation: _Operation[_T], limit: float | None = None) -> _T:
        """What *operation* gets from Redis within *limit* seconds; it may be done twice."""
        return await self._there(self._run(operation, limit or self._url.timeout))

    async def script(self, lua: str, keys: list[str], *arguments: str | bytes | int) -> list[Any]:
        """What *lua* returns, which Redis does in one piece: the time first, which is noted."""
        return await self.run(lambda redis: self.evaluate(redis, lua, keys, *arguments))

    async def evaluate(
        self, redis: Any, lua: str, keys: list[str], *arguments: str | bytes | int
    ) -> list[Any]:
        """As :meth:`script`, as a part of an operation."""
        before = self._clock()
        rest = (len(keys), *keys, *arguments)
        try:
            now, *result = await redis.evalsha(sha1(lua.encode()).hexdigest(), *rest)
        except NoScriptError:
            now, *result = await redis.eval(lua, *rest)
        self._note_time(now / 1000, before, self._clock())
        return list(result)

    async def ready(self) -> None:
        """Wait until the first connection is made and *greet* has worked."""
        await self._there(self._ready())

    async def close(self) -> None:
        """End all operations and close all connections. The next use opens them again.

        What is under way has its time limit; what waits for its turn fails.
        """
        if self.is_open:
            await self._there(self._close())
            self._redis = None
            if self._thread is not None:
                self._thread.stop()

    def _note_time(self, now: float, before: float, after: float) -> None:
        """It was *now* in Redis, some time between *before* and *after* here."""
        error = after - before
        if 0 <= error <= self._error + abs(after - self._noted_at) * _DRIFT:
            self.ahead = now - (before + after) / 2
            self._error, self._noted_at = error, after

    async def _there(self, work: Coroutine[Any, Any, _T]) -> _T:
        """What *work* returns, which is run on the event loop of the connections."""
        if not self.is_open:
            self._redis = self._url.client()
            self._thread = None if _in_asyncio() else _Thread()
            self._places = asyncio.Semaphore(_AT_ONCE)
            #: Why no operation is tried now; empty if they are.
            self._trouble = ""
            #: The first greeting is over; an operation has failed since the last one.
            self._settled, self._failed = asyncio.Event(), asyncio.Event()
            self._staying: asyncio.Task[None] | None = None
        return await (work if self._thread is None else self._thread.result_of(work))

    # -- on the event loop of the connections -----------------------------------------

    async def _run(self, operation: _Operation[_T], limit: float) -> _T:
        # Waiting for a place is no fault of Redis'.
        async with self._places:
            await self._ready()
            return await self._attempt(operation, limit)

    async def _ready(self) -> None:
        if self._staying is None:
            self._staying = asyncio.create_task(self._stay_connected())
        await self._settled.wait()
        if self._trouble:
            # A new one each time: one that is raised again grows.
            raise StoreError(self._trouble)

    async def _attempt(self, operation: _Operation[_T], limit: float) -> _T:
        try:
            return await _within(operation(self._redis), limit)
        except Exception as error:
            self._trouble = self._said(error)
            self._failed.set()
            raise StoreError(self._trouble) from error

    async def _stay_connected(self) -> None:
        """Greet Redis, and again after a failure: after longer and longer pauses."""
        delay = _FIRST_DELAY
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            with suppress(StoreError):
                await self._attempt(self._greet, _CONNECTING * self._url.timeout)
                self._trouble = ""
                self._failed.clear()
                while True:
                    self._settled.set()
                    with suppress(TimeoutError):
                        await _within(self._failed.wait(), _GREET_EVERY)
                    await self._run(self._greet, self._url.timeout)
            self._settled.set()
            if loop.time() - began > _WELL:
                delay = _FIRST_DELAY
            await self._hang_up()
            await asyncio.sleep(delay)
            delay = min(2 * delay, _LONGEST_DELAY)

    async def _close(self) -> None:
        if self._staying is not None:
            self._staying.cancel()
        # To those who wait for the first greeting, or for a place.
        self._trouble = f"{self._url.name}: it was closed"
        self._settled.set()
        async with AsyncExitStack() as places:
            for _ in range(_AT_ONCE):
                await places.enter_async_context(self._places)
            await self._hang_up()

    async def _hang_up(self) -> None:
        with suppress(Exception):
            await _within(self._redis.aclose(), self._url.timeout)

    def _said(self, error: Exception) -> str:
        """What Redis has said, and what to do about it."""
        # redis-py does not always say why it could not connect: the causes do.
        all_said = "".join(traceback.format_exception(error, limit=0))
        advice = [_ADVICE[words] for words in _ADVICE if re.search(words, all_said)]
        said = str(error) or type(error).__name__
        return ": ".join(map(printable, [self._url.name, said, *advice[:1]]))


class _Thread(threading.Thread):
    """An event loop of asyncio's, in a thread of its own."""

    def __init__(self) -> None:
        super().__init__(name="scrapy-rep-redis", daemon=True)
        self._loop = asyncio.new_event_loop()
        self.start()

    def run(self) -> None:
        self._loop.run_forever()
        # What began while the client was closed: it fails at once.
        while tasks := asyncio.all_tasks(self._loop):
            self._loop.run_until_complete(asyncio.wait(tasks))
        self._loop.close()

    def result_of(self, work: Coroutine[Any, Any, _T]) -> Deferred[_T]:
        # There is a reactor, and it runs: this is awaited on it. Nothing else of Twisted or
        # Scrapy brings a result from a thread that is not its own.
        from twisted.internet import reactor

        def deliver() -> None:
            if not answer.called:
                maybeDeferred(future.result).chainDeferred(answer)

        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        answer: Deferred[_T] = Deferred(lambda _: future.cancel())  # type: ignore[arg-type]
        future.add_done_callback(lambda _: reactor.callFromThread(deliver))
        return answer

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.join()


def _in_asyncio() -> bool:
    """Whether who asks is a task of asyncio's."""
    with suppress(RuntimeError):
        return asyncio.current_task() is not None
    return False


async def _within(work: Awaitable[_T], seconds: float) -> _T:
    """What *work* returns. Raises :exc:`TimeoutError` if it takes longer than *seconds*.

    Only time in which the loop turns counts: where a crawl has held it up, the
    answer may be there, but not read yet.
    """
    task = asyncio.ensure_future(work)
    # Or asyncio mentions what it raises when it is cancelled.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        for _ in range(_PIECES):
            await asyncio.wait({task}, timeout=seconds / _PIECES)
            if task.done():
                return task.result()
        raise TimeoutError(f"no answer for {seconds:g} s")
    finally:
        task.cancel()
