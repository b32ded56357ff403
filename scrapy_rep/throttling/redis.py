"""Whose turn it is to send a request, over all workers that share a Redis.

Here may live: what is known of each site, and how many workers there are. Here may not
live: what delay a site asks for, and how a worker waits.

=====================  ====================================================================
key, after the prefix
=====================  ====================================================================
``turn:{SITE}``        when the last request was sent, and the last one before the turn that
                       is held, when somebody was told to ask next, until when the turn is
                       held (ms since the epoch, by Redis' clock), and by which worker
``workers``            a sorted set: workers, and when each was heard of last
``slow:{SITE}``        the delay that its answers ask for (ms)
``slow``               a hash of these: by site, the delay, and until when it holds
=====================  ====================================================================

Nothing is reserved: a turn is granted when it is used. The worker that has it says now and
then that it holds it still, and at last that its request is over or was not sent. So no
other request overtakes one that is slow to get to its server. A worker that dies holds its
turn for :data:`HELD_FOR`.
"""

# What methods do stands in fleet.TurnStore.
# ruff: noqa: D102

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable
from math import inf
from typing import Any

from scrapy_rep.stores.base import StoreError
from scrapy_rep.stores.redis_client import SERVER_TIME, TEXT, RedisClient, milliseconds
from scrapy_rep.stores.redis_url import RedisUrl
from scrapy_rep.throttling.fleet import TurnStore
from scrapy_rep.throttling.turns import KEPT, Event

#: Seconds after which a worker that has not been heard of does not count.
GONE_AFTER = 30.0
#: Seconds that nobody is told to wait for longer before asking again.
LONGEST_WAIT = 60.0
#: Seconds for which a turn is held after the worker that has it was heard of last.
HELD_FOR = 6.0
# Seconds for which no request is remembered.
_LONG_AGO = 1e9

# What each script about one site begins with. A site is known for so long after its last
# request: somebody may have a longer delay by then.
_SITE = f"""
local time, delay, name = now(), tonumber(ARGV[1]), ARGV[2]
local pattern = '^(%d+) (%d+) (%d+) (%d+) (%x*)$'
local last, before, ask, till, holder = string.match(text(KEYS[1], 120) or '', pattern)
last, before, ask, till = tonumber(last), tonumber(before), tonumber(ask) or 0, tonumber(till) or 0
delay = math.max(delay, tonumber(text(KEYS[2], 20) or '') or 0)
local function keep()
  local value = string.format('%.0f %.0f %.0f %.0f %s', last, before, ask, till, holder or '')
  redis.call('SET', KEYS[1], value, 'PX', string.format('%.0f', {KEPT * 1000:.0f} + delay))
end
"""
# Each returns the time first.
#
# Where nothing is known of a site, a request may have been sent just before all was
# forgotten, and its robots.txt was perhaps fetched just now. What is in the future is
# from before the clock was set back, or not ours: one delay from now is right whatever
# it was. Who asks has no request under way, so holds no turn any more.
_GRANT = f"""
last, before = last or time, before or time
last = math.min(math.max(last, time - ARGV[3]), time)
local held = holder ~= name and time < till and till <= time + held_for
if not held then till, holder = 0, '' end
if not held and last + delay <= time then
  last, before, ask, till, holder = time, last, time + delay, time + held_for, name
  keep()
  return {{time, 0, 0}}
end
-- A request that is under way is over now at the earliest.
local free = (held and time or last) + delay
if held or ARGV[4] == '0' then
  -- Each is told another time, or all would ask at once.
  free = math.min(math.max(ask, free), time + {LONGEST_WAIT * 1000:.0f})
  ask = free + delay
end
keep()
return {{time, math.min(free - time, {LONGEST_WAIT * 1000:.0f}), held and 1 or 0}}
"""
# What is over was so a while ago, if that could not be said at once.
_TELL = f"""
local event, ours = ARGV[3], holder == name
if event == 'SENT' or event == 'OVER' then
  if event == 'OVER' and ours then till, holder = 0, '' end
  last = math.max(last or 0, time - ARGV[4])
  before = last
  keep()
elseif event == 'HELD' and ours then
  last, till = time, time + held_for
  keep()
elseif event == 'UNUSED' and ours then
  last, till, holder = before, 0, ''
  keep()
elseif event == 'SLOW' and ARGV[1] == '0' then
  redis.call('DEL', KEYS[2])
elseif event == 'SLOW' then
  local ms = string.format('%.0f', ARGV[1] + {KEPT * 1000:.0f})
  redis.call('SET', KEYS[2], ARGV[1], 'PX', ms)
end
return {{time}}
"""
# The rank is by name: it is the same for all, and changes only where workers come or go.
_BEAT = f"""
local time = now()
local added = redis.pcall('ZADD', KEYS[1], time, ARGV[1])
if type(added) == 'table' and string.find(added.err, 'WRONGTYPE') then
  redis.call('DEL', KEYS[1])
  added = redis.pcall('ZADD', KEYS[1], time, ARGV[1])
end
-- Not after a write: then Redis would let this one pass, also where it is full.
if type(added) == 'table' then return added end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', time - {GONE_AFTER * 1000:.0f})
redis.call('ZREMRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', time), '+inf')
redis.call('PEXPIRE', KEYS[1], {2 * GONE_AFTER * 1000:.0f})
local names, rank = redis.call('ZRANGE', KEYS[1], 0, -1), 0
for _, other in ipairs(names) do if other < ARGV[1] then rank = rank + 1 end end
return {{time, rank, #names}}
"""
# For those who do not ask for a turn: each entry is a delay and until when it holds. The time
# of the whole is that of the longest. What is of another type is not ours.
_SLOW = f"""
local time, delay = now(), tonumber(ARGV[2])
local ms = delay + {KEPT * 1000:.0f}
local removed = redis.pcall('HDEL', KEYS[1], ARGV[1])
if type(removed) == 'table' and string.find(removed.err, 'WRONGTYPE') then
  redis.call('DEL', KEYS[1])
end
if delay > 0 then
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f %.0f', delay, time + ms))
  if redis.call('PTTL', KEYS[1]) < ms then
    redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ms))
  end
end
return {{time}}
"""
_SLOWED = """
local time = now()
local found, all = {time}, redis.pcall('HGETALL', KEYS[1])
if all.err then all = {} end
for i = 1, #all, 2 do
  local delay, till = string.match(all[i + 1], '^(%d+) (%d+)$')
  if till and time < tonumber(till) then
    found[#found + 1] = all[i]
    found[#found + 1] = tonumber(delay)
  else
    redis.call('HDEL', KEYS[1], all[i])
  end
end
return found
"""


