"""A store in memory: bounded, and gone when the process is.

Kept as the bytes that other stores keep, too: a fifth of what the objects take.
"""
# What methods do stands in base.Store.
# ruff: noqa: D102

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable

from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.parsing.urls import Origin

from .base import (
    MAX_LEASE,
    Claim,
    Lease,
    Store,
    decode,
    encode,
    lease_holds,
    time_of,
)


class MemoryStore(Store):
    """CacheEntry of at most *max_origins* origins; those not used for longest go first.

    *clock* gives seconds since the epoch. Raises nothing.
    """

    def __init__(self, max_origins: int, clock: Callable[[], float] = time.time) -> None:
        self._max_origins = max_origins
        self._clock = clock
        self._values: OrderedDict[Origin, bytes] = OrderedDict()
        #: Each lease, and when it was taken.
        self._leases: dict[Origin, tuple[Lease, float]] = {}

    async def read(self, origin: Origin) -> CacheEntry | None:
        return self._get(origin)

    async def claim(self, origin: Origin, seconds: float) -> Claim:
        entry = self._get(origin)
        if self._leased(origin):
            return Claim(entry, None)
        now = self._clock()
        lease = Lease(origin, secrets.token_hex(8), now + min(seconds, MAX_LEASE))
        self._leases[origin] = lease, now
        return Claim(entry, lease)

    async def write(self, entry: CacheEntry, lease: Lease | None = None) -> None:
        held = lease is not None and self._end(lease)
        known = self._get(entry.origin)
        if not held and known and time_of(entry) < time_of(known) <= self._clock():
            return
        try:
            value = encode(entry)
        except ValueError:
            self._values.pop(entry.origin, None)
            return
        self._values[entry.origin] = value
        self._values.move_to_end(entry.origin)
        while len(self._values) > self._max_origins:
            self._values.popitem(last=False)

    async def release(self, lease: Lease) -> None:
        self._end(lease)

    async def has_lease(self, origin: Origin) -> bool:
        return self._leased(origin)

    async def delete(self, origin: Origin) -> bool:
        return self._values.pop(origin, None) is not None

    async def clear(self) -> int:
        forgotten = len(self._values)
        self._values.clear()
        return forgotten

    async def origins(self) -> AsyncIterator[Origin]:
        for origin in list(self._values):
            yield origin

    async def close(self) -> None:
        """Nothing: what is kept goes with the object."""

    def _get(self, origin: Origin) -> CacheEntry | None:
        value = self._values.get(origin)
        if value is None:
            return None
        self._values.move_to_end(origin)
        return decode(origin, value)

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
