"""A store in memory: bounded, and gone when the process is.

Kept as the bytes that other stores keep, too: a fifth of what the objects take.
"""
# What methods do stands in base.Store.
# ruff: noqa: D102

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.parsing.urls import Origin

from .base import Lease, ValueStore, decode, key_of, lease_holds, time_of


class MemoryStore(ValueStore):
    """Cache entries of at most *max_origins* origins; those not used for longest go first.

    *clock* gives seconds since the epoch. Raises nothing.
    """

    def __init__(self, max_origins: int, clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)
        self._max_origins = max_origins
        self._values: OrderedDict[Origin, bytes] = OrderedDict()
        #: Each lease, and when it was taken.
        self._leases: dict[Origin, tuple[Lease, float]] = {}

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

    async def close(self) -> None:
        """Nothing: what is kept goes with the object."""

    async def _get(self, origin: Origin) -> bytes | None:
        if origin in self._values:
            self._values.move_to_end(origin)
        return self._values.get(origin)

    async def _take(self, lease: Lease) -> tuple[bytes | None, bool]:
        granted = not self._leased(lease.origin)
        if granted:
            self._leases[lease.origin] = lease, self._clock()
        return await self._get(lease.origin), granted

    async def _put(self, entry: CacheEntry, value: bytes, lease: Lease | None) -> None:
        held = lease is not None and self._end(lease)
        known = self._values.get(entry.origin)
        seen = time_of(decode(entry.origin, known)) if known else 0.0
        if not held and time_of(entry) < seen <= self._clock():
            return
        self._values[entry.origin] = value
        self._values.move_to_end(entry.origin)
        while len(self._values) > self._max_origins:
            self._values.popitem(last=False)

    async def _keys(self) -> list[str]:
        return list(map(key_of, self._values))

    def _leased(self, origin: Origin) -> bool:
        lease, taken = self._leases.get(origin, (None, 0.0))
        return lease is not None and lease_holds(taken, lease.until, self._clock())

    def _end(self, lease: Lease) -> bool:
        held = self._leases.get(lease.origin, (None, 0.0))[0] == lease
        if held:
            del self._leases[lease.origin]
        return held
