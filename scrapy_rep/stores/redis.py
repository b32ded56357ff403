"""A store in Redis, for any number of processes on any number of machines.

Here may live: what is asked of Redis, as scripts that Redis runs in one piece, and
how its keys and values look. What to do about a Redis that is gone is in
``redis_client.py``.

=======================  ==================================================================
key, after the prefix
=======================  ==================================================================
``entry:{ORIGIN}``       when there was news last (ms since the epoch), a space, and the entry
                         as :func:`.base.encode` has it; forgotten after
                         :data:`.base.KEPT_FOR`
``lease:{ORIGIN}``       when it was taken and until when it lasts (ms), and its token
=======================  ==================================================================

In a Redis Cluster, keys with the same text in braces are on the same server, as a script
needs them.

All times in Redis are by its own clock, and no worker's clock has a say in whose
turn it is. A worker translates them as far as its clock is off.
"""
# What methods do stands in base.Store.
# ruff: noqa: D102

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from redis.asyncio.cluster import RedisCluster

from scrapy_rep.rep.caching.cache_entry import CacheEntry
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
    pause,
    time_of,
    until_released,
)
from .redis_client import SERVER_TIME, TEXT, RedisClient, milliseconds
from .redis_url import RedisUrl

logger = logging.getLogger(__name__)

#: Bytes of a value; entries that take more are not kept. Everybody waits while
#: Redis hands out a large one.
MAX_VALUE = 2 * 1024 * 1024
#: Seconds for which a lease is kept after its holder was heard of last.
LEASE_KEPT_FOR = 6.0

# Seconds that a worker's clock may be off before times are translated.
_CLOCK_TOLERANCE = 1.0
# Keys that a SCAN looks at.
_PAGE = 1000

