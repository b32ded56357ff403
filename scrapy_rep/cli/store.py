"""What the store of a project has about origins, and what a crawl that begins now makes of it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from ..rep.caching.cache_entry import CacheEntry, StoredResponse
from ..rep.caching.freshness import Evaluation, Freshness, evaluate, lifetime, retry_at
from ..rep.dialects import Access, WhenUnreachable
from ..rep.parsing.lines import split_lines, within_limit
from ..rep.parsing.urls import Origin, by_host
from ..rep.rules.robotstxt import RobotsTxt
from ..rep.text import printable
from ..settings import RepSettings
from ..stores.base import Store, time_of
from ..stores.history import copies_of
from ..stores.open import open_store
from .errors import CommandError
from .sources import Session

_T = TypeVar("_T")

#: The state of an origin that is fresh, but is fetched again in the background.
DUE = "due"

_PAGES = {
    Access.SUCCESSFUL: "pages are allowed or refused by its rules",
    Access.UNAVAILABLE: "all pages are allowed",
    Access.DISALLOWED: "all pages are refused",
}
_WHILE_UNREACHABLE = {
    WhenUnreachable.DISALLOW: "all pages are refused",
    WhenUnreachable.DEFER: "requests for pages are held",
    WhenUnreachable.ALLOW: "all pages are allowed",
}


def store_place(settings: RepSettings) -> str:
    """Where the store of *settings* is, or would be, for people.

    Raises :exc:`CommandError` for a store in memory.
    """
    place = settings.store.redis.name if settings.store.redis else settings.store.file()
    if place is None:
        raise CommandError("REP_STORE = 'memory': nothing is stored when a crawl has ended")
    return str(place)


def use_store(settings: RepSettings, use: Callable[[Store], Coroutine[Any, Any, _T]]) -> _T | None:
    """Return what *use* returns for the store of *settings*; ``None`` if there is none.

    No file is created, and a file that is not a store is left alone. Raises as
    :func:`store_place`, and :exc:`~scrapy_rep.stores.base.StoreError`.
    """
    store_place(settings)
    file = settings.store.file()
    if file is not None and not (file.exists() and file.stat().st_size):
        return None

    async def opened() -> _T:
        store = open_store(settings.store, settings.max_origins, sets_aside=False)
        try:
            return await use(store)
        finally:
            await store.close()

    return asyncio.run(opened())


async def sorted_origins(store: Store) -> list[Origin]:
    """The origins in *store*, by host."""
    return sorted([origin async for origin in store.origins()], key=by_host)


async def read_states(
    store: Store, origins: list[Origin], settings: RepSettings, now: float
) -> AsyncIterator[OriginState]:
    """The state of each of *origins* that *store* has, read one at a time."""
    for origin in origins:
        entry = await store.read(origin)
        # Another process may have deleted it by now.
        if entry is not None:
            yield state_of(entry, settings, now)


@dataclass(frozen=True, slots=True)
class OriginState:
    """A cache entry, and what it means to a crawl with *settings* that begins *now*.

    *freshness* is the value of a :class:`Freshness`, or :data:`DUE`. *access* is what the crawl
    may do, ``None`` if it must fetch robots.txt first; *meaning* says it for people. The entry
    is used until *end*, which is infinite for the end of the crawl. *age* is since the copy came
    or was confirmed, without a copy since the last attempt. *lifetime* is how long the copy may
    be used after it was confirmed, ``None`` without a limit or a copy. *retry_at* is when
    robots.txt is fetched again, in an outage. Times are seconds since the epoch.
    """

    entry: CacheEntry
    settings: RepSettings
    now: float
    freshness: str
    access: str | None
    meaning: str
    end: float
    age: float
    lifetime: float | None
    retry_at: float | None

    @property
    def left(self) -> float | None:
        """How long the entry is still used; ``None`` for as long as the crawl runs."""
        return None if math.isinf(self.end) else max(0.0, self.end - self.now)

    @property
    def size(self) -> int | None:
        """Bytes of the body of the copy, if there is one."""
        return len(self.entry.stored.result.body) if self.entry.stored else None

    def lines(self) -> list[str]:
        """The lines of the copy, as far as a crawl reads them, safe to print."""
        if self.entry.stored is None:
            return []
        body = within_limit(self.entry.stored.result.body, self.settings.max_size)
        return [printable(line) for line in split_lines(body, self.settings.dialect)]


def state_of(entry: CacheEntry, settings: RepSettings, now: float) -> OriginState:
    """What *entry* means to a crawl with *settings* that begins *now*."""
    bounds, stored = settings.bounds(started=now), entry.stored

    def at(time: float) -> Evaluation:
        return evaluate(entry, settings.dialect, settings.status_overrides, bounds, time)

    found = at(now)
    # Until then it is not even due; after that, it is used until the end.
    is_first = found.access is not None and not found.due
    seconds = lifetime(stored, settings.dialect, bounds) if stored else math.inf
    return OriginState(
        entry,
        settings,
        now,
        freshness=_freshness(found),
        access=found.access.value if found.access else None,
        meaning=_meaning(found, settings),
        end=at(found.until).until if is_first else found.until,
        age=max(0.0, now - (stored.confirmed_at if stored else time_of(entry))),
        lifetime=None if math.isinf(seconds) else seconds,
        retry_at=retry_at(entry.outage, bounds) if entry.outage else None,
    )


def _freshness(found: Evaluation) -> str:
    if found.freshness is Freshness.FRESH and found.due:
        return DUE
    # The writer could use the copy, but this crawl cannot.
    is_absent = found.freshness is Freshness.ABSENT
    return str((Freshness.STALE if is_absent else found.freshness).value)


def _meaning(found: Evaluation, settings: RepSettings) -> str:
    if found.access is None:
        return "a page waits until robots.txt has been fetched again"
    words = _PAGES.get(found.access) or _WHILE_UNREACHABLE[settings.when_unreachable]
    return f"{words}; robots.txt is fetched again" if found.due else words


def versions_in_store(session: Session, origin: Origin) -> list[tuple[StoredResponse, RobotsTxt]]:
    """The versions of the robots.txt of *origin*, the newest first, and the rules of each.

    There are no rules if there was no file. Raises as :func:`use_store`.
    """
    entry = use_store(session.settings, lambda store: store.read(origin))
    return [(stored, session.parse(stored.result)) for stored in copies_of(entry)] if entry else []
