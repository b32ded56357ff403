"""What the scripts that Redis runs for us have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from redis.asyncio import Redis

#: The Lua that gives the time by Redis' own clock, in milliseconds since the epoch.
SERVER_TIME = """
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
"""

#: The Lua that reads a value: '' for none, false for one that is of another type or
#: too long. So no script fails by what somebody has put there, or is slow by it.
TEXT = """
local function text(key, limit)
  local size = redis.pcall('STRLEN', key)
  if type(size) ~= 'number' or size > limit then return false end
  return redis.call('GET', key) or ''
end
"""


def script(
    lua: str, keys: Sequence[str], *arguments: str | bytes | int
) -> Callable[[Redis], Awaitable[Any]]:
    """Run *lua*, which Redis does in one piece; what it returns."""
    return lambda redis: redis.register_script(lua)(keys, arguments)


def milliseconds(seconds: float) -> int:
    """As scripts have times."""
    return round(seconds * 1000)
