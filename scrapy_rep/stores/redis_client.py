"""A connection to Redis that a crawl can rely on not to keep it waiting.

Here may live: time limits, what happens when Redis is gone, subscriptions, and on
which event loop all that runs. Here may not live: what is asked of Redis.

redis-py needs asyncio. Where Scrapy runs on asyncio, so does the client; where it
runs on another reactor, the client has a thread with an event loop of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import RedisError
from twisted.internet.defer import Deferred

from scrapy_rep.rep.text import printable

from .base import StoreError
from .redis_url import RedisUrl

_T = TypeVar("_T")

#: What redis-py and the operating system raise.
_TROUBLE = (RedisError, OSError, asyncio.TimeoutError, TimeoutError)

# Operations at the same time, and so connections.
_AT_ONCE = 8
# Seconds to the first attempt to connect again; it doubles, up to the last one.
_FIRST_DELAY = 0.1
_LONGEST_DELAY = 5.0
# Seconds that Redis must have worked for before the first delay holds again.
_WELL = 30.0
# A new connection takes several round trips.
_CONNECTING = 4
# Into how many pieces a time limit is cut.
_PIECES = 5
# Seconds between two looks at whether the subscriptions still work, while they
# are waited for.
_PULSE = 0.3

# What a person can do, by what Redis says; redis-py leaves out some of its codes.
_ADVICE = {
    "OOM": "Redis is full: raise its maxmemory, or let it evict with maxmemory-policy volatile-lru",
    "read only replica": "name the master in REP_STORE, or the sentinels (redis+sentinel://…)",
    "MISCONF": "Redis cannot write to its disk",
    "uthenticat": "add the password to REP_STORE: redis://:password@host",
    "username-password": "look at the user name and the password in REP_STORE",
    "no permission": "let this user of Redis run scripts, publish and subscribe",
}


class RedisClient:
    """Runs operations on the Redis of *url*; each within its time limit.

    When one fails, all fail at once, without being tried, until a new connection
    has been made in the background and *greet* has worked on it. So nobody waits
    for a Redis that is known to be gone. *greet* is repeated each *greet_every*
    seconds, if that is given. All methods raise
    :exc:`~.base.StoreError` alone.
    """

    def __init__(
        self,
        url: RedisUrl,
        greet: Callable[[Redis], Awaitable[object]],
        greet_every: float | None = None,
    ) -> None:
        self._make = partial(Connected, url, greet, greet_every)
        self._home: _Home | None = None

    async def call(self, work: Callable[[Connected], Coroutine[Any, Any, _T]]) -> _T:
        """What *work* returns, which is run on the client's event loop."""
        if self._home is None:
            self._home = _Home(self._make())
        return await self._home.run(work)

    async def run(self, operation: Callable[[Redis], Awaitable[_T]]) -> _T:
        """What *operation* gets from Redis.

        It is done again where a connection turns out to have been closed.
        """
        return await self.call(lambda connected: connected.run(operation))

    async def ready(self) -> None:
        """Wait until the first connection is made and *greet* has worked."""
        await self.call(_ready)

    @property
    def is_open(self) -> bool:
        """Whether it has been used, and not been closed since."""
        return self._home is not None

    async def close(self) -> None:
        """Close all connections. The next use opens them again."""
        home, self._home = self._home, None
        if home is not None:
            await home.close()


class _Home:
    """Where a client runs: on the loop of whoever uses it, or in a thread of its own."""

    def __init__(self, connected: Connected) -> None:
        self._connected = connected
        self._loop: asyncio.AbstractEventLoop | None = None
        if not _in_asyncio():
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="scrapy-rep-redis", daemon=True
            )
            self._thread.start()

    async def run(self, work: Callable[[Connected], Coroutine[Any, Any, _T]]) -> _T:
        if self._loop is None:
            return await work(self._connected)
        return await _from_thread(work(self._connected), self._loop)

    async def close(self) -> None:
        await self.run(lambda connected: connected.close())
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


def _in_asyncio() -> bool:
    """Whether who asks is a task of asyncio's."""
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


def _from_thread(work: Coroutine[Any, Any, _T], loop: asyncio.AbstractEventLoop) -> Deferred[_T]:
    """What *work* returns on *loop*, which runs in another thread."""
    # There is one, and it runs: this is awaited on it. Nothing else of Twisted or
    # Scrapy brings a result from a thread that is not its own.
    from twisted.internet import reactor

    future = asyncio.run_coroutine_threadsafe(work, loop)

    def cancel(_: object) -> None:
        future.cancel()

    def deliver() -> None:
        if answer.called or future.cancelled():
            return
        error = future.exception()
        if error is None:
            answer.callback(future.result())
        else:
            answer.errback(error)

    answer: Deferred[_T] = Deferred(cancel)
    future.add_done_callback(lambda _: reactor.callFromThread(deliver))
    return answer


