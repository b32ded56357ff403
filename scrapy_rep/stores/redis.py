"""A store in Redis, for any number of processes on any number of machines.

Here may live: what is asked of Redis, as scripts that Redis runs in one piece, and
how its keys and values look. What to do about a Redis that is gone is in
``redis_client.py``.

=====================  ====================================================================
key, after the prefix
=====================  ====================================================================
``entry:ORIGIN``       when there was news last (ms since the epoch), a space, and entry as
                       :func:`.base.encode` has them; forgotten after :data:`.base.KEPT_FOR`
``lease:ORIGIN``       when it was taken and until when it lasts (ms), and its token
=====================  ====================================================================

``news:ORIGIN`` is a channel: a lease has ended, or there are new entry.

All times in Redis are by its own clock, and no worker's clock has a say in whose
turn it is. A worker translates them as far as its clock is off.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from redis.asyncio import Redis

from scrapy_rep.rep.caching.cache_entry import CacheEntry, Outage, StoredResponse
from scrapy_rep.rep.parsing.urls import Origin
from scrapy_rep.rep.text import printable

from .base import (
    KEPT_FOR,
    LEASE_CLOCK_SLACK,
    MAX_LEASE,
    Claim,
    Lease,
    UnreadableValue,
    decode,
    encode,
    key_of,
    origin_of,
    time_of,
)
from .redis_client import Connected, RedisClient
from .redis_lua import SERVER_TIME, TEXT, milliseconds, script
from .redis_url import RedisUrl

logger = logging.getLogger(__name__)

#: Bytes of a value; entry that take more are not kept. Everybody waits while
#: Redis hands out a large one.
MAX_VALUE = 2 * 1024 * 1024

# Seconds that a worker's clock may be off before times are translated. Below that,
# what is off is mostly the way to Redis and back.
_CLOCK_TOLERANCE = 1.0
# Keys that a SCAN looks at.
_PAGE = 1000

_LEASES = f"""
-- Who holds a lease, and until when; what base.lease_holds says is in force.
local function holder(key, time)
  local taken, till, token = string.match(text(key, 100) or '', '^(%d+) (%d+) (%x+)$')
  taken, till = tonumber(taken), tonumber(till)
  if taken and taken - {LEASE_CLOCK_SLACK * 1000:.0f} <= time and time < till
    and till - taken <= {MAX_LEASE * 1000:.0f} then return token, till end
end
local function token(key)
  return string.match(text(key, 100) or '', ' (%x+)$')
end
"""

# Each returns the time first.
_HELLO = "redis.call('SET', KEYS[1], '', 'PX', 1000) return {now()}"
_READ = f"return {{now(), text(KEYS[1], {MAX_VALUE})}}"
# The same token again is the same claim again: the connection broke.
_CLAIM = f"""
local time = now()
local held = holder(KEYS[2], time)
local granted = not held or held == ARGV[1]
if granted then
  local value = string.format('%.0f %.0f %s', time, time + ARGV[2], ARGV[1])
  redis.call('SET', KEYS[2], value, 'PX', ARGV[2])
