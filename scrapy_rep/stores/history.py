"""The earlier versions of a robots.txt, which are part of its entry.

So they live as long as the entry, in whatever store; and most entries have none.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from scrapy_rep.rep.caching.cache_entry import CacheEntry, StoredResponse

from .base import UnreadableValue, decode, encode

#: Bytes of all earlier versions of one robots.txt together, compressed.
MAX_EARLIER = 256 * 1024


def remember(known: CacheEntry | None, entry: CacheEntry, most: int) -> CacheEntry:
    """*entry*, which came after *known*, with the earlier versions: *most* of them, the last."""
    earlier = known.earlier if known else ()
    if known and has_changed(known, entry):
        # One that is too large is not kept.
        with suppress(ValueError):
            earlier = (encode(CacheEntry(known.origin, known.stored)), *earlier)
    earlier = earlier[:most]
    while sum(map(len, earlier)) > MAX_EARLIER:
        earlier = earlier[:-1]
    return replace(entry, earlier=earlier)


def has_changed(known: CacheEntry | None, entry: CacheEntry) -> bool:
    """Whether *entry* has another file than *known*, where both have an answer."""
    if known is None or known.stored is None or entry.stored is None:
        return False
    return entry.stored.differs_from(known.stored)


def copies_of(entry: CacheEntry) -> list[StoredResponse]:
    """All versions in *entry*, the newest first, as far as they can be read."""
    copies = [entry.stored]
    for value in entry.earlier:
        with suppress(UnreadableValue):
            copies.append(decode(entry.origin, value).stored)
    return [copy for copy in copies if copy is not None]