class RedisTurns(TurnStore):
    """Turns in the Redis of *url*.

    *server_time* is Lua for the time that all go by. A turn is held for *held_for* seconds
    after the worker that has it was heard of last.
    """

    name = "Redis"

    def __init__(
        self,
        url: RedisUrl,
        server_time: str = SERVER_TIME,
        clock: Callable[[], float] = time.monotonic,
        held_for: float = HELD_FOR,
    ) -> None:
        self._prefix = url.prefix
        self._roster = f"{url.prefix}workers"
        self._lua = f"{server_time}{TEXT}local held_for = {milliseconds(held_for)}\n"
        self._name = secrets.token_hex(8)
        #: Who leaves while it is counted would be counted again.
        self._counting = asyncio.Lock()
        self._has_left = False
        self._client = RedisClient(url, self._beat, clock)

    @property
    def ahead(self) -> float:
        return self._client.ahead

    async def start(self) -> None:
        await self._client.ready()

    async def grant(
        self, site: str, delay: float, since: float = inf, *, again: bool = False
    ) -> float:
        ago = milliseconds(min(since, _LONG_AGO))
        wait, is_held = await self._say(_GRANT, site, delay, ago, int(again))
        self.is_held = bool(is_held)
        return float(wait) / 1000

    async def tell(self, event: Event, site: str, delay: float, ago: float = 0.0) -> None:
        await self._say(_TELL, site, delay, event.name, milliseconds(ago))
        if event is Event.SLOW:
            await self._of_all(_SLOW, site, milliseconds(delay))

    async def slowed(self) -> dict[str, float]:
        found = await self._of_all(_SLOWED)
        sites = (site.decode("utf-8", "replace") for site in found[::2])
        return dict(zip(sites, (int(delay) / 1000 for delay in found[1::2]), strict=True))

    async def close(self) -> None:
        self._has_left = True
        if self._client.is_open:
            with contextlib.suppress(StoreError):
                await self._client.run(self._beat)
        await self._client.close()

    async def _beat(self, redis: Any) -> None:
        """Be counted, and count; or leave."""
        async with self._counting:
            if self._has_left:
                await redis.zrem(self._roster, self._name)
            else:
                lua = self._lua + _BEAT
                found = await self._client.evaluate(redis, lua, [self._roster], self._name)
                self.rank, self.workers = found

    async def _say(self, lua: str, site: str, delay: float, *more: str | int) -> list[Any]:
        """What *lua* returns about *site*."""
        keys = [f"{self._prefix}{kind}:{{{site}}}" for kind in ("turn", "slow")]
        arguments = (milliseconds(delay), self._name, *more)
        return await self._client.script(self._lua + _SITE + lua, keys, *arguments)

    async def _of_all(self, lua: str, *arguments: str | int) -> list[Any]:
        """What *lua* returns about all slow sites."""
        return await self._client.script(self._lua + lua, [f"{self._prefix}slow"], *arguments)
