"""A store that needs an event loop, for tests that have none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from types import TracebackType
from typing import Any, TypeVar

from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.stores.base import MAX_LEASE, Claim, Lease, Store
from scrapy_rep.stores.redis import RedisStore
from scrapy_rep.stores.redis_url import parse_url
from tests.stores.examples import Clock
from tests.stores.redis_server import RedisServer

_T = TypeVar("_T")


class LoopInThread:
    """An event loop of asyncio's, in a thread of its own. A context manager."""

    def __enter__(self) -> LoopInThread:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """What *coroutine* returns; nothing else happens in this thread until then."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(120)


class BlockingStore(Store):
    """*store* on *loop*; whoever awaits its methods waits without an event loop."""

    def __init__(self, store: Store, loop: LoopInThread) -> None:
        self._store = store
        self._run = loop.run

    async def read(self, origin: Origin) -> CacheEntry | None:
        return self._run(self._store.read(origin))

    async def claim(self, origin: Origin, seconds: float) -> Claim:
        return self._run(self._store.claim(origin, seconds))

    async def write(self, entry: CacheEntry, lease: Lease | None = None) -> None:
        self._run(self._store.write(entry, lease))

    async def release(self, lease: Lease) -> None:
        self._run(self._store.release(lease))

    async def has_lease(self, origin: Origin) -> bool:
        return self._run(self._store.has_lease(origin))

    async def delete(self, origin: Origin) -> bool:
        return self._run(self._store.delete(origin))

    async def clear(self) -> int:
        return self._run(self._store.clear())

    async def origins(self) -> AsyncIterator[Origin]:
        async def listed() -> list[Origin]:
            return [origin async for origin in self._store.origins()]

        for origin in self._run(listed()):
            yield origin

    async def close(self) -> None:
        self._run(self._store.close())


class SharedClock(Clock):
    """A clock that a Redis server goes by, too."""

    #: The Lua that gives the time to scripts.
    LUA = "local function now() return tonumber(redis.call('GET', 'test:now')) end\n"

    def __init__(self, server: RedisServer) -> None:
        self._redis = server.client()
        super().__init__()

    @property
    def now(self) -> float:
        return self._now

    @now.setter
    def now(self, now: float) -> None:
        self._now = now
        self._redis.set("test:now", round(now * 1000))


def redis_store(server: RedisServer, clock: SharedClock) -> RedisStore:
    """A store in *server*, where it is as late as *clock* says; its leases are not renewed."""
    url = parse_url(server.patient_url)
    return RedisStore(url, clock, SharedClock.LUA, lease_kept_for=MAX_LEASE)
