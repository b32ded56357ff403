"""What the store of a project has about origins, and what a crawl that begins now makes of it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from scrapy_rep.cli.errors import CommandError
from scrapy_rep.rep.caching.cache_entry import CacheEntry
from scrapy_rep.rep.caching.freshness import Evaluation, Freshness, evaluate, lifetime, retry_at
from scrapy_rep.rep.dialects import Access, WhenUnreachable
from scrapy_rep.rep.parsing.lines import split_lines, within_limit
from scrapy_rep.rep.parsing.urls import Origin, by_host
from scrapy_rep.rep.text import printable
from scrapy_rep.settings import RepSettings
from scrapy_rep.stores.base import Store, time_of
from scrapy_rep.stores.open import open_store

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
    """Where the store of *settings* is, or would be.

    Raises :exc:`CommandError` for a store in memory.
    """
    place = settings.store.place()
    if place is None:
        raise CommandError("REP_STORE = 'memory': nothing is stored when a crawl has ended")
    return place


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
            yield OriginState(entry, settings, now)


@dataclass(frozen=True)
class OriginState:
    """A cache entry, as a crawl with *settings* evaluates it that begins *now*.

    Times are seconds since the epoch, spans are seconds.
    """

    entry: CacheEntry
    settings: RepSettings
    now: float

    def _evaluate(self, now: float) -> Evaluation:
        settings, bounds = self.settings, self.settings.bounds(started=self.now)
        return evaluate(self.entry, settings.dialect, settings.status_overrides, bounds, now)

    @cached_property
    def evaluation(self) -> Evaluation:
        """What the entry allows."""
        return self._evaluate(self.now)

    @cached_property
    def end(self) -> float:
        """When it is used no longer."""
        until = self.evaluation.until
        if self.evaluation.access is None or self.evaluation.due:
            return until
        # Until then it is not even due; after that, it is used until the end.
        return self._evaluate(until).until

    @property
    def origin(self) -> str:
        """The origin, safe to print."""
        return printable(str(self.entry.origin))

    @property
    def freshness(self) -> str:
        """The value of a :class:`Freshness`, or :data:`DUE`."""
        freshness = self.evaluation.freshness
        if freshness is Freshness.FRESH and self.evaluation.due:
            return DUE
        if freshness is Freshness.ABSENT:
            # The writer could use the copy, but this crawl cannot.
            freshness = Freshness.STALE
        return str(freshness.value)

    @property
    def access(self) -> str | None:
        """What a crawl may do; ``None`` if it must fetch robots.txt first."""
        return self.evaluation.access.value if self.evaluation.access else None

    @property
    def age(self) -> float:
        """Since the copy came or was confirmed; without a copy, since the last attempt."""
        copy = self.entry.copy
        return max(0.0, self.now - (copy.confirmed_at if copy else time_of(self.entry)))

    @property
    def left(self) -> float | None:
        """How long it is still used; ``None`` for as long as the crawl runs."""
        return None if math.isinf(self.end) else max(0.0, self.end - self.now)

    @property
    def size(self) -> int | None:
        """Bytes of the body of the copy, if there is one."""
        return len(self.entry.copy.result.body) if self.entry.copy else None

    @property
    def lifetime(self) -> float | None:
        """How long the copy may be used after it was confirmed, if that is limited."""
        if self.entry.copy is None:
            return None
        bounds = self.settings.bounds(started=self.now)
        seconds = lifetime(self.entry.copy, self.settings.dialect, bounds)
        return None if math.isinf(seconds) else seconds

    @property
    def retry_at(self) -> float:
        """When it is fetched again, in an outage."""
        assert self.entry.outage is not None
        return retry_at(self.entry.outage, self.settings.bounds(started=self.now))

    @property
    def meaning(self) -> str:
        """What it means for the pages of the origin, in words."""
        access = self.evaluation.access
        if access is None:
            return "a page waits until robots.txt has been fetched again"
        if access is Access.UNREACHABLE:
            words = _WHILE_UNREACHABLE[self.settings.when_unreachable]
        else:
            words = _PAGES[access]
        return f"{words}; robots.txt is fetched again" if self.evaluation.due else words

    def lines(self) -> list[str]:
        """The lines of the copy, as far as a crawl reads them, safe to print."""
        if self.entry.copy is None:
            return []
        body = within_limit(self.entry.copy.result.body, self.settings.max_size)
        return [printable(line) for line in split_lines(body, self.settings.dialect)]
