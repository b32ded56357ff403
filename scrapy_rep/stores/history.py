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
    if known is None:
        return entry
    earlier = known.earlier
    if has_changed(known, entry):
        with suppress(ValueError):
            # Where it is too large, it is not kept.
            earlier = (encode(CacheEntry(known.origin, known.stored)), *earlier)
    kept = earlier[:most]
    while sum(map(len, kept)) > MAX_EARLIER:
        kept = kept[:-1]
    return replace(entry, earlier=kept)


def has_changed(known: CacheEntry | None, entry: CacheEntry) -> bool:
    """Whether *entry* has another file than *known*, where both have an answer."""
    if known is None or known.stored is None or entry.stored is None:
        return False
    return entry.stored.differs_from(known.stored)


def copies_of(entry: CacheEntry) -> list[StoredResponse]:
    """All versions in *entry*, the newest first, as far as they can be read."""
    copies = [] if entry.stored is None else [entry.stored]
    for value in entry.earlier:
        try:
            stored = decode(entry.origin, value).stored
        except UnreadableValue:
            continue
        if stored is not None:
            copies.append(stored)
    return copies
