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
``lease:{ORIGIN}``       until when it lasts (ms), and its token
=======================  ==================================================================

In a Redis Cluster, keys with the same text in braces are on the same server, as a script
needs them.

All times in Redis are by its own clock, and no worker's clock has a say in whose
turn it is. A worker translates them as far as its clock is off.
"""
# What methods do stands in base.Store.
# ruff: noqa: D102

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.parsing.urls import Origin

from .base import (
    KEPT_FOR,
    LEASE_CLOCK_SLACK,
    Lease,
    UnreadableValue,
    ValueStore,
    decode,
    encode,
    key_of,
    time_of,
)
from .redis_client import SERVER_TIME, TEXT, RedisClient, milliseconds
from .redis_url import RedisUrl

#: Bytes of a value; entries that take more are not kept. Everybody waits while
#: Redis hands out a large one.
MAX_VALUE = 2 * 1024 * 1024
#: Seconds for which a lease is kept after its holder was heard of last.
LEASE_KEPT_FOR = 6.0

# Seconds that a worker's clock may be off before times are translated.
_CLOCK_TOLERANCE = 1.0
# Keys that are looked at, or deleted, in one piece.
_PAGE = 1000
# Seconds that it may take to find all keys.
_SCAN_LIMIT = 60.0

_LEASES = f"""
-- Who holds a lease. None ends later than it could if it were taken now, unless the clock
-- has been set back since.
local function holder(key, time)
  local till, token = string.match(text(key, 100) or '', '^(%d+) (%x+)$')
  till = tonumber(till)
  if till and time < till and till - time <= kept + {LEASE_CLOCK_SLACK * 1000:.0f} then
    return token
  end
end
local function lease(key, time, token, ms)
  redis.call('SET', key, string.format('%.0f %s', time + ms, token), 'PX', ms)
end
"""

# Each returns the time first. The keys are those of the entry and the lease of an origin.
_HELLO = "redis.call('SET', KEYS[1], '', 'PX', 1000) return {now()}"
_READ = f"return {{now(), text(KEYS[1], {MAX_VALUE})}}"
# The same token again is the same claim again: the connection broke.
_CLAIM = f"""
local time = now()
local held = holder(KEYS[2], time)
local granted = not held or held == ARGV[1]
if granted then lease(KEYS[2], time, ARGV[1], ARGV[2]) end
return {{time, text(KEYS[1], {MAX_VALUE}), granted and 1 or 0}}
"""
_RENEW = """
local time = now()
if holder(KEYS[2], time) == ARGV[1] then lease(KEYS[2], time, ARGV[1], ARGV[2]) end
return {time}
"""
# Entries from the future are from before the clock was set back. Where there is no
# room for new ones, the lease ends all the same.
_WRITE = f"""
local time = now()
local function seen(value)
  return type(value) == 'string' and tonumber(string.match(value, '^(%d+) '))
end
local held = holder(KEYS[2], time) == ARGV[1]
local known, new = seen(redis.pcall('GETRANGE', KEYS[1], 0, 30)), seen(ARGV[2])
local done = {{time}}
if held or not known or known <= new or known > time then
  local left = math.max(new + {KEPT_FOR * 1000:.0f} - time, 1000)
  done = redis.pcall('SET', KEYS[1], ARGV[2], 'PX', string.format('%.0f', left))
  done = done.err and done or {{time}}
