"""A store in memory: bounded, and gone when the process is.

Kept as the bytes that other stores keep, too: a fifth of what the objects take.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable

from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.parsing.urls import Origin

from .base import KEPT_FOR, MAX_LEASE, Claim, Lease, decode, encode, lease_holds, pause, time_of

# Seconds between looks at whether a lease has ended.
_POLL = 0.1


class MemoryStore:
    """CacheEntry of at most *max_origins* origins; those not used for longest go first.

    *clock* gives seconds since the epoch; *pause* waits for a number of seconds.
    A :class:`~.base.Store`, and with :meth:`get`, :meth:`put` and :meth:`drop` a
    layer in front of one. Raises nothing.
    """

    def __init__(
        self,
        max_origins: int,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], Awaitable[None]] = pause,
    ) -> None:
        self._max_origins = max_origins
        self._clock = clock
        self._pause = pause
        self._values: OrderedDict[Origin, bytes] = OrderedDict()
        #: Each lease, and when it was taken.
        self._leases: dict[Origin, tuple[Lease, float]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, origin: Origin) -> CacheEntry | None:
        """What is known of *origin*, which counts as a use of it."""
        value = self._values.get(origin)
        if value is None:
            return None
        self._values.move_to_end(origin)
        return decode(origin, value)

    def put(self, entry: CacheEntry) -> None:
        """Keep *entry* in place of what was known; nothing, if they are too large."""
        try:
            value = encode(entry)
        except ValueError:
            self.drop(entry.origin)
            return
        self._values[entry.origin] = value
        self._values.move_to_end(entry.origin)
        while len(self._values) > self._max_origins:
            self._values.popitem(last=False)

    def drop(self, origin: Origin) -> bool:
        """Forget *origin*; whether anything was known."""
        return self._values.pop(origin, None) is not None

    async def read(self, origin: Origin) -> CacheEntry | None:
        """What is known of *origin*."""
        return self.get(origin)

    async def claim(self, origin: Origin, seconds: float) -> Claim:
        """What is known of *origin*, and a lease of *seconds* unless one is in force."""
        entry = self.get(origin)
        if self._leased(origin):
            return Claim(entry, None)
        now = self._clock()
        lease = Lease(origin, secrets.token_hex(8), now + min(seconds, MAX_LEASE))
        self._leases[origin] = lease, now
        return Claim(entry, lease)

    async def write(self, entry: CacheEntry, lease: Lease | None = None) -> None:
        """Keep *entry*, and end *lease*; see :meth:`.base.Store.write`."""
        if (lease is not None and self._end(lease)) or self._no_newer(entry):
            self.put(entry)

    async def release(self, lease: Lease) -> None:
        """End *lease*, if it is still held."""
        self._end(lease)

    async def wait_for_update(self, origin: Origin, seconds: float) -> None:
        """Return when nobody is fetching *origin*, after *seconds* at most."""
        while seconds > 0 and self._leased(origin):
            await self._pause(min(_POLL, seconds))
            seconds -= _POLL

    async def delete(self, origin: Origin) -> bool:
        """Forget *origin*; whether anything was known."""
        return self.drop(origin)

    async def clear(self) -> int:
        """Forget all origins; how many that were."""
        forgotten = len(self._values)
        self._values.clear()
        return forgotten

    async def origins(self) -> AsyncIterator[Origin]:
        """Those of which something is known."""
        for origin in list(self._values):
            yield origin

    async def prune(self) -> int:
        """Forget what had no news for long, and dead leases; how many origins."""
        now = self._clock()
        for origin in [origin for origin in self._leases if not self._leased(origin)]:
            del self._leases[origin]
        old = [
            origin
            for origin, value in self._values.items()
            if time_of(decode(origin, value)) < now - KEPT_FOR
        ]
        return sum(map(self.drop, old))

    async def close(self) -> None:
        """Nothing: what is kept goes with the object."""

    def _leased(self, origin: Origin) -> bool:
        if origin not in self._leases:
            return False
        lease, taken = self._leases[origin]
        return lease_holds(taken, lease.until, self._clock())

    def _end(self, lease: Lease) -> bool:
        held, _ = self._leases.get(lease.origin, (None, 0.0))
        if held != lease:
            return False
        del self._leases[lease.origin]
        return True

    def _no_newer(self, entry: CacheEntry) -> bool:
        known = self.get(entry.origin)
        return known is None or not time_of(entry) < time_of(known) <= self._clock()
