"""Whose turn it is to send a request, over all workers that share a Redis.

Here may live: one time for each download slot, and how many workers there are.
Here may not live: what delay a slot has, and how a worker waits.

=====================  ====================================================================
key, after the prefix
=====================  ====================================================================
``turn:SLOT``          when the last request was sent, and when somebody was told to ask
                       next (ms since the epoch, by Redis' clock)
``turns``              since when this Redis has kept turns
``workers``            a sorted set: workers, and when each was heard of last
=====================  ====================================================================

Nothing is reserved: a turn is granted when it is used, so a worker that dies holds
none, and one whose event loop is held up is not granted one until it asks.
"""

from __future__ import annotations

import contextlib
import secrets

from redis.asyncio import Redis

from .base import StoreError
from .redis_client import RedisClient
from .redis_lua import SERVER_TIME, TEXT, milliseconds, script
from .redis_url import RedisUrl

#: Seconds after which a worker that has not been heard of does not count.
GONE_AFTER = 30.0
#: Seconds that nobody is told to wait for longer before asking again.
LONGEST_WAIT = 60.0

# Seconds between two signs of life.
_BEAT = 10.0
# Seconds that a slot is known for after its last request, or its delay if that is
# longer: somebody may have a longer one by then.
_KEPT = 60.0

_SLOT = """
local function slot(key)
  local last, ask = string.match(text(key, 50) or '', '^(%d+) (%d+)$')
  return tonumber(last), tonumber(ask)
end
local function keep(key, last, ask, ms)
  redis.call('SET', key, string.format('%.0f %.0f', last, ask), 'PX', string.format('%.0f', ms))
end
"""
# Where nothing is known of a slot, a request may have been sent just before all was
# forgotten. What is in the future is from before the clock was set back, or not
# ours: one delay from now is right whatever it was.
_GRANT = f"""
local time, delay = now(), tonumber(ARGV[1])
local begun = tonumber(string.match(text(KEYS[2], 20) or '', '^%d+$'))
if not begun or begun > time then
  begun = time
  redis.call('SET', KEYS[2], string.format('%.0f', begun))
end
local last, ask = slot(KEYS[1])
if not last then last, ask = begun, 0 end
if ARGV[2] ~= '' then last = math.max(last, time - tonumber(ARGV[2])) end
if last > time then last = time end
local kept = {_KEPT * 1000:.0f} + delay
if last + delay <= time then
  keep(KEYS[1], time, time + delay, kept)
  return {{0}}
end
-- Each is told another time, or all would ask at once.
ask = math.min(math.max(ask, last + delay), time + {LONGEST_WAIT * 1000:.0f})
keep(KEYS[1], last, ask + delay, kept)
return {{ask - time}}
"""
_STARTED = f"""
local time, last, ask = now(), slot(KEYS[1])
if not last or last < time then
  keep(KEYS[1], time, math.max(ask or 0, time), {_KEPT * 1000:.0f} + tonumber(ARGV[1]))
end
return {{0}}
"""
_BEATING = f"""
local time = string.format('%.0f', now())
local added = redis.pcall('ZADD', KEYS[1], time, ARGV[1])
if type(added) == 'table' and added.err then
  redis.call('DEL', KEYS[1])
  redis.call('ZADD', KEYS[1], time, ARGV[1])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', time - {GONE_AFTER * 1000:.0f})
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. time, '+inf')
redis.call('PEXPIRE', KEYS[1], {2 * GONE_AFTER * 1000:.0f})
return {{redis.call('ZCARD', KEYS[1])}}
"""


class RedisPacing:
    """Grants turns to the workers that share the Redis of *url*.

    *server_time* is Lua for the time that all go by. Methods raise
    :exc:`~.base.StoreError`, at once for as long as Redis does not work: then a
    worker that keeps :attr:`workers` times the delay by itself keeps the delay
    of the fleet.
    """

    def __init__(self, url: RedisUrl, server_time: str = SERVER_TIME) -> None:
        self._prefix = url.prefix
        self._workers_key = f"{url.prefix}workers"
        self._lua = server_time + TEXT + _SLOT
        self._name = secrets.token_hex(8)
        self._workers = 1
        self._client = RedisClient(url, self._beat, greet_every=_BEAT)

    @property
    def workers(self) -> int:
        """How many workers there were when Redis was asked last, this one included."""
        return self._workers

    async def start(self) -> None:
        """Be one of the :attr:`workers` from now on."""
        await self._client.ready()

    async def grant(self, slot: str, delay: float, since: float | None = None) -> float:
        """How many seconds to wait from now, and then ask again; 0.0: it is our turn now.

        Turns in *slot* are *delay* seconds apart. *since* is how many seconds ago
        this worker has sent its last request, where it knows: Redis may have
        forgotten, or not have been told.
        """
        arguments = (milliseconds(delay), "" if since is None else milliseconds(since))
        keys = [f"{self._prefix}turn:{slot}", f"{self._prefix}turns"]
        (wait,) = await self._client.run(script(self._lua + _GRANT, keys, *arguments))
        return float(wait) / 1000

    async def started(self, slot: str, delay: float) -> None:
        """The request of a turn has been sent only now: the next turn is *delay* seconds later.

        Without it, that counts from the moment in which the turn was granted.
        """
        keys = [f"{self._prefix}turn:{slot}"]
        await self._client.run(script(self._lua + _STARTED, keys, milliseconds(delay)))

    async def close(self) -> None:
        """Close the connections, and do not count as a worker any more."""
        if self._client.is_open:
            with contextlib.suppress(StoreError):
                await self._client.run(self._leave)
        await self._client.close()

    async def _beat(self, redis: Redis) -> None:
        """Be counted, and count."""
        (workers,) = await script(self._lua + _BEATING, [self._workers_key], self._name)(redis)
        self._workers = int(workers)

    async def _leave(self, redis: Redis) -> None:
        await redis.zrem(self._workers_key, self._name)