_LEASES = f"""
-- Who holds a lease, and until when; what base.lease_holds says is in force.
local function holder(key, time)
  local taken, till, token = string.match(text(key, 100) or '', '^(%d+) (%d+) (%x+)$')
  taken, till = tonumber(taken), tonumber(till)
  if taken and taken - {LEASE_CLOCK_SLACK * 1000:.0f} <= time and time < till
    and till - taken <= {MAX_LEASE * 1000:.0f} then return token, taken end
end
local function token(key)
  return string.match(text(key, 100) or '', ' (%x+)$')
end
local function lease(key, taken, till, token, ms)
  redis.call('SET', key, string.format('%.0f %.0f %s', taken, till, token), 'PX', ms)
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
if granted then lease(KEYS[2], time, time + ARGV[2], ARGV[1], ARGV[2]) end
return {{time, text(KEYS[1], {MAX_VALUE}), granted and 1 or 0}}
"""
_RENEW = """
local time = now()
local held, taken = holder(KEYS[1], time)
if held == ARGV[1] then
  local till = math.min(time + ARGV[2], taken + ARGV[3])
  if till > time then lease(KEYS[1], taken, till, held, till - time) end
end
return {time}
"""
# Entries from the future are from before the clock was set back. Where there is no
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
return done
"""
_RELEASE = """
if token(KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return {now()}
"""
_HELD = "local time = now() return {time, holder(KEYS[1], time) and 1 or 0}"


class RedisStore:
    """CacheEntry and leases in the Redis of *url*; a :class:`~.base.Store`.

    *clock* gives seconds since the epoch, *pause* waits for a number of seconds,
    *server_time* is Lua for the time by which leases end, which they do *lease_kept_for*
    seconds after this process was heard of last.
    Nothing is connected before it is used. All methods raise
    :exc:`~.base.StoreError`, and may be tried again after that.
    """

    def __init__(
        self,
        url: RedisUrl,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], Awaitable[None]] = pause,
        server_time: str = SERVER_TIME,
        lease_kept_for: float = LEASE_KEPT_FOR,
    ) -> None:
        self._prefix = url.prefix
        self._clock = clock
        self._pause = pause
        self._lua = server_time + TEXT + _LEASES
        self._lease_kept_for = lease_kept_for
        self._client = RedisClient(url, self._greet, self._renew, clock)
        #: The leases that this process holds, and how many seconds each lasts at most.
        self._leases: dict[str, tuple[Lease, float]] = {}
        self._mentioned_unreadable = False

    async def read(self, origin: Origin) -> CacheEntry | None:
        (value,) = await self._script(_READ, [self._key("entry", origin)])
        return self._decoded(origin, value)

    async def claim(self, origin: Origin, seconds: float) -> Claim:
        seconds = min(seconds, MAX_LEASE)
        lease = Lease(origin, secrets.token_hex(8), self._clock() + seconds)
        keys = [self._key("entry", origin), self._key("lease", origin)]
        at_first = milliseconds(min(seconds, self._lease_kept_for))
        value, granted = await self._script(_CLAIM, keys, lease.token, at_first)
        if granted:
            self._leases[lease.token] = lease, seconds
        return Claim(self._decoded(origin, value), lease if granted else None)

    async def write(self, entry: CacheEntry, lease: Lease | None = None) -> None:
        # Or it is not known yet how far our clock is off.
        await self._client.ready()
        ahead = self._ahead
        seen = time_of(entry) + ahead
        try:
            value = b"%d %b" % (milliseconds(seen), encode(_shifted(entry, ahead)))
        except ValueError:
            value = b""
        if not value or len(value) > MAX_VALUE:
            if lease is not None:
                await self.release(lease)
            return
        token, held = ("", entry.origin) if lease is None else (lease.token, lease.origin)
        self._leases.pop(token, None)
        left = max(seen + KEPT_FOR - (self._clock() + ahead), 1.0)
        keys = [self._key("entry", entry.origin), self._key("lease", held)]
        await self._script(_WRITE, keys, token, milliseconds(seen), value, milliseconds(left))

    async def release(self, lease: Lease) -> None:
        self._leases.pop(lease.token, None)
        await self._script(_RELEASE, [self._key("lease", lease.origin)], lease.token)

    async def wait_for_update(self, origin: Origin, seconds: float) -> None:
        async def is_leased() -> bool:
            (held,) = await self._script(_HELD, [self._key("lease", origin)])
            return bool(held)

        await until_released(is_leased, seconds, self._pause)

    async def delete(self, origin: Origin) -> bool:
        keys = [self._key("entry", origin)]
        return await self._client.run(partial(_unlink, keys=keys)) > 0

    async def clear(self) -> int:
        pages = [keys async for keys in self._pages()]
        return sum([await self._client.run(partial(_unlink, keys=keys)) for keys in pages])

    async def origins(self) -> AsyncIterator[Origin]:
        start = len(self._prefix + "entry:{")
        told: set[str] = set()
        async for keys in self._pages():
            for key in keys:
                name = key.decode("ascii", "replace")[start:-1]
                origin = origin_of(name)
                # A key may be found more than once.
                if origin is not None and name not in told:
                    told.add(name)
                    yield origin

    async def close(self) -> None:
        await self._client.close()

    # -- one operation ------------------------------------------------------------

    def _key(self, kind: str, origin: Origin) -> str:
        return f"{self._prefix}{kind}:{{{key_of(origin)}}}"

    async def _script(self, lua: str, keys: list[str], *arguments: str | bytes | int) -> list[Any]:
        return await self._client.script(self._lua + lua, keys, *arguments)

    @property
    def _ahead(self) -> float:
        """What Redis' clock is ahead of ours, in seconds."""
        ahead = self._client.ahead
        # What is off by less is mostly the way to Redis and back.
        return ahead if abs(ahead) > _CLOCK_TOLERANCE else 0.0

    async def _greet(self, redis: Any) -> None:
        """Find out what time it is in Redis, and if it can be written to."""
        await self._client.evaluate(redis, self._lua + _HELLO, [f"{self._prefix}hello"])

    async def _renew(self, redis: Any) -> None:
        """Keep the leases whose fetches are under way."""
        for token, (lease, seconds) in list(self._leases.items()):
            if lease.until <= self._clock():
                self._leases.pop(token, None)
                continue
            times = milliseconds(self._lease_kept_for), milliseconds(seconds)
            key = self._key("lease", lease.origin)
            await self._client.evaluate(redis, self._lua + _RENEW, [key], token, *times)

    async def _pages(self) -> AsyncIterator[list[bytes]]:
        """The keys of all entries, page by page."""
        pattern = re.sub(r"([\\*?\[\]])", r"\\\1", self._prefix + "entry:{") + "*"
        for node in await self._client.run(_primaries):
            cursor = -1
            while cursor != 0:
                scan = partial(_scan, node=node, cursor=max(cursor, 0), pattern=pattern)
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
            if not self._mentioned_unreadable:
                self._mentioned_unreadable = True
                logger.warning(
                    "Cannot read the entry of %(origin)s in Redis, prefix %(prefix)s (%(error)s)."
                    " It is fetched again, and so are others like it. Check whether another program"
                    " or another version of scrapy-rep uses this prefix.",
                    {"origin": printable(str(origin)), "prefix": self._prefix, "error": error},
                )
        return None


async def _unlink(redis: Any, keys: Sequence[str | bytes]) -> int:
    """Forget *keys*; how many of them there were."""
    return int(await redis.unlink(*keys))


async def _primaries(redis: Any) -> list[Any]:
    """The servers of a cluster that have the data; ``None`` for the one where there is none."""
    return list(redis.get_primaries()) if isinstance(redis, RedisCluster) else [None]


async def _scan(redis: Any, node: Any, cursor: int, pattern: str) -> tuple[int, list[bytes]]:
    """Where to go on, and the keys that were found."""
    where = {} if node is None else {"target_nodes": node}
    found, keys = await redis.scan(cursor, match=pattern, count=_PAGE, **where)
    # In a cluster, the cursor of each server.
    return (found if node is None else found[node.name]), keys


def _shifted(entry: CacheEntry, seconds: float) -> CacheEntry:
    """*entry* by a clock that is so many *seconds* ahead."""
    copy, outage = entry.copy, entry.outage
    if copy is not None:
        fetched_at, confirmed_at = copy.fetched_at + seconds, copy.confirmed_at + seconds
        copy = replace(copy, fetched_at=fetched_at, confirmed_at=confirmed_at)
    if outage is not None:
        outage = replace(outage, since=outage.since + seconds, last_at=outage.last_at + seconds)
    return replace(entry, copy=copy, outage=outage)