end
return {{time, text(KEYS[1], {MAX_VALUE}), granted and 1 or 0}}
"""
# CacheEntry from the future are from before the clock was set back. Where there is no
# room for new ones, the lease ends all the same.
_WRITE = """
local time, seen = now(), tonumber(ARGV[2])
local held = ARGV[1] ~= '' and token(KEYS[2]) == ARGV[1]
local head = redis.pcall('GETRANGE', KEYS[1], 0, 30)
local known = type(head) == 'string' and tonumber(string.match(head, '^(%d+) '))
local done = {time}
if held or not known or known <= seen or known > time then
  done = redis.pcall('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
  done = done.err and done or {time}
end
if held then redis.call('DEL', KEYS[2]) end
redis.call('PUBLISH', ARGV[5], '')
return done
"""
_RELEASE = """
if token(KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', ARGV[2], '')
end
return {now()}
"""
_HELD = """
local time = now()
local held, till = holder(KEYS[1], time)
return {time, held and till - time or 0}
"""


async def _either(told: asyncio.Future[None], seconds: float) -> None:
    """Wait until *told* is done, for so many *seconds* at most."""
    await asyncio.wait({told}, timeout=seconds)


class RedisStore:
    """CacheEntry and leases in the Redis of *url*; a :class:`~.base.Store`.

    *clock* gives seconds since the epoch, *wait* waits for a future for a number
    of seconds at most, *server_time* is Lua for the time by which leases end.
    Nothing is connected before it is used. All methods raise
    :exc:`~.base.StoreError`, and may be tried again after that.
    """

    def __init__(
        self,
        url: RedisUrl,
        clock: Callable[[], float] = time.time,
        wait: Callable[[asyncio.Future[None], float], Awaitable[None]] = _either,
        server_time: str = SERVER_TIME,
    ) -> None:
        self._prefix = url.prefix
        self._clock = clock
        self._wait = wait
        self._lua = server_time + TEXT + _LEASES
        #: What Redis' clock is ahead of ours, in seconds.
        self._ahead = 0.0
        self._client = RedisClient(url, self._greet)
        self._mentioned_unreadable = False

    # -- the store ----------------------------------------------------------------

    async def read(self, origin: Origin) -> CacheEntry | None:
        """What is known of *origin*."""
        (value,) = await self._run(_READ, [self._key("entry", origin)])
        return self._decoded(origin, value)

    async def claim(self, origin: Origin, seconds: float) -> Claim:
        """What is known of *origin*, and a lease of *seconds* unless one is in force."""
        seconds = min(seconds, MAX_LEASE)
        token = secrets.token_hex(8)
        keys = [self._key("entry", origin), self._key("lease", origin)]
        value, granted = await self._run(_CLAIM, keys, token, milliseconds(seconds))
        lease = Lease(origin, token, self._clock() + seconds) if granted else None
        return Claim(self._decoded(origin, value), lease)

    async def write(self, entry: CacheEntry, lease: Lease | None = None) -> None:
        """Keep *entry*, and end *lease*; see :meth:`.base.Store.write`."""
        # Or it is not known yet how far our clock is off.
        await self._client.ready()
        seen = time_of(entry) + self._ahead
        try:
            value = b"%d %b" % (milliseconds(seen), encode(_shifted(entry, self._ahead)))
        except ValueError:
            value = b""
        if not value or len(value) > MAX_VALUE:
            if lease is not None:
                await self.release(lease)
            return
        held = entry.origin if lease is None else lease.origin
        left = seen + KEPT_FOR - (self._clock() + self._ahead)
        await self._run(
            _WRITE,
            [self._key("entry", entry.origin), self._key("lease", held)],
            *(
                "" if lease is None else lease.token,
                milliseconds(seen),
                value,
                milliseconds(max(left, 1.0)),
            ),
            self._key("news", held),
        )

    async def release(self, lease: Lease) -> None:
        """End *lease*, if it is still held."""
        key, channel = self._key("lease", lease.origin), self._key("news", lease.origin)
        await self._run(_RELEASE, [key], lease.token, channel)

    async def wait_for_update(self, origin: Origin, seconds: float) -> None:
        """Return when nobody is fetching *origin*, after *seconds* at most."""

        async def listen(connected: Connected) -> None:
            async with connected.listening(self._key("news", origin)) as told:
                # Only now: what has ended since before is no news.
                _, left = await connected.run(self._script(_HELD, [self._key("lease", origin)]))
                if left > 0:
                    await self._wait(told, min(left / 1000, seconds))
                    # Told that there will be no news?
                    await connected.ready()

        await self._client.call(listen)

    async def delete(self, origin: Origin) -> bool:
        """Forget *origin*; whether anything was known."""
        key = self._key("entry", origin)
        return await self._client.run(partial(_unlink, keys=[key])) > 0

    async def clear(self) -> int:
        """Forget all origins; how many that were."""
        forgotten = 0
        async for keys in self._pages():
            forgotten += await self._client.run(partial(_unlink, keys=keys))
        return forgotten

    async def origins(self) -> AsyncIterator[Origin]:
        """Those of which something is known, in no order."""
        start = len(self._prefix + "entry:")
        told: set[str] = set()
        async for keys in self._pages():
            for key in keys:
                name = key.decode("ascii", "replace")[start:]
                origin = origin_of(name)
                # A key may be found more than once.
                if origin is not None and name not in told:
                    told.add(name)
                    yield origin

    async def prune(self) -> int:
        """Nothing: Redis forgets by itself."""
        return 0

    async def close(self) -> None:
        """Close the connections. The next use opens them again."""
        await self._client.close()

    # -- one operation ------------------------------------------------------------

    def _key(self, kind: str, origin: Origin) -> str:
        return f"{self._prefix}{kind}:{key_of(origin)}"

    async def _run(self, lua: str, keys: list[str], *arguments: str | bytes | int) -> list[Any]:
        """What a script returns, without the time, which is noted."""
        before = self._clock()
        now, *result = await self._client.run(self._script(lua, keys, *arguments))
        self._note_time(now / 1000, before)
        return list(result)

    def _script(
        self, lua: str, keys: list[str], *arguments: str | bytes | int
    ) -> Callable[[Redis], Awaitable[Any]]:
        return script(self._lua + lua, keys, *arguments)

    async def _greet(self, redis: Redis) -> None:
        """Find out what time it is in Redis, and if it can be written to."""
        before = self._clock()
        (now,) = await self._script(_HELLO, [f"{self._prefix}hello"])(redis)
        self._note_time(now / 1000, before)

    def _note_time(self, now: float, before: float) -> None:
        """It was *now* in Redis, some time after it was *before* here."""
        after = self._clock()
        ahead = now - (before + after) / 2
        if abs(ahead - self._ahead) > _CLOCK_TOLERANCE and after - before < _CLOCK_TOLERANCE:
            self._ahead = 0.0 if abs(ahead) <= _CLOCK_TOLERANCE else ahead

    async def _pages(self) -> AsyncIterator[list[bytes]]:
        """The keys of all entry, page by page."""
        pattern = re.sub(r"([\\*?\[\]])", r"\\\1", self._prefix + "entry:") + "*"
        cursor = -1
        while cursor != 0:
            scan = partial(_scan, cursor=max(cursor, 0), pattern=pattern)
            cursor, keys = await self._client.run(scan)
            if keys:
                yield keys

    def _decoded(self, origin: Origin, value: bytes | None) -> CacheEntry | None:
        if value == b"":
            return None
        try:
            if value is None:
                raise UnreadableValue("of another type, or too large")
            seen, _, encoded = value.partition(b" ")
            if not seen.isdigit():
                raise UnreadableValue("not a value of this version")
            return _shifted(decode(origin, encoded), -self._ahead)
        except UnreadableValue as error:
            self._mention_unreadable(origin, error)
        return None

    def _mention_unreadable(self, origin: Origin, error: UnreadableValue) -> None:
        if not self._mentioned_unreadable:
            self._mentioned_unreadable = True
            logger.warning(
                "In Redis, what is kept of %(origin)s below %(prefix)s cannot be read (%(error)s)"
                ": it is fetched again, and so are all others like it. Does another program use"
                " this prefix, or another version of scrapy-rep?",
                {"origin": printable(str(origin)), "prefix": self._prefix, "error": error},
            )


async def _scan(redis: Redis, cursor: int, pattern: str) -> tuple[int, list[bytes]]:
    """Where to go on, and the keys that were found."""
    cursor, keys = await redis.scan(cursor, match=pattern, count=_PAGE)
    return cursor, [key for key in keys if isinstance(key, bytes)]


async def _unlink(redis: Redis, keys: Sequence[str | bytes]) -> int:
    """Forget *keys*; how many of them there were."""
    return int(await redis.unlink(*keys))


def _shifted(entry: CacheEntry, seconds: float) -> CacheEntry:
    """*entry* by a clock that is so many *seconds* ahead."""
    if not seconds:
        return entry
    copy: StoredResponse | None = entry.copy
    if copy is not None:
        copy = replace(
            copy, fetched_at=copy.fetched_at + seconds, confirmed_at=copy.confirmed_at + seconds
        )
    outage: Outage | None = entry.outage
    if outage is not None:
        outage = replace(outage, since=outage.since + seconds, last_at=outage.last_at + seconds)
    return replace(entry, copy=copy, outage=outage)