end
if held then redis.call('DEL', KEYS[2]) end
return done
"""
_RELEASE = """
local time = now()
if holder(KEYS[2], time) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return {time}
"""
_HELD = "local time = now() return {time, holder(KEYS[2], time) and 1 or 0}"


class RedisStore(ValueStore):
    """Cache entries and leases in the Redis of *url*.

    *clock* gives seconds since the epoch. *server_time* is Lua for the time by which leases
    end, which they do *lease_kept_for* seconds after this process was heard of last. Nothing is
    connected before it is used. All methods raise :exc:`~.base.StoreError`, and may be tried
    again after that.
    """

    def __init__(
        self,
        url: RedisUrl,
        clock: Callable[[], float] = time.time,
        server_time: str = SERVER_TIME,
        lease_kept_for: float = LEASE_KEPT_FOR,
    ) -> None:
        advice = "Check whether another program or another version of scrapy-rep uses this prefix."
        super().__init__(clock, f"Redis, prefix {url.prefix}", advice)
        self._prefix = url.prefix
        kept = f"local kept = {milliseconds(lease_kept_for)}\n"
        self._lua = server_time + TEXT + kept + _LEASES
        self._lease_kept_for = lease_kept_for
        self._client = RedisClient(url, self._greet, clock)
        #: The leases that this process holds, by token.
        self._leases: dict[str, Lease] = {}

    async def release(self, lease: Lease) -> None:
        self._leases.pop(lease.token, None)
        await self._script(_RELEASE, lease.origin, lease.token)

    async def has_lease(self, origin: Origin) -> bool:
        (held,) = await self._script(_HELD, origin)
        return bool(held)

    async def delete(self, origin: Origin) -> bool:
        return await self._unlink(self._keys_of(origin)[:1]) > 0

    async def clear(self) -> int:
        keys = await self._scan()
        pages = range(0, len(keys), _PAGE)
        return sum([await self._unlink(keys[start : start + _PAGE]) for start in pages])

    async def close(self) -> None:
        await self._client.close()

    async def _get(self, origin: Origin) -> bytes | None:
        (value,) = await self._script(_READ, origin)
        return value  # type: ignore[no-any-return]

    async def _take(self, lease: Lease) -> tuple[bytes | None, bool]:
        left = self._left(lease)
        value, granted = await self._script(_CLAIM, lease.origin, lease.token, left)
        if granted:
            self._leases[lease.token] = lease
        return value, bool(granted)

    async def _put(self, entry: CacheEntry, value: bytes, lease: Lease | None) -> None:
        token = lease.token if lease else ""
        self._leases.pop(token, None)
        await self._script(_WRITE, entry.origin, token, value)

    async def _keys(self) -> list[str]:
        start = len(self._prefix + "entry:{")
        return [key.decode("ascii", "replace")[start:-1] for key in await self._scan()]

    async def _encode(self, entry: CacheEntry) -> bytes:
        # Or it is not known yet how far our clock is off.
        await self._client.ready()
        entry = _shifted(entry, self._client.ahead)
        value = b"%d %b" % (milliseconds(time_of(entry)), encode(entry))
        if len(value) > MAX_VALUE:
            raise ValueError("too large for Redis")
        return value

    def _decode(self, origin: Origin, value: bytes) -> CacheEntry:
        seen, _, encoded = value.partition(b" ")
        if not seen.isdigit():
            raise UnreadableValue("of another type, too large, or not of this version")
        return _shifted(decode(origin, encoded), -self._client.ahead)

    def _keys_of(self, origin: Origin) -> list[str]:
        return [f"{self._prefix}{kind}:{{{key_of(origin)}}}" for kind in ("entry", "lease")]

    async def _script(self, lua: str, origin: Origin, *arguments: str | bytes | int) -> list[Any]:
        return await self._client.script(self._lua + lua, self._keys_of(origin), *arguments)

    def _left(self, lease: Lease) -> int:
        """Milliseconds for which Redis may keep *lease* from now on."""
        return milliseconds(min(lease.until - self._clock(), self._lease_kept_for))

    async def _greet(self, redis: Any) -> None:
        """Find out what time it is in Redis, and if it can be written to; renew the leases."""
        await self._client.evaluate(redis, self._lua + _HELLO, [f"{self._prefix}hello"])
        for token, lease in list(self._leases.items()):
            keys, left = self._keys_of(lease.origin), self._left(lease)
            if left > 0:
                await self._client.evaluate(redis, self._lua + _RENEW, keys, token, left)
            else:
                self._leases.pop(token, None)

    async def _scan(self) -> list[bytes]:
        """The keys of all entries."""
        pattern = re.sub(r"([\\*?\[\]])", r"\\\1", self._prefix + "entry:{") + "*"

        async def scan(redis: Any) -> list[bytes]:
            # A key may be found more than once.
            return list({key async for key in redis.scan_iter(pattern, _PAGE)})

        return await self._client.run(scan, _SCAN_LIMIT)

    async def _unlink(self, keys: Sequence[str | bytes]) -> int:
        """Forget *keys*; how many of them there were."""
        return int(await self._client.run(lambda redis: redis.unlink(*keys)))


def _shifted(entry: CacheEntry, seconds: float) -> CacheEntry:
    """*entry* by a clock that is so many *seconds* ahead."""
    # What is off by less is mostly the way to Redis and back.
    if abs(seconds) <= _CLOCK_TOLERANCE:
        return entry
    stored, outage = entry.stored, entry.outage
    if stored is not None:
        fetched_at, confirmed_at = stored.fetched_at + seconds, stored.confirmed_at + seconds
        stored = replace(stored, fetched_at=fetched_at, confirmed_at=confirmed_at)
    if outage is not None:
        outage = replace(outage, since=outage.since + seconds, last_at=outage.last_at + seconds)
    return replace(entry, stored=stored, outage=outage)