async def within(work: Awaitable[_T], seconds: float) -> _T:
    """What *work* returns. Raises :exc:`TimeoutError` if it takes longer than *seconds*.

    Only time in which the loop turns counts: where a crawl has held it up, the
    answer may be there, but not read yet.
    """
    task = asyncio.ensure_future(work)
    try:
        for _ in range(_PIECES):
            await asyncio.wait({task}, timeout=seconds / _PIECES)
            if task.done():
                return task.result()
    finally:
        if not task.done():
            task.cancel()
            # Or asyncio mentions what it raises all the same.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
    raise TimeoutError(f"no answer for {seconds:g} s")


class Connected:
    """The part of a client that lives on its event loop. Used there alone."""

    def __init__(
        self,
        url: RedisUrl,
        greet: Callable[[Redis], Awaitable[object]],
        greet_every: float | None,
    ) -> None:
        self._url = url
        self._greet = greet
        self._greet_every = greet_every
        self._greeting: asyncio.Task[None] | None = None
        self._redis: Redis | None = None
        #: Why there is no connection, as far as that is known.
        self._trouble = ""
        self._connecting: asyncio.Task[None] | None = None
        #: The first attempt to connect is over.
        self._settled = asyncio.Event()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._subscriptions: _Subscriptions | None = None
        self._delay = _FIRST_DELAY
        self._works_since = 0.0

    async def run(self, operation: Callable[[Redis], Awaitable[_T]]) -> _T:
        """See :meth:`RedisClient.run`."""
        await self.ready()
        # Waiting for a place is no fault of Redis'.
        async with self._places:
            redis = self._working()
            try:
                return await self._attempt(redis, operation)
            except _TROUBLE as error:
                raise self._broken(redis, error) from error

    async def _attempt(self, redis: Redis, operation: Callable[[Redis], Awaitable[_T]]) -> _T:
        try:
            return await within(operation(redis), self._url.timeout)
        except NoConnection:
            if redis is not self._redis:
                raise
            # One that was not used for long, perhaps; then so are others.
            hanging_up = redis.connection_pool.disconnect(inuse_connections=False)
            await within(hanging_up, self._url.timeout)
            return await within(operation(redis), self._url.timeout)

    @contextlib.asynccontextmanager
    async def listening(self, channel: str) -> AsyncIterator[asyncio.Future[None]]:
        """A future that is done when there is a message on *channel*, or may have been."""
        redis = await self.ready()
        if self._subscriptions is None:
            self._subscriptions = _Subscriptions(redis, self._url, self._broken)
        subscriptions = self._subscriptions
        try:
            told = await within(subscriptions.add(channel), self._url.timeout)
        except _TROUBLE as error:
            raise self._broken(redis, error) from error
        try:
            yield told
        finally:
            subscriptions.remove(channel, told)

    async def close(self) -> None:
        """Close all connections, and let go of whoever waits."""
        tasks = {task for task in (self._connecting, self._greeting) if task is not None}
        self._connecting = self._greeting = None
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        redis, self._redis = self._redis, None
        self._trouble = ""
        self._settled.clear()
        await self._let_go(redis)

    # -- connecting -----------------------------------------------------------------

    async def ready(self) -> Redis:
        """The connection; waits for the first one, and only for that."""
        if self._redis is None and self._connecting is None:
            self._start_connecting(after=0.0)
        if not self._settled.is_set():
            with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                await within(self._settled.wait(), self._url.timeout)
        return self._working()

    def _working(self) -> Redis:
        if self._redis is None:
            # A new one each time: one that is raised again grows.
            raise StoreError(self._trouble or self._said("no connection so far"))
        return self._redis

    def _broken(self, redis: Redis, error: Exception) -> StoreError:
        """Note that *redis* does not work, and see to another one."""
        trouble = self._said(str(error) or type(error).__name__)
        if redis is self._redis:
            self._redis, self._trouble = None, trouble
            if asyncio.get_running_loop().time() - self._works_since > _WELL:
                self._delay = _FIRST_DELAY
            self._start_connecting(after=self._delay, instead_of=redis)
        return StoreError(trouble)

    def _start_connecting(self, after: float, instead_of: Redis | None = None) -> None:
        self._connecting = asyncio.get_running_loop().create_task(
            self._connect_until_it_works(after, instead_of)
        )

    async def _connect_until_it_works(self, after: float, instead_of: Redis | None) -> None:
        await self._let_go(instead_of)
        while True:
            await asyncio.sleep(after)
            redis = self._url.client()
            try:
                await within(self._greet(redis), _CONNECTING * self._url.timeout)
                self._redis, self._connecting = redis, None
                self._works_since = asyncio.get_running_loop().time()
                self._keep_greeting()
                return
            except Exception as error:
                # Whatever it is: this goes on until it works.
                self._trouble = self._said(str(error) or type(error).__name__)
            finally:
                self._settled.set()
                if self._redis is None:
                    await self._hang_up(redis)
            after, self._delay = self._delay, min(2 * self._delay, _LONGEST_DELAY)

    def _keep_greeting(self) -> None:
        if self._greet_every is not None and self._greeting is None:
            self._greeting = asyncio.get_running_loop().create_task(
                self._greet_again_and_again(self._greet_every)
            )

    async def _greet_again_and_again(self, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            with contextlib.suppress(StoreError):
                await self.run(self._greet)

    async def _let_go(self, redis: Redis | None) -> None:
        subscriptions, self._subscriptions = self._subscriptions, None
        if subscriptions is not None:
            await subscriptions.close()
        if redis is not None:
            await self._hang_up(redis)

    async def _hang_up(self, redis: Redis) -> None:
        with contextlib.suppress(*_TROUBLE):
            await within(redis.aclose(close_connection_pool=True), self._url.timeout)

    def _said(self, said: str) -> str:
        """What Redis has said, and what to do about it."""
        advice = next((_ADVICE[words] for words in _ADVICE if words in said), "")
        what = f"{printable(said)}: {advice}" if advice else printable(said)
        return f"{printable(str(self._url))}: {what}"


class _Subscriptions:
    """One connection that listens, on as many channels as somebody waits for."""

    def __init__(
        self, redis: Redis, url: RedisUrl, broken: Callable[[Redis, Exception], object]
    ) -> None:
        self._redis = redis
        self._timeout = url.timeout
        # Never published to. redis-py stops listening where nothing is subscribed to.
        self._idle = f"{url.prefix}idle"
        self._broken = broken
        self._pubsub: PubSub = redis.pubsub()
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        #: Whoever waits for Redis to say that a channel is listened to.
        self._confirming: dict[str, asyncio.Future[None]] = {}
        self._pong = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._started: asyncio.Task[None] | None = None

    async def add(self, channel: str) -> asyncio.Future[None]:
        """Listen on *channel*; when this returns, no message is missed."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[None] = loop.create_future()
        is_new = channel not in self._waiting
        self._waiting.setdefault(channel, set()).add(told)
        try:
            if self._started is None:
                self._started = loop.create_task(self._start())
            await asyncio.shield(self._started)
            if is_new:
                self._confirming[channel] = loop.create_future()
                await self._pubsub.subscribe(channel)
            if channel in self._confirming:
                await asyncio.shield(self._confirming[channel])
        except BaseException:
            self.remove(channel, told)
            raise
        return told

    def remove(self, channel: str, told: asyncio.Future[None]) -> None:
        """Do not wait on *channel* any more."""
        waiting = self._waiting.get(channel, set())
        waiting.discard(told)
        if not waiting and self._waiting.pop(channel, None) is not None:
            self._do(partial(self._pubsub.unsubscribe, channel))

    async def close(self) -> None:
        """Hang up, and let go of whoever waits."""
        for task in list(self._tasks):
            task.cancel()
        everybody = [*self._confirming.values(), *(set().union(*self._waiting.values()))]
        self._waiting.clear()
        for future in everybody:
            _tell(future)
        with contextlib.suppress(*_TROUBLE):
            await self._pubsub.aclose()  # type: ignore[no-untyped-call]

    async def _start(self) -> None:
        await self._pubsub.subscribe(self._idle)
        self._do(self._listen)
        self._do(self._look)

    def _do(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do *work* in the background; if it fails, the connection does not work."""
        task = asyncio.get_running_loop().create_task(self._try(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _try(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            # Made only now: one that is cancelled before it begins is never awaited.
            await work()
        except Exception as error:
            self._broken(self._redis, error)

    async def _listen(self) -> None:
        async for message in self._pubsub.listen():
            channel = (message["channel"] or b"").decode("ascii", "replace")
            if message["type"] == "pong":
                self._pong.set()
            elif message["type"] == "subscribe" and channel in self._confirming:
                _tell(self._confirming.pop(channel))
            elif message["type"] == "message":
                for told in self._waiting.get(channel, ()):
                    _tell(told)

    async def _look(self) -> None:
        """Find out if Redis is gone without a word, which would keep all waiting."""
        while True:
            await asyncio.sleep(_PULSE)
            if self._waiting:
                self._pong.clear()
                await self._pubsub.ping()
                await within(self._pong.wait(), self._timeout)


async def _ready(connected: Connected) -> None:
    await connected.ready()


def _tell(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
